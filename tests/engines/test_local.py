"""This machine as an engine: what only it can do; the contract of every engine is in tests/contracts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.engines.local import prefetched
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import write_reports
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.tally import Tally


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_threads_are_checked(threads: int) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        Local(threads)


def test_uses_the_cores_it_has() -> None:
    assert Local().threads >= 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["numeric_survey", "mixed_survey"])
def test_a_matrix_in_memory(request: pytest.FixtureRequest, name: str, order: str) -> None:
    survey = request.getfixturevalue(name)
    values = np.asarray(np.ones((500, len(survey.schema))), order=order)
    tally = Tally(survey)
    for block in Local(2).reports(values, survey):
        tally.add_block(block)
    assert (tally.n_reports, tally.rejected) == (500, {})


def test_a_plain_matrix_uses_the_fast_kernel(numeric_survey: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = Survey.from_questions(
        Schema(Numeric(f"x{j}", -1, 1) for j in range(20)),
        epsilon=40.0,
        sampled=20,
        questions=[Question((j,), numeric_survey.channels[0]) for j in range(20)],
    )
    monkeypatch.setattr("hdr4me.engines.general.perturb_source", None)
    monkeypatch.setattr("hdr4me.io.reading.batch_rows", lambda survey: 40)
    blocks = list(Local(1).reports(np.zeros((100, 20), np.float32), everything))
    assert [len(block) for block in blocks] == [40, 40, 20]


def test_progress_adds_up(mixed_survey: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdr4me.io.reading.batch_rows", lambda survey: 100)
    table = pa.table({"age": [31] * 250, "colour": ["red"] * 250, "rooms": [1] * 250})
    steps: list[int] = []
    n = Local(1).perturb(table, mixed_survey, tmp_path / "r.arrow", progress=steps.append)
    assert (n, steps) == (250, [100, 100, 50])
    steps.clear()
    Local(2).tally([tmp_path / "r.arrow"] * 2, mixed_survey, progress=steps.append)
    assert sum(steps) == 500


def test_a_full_disk_leaves_nothing(
    mixed_survey: Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"age": range(9), "colour": ["red"] * 9, "rooms": [1] * 9})
    monkeypatch.setattr(
        "hdr4me.io.files.ReportWriter.write",
        lambda self, block: (_ for _ in ()).throw(OSError(28, "No space left")),
    )
    with pytest.raises(OSError, match="No space left"):
        Local(1).perturb(table, mixed_survey, tmp_path / "r.parquet")
    assert not list(tmp_path.iterdir())


def test_a_device_that_is_full(mixed_survey: Survey, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    target = tmp_path / "r.jsonl"
    target.symlink_to(full)
    table = pa.table({"age": range(9), "colour": ["red"] * 9, "rooms": [1] * 9})
    with pytest.raises(OSError, match="No space left"):
        Local(1).perturb(table, mixed_survey, target)


def test_input_cut_short_leaves_no_output(mixed_survey: Survey, tmp_path: Path) -> None:
    records = tmp_path / "records.csv"
    records.write_text("age,colour,rooms\n1,red,2\n1,red\n")
    with pytest.raises(FormatError):
        Local(1).perturb(records, mixed_survey, tmp_path / "r.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]


def test_bad_reports_go_to_quarantine_from_every_thread(mixed_survey: Survey, tmp_path: Path) -> None:
    slots = np.full((3, 3, mixed_survey.slot_size), 9, np.uint8)  # a code that no question has
    slots[:, :, 0], slots[:, :, 1] = np.arange(3), 0
    bad = slots.reshape(3, mixed_survey.report_size)
    paths = [tmp_path / f"{i}.arrow" for i in range(4)]
    for path in paths:
        with write_reports(path, mixed_survey) as writer:
            writer.write(bad)
    lines = tmp_path / "lines.jsonl"
    lines.write_text("no report\n{}\n" + Client(mixed_survey).report({}).to_json() + "\n")
    tally = Local(3).tally([*paths, lines], mixed_survey, quarantine=tmp_path / "bad.jsonl")
    assert tally.n_reports == 1
    assert sum(tally.rejected.values()) == 14
    assert len((tmp_path / "bad.jsonl").read_text().splitlines()) == 14
    with pytest.raises(FormatError):
        Local(1).tally([lines], mixed_survey, strict=True)


def test_ahead_keeps_order_and_errors() -> None:
    assert list(prefetched(iter(range(100)))) == list(range(100))

    def broken() -> object:
        yield 1
        raise ValueError("broken")

    stream = prefetched(broken())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)


def test_the_wrong_way_round_is_named(mixed_survey: Survey) -> None:
    """Data first, survey second; and records are a file, a table or a matrix."""
    with pytest.raises(InvalidInput, match="must be a Survey"):
        Local(1).reports(mixed_survey, {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a Survey"):
        Local(1).tally(mixed_survey, [])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="records of type dict"):
        list(Local(1).reports({"age": [1]}, mixed_survey))


def test_a_wide_dimension_is_sampled_as_often_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks have words for two average records: when they run out, it must not be for the wide dimension's sake.

    A binomial count within six standard deviations, unseeded by design: a false alarm in 500 million.
    """
    monkeypatch.setattr("hdr4me.kernels.exact.perturb.BLOCK", 400)
    wide = Categorical("c", [str(k) for k in range(200)])
    schema = Schema([*(Numeric(f"x{j}", 0, 1) for j in range(4)), wide])
    survey = Survey(schema, epsilon=1.0, sampled=1, mechanism="duchi", categorical="oue")
    n = 40_000
    reports = np.concatenate(list(Local(1).reports(np.zeros((n, 5)), survey)))
    assert abs((reports[:, 0] == 4).sum() - n / 5) < 6 * np.sqrt(n * 0.2 * 0.8)


def test_a_folder_stands_for_every_file_in_it(mixed_survey: Survey, tmp_path: Path) -> None:
    """Suffixes of any case and folders inside; nothing is passed over but hidden names."""
    blocks = {
        name: next(
            iter(Local(1).reports(pa.table({"age": [i], "colour": ["red"], "rooms": [1]}), mixed_survey))
        )
        for i, name in enumerate(
            ["a.parquet", "c.PARQUET", "day=2/b.parquet", "_old/d.parquet", ".e.parquet"]
        )
    }
    for name, block in blocks.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with write_reports(tmp_path / "x.parquet", mixed_survey) as writer:
            writer.write(block)
        (tmp_path / "x.parquet").rename(tmp_path / name)
    assert Local(threads=1).tally(tmp_path, mixed_survey).n_reports == 3
    assert Local(threads=2).tally([tmp_path, tmp_path / "_old"], mixed_survey).n_reports == 4
    (tmp_path / "notes.txt").write_text("not reports")
    with pytest.raises(FormatError, match=r"notes\.txt is not a file of reports"):
        Local(threads=1).tally(tmp_path, mixed_survey)
