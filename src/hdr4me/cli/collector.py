"""hdr4me serve, send, backup and restore: a collector that accepts reports over HTTP."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Context, Option, Typer

from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, OUTPUT, SURVEY, UNUSABLE, File, Read, Texts
from hdr4me.cli.output import print_json, print_note, print_table, progress, working
from hdr4me.cli.reports import perturb_files
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.collector.backup import Contents
    from hdr4me.collector.config import Settings
    from hdr4me.collector.stores.protocol import Registry, Store
    from hdr4me.survey import Survey

_ENVIRONMENT = "HDR4ME_SERVE_"  # begins the names of options in the environment


def _configured(context: Context, path: Path | None) -> Path | None:
    """Use the values of a TOML file, and above them those of the environment, as defaults of the options."""
    if context.resilient_parsing:
        return path
    known = {str(one.name): one for one in context.command.params if one.name != "config"}
    prefixed = [name for name in os.environ if name.startswith(_ENVIRONMENT)]
    text = {name.removeprefix(_ENVIRONMENT).lower(): os.environ[name] for name in prefixed}
    file = text.pop("config", None)
    if path is None and file is not None:
        path = Path(file)
    given: dict[str, Any] = {}
    if path is not None:
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} is not a TOML file: {error}") from None
        given = {name.replace("-", "_"): value for name, value in found.items()}
        if unknown := sorted(set(given) - set(known)):
            raise InvalidInput(f"{path}: {unknown[0]!r} is not an option of hdr4me serve")
    if unknown := sorted(set(text) - set(known)):
        raise InvalidInput(f"{_ENVIRONMENT}{unknown[0].upper()} is not an option of hdr4me serve")
    sources = dict.fromkeys(given, str(path))
    for name, value in text.items():
        given[name] = value.split() if name == "allow_origin" else value
        sources[name] = _ENVIRONMENT + name.upper()
    for name, source in sources.items():
        try:
            known[name].process_value(context, given[name])
        except BadParameter as error:
            raise InvalidInput(f"{source}: {error.format_message()}") from None
    context.default_map = {**(context.default_map or {}), **given}
    context.meta[_ENVIRONMENT] = sources
    return path


@contextmanager
def _named_sources(context: Context) -> Iterator[None]:
    """Inside the block, an error about an option names the file or the variable of the environment with its value."""
    try:
        yield
    except InvalidInput as error:
        name = str(error).partition(" ")[0].removeprefix("--").replace("-", "_")
        given = context.get_parameter_source(name)
        if name in context.meta[_ENVIRONMENT] and given is not None and given.name == "DEFAULT_MAP":
            raise InvalidInput(f"{context.meta[_ENVIRONMENT][name]}: {error}") from None
        raise


def serve(
    context: Context,
    survey: Annotated[
        File, Argument(help="The survey file, whose first round is opened; omit it to continue.")
    ] = None,
    config: Annotated[
        File, Option(callback=_configured, is_eager=True, help="A TOML file with values of the options.")
    ] = None,
    database: Annotated[
        str, Option(metavar="<file or URL>", help="An SQLite file, or postgresql://user@host/name.")
    ] = "collector.db",
    host: Annotated[str, Option(metavar="<address>", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="The port to listen on; 0 for any free port.")] = 8000,
    workers: Annotated[int, Option(help="Number of processes; more than one needs PostgreSQL.")] = 1,
    allow_origin: Annotated[
        Texts, Option(metavar="<URL>", help="Web origin whose pages may send reports (CORS; repeatable).")
    ] = None,
    open_uploads: Annotated[bool, Option("--open-uploads", help="Accept reports without a token.")] = False,
    new_round: Annotated[
        bool, Option("--new-round", help="Open another round after one that an administrator closed.")
    ] = False,
    link: Annotated[
        bool | None, Option(help="Print a link to the dashboard; default: on a terminal.")
    ] = None,
    min_reports: Annotated[
        int, Option("--min-reports", help="Publish no estimate from fewer reports.")
    ] = 100,
    retain_days: Annotated[
        int, Option(help="Days after closing until reports are deleted and only the tally is kept.")
    ] = 7,
    tolerance: Annotated[
        float | None,
        Option(help="The dashboard compares the errors with this tolerance; default: that of the plan."),
    ] = None,
    rate: Annotated[float, Option(help="Largest number of reports per second and upload token.")] = 100_000.0,
    data_quality: Annotated[
        Texts,
        Option(
            metavar="<file>",
            help="A data-quality report to show on the dashboard: exact, not private counts (repeatable).",
        ),
    ] = None,
) -> None:
    """Collect reports over HTTP. Each upload is stored on disk before it is confirmed.

    Reports need a token (hdr4me token add), unless --open-uploads was given for this database.

    Options can also be given in a TOML file (min-reports = 1000) or in the environment (HDR4ME_SERVE_MIN_REPORTS).

    If other machines send reports, put a reverse proxy with TLS in front of it (docs/collector.md).

    Example: hdr4me serve survey.json --database collector.db --min-reports 1000
    """
    with opt.needs_collector():
        import_module("hdr4me.collector.serve")
        from hdr4me.collector import is_postgres
        from hdr4me.collector.config import Limits, Settings
    from hdr4me.survey import Survey

    with _named_sources(context), opt.named_options():
        opt.check("--port", port, 0 <= port <= 65535, "an integer from 0 to 65535")
        opt.check("--workers", workers, workers >= 1, "a positive integer")
        settings = Settings(
            database=database,
            min_reports=min_reports,
            allow_origins=tuple(allow_origin or ()),
            retain_days=retain_days,
            tolerance=tolerance,
            data_quality=tuple(data_quality or ()),
            limits=Limits(rate=rate),
        )
        several = workers == 1 or is_postgres(database)
        opt.check("--workers", workers, several, "1 with SQLite; several need --database postgresql://…")
    document = None if survey is None else Survey.load(survey)
    start(
        settings,
        document,
        host=host,
        port=port,
        workers=workers,
        open_uploads=open_uploads,
        new_round=new_round,
        link=link,
    )


def start(
    settings: Settings,
    document: Survey | None,
    *,
    host: str,
    port: int,
    workers: int = 1,
    open_uploads: bool = False,
    new_round: bool = False,
    link: bool | None = None,
    page: str = "",
    prepare: Callable[[Store, int], object] | None = None,
) -> None:
    """Prepare the store, then serve until stopped."""
    from hdr4me.collector import open_store
    from hdr4me.collector.serve import bind, run, run_workers, with_secrets
    from hdr4me.io.quality import read_quality

    with closing(bind(host, port)) as sock:
        with closing(open_store(settings.database)) as store:
            opened = _open_round(store, document, new_round)
            for round in store.rounds():  # an unreadable report stops the start, not an answer
                read_quality(settings.data_quality, store.survey(round.fingerprint))
            _check_uploads(store, settings.database, open_uploads)
            if opened is not None and prepare is not None:
                prepare(store, opened)
        settings, public = with_secrets(settings), without_password(settings.database)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{sock.getsockname()[1]}"

        def started() -> None:
            print_note(f"collecting at {address}")
            if page:
                print_note(f"web form for answering: {address}{page}")
            if link or (link is None and sys.stderr.isatty()):  # a journal would keep the link
                print_note(f"dashboard (this link works once): {address}/#key={settings.link_key}")
            else:
                print_note(
                    f"dashboard: {address}/ (it asks for a token: hdr4me token add {public} --scope read)"
                )

        if workers > 1:
            run_workers(settings, sock, workers, started=started)
        else:
            run(settings, sock, started=started)


def _open_round(store: Store, document: Survey | None, new_round: bool) -> int | None:
    """Open a round of the survey unless one is open, or was closed and no new round is requested; its number."""
    rounds = store.rounds()
    if document is None:
        if not rounds:
            raise InvalidInput(
                "the database has no survey yet: give a survey file, which opens the first round"
            )
        return None
    own = [round for round in rounds if round.fingerprint == document.fingerprint]
    if any(round.state == "open" for round in own):
        return None
    if own and not new_round:
        print_note(f"round {own[-1].number} of this survey is {own[-1].state}; --new-round opens another one")
        return None
    opened = store.open_round(document, now=datetime.now(UTC)).number
    store.record(f"round {opened} opened", "the command line")
    print_note(f"opened round {opened} of survey {document.fingerprint[:12]}")
    return opened


def _check_uploads(store: Store, database: str, open_uploads: bool) -> None:
    """Open uploads to anyone if requested; otherwise print a note if there is no upload token."""
    from hdr4me.collector.stores.protocol import ANYONE

    tokens = store.tokens()
    if open_uploads and all(token.sha256 != ANYONE for token in tokens):
        _add_token(store, "send", "anyone", 36_500, anyone=True)
    elif not open_uploads and all(token.scope != "send" for token in tokens):
        print_note(
            "no upload token exists: create one with hdr4me token add "
            f"{without_password(database)} --scope send, or restart with --open-uploads"
        )


token = Typer(help="Manage the access tokens of a collector.")
DATABASE = Annotated[str, Argument(help="An SQLite file, or postgresql://user@host/name.")]


def _add_token(store: Registry, scope: str, label: str, days: int, *, anyone: bool = False) -> str:
    """Add a token and record it; the token, which is stored nowhere."""
    from hdr4me.collector.access import digest, new_token
    from hdr4me.collector.stores.protocol import ANYONE

    secret = new_token()
    expires = int(time.time()) + 86_400 * days
    with opt.named_options():
        made = store.add_token(ANYONE if anyone else digest(secret), scope, label, expires=expires)  # type: ignore[arg-type]
    store.record(f"token {made.number} added ({scope}, {label or 'no label'})", "the command line")
    return secret


@token.command("add", cls=opt.Command)
def add_token(
    database: DATABASE,
    scope: Annotated[str, Option(help="send (upload reports), read (see estimates) or admin (everything).")],
    label: Annotated[str, Option(help="A name for the list of tokens.")] = "",
    days: Annotated[int, Option(help="Days until the token expires.")] = 90,
) -> None:
    """Generate a token and print it. It is shown only once, because only its hash is stored.

    Example: hdr4me token add collector.db --scope read --label dashboard
    """
    with opt.needs_collector():
        from hdr4me.collector import open_registry
    opt.check("--days", days, 1 <= days <= 3660, "an integer from 1 to 3660")
    with closing(open_registry(database)) as registry:
        print(_add_token(registry, scope, label, days))


def _existing(database: str) -> Registry:
    """The registry of a database that exists; a misspelt name must not create one."""
    with opt.needs_collector():
        from hdr4me.collector import open_registry
    if "://" not in str(database):
        try:
            Path(database).stat()
        except FileNotFoundError:
            raise InvalidInput(
                f"{database} does not exist: hdr4me serve or hdr4me token add creates it"
            ) from None
        except OSError as error:
            raise InvalidInput(f"{database} cannot be opened: {error.strerror}") from None
    return open_registry(database)


@token.command("list", cls=opt.Command)
def list_tokens(database: DATABASE, json: JSON = False) -> None:
    """List the valid tokens of a collector: number, scope, label and expiry.

    Example: hdr4me token list collector.db
    """
    with opt.needs_collector():
        from hdr4me.collector.stores.protocol import ANYONE
    with closing(_existing(database)) as registry:
        rows = [
            {
                "number": one.number,
                "scope": one.scope,
                "who": "anyone" if one.sha256 == ANYONE else "the holder of the token",
                "label": one.label,
                "expires": datetime.fromtimestamp(one.expires, UTC).date().isoformat(),
            }
            for one in registry.tokens()
        ]
    if json:
        print_json(rows)
    else:
        columns = ["number", "scope", "who", "label", "expires"]
        print_table("Valid tokens", columns, [[row[name] for name in columns] for row in rows])


@token.command("revoke", cls=opt.Command)
def revoke_token(database: DATABASE, number: Annotated[int, Argument(help="The token's number.")]) -> None:
    """Revoke a token; a running collector refuses it within a second.

    Example: hdr4me token revoke collector.db 2
    """
    with closing(_existing(database)) as registry:
        if not registry.remove_token(number):
            raise InvalidInput(
                f"there is no token {number}; hdr4me token list {without_password(database)} shows all tokens"
            )
        registry.record(f"token {number} revoked", "the command line")
    print_note(f"token {number} is revoked")


@token.command("log", cls=opt.Command)
def log_of_acts(database: DATABASE, json: JSON = False) -> None:
    """Print the log of administrative actions.

    Example: hdr4me token log collector.db
    """
    with closing(_existing(database)) as registry:
        acts = registry.acts()
    if json:
        print_json([act._asdict() for act in acts])
    else:
        print_table(
            "Administrative actions, times in UTC", ["time", "action", "who"], [list(act) for act in acts]
        )


@opt.reads_records
def send(
    survey: SURVEY,
    records: Annotated[Texts, Argument(help="Files of records, as for hdr4me perturb.")] = None,
    url: Annotated[
        str, Option(metavar="<URL>", help="Address of the collector, such as https://collector.example.")
    ] = "",
    token: Annotated[
        str | None,
        Option(envvar="HDR4ME_TOKEN", metavar="<token>", help="An upload token, if the collector needs one."),
    ] = None,
    round_number: Annotated[
        int | None, Option(help="The number of the round; default: the latest open round.", min=1)
    ] = None,
    spool: Annotated[
        File, Option(metavar="<folder>", help="Keep the reports in this folder, to send them again.")
    ] = None,
    allow_unusable: UNUSABLE = False,
    json: JSON = False,
    *,
    read: Read,
) -> None:
    """Randomize records on this machine and send the reports to a collector. Each report is counted once.

    Reports and their ids are stored before they are sent. If sending fails, the message says how to send the same
    reports again; randomizing the records again would spend the budget of every user again.

    Example: hdr4me send survey.json records.parquet --url http://127.0.0.1:8000
    """
    with opt.needs_collector():
        from hdr4me.collector.sending import NotAccepted, Spool
        from hdr4me.collector.sending import send as send_spool
    from hdr4me.engines import Local
    from hdr4me.survey import Survey

    if not url:
        raise InvalidInput.missing("--url")
    document = Survey.load(survey)
    folder = spool or Path(tempfile.mkdtemp(prefix="hdr4me-send-"))
    made = Spool(folder, document)
    quality = None
    if made.is_there:
        if records:
            raise InvalidInput(
                f"{folder} already contains reports: omit the records to send them again, or use another --spool folder"
            )
        print_note(f"sending the {len(made):,} reports of {folder}")
    elif not records:
        raise InvalidInput(
            "RECORDS is missing: give files of records, or with --spool a folder of reports to send"
        )
    else:
        folder.mkdir(parents=True, exist_ok=True)
        n, quality = perturb_files(Local(), read(records), document, made.reports, allow_unusable)
        made.assign_ids(n)
    try:
        with progress("sending", len(made)) as advance, opt.named_options():
            sent = send_spool(made, url, token=token, round_number=round_number, progress=advance)
    except NotAccepted as error:
        how = "Give the token with --token or HDR4ME_TOKEN. " if "needs a token" in str(error) else ""
        again = f"hdr4me send {survey} --spool {folder} --url {url}"
        raise NotAccepted(f"{error}. {how}To send the same reports again: {again}") from None
    if spool is None:
        shutil.rmtree(folder, ignore_errors=True)
    if json:
        about = {"survey": document.fingerprint, "stored": sent.stored, "duplicates": sent.duplicates}
        print_json(
            {**about, "rejected": sent.rejected, "data_quality": None if quality is None else quality.rows()}
        )
    else:
        total = sent.stored + sent.duplicates
        print_note(
            f"sent {total:,} reports ({sent.stored:,} new, {sent.duplicates:,} already at the collector)"
        )
    if sent.rejected:
        raise NotAccepted(f"the collector rejected {sent.rejected:,} reports")


def backup(
    database: Annotated[str, Argument(help="An SQLite file, or postgresql://user@host/name.")],
    output: OUTPUT,
    despite_damage: Annotated[
        bool, Option("--despite-damage", help="Leave out damaged blocks of reports instead of stopping.")
    ] = False,
    json: JSON = False,
) -> None:
    """Copy the database of a collector while it runs, and verify all checksums of the copy.

    Example: hdr4me backup collector.db --output monday.backup
    """
    from hdr4me.collector.backup import backup as copy

    opt.check_outputs([output], [] if "://" in database else [Path(database)])
    with working("copying and verifying"):
        contents = copy(database, output, despite_damage=despite_damage)
    _summary(contents, json)
    print_note(f"wrote {output}; all checksums are verified")


def restore(
    source: Annotated[Path, Argument(help="A file that backup wrote.")],
    database: Annotated[
        str, Option(metavar="<file or URL>", help="A new SQLite file, or postgresql://… without rounds.")
    ],
    keep_tokens: Annotated[
        bool, Option("--keep-tokens", help="Keep the tokens of the backup, including those revoked since.")
    ] = False,
    json: JSON = False,
) -> None:
    """Restore a backup into a new database after verifying all checksums. Nothing is overwritten.

    The restored database has no tokens, because some of those in the backup may have been revoked since.

    Example: hdr4me restore monday.backup --database collector.db
    """
    from hdr4me.collector.backup import restore as fill

    with working("verifying and restoring"):
        contents = fill(source, database, keep_tokens=keep_tokens)
    _summary(contents, json)
    print_note(
        f"restored into {without_password(database)}; it has {'the' if keep_tokens else 'no'} tokens of the backup"
    )


def without_password(database: str) -> str:
    """The database as messages show it: a URL without the user and password."""
    scheme, found, rest = database.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else database


def _summary(contents: Contents, json: bool) -> None:
    if json:
        print_json({"rounds": contents.rounds, "blocks": contents.blocks, "reports": contents.reports})
    else:
        from hdr4me.pages.text import pluralize

        print_note(f"copied {pluralize(contents.reports, 'report')} of {pluralize(contents.rounds, 'round')}")
