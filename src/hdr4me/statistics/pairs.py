"""Statistics of two dimensions: covariance and correlation of two numbers, means and shares by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import sampled_variance, shared_draw
from hdr4me.framework.small_samples import ratio_interval, weighted_interval
from hdr4me.statistics.answer import joined_notes
from hdr4me.statistics.calibrate import functional, sample_variance, value_moments
from hdr4me.statistics.coordinates import FREQUENCY
from hdr4me.statistics.distribution import VARIANCE
from hdr4me.statistics.intervals import (
    NO_LAW_BELOW,
    NO_LAW_NOTE,
    Floats,
    Rows,
    SmallSampleLaw,
    effective_answers,
    joined,
    quantile,
)
from hdr4me.statistics.shapes import has_law
from hdr4me.statistics.statistic import Part, Statistic, TallyLike, channel_of, counts_of, marginal_of
from hdr4me.survey import Dimension, Product, Schema, Survey

# The share of a group, and the variances behind a correlation, must be _SIGNIFICANT standard errors above 0, otherwise
# the result is not significant. Below _CLEARLY standard errors a correlation has a note, and with few answers it is not
# significant.
_SIGNIFICANT, _CLEARLY = 3.0, 6.0
# The small-sample law of a covariance allows for an error of the product of two means of this many standard errors.
_SLACK = 2.0
# The estimated shares of K categories have a correlation of about −1/(K − 1). It is ignored for tables with more cells
# than _MOST_CORRELATED, and for sums over the cells of a table with more than _MOST_SUMMED, whose errors are then too
# large (by a factor of √2 for sums of half of the cells).
_MOST_CORRELATED, _MOST_SUMMED = 256, 1_024
DOUBTFUL = "a variance is hardly larger than its standard error: the interval may have low coverage"


class OfTwo(Statistic):
    """The base class of statistics of two dimensions."""

    def two(self, dimensions: Sequence[int], options: dict[str, Any]) -> tuple[int, int]:
        """The two dimensions, after a check that they differ and that `pair_counts` is the only option."""
        self.check_options(options, "pair_counts")
        if len(dimensions) != 2 or dimensions[0] == dimensions[1]:
            raise InvalidInput.of("dimensions", list(dimensions), f"two different names for a {self.name}")
        return dimensions[0], dimensions[1]


class Covariance(OfTwo):
    """The covariance of two numbers, from reports that answer both.

    With y and z the decoded answers, Ĉ = Σ(y − ȳ)(z − z̄)/(r − 1), because the noise of two questions is independent.
    `pair_counts` is not needed for numbers that are asked as a pair or whose product is a question (`hdr4me.Product`).
    """

    name = "covariance"

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return dimension.is_number and has_law(channel)

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        what = f"the {self.name} of {dimension.name!r} cannot be estimated"
        return f"{what}: both dimensions must be numbers that are not optional"

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = self.two(dimensions, options)
        value, error, r, law = _covariance(tally, options.get("pair_counts"), j, k)
        (low, high), (first, last) = (tally.survey.schema.dimensions[i].bounds for i in (j, k))
        scale = (high - low) / 2 * ((last - first) / 2)
        label = tally.survey.schema.names[k]
        one = np.zeros(1, np.int64)
        in_units = joined([(1, None if law is None else (law, one))], np.array([scale]), np.zeros(1))
        small_sample = None if in_units is None else (in_units, one)
        rows = np.array([value * scale]), np.array([error * scale])
        return [Part(j, (label,), *rows, r, small_sample=small_sample, also=k)]


class Correlation(Covariance):
    """The covariance over both standard deviations; not significant if one of the variances is not."""

    name = "correlation"

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        (covariance,) = super().parts(tally, dimensions, **options)
        for i in dimensions:
            asked = tally.survey.schema.dimensions[i], channel_of(tally.survey, i)[0]
            if not VARIANCE.supports(*asked):
                raise InvalidInput(VARIANCE.refusal(*asked))
        variances = VARIANCE.parts(tally, dimensions)
        v = np.array([float(part.value[0]) for part in variances])
        e = np.array([float(part.error[0]) for part in variances])
        where, also = (covariance.dimension, covariance.categories), covariance.also
        n = int(covariance.n_answers)
        # In small samples, variances that are significant by chance would print correlations that miss the truth.
        if not (v > (_CLEARLY if n < NO_LAW_BELOW else _SIGNIFICANT) * e).all():
            nothing = np.array([np.nan])
            return [Part(*where, nothing, nothing, covariance.n_answers, not_significant=True, also=also)]
        root = float(np.sqrt(v.prod()))
        value = np.clip(covariance.value / root, -1.0, 1.0)
        # To first order the squared errors of the variances add to that of the covariance: they share almost no
        # reports.
        error = np.sqrt((covariance.error / root) ** 2 + value**2 / 4 * float(((e / v) ** 2).sum()))
        notes = DOUBTFUL if (v < _CLEARLY * e).any() else "", NO_LAW_NOTE if n < NO_LAW_BELOW else ""

        def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
            reach = quantile(level, n) * error
            return np.maximum(value - reach, -1.0), np.minimum(value + reach, 1.0)

        note = joined_notes(*notes)
        return [Part(*where, value, error, n, notes=(note,), intervals=intervals, also=also)]


class By(OfTwo):
    """The mean of a number, or the share of each category, in each group; the second dimension is the group.

    With y the decoded number or indicator and z the decoded indicator of a group, the estimate is Σyz/Σz. Its standard
    error comes from the residuals (y − mean)·z. A group whose share is not significantly above 0 has no estimate.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return COVARIANCE.supports(dimension, channel) or dimension.is_category

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return f"{self.name} does not support {dimension.name!r}: use a number that is not optional, or a category"

    def named(self, tally: TallyLike, names: Sequence[str], **options: Any) -> list[Part]:
        """Shares come from a joint question about both attributes, if the survey has one."""
        schema = tally.survey.schema
        number = joint_question(schema, names) if self.name == "share_by" else None
        if number is None:
            return super().named(tally, names, **options)
        self.check_options(options, "pair_counts")
        return [_shares_by_joint(tally, number, *names)]

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = self.two(dimensions, options)
        first, second = (tally.survey.schema.dimensions[i] for i in (j, k))
        mean = self.name == "mean_by"
        if not second.is_category or not (first.is_number if mean else first.is_category):
            allowed = "a number and then the category that groups, such as ['income', 'region']"
            allowed = allowed if mean else "two categories, the second of which groups"
            raise InvalidInput(f"{self.name} accepts {allowed}")
        own, groups = ("",) if mean else first.categories, second.categories
        cells = [(c, g) for g in range(len(groups)) for c in range(len(own))]
        joints = [joint_of(tally, options.get("pair_counts"), j, k, c, g) for c, g in cells]
        labels = groups if mean else tuple(f"{own[c]} | {groups[g]}" for c, g in cells)
        return [replace(_ratios(j, labels, joints, scaled=mean), also=k)]


