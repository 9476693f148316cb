"""A survey as the arrays that the exact kernels take: alias tables stacked, ranges as positions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hdr4me.kernels.exact.alias import alias_table, columns_bits
from hdr4me.kernels.exact.perturb import Plan
from hdr4me.kernels.exact.positions import range_lines
from hdr4me.survey import Numeric, Survey

__all__ = ["plan_of"]

_ONE = 65536.0
"""One row in fixed point."""


@lru_cache(maxsize=32)
def plan_of(survey: Survey) -> Plan:
    """The kernel's view of a survey; a formula is not repeated here, only laid out.

    >>> from hdr4me.survey import Schema
    >>> plan = plan_of(Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi"))
    >>> plan.ranges[0, :5].tolist() == [0, 65536 / 120, 0, 65536, 32768], plan.alike
    (True, True)
    """
    bits = columns_bits(max(randomizer.n_cells for randomizer in survey.randomizers))
    tables = [alias_table(np.array(r.weights, np.int64), bits) for r in survey.randomizers]
    first_rows = np.cumsum([0, *map(len, tables)])
    d = len(survey.schema)
    low, scale, bottom, top, default = np.zeros((5, d))
    entries, entry_row = np.zeros((2, d), np.int64)
    scale += 1.0
    for j, dimension in enumerate(survey.schema):
        randomizer, first = survey.randomizer(j), int(first_rows[survey.assignment[j]])
        if isinstance(dimension, Numeric):
            span = (randomizer.n_levels - 1) * _ONE
            low[j], scale[j] = dimension.low, span / (dimension.high - dimension.low)
            bottom[j], top[j] = first * _ONE, first * _ONE + span
            default[j] = bottom[j] + (dimension.default - low[j]) / (dimension.high - low[j]) * span
            continue
        if randomizer.kind == "entries":
            entries[j], entry_row[j] = survey.n_codes(j), first
        else:
            bottom[j] = first * _ONE
        top[j] = bottom[j] + (len(dimension.categories) - 1) * _ONE
        default[j] = bottom[j] + dimension.index[dimension.default] * _ONE
    numeric = all(isinstance(dimension, Numeric) for dimension in survey.schema)
    ranges = range_lines(low, scale, bottom, top, default)
    return Plan(
        n_sampled=survey.n_sampled,
        width=survey.code_width,
        bits=bits,
        table=np.concatenate(tables).ravel(),
        ranges=ranges,
        alike=numeric and bool((ranges == ranges[0]).all()),
        entries=entries,
        entry_row=entry_row,
    )
