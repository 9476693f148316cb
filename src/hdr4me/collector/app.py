"""The collector's routes beside the uploads (rounds, surveys, answers, administration)."""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from prometheus_client import generate_latest, registry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from hdr4me.accounting.poisoning import manipulation_bounds
from hdr4me.auditing.alarms import present_shares, watch
from hdr4me.collector.access import sender_of
from hdr4me.collector.answers import Asked, Snapshot, as_csv
from hdr4me.collector.errors import Refusal
from hdr4me.collector.export import write_parquet
from hdr4me.collector.forms import id_of
from hdr4me.collector.state import Collector
from hdr4me.collector.stores.protocol import Quarantine
from hdr4me.collector.upload import HEADERS, Upload, read_body
from hdr4me.errors import InvalidInput
from hdr4me.explanation import explain
from hdr4me.framework.prediction import Prediction
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.survey import Survey, Tolerance
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps

Endpoint = Callable[[Request], Awaitable[Response]]

_MOST_DOCUMENT = 8 << 20
_ASKED = ("confidence", "recalibrate", "without")


def build_app(collector: Collector) -> ASGIApp:
    """The application: uploads first, then all other routes, with the same headers on all answers."""
    routes = _Routes(collector)

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        await collector.start()
        yield
        await collector.stop()

    inner = Router(
        routes=[
            Route(path, routes.needing(path, scope, endpoint, parameters), methods=[method])
            for method, path, scope, endpoint, *parameters in (
                ("GET", "/healthz", "", routes.healthz),
                ("GET", "/readyz", "", routes.readyz),
                ("GET", "/metrics", "read", routes.metrics),
                ("GET", "/v1/rounds", "", routes.rounds),
                ("POST", "/v1/rounds", "admin", routes.open_round),
                ("POST", "/v1/rounds/{round}/close", "admin", routes.close_round),
                ("POST", "/v1/rounds/{round}/quarantine", "admin", routes.quarantine),
                ("GET", "/v1/rounds/{round}/status", "read", routes.status),
                ("GET", "/v1/rounds/{round}/estimate", "read", routes.estimate, *_ASKED),
                ("GET", "/v1/rounds/{round}/estimate.csv", "read", routes.estimate, *_ASKED),
                ("GET", "/v1/rounds/{round}/tally", "read", routes.tally, "without"),
                ("GET", "/v1/rounds/{round}/reports.parquet", "admin", routes.parquet),
                ("DELETE", "/v1/rounds/{round}/reports", "", routes.delete),
                ("POST", "/v1/rounds/{round}/reports", "", routes.no_round),
                ("GET", "/v1/series/{series}/estimate", "read", routes.series, "noise", *_ASKED),
                ("GET", "/v1/surveys/{fingerprint}", "", routes.survey),
                ("GET", "/v1/surveys/{fingerprint}/explanation", "", routes.explanation, "audience"),
                ("GET", "/v1/acts", "admin", routes.acts),
                ("POST", "/v1/session", "", routes.session),
                ("GET", "/", "", routes.page, "round"),
                ("GET", "/answer", "", routes.page, "round"),
                ("GET", "/static/{name:path}", "", routes.page),
                ("GET", "/client/{name}", "", routes.page),
            )
        ],
        redirect_slashes=False,
        lifespan=lifespan,
    )
    return Upload(collector, inner)


