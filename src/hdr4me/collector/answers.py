"""Answers from a snapshot that is renewed in steps, so that no reader observes the arrival of one report."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hdr4me.accounting.rounds import ROW_BUDGET, UNDECLARED, average, declared_budget, stale_note
from hdr4me.atomic import write_bytes
from hdr4me.collector.errors import Refusal
from hdr4me.collector.stores.protocol import Quarantine, Round, Store
from hdr4me.errors import HDR4MEError
from hdr4me.io.quality import read_quality
from hdr4me.pages.answer import as_csv as rows_as_csv
from hdr4me.pages.html import FIELDS, provenance
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.rounds import stale_slack
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps, loads

COLUMNS = ("dimension", "category", "estimate", "standard_error", "lower", "upper", "answers", "status")
_KEPT = 64


@dataclass(frozen=True)
class Asked:
    """The parameters of a query: re-calibration method (None: raw), confidence level, whether to omit quarantine."""

    recalibrate: str | None = None
    confidence: float = 0.95
    without_quarantine: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The tallies of a round at one moment, and the answers that were made from them."""

    stored: int
    state: str
    left_out: tuple[Quarantine, ...]
    number: int  # the number of the snapshot, from 1: alarms spend their error probability over all of them
    every: Tally
    clean: Tally  # of the reports outside quarantine
    documents: dict[Asked | str, dict[str, Any]] = field(default_factory=dict)  # by query; "alarms"

    def save(self, path: Path, store: str) -> None:
        """Write the snapshot of a store to a file, which replaces the one before; a failure leaves no file."""
        every, clean = dumps(self.every), dumps(self.clean)
        left_out = [[quarantine.hour, quarantine.source] for quarantine in self.left_out]
        head = {"stored": self.stored, "state": self.state, "left_out": left_out, "number": self.number}
        head |= {"every": len(every), "store": store}
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_bytes(path, json.dumps(head).encode() + b"\n" + every + clean, mode=0o600)

    @classmethod
    def load(cls, path: Path, survey: Survey, store: str) -> Snapshot | None:
        """The snapshot in a file, after its checksums were verified; None if it is unreadable or of another store."""
        try:
            first, _, rest = path.read_bytes().partition(b"\n")
            head = json.loads(first)
            if head["store"] != store:
                return None
            every, clean = loads(rest[: head["every"]], survey), loads(rest[head["every"] :], survey)
            left_out = tuple(Quarantine(hour, source) for hour, source in head["left_out"])
            return cls(int(head["stored"]), str(head["state"]), left_out, int(head["number"]), every, clean)
        except (OSError, ValueError, KeyError, TypeError, HDR4MEError):
            return None


