"""One contract for every file format of reports: files round-trip, and damage is reported in one line."""

from __future__ import annotations

import contextlib
import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io import Rejected, read_reports, write_reports
from hdr4me.survey import Survey
from hdr4me.tally import Tally

FORMATS = ["parquet", "arrow", "feather", "jsonl"]


@pytest.fixture(params=FORMATS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"reports.{request.param}"


def write(path: Path, survey: Survey, *blocks: np.ndarray) -> None:
    with write_reports(path, survey) as writer:
        for block in blocks:
            writer.write(block)


def read(path: Path, survey: Survey, **options: object) -> np.ndarray:
    blocks = list(read_reports(path, survey, **options))  # type: ignore[arg-type]
    return np.concatenate([np.empty((0, survey.report_size), np.uint8), *blocks])


def test_what_is_written_is_read(path: Path, mixed: Survey, some_reports: np.ndarray) -> None:
    write(path, mixed, some_reports[:700], some_reports[:0], some_reports[700:])
    assert np.array_equal(read(path, mixed), some_reports)


def test_blocks_are_no_larger_than_asked_for(path: Path, mixed: Survey, some_reports: np.ndarray) -> None:
    write(path, mixed, some_reports)
    sizes = [len(block) for block in read_reports(path, mixed, block_rows=64)]
    assert max(sizes) <= 64
    assert sum(sizes) == 1000


def test_views_and_slices_can_be_written(path: Path, mixed: Survey, some_reports: np.ndarray) -> None:
    write(path, mixed, some_reports[::2])
    assert np.array_equal(read(path, mixed), some_reports[::2])


def test_another_survey_names_both(
    path: Path, mixed: Survey, other: Survey, some_reports: np.ndarray
) -> None:
    write(path, mixed, some_reports)
    with pytest.raises(FingerprintMismatch) as caught:
        read(path, other, on_rejected=lambda _: None)
    assert mixed.fingerprint[:12] in str(caught.value)
    assert other.fingerprint[:12] in str(caught.value)


@pytest.mark.parametrize("shape", [(3, 9), (10,), (1, 2, 5)])
def test_a_block_of_the_wrong_shape_makes_no_file(path: Path, mixed: Survey, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="expected uint8"):
        write(path, mixed, np.zeros(shape, np.uint8))
    with pytest.raises(InvalidInput, match="expected uint8"):
        write(path, mixed, np.zeros((3, 10), np.int64))
    assert not list(path.parent.iterdir())


def test_a_failure_while_writing_leaves_the_old_file(
    path: Path, mixed: Survey, some_reports: np.ndarray
) -> None:
    write(path, mixed, some_reports[:10])

    def fail() -> None:
        with write_reports(path, mixed) as writer:
            writer.write(some_reports)
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert np.array_equal(read(path, mixed), some_reports[:10])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_disk_that_fills_up(path: Path, mixed: Survey, some_reports: np.ndarray) -> None:
    """A limit on the size of files stands for the full disk: an OSError, and nothing left behind."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large|Errno 27"):
            write(path, mixed, *[some_reports] * 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(path.parent.iterdir())


def test_missing_and_empty_files(path: Path, mixed: Survey) -> None:
    with pytest.raises(FileNotFoundError):
        read(path, mixed)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match=r"contains no reports|is empty"):
        read(path, mixed)


def test_a_file_without_reports(path: Path, mixed: Survey) -> None:
    """A file that was cut or damaged must not look like a day without users: no reports are an error."""
    write(path, mixed)
    with pytest.raises(FormatError, match=r"contains no reports|is empty"):
        read(path, mixed)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.999])
def test_a_file_cut_short(path: Path, mixed: Survey, some_reports: np.ndarray, share: float) -> None:
    """Binary formats notice; of JSON lines only the last can be cut, and it is rejected."""
    write(path, mixed, some_reports)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    if path.suffix == ".jsonl":
        seen: list[Rejected] = []
        rows = read(path, mixed, on_rejected=seen.append)
        assert np.array_equal(rows, some_reports[: len(rows)])
        assert len(seen) == 1
    with pytest.raises(FormatError) as caught:
        read(path, mixed)
    assert "\n" not in str(caught.value)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_round_trip_of_any_valid_reports(
    mixed: Survey, tmp_path_factory: pytest.TempPathFactory, data
) -> None:
    dimensions = st.lists(st.integers(0, 3), min_size=2, max_size=2, unique=True).map(sorted)
    rows = []
    for dims in data.draw(st.lists(dimensions, min_size=1, max_size=5)):
        row = b""
        for j in dims:
            bounds = [field.bound for field in mixed.questions[j].channel.fields]
            codes = [data.draw(st.integers(0, bound - 1)) for bound in bounds]
            row += bytes([j, 0, *codes]).ljust(mixed.slot_size, b"\0")
        rows.append(np.frombuffer(row, np.uint8))
    block = np.stack(rows)
    folder = tmp_path_factory.mktemp("reports")
    for suffix in FORMATS:
        write(folder / f"a.{suffix}", mixed, block)
        assert np.array_equal(read(folder / f"a.{suffix}", mixed), block)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_files_are_refused_or_counted(
    path: Path, mixed: Survey, some_reports: np.ndarray, data
) -> None:
    """Some bytes changed, deleted or inserted: FormatError, or every report is counted or rejected."""
    write(path, mixed, some_reports[:50])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        match data.draw(st.sampled_from(["change", "cut", "insert", "truncate"])):
            case "change":
                content[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del content[at : at + data.draw(st.integers(1, 9))]
            case "insert":
                content[at:at] = data.draw(st.binary(min_size=1, max_size=9))
            case "truncate":
                del content[at + 1 :]
    path.write_bytes(content)
    tally = Tally(mixed)
    with contextlib.suppress(FormatError):
        tally.add_file(path)
    assert sum(tally.n_answers(q) for q in range(4)) == 2 * tally.n_reports
