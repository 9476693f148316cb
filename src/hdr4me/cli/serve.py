"""hdr4me serve: a collector that takes reports over HTTP."""

from __future__ import annotations

from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdr4me.cli.extra import needs_collector
from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_note
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from hdr4me.collector.config import Settings
    from hdr4me.collector.stores.protocol import Store
    from hdr4me.survey import Survey

_SCOPES = ("upload", "read", "admin")
_NAMED = {
    "min_reports": "--min-reports",
    "origins": "--origin",
    "retain_days": "--retain",
    "tolerance": "--tolerance",
    "rate": "--rate",
    "workers": "--workers",
}


def serve(
    survey: Annotated[
        Path | None, typer.Argument(help="The survey's document: a round of it is opened unless one is open.")
    ] = None,
    database: Annotated[
        str, typer.Option(help="A file for SQLite, or postgresql://user@host/name.")
    ] = "collector.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.")] = 8000,
    workers: Annotated[int, typer.Option(help="Processes; more than one needs PostgreSQL.")] = 1,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="An origin whose pages may send reports, such as https://example.org (repeat)."),
    ] = None,
    token: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<scope=token>",
            help="Allow a token: upload=…, read=… or admin=…; 'new' for the token makes one (repeat). With an upload "
            "token, reports are taken with a token only.",
        ),
    ] = None,
    min_reports: Annotated[
        int, typer.Option("--min-reports", help="No answer from fewer valid reports.")
    ] = 100,
    retain: Annotated[
        int, typer.Option(help="Days after closing until only the tally of a round is kept.")
    ] = 7,
    tolerance: Annotated[
        float | None,
        typer.Option(help="The planned half-width of intervals, as a share of the range, for the dashboard."),
    ] = None,
    rate: Annotated[float, typer.Option(help="Reports a second for each upload token.")] = 100_000.0,
) -> None:
    """Collect reports over HTTP; an answered upload is on the disk.

    Put a reverse proxy with TLS in front before anybody outside this machine sends anything (docs/collector.md).

    Example: hdr4me serve survey.json --database collector.db --min-reports 1000
    """
    with needs_collector():
        import_module("hdr4me.collector.serve")
        from hdr4me.collector.config import Limits, Settings
    from hdr4me.survey import Survey

    if not 0 <= port <= 65535:
        raise InvalidInput(f"--port {port} is not allowed: a whole number from 0 to 65535")
    if workers < 1:
        raise InvalidInput(f"--workers {workers} is not allowed: a whole number from 1")
    given = [_scope_and_token(text) for text in token or ()]
    with named_options(_NAMED):
        settings = Settings(
            database=database,
            min_reports=min_reports,
            origins=tuple(origin or ()),
            retain_days=retain,
            open_upload=not any(scope == "upload" for scope, _ in given),
            tolerance=tolerance,
            limits=Limits(rate=rate),
        )
        if workers > 1 and not settings.is_postgres:
            raise InvalidInput.of("workers", workers, "1 with SQLite; several need --database postgresql://…")
    document = None if survey is None else Survey.load(survey)
    start(settings, document, given, host=host, port=port, workers=workers)


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
    """Prepare the store, then serve until told to stop."""
    from hdr4me.collector import open_store
    from hdr4me.collector.serve import bind, run, run_workers, with_secrets

    with closing(bind(host, port)) as sock:
        with closing(open_store(settings.database)) as store:
            opened = _prepare(store, document, tokens)
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
    scope, equals, token = text.partition("=")
    if scope not in _SCOPES or not equals or not token or not token.isascii():
        raise InvalidInput(
            f"--token {scope[:20]!r} is not allowed: upload=…, read=… or admin=… (or upload=new and so on)"
        )
    return scope, token


def _prepare(store: Store, document: Survey | None, given: list[tuple[str, str]]) -> int | None:
    """Open a round of the survey unless one is open, and remember tokens; the number of the opened round."""
    from datetime import UTC, datetime

    from hdr4me.collector.access import digest, new_token

    rounds, opened = store.rounds(), None
    if document is not None and not any(
        round.state == "open" and round.fingerprint == document.fingerprint for round in rounds
    ):
        round = store.open_round(document, now=datetime.now(UTC))
        opened = round.number
        print_note(f"opened round {opened} of survey {document.fingerprint[:12]}")
    if document is None and not rounds:
        raise InvalidInput("the database has no round: give a survey's document")
    known = {token.sha256 for token in store.tokens()}
    for scope, token in given:
        if token == "new":
            token = new_token()
            print_note(f"new {scope} token (it is shown only now): {token}")
        if digest(token) not in known:
            store.add_token(digest(token), scope, "command line")  # type: ignore[arg-type]
            known.add(digest(token))
    return opened
