"""Backups: one file for every store, with the checksum of each part; written whole or not at all, verified, restored.

The file is a line of JSON (what is in it, and checksums), then the bytes of an SQLite store. It can be restored as
an SQLite file or into PostgreSQL, wherever it came from.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hdr4me.atomic import replacing
from hdr4me.collector.migrations import SQLITE
from hdr4me.collector.sqlite_file import APPLICATION, check_structure, connect, scan, told
from hdr4me.collector.store import Damage, Damaged, SchemaTooNew, StoreUnavailable
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.survey.canonical import parse
from hdr4me.tally.file import loads

__all__ = ["Contents", "backup", "restore", "verify"]

FORMAT, VERSION = "hdr4me-backup", 1
_LONGEST_HEADER = 1 << 16
FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class Contents:
    """What a backup holds, every checksum verified."""

    rounds: int
    blocks: int
    reports: int
    size: int
    """Bytes of the file's SQLite part."""


# -- writing ---------------------------------------------------------------------------------------------------


def backup(where: FilePath, target: FilePath, *, despite_damage: bool = False) -> Contents:
    """Copy a store into one file, while the collector runs; the copy is read back and every checksum verified.

    Parameters
    ----------
    where
        A store's path or URL, as for `open_store`.
    target
        The file to write; it appears whole or not at all.
    despite_damage
        Leave damaged blocks out instead of refusing.

    Raises
    ------
    Damaged
        The store is damaged; the message names the blocks.
    """
    with replacing(target, mode=0o600) as temporary, _folder(target) as folder:
        body = folder / "body.db"
        if _is_url(where):
            _copy_postgres(str(where), body, despite_damage)
        else:
            _copy_sqlite(Path(where), body, despite_damage)
        with told(_name(where)):
            contents, header, damage = _inspect(body)
        if damage:
            raise Damaged(_name(where), damage)
        header["sha256"] = _sha256(body)
        with temporary.open("wb") as file, body.open("rb") as source:
            file.write(_line(header))
            shutil.copyfileobj(source, file, 1 << 20)
    if Path(target).is_file():
        verify(target)  # what is on the disk, not what was meant to be
    return contents


def _name(where: FilePath) -> str:
    """The store without user and password."""
    if not _is_url(where):
        return str(where)
    from hdr4me.collector.postgres_link import Link

    return Link(str(where)).name


def _is_url(where: FilePath) -> bool:
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


@contextmanager
def _folder(target: FilePath) -> Iterator[Path]:
    """A folder beside the target, on the same disk, that only this user can read."""
    parent = Path(target).absolute().parent
    with tempfile.TemporaryDirectory(dir=parent, prefix=".hdr4me-backup-") as folder:
        yield Path(folder)


def _copy_sqlite(path: Path, body: Path, despite_damage: bool) -> None:
    if not path.is_file():
        raise StoreUnavailable(f"{path} does not exist: there is no store to back up")
    with ExitStack() as stack, told(path):
        source = connect(path, readonly=True)
        stack.callback(source.close)
        _check_kind(source, path)
        if despite_damage:
            from hdr4me.collector.portable import into_sqlite, rows_in

            source.execute("begin")
            into_sqlite(body, rows_in(source), scan(source, lambda damage: None))
            return
        copy = sqlite3.connect(body)
        stack.callback(copy.close)
        source.backup(copy)  # in one step: the copy is the store at one moment
        copy.execute("pragma journal_mode = delete")


def _copy_postgres(url: str, body: Path, despite_damage: bool) -> None:
    from hdr4me.collector.portable import from_postgres, into_sqlite
    from hdr4me.collector.postgres_link import Link
    from hdr4me.collector.postgres_rows import read_blocks

    link = Link(url)
    damage: list[Damage] = []
    with closing(link):
        link.prepare()
        with link.reading() as connection:
            into_sqlite(body, from_postgres(connection), read_blocks(connection, damage.append))
    if damage and not despite_damage:
        raise Damaged(link.name, damage)


# -- verifying -------------------------------------------------------------------------------------------------


def verify(path: FilePath) -> Contents:
    """Check every checksum of a backup.

    Raises
    ------
    Damaged
        Something in it is damaged; the message names what.
    FormatError
        It is not a backup, or of a version that this program does not read.
    """
    with _folder(path) as folder:
        return _extract(Path(path), folder / "body.db")


