"""Clients and engines have the law of the channel for every derived input (10⁶ reports: benchmarks/derived_law.py)."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "derived_law.py"
SPEC = importlib.util.spec_from_file_location("derived_law", PATH)
assert SPEC is not None
assert SPEC.loader is not None
law = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(law)

pytestmark = pytest.mark.no_cover
REPORTS = 12_000


def check(reports: Any, kind: str) -> None:
    """Chi-square of all outputs; the randomness is the system's, and a false alarm has probability 10⁻⁶."""
    survey = law.survey_of(kind)
    assert law.p_value(survey, reports(survey, REPORTS))[0] > 1e-6


@pytest.mark.parametrize("kind", law.DIMENSIONS)
def test_python_and_local(kind: str) -> None:
    check(law.by_python, kind)
    check(law.by_local, kind)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize("kind", law.DIMENSIONS)
def test_javascript(kind: str) -> None:
    check(law.by_javascript, kind)


@pytest.mark.spark
def test_spark(spark_session: Any) -> None:
    for kind in law.DIMENSIONS:
        check(law.by_spark(spark_session), kind)


def test_a_wrong_law_is_found() -> None:
    """Reports of other records: each record has the output of the next one."""
    survey = law.survey_of("bucket")
    assert law.p_value(survey, law.by_local(survey, REPORTS + 1)[1:])[0] < 1e-6
