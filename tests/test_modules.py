"""How many source files a command runs may only fall: the ceilings are lowered when it does."""

from __future__ import annotations

from pathlib import Path

import pytest

import modules

CEILINGS = {"estimate": 60, "perturb": 55, "tally": 50, "plan": 55, "http": 14}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("modules")
    modules.prepare(made)
    return made


def test_a_command_runs_no_more_files_than_before(folder: Path) -> None:
    pytest.importorskip("starlette")
    found = {job: len(modules.files(job, folder)) for job in modules.JOBS}
    assert not {job: n for job, n in found.items() if n > CEILINGS[job]}
