"""One tiny run of every cell, shared by the tests of claims, figures and report; and published numbers read back."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hdr4me.client.lock import locked
from hdr4me.paper import methods
from hdr4me.paper.cells import Cell, CellResult, Outcome
from hdr4me.paper.methods import DEFAULT
from hdr4me.paper.report import About
from hdr4me.paper.runner import Settings, run_cells
from hdr4me.paper.studies import Results, Scale, cells_for, gather
from hdr4me.paper.theory import CltCell, CltResult, TheoryCell, TheoryResult

TINY = Scale("tiny", fewer_dims=10, repeats=2, clt_repeats=60)


@pytest.fixture(scope="session")
def tiny():
    return TINY


def _clipped(means, errors, method, slope, domain):
    """`auto` tries ten rules on every repeat, three quarters of a run's time; this is the rule that it begins with."""
    assert method == "auto"
    return SimpleNamespace(enhanced_mean=(means / slope).clip(*domain))


@pytest.fixture
def one_rule(monkeypatch):
    """For tests that do not look at the means of `auto`: clipping in its place."""
    monkeypatch.setattr(methods, "recalibrate", _clipped)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Every cell; no claim reads the outcome of `auto`. The processes of a run share one folder of finished cells."""
    temporary = tmp_path_factory.getbasetemp()
    work = (temporary.parent if "PYTEST_XDIST_WORKER" in os.environ else temporary) / "paper"
    work.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch, locked(work.with_name("paper.lock"), 600.0):
        patch.setattr(methods, "recalibrate", _clipped)
        return gather(run_cells(cells_for("all", TINY), Settings(seed=1), work))


@pytest.fixture(scope="session")
def about():
    return About(
        "hdr4me reproduce all --scale tiny", "tiny", 1, DEFAULT, 1, {"processor": "a processor"}, 1.0
    )


@pytest.fixture(scope="session")
def read_back():
    """Reads what a run published, so that its verdicts can be judged again from its own numbers."""

    def read(folder: Path) -> Results:
        with (folder / "numbers.csv").open(encoding="utf-8", newline="") as lines:
            cells = _cells_from_rows(csv.DictReader(lines))
        with (folder / "deviations.csv").open(encoding="utf-8", newline="") as lines:
            densities = tuple(_clt_of(row) for row in csv.DictReader(lines))
        return Results(cells, densities, _theory_from(folder / "theory.csv"))

    return read


def _clt_of(row: Mapping[str, str]) -> CltResult:
    """A panel of Figure 2 or 3, without its simulated deviations."""
    counts = {name: int(row[name]) for name in ("users", "dims", "sampled", "repeats")}
    numbers = ["true_mean", "bias", "sd", "paper_sd", "berry_esseen", "ks_distance", "ks_p_value"]
    return CltResult(
        cell=CltCell(row["figure"], row["mechanism"], float(row["epsilon"]), **counts),
        seed=int(row["seed"]),
        how=row["how"],
        **{name: float(row[name]) for name in numbers},
        seconds=0.0,
        deviations=(),
    )


def _theory_from(path: Path, seed: int = 1, repeats: int = 1000) -> tuple[TheoryResult, ...]:
    """The studies of a published `theory.csv`."""
    found: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["study"], {})[row["quantity"]] = float(row["value"])
    return tuple(
        TheoryResult(TheoryCell(study, repeats), seed, 0.0, numbers) for study, numbers in found.items()
    )


def _cells_from_rows(rows: Iterable[Mapping[str, str]]) -> tuple[CellResult, ...]:
    """Back from the lines of a CSV file of `rows_of`; the time each cell took is not in it."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        key = "/".join(row[name] for name in ("figure", "data", "mechanism", "epsilon", "dims"))
        found.setdefault(key, []).append(row)
    return tuple(_cell_of(lines) for lines in found.values())


def _cell_of(lines: Sequence[Mapping[str, str]]) -> CellResult:
    first = lines[0]

    def pair(name: str) -> tuple[float, float]:
        return float(first[f"{name}_1"]), float(first[f"{name}_2"])

    return CellResult(
        cell=Cell(
            figure=first["figure"],
            dataset=first["dataset"],
            mechanism=first["mechanism"],
            epsilon=float(first["epsilon"]),
            users=int(first["users"]),
            dims=int(first["dims"]),
            repeats=int(first["repeats"]),
        ),
        title=first["data"],
        stand_in=first["stand_in"] == "True",
        normalization=first["normalization"],
        seed=int(first["seed"]),
        how=first["how"],
        some_above=pair("some_above"),
        all_above=pair("all_above"),
        share_above=pair("share_above"),
        seconds=0.0,
        outcomes=tuple(
            Outcome(
                method=line["method"],
                width=line["width"],
                spread=line["spread"],
                reference=line["reference"],
                mse=float(line["mse"]),
                standard_error=float(line["standard_error"]),
                better=float(line["better"]),
                weight=float(line["weight"]) if line["weight"] else None,
                predicted_mse=float(line["predicted_mse"]) if line["predicted_mse"] else None,
            )
            for line in lines
        ),
    )
