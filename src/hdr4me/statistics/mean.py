"""The mean of a number or a vector; of an optional one the share of users who have it, and the mean among those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, Table
from hdr4me.statistics.blocks import block_mean, is_block
from hdr4me.statistics.calibrate import value_moments
from hdr4me.statistics.few import few_means, few_ratio
from hdr4me.statistics.moments import Moments
from hdr4me.statistics.statistic import SURELY, Counted, Part, Statistic
from hdr4me.statistics.vectors import is_codebook, is_optional_vector, mean_vector, share_of_vectors
from hdr4me.survey import Dimension

__all__ = ["MEAN", "SHARE"]

Floats = NDArray[np.float64]
_FIRST = np.zeros(1, np.int64)


class Mean(Statistic):
    """The mean of the values, or of those who have one."""

    name = "mean"
    by_default = True

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        if is_codebook(channel):
            return dimension.reads == "vector"
        if dimension.reads not in ("number", "optional"):
            return False
        return isinstance(channel, Table) or is_block(channel)

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        alike: dict[int, list[int]] = {}
        for j in dimensions:
            alike.setdefault(id(_channel(counted, j)), []).append(j)
        found: dict[int, Part] = {}
        for group in alike.values():
            if is_codebook(_channel(counted, group[0])):
                found |= {j: mean_vector(counted, j) for j in group}
                continue
            if is_block(_channel(counted, group[0])):
                found |= {j: block_mean(counted, j) for j in group}
                continue
            plain = [j for j in group if [take.reads for take in _channel(counted, j).takes] == ["number"]]
            found |= _plain(counted, plain)
            found |= {j: _decoded(counted, j) for j in group if j not in found}
        return [found[j] for j in dimensions]


class Share(Statistic):
    """The share of users who have a value of an optional number, or an optional vector."""

    name = "share"
    by_default = True

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        if is_codebook(channel):
            return is_optional_vector(dimension)
        return isinstance(channel, Table) and dimension.reads == "optional"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        made = []
        for j in dimensions:
            if is_codebook(_channel(counted, j)):
                made.append(share_of_vectors(counted, j))
                continue
            counts, table, suffix = _counts(counted, j)
            r = int(counts.sum())
            moments = Moments(table, "present" + suffix)
            mean, error = _mean_and_error(counts, counted.n_reports, moments)
            law = few_means(
                moments,
                np.array(table.decoders["present" + suffix]),
                counts[None],
                np.array([error]),
                counted.n_reports,
            )
            made.append(Part(j, (None,), np.array([mean]), np.array([error]), r, few=(law, _FIRST)))
        return made


MEAN, SHARE = Mean(), Share()


def _channel(counted: Counted, j: int) -> Channel:
    survey = counted.survey
    return survey.questions[survey.question_of(j)].channel


def _counts(counted: Counted, j: int) -> tuple[Floats, Table, str]:
    """The counters of the question that asks for dimension j, its table, and how its decoders' names end."""
    q = counted.survey.question_of(j)
    question = counted.survey.questions[q]
    number = question.dimensions.index(j) + 1
    assert isinstance(question.channel, Table)
    counts = counted.layout.of_question(counted.counts, q).astype(np.float64)
    return counts, question.channel, f" {number}" if number > 1 else ""


def _plain(counted: Counted, dimensions: list[int]) -> dict[int, Part]:
    """Numbers with a table of their own, all with the same one: many dimensions at once."""
    if not dimensions:
        return {}
    survey, layout = counted.survey, counted.layout
    table = _channel(counted, dimensions[0])
    assert isinstance(table, Table)
    moments = Moments(table)
    questions = np.array([survey.question_of(j) for j in dimensions])
    counts = counted.counts[layout.offsets[questions][:, None] + np.arange(table.n_cells)]
    answers = counts.sum(axis=1)
    mean, variance = np.full((2, len(dimensions)), np.nan)
    some, several = answers > 0, answers > 1
    mean[some] = counts[some] @ moments.decode / answers[some]
    mean[several], variance[several] = value_moments(counts[several], counted.n_reports, moments)
    error = np.sqrt(variance)
    law = few_means(moments, moments.decode, counts.astype(np.float64), error, counted.n_reports, noise=True)
    return {
        j: Part(
            j,
            (None,),
            mean[i : i + 1],
            error[i : i + 1],
            int(answers[i]),
            scaled=True,
            few=(law, np.array([i])),
        )
        for i, j in enumerate(dimensions)
    }


def _decoded(counted: Counted, j: int) -> Part:
    """A number that shares its table, or that is optional: decoded means, and their ratio by the delta method."""
    counts, table, suffix = _counts(counted, j)
    r = int(counts.sum())
    value = np.array(table.decoders["value" + suffix])
    if "present" + suffix not in table.decoders:
        moments = Moments(table, "value" + suffix)
        mean, error = _mean_and_error(counts, counted.n_reports, moments)
        law = few_means(moments, value, counts[None], np.array([error]), counted.n_reports)
        return Part(j, (None,), np.array([mean]), np.array([error]), r, scaled=True, few=(law, _FIRST))
    present = np.array(table.decoders["present" + suffix])
    share, share_error = _mean_and_error(counts, counted.n_reports, Moments(table, "present" + suffix))
    mean, error, unsure = np.nan, np.nan, True
    if r > 1:
        total = float(counts @ value) / r
        unsure = not share > SURELY * share_error
        mean = total / share if share else np.nan
        # The residual value − mean·present has mean 0; its variance over share² is the ratio's to first order.
        if share:
            rest = Moments(table, "value" + suffix, less=float(np.clip(mean, -1.0, 1.0)))
            error = _mean_and_error(counts, counted.n_reports, rest)[1] / abs(share)
    few = (few_ratio(Moments(table).probabilities, value, present, counts, error), _FIRST) if r > 1 else None
    return Part(
        j, (None,), np.array([mean]), np.array([error]), r, scaled=True, unsure=unsure and r > 1, few=few
    )


def _mean_and_error(counts: Floats, n_reports: int, moments: Moments) -> tuple[float, float]:
    """The mean of a decoder, and its standard error about the mean over the users who sent a report."""
    r = float(counts.sum())
    if r < 2:
        return float(counts @ moments.decode) / r if r else np.nan, np.nan
    mean, variance = value_moments(counts[None, :].astype(np.int64), n_reports, moments)
    return float(mean[0]), float(np.sqrt(variance[0]))
