"""What the dashboard shows of a round: how many reports when, what was rejected, progress, harm and alarms."""

from __future__ import annotations

from typing import Any

import numpy as np

from hdr4me.accounting.harm import harm
from hdr4me.auditing.alarms import watch
from hdr4me.collector.refusals import Refusal
from hdr4me.collector.shelf import Snapshot
from hdr4me.collector.state import Collector
from hdr4me.statistics.intervals import quantile
from hdr4me.tally import Tally

__all__ = ["status_of"]


def status_of(collector: Collector, number: int) -> dict[str, Any]:
    """The status of a round; called in a thread."""
    store, settings = collector.store, collector.settings
    round = store.round(number)
    survey = store.survey(round.fingerprint)
    by_hour: dict[int, int] = {}
    by_source: dict[int, int] = {}
    for hour, source, stored in store.arrivals(number):
        by_hour[hour] = by_hour.get(hour, 0) + stored
        by_source[source] = by_source.get(source, 0) + stored
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
        "rejected": [
            {"reason": rejection.reason, "hour": rejection.hour, "count": rejection.count}
            for rejection in store.rejections(number)
        ],
        "plan": _plan(tally, settings.tolerance),
        "harm": [one.to_dict() for one in harm(survey)],
        **({"alarms": []} if held is None else _alarms(held)),
        "quarantines": store.quarantines(number),
        "damaged_blocks": len([damage for damage in store.damage() if damage.round in (None, number)]),
    }


def _plan(tally: Tally | None, tolerance: float | None) -> dict[str, Any]:
    """How wide the widest 95 % interval is, as a share of its range, beside the planned tolerance."""
    if tally is None:
        return {"tolerance": tolerance, "half_width": None, "reports_needed": None}
    answer = tally.estimate()
    share = np.where(
        np.array(answer.statistics) == "mean", answer.scaled_error / 2, answer.scaled_error
    )  # a mean's scale is [-1, 1], a frequency's [0, 1]
    reach = quantile(0.95, answer.n_answers) * share
    widest = float(np.max(reach[np.isfinite(reach)], initial=0.0))
    needed = None
    if tolerance is not None and widest > 0:
        needed = int(np.ceil(tally.n_reports * (widest / tolerance) ** 2))
    return {"tolerance": tolerance, "half_width": widest, "reports_needed": needed}


def _alarms(held: Snapshot) -> dict[str, Any]:
    """Counts that no honest population gives, in the shown tally; its error is spent over all that were shown."""
    found = watch(held.every, look=held.look)
    return {
        "alarms": [{"name": a.kind, "level": found.level, **a.to_dict()} for a in found.alarms],
        "look": found.look,
        "alarm_level": found.level,
        "alarm_tests": found.n_tests,
    }