def next_step(shown: int, min_reports: int) -> int:
    """The number of reports at which an answer from `shown` reports is renewed: 5 % and at least `min_reports` more."""
    return shown + max(min_reports, shown // 20)


def step_count(stored: int, min_reports: int) -> int:
    """The number of steps up to `stored` reports, at least 1."""
    n, shown = 0, 0
    while (shown := next_step(shown, min_reports)) <= stored:
        n += 1
    return max(n, 1)


class Answers:
    """Answers about rounds with at least `min_reports` reports; the methods are called in threads.

    All queries, workers and restarts share the snapshots in `folder`. Otherwise each of them would show a different
    moment, and the difference could be one report. The rows have the notes of the data-quality reports in `quality`.
    """

    def __init__(
        self, store: Store, min_reports: int, folder: Path | None = None, quality: Sequence[str] = ()
    ) -> None:
        self._store, self._least, self._quality = store, min_reports, quality
        self._folder = folder
        self._snapshots: dict[int, Snapshot] = {}
        self._lock = threading.Lock()

    def snapshot(self, number: int) -> Snapshot:
        """The tallies that are shown for a round; refused below `min_reports` valid reports."""
        with self._lock:
            round, held = self._store.round(number), self._snapshots.get(number)
            left_out = self._store.quarantines(number)
            if held is None or self._is_old(held, round, left_out):
                held = self._renewed(held, round, left_out)
        self._enough(held.every)
        return held

    def shown(self, number: int) -> Snapshot | None:
        """The snapshot that is shown of a round, if there is one in memory."""
        return self._snapshots.get(number)

    def _enough(self, tally: Tally | None) -> Tally:
        if tally is None or tally.n_reports < self._least:
            raise Refusal(409, f"no answer is given from fewer than {self._least} reports")
        return tally

    def _is_old(self, held: Snapshot, round: Round, left_out: list[Quarantine]) -> bool:
        step = next_step(held.stored, self._least) - held.stored
        moved = abs(round.stored - held.stored) >= step
        return moved or round.state != held.state or left_out != list(held.left_out)

    def _renewed(self, held: Snapshot | None, round: Round, left_out: list[Quarantine]) -> Snapshot:
        """The snapshot that another worker or a previous run shows, or a new one if that is old."""
        path = None if self._folder is None else self._folder / f"round-{round.number}.shown"
        if path is not None:
            kept = Snapshot.load(path, self._store.survey(round.fingerprint), self._store.id)
            held = kept or held
            if kept is not None and not self._is_old(kept, round, left_out):
                self._snapshots[round.number] = kept
                return kept
        every = self._store.tally(round.number)
        clean = self._store.tally(round.number, without=left_out) if left_out else every
        number = step_count(round.stored, self._least) if held is None else held.number + 1
        taken = Snapshot(round.stored, round.state, tuple(left_out), number, every, clean)
        if every.n_reports >= self._least:
            self._snapshots[round.number] = taken
            if path is not None:
                taken.save(path, self._store.id)
        return taken

    def tally(self, number: int, *, without_quarantine: bool = False) -> Tally:
        """The tally that is shown."""
        held = self.snapshot(number)
        return self._enough(held.clean if without_quarantine else held.every)

    def document(self, number: int, asked: Asked) -> dict[str, Any]:
        """The answers of a round, as `hdr4me estimate --json` prints them."""
        held = self.snapshot(number)
        tally = self._enough(held.clean if asked.without_quarantine else held.every)
        found = held.documents.get(asked)
        if found is None:
            series = [round.number for round in self._store.rounds() if round.series == tally.survey.series]
            place, declared = series.index(number) + 1, declared_budget(tally.survey) is not None
            found = estimated(self._of_round(tally, place if declared else 1), asked)
            if place > 1 and not declared:
                found["advice"].append(UNDECLARED)
            if len(held.documents) >= _KEPT:
                held.documents.clear()
            held.documents[asked] = found
        return found

    def series(self, series: str, asked: Asked, *, memoized: bool) -> dict[str, Any]:
        """The rounds of a series together: rounds with fresh noise are summed, memoized responses are averaged."""
        rounds = [round for round in self._store.rounds() if round.series == series]
        if not rounds:
            raise Refusal(404, "there is no round of this series")
        tallies, left_out = [], []
        for round in rounds:
            try:
                tallies.append(self.tally(round.number, without_quarantine=asked.without_quarantine))
            except Refusal:
                left_out.append(round.number)
        self._enough(tallies[0] if tallies else None)
        numbers = [round.number for round in rounds if round.number not in left_out]
        places = [k for k, round in enumerate(rounds, start=1) if round.number in numbers]
        if not memoized or len(tallies) == 1:
            found = estimated(self._of_round(together(tallies), places[0] if memoized else 1), asked)
        elif asked.recalibrate is not None:
            raise Refusal(
                400,
                "averages of memoized responses are not re-calibrated: ask for one round, or for noise=fresh",
            )
        else:
            tallies = [
                self._of_round(tally, 1) for tally in tallies
            ]  # `stale_slack` allows for stale responses
            found = estimated(tallies[0], asked) | _averaged(tallies, places, asked.confidence)
        return {**found, "series": series, "rounds": numbers, "too_few_reports": left_out}

    def _of_round(self, tally: Tally, number: int) -> Tally:
        """The tally with its number in the series and data quality; threads share snapshots, which do not change."""
        found = copy(tally)
        found.round_number = number
        found.data_quality = read_quality(self._quality, tally.survey)
        return found


def estimated(tally: Tally, asked: Asked) -> dict[str, Any]:
    """The document of one tally, raw or re-calibrated."""
    found, advice = tally.estimate(), []
    if asked.recalibrate is not None:
        better = found.recalibrate(asked.recalibrate)
        rows, advice = better.table(confidence=asked.confidence), list(better.advice)
    else:
        rows = found.table(asked.confidence)
    about = {"reports": tally.n_reports, "rejected": tally.rejected, "simultaneous": False}
    made = provenance(tally.survey.fingerprint, tally.survey.epsilon, asked.confidence)
    return {**made, **about, "advice": advice, "rows": rows}


def together(tallies: Sequence[Tally]) -> Tally:
    """The sum of tallies of one series, whose surveys differ only in their names."""
    total = Tally(tallies[0].survey)
    for tally in tallies:
        total.counts += tally.counts
        total.n_reports += tally.n_reports
    return total


def _averaged(tallies: Sequence[Tally], numbers: Sequence[int], confidence: float) -> dict[str, Any]:
    """The fields of the document for the average of the rounds with these numbers, with memoized responses."""
    answers = [tally.estimate() for tally in tallies]
    values, errors = [answer.value for answer in answers], [answer.standard_error for answer in answers]
    row_budget = tallies[0].survey.row_budget or ROW_BUDGET
    stale = stale_slack(answers, row_budget, numbers)
    found = average(values, errors, memoized=True, stale=stale)
    fewest = np.min([answer.n_answers for answer in answers], axis=0)
    reach = quantile(confidence, fewest) * found.standard_error + found.slack
    rows = answers[0].table(confidence)
    for i, row in enumerate(rows):
        row |= {
            "estimate": float(found.estimate[i]),
            "standard_error": float(found.standard_error[i]),
            "lower": float(found.estimate[i] - reach[i]),
            "upper": float(found.estimate[i] + reach[i]),
            "answers": int(sum(answer.n_answers[i] for answer in answers)),
        }
    advice = [
        "The average of rounds with memoized responses; its standard errors are valid even if the noise repeats.",
        *([stale_note(row_budget)] if stale.any() else []),
    ]
    n = sum(tally.n_reports for tally in tallies)
    return {"reports": n, "rejected": {}, "advice": advice, "rows": rows}


def as_csv(document: dict[str, Any]) -> str:
    """The rows of an answer as `hdr4me estimate --output FILE.csv` writes them."""
    rows = document["rows"]
    several = not {row["statistic"] for row in rows} <= {"mean", "frequency"}
    noted = ("note",) * any(row.get("note") for row in rows)
    columns = ("dimension", "statistic", *COLUMNS[1:]) if several else COLUMNS
    return rows_as_csv(rows, (*columns, *noted), {field: document[field] for field in FIELDS})
