"""The default estimates of a survey: means, shares, frequencies and choices, computed alike for every channel.

Each is the mean of a decoder over the cells of a coordinate (`hdr4me.channels.response`), or a ratio of two such means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.channels.response import Response
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import SIGNIFICANT
from hdr4me.statistics.calibrate import Floats, functional, indicator_moments, value_moments
from hdr4me.statistics.intervals import SmallSampleLaw, frequency_law, joined, mean_law, ratio_law
from hdr4me.statistics.statistic import Part, Statistic, TallyLike, channel_of, counts_of, marginal_of
from hdr4me.survey import Dimension

_CERTAIN = 5.0  # standard errors of a share from which on the selection of significant rows does not matter


class Coordinates(Statistic):
    """An estimate of each coordinate of a dimension.

    "mean" is the mean of the values, for an optional dimension among users who have one, with one row for each
    coordinate of a vector. "share" is the share of users who have a value. "frequency" is the share of each category.
    "chosen" is the share of users who chose each category of a selection, and "number chosen" is the mean number of
    categories chosen.
    """

    by_default = True

    def __init__(self, name: str) -> None:
        self.name = name

    def supports(self, dimension: Dimension, channel: Channel) -> bool:
        return self.name in dimension.statistics

    def parts(self, tally: TallyLike, dimensions: Sequence[int], **options: Any) -> list[Part]:
        parts_by_dimension: dict[int, Part] = {}
        for group in _alike(tally, dimensions):
            try:
                parts_by_dimension |= self._group(tally, group)
            except InvalidInput as error:  # the counters of a plug-in channel may not determine the statistic
                for j in group:
                    labels = tally.survey.schema.dimensions[j].rows
                    nothing, notes = np.full(len(labels), np.nan), (str(error),) * len(labels)
                    parts_by_dimension[j] = Part(
                        j, labels, nothing, nothing, _counts(tally, j)[1], notes=notes
                    )
        return [parts_by_dimension[j] for j in dimensions]

    def _group(self, tally: TallyLike, group: list[int]) -> dict[int, Part]:
        """Parts of dimensions that have the same channel and the same statistics."""
        optional = "share" in tally.survey.schema.dimensions[group[0]].statistics
        response, position = _response(tally, group[0])
        whole = response.marginal(position).optional  # numbers and "no value" are inputs of one table
        if self.name == "number chosen":
            one = _number_chosen
        elif self.name == "share" and not whole:
            one = _share_of_vectors
        elif self.name == "mean" and optional:
            one = _among_present if whole else _vectors_among_present
        elif not response.alike:
            one = _each
        else:
            return _means(tally, group, "present" if self.name == "share" else "value")
        return {j: one(tally, j) for j in group}


MEAN, FREQUENCY, CHOSEN = Coordinates("mean"), Coordinates("frequency"), Coordinates("chosen")
SHARE, NUMBER_CHOSEN = Coordinates("share"), Coordinates("number chosen")


def _response(tally: TallyLike, j: int) -> tuple[Response, int]:
    """The response of dimension j, and the position of that dimension in its question."""
    channel, position = channel_of(tally.survey, j)
    return channel.response, position


def _number_chosen(tally: TallyLike, j: int) -> Part:
    """The mean number of categories that a user chose.

    A report names a categories; the mean of a² is a concave function g of the number c that the user chose. By Jensen's
    inequality Var a ≤ g(E c) − (E a)², and this bound is the variance that is used. Where a missing value is a
    category, its share is subtracted, and both standard errors are added.
    """
    response, position = _response(tally, j)
    counts, answers = _counts(tally, j)
    value = error = np.nan
    if answers:
        value = response.number(counts)  # type: ignore[attr-defined]
        most = response.channel.family.most
        if answers > 1:
            error = float(response.number_variance(min(max(value, 0.0), most)) / answers) ** 0.5  # type: ignore[attr-defined]
        if getattr(tally.survey.schema.dimensions[j], "optional", False):
            cells = response.cells(counts, position)
            share, variance = indicator_moments(cells, tally.n_reports, response.marginal(position))
            value, error = value - float(share[-1]), error + float(variance[-1]) ** 0.5
    return Part(j, (None,), np.array([value]), np.array([error]), answers)


def _counts(tally: TallyLike, j: int) -> tuple[NDArray[np.int64], int]:
    """The counters of the question that asks for dimension j, and its number of answers."""
    counts = counts_of(tally, j)
    return counts, int(counts.sum()) // channel_of(tally.survey, j)[0].per_report


def _alike(tally: TallyLike, dimensions: Sequence[int]) -> list[list[int]]:
    """Groups of dimensions with the same position in the same channel and the same statistics."""
    groups: dict[tuple[int, int, tuple[str, ...]], list[int]] = {}
    for j in dimensions:
        response, position = _response(tally, j)
        wanted = tally.survey.schema.dimensions[j].statistics
        groups.setdefault((id(response), position, wanted), []).append(j)
    return list(groups.values())


def _means(tally: TallyLike, group: list[int], name: str) -> dict[int, Part]:
    """The means of one decoder, for all coordinates of all dimensions together."""
    response, position = _response(tally, group[0])
    marginal = response.marginal(position)
    cells = [response.cells(counts_of(tally, j), position) for j in group]
    counts = np.ascontiguousarray(cells[0] if len(cells) == 1 else np.concatenate(cells))
    answers, size = counts.sum(axis=1), len(cells[0])
    value, error = np.full((2, len(counts)), np.nan)
    some, several = answers > 0, answers > 1
    decoded = functional(marginal, name)
    law: SmallSampleLaw | None
    if marginal.indicator:
        for start in range(0, len(counts), size):
            own = slice(start, start + size)
            if answers[start]:
                value[own], variance = indicator_moments(counts[own], tally.n_reports, marginal)
                error[own] = np.sqrt(variance) if answers[start] > 1 else np.nan
        law = frequency_law(decoded, counts, error, tally.n_reports)
    else:
        value[some] = counts[some] @ decoded.decode / answers[some]
        if several.any():
            value[several], variance = value_moments(counts[several], tally.n_reports, decoded)
            error[several] = np.sqrt(variance)
        plain = name == "value" and not marginal.optional and marginal.law.shape[1] == 1
        law = mean_law(decoded, counts, error, tally.n_reports, noise=plain) if marginal.law.size else None
    made = {}
    for i, j in enumerate(group):
        rows = np.arange(i * size, (i + 1) * size)
        made[j] = Part(
            j,
            (None,) if name == "present" else tally.survey.schema.dimensions[j].rows,
            value[rows],
            error[rows],
            int(answers[rows[0]]),
            scaled=not marginal.indicator and name == "value",
            small_sample=None if law is None else (law, rows),
        )
    return made


def _each(tally: TallyLike, j: int) -> Part:
    """Coordinates with different marginals: those of a channel that is enumerated."""
    response, position = _response(tally, j)
    counts, answers = _counts(tally, j)
    labels = tally.survey.schema.dimensions[j].rows
    value, error = np.full((2, len(labels)), np.nan)
    scaled = tally.survey.schema.dimensions[j].is_number
    laws = []
    for k in range(len(labels)):
        decoded = functional(response.marginal(position, k))
        if answers > 1:
            found, variance = value_moments(counts[None, :], tally.n_reports, decoded)
            value[k], error[k] = found[0], np.sqrt(variance[0])
        elif answers:
            value[k] = counts @ decoded.decode
        own = mean_law(decoded, counts[None, :], error[k : k + 1], tally.n_reports)
        laws.append((1, (own, np.zeros(1, np.int64))))
    law = joined(laws, np.ones(len(labels)), np.zeros(len(labels)))
    small_sample = None if law is None else (law, np.arange(len(labels)))
    return Part(j, labels, value, error, answers, scaled=scaled, small_sample=small_sample)


def _among_present(tally: TallyLike, j: int) -> Part:
    """The mean among users who have a value: a ratio of two means, with the delta method."""
    marginal = marginal_of(tally, j)
    counts, r = _counts(tally, j)
    value, present = marginal.decoders["value"], marginal.decoders["present"]
    mean, error, not_significant, small_sample = np.nan, np.nan, False, None
    if r > 1:
        share, share_error = _one(counts, tally.n_reports, functional(marginal, "present"))
        not_significant = not share > SIGNIFICANT * share_error
        mean = float(counts @ value) / r / share if share else np.nan
        # The residual value − mean·present has mean 0. Its variance over share² is that of the ratio to first order.
        if share:
            rest = functional(marginal, "value", float(np.clip(mean, -1.0, 1.0)))
            error = _one(counts, tally.n_reports, rest)[1] / abs(share)
        uncertain = not share > _CERTAIN * share_error
        law = ratio_law(marginal.rows, value, present, counts.astype(np.float64), error, uncertain)
        small_sample = law, np.zeros(1, np.int64)
    return Part(
        j,
        (None,),
        np.array([mean]),
        np.array([error]),
        r,
        scaled=True,
        not_significant=not_significant,
        small_sample=small_sample,
    )


def _one(counts: NDArray[np.int64], n_reports: int, decoded: Any) -> tuple[float, float]:
    mean, variance = value_moments(counts[None, :], n_reports, decoded)
    return float(mean[0]), float(np.sqrt(variance[0]))


# -- optional vectors: a vector x is encoded as (x, 0), and "no vector" as (0, −1) -----------------------------------
#
# Let y be the decoded number of one coordinate, and s that of the last one. The mean of y over all users is share·mean,
# the mean of 1 + s is the share of users who have a vector, and y·s has mean 0 for every user.


def _vector_moments(tally: TallyLike, j: int) -> tuple[int, Floats, Floats, float]:
    """The number of answers, mean and mean square of each decoded coordinate, and the least variance of a report."""
    response, position = _response(tally, j)
    marginal = response.marginal(position)
    own, r = _counts(tally, j)
    counts = response.cells(own, position).astype(np.float64)
    decode, least = marginal.decoders["value"], marginal.least_noise or 0.0
    nothing = np.full(len(counts), np.nan)
    return (r, counts @ decode / r, counts @ decode**2 / r, least) if r else (0, nothing, nothing, least)


def _share_of_vectors(tally: TallyLike, j: int) -> Part:
    """The share of users who have a vector: 1 plus the mean of the last coordinate."""
    r, mean, square, least = _vector_moments(tally, j)
    last = float(mean[-1])
    error = np.sqrt(max(float(square[-1]) - last**2, least) / (r - 1)) if r > 1 else np.nan
    return Part(j, (None,), np.array([1.0 + last]), np.array([error]), r)


def _vectors_among_present(tally: TallyLike, j: int) -> Part:
    """The ratio R = mean of y over the share, with the delta method.

    The residual y − R·(1 + s) has mean 0. Because E[y·s] = 0, its variance is E y² − 2R·E y + R²·E(1 + s)², which is at
    least that of the noise. In the residual R is clipped to [−1, 1], the range of the true ratio.
    """
    r, mean, square, least = _vector_moments(tally, j)
    labels = tally.survey.schema.dimensions[j].rows
    ratio = error = np.full(len(labels), np.nan)
    not_significant = False
    if r > 1:
        part = _share_of_vectors(tally, j)
        share, share_error = float(part.value[0]), float(part.error[0])
        not_significant = not share > SIGNIFICANT * share_error
        y, ratio = mean[:-1], mean[:-1] / (share or np.nan)
        clipped = np.clip(ratio, -1.0, 1.0)
        present = 1.0 + 2.0 * mean[-1] + square[-1]
        spread = square[:-1] - 2.0 * clipped * y + clipped**2 * present - (y - clipped * share) ** 2
        error = np.sqrt(np.maximum(spread, least * (1.0 + clipped**2)) / (r - 1)) / abs(share)
    return Part(j, labels, ratio, error, r, scaled=True, not_significant=not_significant)
