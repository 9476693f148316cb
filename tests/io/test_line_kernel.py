"""The kernel of JSON lines against the plain reader and writer: the same bytes out, and never another report in."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.io import Report, read_reports, write_reports
from hdr4me.io import lines as of_lines
from hdr4me.io.lines import _parsed, _shape, read_lines
from hdr4me.io.report import inspect, pack, prefix_of, unpack
from hdr4me.kernels.exact.lines import parse_lines


def survey_of(sampled: int) -> hd.Survey:
    """Tables, unary encoding, sets and fields of one and two bytes."""
    schema = hd.Schema(
        [
            hd.Numeric("a", 0, 1),
            hd.Categorical("b", range(12)),
            hd.Categorical("c", range(700)),
            hd.Categorical("d", range(3)),
        ]
    )
    return hd.Survey(schema, epsilon=1.5 * sampled, sampled=sampled, mechanism="duchi")


@pytest.fixture(params=[1, 3])
def survey(request: pytest.FixtureRequest) -> hd.Survey:
    return survey_of(request.param)


def some_rows(survey: hd.Survey, n: int = 300) -> np.ndarray:
    values = np.stack([np.linspace(0, 1, n), np.arange(n) % 12, np.arange(n) % 700, np.arange(n) % 3], axis=1)
    return np.concatenate(list(Local(threads=1).reports(values, survey)))


def test_lines_are_those_of_the_plain_writer(survey: hd.Survey, tmp_path: Path) -> None:
    rows = some_rows(survey)
    with write_reports(tmp_path / "r.jsonl", survey) as writer:
        writer.write(rows)
    plain = [Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_json() for row in rows]
    assert (tmp_path / "r.jsonl").read_text().splitlines() == plain
    read = np.concatenate(list(read_reports(tmp_path / "r.jsonl", survey)))
    assert np.array_equal(read, rows)


def test_the_kernel_parses_every_canonical_line(survey: hd.Survey) -> None:
    rows = some_rows(survey)
    text = "".join(
        Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_json() + "\n" for row in rows
    ).encode()
    shape = _shape(survey)
    assert shape is not None
    _, good, parsed = _parsed(text, len(text), survey, shape)
    assert good.all()
    assert np.array_equal(parsed, rows)


def test_a_changed_line_is_left_alone_or_is_what_the_plain_reader_says(survey: hd.Survey) -> None:
    """4,000 seeded changes of single bytes, insertions and deletions."""
    chance = random.Random(7)
    shape = _shape(survey)
    assert shape is not None
    lines = [
        Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_json().encode()
        for row in some_rows(survey, 40)
    ]
    changed = []
    for _ in range(2000):
        line = bytearray(chance.choice(lines))
        at = (
            chance.randrange(max(0, len(line) - 40), len(line))
            if chance.random() < 0.8
            else chance.randrange(len(line))
        )
        kind = chance.randrange(3)
        if kind == 0:
            line[at] = chance.choice(b"0123456789[],}- e.")
        elif kind == 1:
            line.insert(at, chance.choice(b"0123456789[], "))
        else:
            del line[at]
        changed.append(bytes(line))
    text = b"".join(line + b"\n" for line in changed)
    _, good, rows = _parsed(text, len(text), survey, shape)
    assert 0 < good.sum() < len(changed)
    for line, ok, row in zip(changed, good.tolist(), rows, strict=True):
        if ok:
            found = inspect(line.decode(), survey)
            assert isinstance(found, Report), line
            assert pack(found.answers, survey) == row.tobytes()


def test_many_short_lines_beside_a_report_are_all_read(tmp_path: Path) -> None:
    """Blank lines are shorter than any report: there are more lines than the buffer for reports holds."""
    survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120)]), mechanism="duchi")
    line = hd.Client(survey).report({"age": 30}).to_json() + "\n"
    path = tmp_path / "reports.jsonl"
    path.write_text("\n" * 500 + line + "\n" * 500 + line, encoding="utf-8")
    blocks = list(read_lines(path, survey, 1000))
    assert sum(len(block.rows) for block in blocks) == 2
    assert np.concatenate([block.numbers for block in blocks]).tolist() == [501, 1002]


@pytest.mark.parametrize(
    ("digits", "canonical"),
    [
        ("0", True),
        ("9", True),
        ("00", False),
        ("01", False),
        ("10", True),
        ("1234567", True),
        ("12345678", True),
        ("123456789", True),
        ("4294967294", True),
        ("4294967295", False),
        ("0123456", False),
        ("01234567", False),
        ("1" * 18, False),
        ("1" * 19, False),
        ("9" * 40, False),
        ("", False),
        (":", False),
        ("/", False),
        ("12:4", False),
        ("1\x8a2", False),
        ("1\xff2", False),
    ],
)
@pytest.mark.parametrize("more", [0, 1])
def test_numbers_of_every_length(digits: str, canonical: bool, more: int) -> None:
    """Seven digits are read at once, longer numbers one by one, and so is what stands at the end of the text."""
    survey = survey_of(1)
    line = prefix_of(survey.fingerprint).encode() + b"[1," + digits.encode("latin-1") + b"]]}\n"
    one, two, four, most = (np.full(4, value, np.int64) for value in (1, 0, 4, (1 << 32) - 1))
    wide = np.zeros((1 + more, 6), np.uint8)
    good, places = np.zeros(1 + more, bool), np.zeros((1 + more, 2), np.int32)
    data = np.frombuffer(line * (1 + more), np.uint8)
    prefix = np.frombuffer(prefix_of(survey.fingerprint).encode(), np.uint8)
    n = parse_lines(data, prefix, 1, 6, one, four, most, two, places, wide, good)
    assert n == 1 + more
    assert good.tolist() == [canonical] * n
    if canonical:
        assert wide[:, 2:].copy().view("<u4").ravel().tolist() == [int(digits)] * n
    else:
        assert places.tolist() == [[i * len(line), (i + 1) * len(line)] for i in range(n)]


@pytest.mark.parametrize("size", [97, 500, 1000, 4096])
def test_lines_that_two_chunks_share(
    size: int, survey: hd.Survey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of any size, also shorter than a line, give the same reports, row numbers and rejected lines."""
    good = [
        Report(survey.fingerprint, unpack(row.tobytes(), survey)).to_json() for row in some_rows(survey, 60)
    ]
    lines = [
        text for i, line in enumerate(good) for text in ([line, "", "no report"] if i % 7 == 3 else [line])
    ]
    path = tmp_path / "r.jsonl"

    def read() -> tuple[object, ...]:
        blocks = list(read_lines(path, survey, 50))
        return (
            np.concatenate([block.rows for block in blocks]).tolist(),
            np.concatenate([np.asarray(block.numbers, np.int64) for block in blocks]).tolist(),
            [bad for block in blocks for bad in block.rejected],
        )

    for end in ("", "\n"):
        path.write_text("\n".join(lines) + end, encoding="utf-8")
        expected = read()
        assert expected[1] == [i + 1 for i, line in enumerate(lines) if line.startswith("{")]
        with monkeypatch.context() as patch:
            patch.setattr(of_lines, "_CHUNK", size)
            assert read() == expected
