"""What a line of JSON is: one rule for files and for Spark's text columns."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.engines.spark_tally import count_batches, from_vector
from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io import Reason, Rejected, Report
from hdr4me.io.blocks import MOST_REJECTED
from hdr4me.io.files import read_blocks
from hdr4me.io.lines import longest_line
from hdr4me.survey import Survey
from hdr4me.tally import Tally

MARK = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def good(mixed: Survey) -> bytes:
    return Report(mixed.fingerprint, ((0, 2), (2, 1))).to_json().encode()


def cases(good: bytes, limit: int) -> dict[str, tuple[bytes, Reason | str]]:
    """Each kind of line, and what it is: counted, passed over, or rejected for a reason."""
    room = limit - len(good)
    return {
        "plain": (good, "counted"),
        "carriage return": (good + b"\r", "counted"),
        "long leading blanks": (b" " * (3 * limit) + good, "counted"),
        "long trailing blanks": (good + b"\t" * (3 * limit), "counted"),
        "byte order mark": (MARK + good, "counted"),
        "mark at the limit": (MARK + good[:-1] + b" " * room + b"}", "counted"),
        "at the limit": (good[:-1] + b" " * room + b"}", "counted"),
        "one over the limit": (good[:-1] + b" " * (room + 1) + b"}", Reason.MALFORMED),
        "far over the limit": (good[:-1] + b" " * (9 * limit) + b"}", Reason.MALFORMED),
        "more behind long blanks": (good + b" " * (3 * limit) + b"x", Reason.MALFORMED),
        "more behind longer blanks": (b" " * limit + good + b" " * (5 * limit) + b"x", Reason.MALFORMED),
        "blank": (b" \t", "passed over"),
        "long and blank": (b" " * (4 * limit), "passed over"),
        "only a mark": (MARK, "passed over"),
        "two marks": (MARK + MARK + good, Reason.MALFORMED),
        "not UTF-8": (b"{\xff}", Reason.MALFORMED),
        "not UTF-8 inside": (good.replace(b'survey":"', b'survey":"\xff'), Reason.MALFORMED),
        "UTF-16": (good.decode().encode("utf-16-be"), Reason.MALFORMED),
        "no-break space": ("\N{NO-BREAK SPACE}".encode() + good, Reason.MALFORMED),
    }


NAMES = list(cases(b"{}", 10))


@pytest.mark.parametrize("name", NAMES)
def test_a_line_is_the_same_in_a_file_and_in_a_column(
    mixed: Survey, good: bytes, tmp_path: Path, name: str
) -> None:
    line, expected = cases(good, longest_line(mixed))[name]
    path = tmp_path / "r.jsonl"
    path.write_bytes(good + b"\n" + line + b"\n" + good)
    in_file: list[Rejected] = []
    tally = Tally(mixed).add_file(path, on_rejected=in_file.append)
    raw = pa.array([good, line, good], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())  # as Spark hands it over, UTF-8 or not
    column = pa.RecordBatch.from_arrays([text], names=["value"])
    *bad, last = count_batches([column], mixed, keep=True, where="here")
    in_column = [row for batch in bad for row in batch.to_pylist()]
    assert from_vector(np.frombuffer(last.column("partial")[0].as_buffer(), "<i8"), mixed) == tally
    assert tally.n_reports == (3 if expected == "counted" else 2)
    assert [one.reason for one in in_file] == ([expected] if isinstance(expected, Reason) else [])
    assert [row["content"] for row in in_column] == [one.content for one in in_file]
    assert all(one.where.endswith("line 2") for one in in_file)
    assert all(row["where"] == "here, row 2" for row in in_column)


def test_line_numbers_count_blank_lines(mixed: Survey, good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n\n" + good + b"\n \nx\n\n\ny")
    seen: list[Rejected] = []
    Tally(mixed).add_file(path, on_rejected=seen.append)
    assert [one.where for one in seen] == [f"{path}, line 5", f"{path}, line 8"]


def test_bad_lines_are_handed_on_as_they_come(mixed: Survey, good: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(good + b"\n" + b"x\n" * 40_000)
    seen = 0
    tracemalloc.start()
    for block in read_blocks(path, mixed):
        assert len(block.rejected) <= MOST_REJECTED
        seen += len(block.rejected)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 40_000
    assert peak < 8 << 20


def test_rejected_lines_reach_their_handler_before_the_file_is_refused(mixed: Survey, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"x\n" * 5000)
    seen: list[Rejected] = []
    with pytest.raises(FormatError, match="none of its 5000 lines"):
        Tally(mixed).add_file(path, on_rejected=seen.append)
    assert len(seen) == 5000


@pytest.mark.parametrize(
    "name", ["\x1b]0;owned\x07", "\u202efdp", "\x9b31m", "\ud800", [["deep"] * 3], 7, None], ids=repr
)
def test_a_foreign_fingerprint_cannot_control_a_terminal(mixed: Survey, tmp_path: Path, name: object) -> None:
    document = {"format": "hdr4me-report", "version": 1, "survey": name, "answers": []}
    (tmp_path / "r.jsonl").write_text(json.dumps(document))
    with pytest.raises(FingerprintMismatch) as caught:
        list(read_blocks(tmp_path / "r.jsonl", mixed))
    assert str(caught.value).isprintable()


def test_a_rejected_report_cannot_control_a_terminal() -> None:
    assert str(Rejected(Reason.MALFORMED, "a\x1b[2J, line 1", "\x1b[31m\u2066")).isprintable()


def test_a_deeply_nested_fingerprint(mixed: Survey, tmp_path: Path) -> None:
    """Nested as deep as a line can hold: rejected or refused, never a RecursionError."""
    limit = longest_line(mixed)
    head, tail = '{"format":"hdr4me-report","version":1,"answers":[],"survey":', "}"
    for depth in (10, 100, (limit - len(head) - 1) // 2):
        (tmp_path / "r.jsonl").write_text(head + "[" * depth + "]" * depth + tail)
        with pytest.raises(FormatError):
            list(read_blocks(tmp_path / "r.jsonl", mixed))
