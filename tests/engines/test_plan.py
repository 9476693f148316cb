"""The kernel's arrays say what the survey says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hdr4me.engines.general import plan_of
from hdr4me.kernels.exact.blocks import BOTTOM, DEFAULT, TOP
from hdr4me.survey import Numeric, Schema, Survey


def test_stacked_tables_reconstruct_every_weight(
    mixed_survey: Survey, alias_weights: Callable[..., Any]
) -> None:
    plan = plan_of(mixed_survey)
    rows = alias_weights(plan.table.reshape(-1, 1 << plan.bits), plan.bits)
    at = 0
    for channel in mixed_survey.channels:
        assert channel.rows is not None
        part = rows[at : at + len(channel.rows), : len(channel.rows[0])]
        assert part.tolist() == [list(row) for row in channel.rows]
        at += len(channel.rows)
    assert at == len(rows)
    assert (rows.sum(1) == 2**32).all()


def test_dimensions_point_to_their_rows(mixed_survey: Survey) -> None:
    plan = plan_of(mixed_survey)
    assert (plan.ranges[:, BOTTOM] / 65536).tolist() == [0, 2, 0]  # entries count categories from 0, and
    assert plan.entry_row.tolist()[2] == 5  # keep their two rows apart
    assert (plan.ranges[:, TOP] / 65536).tolist() == [1, 4, 3]
    assert np.allclose(plan.ranges[:, DEFAULT] / 65536, [30 / 120, 3, 1], rtol=0, atol=1e-12)
    assert plan.entries.tolist() == [0, 0, 4]
    assert plan.report_size == mixed_survey.report_size


def test_dimensions_are_alike_only_with_one_default() -> None:
    """A missing value must become its own dimension's default."""
    numbers = [Numeric(f"x{j}", 0, 1, default=default) for j, default in enumerate([0.25, 0.25, 0.75])]
    assert plan_of(Survey(Schema(numbers[:2]), mechanism="duchi")).alike
    assert not plan_of(Survey(Schema(numbers), mechanism="duchi")).alike
