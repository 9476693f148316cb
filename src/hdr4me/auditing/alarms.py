"""Alarms: counts that no honest population gives, whatever its values are.

Four kinds are watched, each with a quarter of the false-alarm probability, shared out among its tests:

- *answers*: how often each question was answered is binomial with a known probability;
- *cells*: how often a counter (or a run of neighbouring cells of a table) was met lies between two binomial laws;
- *shape*: the cells of a table are no mixture of its rows (`misfit.py`); the entries of a report have a known sum;
- *copies*: how often one and the same report occurred.

Users may hold anything, and differ; they only answer independently. Looking again and again spends the probability:
the k-th look has 6/(π²k²) of it, so that all looks together stay within `level`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hdr4me.auditing.misfit import evidence
from hdr4me.errors import InvalidInput
from hdr4me.tally import Tally

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
_KINDS = 4
_MOST_RUNS = 64
"""Tables with more cells are watched by single cells and by runs from either end."""


@dataclass(frozen=True)
class Alarm:
    """One test that rang: its p-value is adjusted for all tests of all kinds and for the look."""

    kind: str
    dimension: str
    p_value: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Watch:
    """What one look at a tally gave."""

    alarms: tuple[Alarm, ...]
    level: float
    look: int
    n_reports: int
    n_tests: int

    def __str__(self) -> str:
        head = (
            f"{self.n_tests:,} tests on {self.n_reports:,} reports, look {self.look}: false alarms with "
            f"probability {self.level:g} at most over all looks."
        )
        found = [f"ALARM {alarm.sentence} (p = {alarm.p_value:.2g})" for alarm in self.alarms]
        return "\n".join([head, *(found or ["No alarm: an honest population can give these counts."])])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "alarms": [alarm.to_dict() for alarm in self.alarms]}


def watch(
    tally: Tally, *, level: float = 0.001, look: int = 1, copies: int | None = None, seed: int = 0
) -> Watch:
    """Look for counts that no honest population gives.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> tally = Tally(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0))
    >>> tally.counts[-1] = tally.n_reports = 1000  # all of them name the last cell
    >>> [alarm.kind for alarm in watch(tally).alarms]
    ['cells', 'shape']
    """
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidInput.of("level", level, "a probability between 0 and 1")
    if type(look) is not int or look < 1:
        raise InvalidInput.of("look", look, "a whole number from 1")
    spent = level * 6 / (math.pi * look) ** 2
    kinds = [
        list(_answers(tally)),
        list(_cells(tally)),
        list(_shape(tally, seed)),
        list(_copies(tally, copies)),
    ]
    found: list[Alarm] = []
    for tests in kinds:
        worst: dict[str, Alarm] = {}
        n_tests = sum(test.n for test in tests)
        for test in tests:
            # The p-value on the scale of `level`: times tests of its kind, kinds, and what other looks spend.
            adjusted = min(1.0, test.p * n_tests * _KINDS * level / spent)
            known = worst.get(test.dimension)
            if adjusted <= level and (known is None or adjusted < known.p_value):
                worst[test.dimension] = Alarm(test.kind, test.dimension, adjusted, test.sentence)
        found += worst.values()
    n_tests = sum(test.n for tests in kinds for test in tests)
    ordered = tuple(sorted(found, key=lambda alarm: alarm.p_value))
    return Watch(ordered, float(level), look, tally.n_reports, n_tests)


class Test(NamedTuple):
    """The least p-value of `n` tests of one kind at one question."""

    kind: str
    dimension: str
    p: float
    sentence: str
    n: int = 1


def _answers(tally: Tally) -> Iterator[Test]:
    survey, n = tally.survey, tally.n_reports
    if survey.n_sampled == len(survey.questions):
        return
    for q, r in enumerate(_n_answers(tally)):
        share = float(survey.inclusion(q))
        p = min(1.0, 2 * min(stats.binom.sf(r - 1, n, share), stats.binom.cdf(r, n, share)))
        name = _name(tally, q)
        yield Test(
            "answers", name, p, f"{name!r} was answered {r:,} times where {n * share:,.0f} are expected"
        )


def _cells(tally: Tally) -> Iterator[Test]:
    answers = _n_answers(tally)
    for q, question in enumerate(tally.survey.questions):
        response, r, name = question.channel.response, answers[q], _name(tally, q)
        bounds = response.bounds()
        if bounds is None or r == 0:
            continue
        counts = tally.layout.of_question(tally.counts, q)
        rows = response.table
        starts, stops = _runs(len(counts)) if rows is not None and len(counts) > 2 else _singles(len(counts))
        met = np.concatenate([[0], np.cumsum(counts)])
        met = met[stops] - met[starts]
        if rows is None:
            low, high = bounds
        else:
            sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
            both = sums[:, stops] - sums[:, starts]
            low, high = both.min(axis=0), both.max(axis=0)
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        above, below = np.asarray(stats.binom.sf(met - 1, r, high)), np.asarray(stats.binom.cdf(met, r, low))
        p = np.minimum(1.0, 2 * np.minimum(above, below))
        worst = int(p.argmin())
        limit = high[worst] if above[worst] < below[worst] else low[worst]
        which = "more" if above[worst] < below[worst] else "fewer"
        sentence = (
            f"{name!r}: {met[worst]:,} of {r:,} answers are in {_place(starts[worst], stops[worst])}, {which} "
            f"than any honest population gives ({limit * r:,.0f} on average at the limit)"
        )
        yield Test("cells", name, float(p[worst]), sentence, len(p))


def _shape(tally: Tally, seed: int) -> Iterator[Test]:
    answers = _n_answers(tally)
    for q, question in enumerate(tally.survey.questions):
        response, name, r = question.channel.response, _name(tally, q), answers[q]
        counts, rows = tally.layout.of_question(tally.counts, q), response.table
        if laws := response.field_laws:
            p = _sum_of_fields(laws, counts, r)
            yield Test("shape", name, p, f"{name!r}: its entries add up to what honest reports do not give")
        elif rows is not None and rows.shape[1] > 2:
            log = evidence(rows, counts, np.random.default_rng([seed, q]))
            p = math.exp(-max(0.0, log))
            yield Test(
                "shape",
                name,
                p,
                f"{name!r}: its cells are met as by no honest population, whatever its values",
            )


def _sum_of_fields(laws: Sequence[tuple[Floats, int]], counts: Counts, r: int) -> float:
    """The fields of a report have the same laws for every input, so the sum of all cells has a known law.

    The bound is Chernoff's, on either side: exp(−sup(λT − r·log M(λ))) for the sum T of cell numbers.
    """
    n_cells = len(laws[0][0])
    cells = np.arange(n_cells) / (n_cells - 1)
    total = float((counts.reshape(-1, n_cells) * cells).sum())

    def gap(x: float) -> float:
        tilt = np.exp(x * cells)
        return float(r * sum(times * np.log(law @ tilt) for law, times in laws) - x * total)

    best = optimize.minimize_scalar(gap, bounds=(-20.0, 20.0), method="bounded").fun
    return min(1.0, 2 * math.exp(min(0.0, float(best))))


def _copies(tally: Tally, copies: int | None) -> Iterator[Test]:
    """k given reports are all alike with probability at most p^(k−1), p the likeliest report's: a union over "
    "all k."""
    if copies is None or copies < 2:
        return
    survey, n = tally.survey, tally.n_reports
    likeliest = sorted((question.channel.response.likeliest() for question in survey.questions), reverse=True)
    log_p = sum(map(math.log, likeliest[: survey.n_sampled]))
    if survey.weighted:
        log_p += math.log(max(float(survey.inclusion(q)) for q in range(len(survey.questions))))
    else:
        log_p -= _log_choose(len(survey.questions), survey.n_sampled)
    log_bound = _log_choose(n, copies) + (copies - 1) * log_p
    yield Test(
        "copies", "", math.exp(min(0.0, log_bound)), f"one and the same report occurs {copies:,} times"
    )


def _log_choose(n: int, k: int) -> float:
    return float(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _n_answers(tally: Tally) -> list[int]:
    questions = tally.survey.questions
    sums = [int(tally.layout.of_question(tally.counts, q).sum()) for q in range(len(questions))]
    return [total // question.channel.per_report for total, question in zip(sums, questions, strict=True)]


def _name(tally: Tally, q: int) -> str:
    return " and ".join(tally.survey.schema.names[j] for j in tally.survey.questions[q].dimensions)


def _singles(n: int) -> tuple[Counts, Counts]:
    return np.arange(n), np.arange(1, n + 1)


def _runs(n: int) -> tuple[Counts, Counts]:
    """Runs of neighbouring cells: all, or single ones and those that begin or end at an end; never the whole."""
    if n <= _MOST_RUNS:
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if j - i < n]
    else:
        pairs = (
            [(i, i + 1) for i in range(n)] + [(0, j) for j in range(2, n)] + [(i, n) for i in range(1, n - 1)]
        )
    found = np.array(pairs, np.int64)
    return found[:, 0], found[:, 1]


def _place(start: int, stop: int) -> str:
    return f"cell {start}" if stop == start + 1 else f"cells {start} to {stop - 1}"
