"""The tally: exact merge laws, quarantine, checks at its edge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdr4me.client import Client
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io import Quarantine, Reason, Rejected, Report, refuse, write_reports
from hdr4me.io.arrow import schema_of
from hdr4me.io.report import fault, unpack
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps

BAD = {
    "unknown dimension": b"\x01\x00\x01\x00\x00\x04\x00\x01\x00\x01",
    "dimensions not distinct and increasing": b"\x01\x00\x01\x00\x00\x01\x00\x01\x00\x00",
    "code out of support": b"\x01\x00\x02\x00\x00\x03\x00\x01\x00\x01",
    "trailing bytes": b"\x01\x00\x01\x00\x01\x03\x00\x01\x00\x01",
}


def block(*rows: bytes) -> np.ndarray:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


def test_the_layout(mixed: Survey) -> None:
    layout = Tally(mixed).layout
    assert layout.offsets.tolist() == [0, 3, 5, 9, 15]
    assert layout.entries.tolist() == [1, 1, 1, 3]
    assert layout.cells.tolist() == [3, 2, 4, 2]
    assert layout.size == 15
    assert [len(layout.of_question(np.zeros(15, np.int64), q)) for q in range(4)] == [3, 2, 4, 6]


def test_one_report_counts_where_it_should(mixed: Survey) -> None:
    tally = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (3, 1, 0, 1)))])
    assert np.flatnonzero(tally.counts).tolist() == [2, 9 + 1, 9 + 2 + 0, 9 + 4 + 1]
    assert tally.n_reports == 1


def test_blocks_and_reports_give_the_same(mixed: Survey, some_reports: np.ndarray) -> None:
    reports = [Report(mixed.fingerprint, unpack(row.tobytes(), mixed)) for row in some_reports]
    one_by_one = Tally(mixed).add(reports)
    assert one_by_one == Tally(mixed).add_block(some_reports)
    assert one_by_one == Tally(mixed).add_block(some_reports, threads=2)


def test_many_reports_pass_through_several_blocks(mixed: Survey) -> None:
    report = Client(mixed).report({})
    assert Tally(mixed).add(report for _ in range(5000)).n_reports == 5000


@settings(deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=6).map(sorted), st.randoms())
def test_any_split_in_any_order_has_the_same_bytes(
    mixed: Survey, some_reports: np.ndarray, cuts, random
) -> None:
    parts = [Tally(mixed).add_block(part) for part in np.split(some_reports, cuts)]
    random.shuffle(parts)
    assert dumps(sum(parts)) == dumps(Tally(mixed).add_block(some_reports))  # type: ignore[arg-type]


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 999), max_size=20), st.lists(st.integers(0, 999), max_size=20), st.integers(0, 4)
)
def test_merge_laws(mixed: Survey, some_reports: np.ndarray, first, second, n_bad) -> None:
    bad = block(*list(BAD.values())[:n_bad]) if n_bad else np.empty((0, 10), np.uint8)
    a = Tally(mixed).add_block(some_reports[first]).add_block(bad)
    b = Tally(mixed).add_block(some_reports[second])
    c = Tally(mixed).add_block(bad)
    zero = Tally(mixed)
    assert a + zero == a == zero + a
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert sum([a, b, c]) == a + b + c


def test_merging_leaves_the_parts_alone(mixed: Survey, some_reports: np.ndarray) -> None:
    a, b = Tally(mixed).add_block(some_reports[:10]), Tally(mixed).add_block(some_reports[10:])
    total = a + b
    total.counts[:] = 0
    assert (a.n_reports, int(a.counts.sum())) == (
        10,
        int(Tally(mixed).add_block(some_reports[:10]).counts.sum()),
    )


def test_different_surveys_do_not_merge(mixed: Survey, other: Survey) -> None:
    with pytest.raises(FingerprintMismatch) as caught:
        Tally(mixed) + Tally(other)
    assert mixed.fingerprint[:12] in str(caught.value)
    assert other.fingerprint[:12] in str(caught.value)


def test_other_things_do_not_merge(mixed: Survey) -> None:
    with pytest.raises(TypeError):
        Tally(mixed) + 3  # type: ignore[operator]
    with pytest.raises(TypeError):
        3 + Tally(mixed)  # type: ignore[operator]
    with pytest.raises(TypeError):
        hash(Tally(mixed))
    assert Tally(mixed) != 3
    with pytest.raises(InvalidInput, match="Survey"):
        Tally("survey")  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", BAD)
def test_bad_reports_are_counted_by_reason(mixed: Survey, some_reports: np.ndarray, reason: str) -> None:
    mixture = np.concatenate([some_reports[:5], block(BAD[reason]), some_reports[5:9]])
    seen: list[Rejected] = []
    tally = Tally(mixed).add_block(mixture, on_rejected=seen.append, where="f")
    assert tally.rejected == {reason: 1}
    assert tally.n_reports == 9
    assert [(r.where, r.content) for r in seen] == [("f, row 6", BAD[reason].hex())]
    assert tally.counts.tolist() == Tally(mixed).add_block(some_reports[:9]).counts.tolist()
    assert Tally(mixed).add_block(mixture) == tally
    with pytest.raises(FormatError, match=reason):
        Tally(mixed).add_block(mixture, on_rejected=refuse)


def test_bad_report_objects(mixed: Survey, other: Survey) -> None:
    reports = [
        Report(other.fingerprint, ((0, 1), (1, 1))),
        Report(mixed.fingerprint, ((0, 1),)),
        Report(mixed.fingerprint, ((0, 1), (1, 1))),
    ]
    seen: list[Rejected] = []
    tally = Tally(mixed).add(reports, on_rejected=seen.append)
    assert tally.rejected == {"another survey": 1, "wrong number of answers or codes": 1}
    assert [r.where for r in seen] == ["report 1", "report 2"]
    assert "1 reports, 2 rejected" in repr(tally)
    with pytest.raises(InvalidInput, match="report 1 is a dict"):
        Tally(mixed).add([{}])  # type: ignore[list-item]


@given(st.binary(min_size=10, max_size=10) | st.lists(st.integers(0, 3), min_size=10, max_size=10).map(bytes))
def test_the_kernel_agrees_with_the_reference(mixed: Survey, row: bytes) -> None:
    """Valid for one is valid for the other, and the same reason where the plain validator can see one."""
    tally = Tally(mixed).add_block(block(row))
    slots = [row[:5], row[5:]]
    dims = [int.from_bytes(slot[:2], "little") for slot in slots]
    if max(dims) < 4:
        ends = [2 + mixed.questions[j].channel.wire_size for j in dims]
        answers = [(j, *slot[2:end]) for j, slot, end in zip(dims, slots, ends, strict=True)]
        reason = fault(answers, mixed)
        padded = any(any(slot[end:]) for slot, end in zip(slots, ends, strict=True))
        assert (tally.n_reports == 1) == (reason is None and not padded)
        if not padded and reason is not None:
            assert tally.rejected == {reason.text: 1}
    else:
        assert tally.n_reports == 0


@pytest.mark.parametrize("shape", [(3, 9), (10,)])
def test_a_block_has_the_survey_s_shape(mixed: Survey, shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="expected uint8"):
        Tally(mixed).add_block(np.zeros(shape, np.uint8))
    with pytest.raises(InvalidInput, match="expected uint8"):
        Tally(mixed).add_block(np.zeros((1, 10), np.int32))  # type: ignore[arg-type]


def test_a_file_with_bad_rows(even: Survey, simulate, tmp_path) -> None:
    path, bad = tmp_path / "a.parquet", tmp_path / "bad.jsonl"
    good = simulate(even, 1000, lambda j, users: np.zeros(len(users)), np.random.default_rng(3))
    rows = block(b"\0\0\0\3\0\0", b"\1\0\0\1\0\0", b"\0\0\0\1\0\2")
    reasons = {"unknown dimension", "dimensions not distinct and increasing", "code out of support"}
    with write_reports(path, even) as writer:
        writer.write(np.concatenate([good, rows]))
    with Quarantine(bad) as quarantine:
        tally = Tally(even).add_file(path, on_rejected=quarantine)
    assert tally.n_reports == 1000
    assert tally.rejected == dict.fromkeys(sorted(reasons), 1)
    assert bad.read_text().count("\n") == quarantine.n_written == 3
    assert f"{path}, row 1001" in bad.read_text()
    with pytest.raises(FormatError, match="row 1001: unknown dimension"):
        Tally(even).add_file(path, on_rejected=refuse)


def test_a_file_of_reports_of_different_sizes_with_bad_rows(
    mixed: Survey, some_reports: np.ndarray, wire, tmp_path
) -> None:
    """Without padding there are no trailing bytes: a report of a wrong length has a wrong number of codes."""
    rows = {
        "unknown dimension": b"\4\0\5\0",
        "dimensions not distinct and increasing": b"\1\0\0\1\0\0",
        "code out of support": b"\1\0\2\3\0\1\0\1",
        "wrong number of answers or codes": b"\1\0\1\3\0\1\0",
    }
    schema = schema_of(mixed)
    column = pa.array([*wire(some_reports[:20], mixed), *rows.values()], schema.field(0).type)
    pq.write_table(pa.table({"report": column}, schema=schema), tmp_path / "a.parquet")
    seen: list[Rejected] = []
    tally = Tally(mixed).add_file(tmp_path / "a.parquet", on_rejected=seen.append)
    assert tally.n_reports == 20
    assert tally.rejected == dict.fromkeys(sorted(rows), 1)
    assert sorted(r.where for r in seen) == [f"{tmp_path / 'a.parquet'}, row {20 + i}" for i in range(1, 5)]


def test_lines_with_bad_rows(mixed: Survey, some_reports: np.ndarray, tmp_path) -> None:
    path = tmp_path / "a.jsonl"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports[:3])
    with path.open("a") as file:
        file.write("not a report\n")
    tally = Tally(mixed).add_file(path)
    assert (tally.n_reports, tally.rejected) == (3, {Reason.MALFORMED.text: 1})
    with pytest.raises(FormatError, match="line 4: not a report"):
        Tally(mixed).add_file(path, on_rejected=refuse)


def test_too_many_reports(mixed: Survey) -> None:
    full = Tally(mixed)
    full.n_reports = 2**53
    with pytest.raises(InvalidInput, match="more than"):
        full.add_block(np.zeros((1, 10), np.uint8))
    with pytest.raises(InvalidInput, match="more than"):
        full + full


def test_one_report_is_not_many(mixed: Survey) -> None:
    with pytest.raises(InvalidInput, match="expected an iterable of reports"):
        Tally(mixed).add(Client(mixed).report({}))  # type: ignore[arg-type]
