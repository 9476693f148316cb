"""One tiny run of everything, shared by the tests of claims, figures and report."""

from __future__ import annotations

import pytest

from hdr4me.paper.readings import DEFAULT
from hdr4me.paper.report import About
from hdr4me.paper.results import gather
from hdr4me.paper.runner import Settings, run_cells
from hdr4me.paper.studies import Scale, cells_for

TINY = Scale("tiny", fewer_dims=10, repeats=2, clt_repeats=60)


@pytest.fixture(scope="session")
def tiny():
    return TINY


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    work = tmp_path_factory.mktemp("work")
    return gather(run_cells(cells_for("all", TINY), Settings(seed=1), work))


@pytest.fixture(scope="session")
def about():
    return About(
        "hdr4me reproduce all --scale tiny", "tiny", 1, DEFAULT, 1, {"processor": "a processor"}, 1.0
    )
