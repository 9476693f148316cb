"""Backups of both kinds of stores: a line of JSON with checksums, then the bytes of an SQLite store."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hdr4me.atomic import replacing
from hdr4me.collector import is_postgres
from hdr4me.collector.errors import Damage, Damaged, StoreUnavailable
from hdr4me.collector.stores.protocol import Rows
from hdr4me.collector.stores.sqlite import database as sqlite
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.survey.canonical import parse
from hdr4me.tally.file import loads

FORMAT, VERSION = "hdr4me-backup", 2
_LONGEST_HEADER = 1 << 16
FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class Contents:
    """The contents of a backup, after every checksum was verified; `size` is the bytes of its SQLite part."""

    rounds: int
    blocks: int
    reports: int
    size: int


def backup(where: FilePath, target: FilePath, *, despite_damage: bool = False) -> Contents:
    """Copy a store (a path or URL) into one file while the collector runs, read it back and verify every checksum.

    The file is complete or absent. `despite_damage` leaves damaged blocks out instead of raising Damaged.
    """
    with replacing(target, mode=0o600) as temporary, _folder(target) as folder:
        body = Path(folder, "body.db")
        if is_postgres(where):
            name = _copy_postgres(str(where), body, despite_damage)
        else:
            name = str(where)
            _copy_sqlite(Path(where), body, despite_damage)
        with sqlite.store_errors(name):
            contents, header, damage = _inspect(body)
        if damage:
            raise Damaged(name, damage)
        header["sha256"] = _sha256(body)
        with temporary.open("wb") as file, body.open("rb") as source:
            file.write(_line(header))
            shutil.copyfileobj(source, file, 1 << 20)
    if Path(target).is_file():
        verify(target)  # the bytes on the disk
    return contents


def _folder(target: FilePath) -> tempfile.TemporaryDirectory[str]:
    """A folder beside the target, on the same disk, readable only by this user."""
    return tempfile.TemporaryDirectory(dir=Path(target).absolute().parent, prefix=".hdr4me-backup-")


def _copy_sqlite(path: Path, body: Path, despite_damage: bool) -> None:
    if not path.is_file():
        raise StoreUnavailable(f"{path} does not exist: there is no store to back up")
    sqlite.check_log(path.resolve())
    with sqlite.store_errors(path), closing(sqlite.connect(path, readonly=True)) as source:
        sqlite.check_kind(source, path)
        if despite_damage:
            source.execute("begin")
            intact = sqlite.scan(source, lambda damage: None)
            sqlite.fill(body, sqlite.read_tables(source), intact)
            return
        with closing(sqlite3.connect(body)) as copy:
            source.backup(copy)  # in one step: the copy is the store at one moment
            copy.execute("pragma journal_mode = delete")


def _copy_postgres(url: str, body: Path, despite_damage: bool) -> str:
    from hdr4me.collector.stores.postgres.database import Database, read_blocks, read_tables

    damage: list[Damage] = []
    with closing(Database(url)) as database:
        with database.reading() as connection:
            sqlite.fill(body, read_tables(connection), read_blocks(connection, damage.append))
        if damage and not despite_damage:
            raise Damaged(database.name, damage)
        return database.name


def verify(path: FilePath) -> Contents:
    """Check every checksum of a backup; Damaged lists the damage, FormatError means that it is not a backup."""
    with _folder(path) as folder:
        return _extract(Path(path), Path(folder, "body.db"))


def _extract(path: Path, body: Path) -> Contents:
    """Write the SQLite part of a backup to `body` and verify all of it."""
    try:
        with path.open("rb") as file:
            header = _header(path, file)
            with body.open("wb") as target:
                shutil.copyfileobj(file, target, 1 << 20)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    complete = _sha256(body) == header["sha256"]
    try:
        contents, found, damage = _inspect(body)
    except (HDR4MEError, sqlite3.Error) as error:
        if complete and isinstance(error, HDR4MEError):
            raise
        raise Damaged(str(path), [Damage(None, None, f"its SQLite part cannot be read ({error})")]) from error
    names = [name for name in found["tables"] if found["tables"][name] != header["tables"].get(name)]
    if not damage and (not complete or names or len(header["tables"]) != len(found["tables"])):
        text = f"the contents of {', '.join(names)} were changed" if names else "its SHA-256 does not match"
        damage = [Damage(None, None, text)]
    if damage:
        raise Damaged(str(path), damage)
    return contents


def _line(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _header(path: Path, file: IO[bytes]) -> dict[str, Any]:
    line = file.readline(_LONGEST_HEADER)
    try:
        header: Any = parse(line)
    except ValueError as error:
        raise FormatError(f"{path} is not a backup, or damaged: its first line is not JSON") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError(f"{path} is not a backup, or damaged: its format is not {FORMAT!r}")
    version = header.get("version")
    if version != VERSION:
        raise FormatError(
            f"{path} is a backup of version {version!r}: this program supports version {VERSION}"
        )
    fields = {"format", "version", "tables", "sha256"}
    if set(header) != fields or not isinstance(header["tables"], dict) or _line(header) != line:
        raise FormatError(f"{path} is damaged: its first line was changed")
    return header


def _inspect(body: Path) -> tuple[Contents, dict[str, Any], list[Damage]]:
    """The contents of an SQLite store, the header of a backup of it, and the damage found."""
    damage: list[Damage] = []
    with closing(sqlite.connect(body, readonly=True)) as connection:
        sqlite.check_kind(connection, body)
        sqlite.check_structure(connection, damage.append)
        blocks = reports = 0
        sums = hashlib.sha256()
        for block in sqlite.scan(connection, damage.append):
            blocks, reports = blocks + 1, reports + len(block)
            sums.update(block.checksum)
        tables = sqlite.read_tables(connection)
    surveys: dict[str, Survey] = {}
    for fingerprint, document in tables["surveys"]:
        try:
            surveys[fingerprint] = Survey.from_json(document)
        except HDR4MEError as error:
            damage.append(Damage(None, None, f"survey {fingerprint}: {error}"))
    of_round = {number: surveys.get(fingerprint) for number, fingerprint, *_ in tables["rounds"]}
    for number, kind, content in tables["tallies"]:
        try:
            loads(content, of_round.get(number))
        except HDR4MEError as error:
            damage.append(Damage(None, None, f"the tally ({kind}) of round {number}: {error}"))
    digests = {name: _digest(rows) for name, rows in tables.items()} | {"blocks": sums.hexdigest()}
    header = {"format": FORMAT, "version": VERSION, "tables": digests}
    return Contents(len(of_round), blocks, reports, body.stat().st_size), header, damage


def _digest(rows: Rows) -> str:
    """SHA-256 of a table; independent of the order of its rows."""
    total = hashlib.sha256()
    for row in sorted(rows, key=repr):
        total.update(repr(row).encode() + b"\n")
    return total.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _renew(body: Path, keep_tokens: bool) -> None:
    """Make a verified copy a store of its own."""
    with closing(sqlite.connect(body)) as connection, sqlite.transaction(connection, body):
        connection.execute("update settings set value = lower(hex(randomblob(16))) where name = 'store'")
        if not keep_tokens:
            connection.execute("delete from tokens")


def restore(source: FilePath, where: FilePath, *, keep_tokens: bool = False) -> Contents:
    """Make a store of a verified backup: a new SQLite file, or the tables of a PostgreSQL database without rounds.

    The store has a new id, and no tokens unless `keep_tokens`: a token may have been revoked since the backup.
    """
    if not is_postgres(where):
        target = sqlite.real_path(where)
        beside = sqlite.side_files(target)
        if target.exists():
            raise InvalidInput(f"{where} exists already: choose another name, or move it away first")
        if beside:
            raise InvalidInput(f"{beside[0]} belongs to an earlier store: move it away, then restore")
        with replacing(target, mode=0o600) as temporary, _folder(target) as folder:
            contents = _extract(Path(source), body := Path(folder, "body.db"))
            _renew(body, keep_tokens)
            shutil.copyfile(body, temporary)
        return contents
    from hdr4me.collector.stores.postgres.database import Database, fill

    with tempfile.TemporaryDirectory() as folder:
        contents = _extract(Path(source), body := Path(folder, "body.db"))
        _renew(body, keep_tokens)
        with (
            closing(sqlite.connect(body, readonly=True)) as copy,
            closing(Database(str(where))) as database,
            database.transaction() as connection,
        ):
            connection.execute("lock table rounds in access exclusive mode")
            if connection.execute("select 1 from rounds limit 1").fetchone():
                raise InvalidInput(f"{database.name} has rounds already: restore into an empty database")
            fill(connection, sqlite.read_tables(copy), sqlite.scan(copy, lambda damage: None))
    return contents
