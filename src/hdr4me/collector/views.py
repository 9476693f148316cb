"""What the collector shows: the status of a round, metrics, explanations, and the files of the pages."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import generate_latest, registry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.responses import Response

from hdr4me.accounting.harm import harm
from hdr4me.auditing.alarms import watch
from hdr4me.collector.answers import Snapshot
from hdr4me.collector.errors import Refusal
from hdr4me.collector.state import Collector
from hdr4me.explanation import explain
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.statistics.intervals import quantile
from hdr4me.survey import Survey
from hdr4me.tally import Tally


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
        "plan": _plan(tally, settings.tolerance),
        "harm": [one.to_dict() for one in harm(survey)],
        **_alarms(held),
        "quarantines": store.quarantines(number),
        "damaged_blocks": len([damage for damage in store.damage() if damage.round in (None, number)]),
    }


def _plan(tally: Tally | None, tolerance: float | None) -> dict[str, Any]:
    """The half-width of the widest 95 % interval as a share of its range, and the planned tolerance."""
    if tally is None:
        return {"tolerance": tolerance, "half_width": None, "reports_needed": None}
    answer = tally.estimate()
    # The scale of a mean is [-1, 1], of a frequency [0, 1].
    share = answer.scaled_error / np.where(np.array(answer.statistics) == "mean", 2, 1)
    reach = quantile(0.95, answer.n_answers) * share
    widest = float(np.max(reach[np.isfinite(reach)], initial=0.0))
    needed = None
    if tolerance is not None and widest > 0:
        needed = int(np.ceil(tally.n_reports * (widest / tolerance) ** 2))
    return {"tolerance": tolerance, "half_width": widest, "reports_needed": needed}


def _alarms(held: Snapshot | None) -> dict[str, Any]:
    """Counts that no honest population produces; the error probability is spent over all snapshots."""
    if held is None:
        return {"alarms": []}
    found = watch(held.every, look=held.look)
    return {
        "alarms": [{"name": a.kind, "level": found.level, **a.to_dict()} for a in found.alarms],
        "look": found.look,
        "alarm_level": found.level,
        "alarm_tests": found.n_tests,
    }


@dataclass(eq=False)
class _Counts(registry.Collector):
    """Reads the store at every scrape, so the counts are right after a restart and with many workers."""

    _collector: Collector

    def collect(self) -> Iterator[Metric]:
        store, writer = self._collector.store, self._collector.writer
        stored = GaugeMetricFamily("hdr4me_reports_stored", "Reports stored", labels=["round", "state"])
        rejected = CounterMetricFamily(
            "hdr4me_uploads_rejected", "Uploads that were no reports", labels=["round", "reason"]
        )
        for round in store.rounds():
            stored.add_metric([str(round.number), round.state], round.stored)
            reasons = Counter[str]()
            for rejection in store.rejections(round.number):
                reasons[rejection.reason] += rejection.count
            for reason, count in sorted(reasons.items()):
                rejected.add_metric([str(round.number), reason], count)
        yield stored
        yield rejected
        yield GaugeMetricFamily("hdr4me_damaged_blocks", "Damaged blocks found", value=len(store.damage()))
        free = store.free_space()
        if free is not None:
            yield GaugeMetricFamily("hdr4me_free_bytes", "Free space for the store", value=free)
        worker = [str(os.getpid())]
        held = self._collector.body_bytes
        for family, name, text, value in (
            (GaugeMetricFamily, "hdr4me_reports_waiting", "Reports that wait to be written", writer.waiting),
            (GaugeMetricFamily, "hdr4me_body_bytes", "Bytes of requests that are being read", held),
            (CounterMetricFamily, "hdr4me_commits", "Transactions written by this worker", writer.commits),
            (CounterMetricFamily, "hdr4me_commit_seconds", "Seconds spent in them", writer.commit_seconds),
        ):
            metric = family(name, text, labels=["worker"])
            metric.add_metric(worker, value)
            yield metric


def exposition(collector: Collector) -> bytes:
    """The metrics as text; called in a thread."""
    return generate_latest(_Counts(collector))


# The content security policy of the pages: nothing from other origins, no inline script or style.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

PAGES = Path(__file__).with_name("pages")
CLIENT = "hdr4me.js"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}


def page_response(path: str) -> Response:
    """The file of a path; a table of names is made once, so that no name of a request ever becomes a path."""
    file = _files().get(path)
    if file is None:
        raise Refusal(404, "there is nothing here")
    kind = _KINDS[file.suffix.lower()]
    headers = {"content-type": kind, "content-security-policy": PAGE_POLICY, "cache-control": "no-cache"}
    return Response(file.read_bytes(), media_type=None, headers=headers)


@lru_cache(maxsize=1)
def _files() -> dict[str, Path]:
    """The file of each path; the browser client is packed with the pages, or in the checkout."""
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
def explained(survey: Survey, audience: str = "user") -> dict[str, Any]:
    """The explanation of a survey for an audience of `hdr4me.explain`: a title, a lead and blocks of plain text."""
    page = explain(survey, audience)
    return {"title": page.title, "lead": page.lead, "blocks": [_plain(block) for block in page.blocks]}


def _plain(block: Block) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"heading": block.text, "level": block.level}
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, Table):
        return {"columns": list(block.columns), "rows": [[_cell(item) for item in row] for row in block.rows]}
    return {"text": block.caption}


def _cell(item: object) -> str:
    return "–" if item is None else f"{item:.6g}" if isinstance(item, float) else str(item)