class _Routes:
    """One method for each route."""

    def __init__(self, collector: Collector) -> None:
        self._c = collector

    def needing(self, path: str, scope: str, endpoint: Endpoint, parameters: Sequence[str]) -> Endpoint:
        """The endpoint of a path that needs a token with a scope (empty: none) and may have parameters."""

        async def checked(request: Request) -> Response:
            request.scope["hdr4me.route"] = path
            if unknown := sorted(set(request.query_params) - set(parameters)):
                allowed = ", ".join(sorted(parameters)) or "none"
                raise Refusal(400, f"the parameter {unknown[0][:40]!r} is unknown; allowed here: {allowed}")
            if scope:
                request.state.who = self._c.access.require(
                    request.scope[HEADERS].get(b"authorization"), scope
                )
            return await endpoint(request)

        return checked

    def _number(self, request: Request) -> int:
        text = request.path_params["round"]
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise Refusal(404, "the number of a round is a positive integer")
        if int(text) not in self._c.forms:
            raise Refusal(404, f"there is no round {int(text)}")
        return int(text)

    async def _survey(self, request: Request) -> Survey:
        try:
            return await self._c.read(self._c.store.survey, request.path_params["fingerprint"])
        except InvalidInput:
            raise Refusal(404, "there is no survey of this fingerprint") from None

    async def _body(self, request: Request, most: int) -> bytes:
        sender, shares = sender_of(0, request.scope.get("client")), self._c.body_bytes
        body = await read_body(shares, sender, request.scope, request.receive, most)
        shares.give_back(sender, len(body))
        return body

    async def _document(self, request: Request) -> Any:
        try:
            return msgspec.json.decode(await self._body(request, 1 << 14))
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise Refusal(400, "the body is not JSON") from None

    async def healthz(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Whether reports are accepted."""
        if not self._c.ready or self._c.full:
            raise Refusal(503, "the store does not answer or its disk is nearly full", retry_after=2)
        await self._c.read(self._c.store.ping)
        jump = round(self._c.clock.jump)
        about = {"clock": f"the system's clock has jumped by {jump} seconds: set it right"} if jump else {}
        return _json({"status": "ready"} | about)

    async def metrics(self, request: Request) -> Response:
        text = await self._c.read(generate_latest, _Counts(self._c))
        return Response(text, media_type="text/plain; version=0.0.4")

    async def session(self, request: Request) -> Response:
        document = await self._document(request)
        key = document.get("key") if isinstance(document, dict) else None
        if not isinstance(key, str):
            raise Refusal(400, 'the body must be {"key": …}, the key of the dashboard\'s link')
        token = self._c.access.open_session(key)
        await self._c.read(self._c.store.record, "session opened", "the link of the dashboard")
        return _json({"token": token})

    async def acts(self, request: Request) -> Response:
        """The log of administrative acts."""
        return _json({"acts": [act._asdict() for act in await self._c.read(self._c.store.acts)]})

    async def rounds(self, request: Request) -> Response:
        """Every round; the number of reports is given to readers only."""
        grant = self._c.access.grant(request.scope[HEADERS].get(b"authorization"))
        found = []
        rounds = self._c.rounds if grant is None else await self._c.read(self._c.store.rounds)
        for round in rounds:
            row: dict[str, Any] = {
                "round": round.number,
                "survey": round.fingerprint,
                "series": round.series,
                "state": round.state,
            }
            if grant is not None and grant.allows("read"):
                row |= {"stored": round.stored, "opened": round.opened, "closed": round.closed}
            found.append(row)
        return _json({"rounds": found} | ({} if grant is None else {"scope": grant.scope}))

    async def survey(self, request: Request) -> Response:
        """A survey's document, which never changes."""
        found = await self._survey(request)
        tag = f'"{found.fingerprint}"'
        headers = {"etag": tag, "cache-control": "public, max-age=31536000, immutable"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        body = await self._c.read(document_of, found)
        return Response(body, media_type="application/json", headers=headers)

    async def explanation(self, request: Request) -> Response:
        audience = request.query_params.get("audience", "user")
        found = await self._c.read(explained, await self._survey(request), audience)
        return _json(found, cache="public, max-age=3600")

    async def open_round(self, request: Request) -> Response:
        survey = await self._c.parse(Survey.from_json, await self._body(request, _MOST_DOCUMENT))
        round = await self._c.change_round(self._c.store.open_round, survey, "opened", request.state.who)
        return _json({"round": round.number, "survey": round.fingerprint, "state": round.state}, 201)

    async def close_round(self, request: Request) -> Response:
        change, number = self._c.store.close_round, self._number(request)
        round = await self._c.change_round(change, number, "closed", request.state.who)
        return _json({"round": round.number, "state": round.state})

    async def quarantine(self, request: Request) -> Response:
        """Put an hour or a source into quarantine, or with "on": false release it."""
        number = self._number(request)
        given = await self._document(request)
        if not isinstance(given, dict) or not set(given) <= {"hour", "source", "on"}:
            raise Refusal(400, 'the body must be {"hour": …} or {"source": …}, and optionally "on": false')
        on = given.get("on", True)
        if not isinstance(on, bool):
            raise Refusal(400, '"on" must be true or false')
        chosen = Quarantine(given.get("hour"), given.get("source"))
        await self._c.read(self._c.store.set_quarantine, number, chosen, on=on)
        what = f"hour {chosen.hour}, source {chosen.source} {'quarantined' if on else 'released'}"
        await self._c.read(self._c.store.record, f"round {number}: {what}", str(request.state.who))
        return _json({"round": number, "quarantines": await self._c.read(self._c.store.quarantines, number)})

    async def no_round(self, request: Request) -> Response:
        """An upload to something that is not the number of a round."""
        raise Refusal(404, "the number of a round is a positive integer")

    async def delete(self, request: Request) -> Response:
        """Delete a report; its id is the permission, and is in the body so that no log of addresses contains it."""
        number, given = self._number(request), await self._document(request)
        text = given.get("id") if isinstance(given, dict) else None
        id = id_of(text.encode("utf-8", "replace")) if isinstance(text, str) else None
        if id is None:
            raise Refusal(400, 'the body must be {"id": "32 hexadecimal digits"}')
        if wait := self._c.deletions.take(sender_of(0, request.scope.get("client")), 1):
            raise Refusal(429, "too many deletions at once: try again later", retry_after=int(wait) + 1)
        if not await self._c.read(self._c.store.delete, number, id):
            raise Refusal(404, "there is no report of this id")
        return Response(status_code=204)

    async def status(self, request: Request) -> Response:
        return _json(await self._c.read(status_of, self._c, self._number(request)))

    async def estimate(self, request: Request) -> Response:
        number = self._number(request)
        found = await self._c.read(self._c.answers.document, number, _asked(request))
        damaged = self._c.damaged(number)
        if request.url.path.endswith(".csv"):
            headers = {"x-damaged-blocks": str(damaged)}
            return Response(as_csv(found), media_type="text/csv; charset=utf-8", headers=headers)
        if damaged:
            found = {**found, "damaged_blocks": damaged}
        return _json(found)

    async def series(self, request: Request) -> Response:
        noise = request.query_params.get("noise", "memoized")
        if noise not in ("memoized", "fresh"):
            raise InvalidInput.of("noise", noise, "memoized or fresh")
        asked, series = _asked(request), request.path_params["series"]
        memoized = noise == "memoized"
        return _json(await self._c.read(self._c.answers.series, series, asked, memoized=memoized))

    async def tally(self, request: Request) -> Response:
        number = self._number(request)
        tally = await self._c.read(self._c.answers.tally, number, without_quarantine=_without(request))
        headers = _attachment(f"round-{number}.tally", "octet-stream")
        return Response(dumps(tally), headers={**headers, "x-damaged-blocks": str(self._c.damaged(number))})

    async def parquet(self, request: Request) -> Response:
        """Every stored report with its id, as one Parquet file that is made while it is sent."""
        number = self._number(request)
        round = await self._c.read(self._c.store.round, number)
        if round.state == "finalized":
            raise Refusal(410, f"round {number} is finalized: only its tally is kept")
        headers = _attachment(f"round-{number}.parquet", "vnd.apache.parquet")
        await self._c.read(self._c.store.record, f"round {number} exported", str(request.state.who))
        return StreamingResponse(self._parquet_pieces(number), headers=headers)

    async def _parquet_pieces(self, number: int) -> AsyncIterator[bytes]:
        """The pieces of the export, each made in a thread after the one before was sent."""
        pieces = write_parquet(self._c.store, number, self._c.forms[number].survey)
        end = object()
        try:
            while (piece := await self._c.read(next, pieces, end)) is not end:
                assert isinstance(piece, bytes)
                if piece:
                    yield piece
        finally:
            if not asyncio.get_running_loop().is_closed():
                await self._c.read(pieces.close)

    async def page(self, request: Request) -> Response:
        file = _files().get(request.url.path)
        if file is None:
            raise Refusal(404, "there is no such address")
        kind = f"text/{_KINDS[file.suffix.lower()]}; charset=utf-8"
        return Response(file.read_bytes(), headers={"content-type": kind, **_OF_PAGES})


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _json(value: Any, status: int = 200, cache: str = "no-store") -> Response:
    body = msgspec.json.encode(value, enc_hook=_plain)
    return Response(body, status, media_type="application/json", headers={"cache-control": cache})


def _attachment(name: str, kind: str) -> dict[str, str]:
    shown = f'attachment; filename="{name}"'
    return {"cache-control": "no-store", "content-disposition": shown, "content-type": f"application/{kind}"}


def _without(request: Request) -> bool:
    given = request.query_params.get("without")
    if given not in (None, "quarantine"):
        raise InvalidInput.of("without", given, "quarantine, or left out")
    return given is not None


def _asked(request: Request) -> Asked:
    text = request.query_params.get("confidence", "0.95")
    try:
        confidence = float(text)
    except ValueError:
        confidence = math.nan
    if not 0 < confidence < 1:
        raise InvalidInput.of("confidence", text[:40], "a number between 0 and 1")
    method = request.query_params.get("recalibrate")
    return Asked(None if method in (None, "", "raw") else method, confidence, _without(request))


def status_of(collector: Collector, number: int) -> dict[str, Any]:
    """The status of a round: arrivals, rejections, progress, manipulation bounds and alarms. Called in a thread."""
    store, settings = collector.store, collector.settings
    round = store.round(number)
    survey = store.survey(round.fingerprint)
    by_hour, by_source = Counter[int](), Counter[int]()
    for hour, source, stored in store.arrivals(number):
        by_hour[hour] += stored
        by_source[source] += stored
    try:
        held: Snapshot | None = collector.answers.snapshot(number)
    except Refusal:
        held = None
    tally = None if held is None else held.every
    present = None if tally is None else present_shares(tally)
    bounds = manipulation_bounds(survey, present, observed=tally is not None)
    return {
        "round": number,
        "survey": round.fingerprint,
        "series": round.series,
        "state": round.state,
        "opened": round.opened,
        "closed": round.closed,
        "stored": round.stored,
        "min_reports": settings.min_reports,
        "shown_at": None if tally is None else tally.n_reports,
        "by_hour": sorted(by_hour.items()),
        "by_source": sorted(by_source.items()),
        "rejected": store.rejections(number),
        "plan": _plan(tally, survey, settings.tolerance),
        "manipulation_bounds": [one.to_dict() for one in bounds],
        **({"alarms": []} if held is None else _alarms(held)),
        "quarantines": store.quarantines(number),
        "damaged_blocks": collector.damaged(number),
    }


def _plan(tally: Tally | None, survey: Survey, given: float | None) -> dict[str, Any]:
    """The planned tolerance, the one that is kept now, and the reports that are needed, by the rule of `hd.plan`.

    Tolerances are on the scale [−1, 1], frequencies on [0, 1]. Without a plan, `half_width` is that of each estimate.
    """
    planned = survey.tolerance if given is None else Tolerance.of(given, survey.schema)
    scaled = {} if planned is None else planned.scaled(survey.schema)
    least = min(scaled.values(), default=None)
    if tally is None:
        return {"tolerance": least, "half_width": None, "reports_needed": None}
    answer = tally.estimate()
    rows = [i for i, name in enumerate(answer.dimensions) if planned is None or name in scaled]
    errors = answer.scaled_error[rows] / np.array([scaled.get(answer.dimensions[i], 1.0) for i in rows])
    if not np.isfinite(errors).all():  # a planned row has too few answers
        return {"tolerance": least, "half_width": None, "reports_needed": None}
    law = Prediction(np.zeros_like(errors), errors**2, np.ones(errors.shape, np.int64))
    probability = 0.95 if planned is None else planned.probability
    kept = law.tolerance(probability, jointly=bool(planned and planned.jointly))
    needed = None if planned is None else math.ceil(tally.n_reports * kept**2)
    return {"tolerance": least, "half_width": kept * (least or 1.0), "reports_needed": needed}


def _alarms(held: Snapshot) -> dict[str, Any]:
    """Counts that are not plausible for a population of users; the error probability is spent over all snapshots."""
    if "alarms" in held.documents:
        return held.documents["alarms"]
    found = watch(held.every, audits_before=held.number - 1)
    held.documents["alarms"] = {
        "alarms": [{"name": a.kind, **a.to_dict()} for a in found.alarms],
        "audits_before": found.audits_before,
        "false_alarm_rate": found.false_alarm_rate,
        "alarm_tests": found.n_tests,
    }
    return held.documents["alarms"]


@dataclass(eq=False)
class _Counts(registry.Collector):
    """Reads the store at every scrape, so that the counts survive a restart and include all workers."""

    _collector: Collector

    def collect(self) -> Iterator[Metric]:
        collector, store, writer = self._collector, self._collector.store, self._collector.writer
        rounds, rejected = store.rounds(), Counter[tuple[int, str]]()
        for round in rounds:
            for one in store.rejections(round.number):
                rejected[round.number, one.reason] += one.count
        shown = [(r.number, held) for r in rounds if (held := collector.answers.shown(r.number)) is not None]
        alarms = [(number, len(_alarms(held)["alarms"])) for number, held in shown]
        gauge, counter = partial(_metric, GaugeMetricFamily), partial(_metric, CounterMetricFamily)
        stored, refused = [(r.number, r.state, r.stored) for r in rounds], sorted(rejected.items())
        yield gauge("reports_stored", "Reports stored", "round state", *stored)
        yield counter(
            "uploads_rejected", "Uploads that were rejected", "round reason", *((*k, n) for k, n in refused)
        )
        yield gauge("alarms", "Alarms at the last snapshot", "round", *alarms)
        yield gauge("clock_jump_seconds", "Jump of the system's clock", "", (collector.clock.jump,))
        yield collector.requests.metric()
        yield gauge("damaged_blocks", "Damaged blocks found", "", (len(store.damage()),))
        if (free := store.free_space()) is not None:
            yield gauge("free_bytes", "Free space for the store", "", (free,))
        me = os.getpid()
        yield gauge("reports_waiting", "Reports that wait to be written", "worker", (me, writer.waiting.held))
        yield gauge(
            "bytes_waiting", "Bytes that wait to be written", "worker", (me, writer.waiting_bytes.held)
        )
        yield gauge(
            "body_bytes", "Bytes of requests that are being read", "worker", (me, collector.body_bytes.held)
        )
        yield counter("commits", "Transactions written by this worker", "worker", (me, writer.commits))
        yield counter("commit_seconds", "Seconds spent in them", "worker", (me, writer.commit_seconds))


def _metric(family: Callable[..., Any], name: str, text: str, labels: str, *rows: tuple[Any, ...]) -> Any:
    """A metric with rows of the values of its labels, each followed by the number."""
    metric = family(f"hdr4me_{name}", text, labels=labels.split())
    for *values, number in rows:
        metric.add_metric([str(value) for value in values], number)
    return metric


# The content security policy of the pages: nothing from other origins, no inline script or style.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_OF_PAGES = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cache-control": "no-cache",
}

PAGES = Path(__file__).with_name("pages")
CLIENT = "hdr4me.js"
_KINDS = {".html": "html", ".js": "javascript", ".css": "css", ".txt": "plain"}


@lru_cache(maxsize=1)
def _files() -> dict[str, Path]:
    """The file of each path, so that no name in a request becomes a path.

    The browser client is packed with the pages, or in the checkout.
    """
    found = {
        f"/static/{file.relative_to(PAGES).as_posix()}": file
        for file in sorted(PAGES.rglob("*"))
        if file.suffix.lower() in _KINDS
    }
    found |= {"/": PAGES / "dashboard.html", "/answer": PAGES / "answer.html"}
    for folder in (Path(__file__).parents[3] / "clients" / "javascript", PAGES / "client"):
        if (folder / CLIENT).is_file():
            found[f"/client/{CLIENT}"] = folder / CLIENT
    return found


@lru_cache(maxsize=16)
def document_of(survey: Survey) -> bytes:
    """The JSON of a survey; that of 100,000 categories takes a quarter of a second."""
    return survey.to_json().encode()


@lru_cache(maxsize=16)
def explained(survey: Survey, audience: str = "user") -> dict[str, Any]:
    """The explanation of a survey for an audience of `hdr4me.explain`: a title, a lead and blocks of plain text."""
    page = explain(survey, audience)
    return {"title": page.title, "lead": page.lead, "blocks": [_block(block) for block in page.blocks]}


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"heading": block.text, "level": block.level}
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, Table):
        return {"columns": list(block.columns), "rows": [[_cell(item) for item in row] for row in block.rows]}
    return {"text": block.caption}


def _cell(item: object) -> str:
    return "–" if item is None else f"{item:.6g}" if isinstance(item, float) else str(item)
