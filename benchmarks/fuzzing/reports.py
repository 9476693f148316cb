"""Files of reports, changed: an error, or exactly the counts that the file's own reports come to."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fuzzing.mutate import change_bytes, change_document, flip, to_text
from hdr4me.engines.spark_session import raise_fault
from hdr4me.engines.spark_tally import Split, count_splits, from_vector
from hdr4me.errors import HDR4MEError
from hdr4me.io import Rejected, write_reports
from hdr4me.io.arrow import schema_of
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

__all__ = ["Wrong", "fuzz_arrow", "fuzz_json", "fuzz_parquet", "fuzz_tables"]

_LINES = 64


class Wrong(AssertionError):
    """A reader did what it must not do."""


def survey_for_fuzzing() -> Survey:
    """A number, categories and entries; two of three answers are sent."""
    schema = Schema(
        [
            Numeric("age", 0, 120),
            Categorical("pet", ["none", "cat", "dog"]),
            Categorical("tool", [str(i) for i in range(30)]),
        ]
    )
    return Survey(schema, epsilon=2.0, sampled=2, mechanism="duchi", categorical="oue")


SURVEY = survey_for_fuzzing()
SIZES = [(len(q.channel.fields), q.channel.fields[0].bound) for q in SURVEY.questions]
"""How many codes a dimension has, and how many values each may take."""


def some_answers(random: Random) -> list[list[int]]:
    """A report's answers, valid by construction."""
    dims = sorted(random.sample(range(len(SIZES)), SURVEY.sampled))
    return [[j, *(random.randrange(SIZES[j][1]) for _ in range(SIZES[j][0]))] for j in dims]


def some_rows(random: Random, n: int) -> list[bytes]:
    """Valid reports in binary."""
    rows = []
    for _ in range(n):
        slots = (bytes([j, 0, *codes]).ljust(SURVEY.slot_size, b"\0") for j, *codes in some_answers(random))
        rows.append(b"".join(slots))
    return rows


def some_wire(random: Random, n: int) -> list[bytes]:
    """Valid reports as they travel: without padding."""
    return [b"".join(bytes([j, 0, *codes]) for j, *codes in some_answers(random)) for _ in range(n)]


def counts_of(reports: list[list[list[int]]]) -> NDArray[np.int64]:
    """The counts of answers, written down again from the definition of a tally's layout."""
    starts = np.cumsum([0] + [entries * cells for entries, cells in SIZES])
    counts = np.zeros(int(starts[-1]), np.int64)
    for answers in reports:
        for j, *codes in answers:
            for entry, code in enumerate(codes):
                counts[starts[j] + entry * SIZES[j][1] + code] += 1
    return counts


# -- JSON ----------------------------------------------------------------------------------------------------------


def answers_in(line: bytes) -> list[list[int]] | None:
    """The answers in a line if it is a valid report, by the definition of the format and by nothing of ours."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError
        return dict(pairs)

    content = line.strip(b" \t\r\n\v\f").removeprefix(b"\xef\xbb\xbf")
    longest = max(n * (1 + len(str(cells))) for n, cells in SIZES)
    if len(content) > 2 * (256 + SURVEY.sampled * (10 + longest)):
        return None
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    wanted = {"format": "hdr4me-report", "version": 1, "survey": SURVEY.fingerprint}
    if not isinstance(found, dict) or set(found) != {*wanted, "answers"} or type(found["version"]) is not int:
        return None
    answers = found["answers"]
    if any(found[key] != value for key, value in wanted.items()) or not isinstance(answers, list):
        return None
    for answer in answers:
        if not isinstance(answer, list) or not answer or any(type(x) is not int for x in answer):
            return None
    dims = [answer[0] for answer in answers]
    if len(dims) != SURVEY.sampled or dims != sorted(set(dims)) or not set(dims) <= set(range(len(SIZES))):
        return None
    for j, *codes in answers:
        if len(codes) != SIZES[j][0] or not all(0 <= code < SIZES[j][1] for code in codes):
            return None
    return answers


def some_line(random: Random) -> bytes:
    """A report's line, nearly always changed in its structure or in its bytes."""
    document: Any = {
        "format": "hdr4me-report",
        "version": 1,
        "survey": SURVEY.fingerprint,
        "answers": some_answers(random),
    }
    kind = random.randrange(10)
    if kind < 5:
        document = change_document(document, random)
    line = to_text(document, random).encode("utf-8", errors="surrogatepass")
    if kind in (5, 6, 7):
        line = change_bytes(line, random)
    if kind == 8:
        line = random.choice((b" " * 3000, b"\xef\xbb\xbf", b"\r", b"\t")) + line + b" " * random.randrange(3)
    return line.replace(b"\n", b" ")


def fuzz_json(random: Random, folder: Path) -> int:
    """A file of changed lines: exactly the valid ones are counted, every other line that is not blank is rejected."""
    lines = [some_line(random) for _ in range(_LINES)]
    path = folder / "r.jsonl"
    path.write_bytes(b"\n".join(lines))
    good = [answers for line in lines if (answers := answers_in(line)) is not None]
    blank = sum(not line.strip(b" \t\r\n\v\f").removeprefix(b"\xef\xbb\xbf") for line in lines)
    seen: list[Rejected] = []
    try:
        tally = Tally(SURVEY).add_file(path, on_rejected=seen.append)
    except HDR4MEError:
        if good:
            raise Wrong("a file with valid reports was refused") from None
        return len(lines)
    if not np.array_equal(tally.counts, counts_of(good)) or tally.n_reports != len(good):
        raise Wrong("other lines were counted than the valid ones")
    if len(seen) != len(lines) - len(good) - blank:
        raise Wrong("a line was neither counted nor rejected nor blank")
    return len(lines)


