"""Several rounds of a collection: priors for a plan, the survey of a second round, and the combined estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from hdr4me.accounting.rounds import may_be_stale
from hdr4me.channels.response import Marginal
from hdr4me.errors import InvalidInput
from hdr4me.framework.em import prior_from_counts
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.joint import optimal_mean, prior_variance
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.answer import Answer, joined_notes
from hdr4me.statistics.distribution import check_kind
from hdr4me.statistics.intervals import NO_LAW_BELOW, NO_LAW_NOTE, Floats, quantile
from hdr4me.statistics.predict import (
    CERTAIN,
    CONTROLS,
    GENERAL,
    NEXT,
    Excesses,
    Range,
    best_weight,
    narrowed,
    tails,
)
from hdr4me.statistics.shapes import Shape, has_law, shapes, shows_shape
from hdr4me.statistics.statistic import TallyLike, channel_of, counts_of, estimate, marginal_of
from hdr4me.survey import Product, Schema, Survey

# A design takes a second or more and gains 2 to 12 %: the largest number of designs, and the largest budget of an
# answer.
_DESIGNS, _DESIGN_UP_TO = 4, 3.0
# The prior of a design: its bins, and the weight of a uniform distribution because the pilot's is uncertain.
_BINS, _DOUBT = 32, 0.1
# Rounds differ if the adjusted p-value of Cochran's Q is below _REJECTED. A false rejection costs the weight of the
# more exact rounds: at 10⁻⁴ that is less than 5 % of the squared error (benchmarks/second_rounds.py).
_REJECTED = 1e-4
# A table with fewer levels carries the mean and almost no information on the spread.
_LEVELS = 5
_ALLOWED = (
    "the interval allows for different populations: state same_population if users were assigned at random"
)
_Z = 1.96  # the quantile of a 95 % interval


class SecondRound(NamedTuple):
    """The survey of a second round, the share of its users who answer the pilot's survey again, and its ranges.

    `ranges` has the narrower ranges on [−1, 1] by the names of the numbers; it is empty if no range is narrowed.
    """

    survey: Survey
    control: float
    ranges: dict[str, Range]


def refine(
    pilot: TallyLike,
    *,
    users: int | None = None,
    mechanism: Any = "designed",
    weigh: bool = True,
    name: str = "",
) -> SecondRound:
    """A survey for the next round: the same dimensions, with narrower ranges of numbers and weighted questions.

    Where ranges are narrowed, a random share `control` of the next round's users has to answer the pilot's survey
    instead, on the full range: they show what the narrower range cuts off. A range is kept where narrowing it would not
    give narrower intervals.

    Parameters
    ----------
    pilot
        The first round's tally.
    users
        The number of users of the next round, the control group included; four times the pilot's by default.
    mechanism
        How numbers are randomized in the next round. With "designed", each number has the table of least variance for
        the pilot's distribution: one of two general tables or, for up to four numbers, a table designed for it.
    weigh
        Whether questions with more remaining noise are drawn more often (surveys with one question for each user).
    name
        A name for the next survey.

    Returns
    -------
    SecondRound
        Its survey has the pilot's budget. Each user answers one of the rounds: a ledger with that limit enforces this.

    Examples
    --------
    >>> from hdr4me.survey import Numeric
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Numeric("delay", 0, 1000)]), epsilon=4.0, mechanism="piecewise")
    >>> pilot = Tally(survey)
    >>> rows = np.array(survey.questions[0].channel.weights)
    >>> pilot.counts[:] = rows[10] * 100_000 >> 32  # all of them near 75
    >>> pilot.n_reports = int(pilot.counts.sum())
    >>> result = refine(pilot)
    >>> result.survey.schema["delay"].high < 400, result.control >= 0.2
    (True, True)
    """
    survey = pilot.survey
    if not pilot.n_reports:
        raise InvalidInput("the pilot has no reports: a range cannot be chosen from an empty tally")
    with_shape = _with_shape(survey)
    if not with_shape:
        raise InvalidInput(
            "the reports do not determine the distribution of any number, so no range can be narrowed: "
            "numbers of their own need a pilot with square_wave, piecewise or optimal and ε above 0.05; other "
            "questions have no range to narrow, so repeat the same survey for them"
        )
    if users is not None and (type(users) is not int or users < 1):
        raise InvalidInput.of("users", users, "a positive integer")
    found = shapes(pilot, with_shape)
    designed = mechanism == "designed"
    mechanism = NEXT if designed else mechanism
    if isinstance(mechanism, str):
        noise = named(mechanism, epsilon=survey.epsilon_per_answer).exact().mean_variance()
    else:
        noise = mechanism.exact().mean_variance()
    control, ranges = _ranges(pilot, found, float(noise), users or 4 * pilot.n_reports)
    dimensions = [_narrow(dimension, ranges.get(j)) for j, dimension in enumerate(survey.schema)]
    several = [question for question in survey.questions if len(question.dimensions) > 1]
    together = [
        (q.channel.per_report == 1, tuple(survey.schema.names[j] for j in q.dimensions)) for q in several
    ]
    weigh = weigh and survey.sampled == 1 and len(survey.questions) > 1
    following = Survey(
        Schema(dimensions),
        survey.epsilon,
        mechanism,
        survey.sampled,
        name=name or (f"{survey.name}, second round" if survey.name else "second round"),
        pair_questions=[names for pair, names in together if pair],  # type: ignore[misc]
        block_questions=[names for pair, names in together if not pair],
        weights=_weights(survey, ranges) if weigh else None,
    )
    following = _designed(following, survey, found) if designed else following
    return SecondRound(following, control, {survey.schema.names[j]: own for j, own in ranges.items()})


def _ranges(
    tally: TallyLike, shapes: dict[int, Shape], noise: float, users: int
) -> tuple[float, dict[int, Range]]:
    """The share of the control group, and the ranges that are narrowed: those with the narrowest intervals together."""
    survey, pilot = tally.survey, tally.n_reports
    able = {j: _excesses(shape) for j, shape in shapes.items() if Excesses.possible(shape.bounds.marginal)}
    best: tuple[float, float, dict[int, Range]] = (0.0, 0.0, {})
    for control in CONTROLS:
        ranges = {}
        for j, excesses in able.items():
            shape, part = shapes[j], float(survey.inclusion(survey.question_of(j)))
            middles = (shape.grid.edges[:-1] + shape.grid.edges[1:]) / 2
            variance = excesses.moments([shape.bounds.marginal.decoders["value"]])[1].item()
            n = part * (pilot + control * users), part * (1.0 - control) * users
            shares, counts = np.diff(shape.cumulative), counts_of(tally, j)
            own = narrowed(excesses, middles, shares, variance, noise, n, part * pilot, counts / counts.sum())
            if own.gain > 1.0:
                ranges[j] = own
        score = float(np.sum(np.log([own.gain for own in ranges.values()])))
        best = max(best, (score, control, ranges), key=lambda one: one[0])
    return best[1:]


def _excesses(shape: Shape) -> Excesses:
    """The decoders of what a range cuts off, of least variance for the fitted distribution."""
    grid, marginal = shape.grid, shape.bounds.marginal
    return Excesses(marginal, np.diff(shape.cumulative) @ marginal.in_bins(grid.edges)[:, 0])


def _with_shape(survey: Survey) -> list[int]:
    """The numbers whose distribution is estimated, so that their ranges can be narrowed."""
    return [
        j
        for j, dimension in enumerate(survey.schema)
        if hasattr(dimension, "low") and shows_shape(dimension, channel_of(survey, j)[0])
    ]


def _designed(following: Survey, survey: Survey, shapes: dict[int, Shape]) -> Survey:
    """The next survey, in which each number with its own question has the table of least variance for the pilot."""
    questions, budget = list(following.questions), following.epsilon_per_answer
    general = [named(name, epsilon=budget).exact() for name in GENERAL]
    shared = [table.channel() for table in general]
    for j, shape in shapes.items():
        q = following.question_of(j)
        if len(questions[q].dimensions) > 1 or not following.schema.dimensions[j].is_number:
            continue
        low, high = survey.schema.dimensions[j].bounds
        a, b = (2.0 * (x - low) / (high - low) - 1.0 for x in following.schema.dimensions[j].bounds)
        # Values outside the range are clipped to its ends.
        inside = shape.cdf(np.linspace(a, b, _BINS + 1)[1:-1])
        shares = np.diff(np.concatenate([[0.0], inside, [1.0]]))
        even = _DOUBT / _BINS + (1.0 - _DOUBT) * shares
        prior = as_prior((np.linspace(-1.0, 1.0, _BINS + 1), even))
        design = len(shapes) <= _DESIGNS and budget <= _DESIGN_UP_TO
        tables = [*general, optimal_mean(budget, prior)] if design else general
        variances = [prior_variance(table, prior) for table in tables]
        best = variances.index(min(variances))
        channel = shared[best] if best < len(general) else tables[best].channel()
        questions[q] = replace(questions[q], channel=channel)
    return Survey.from_questions(
        following.schema,
        epsilon=following.epsilon,
        sampled=following.sampled,
        questions=questions,
        name=following.name,
        tolerance=following.tolerance,
    )


def _noise(marginal: Marginal) -> float:
    """The mean variance of a report over the levels; for categories that of an absent one, for vectors that of 0."""
    at = [0.0] if marginal.indicator or not marginal.law.size else marginal.levels
    weights = [1.0, 0.0] if marginal.optional else [1.0]
    return float(marginal.moments(at).variance(weights).mean())


def _narrow(dimension: Any, narrower: Range | None) -> Any:
    if narrower is None or narrower.gain == 1.0:
        return dimension
    low, high = dimension.bounds
    middle, half = (low + high) / 2, (high - low) / 2
    new = middle + half * narrower.low, middle + half * narrower.high
    default = None if dimension.default is None else min(max(dimension.default, new[0]), new[1])
    return replace(dimension, low=new[0], high=new[1], default=default)


def _weights(survey: Survey, ranges: dict[int, Range]) -> dict[str, int]:
    """The weight of each question: the root of its remaining noise, which minimizes the sum of squared errors."""
    need = []
    for question in survey.questions:
        total = 0.0
        for place, j in enumerate(question.dimensions):
            marginal = question.channel.response.marginal(place)
            found = ranges.get(j, Range())
            # The range of a share has half the width.
            width = 2.0 if marginal.indicator else (found.high - found.low) / 2
            total += width**2 * _noise(marginal) * question.channel.response.n_coordinates(place)
        need.append(total)
    integer_weights = [max(1, isqrt(round(10_000 * x / max(need)))) for x in need]
    return {
        survey.schema.names[q.dimensions[0]]: w
        for q, w in zip(survey.questions, integer_weights, strict=True)
    }


def combine(rounds: Sequence[TallyLike], *, same_population: bool | None = None) -> Answer:
    """The combined estimate of several rounds or groups of users, about the users of all of them.

    The first round is the pilot, on the full ranges; the answer has the rows of its `estimate()`. The mean of a number
    whose range was narrowed is that of the narrower range plus what it cuts off, as the pilot and all other rounds with
    the pilot's survey (the control group) show it; see `hdr4me.statistics.predict`.

    Parameters
    ----------
    rounds
        A tally for each round or group; after `refine`, those of the pilot, the second round and its control group.
    same_population
        True: the users of all rounds are drawn from one population (they were assigned at random), and each row is
        weighted by the inverse of its squared error. False: populations differ, and each round is weighted by its
        number of users. None: Cochran's Q decides for each row, and a note says where rounds differ. No test detects a
        small difference, so the interval of every row also covers that of the weights by users.

    Examples
    --------
    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Categorical, Schema, Survey
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Categorical("smoker", ["no", "yes"])]), epsilon=2.0)
    >>> rounds = [Tally(survey).add(Client(survey).report({"smoker": "no"}) for _ in range(100)) for _ in range(2)]
    >>> combine(rounds).n_reports
    200
    """
    if not rounds:
        raise InvalidInput.of("rounds", [], "at least one tally")
    for k, tally in enumerate(rounds):
        if not tally.n_reports:
            raise InvalidInput(f"round {k + 1} of {len(rounds)} has no reports: leave out its tally")
    pilot, answers = rounds[0], [estimate(tally) for tally in rounds]
    first = answers[0]
    rows = (first.statistics, first.dimensions, first.categories)
    if any((other.statistics, other.dimensions, other.categories) != rows for other in answers):
        raise InvalidInput(
            "the rounds have different dimensions or categories: combine only rounds of the same questions"
        )
    spread = np.stack([_spread(*both) for both in zip(rounds, answers, strict=True)])
    value = np.stack([answer.value for answer in answers])
    error = np.stack([answer.standard_error for answer in answers])
    known = np.isfinite(value) & np.isfinite(error) & (error > 0)
    known &= np.stack([_comparable(pilot.survey.schema, tally.survey.schema, first) for tally in rounds])
    some = known.any(axis=0)
    users = np.array([[tally.n_reports] for tally in rounds], float)
    best = np.where(known, error, np.inf).argmin(
        axis=0
    )  # the round with the most precise spread of the values
    spread = np.take_along_axis(spread, best[None, :], axis=0)
    # Each error is about the round's own users. Rounds of one population also differ by the chance of their users.
    squares = np.where(known, error**2 + spread**2 / users, np.inf)
    differ, notes = _differ(np.where(known, value, 0.0), squares, same_population)
    by_error = np.where(known, 1.0 / np.where(known, error**2, 1.0), 0.0)
    share = _shares(np.where(differ, np.where(known, users, 0.0), by_error))
    together = np.where(some, np.where(known, share * value, 0.0).sum(axis=0), first.value)
    # The estimand is the mean over the users of all rounds. Rounds of one population whose weights are not their shares
    # of the users add the chance by which their users differ.
    equal = _shares(np.where(known, users, 0.0))
    apart = (share - equal) ** 2 * spread**2 / users
    noise = np.sqrt((np.where(known, share * error, 0.0) ** 2).sum(axis=0) + apart.sum(axis=0))
    noise = np.where(some, noise, first.standard_error)
    by_users = np.where(known, equal * value, 0.0).sum(axis=0)
    error_by_users = np.sqrt((np.where(known, equal * error, 0.0) ** 2).sum(axis=0))
    if same_population is None:
        allowed = ~differ & (error_by_users > 1.05 * noise)
        notes = tuple(note or _ALLOWED * bool(own) for note, own in zip(notes, allowed, strict=True))
    n_answers = np.sum([answer.n_answers for answer in answers], axis=0)
    few = some & (n_answers < NO_LAW_BELOW)
    notes = tuple(
        "; ".join(filter(None, (note, NO_LAW_NOTE * bool(own)))) for note, own in zip(notes, few, strict=True)
    )
    narrow = _narrowed_means(rounds, answers)
    for row, mean in narrow.items():
        together[row], noise[row] = mean.value, mean.error

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        check_kind(kind)
        t = quantile(level, n_answers)
        low, high = together - t * noise, together + t * noise
        if same_population is None:
            low[some] = np.minimum(low, by_users - t * error_by_users)[some]
            high[some] = np.maximum(high, by_users + t * error_by_users)[some]
        for row, mean in narrow.items():
            low[row], high[row] = mean.interval(float(t[row]))
        return low, high

    bounds = np.array([pilot.survey.schema[name].bounds for name in first.dimensions]).reshape(-1, 2)
    scaled = np.array([name == "mean" for name in first.statistics], bool)
    half, middle = (bounds[:, 1] - bounds[:, 0]) / 2, bounds.mean(axis=1)
    return replace(
        first,
        n_reports=sum(tally.n_reports for tally in rounds),
        value=together,
        standard_error=noise,
        n_answers=n_answers,
        scaled_value=np.where(scaled, (together - middle) / half, together),
        scaled_error=np.where(scaled, noise / half, noise),
        not_significant=np.where(some, False, first.not_significant),
        intervals=intervals,
        notes=tuple(
            joined_notes(*row) for row in zip(notes, *(answer.notes for answer in answers), strict=True)
        ),
    )


def stale_slack(answers: Sequence[Answer], row_budget: int, numbers: Sequence[int] | None = None) -> Floats:
    """For each round and row, the largest error by stale memoized responses: the width of the range, or 0.

    `numbers` are those of the rounds; 1, 2, … unless given.
    """
    schema, first = answers[0].survey.schema, answers[0]
    widths = {x.name: x.bounds[1] - x.bounds[0] if x.is_number else 1.0 for x in schema}
    most = np.array(
        [
            widths[name]
            if statistic == "mean"
            else max(len(schema[name].rows), 1.0)
            if "number" in statistic
            else 1.0
            for name, statistic in zip(first.dimensions, first.statistics, strict=True)
        ]
    )
    numbers = numbers or range(1, len(answers) + 1)
    return np.array([most * may_be_stale(number, row_budget) for number in numbers])


def _shares(weights: Floats) -> Floats:
    """Weights of the rounds of each row, with the sum 1; 0 where no round is known."""
    total = weights.sum(axis=0)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _differ(value: Floats, squares: Floats, same: bool | None) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """For each row whether rounds differ, and a note; `squares` are infinite if unknown.

    Cochran's Q = Σ (x − x̄)²/s² has a χ² law if all rounds have one mean. p-values are multiplied by the number of
    rows that are tested (Bonferroni).
    """
    weight = 1.0 / squares
    freedom = np.count_nonzero(weight, axis=0) - 1
    if same is not None:
        found = np.full(value.shape[1], not same)
        return found, ("" if same else "weighted by the number of users",) * len(found)
    q = (weight * (value - (_shares(weight) * value).sum(axis=0)) ** 2).sum(axis=0)
    p = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), q), 1.0) * np.count_nonzero(freedom > 0)
    text = "the rounds differ (Cochran's Q, adjusted p = {:.2g}): weighted by the number of users"
    return p < _REJECTED, tuple(text.format(own) if own < _REJECTED else "" for own in p.tolist())


class NarrowedMean(NamedTuple):
    """A mean from a narrower range, N, and from the full range F with the excesses above and below, in own units.

    `full` holds F and both excesses, `covariance` their covariances, and `variance` is that of N.
    """

    narrow: float
    variance: float
    full: Floats
    covariance: Floats

    def _sum(self, side: tuple[float, float]) -> tuple[float, float]:
        """N plus the excesses with these factors, and its variance; F is used for N too."""
        weight, variance = best_weight(self.variance, self.covariance, side)
        inside = float(self.full @ [1.0, -1.0, 1.0])
        return weight * self.narrow + (1.0 - weight) * inside + float(self.full[1:] @ side), variance

    @property
    def value(self) -> float:
        """An excess is nonnegative: a negative estimate counts as 0."""
        inside = self._sum((0.0, 0.0))[0]
        above, below = self._sum((1.0, 0.0))[0] - inside, inside - self._sum((0.0, -1.0))[0]
        return inside + max(above, 0.0) - max(below, 0.0)

    @property
    def error(self) -> float:
        """Half the width of an interval over its quantile, so that the standard error agrees with the interval."""
        low, high = self.interval(_Z)
        return (high - low) / (2 * _Z)

    def interval(self, t: float) -> tuple[float, float]:
        """An upper limit leaves out the excess below, which is nonnegative, unless it is certain; and conversely."""
        deviation = np.sqrt(np.maximum(self.covariance.diagonal()[1:], 0.0))
        certain = self.full[1:] > CERTAIN * deviation
        above, above_variance = self._sum((1.0, -float(certain[1])))
        below, below_variance = self._sum((float(certain[0]), -1.0))
        up, down = tails(t, bool(deviation[0] > 0), bool(deviation[1] > 0))
        least = np.sqrt(self._sum((0.0, 0.0))[1])
        high = max(above + up * np.sqrt(above_variance), self.value + up * least)
        return min(below - down * np.sqrt(below_variance), self.value - down * least), high


def _narrowed_means(rounds: Sequence[TallyLike], answers: Sequence[Answer]) -> dict[int, NarrowedMean]:
    """By row, the means of numbers whose range is narrower in some rounds."""
    pilot, found = rounds[0], {}
    schema = pilot.survey.schema
    numbers = [x for x in schema if x.is_number and not isinstance(x, Product)]
    ranges = {x.name: {c.survey.schema[x.name].bounds for c in rounds} - {x.bounds} for x in numbers}
    changed = {schema.index(name): others for name, others in ranges.items() if others}
    on_full = [tally for tally in rounds if tally.survey.series == pilot.survey.series]
    spreads = [_spread(*both) for both in zip(rounds, answers, strict=True)] if changed else []
    for j, shape in shapes(pilot, list(changed)).items():
        name, (low, high) = schema.names[j], schema.dimensions[j].bounds
        if len(changed[j]) > 1 or not Excesses.possible(shape.bounds.marginal):
            raise InvalidInput(
                f"{name!r} has several narrower ranges, or reports that do not show what they cut off: "
                "combine the pilot with rounds of one refined survey"
            )
        half, excesses = (high - low) / 2, _excesses(shape)
        a, b = ((x - low) / half - 1.0 for x in next(iter(changed[j])))
        # Ends are levels of the pilot's table, up to rounding.
        a, b = (float(excesses.levels[np.abs(excesses.levels - x).argmin()]) for x in (a, b))
        counts = np.sum([counts_of(tally, j) for tally in on_full], axis=0)
        n = float(counts.sum())
        decoders = [excesses.value, excesses.above(b), excesses.below(a)]
        mean, covariance = excesses.moments(decoders, counts / n)
        row = answers[0].dimensions.index(name)
        parts = [
            (answer.value[row], answer.standard_error[row] ** 2 + spread[row] ** 2 / tally.n_reports)
            for tally, answer, spread in zip(rounds, answers, spreads, strict=True)
            if tally.survey.schema[name].bounds in changed[j] and answer.n_answers[row] > 1
        ]
        if parts:
            values, squares = np.array(parts).T
            weight = 1.0 / squares / np.sum(1.0 / squares)
            variance = float(1.0 / np.sum(1.0 / squares))
            full = half * mean + np.array([(low + high) / 2, 0.0, 0.0])
            covariance = half**2 * covariance / max(n - 1.0, 1.0)
            found[row] = NarrowedMean(float(weight @ values), variance, full, covariance)
    return found


def _comparable(pilot: Schema, later: Schema, rows: Answer) -> NDArray[np.bool_]:
    """Which rows mean the same in both rounds: those of numbers, and of products of numbers, with equal ranges."""
    factors = {x.name: x.product if isinstance(x, Product) else (x.name,) for x in pilot}
    same = {x: all(pilot[name].bounds == later[name].bounds for name in factors[x]) for x in factors}
    return np.array([same[name] for name in rows.dimensions], bool)


def _spread(tally: TallyLike, rows: Answer) -> Floats:
    """In units, for each row of a round, the standard deviation of the users' own values; 0 if it is unknown."""
    statistics, dimensions = np.array(rows.statistics), np.array(rows.dimensions)
    spread = np.sqrt(np.maximum(rows.value * (1.0 - rows.value), 0.0))
    found = np.where((statistics == "frequency") | (statistics == "chosen"), spread, 0.0)
    for j, dimension in enumerate(tally.survey.schema.dimensions):
        if "mean" in dimension.statistics:
            mine = (dimensions == dimension.name) & (statistics == "mean")
            low, high = dimension.bounds
            found[mine] = (high - low) / 2 * _deviation(tally, j, rows.scaled_value[mine])
    return found