COVARIANCE, CORRELATION, MEAN_BY, SHARE_BY = Covariance(), Correlation(), By("mean_by"), By("share_by")


# -- joint questions -----------------------------------------------------------------------------------------------


def joint_question(schema: Schema, names: Sequence[str]) -> int | None:
    """The position of the smallest joint dimension with these two attributes; None if there is none."""
    found = [
        j
        for j, x in enumerate(schema)
        if len(set(names)) == 2 and set(names) < {y.name for y in (*x.leaves, x)}
    ]
    return min(found, key=lambda j: len(schema.dimensions[j].categories), default=None)


def marginal_cells(shape: Sequence[int], kept: Sequence[int]) -> NDArray[np.int64]:
    """For each cell of a table, the number of its cell in the table of the attributes `kept`, in their order."""
    places = np.indices(shape).reshape(len(shape), -1)
    return np.asarray(np.ravel_multi_index([places[i] for i in kept], [shape[i] for i in kept]), np.int64)


def joint_covariance(
    channel: Channel, shares: Floats, errors: Floats, answers: int, users: int, cells: NDArray[np.int64]
) -> Floats:
    """The covariance of sums of estimated shares; the variances only if there are many sums or categories.

    `cells` is the number of the sum that each category belongs to.
    """
    sums = int(cells.max()) + 1
    if not 1 < answers or sums > _MOST_CORRELATED or shares.size > _MOST_SUMMED:
        return np.asarray(np.bincount(cells, errors**2), np.float64)
    f = np.maximum(shares, 0.0)
    f /= f.sum()
    noise = channel.response.covariance(np.eye(f.size), f)
    covariance = sampled_variance(noise, np.diag(f) - np.outer(f, f), users, 1.0 / answers)
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], np.arange(sums))
    for axis in (0, 1):
        covariance = np.add.reduceat(covariance.take(order, axis), first, axis)
    return covariance