# -- binary files ------------------------------------------------------------------------------------------------


def answers_counted(tally: Tally) -> int:
    """How many answers a tally holds, from the counters of every question."""
    return sum(tally.n_answers(q) for q in range(len(tally.survey.questions)))


def _read(path: Path) -> Tally | None:
    """The tally by this machine, which must be that of an executor; None if the file is refused."""
    try:
        tally = Tally(SURVEY).add_file(path)
    except HDR4MEError:
        return None
    if answers_counted(tally) != SURVEY.sampled * tally.n_reports or (tally.counts < 0).any():
        raise Wrong("the counts do not add up to the number of reports")
    return tally


def _fuzz_binary(suffix: str) -> Callable[[Random, Path], int]:
    def fuzz(random: Random, folder: Path) -> int:
        path = folder / f"r.{suffix}"
        rows = [np.frombuffer(row, np.uint8) for row in some_rows(random, random.choice((1, 20, 90)))]
        block = np.stack(rows)
        with write_reports(path, SURVEY) as writer:
            for part in np.array_split(block, random.choice((1, 2, 5))):
                writer.write(part)
        whole, content = Tally(SURVEY).add_block(block), path.read_bytes()
        for _ in range(40):
            once = random.random() < 0.7
            changed = flip(content, random) if once else change_bytes(content, random)
            for _ in range(0 if once else random.randrange(3)):
                changed = change_bytes(changed, random)
            path.write_bytes(changed)
            found = _read(path)
            if once and found is not None and found != whole:
                raise Wrong("one flipped bit gave other counts without an error")
        return 40

    return fuzz


fuzz_parquet, fuzz_arrow = _fuzz_binary("parquet"), _fuzz_binary("arrow")


def fuzz_tables(random: Random, folder: Path) -> int:
    """Parquet and Arrow files of another writer, of any shape: nulls, bad reports, row groups, codecs, types."""
    good = some_wire(random, 8)
    bad = [random.randbytes(random.randrange(SURVEY.report_size)), good[0] + b"\0", good[0][:-1]]
    values = random.choices([*good, *bad, None], k=random.choice((0, 1, 30, 400)))
    schema: Any = schema_of(SURVEY)
    kind: Any = random.choice((schema.field(0).type, schema.field(0).type, pa.binary(), pa.large_binary()))
    loose = pa.schema([pa.field("report", kind)], metadata=schema.metadata)
    table = pa.table({"report": pa.array(values, kind)}, schema=loose)
    n_good = sum(value is not None and _is_valid(value) for value in values)
    parquet = random.random() < 0.5
    path = folder / ("t.parquet" if parquet else "t.arrow")
    codec: Any = None
    if parquet:
        _write_parquet(table, path, random)
    else:
        codec = random.choice((None, None, "lz4", "zstd"))
        sink = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(sink, loose, options=options) as writer:
            writer.write_table(table, max_chunksize=random.choice((1, 7, 1000)))
        path.write_bytes(sink.getvalue())
    found = _read(path)
    readable = bool(values) and codec is None and kind == schema.field(0).type
    if readable != (found is not None):
        raise Wrong(f"a table of {len(values)} {kind}, codec {codec}: readable is {readable}")
    if found is not None and (found.n_reports, sum(found.rejected.values())) != (
        n_good,
        len(values) - n_good,
    ):
        raise Wrong("a table's reports were lost or made up")
    if parquet and found is not None and _in_parts(path, random) != found:
        raise Wrong("the parts of a file come to another tally than the whole")
    return 1


def _is_valid(row: bytes) -> bool:
    """Whether bytes are a report, by the definition of the format and by nothing of ours."""
    at, dims = 0, []
    for _ in range(SURVEY.sampled):
        if len(row) < at + 2:
            return False
        j = row[at] + 256 * row[at + 1]
        if j >= len(SIZES):
            return False
        n, cells = SIZES[j]
        codes = row[at + 2 : at + 2 + n]
        if len(codes) < n or not all(code < cells for code in codes):
            return False
        dims.append(j)
        at += 2 + n
    return at == len(row) and dims == sorted(set(dims))


def _write_parquet(table: pa.Table, path: Path, random: Random) -> None:
    pq.write_table(
        table,
        path,
        row_group_size=random.choice((1, 7, 1000)),
        compression=random.choice(("none", "snappy", "lz4", "zstd", "gzip")),
        use_dictionary=random.random() < 0.5,
        data_page_size=random.choice((64, 1 << 20)),
        data_page_version=random.choice(("1.0", "2.0")),
    )


def _in_parts(path: Path, random: Random) -> Tally:
    size = path.stat().st_size
    cuts = sorted({0, size, *(random.randrange(1, size) for _ in range(random.randrange(4)))})
    total = None
    for start, stop in pairwise(cuts):
        for batch in count_splits([Split(str(path), start, stop)], SURVEY, keep=False):
            fault: Any
            partial: Any
            (fault,), (partial,) = batch.column("fault").to_pylist(), batch.column("partial").to_pylist()
            if fault is not None:
                raise_fault(fault)
            vector = np.frombuffer(partial, "<i8")
            total = vector if total is None else total + vector
    assert total is not None
    return from_vector(total, SURVEY)
