"""Exact perturbation: word for word the plain specification; in distribution, the table's weights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.kernels.exact.blocks import LOW, SCALE, column_block, encode_rows, finish, range_lines, wide_block
from hdr4me.kernels.exact.perturb import (
    Columns,
    Plan,
    alias_table,
    columns_bits,
    matrix_layout,
    perturb,
    perturb_matrix,
)
from hdr4me.kernels.exact.sets import SLACK, below, bitmap, subsets
from hdr4me.kernels.machine.intrinsics import DTYPES

from .memory import at_the_end_of_memory

LEVELS, CELLS, BITS = 5, 6, 3


def random_weights(rng: np.random.Generator, levels: int, cells: int) -> np.ndarray:
    weights = (rng.dirichlet(np.ones(cells), levels) * 2**32).astype(np.int64)
    weights[:, 0] += 2**32 - weights.sum(1)
    return weights


RNG = np.random.default_rng(11)
NUMBERS = random_weights(RNG, LEVELS, CELLS)  # rows 0..4: numbers
CATEGORIES = random_weights(RNG, 4, 4)  # rows 5..8: a category of four
ENTRIES = random_weights(RNG, 2, 2)  # rows 9, 10: absent and present
TABLE = np.concatenate(
    [alias_table(weights, BITS) for weights in (NUMBERS, CATEGORIES, ENTRIES)], dtype=np.uint32
).ravel()


def plan_of(kinds: str, sampled: int) -> Plan:
    """Dimensions by letter: n(umber) on [-1, 3], c(ategory) of four, e(ntries) of three categories."""
    position = 65536.0
    row = {"n": 0, "c": 5, "e": 0}
    last = {"n": 4, "c": 8, "e": 2}
    default = {"n": 1, "c": 7, "e": 2}
    per_kind = {
        k: (-1.0, position, row[k] * position, last[k] * position, default[k] * position) for k in row
    }
    return Plan(
        sampled=sampled,
        width=3 if "e" in kinds else 1,
        bits=BITS,
        table=TABLE,
        ranges=range_lines(*np.array([per_kind[k] for k in kinds]).T),
        alike=set(kinds) == {"n"},
        entries=np.array([3 * (k == "e") for k in kinds]),
        entry_row=np.full(len(kinds), 9),
    )


def columns_of(kinds: str, arrays: list[np.ndarray], masks: list[np.ndarray | None] | None = None) -> Columns:
    masks = masks or [None] * len(kinds)
    return Columns(
        address=np.array([a.ctypes.data for a in arrays], np.uint64),
        stride=np.array([a.strides[0] for a in arrays]),
        dtype=np.array([DTYPES.index(a.dtype) for a in arrays], np.uint8),
        valid=np.array([0 if m is None else m.ctypes.data for m in masks], np.uint64),
        valid_offset=np.zeros(len(kinds), np.int64),
        lut=np.array([3, 2, 1, 0, 2, 1, 0], np.uint32),  # categories arrive in reverse order
        lut_start=np.array([4 if k == "e" else 0 for k in kinds]),
        lut_size=np.array([{"n": 0, "c": 4, "e": 3}[k] for k in kinds]),
        step=0,
    )


def specification(
    kinds: str, records: list[list[float]], chosen: list[list[int]], halves: list[int], words: list[int]
) -> list[list[int]]:
    """Plain Python: position, rounding, alias selection, layout."""
    plan, table = plan_of(kinds, len(chosen[0])), TABLE.tolist()
    reports, half_at, word_at = [], iter(halves), iter(words)
    mask = (1 << BITS) - 1

    def code(row: int) -> int:
        word = next(word_at)
        entry = table[row << BITS | word & mask]
        return (word if word < entry & ~mask else entry) & mask

    for record, dims in zip(records, chosen, strict=True):
        report = []
        for j in dims:
            kind, value = kinds[j], record[j]
            if kind == "n":
                u = 1 / 4 if np.isnan(value) else (min(max(value, -1), 3) + 1) / 4
                place = int(u * 4 * 65536 + 0.5)
            else:
                category_count = 4 if kind == "c" else 3
                place = (category_count - 1 - int(value) if value in range(category_count) else 2) << 16
            level = (place >> 16) + (next(half_at) >= 65536 - (place & 0xFFFF))
            codes = (
                [code(9 + (level == e)) for e in range(3)]
                if kind == "e"
                else [code(level + 5 * (kind == "c"))]
            )
            report += [j & 255, j >> 8, *codes, *[0] * (plan.width - len(codes))]
        reports.append(report)
    return reports


BAD = [np.nan, np.inf, -np.inf, -7.0, 99.0, 0.1234567, -1.0, 3.0, 0.0, 2.0]


def random_words(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, 2**16, n, dtype=np.uint16),
        rng.integers(0, 2**32, n, dtype=np.uint32),
        rng.integers(0, 2**32, n, dtype=np.uint32),
    )


@pytest.mark.parametrize("kinds", ["nnnnn", "ncncn", "nenec"])
@pytest.mark.parametrize("sampled", [1, 3, 5])
@pytest.mark.parametrize("layout", ["columns", "matrix"])
def test_blocks_equal_the_specification(kinds: str, sampled: int, layout: str) -> None:
    n = 300
    rng = np.random.default_rng(3)
    indices = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 1e300, np.nan]
    records = np.array([rng.choice(BAD if kind == "n" else indices, n) for kind in kinds]).T
    plan, columns = plan_of(kinds, sampled), columns_of(kinds, list(records.T))
    if layout == "matrix":
        columns = columns._replace(step=records.strides[1])
    halves, words, spare = random_words(4, n * len(kinds) * 3)
    scratch, cursor, chosen = bitmap(5), 0, []
    drawn = np.empty(len(spare), np.uint16)
    drawn = drawn[: below(spare, 5, drawn)]
    for _ in range(n):
        dims = np.arange(sampled + SLACK, dtype=np.uint16)
        if sampled < 5:
            _, cursor = subsets(5, sampled, drawn, cursor, scratch, dims, 0, 1)
        chosen.append(dims[:sampled].tolist())
    out = np.full((n, plan.report_size), 255, np.uint8)
    block = wide_block if "e" in kinds else column_block
    done = block(columns, plan, 0, n, halves, words, spare, scratch, out.reshape(-1))
    assert done == n
    assert out.tolist() == specification(kinds, records.tolist(), chosen, halves.tolist(), words.tolist())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [16, 17, 31, 100, 257, 1500])
@pytest.mark.parametrize("n", [1, 30])
def test_encoding_rows_equals_the_specification(dtype: type, d: int, n: int) -> None:
    kinds = "n" * d
    records = np.random.default_rng(5).choice(np.array(BAD, dtype), (n, d))
    plan = plan_of(kinds, d)
    halves, words, _ = random_words(6, n * d)
    guarded = np.full(n * plan.report_size + 64, 255, np.uint8)
    out = guarded[:-64]
    encode_rows(records, *matrix_layout(plan), words, halves, TABLE, BITS, out)
    expected = specification(kinds, records.tolist(), [list(range(d))] * n, halves.tolist(), words.tolist())
    assert out.reshape(n, -1).tolist() == expected
    assert (guarded[-64:] == 255).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [16, 37, 300])
@pytest.mark.parametrize("alike", [True, False])
def test_encoding_stays_within_its_arrays(dtype: type, d: int, alike: bool) -> None:
    """Values, words, halves and reports that end where memory ends, and the layout too."""
    plan = plan_of("n" * d, d)._replace(alike=alike)
    for n in (1, 2, 7):
        halves, words, _ = map(at_the_end_of_memory, random_words(13, n * d))
        values = at_the_end_of_memory(np.zeros((n, d), dtype))
        ranges, dims = map(at_the_end_of_memory, matrix_layout(plan))
        out = at_the_end_of_memory(np.zeros(n * plan.report_size, np.uint8))
        encode_rows(values, ranges, dims, words, halves, at_the_end_of_memory(TABLE), BITS, out)
        assert out.reshape(n, d, 3)[:, :, 0].tolist() == [[j % 256 for j in range(d)]] * n


@pytest.mark.parametrize("n", [1, 15, 16, 17, 40])
def test_finishing_stays_within_its_arrays(n: int) -> None:
    _, words, _ = random_words(14, n)
    arrays = [np.zeros(n, np.uint32), np.arange(n, dtype=np.uint16), words, TABLE]
    cells, dims, words, table = map(at_the_end_of_memory, arrays)
    out = at_the_end_of_memory(np.zeros(3 * n, np.uint8))
    finish(cells, dims, words, table, BITS, out)
    assert out[::3].tolist() == list(range(n))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [16, 37, 300])
def test_every_column_has_its_own_range(dtype: type, d: int) -> None:
    """Columns stretched by powers of two, which is exact: the reports are those of the columns as they were."""
    n = 30
    records = np.random.default_rng(7).uniform(-2, 4, (n, d)).astype(dtype)
    records[::7] = np.nan
    plan = plan_of("n" * d, d)
    stretch = 2.0 ** (np.arange(d) % 5)
    ranges = plan.ranges.copy()
    ranges[:, LOW] *= stretch
    ranges[:, SCALE] /= stretch
    stretched = plan._replace(ranges=ranges, alike=False)
    halves, words, _ = random_words(8, n * d)
    outs = []
    for values, layout in ((records, plan), (records * stretch.astype(dtype), stretched)):
        outs.append(np.full(n * plan.report_size, 255, np.uint8))
        encode_rows(values, *matrix_layout(layout), words, halves, TABLE, BITS, outs[-1])
    assert matrix_layout(plan)[0].shape != matrix_layout(stretched)[0].shape
    assert (outs[0] == outs[1]).all()


def test_blocks_stop_where_words_run_out() -> None:
    plan, columns = plan_of("nene", 2), columns_of("nene", [np.zeros(9)] * 4)
    halves, words, spare = random_words(7, 64)
    out = np.zeros(9 * plan.report_size, np.uint8)
    assert wide_block(columns, plan, 0, 9, halves, words[:13], spare, bitmap(4), out) in (2, 3, 4)
    assert wide_block(columns, plan, 0, 9, halves, words, spare[:5], bitmap(4), out) in (1, 2)
    plan, columns = plan_of("nnnn", 2), columns_of("nnnn", [np.zeros(2000)] * 4)
    halves, words, spare = random_words(8, 4000)
    out = np.zeros(2000 * plan.report_size, np.uint8)
    drawn = np.empty(1200, np.uint16)
    enough = drawn[: below(spare[:1200], 4, drawn)]
    n_done, _ = subsets(4, 2, enough, 0, bitmap(4), np.empty(4000 + SLACK, np.uint16), 0, 2000)
    assert 480 < n_done < 560
    assert column_block(columns, plan, 0, 2000, halves, words, spare[:1200], bitmap(4), out) == n_done
    assert not out[n_done * plan.report_size :].any()
    whole = np.zeros_like(out)
    assert column_block(columns, plan, 0, n_done, halves, words, spare, bitmap(4), whole) == n_done
    assert (out == whole).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_type_is_read(dtype: np.dtype) -> None:
    """Values 0..3 of each type, strided and unaligned, reach the same positions as doubles."""
    n = 64
    raw = np.zeros(1 + n * 2 * dtype.itemsize, np.uint8)
    strided = raw[1:].view(dtype)[::2]
    strided[:] = np.arange(n) % 4
    halves, words, spare = random_words(9, n)
    outs = []
    for array in (strided, strided.astype(np.float64)):
        out = np.zeros(3 * n, np.uint8)
        columns, plan = columns_of("n", [array]), plan_of("n", 1)
        column_block(columns, plan, 0, n, halves, words, spare, bitmap(1), out)
        outs.append(out.tolist())
    assert outs[0] == outs[1]


def test_a_null_is_the_default_whatever_its_bytes() -> None:
    n = 64
    rng = np.random.default_rng(10)
    valid = rng.random(n) < 0.5
    values = rng.uniform(-1, 3, n)
    bitmask = np.packbits(valid, bitorder="little")
    halves, words, spare = random_words(12, n)
    outs = []
    for array, mask in ((values, bitmask), (np.where(valid, values, np.nan), None)):
        out = np.zeros(3 * n, np.uint8)
        columns = columns_of("n", [array], [mask])
        plan = plan_of("n", 1)
        column_block(columns, plan, 0, n, halves, words, spare, bitmap(1), out)
        outs.append(out.tolist())
    assert outs[0] == outs[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_codes_follow_the_weights_with_the_system_randomness(threads: int) -> None:
    # Four inputs, chi-square each at 1e-7: false alarm once in 2.5 million runs (there is no seed, by design).
    n = 40_000
    inputs = np.array([-1.0, 0.3, 1.75, np.nan] * 4)
    matrix = np.tile(inputs, (n, 1))
    plan = plan_of("n" * 16, 16)
    reports = perturb_matrix(matrix, plan, threads=threads)
    by_columns = perturb(columns_of("n" * 16, list(matrix.T)), plan, n, threads=threads)
    place = np.array([0.0, 1.3, 2.75, 1.0])
    for j, x in enumerate(place):
        level = int(x)
        law = (1 - (x - level)) * NUMBERS[level] + (x - level) * NUMBERS[min(level + 1, 4)]
        for out in (reports, by_columns):
            counts = np.bincount(out[:, 3 * j + 2], minlength=CELLS)
            assert stats.chisquare(counts, law / 2**32 * n).pvalue > 1e-7


def test_sampling_is_uniform_and_reports_are_fresh() -> None:
    # Chi-square over the 10 pairs of 5 dimensions at 1e-7, unseeded by design.
    n = 50_000
    columns = columns_of("nencn", [np.zeros(n)] * 5)
    reports = perturb(columns, plan_of("nencn", 2), n, threads=2)
    pairs = reports[:, 0].astype(int) * 5 + reports[:, 5]
    found, counts = np.unique(pairs, return_counts=True)
    assert len(found) == 10
    assert stats.chisquare(counts).pvalue > 1e-7
    assert (perturb(columns, plan_of("nencn", 2), n) != reports).any()


def test_small_and_empty_inputs() -> None:
    for n in (0, 1):
        assert perturb(columns_of("nn", [np.zeros(1)] * 2), plan_of("nn", 1), n, threads=4).shape == (n, 3)
        assert perturb_matrix(np.zeros((n, 16)), plan_of("n" * 16, 16)).shape == (n, 48)


def test_bits_hold_the_largest_table() -> None:
    assert columns_bits(CELLS) == BITS
