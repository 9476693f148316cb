"""The standard error of vectors has the divisor n − 1 of a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.io import read_reports

GOLDEN = Path(__file__).parents[1] / "golden" / "kinds"


def rows_of(name: str) -> tuple[hd.Survey, np.ndarray]:
    """Reports from a file that never changes."""
    survey = hd.Survey.load(GOLDEN / f"{name}.survey.json")
    rows = np.concatenate(list(read_reports(GOLDEN / f"{name}.parquet", survey)))
    return survey, rows


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_error_of_a_small_sample_is_the_sample_one(n: int) -> None:
    """One report alone is an unbiased answer; the error of n is the sample's standard deviation over √n."""
    survey, rows = rows_of("vectors")
    each = np.array([hd.Tally(survey).add_block(rows[i : i + 1]).estimate().value for i in range(n)])
    answer = hd.Tally(survey).add_block(rows[:n]).estimate()
    np.testing.assert_allclose(answer.value, each.mean(0), rtol=1e-9)
    np.testing.assert_allclose(answer.standard_error, each.std(0, ddof=1) / np.sqrt(n), rtol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_the_error_of_the_share_is_that_of_the_sample_and_at_least_the_noise(n: int) -> None:
    survey, rows = rows_of("optional_vectors")
    each = [hd.Tally(survey).add_block(rows[i : i + 1]).ask("share", "v").value[0] for i in range(n)]
    answer = hd.Tally(survey).add_block(rows[:n]).ask("share", "v")
    channel = survey.questions[survey.question_of(0)].channel
    least = channel.response.marginal().least_noise / (n - 1)
    assert answer.value[0] == pytest.approx(np.mean(each), rel=1e-9)
    assert answer.standard_error[0] ** 2 == pytest.approx(max(np.var(each, ddof=1) / n, least), rel=1e-9)
