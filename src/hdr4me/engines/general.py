"""Records to reports for surveys of any channels: questions drawn, values placed by the kernel, channels in NumPy.

Surveys whose answers are single bytes have a compiled kernel of their own (`hdr4me.kernels.exact.perturb`).
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.engines.plan import placing, plan_of
from hdr4me.engines.samplers import sample_many
from hdr4me.engines.secure import SecureDraws
from hdr4me.engines.wide import Vectors, is_wide, wide_inputs
from hdr4me.io.columns import Source
from hdr4me.kernels.exact.perturb import Columns, Plan, perturb
from hdr4me.kernels.exact.positions import positions
from hdr4me.survey import Survey
from hdr4me.survey.dimensions import FRACTION_BITS

__all__ = ["perturb_any", "perturb_source", "perturb_with"]

Numbers = NDArray[np.int64]


def perturb_source(source: Source, survey: Survey, *, threads: int = 1) -> NDArray[np.uint8]:
    """Padded reports of records: by the compiled kernel where every answer is single bytes, else by `perturb_any`."""
    if survey.byte_wise:
        return perturb(source.columns, plan_of(survey), source.n, threads=threads)
    return perturb_any(source.columns, survey, source.n, source.vectors)


def perturb_any(
    columns: Columns, survey: Survey, n: int, vectors: Vectors = MappingProxyType({})
) -> NDArray[np.uint8]:
    """Padded reports uint8 [n, report_size] of n records, with the system's randomness.

    Parameters
    ----------
    columns
        Where each dimension's values lie.
    survey
        What is asked.
    n
        How many records there are.
    vectors
        The values of each dimension that is a vector.
    """
    return perturb_with(columns, survey, n, vectors, SecureDraws())


def perturb_with(
    columns: Columns, survey: Survey, n: int, vectors: Vectors, draws: SecureDraws
) -> NDArray[np.uint8]:
    """The same with given draws: seeded ones are for simulation only."""
    m, size = survey.n_sampled, survey.slot_size
    asked = _questions(survey, n, draws)
    reports = np.zeros((n, m, size), np.uint8)
    if len(survey.questions) == 1:
        channel = survey.questions[0].channel
        if is_wide(channel):
            given = wide_inputs(columns, vectors, survey, 0, np.arange(n), draws)
        else:
            given = _inputs(columns, survey, asked, draws)[:, 0]
        reports[:, 0, 2 : 2 + channel.wire_size] = bytes_of(sample_many(channel, given, draws), channel)
        return reports.reshape(n, survey.report_size)
    reports[:, :, 0], reports[:, :, 1] = asked & 0xFF, asked >> 8
    order = np.argsort(asked.astype(np.uint16), axis=None, kind="stable")
    bounds = np.searchsorted(asked.ravel()[order], np.arange(len(survey.questions) + 1))
    inputs = _inputs(columns, survey, asked, draws)
    for q in np.flatnonzero(np.diff(bounds)).tolist():
        users, places = np.divmod(order[bounds[q] : bounds[q + 1]], m)
        channel = survey.questions[q].channel
        given = inputs[users, places]
        if is_wide(channel):
            given = wide_inputs(columns, vectors, survey, q, users, draws)
        outputs = sample_many(channel, given, draws)
        reports[users, places, 2 : 2 + channel.wire_size] = bytes_of(outputs, channel)
    return reports.reshape(n, survey.report_size)


def _questions(survey: Survey, n: int, draws: SecureDraws) -> Numbers:
    """The questions [n, m] that each user answers, in increasing order."""
    if not survey.weighted:
        return np.asarray(draws.subsets(n, len(survey.questions), survey.n_sampled))
    ends = np.cumsum([question.weight for question in survey.questions])
    return np.searchsorted(ends, draws.below(int(ends[-1]), n), side="right")[:, None]


def _inputs(columns: Columns, survey: Survey, asked: Numbers, draws: SecureDraws) -> Numbers:
    """The channels' inputs [n, m]: each dimension's value placed, rounded at random, and put together."""
    each = [() if is_wide(q.channel) else q.dimensions for q in survey.questions]
    most = max(map(len, each))
    inputs = np.zeros(asked.shape, np.int64)
    for k in range(most):
        dims = np.array([own[min(k, len(own) - 1)] if own else 0 for own in each])
        sizes = np.array(
            [
                q.channel.takes[k].size if k < len(own) else 1
                for q, own in zip(survey.questions, each, strict=True)
            ]
        )
        place = _places(columns, survey, dims[asked])
        fraction = draws.halves(place.size).reshape(place.shape)
        level = (place >> FRACTION_BITS) + (fraction < (place & ((1 << FRACTION_BITS) - 1)))
        inputs = inputs * sizes[asked] + np.where(sizes[asked] > 1, level, 0)
    return inputs


def _places(columns: Columns, survey: Survey, dims: Numbers) -> Numbers:
    """The positions of dimensions dims [n, m] of each record, by the kernel that reads and cleans values."""
    n, m = dims.shape
    d = len(survey.schema)
    nothing = np.zeros(d, np.int64)
    plan = Plan(
        n_sampled=m,
        width=1,
        bits=0,
        table=np.zeros(1, np.uint32),
        ranges=placing(survey, nothing),
        alike=False,
        entries=nothing,
        entry_row=nothing,
    )
    out = np.empty(n * m, np.int64)  # more than 65,536 inputs do not fit into 16.16 bits
    positions(columns, plan, dims.astype(np.uint16).ravel(), 0, n, np.empty(n * m), out)
    return out.reshape(n, m)


def bytes_of(outputs: Numbers, channel: Channel) -> NDArray[np.uint8]:
    """Fields [n, fields] as bytes [n, wire_size], little end first."""
    sizes = {field.size for field in channel.fields}
    if len(sizes) == 1:
        return np.ascontiguousarray(outputs.astype(f"<u{sizes.pop()}")).view(np.uint8)
    parts = [
        (outputs[:, column] >> 8 * byte & 0xFF).astype(np.uint8)
        for column, field in enumerate(channel.fields)
        for byte in range(field.size)
    ]
    return np.stack(parts, axis=1)
