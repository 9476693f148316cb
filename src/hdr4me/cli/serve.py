"""hdr4me serve: a collector that accepts reports over HTTP."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli.options import File, Texts, check, named_options, needs_collector
from hdr4me.cli.output import print_note
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from hdr4me.collector.config import Settings
    from hdr4me.collector.stores.protocol import Store
    from hdr4me.survey import Survey


def serve(
    survey: Annotated[File, Argument(help="The survey: a round is opened unless one is open.")] = None,
    database: Annotated[
        str, Option(help="A file for SQLite, or postgresql://user@host/name.")
    ] = "collector.db",
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(help="The port to listen on; 0 for any free one.")] = 8000,
    workers: Annotated[int, Option(help="Processes; more than one needs PostgreSQL.")] = 1,
    origin: Annotated[
        Texts, Option(help="Pages that may send, such as https://example.org (repeat).")
    ] = None,
    token: Annotated[
        Texts,
        Option(
            metavar="<scope=token>",
            help="Allow a token: upload=…, read=… or admin=…; 'new' makes one (repeat). With an upload token, reports "
            "need a token.",
        ),
    ] = None,
    min_reports: Annotated[int, Option("--min-reports", help="No answer from fewer reports.")] = 100,
    retain: Annotated[int, Option(help="Days after closing until only a round's tally is kept.")] = 7,
    tolerance: Annotated[
        float | None, Option(help="Planned half-width of intervals for the dashboard, share of the range.")
    ] = None,
    rate: Annotated[float, Option(help="Reports a second for each upload token.")] = 100_000.0,
) -> None:
    """Collect reports over HTTP; an answered upload is on the disk.

    Put a reverse proxy with TLS in front before anybody outside this machine sends anything (docs/collector.md).

    Example: hdr4me serve survey.json --database collector.db --min-reports 1000
    """
    with needs_collector():
        import_module("hdr4me.collector.serve")
        from hdr4me.collector.config import Limits, Settings
    from hdr4me.survey import Survey

    check("--port", port, 0 <= port <= 65535, "an integer from 0 to 65535")
    check("--workers", workers, workers >= 1, "a positive integer")
    tokens = [_scope_and_token(text) for text in token or ()]
    with named_options():
        settings = Settings(
            database=database,
            min_reports=min_reports,
            origins=tuple(origin or ()),
            retain_days=retain,
            open_upload=not any(scope == "upload" for scope, _ in tokens),
            tolerance=tolerance,
            limits=Limits(rate=rate),
        )
    several = workers == 1 or settings.is_postgres
    check("--workers", workers, several, "1 with SQLite; several need --database postgresql://…")
    document = None if survey is None else Survey.load(survey)
    start(settings, document, tokens, host=host, port=port, workers=workers)


def start(
    settings: Settings,
    document: Survey | None,
    tokens: list[tuple[str, str]],
    *,
    host: str,
    port: int,
    workers: int = 1,
    page: str = "",
    prepare: Callable[[Store, int], object] | None = None,
) -> None:
    """Prepare the store, then serve until stopped."""
    from hdr4me.collector import open_store
    from hdr4me.collector.serve import bind, run, run_workers, with_secrets

    with closing(bind(host, port)) as sock:
        with closing(open_store(settings.database)) as store:
            opened = _open_round(store, document)
            _add_tokens(store, tokens)
            if opened is not None and prepare is not None:
                prepare(store, opened)
        settings = with_secrets(settings)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{sock.getsockname()[1]}"

        def started() -> None:
            print_note(f"collecting at {address}")
            if page:
                print_note(f"answer yourself: {address}{page}")
            print_note(f"dashboard (this link works once): {address}/#key={settings.link_key}")

        if workers > 1:
            run_workers(settings, sock, workers, started=started)
        else:
            run(settings, sock, started=started)


def _scope_and_token(text: str) -> tuple[str, str]:
    scope, _, token = text.partition("=")
    valid = scope in ("upload", "read", "admin") and token != "" and token.isascii()
    check("--token", repr(scope[:20]), valid, "upload=…, read=… or admin=… (or upload=new and so on)")
    return scope, token


def _open_round(store: Store, document: Survey | None) -> int | None:
    """Open a round of the survey unless one is open; its number."""
    from datetime import UTC, datetime

    rounds = store.rounds()
    if document is None:
        if not rounds:
            raise InvalidInput("the database has no round: give a survey's document")
        return None
    if any(round.state == "open" and round.fingerprint == document.fingerprint for round in rounds):
        return None
    opened = store.open_round(document, now=datetime.now(UTC)).number
    print_note(f"opened round {opened} of survey {document.fingerprint[:12]}")
    return opened


def _add_tokens(store: Store, tokens: list[tuple[str, str]]) -> None:
    from hdr4me.collector.access import digest, new_token

    known = {token.sha256 for token in store.tokens()}
    for scope, token in tokens:
        if token == "new":
            token = new_token()
            print_note(f"new {scope} token (it is shown only now): {token}")
        if digest(token) not in known:
            store.add_token(digest(token), scope, "command line")  # type: ignore[arg-type]
            known.add(digest(token))
