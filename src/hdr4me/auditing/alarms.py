"""Alarms: tests for counts that users who follow the protocol cannot produce, whatever their values are.

Four kinds of tests share the false-alarm probability equally:

- *answers*: the number of answers to each question is binomial with a known probability;
- *cells*: the count of a cell, or of a run of neighboring cells of a table, lies between two binomial laws;
- *shape*: the shares of a table's cells are a mixture of its rows (`evidence`); with unary encoding, the sum over the
  entries of a report has a known law;
- *copies*: the number of identical reports is bounded.

Users may have any values, but they answer independently. The k-th audit of a collection may use 6/(π²k²) of the
probability, so that the false-alarm rate of all audits together is at most `false_alarm_rate`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hdr4me.errors import InvalidInput
from hdr4me.io.files import read_blocks
from hdr4me.survey import Survey
from hdr4me.tally import Tally

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_RUNS = 64  # larger tables are tested by single cells and by runs that start at either end
# The alternatives of `evidence`: shares of reports that are all in one cell, and the number of cells that are tried.
_SHARES, _CELLS = (0.003, 0.01, 0.03, 0.1), 3
_FIRST_STEPS, _STEPS, _CLOSE = 100, 400, 1e-6  # steps and tolerance of the fits
# If no standardized residual of the fit is larger, the evidence is too small for an alarm and is not computed.
_LEAST_RESIDUAL = 3.0


@dataclass(frozen=True)
class Alarm:
    """A test that raised an alarm; its p-value is adjusted for the tests of all kinds and for earlier audits."""

    kind: str
    dimension: str
    p_value: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Watch:
    """The result of one audit of a tally."""

    alarms: tuple[Alarm, ...]
    false_alarm_rate: float
    audits_before: int
    n_reports: int
    n_tests: int

    def __str__(self) -> str:
        head = (
            f"Audit number {self.audits_before + 1} of this collection: {self.n_tests:,} tests on {self.n_reports:,} "
            "reports. The probability of any false alarm over all audits of the collection is at most "
            f"{self.false_alarm_rate:g}."
        )
        found = [f"ALARM {alarm.sentence} (p = {alarm.p_value:.2g})" for alarm in self.alarms]
        return "\n".join(
            [head, *(found or ["No alarm: the counts are consistent with users who follow the protocol."])]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**vars(self), "alarms": [alarm.to_dict() for alarm in self.alarms]}


def watch(
    tally: Tally,
    *,
    false_alarm_rate: float = 0.001,
    audits_before: int = 0,
    copies: int | None = None,
    seed: int = 0,
) -> Watch:
    """Test for counts that users who follow the protocol cannot produce.

    `false_alarm_rate` bounds the probability of any false alarm over all audits of a collection; `audits_before` is the
    number of earlier audits.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> tally = Tally(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0))
    >>> tally.counts[-1] = tally.n_reports = 1000  # all of them are in the last cell
    >>> [alarm.kind for alarm in watch(tally).alarms]
    ['cells', 'shape']
    """
    if not isinstance(false_alarm_rate, int | float) or not 0 < false_alarm_rate < 1:
        raise InvalidInput.of("false_alarm_rate", false_alarm_rate, "a probability between 0 and 1")
    if type(audits_before) is not int or audits_before < 0:
        raise InvalidInput.of("audits_before", audits_before, "an integer from 0")
    kinds: dict[str, list[_Test]] = {
        "answers": [],
        "cells": [],
        "shape": [],
        "copies": _copies(tally, copies),
    }
    for q in range(len(tally.survey.questions)):
        for kind, test in _of_question(tally, q, seed):
            kinds[kind].append(test)
    found: list[Alarm] = []
    for kind, tests in kinds.items():
        # Bonferroni: tests of this kind, times the number of kinds, times the share of this audit.
        factor = sum(test.n for test in tests) * len(kinds) * (math.pi * (audits_before + 1)) ** 2 / 6
        worst: dict[str, Alarm] = {}
        for test in tests:
            adjusted = min(1.0, test.p * factor)
            known = worst.get(test.dimension)
            if adjusted <= false_alarm_rate and (known is None or adjusted < known.p_value):
                worst[test.dimension] = Alarm(kind, test.dimension, adjusted, test.sentence)
        found += worst.values()
    n_tests = sum(test.n for tests in kinds.values() for test in tests)
    ordered = tuple(sorted(found, key=lambda alarm: alarm.p_value))
    return Watch(ordered, float(false_alarm_rate), audits_before, tally.n_reports, n_tests)


class _Test(NamedTuple):
    """The smallest p-value of `n` tests of one kind at one question."""

    dimension: str
    p: float
    sentence: str
    n: int = 1


def _of_question(tally: Tally, q: int, seed: int) -> Iterator[tuple[str, _Test]]:
    """The tests at one question, by kind."""
    survey, n, question = tally.survey, tally.n_reports, tally.survey.questions[q]
    name = " and ".join(survey.schema.names[j] for j in question.dimensions)
    counts, response = tally.layout.of_question(tally.counts, q), question.channel.response
    r, rows = int(counts.sum()) // question.channel.per_report, response.table
    if survey.sampled < len(survey.questions):
        share = float(survey.inclusion(q))
        p = min(1.0, 2 * min(stats.binom.sf(r - 1, n, share), stats.binom.cdf(r, n, share)))
        sentence = f"{name!r} has {r:,} answers, but {n * share:,.0f} are expected"
        yield "answers", _Test(name, float(p), sentence)
    bounds = response.bounds()
    if bounds is not None and r > 0:
        yield "cells", _cells(name, counts, r, rows, bounds)
    if laws := response.field_laws:
        sentence = f"{name!r}: the sum over its entries differs from that of reports that follow the protocol"
        yield "shape", _Test(name, _sum_of_fields(laws, counts, r), sentence)
    elif rows is not None and rows.shape[1] > 2:
        p = math.exp(-max(0.0, evidence(rows, counts, np.random.default_rng([seed, q]))))
        sentence = f"{name!r}: reports that follow the protocol cannot have this distribution of outputs"
        yield "shape", _Test(name, p, sentence)


def _cells(name: str, counts: Counts, r: int, rows: Floats | None, bounds: tuple[Floats, Floats]) -> _Test:
    """Tests of single counters against their bounds; for a table, of all runs of neighboring cells."""
    if rows is None:
        starts = np.arange(len(counts))
        stops, (low, high) = starts + 1, bounds
    else:
        starts, stops = _runs(len(counts))
        sums = np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))
        both = sums[:, stops] - sums[:, starts]
        low, high = both.min(axis=0), both.max(axis=0)
    sums = np.pad(np.cumsum(counts), (1, 0))
    observed = sums[stops] - sums[starts]
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    above, below = (
        np.asarray(stats.binom.sf(observed - 1, r, high)),
        np.asarray(stats.binom.cdf(observed, r, low)),
    )
    p = np.minimum(1.0, 2 * np.minimum(above, below))
    worst = int(p.argmin())
    start, last = int(starts[worst]), int(stops[worst]) - 1
    limit, which = (high, "more") if above[worst] < below[worst] else (low, "fewer")
    sentence = (
        f"{name!r}: {observed[worst]:,} of {r:,} answers have "
        f"{f'output {start}' if start == last else f'outputs {start} to {last}'}, {which} "
        f"than reports that follow the protocol can have (expected at the limit: {limit[worst] * r:,.0f})"
    )
    return _Test(name, float(p[worst]), sentence, len(p))


def _runs(n: int) -> tuple[Counts, Counts]:
    """Starts and stops of proper runs of cells: all of them, or single cells and runs that start at either end."""
    if n <= _MOST_RUNS:
        starts, stops = np.triu_indices(n + 1, 1)
    else:
        i, inner = np.arange(n), np.arange(2, n)
        starts = np.concatenate([i, np.zeros(n - 2, np.int64), i[1:-1]])
        stops = np.concatenate([i + 1, inner, np.full(n - 2, n)])
    part = (stops - starts < n) | (n == 1)
    return starts[part], stops[part]


def _sum_of_fields(laws: Sequence[tuple[Floats, int]], counts: Counts, r: int) -> float:
    """A p-value for the sum of all cells: the fields of a report have the same set of laws for every input.

    It is Chernoff's bound on either side: exp(−sup(λT − r·log M(λ))) for the sum T of cell numbers.
    """
    n_cells = len(laws[0][0])
    cells = np.arange(n_cells) / (n_cells - 1)
    total = float((counts.reshape(-1, n_cells) * cells).sum())

    def gap(x: float) -> float:
        tilt = np.exp(x * cells)
        return float(r * sum(times * np.log(law @ tilt) for law, times in laws) - x * total)

    best = optimize.minimize_scalar(gap, bounds=(-20.0, 20.0), method="bounded").fun
    return min(1.0, 2 * math.exp(min(0.0, float(best))))


def _copies(tally: Tally, copies: int | None) -> list[_Test]:
    """k given reports are identical with probability at most p^(k−1), p that of the likeliest report; a union bound."""
    if copies is None or copies < 2:
        return []
    survey = tally.survey
    likeliest = sorted((question.channel.response.likeliest() for question in survey.questions), reverse=True)
    log_p = sum(map(math.log, likeliest[: survey.sampled]))
    if survey.weighted:
        log_p += math.log(max(float(survey.inclusion(q)) for q in range(len(survey.questions))))
    else:
        log_p -= _log_choose(len(survey.questions), survey.sampled)
    log_bound = _log_choose(tally.n_reports, copies) + (copies - 1) * log_p
    return [_Test("", math.exp(min(0.0, log_bound)), f"{copies:,} reports are identical")]


def _log_choose(n: int, k: int) -> float:
    return float(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def most_copies(survey: Survey, paths: Iterable[str | os.PathLike[str]]) -> int:
    """How often the most frequent report occurs in these files; memory: `report_size` bytes for each report."""
    rows = [block.rows for path in paths for block in read_blocks(path, survey)]
    if not rows:
        return 0
    reports = np.ascontiguousarray(np.concatenate(rows)).view(np.dtype((np.void, survey.report_size)))
    return int(np.unique(reports, return_counts=True)[1].max(initial=0))


def present_shares(tally: Tally) -> dict[str, float]:
    """For each optional number or vector, the lower 95 % limit of the share of users with a value (0 if unknown)."""
    rows = tally.estimate().of("share")
    low = np.nan_to_num(rows.interval()[0]) if len(rows) else ()
    return {name: float(max(share, 0.0)) for name, share in zip(rows.dimensions, low, strict=True)}


def evidence(rows: Floats, counts: Counts, rng: np.random.Generator) -> float:
    """The log of the evidence against honest reports; above log(1/α) with probability at most α if all are honest.

    For any values of the users, the expected shares of the cells are a mixture of the table's rows. The counts are
    split at random into two halves. On one half a mixture is fitted and alternatives are chosen: some of the reports
    are all in one cell, or the shares are as observed. The other half gives the likelihood ratio of each alternative to
    its nearest mixture. The ratio, divided by its largest mean over honest users, has mean at most 1 if all are honest.
    """
    total = int(counts.sum())
    if rows.shape[1] < 3 or total < 100:
        return 0.0
    first = rng.multivariate_hypergeometric(counts, total // 2, method="marginals")
    halves = (first, counts - first)
    logs = [_likelihood_ratio(rows, halves[i], halves[1 - i]) for i in (0, 1)]
    return float(np.logaddexp(logs[0], logs[1]) - np.log(2.0))


def _likelihood_ratio(rows: Floats, fitted: Counts, tested: Counts) -> float:
    """The log of the mean likelihood ratio: alternatives chosen on one half of the counts, tested on the other."""
    total = fitted.sum()
    shares = fitted / total
    fit = _nearest(rows, shares[None, :], _FIRST_STEPS)[0]
    residual = (shares - fit) / np.sqrt(np.maximum(fit, 1e-300) / total)
    if residual.max(initial=0.0) < _LEAST_RESIDUAL:
        return 0.0
    suspects = np.argsort(residual)[::-1][:_CELLS]
    made = [(1 - b) * fit + b * np.eye(len(shares))[y] for y in suspects for b in _SHARES]
    made += [(1 - w) * fit + w * shares for w in (0.25, 0.5, 1.0)]
    alternatives = np.maximum(np.array(made), 1e-12)
    alternatives /= alternatives.sum(axis=1, keepdims=True)
    nearest = np.maximum(_nearest(rows, alternatives), 1e-300)
    factor = alternatives / nearest
    largest = (factor @ rows.T).max(axis=1)
    logs = np.log(factor / largest[:, None]) @ tested
    return float(special.logsumexp(logs) - np.log(len(logs)))


def _nearest(rows: Floats, shares: Floats, steps: int = _STEPS) -> Floats:
    """For each line of shares the mixture of rows with the largest likelihood.

    An EM step multiplies each weight by its gradient, which never decreases the likelihood. A power of the gradient is
    a longer step, which is used as long as it increases the likelihood. The largest gradient minus 1 bounds the
    distance to the largest log-likelihood.
    """

    def log_likelihood(mixture: Floats) -> Floats:
        return np.asarray((shares * np.log(np.maximum(mixture, 1e-300))).sum(axis=1))

    weights = np.full((len(shares), len(rows)), 1.0 / len(rows))
    power = np.ones((len(shares), 1))
    mixture = weights @ rows
    for _ in range(steps):
        gradient = (shares / np.maximum(mixture, 1e-300)) @ rows.T
        if gradient.max() < 1 + _CLOSE:
            break
        longer = weights * np.minimum(gradient, 1e6) ** power
        longer /= longer.sum(axis=1, keepdims=True)
        better = log_likelihood(longer @ rows) > log_likelihood(mixture)
        weights = np.where(better[:, None], longer, weights * gradient)
        weights /= weights.sum(axis=1, keepdims=True)
        power = np.where(better[:, None], power * 1.5, 1.0)
        mixture = weights @ rows
    return mixture