def _extract(path: Path, body: Path) -> Contents:
    """Write the SQLite part of a backup to `body`, after which all of it is verified."""
    try:
        with path.open("rb") as file:
            header = _header(path, file)
            with body.open("wb") as target:
                shutil.copyfileobj(file, target, 1 << 20)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}") from error
    whole = _sha256(body) == header["sha256"]
    try:
        contents, found, damage = _inspect(body)
    except (HDR4MEError, sqlite3.Error) as error:
        if whole and isinstance(error, HDR4MEError):
            raise
        raise Damaged(str(path), [Damage(None, None, f"its SQLite part cannot be read ({error})")]) from error
    names = [name for name in found["tables"] if found["tables"][name] != header["tables"].get(name)]
    if not damage and (not whole or names or len(header["tables"]) != len(found["tables"])):
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
    if header.get("version") != VERSION:
        raise FormatError(
            f"{path} is a backup of version {header.get('version')!r}: this program reads {VERSION}"
        )
    if set(header) != {"format", "version", "tables", "sha256"} or not isinstance(header["tables"], dict):
        raise FormatError(f"{path} is not a backup, or damaged: fields are missing or unknown")
    if _line(header) != line:
        raise FormatError(f"{path} is damaged: its first line was changed")
    return header


def _inspect(body: Path) -> tuple[Contents, dict[str, Any], list[Damage]]:
    """What is in an SQLite store, the header that a backup of it has, and what is damaged."""
    from hdr4me.collector.portable import digest, rows_in

    damage: list[Damage] = []
    connection = connect(body, readonly=True)
    try:
        _check_kind(connection, body)
        check_structure(connection, damage.append)
        blocks = reports = 0
        sums = hashlib.sha256()
        for block in scan(connection, damage.append):
            blocks, reports = blocks + 1, reports + len(block)
            sums.update(block.checksum)
        tables = rows_in(connection)
    finally:
        connection.close()
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
    sizes = {name: digest(rows) for name, rows in tables.items()} | {"blocks": sums.hexdigest()}
    header = {"format": FORMAT, "version": VERSION, "tables": sizes}
    return Contents(len(of_round), blocks, reports, body.stat().st_size), header, damage


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("pragma application_id").fetchone()[0] != APPLICATION:
        raise FormatError(f"{path} is not a store of this program")
    version = connection.execute("pragma user_version").fetchone()[0]
    if version > len(SQLITE):
        raise SchemaTooNew(f"{path} has schema {version}, and this program knows schemas up to {len(SQLITE)}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- restoring -------------------------------------------------------------------------------------------------


def restore(source: FilePath, where: FilePath) -> Contents:
    """Make a store of a backup, after every checksum of it is verified.

    Parameters
    ----------
    source
        A file that `backup` wrote, of either kind of store.
    where
        The path of a new SQLite store, or the URL of a PostgreSQL database without rounds.

    Raises
    ------
    Damaged
        The backup is damaged: nothing is restored, and the message names what is damaged.
    InvalidInput
        There is a store already: nothing is overwritten.
    """
    if not _is_url(where):
        target = Path(where)
        if target.exists() or target.with_name(target.name + "-wal").exists():
            raise InvalidInput(f"{where} exists already: restore into a new file, then move it")
        with replacing(target, mode=0o600) as temporary, _folder(target) as folder:
            contents = _extract(Path(source), folder / "body.db")
            shutil.copyfile(folder / "body.db", temporary)
        return contents
    with tempfile.TemporaryDirectory() as folder:
        body = Path(folder, "body.db")
        contents = _extract(Path(source), body)
        _fill_postgres(str(where), body)
    return contents


def _fill_postgres(url: str, body: Path) -> None:
    from hdr4me.collector.portable import into_postgres, rows_in
    from hdr4me.collector.postgres_link import Connection, Link

    link = Link(url)

    def work(connection: Connection) -> None:
        connection.execute("lock table rounds in access exclusive mode")
        if connection.execute("select 1 from rounds limit 1").fetchone():
            raise InvalidInput(f"{link.name} has rounds already: restore into an empty database")
        into_postgres(connection, rows_in(source), scan(source, lambda damage: None))

    with closing(link), closing(connect(body, readonly=True)) as source:
        link.prepare()
        link.run(work)
