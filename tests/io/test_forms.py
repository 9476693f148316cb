"""The same records in every form of file: the same values, or one plain sentence that names file, row and remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.io import RecordFiles, record_batches
from hdr4me.io.columns import from_batch
from hdr4me.io.infer import infer_schema
from hdr4me.survey import Categorical, Numeric, Schema, Survey

SURVEY = Survey(
    Schema([Numeric("age", 0, 120), Categorical("town", ["Köln", "Bath", "Ely"], default="Ely")]),
    epsilon=4.0,
    sampled=2,
    mechanism="duchi",
)
ROWS = [(31.0, "Köln"), (None, "Bath"), (44.5, "Köln"), (7.0, None)] * 3
TEXT = "extra,age,town\n" + "".join(f"x,{'' if a is None else a},{t or ''}\n" for a, t in ROWS)
LINES = "".join(
    f'{{"age": {"null" if a is None else a}, "town": {"null" if t is None else chr(34) + t + chr(34)}}}\n'
    for a, t in ROWS
)


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def values(records: object, survey: Survey = SURVEY) -> list[tuple[float | None, int | None]]:
    """The values for the kernel: numbers and category indices; None for missing values."""
    found: list[tuple[float | None, int | None]] = []
    for batch in record_batches(records, survey):
        source = from_batch(batch, survey)
        ages, towns = (owner.to_pylist() for owner in source.owners)
        lut = source.columns.lut[source.columns.lut_start[1] :].tolist()
        found += [
            (None if a is None or a != a else float(a), None if t is None else lut[t])
            for a, t in zip(ages, towns, strict=True)
        ]
    return found


EXPECTED = [(a, None if t is None else SURVEY.schema["town"].index[t]) for a, t in ROWS]  # type: ignore[attr-defined]

FILES: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "csv": ("r.csv", TEXT.encode(), {}),
    "byte order mark": ("r.csv", b"\xef\xbb\xbf" + TEXT.encode(), {}),
    "carriage returns": ("r.csv", TEXT.replace("\n", "\r\n").encode(), {}),
    "gzip": ("r.csv.gz", gzip.compress(TEXT.encode(), mtime=0), {}),
    "gzip under another name": ("r.csv", gzip.compress(TEXT.encode(), mtime=0), {}),
    "two gzip members": (
        "r.csv.gz",
        gzip.compress(TEXT.encode()[:100], mtime=0) + gzip.compress(TEXT.encode()[100:], mtime=0),
        {},
    ),
    "zstd": ("r.csv.zst", zstd(TEXT.encode()), {}),
    "bzip2": ("r.csv.bz2", bz2.compress(TEXT.encode()), {}),
    "tabs": ("r.tsv", TEXT.replace(",", "\t").encode(), {}),
    "semicolons": ("r.csv", TEXT.replace(",", ";").encode(), {}),
    "bars": ("r.txt", TEXT.replace(",", "|").encode(), {}),
    "colons, given": ("r.csv", TEXT.replace(",", ":").encode(), {"delimiter": ":"}),
    "latin-1": ("r.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
    "latin-1, gzip": ("r.csv.gz", gzip.compress(TEXT.encode("latin-1"), mtime=0), {"encoding": "ISO-8859-1"}),
    "utf-16": ("r.csv", TEXT.encode("utf-16"), {}),
    "utf-16 big-endian": ("r.csv", b"\xfe\xff" + TEXT.encode("utf-16-be"), {}),
    "utf-16 without a mark": ("r.csv", TEXT.encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "utf-32": ("r.csv", TEXT.encode("utf-32"), {}),
    "utf-8, given": ("r.csv", TEXT.encode(), {"encoding": "utf-8"}),
    "json lines": ("r.jsonl", LINES.encode(), {}),
    "json lines, gzip": ("r.jsonl.gz", gzip.compress(LINES.encode(), mtime=0), {}),
    "json lines, blank ones": ("r.ndjson", LINES.replace("\n", "\n\n").encode(), {}),
    "json lines, no suffix": ("records", LINES.encode(), {}),
    "json lines, latin-1": ("r.jsonl", LINES.encode("latin-1"), {"encoding": "latin-1"}),
}


@pytest.mark.parametrize("form", FILES)
def test_every_form_gives_the_same_values(form: str, tmp_path: Path) -> None:
    name, content, options = FILES[form]
    path = tmp_path / name
    path.write_bytes(content)
    assert values(RecordFiles(path, **options)) == EXPECTED
    reports = Local(1).reports(RecordFiles(path, **options), SURVEY, on_quality=lambda quality: None)
    assert len(np.concatenate(list(reports))) == len(ROWS)


@pytest.mark.parametrize("form", ["csv", "semicolons", "json lines", "gzip", "utf-16"])
def test_standard_input(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, content, _ = FILES[form]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert values("-") == EXPECTED


def test_standard_input_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for content, stated in ((b"PAR1 and more", "Parquet"), (b"", "standard input is empty")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(FormatError, match=stated):
            values("-")


# -- bad text --------------------------------------------------------------------------------------------------


def test_invalid_utf8_names_file_row_and_option(tmp_path: Path) -> None:
    """Latin-1 used to lose the accented category without a word."""
    path = tmp_path / "latin.csv"
    path.write_bytes(("age,town\n1,Bath\n\n" + "2,Köln\n").encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin\.csv, row 2: not valid UTF-8 text; .* --encoding latin-1"):
        values(path)
    path.write_bytes(("age,town,städte\n1,Bath,x\n").encode("latin-1"))
    with pytest.raises(FormatError, match=r"line 1: not valid UTF-8 text.*--encoding"):
        values(path)
    lines = tmp_path / "latin.jsonl"
    lines.write_bytes(('{"age": 1, "town": "Bath"}\n\n' + '{"age": 1, "town": "Köln"}\n').encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin\.jsonl, line 3: not valid UTF-8 text.*--encoding"):
        values(lines)


def test_invalid_bytes_of_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"age,town\n1,Bath\n2,\xff\xff\n")
    with pytest.raises(FormatError, match="line 3: not valid ascii text"):
        values(RecordFiles(path, encoding="ascii"))
    path.write_bytes("age,town\n1,Bath\n".encode("utf-16-le"))
    with pytest.raises(FormatError, match="--encoding utf-16-le"):
        values(path)


def test_bytes_of_a_column_that_is_not_asked_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"age,name,town\n1,J\xfcrgen,Bath\n")
    assert values(path) == [(1.0, 1)]


@pytest.mark.parametrize("cut", [-1, -9, 40])
@pytest.mark.parametrize("compress", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_compressed_files_cut_short(tmp_path: Path, cut: int, compress: object) -> None:
    whole = compress(TEXT.encode() * 50)  # type: ignore[operator]
    path = tmp_path / "r.csv.gz"
    path.write_bytes(whole[:cut])
    with pytest.raises(FormatError, match=r"r\.csv\.gz"):
        values(path)


BAD: dict[str, tuple[bytes, str]] = {
    "only a mark": (b"\xef\xbb\xbf", "is empty"),
    "only blanks": (b"\n\n  \n", "is empty"),
    "a header field without end": (
        b"a" * 200_000 + b",b\n1,2\n",
        "a field of the header is longer than 131,072",
    ),
    "an open quote in the header": (b'age,"town\n1,Bath\n' * 1000, "has no column 'town'"),
    "an open quote to the end": (b'age,"town\n1,Bath\n', "a quote in the header is not closed"),
    "a header alone": (b"age,town\n", "has a header but no records"),
    "a header and blank lines": (b"age,town\n\n\n", "has a header but no records"),
    "a blank first line": (b"\nage,town\n1,Bath\n", "line 1 is blank; a header is expected"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_error_for_a_bad_header_is_one_line(name: str, tmp_path: Path) -> None:
    content, stated = BAD[name]
    path = tmp_path / "r.csv"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=stated) as caught:
        values(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(HDR4MEError):
        infer_schema(path, ranges={"age": (0, 1)})


LINE_FAULTS: dict[str, tuple[bytes, str]] = {
    "a list": (b'{"age": 1}\n\n[1]\n', "line 3: not a JSON object"),
    "null": (b'{"age": 1}\nnull\n', "line 2: not a JSON object"),
    "broken": (b'{"age": 1}\n{"age": 2\n', "line 2: not a JSON object"),
    "two in a line": (b'{"age": 1}\n{"age": 2}, {"age": 3}\n', "line 2: not a JSON object"),
    "a misspelt name": (b'{"age": 1, "twon": "Bath"}\n', "no record has a field 'town'"),
    "deep": (b'{"age": ' + b"[" * 100_000 + b"}\n", "line 1: not a JSON object"),
    "blank": (b"\n \n", "is empty"),
}


@pytest.mark.parametrize("name", LINE_FAULTS)
def test_bad_json_lines(name: str, tmp_path: Path) -> None:
    content, stated = LINE_FAULTS[name]
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=stated):
        values(path)


def test_json_values_of_any_type(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"age": "31", "town": "Bath"}\n{"age": true, "town": 3}\n{"age": [1], "town": {}}\n'
        '{"age": 1e400, "town": "\\ud800"}\n' + '{"age": ' + "9" * 30 + "}\n{}\n"
    )
    assert [a for a, _ in values(path)] == [31.0, 1.0, None, float("inf"), 1e30, None]
    assert [t for _, t in values(path)] == [1, 2, 2, 2, None, None]


def test_json_numbers_beyond_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        f'{{"age": {10**30}, "town": "Bath"}}\n{{"age": {-(10**2000)}, "town": "\\udc00"}}\n{{"age": 7}}\n'
    )
    assert values(path) == [(1e30, 1), (float("-inf"), 2), (7.0, None)]


def test_what_is_no_records_is_named(mixed_survey: Survey) -> None:
    with pytest.raises(InvalidInput, match="records of type dict: expected files"):
        values({"age": [1]})
    with pytest.raises(InvalidInput, match="must be a Survey"):
        Local(1).data_quality("r.csv", "survey")  # type: ignore[arg-type]


def test_json_lines_over_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdr4me.io.text._PIECE", 64)
    path = tmp_path / "r.jsonl"
    path.write_text(LINES.rstrip("\n"))
    assert values(path) == EXPECTED
    monkeypatch.setattr("hdr4me.io.text.BLOCK", 100)
    path.write_text('{"age": 1}\n{"town": "' + "x" * 400 + '"}\n')
    with pytest.raises(FormatError, match="line 2: longer than 100 bytes"):
        values(path)


# -- no message holds a value of a record ----------------------------------------------------------------------

SECRETS = ("HIV", "31", "never")


@pytest.mark.parametrize(
    "content",
    [
        b"31,never,HIV positive\n44,current,none\n",
        b"31;never;HIV positive\n44;current;none\n",
        b"31,never,HIV positive\n44,never,HIV positive\n44,never\n",
        b'31,never,"HIV positive\n44,current,none\n',
        b"31,31,HIV positive\n44,current,none\n",
        b'{"31": "never", "HIV": "HIV positive"}\n',
        b'{"age": 31, "town": "HIV positive"}\n{"age": 31, "town": "never"\n',
    ],
)
def test_a_file_without_a_header_is_not_quoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    for read in (
        lambda: values(path),
        lambda: infer_schema(path),
        lambda: infer_schema(path, ranges={"age": (0, 1)}),
    ):
        with pytest.raises(HDR4MEError) as caught:
            read()
        message = str(caught.value).replace(
            str(path), ""
        )  # the name of a temporary folder may hold any number
        assert not any(secret in message for secret in SECRETS), message
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


# -- which files -----------------------------------------------------------------------------------------------


def write_folder(folder: Path) -> Path:
    """The layout of the report: two spellings of a suffix, a folder inside, and what is no data."""
    table = pa.table({"age": [1.0] * 100, "town": ["Bath"] * 100})
    for name in ("a.parquet", "c.PARQUET", "day=2/b.parquet", "_temporary/x.parquet", ".hidden.parquet"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
    (folder / "_SUCCESS").touch()
    return folder


def test_folders_patterns_and_several_files(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    assert len(values(folder)) == 300
    assert len(values(str(folder / "*.parquet"))) == 100
    assert len(values(str(folder / "**" / "*.parquet"))) == 300  # as a shell would have it
    assert len(values([folder / "a.parquet", folder / "c.PARQUET"])) == 200
    assert len(values(f"file://{folder}/a.parquet")) == 100


def test_a_file_called_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "r[1].csv").write_bytes(TEXT.encode())
    assert values(tmp_path / "r[1].csv") == EXPECTED


def test_paths_that_name_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(FormatError, match="contains no files"):
        values(tmp_path / "empty")
    with pytest.raises(FormatError, match="no file matches the pattern"):
        values(tmp_path / "*.csv")
    with pytest.raises(FileNotFoundError):
        values(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="read it with Spark"):
        values("s3://bucket/people.csv")
    with pytest.raises(InvalidInput, match="at least one file"):
        values([])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_a_path_that_is_not_utf8(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r\udcff{suffix}"
    table = pa.table({"age": [1.0, 2.0], "town": ["Bath", "Ely"]})
    if suffix == ".csv":
        path.write_text("age,town\n1,Bath\n2,Ely\n")
    elif suffix == ".parquet":
        with path.open("wb") as file:
            pq.write_table(table, file)
    else:
        with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert values(path) == [(1.0, 1), (2.0, 2)]
    assert infer_schema(path, columns=["age"], ranges={"age": (0, 1)}).names == ("age",)


@pytest.mark.parametrize("encoding", ["nonsense", "rot13", "base64", "x\0y"])
def test_encodings_are_checked(encoding: str) -> None:
    with pytest.raises(InvalidInput, match="encoding = "):
        RecordFiles("r.csv", encoding=encoding)


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "é"])
def test_delimiters_are_checked(delimiter: str) -> None:
    with pytest.raises(InvalidInput, match="delimiter = "):
        RecordFiles("r.csv", delimiter=delimiter)


def test_rows_held_at_once_are_bounded_in_bytes(tmp_path: Path) -> None:
    """One dimension of 5,000 categories: a report is 5,002 bytes, and 131,072 of them took 6.8 GB."""
    wide = Categorical("town", [str(k) for k in range(5000)])
    survey = Survey(Schema([wide]), epsilon=1.0, categorical="oue")
    path = tmp_path / "r.csv"
    path.write_text("town\n" + "7\n" * 50_000)
    sizes = [batch.num_rows for batch in record_batches(path, survey)]
    assert sum(sizes) == 50_000
    assert max(sizes) * survey.report_size <= 1 << 25
