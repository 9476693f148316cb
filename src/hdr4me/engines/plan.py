"""A survey as the arrays that the exact kernels take: alias tables stacked, ranges as positions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.kernels.exact.alias import alias_table, columns_bits
from hdr4me.kernels.exact.perturb import Plan
from hdr4me.kernels.exact.positions import range_lines
from hdr4me.survey import Numeric, Product, Survey

__all__ = ["placing", "plan_of"]

_ONE = 65536.0
"""One row in fixed point."""


@lru_cache(maxsize=32)
def plan_of(survey: Survey) -> Plan:
    """The kernel's view of a survey whose answers are single bytes; a formula is not repeated here, only laid out.

    >>> from hdr4me.survey import Numeric, Schema
    >>> plan = plan_of(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
    >>> plan.ranges[0, :5].tolist() == [0, 65536 / 120, 0, 65536, 32768], plan.alike
    (True, True)
    """
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
    ranges = placing(survey, first)
    numeric = not any(dimension.categories for dimension in survey.schema)
    return Plan(
        n_sampled=survey.n_sampled,
        width=survey.slot_size - 2,
        bits=bits,
        table=np.concatenate(tables).ravel(),
        ranges=ranges,
        alike=numeric and bool((ranges == ranges[0]).all()),
        entries=entries,
        entry_row=entry_row,
    )


def input_plan(channel: Channel) -> Plan:
    """The plan of a question with integer rows whose only column holds the numbers of inputs."""
    rows, n_fields = channel.rows or (), len(channel.fields)
    bits = columns_bits(len(rows[0]))
    top = (channel.n_inputs - 1) * _ONE
    return Plan(
        n_sampled=1,
        width=channel.wire_size,
        bits=bits,
        table=alias_table(np.array(rows, np.int64), bits).ravel(),
        ranges=range_lines(np.zeros(1), _ONE, 0.0, top, 0.0),
        alike=False,
        entries=np.array([n_fields if n_fields > 1 else 0]),
        entry_row=np.zeros(1, np.int64),
    )


def placing(survey: Survey, first: NDArray[np.int64]) -> NDArray[np.float64]:
    """How each dimension's values become positions, its inputs counted from `first`: the kernel's five numbers."""
    d = len(survey.schema)
    low, scale, bottom, top, default = np.zeros((5, d))
    scale += 1.0
    for question in survey.questions:
        for j, take in zip(question.dimensions, question.channel.takes, strict=True):
            dimension, n_levels = survey.schema.dimensions[j], take.n_levels
            if not n_levels:
                continue  # a vector is not one number: the channel's response encodes it
            bottom[j] = first[j] * _ONE
            top[j] = bottom[j] + (n_levels - 1) * _ONE
            default[j] = bottom[j] + dimension.place(None, take.size)
            if isinstance(dimension, Product):  # its column holds numbers on [−1, 1]
                low[j], scale[j] = -1.0, (n_levels - 1) * _ONE / 2
            if isinstance(dimension, Numeric):
                low[j], span = dimension.low, (n_levels - 1) * _ONE
                scale[j] = span / (dimension.high - dimension.low)
                if not dimension.optional:
                    default[j] = bottom[j] + (dimension.default - low[j]) / (dimension.high - low[j]) * span
    return range_lines(low, scale, bottom, top, default)