def _deviation(tally: TallyLike, j: int, mean: Floats) -> Floats:
    """The standard deviation of the users' values on [−1, 1]; an upper bound if the table has no decoder for it."""
    marginal, counts = marginal_of(tally, j), counts_of(tally, j)
    most = np.nan_to_num(np.clip(1.0 - mean**2, 0.0, 1.0), nan=1.0)
    square = marginal.square if marginal.law.size and not marginal.optional else None
    if square is None or counts.size != square.size or not counts.sum():
        return np.asarray(np.sqrt(most))
    return np.asarray(np.sqrt(np.clip(counts @ square / counts.sum() - mean**2, 0.0, most)))


def priors(tally: TallyLike) -> dict[str, Any]:
    """A histogram (edges, weights) for each number, and frequencies by label for each category, in own units.

    For an optional number, "values" is the histogram of those who have a value and "present" their share. For an
    optional vector, the share is clipped to lie between its standard error and 1.

    Numbers whose table has fewer than five levels (Duchi's has two) are left out, because they determine the mean but
    not the spread. Numbers that share a table with another dimension and dimensions without answers are left out too.
    """
    survey = tally.survey
    distributions: dict[str, Any] = {}
    answer = estimate(tally)
    for j, dimension in enumerate(survey.schema.dimensions):
        question, counts = survey.questions[survey.question_of(j)], counts_of(tally, j)
        if not counts.sum() or len(question.dimensions) > 1:
            continue
        if "frequency" in dimension.statistics:
            rows = answer.frequencies(dimension.name)
            shares = np.maximum(rows.value, 0.0)
            if shares.sum() > 0:
                distributions[dimension.name] = dict(zip(rows.categories, shares.tolist(), strict=True))
        elif "mean" in dimension.statistics and has_law(question.channel):
            marginal = question.channel.response.marginal()
            shares, optional = prior_from_counts(marginal.rows, counts).shares, marginal.optional
            shares = shares[:-1] if optional else shares  # the last row is "no value"
            if shares.size >= _LEVELS and shares.sum() > 0:
                low, high = dimension.bounds
                middles = (np.arange(shares.size - 1) + 0.5) / (shares.size - 1)
                values = low + (high - low) * np.concatenate([[0.0], middles, [1.0]]), shares / shares.sum()
                own = {"values": values, "present": float(shares.sum())} if optional else values
                distributions[dimension.name] = own
        elif "share" in dimension.statistics:
            share = answer[dimension.name].of("share")
            value, error = float(share.value[0]), float(share.standard_error[0])
            if not np.isnan(error):
                distributions[dimension.name] = {"present": min(max(value, error), 1.0)}
    if not distributions:
        raise InvalidInput(
            "the tally does not determine the distribution of any dimension: it needs answers, and for numbers a "
            "mechanism with five levels or more (optimal, piecewise)"
        )
    return distributions