def fieller(
    top: Any, bottom: Any, var_top: Any, cross: Any, var_bottom: Any, level: float
) -> tuple[Any, Any]:
    """Fieller's interval of top/bottom, two normal estimates; NaN where the denominator is not significant."""
    z = float(ndtri((1 + level) / 2)) ** 2
    a, b, c = bottom**2 - z * var_bottom, top * bottom - z * cross, top**2 - z * var_top
    root, a = np.sqrt(np.maximum(b**2 - a * c, 0.0)), np.where(a > 0, a, np.nan)
    return (b - root) / a, (b + root) / a


def conditional_shares(
    direct: Floats, covariance: Floats, level: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Each row of a table over its sum: the ratios, their standard errors, and Fieller's intervals cut to [0, 1].

    The rows of a sum that is not significantly above 0 are NaN. `covariance` is that of all cells, or their variances.
    """
    value, error, low, high = np.full((4, *direct.shape), np.nan)
    k = direct.shape[1]
    for g, cells in enumerate(direct):
        own = slice(g * k, (g + 1) * k)
        block = np.diag(covariance[own]) if covariance.ndim == 1 else covariance[own, own]
        total, variance, cross, whole = cells.sum(), np.diag(block), block.sum(axis=1), block.sum()
        if total > _SIGNIFICANT * np.sqrt(whole):
            value[g] = cells / total
            spread = variance - 2 * value[g] * cross + value[g] ** 2 * whole
            error[g] = np.sqrt(np.maximum(spread, 0.0)) / total
            ends = fieller(cells, total, variance, cross, whole, level)
            low[g], high[g] = (np.clip(end, 0.0, 1.0) for end in ends)
    return value, error, low, high


def _shares_by_joint(tally: TallyLike, number: int, own: str, group: str) -> Part:
    """The share of each category of one attribute in each group of another, from the question about both."""
    (rows,) = FREQUENCY.parts(tally, [number])
    schema = tally.survey.schema
    leaves = schema.dimensions[number].leaves
    names, shape = [x.name for x in leaves], [len(x.categories) for x in leaves]
    answers = int(rows.n_answers)
    channel = channel_of(tally.survey, number)[0]
    turn = [names.index(group), names.index(own)]
    cells = marginal_cells(shape, turn)
    covariance = joint_covariance(channel, rows.value, rows.error, answers, tally.n_reports, cells)
    direct = np.asarray(np.bincount(cells, rows.value), np.float64).reshape([shape[i] for i in turn])
    value, error, _, _ = conditional_shares(direct, covariance, 0.95)

    def intervals(level: float, kind: str) -> tuple[Floats, Floats]:
        _, _, low, high = conditional_shares(direct, covariance, level)
        return low.ravel(), high.ravel()

    first, second = (leaves[names.index(name)].categories for name in (own, group))
    return Part(
        schema.index(own) if own in schema.names else number,
        tuple(f"{a} | {b}" for b in second for a in first),
        value.ravel(),
        error.ravel(),
        answers,
        not_significant=np.isnan(value.ravel()),
        intervals=intervals,
        notes=(NO_LAW_NOTE if answers < NO_LAW_BELOW else "",) * direct.size,
        also=number,
    )


@dataclass(frozen=True)
class Joint:
    """The number of reports in each pair of classes, and the decoded numbers of the classes."""

    counts: Floats
    first: Floats
    second: Floats

    @property
    def n(self) -> float:
        """The number of reports that answered both."""
        return float(self.counts.sum())

    def mean(self, values: Floats) -> float:
        """The mean over reports of a number given for each pair of classes."""
        return float((self.counts * values).sum()) / self.n

    def error(self, values: Floats) -> float:
        """The standard error of that mean."""
        centered = values - self.mean(values)
        return float(np.sqrt((self.counts * centered**2).sum() / max(self.n - 1, 1) / self.n))


def joint_of(tally: TallyLike, pairs: Any, j: int, k: int, category_j: int = 0, category_k: int = 0) -> Joint:
    """The joint counts (`hdr4me.PairCounts`) of two numbers, or of the indicators of two categories."""
    survey = tally.survey
    names = [survey.schema.names[i] for i in (j, k)]
    if pairs is None:
        raise InvalidInput(
            f"statistics of {names[0]!r} and {names[1]!r} together need reports that answer both questions: create the "
            "survey with sampled=2 or more (--sampled 2) and count both answers (hdr4me.PairCounts, --count-pair), or "
            "add their product to the schema (hdr4me.Product)"
        )
    if pairs.survey != survey:
        raise InvalidInput("the pair counts and the tally belong to different surveys")
    counts = pairs.of(names[0], names[1]).astype(np.float64)
    decoded = []
    for i, category in ((j, category_j), (k, category_k)):
        channel, position = channel_of(survey, i)
        values, input_, rest = channel.response.classes(position, category)
        chosen = counts[input_]
        if rest:
            # One more class holds the answers that raise none of these counters; the last counter counts every report.
            chosen = np.concatenate([chosen, (counts[-1] - chosen.sum(axis=0))[None]])
        counts = chosen.T
        decoded.append(values)
    return Joint(counts, *decoded)


def _ratios(j: int, labels: tuple[str, ...], joints: list[Joint], *, scaled: bool) -> Part:
    """The mean of the first decoded number within the group that the second one indicates."""
    value, error = np.full((2, len(joints)), np.nan)
    not_significant = np.zeros(len(joints), bool)
    for i, joint in enumerate(joints):
        if joint.n < 2:
            continue
        indicator = np.outer(np.ones_like(joint.first), joint.second)
        share, share_error = joint.mean(indicator), joint.error(indicator)
        not_significant[i] = not share > _SIGNIFICANT * share_error
        if not not_significant[i]:
            value[i] = joint.mean(np.outer(joint.first, joint.second)) / share
            error[i] = joint.error(np.outer(joint.first - value[i], joint.second)) / share
    answers = np.array([int(joint.n) for joint in joints])
    law = _ratio_laws(joints, value, error)
    return Part(
        j,
        labels,
        value,
        error,
        answers,
        scaled=scaled,
        not_significant=not_significant,
        small_sample=(law, np.arange(len(joints))),
    )


def _ratio_laws(joints: list[Joint], value: Floats, error: Floats) -> SmallSampleLaw:
    """The small-sample law of ratios of joint counts; the largest residual replaces its `skew_size`."""
    effective = np.zeros(len(joints))
    for i in np.flatnonzero(np.isfinite(error)).tolist():
        joint = joints[i]
        residual = np.outer(joint.first - value[i], joint.second)
        share = joint.mean(np.outer(np.ones_like(joint.first), joint.second))
        effective[i] = effective_answers(joint.n, error[i] * share, float(np.abs(residual).max()))

    def ends(level: float, rows: Rows) -> tuple[Floats, Floats]:
        found = []
        for joint in (joints[i] for i in rows.tolist()):
            product = np.outer(joint.first, joint.second).ravel()
            indicator = np.tile(joint.second, joint.first.size)
            found.append(ratio_interval(product, indicator, joint.counts.ravel(), level))
        low, high = np.array(found).reshape(-1, 2).T
        return low, high

    return SmallSampleLaw(effective, ends)


def _product_law(counts: Floats, products: Floats, slack: float) -> SmallSampleLaw:
    """The small-sample law of a mean of products about the estimated means, whose own error adds `slack`."""
    r = float(counts.sum())
    error = np.sqrt(sample_variance(counts, products) / r)

    def ends(level: float, rows: Rows) -> tuple[Floats, Floats]:
        low, high = weighted_interval(products, counts, level)
        return np.repeat(low - slack, rows.size), np.repeat(high + slack, rows.size)

    return SmallSampleLaw(np.array([effective_answers(r, error, float(np.abs(products).max()))]), ends)


Found = tuple[float, float, int, SmallSampleLaw | None]


def _covariance(tally: TallyLike, pairs: Any, j: int, k: int) -> Found:
    survey = tally.survey
    if survey.question_of(k) == survey.question_of(j):
        return _within(tally, j, k)
    product = product_question(survey, j, k)
    if product is not None:
        return _by_product(tally, j, k, product)
    joint = joint_of(tally, pairs, j, k)
    r = joint.n
    if r < 2:
        return np.nan, np.nan, int(r), None
    row, column = joint.counts.sum(axis=1) / r, joint.counts.sum(axis=0) / r
    first, second = float(row @ joint.first), float(column @ joint.second)
    products = np.outer(joint.first - first, joint.second - second)
    found = joint.mean(products) * r / (r - 1)
    # The estimand belongs to the users who reported, so the variance over users of their products is subtracted. Its
    # estimate from the decoders of squares is the mean of their product less Ĉ², here less one standard error.
    squares, spread = [marginal_of(tally, i).square for i in (j, k)], 0.0
    if squares[0] is not None and squares[1] is not None:
        a = squares[0] - 2 * first * joint.first + first**2
        b = squares[1] - 2 * second * joint.second + second**2
        product_of_squares = np.outer(a, b)
        spread = joint.mean(product_of_squares) - joint.error(product_of_squares) - found**2
    variance = joint.error(products) ** 2 - max(spread, 0.0) / max(tally.n_reports, r)
    errors = [
        joint.error(np.outer(joint.first, np.ones_like(joint.second))),
        joint.error(joint.second[None, :]),
    ]
    law = _product_law(joint.counts.ravel(), products.ravel(), _SLACK * float(np.prod(errors)))
    return found, float(np.sqrt(max(variance, 0.0))), int(r), law


def _within(tally: TallyLike, j: int, k: int) -> Found:
    """Two numbers of one question: the mean of a decoder of their product less the product of their means."""
    both = [marginal_of(tally, i) for i in (j, k)]
    levels = np.outer(both[0].targets["value"], both[1].targets["value"]).ravel()
    product = both[0].decoder(levels) if len(levels) == len(both[0].rows) else None
    if product is None:
        table = channel_of(tally.survey, j)[0].mechanism
        raise InvalidInput(
            f"the covariance cannot be estimated: the table {table!r} does not determine the product"
        )
    counts = counts_of(tally, j).astype(np.float64)
    r = float(counts.sum())
    if r < 2:
        return np.nan, np.nan, int(r), None
    y, z = (marginal.decoders["value"] for marginal in both)
    ybar, zbar = float(counts @ y) / r, float(counts @ z) / r
    found = float(counts @ product) / r - ybar * zbar
    products = product - ybar * z - zbar * y + ybar * zbar
    error = np.sqrt(sample_variance(counts, products) / r)
    slack = _SLACK * np.sqrt(sample_variance(counts, y) * sample_variance(counts, z)) / r
    return found, float(error), int(r), _product_law(counts, products, float(slack))


def product_question(survey: Survey, j: int, k: int) -> int | None:
    """The position of the dimension that is the product of dimensions j and k; None if there is none."""
    names = {survey.schema.names[i] for i in (j, k)}
    for number, dimension in enumerate(survey.schema):
        if isinstance(dimension, Product) and set(dimension.product) == names:
            alone = [len(survey.questions[survey.question_of(i)].dimensions) == 1 for i in (j, k, number)]
            return number if all(alone) else None
    return None


def _mean(tally: TallyLike, i: int) -> tuple[float, float, float]:
    """The mean of a number on [−1, 1], the variance of that mean, and the variance of the users' values."""
    marginal, counts = marginal_of(tally, i), counts_of(tally, i)
    r = float(counts.sum())
    if r < 2:
        return np.nan, np.nan, np.nan
    mean, variance = value_moments(counts[None, :], tally.n_reports, functional(marginal))
    square = marginal.square
    spread = 1.0 if square is None else float(counts @ square) / r - float(mean[0]) ** 2
    return float(mean[0]), float(variance[0]), min(max(spread, 0.0), 1.0)


def _by_product(tally: TallyLike, j: int, k: int, product: int) -> Found:
    """Ĉ = x̄ − s̄·t̄ on [−1, 1]², its standard error, and the smallest number of answers of the three questions.

    To first order Ĉ varies as x̄ − t̄·s̄ᵢ − s̄·t̄ᵢ. With n users, q questions and m answers per user, the covariance of two
    means is −κ/n times that of the users' values, κ = (q − m)/(m(q − 1)) (1 if m = 1). If third central moments are 0,
    this adds 2κ/n·(s̄t̄·C + t̄²·S_s + s̄²·S_t), where S are the variances of the users' values.
    """
    survey = tally.survey
    (s, var_s, spread_s), (t, var_t, spread_t), (x, var_x, _) = (_mean(tally, i) for i in (j, k, product))
    answers = min(int(counts_of(tally, i).sum()) for i in (j, k, product))
    found = x - s * t
    share = -shared_draw(max(tally.n_reports, 1), len(survey.questions), survey.sampled)
    together = s * t * found + t**2 * spread_s + s**2 * spread_t
    variance = var_x + t**2 * var_s + s**2 * var_t + var_s * var_t
    variance += max(2.0 * share * together, 0.0)
    return found, float(np.sqrt(variance)), answers, None
