"""Workers, interruptions and seeds: none of them changes a number, except the seed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hdr4me.paper import runner
from hdr4me.paper.cells import Cell
from hdr4me.paper.runner import Settings, finished_cells, run_cells
from hdr4me.paper.studies import AnyCell
from hdr4me.paper.theory import CltCell

CELLS: list[AnyCell] = [
    Cell("fig4", "gaussian", "laplace", 0.8, 400, 8, 3),
    Cell("fig4", "gaussian", "square_wave", 100.0, 400, 8, 3),
    Cell("fig4", "poisson", "piecewise", 0.8, 400, 6, 3),
    Cell("fig5", "cov19", "piecewise", 0.8, 384, 60, 2),
    CltCell("fig3", "square_wave", 0.1, 100, 100, 100, 20),
]


def _plain(results):
    return [replace(result, seconds=0.0) for result in results]


def test_any_number_of_workers_gives_the_same_numbers(tmp_path):
    one = run_cells(CELLS, Settings(seed=5), tmp_path / "one", workers=1)
    two = run_cells(list(reversed(CELLS)), Settings(seed=5), tmp_path / "two", workers=2)
    assert _plain(one) == _plain(reversed(two))


@pytest.mark.usefixtures("one_rule")
def test_another_seed_gives_other_numbers(tmp_path):
    one, two = (run_cells(CELLS[:1], Settings(seed=s), tmp_path) for s in (1, 2))
    assert one[0].outcomes[0].mse != two[0].outcomes[0].mse


@pytest.mark.usefixtures("one_rule")
def test_finished_cells_are_kept_and_the_data_are_not(tmp_path, monkeypatch):
    stated: list[int] = []
    assert finished_cells(CELLS[:3], Settings(), tmp_path) == 0
    first = run_cells(CELLS[:3], Settings(), tmp_path, advance=stated.append)
    assert sum(stated) == sum(cell.cost for cell in CELLS[:3])
    assert not list(tmp_path.glob("*.f32"))
    assert finished_cells(CELLS, Settings(), tmp_path) == 3

    def refuse(*_):
        raise AssertionError("a finished cell was run again")

    monkeypatch.setattr(runner, "run_cell", refuse)
    stated.clear()
    assert run_cells(CELLS[:3], Settings(), tmp_path, advance=stated.append) == first
    assert sum(stated) == sum(cell.cost for cell in CELLS[:3])
    with pytest.raises(AssertionError, match="run again"):
        run_cells(CELLS[:1], Settings(seed=9), tmp_path)


@pytest.mark.usefixtures("one_rule")
def test_an_interruption_keeps_what_was_finished(tmp_path, monkeypatch):
    real = runner.run_cell  # type: ignore[attr-defined]
    done = []

    def stop_after_one(cell, *rest):
        if done:
            raise KeyboardInterrupt
        done.append(cell)
        return real(cell, *rest)

    monkeypatch.setattr(runner, "run_cell", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        run_cells(CELLS[:3], Settings(), tmp_path)
    monkeypatch.setattr(runner, "run_cell", real)
    assert len(list(tmp_path.glob("fig4-*.json"))) == 1
    whole = run_cells(CELLS[:3], Settings(), tmp_path)
    assert _plain(whole) == _plain(run_cells(CELLS[:3], Settings(), tmp_path / "anew"))


@pytest.mark.usefixtures("one_rule")
def test_normalisation_is_part_of_a_cell_s_identity(tmp_path):
    one, two = (run_cells(CELLS[2:3], Settings(normalize=way), tmp_path)[0] for way in ("min-max", "fixed"))
    assert (one.normalization, two.normalization) == ("min-max", "fixed")
    assert one.outcomes[0].mse != two.outcomes[0].mse


def test_the_embeddings_file_is_used_where_it_is_given(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("".join(f"u{i},{i % 7},{(3 * i) % 11},{i % 2}\n" for i in range(50)))
    cell = Cell("fig5", "cov19", "laplace", 0.8, 384, 5, 2)
    found = run_cells([cell], Settings(cov19=str(path)), tmp_path / "w")[0]
    assert (found.title, found.stand_in, found.cell.users, found.cell.dims) == ("e.csv", False, 50, 5)


@pytest.mark.usefixtures("one_rule")
def test_the_naive_mean_has_the_predicted_distribution(tmp_path):
    """Six standard errors of the framework's own law of the MSE: a false alarm in about 1e8."""
    cells = [
        Cell("fig4", "gaussian", name, 10.0, 500, 10, 40) for name in ("laplace", "piecewise", "square_wave")
    ]
    for result in run_cells(cells, Settings(), tmp_path):
        naive = result.outcomes[0]
        assert naive.method == "naive"
        assert abs(naive.mse - result.predicted_mse) < 6 * naive.standard_error


@pytest.mark.usefixtures("one_rule")
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"cell": {}}', "null"])
def test_a_damaged_cell_is_run_again(tmp_path, damage):
    first = run_cells(CELLS[:2], Settings(), tmp_path)
    path = next(tmp_path.glob("fig4-gaussian-laplace-*.json"))
    path.write_text(damage)
    assert finished_cells(CELLS[:2], Settings(), tmp_path) == 1
    assert _plain(run_cells(CELLS[:2], Settings(), tmp_path)) == _plain(first)


@pytest.mark.usefixtures("one_rule")
def test_the_file_of_another_cell_is_not_taken(tmp_path):
    first = run_cells(CELLS[:2], Settings(), tmp_path)
    one, two = (next(tmp_path.glob(f"fig4-gaussian-{name}-*.json")) for name in ("laplace", "square_wave"))
    one.write_text(two.read_text())
    assert _plain(run_cells(CELLS[:2], Settings(), tmp_path)) == _plain(first)


@pytest.mark.usefixtures("one_rule")
def test_orphans_in_the_work_folder_are_ignored(tmp_path):
    """A data set without its description, a half-written one, and what an interruption leaves behind."""
    for name in ("gaussian-0123.f32", "x.rows", ".a.json.0123.part"):
        (tmp_path / name).write_bytes(b"half")
    cell = CELLS[0]
    stored = runner._data_key(cell, Settings())
    (tmp_path / f"{stored}.f32").write_bytes(b"too short")
    (tmp_path / f"{stored}.json").write_text("{}")
    (found,) = run_cells([cell], Settings(), tmp_path)
    assert found.cell == cell
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
