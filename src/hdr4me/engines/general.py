"""Records to reports: by the compiled kernel if all answers are single bytes, otherwise by the channels' responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.channels.response import Records
from hdr4me.io.columns import Source
from hdr4me.kernels.exact.blocks import positions, range_lines
from hdr4me.kernels.exact.perturb import Columns, Plan, alias_table, columns_bits, perturb
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.survey import Numeric, Product, Survey
from hdr4me.survey.dimension import FRACTION_BITS

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
Vectors = Mapping[int, NDArray[np.float64]]
_ONE = 65536.0  # one row in fixed point


def perturb_source(source: Source, survey: Survey, *, threads: int = 1) -> Bytes:
    """Padded reports of records: by the compiled kernel if all answers are single bytes, otherwise by `perturb_any`."""
    if survey.byte_wise:
        return perturb(source.columns, plan_of(survey), source.n, threads=threads)
    return perturb_any(source.columns, survey, source.n, source.vectors, SecureDraws())


def perturb_any(columns: Columns, survey: Survey, n: int, vectors: Vectors, draws: SecureDraws) -> Bytes:
    """Padded reports uint8 [n, report_size] of n records, by the responses of the channels."""
    m, size = survey.sampled, survey.slot_size
    records = Records(columns, vectors, _ranges(survey))
    asked = _questions(survey, n, draws)
    reports = np.zeros((n, m, size), np.uint8)
    if len(survey.questions) > 1:
        reports[:, :, 0], reports[:, :, 1] = asked & 0xFF, asked >> 8
    narrow = not all(question.channel.response.wide for question in survey.questions)
    inputs = _inputs(records, survey, asked, draws) if narrow else asked
    for q, users, where in _by_question(asked, len(survey.questions)):
        dimensions, response = survey.questions[q].dimensions, survey.questions[q].channel.response
        encoded = response.encode(records, dimensions, users, draws) if response.wide else inputs[where]
        made = response.to_bytes(response.sample(encoded, draws))
        reports[(*where, slice(2, 2 + made.shape[1]))] = made
    return reports.reshape(n, survey.report_size)


def _by_question(questions: Numbers, n_questions: int) -> Iterator[tuple[int, Numbers, tuple[Any, Any]]]:
    """Each question with an answer, the users who answer it, and its positions in `asked`."""
    if n_questions == 1:  # a slice is much faster than an array of positions
        yield 0, np.arange(len(questions)), (slice(None), 0)
        return
    order = np.argsort(questions.astype(np.uint16), axis=None, kind="stable")
    bounds = np.searchsorted(questions.ravel()[order], np.arange(n_questions + 1))
    for q in np.flatnonzero(np.diff(bounds)).tolist():
        users, places = np.divmod(order[bounds[q] : bounds[q + 1]], questions.shape[1])
        yield q, users, (users, places)


def answers_of(channel: Channel, x: int, n: int) -> Numbers:
    """Outputs [n, fields] of n users with input x of this channel, drawn as in `perturb_source`."""
    response = channel.response
    if channel.rows is None or len(channel.inputs) > 1:
        return response.sample(response.inputs_of(x, n), SecureDraws())
    value, zero = np.array([float(x)]), np.zeros(1, np.int64)
    address = np.array([value.ctypes.data], np.uint64)
    lut, nothing = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    columns = Columns(address, zero, np.zeros(1, np.uint8), nothing, zero, lut, zero, zero, 0)
    bits, n_fields = columns_bits(len(channel.rows[0])), len(channel.fields)
    plan = Plan(
        sampled=1,
        width=channel.wire_size,
        bits=bits,
        table=alias_table(np.array(channel.rows, np.int64), bits).ravel(),
        ranges=range_lines(np.zeros(1), _ONE, 0.0, (channel.n_inputs - 1) * _ONE, 0.0),
        alike=False,
        entries=np.array([n_fields if n_fields > 1 else 0]),
        entry_row=zero,
    )
    return response.from_bytes(perturb(columns, plan, n)[:, 2:])


def _questions(survey: Survey, n: int, draws: SecureDraws) -> Numbers:
    """The questions [n, m] that each user answers, in increasing order."""
    if not survey.weighted:
        return np.asarray(draws.subsets(n, len(survey.questions), survey.sampled))
    ends = np.cumsum([question.weight for question in survey.questions])
    return np.searchsorted(ends, draws.below(int(ends[-1]), n), side="right")[:, None]


@lru_cache(maxsize=16)
def _ranges(survey: Survey) -> NDArray[np.float64]:
    return conversions(survey, np.zeros(len(survey.schema), np.int64))


def _inputs(records: Records, survey: Survey, asked: Numbers, draws: SecureDraws) -> Numbers:
    """The inputs [n, m] of the channels: each value is encoded, rounded randomly, and combined with the others."""
    each = [
        [] if q.channel.response.wide else list(zip(q.dimensions, q.channel.inputs, strict=True))
        for q in survey.questions
    ]
    inputs = np.zeros(asked.shape, np.int64)
    for k in range(max(map(len, each))):
        dims = np.array([own[min(k, len(own) - 1)][0] if own else 0 for own in each])
        sizes = np.array([own[k][1].size if k < len(own) else 1 for own in each])
        place = _places(records, dims[asked])
        fraction = draws.halves(place.size).reshape(place.shape)
        level = (place >> FRACTION_BITS) + (fraction < (place & ((1 << FRACTION_BITS) - 1)))
        inputs = inputs * sizes[asked] + np.where(sizes[asked] > 1, level, 0)
    return inputs


def _places(records: Records, dims: Numbers) -> Numbers:
    """The positions of dimensions dims [n, m] of each record, from the kernel that cleans values."""
    n, m = dims.shape
    nothing = np.zeros(len(records.ranges), np.int64)
    plan = Plan(m, 1, 0, np.zeros(1, np.uint32), records.ranges, False, nothing, nothing)
    out = np.empty(n * m, np.int64)  # more than 65,536 inputs do not fit into 16.16 bits
    positions(records.columns, plan, dims.astype(np.uint16).ravel(), 0, n, np.empty(n * m), out)
    return out.reshape(n, m)


# -- a survey as arrays for the kernels -----------------------------------------------------------------


@lru_cache(maxsize=32)
def plan_of(survey: Survey) -> Plan:
    """The arrays of a survey for the kernel, if all answers are single bytes."""
    channels = survey.channels
    rows = [channel.rows or () for channel in channels]
    bits = columns_bits(max(len(table[0]) for table in rows))
    tables = [alias_table(np.array(table, np.int64), bits) for table in rows]
    ends = np.cumsum([0, *map(len, tables)]).tolist()
    first_row = {id(channel): first for channel, first in zip(channels, ends, strict=False)}
    d = len(survey.questions)
    entries, entry_row, first = np.zeros((3, d), np.int64)
    for j, question in enumerate(survey.questions):
        first[j] = first_row[id(question.channel)]
        if len(question.channel.fields) > 1:
            entries[j], entry_row[j], first[j] = len(question.channel.fields), first[j], 0
    ranges = conversions(survey, first)
    numeric = not any(dimension.categories for dimension in survey.schema)
    return Plan(
        sampled=survey.sampled,
        width=survey.slot_size - 2,
        bits=bits,
        table=np.concatenate(tables).ravel(),
        ranges=ranges,
        alike=numeric and bool((ranges == ranges[0]).all()),
        entries=entries,
        entry_row=entry_row,
    )


def conversions(survey: Survey, first: NDArray[np.int64]) -> NDArray[np.float64]:
    """The kernel's five numbers that convert the values of each dimension to positions, with inputs from `first` on."""
    d = len(survey.schema)
    low, scale, bottom, top, default = np.zeros((5, d))
    scale += 1.0
    for question in survey.questions:
        for j, input_ in zip(question.dimensions, question.channel.inputs, strict=True):
            dimension, n_levels = survey.schema.dimensions[j], input_.n_levels
            if not n_levels:
                continue  # the channel's response encodes a vector
            bottom[j] = first[j] * _ONE
            top[j] = bottom[j] + (n_levels - 1) * _ONE
            default[j] = bottom[j] + dimension.encode(None, input_.size)
            if isinstance(dimension, Product):  # its column holds numbers on [−1, 1]
                low[j], scale[j] = -1.0, (n_levels - 1) * _ONE / 2
            if isinstance(dimension, Numeric):
                low[j], span = dimension.low, (n_levels - 1) * _ONE
                scale[j] = span / (dimension.high - dimension.low)
                if not dimension.optional:
                    default[j] = bottom[j] + (dimension.fallback - low[j]) / (dimension.high - low[j]) * span
    return range_lines(low, scale, bottom, top, default)
