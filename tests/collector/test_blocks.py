"""Blocks: every bit of them is covered by a checksum; ids: found exactly, whatever a sender chooses."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from hdr4me.collector.batch import Batch, Block, block_of, joined, read_block, without_id
from hdr4me.collector.stores.memory import IdSet
from hdr4me.collector.stores.protocol import migrate
from hdr4me.collector.stores.sqlite.database import INSERT_BLOCK, SCHEMA, check_structure, scan
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.report import pack, unpack


def reports(n: int, seed: int, size: int = 3) -> list[tuple[bytes, bytes]]:
    rng = random.Random(seed)
    return [(rng.randbytes(16), rng.randbytes(size)) for _ in range(n)]


def test_a_block_is_sorted_and_reads_back() -> None:
    pairs = reports(50, 1)
    block = block_of(3, 100, 7, pairs)
    assert block.ids == sorted(id for id, _ in pairs)
    assert dict(zip(block.ids, block.payloads, strict=True)) == dict(pairs)
    assert not block.sizes  # reports of one size carry no sizes
    assert read_block(block.row()) == block


def test_the_order_of_arrival_leaves_no_trace() -> None:
    pairs = reports(50, 2)
    one, two = block_of(1, 1, 0, pairs), block_of(1, 1, 0, pairs[::-1])
    assert (one.id_bytes, one.data) == (two.id_bytes, two.data)


def test_reports_of_different_sizes_are_kept_apart() -> None:
    pairs = [(bytes([i]) * 16, b"x" * i) for i in (3, 1, 0, 2)]
    assert block_of(1, 1, 0, pairs).payloads == [b"", b"x", b"xx", b"xxx"]


def test_blocks_are_joined_and_a_report_is_removed() -> None:
    pairs = reports(20, 3)
    whole = joined([block_of(1, 5, 2, pairs[:7]), block_of(1, 5, 2, pairs[7:])])
    assert whole.data == block_of(1, 5, 2, pairs).data
    rest, gone = without_id(whole, pairs[4][0])
    assert gone.payloads == [pairs[4][1]]
    assert rest is not None
    assert len(rest) == 19
    assert pairs[4][0] not in rest.ids
    assert without_id(gone, pairs[4][0])[0] is None


def test_every_flipped_bit_of_every_field_is_found() -> None:
    block = block_of(1, 2, 3, [(bytes(16), b"ab"), (b"\1" * 16, b"abc")])
    row = list(block.row())
    for column, value in enumerate(row):
        bits = 62 if isinstance(value, int) else 8 * len(value)
        for bit in range(bits):
            changed = list(row)
            if isinstance(value, int):
                changed[column] = value ^ 1 << bit
            else:
                data = bytearray(value)
                data[bit // 8] ^= 1 << bit % 8
                changed[column] = bytes(data)
            with pytest.raises(FormatError):
                read_block(changed)


@pytest.mark.parametrize("bad", [None, "text", 1.5, -1])
def test_a_field_of_another_type_is_found(bad: object) -> None:
    row = block_of(1, 2, 3, reports(2, 4)).row()
    for column in range(len(row)):
        changed = list(row)
        changed[column] = bad
        with pytest.raises(FormatError):
            read_block(changed)


def test_every_flipped_bit_of_a_stored_row_is_found_and_the_other_rows_are_read() -> None:
    """The row's own bytes in the file of SQLite: length, header and contents."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("pragma page_size = 4096")
    migrate(0, SCHEMA, connection.execute, "here")
    blocks = [
        Block(number, 1, 5, 0, bytes([number % 251]) * 32, b"", b"\7" * 6) for number in (10, 200, 3000)
    ]
    for block in blocks:
        connection.execute(INSERT_BLOCK, block.row())
    image = connection.serialize()
    connection.close()
    start, end = cell_of(image, blocks[1])
    n_found = 0
    for bit in range(8 * start, 8 * end):
        data = bytearray(image)
        data[bit // 8] ^= 1 << bit % 8
        damaged = sqlite3.connect(":memory:", isolation_level=None)
        damaged.deserialize(bytes(data))
        found: list = []
        read = sorted(scan(damaged, found.append), key=lambda block: block.number)
        if not found:
            check_structure(damaged, found.append)
        damaged.close()
        assert read == [blocks[0], blocks[2]], f"bit {bit - 8 * start}"
        n_found += bool(found)
    assert n_found == 8 * (end - start) > 500


def cell_of(image: bytes, block: Block) -> tuple[int, int]:
    """Where the row of a block begins and ends in the file: its length, then the record."""
    at = image.index(block.id_bytes)
    end = image.rindex(block.checksum) + 16
    (start,) = (start for start in range(at - 40, at) if start + 1 + image[start] == end)
    return start, end


def test_rows_of_a_wrong_length_are_an_error(even, mixed) -> None:
    good = bytes(even.report_size)
    assert len(block_of(1, 1, 0, [(b"a" * 16, good), (b"b" * 16, good)]).rows(even)) == 2
    for pairs, survey in (
        ([(b"a" * 16, good), (b"b" * 16, good[:-1])], even),
        ([(b"a" * 16, good[:-1])], even),
        ([(b"a" * 16, b"")], mixed),
    ):
        with pytest.raises(FormatError, match="not of survey"):
            block_of(1, 1, 0, pairs).rows(survey)


def test_rows_are_the_reports_in_memory(mixed, simulate, wire) -> None:
    rows = simulate(mixed, 40, lambda j, users: np.zeros(len(users)), np.random.default_rng(1))
    ids = [bytes([i]) * 16 for i in range(40)]
    block = block_of(1, 1, 0, zip(ids, wire(rows, mixed), strict=True))
    assert block.sizes
    assert np.array_equal(block.rows(mixed), rows)
    assert pack(unpack(rows[3].tobytes(), mixed), mixed, padded=False) == block.payloads[3]


# -- ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["random", "same start", "same end", "zeros"])
def test_ids_are_found_exactly(kind: str) -> None:
    rng = random.Random(5)

    def make() -> bytes:
        word = rng.randbytes(2)
        made = {
            "same start": bytes(14) + word,
            "same end": word + b"\xff" * 14,
            "zeros": word[:1] + bytes(15),
        }
        return made.get(kind) or rng.randbytes(16)

    ids, truth = IdSet(recent=50), set()
    for _ in range(60):
        some = sorted({make() for _ in range(rng.randrange(1, 40))})
        known = ids.find(b"".join(some)).tolist()
        assert known == [id in truth for id in some]
        ids.add(b"".join(id for id, old in zip(some, known, strict=True) if not old))
        truth.update(some)
    assert len(ids) == len(truth)


def test_many_ids_at_once_are_found() -> None:
    all_ids = [i.to_bytes(16, "big") for i in range(2000)]
    ids = IdSet()
    ids.add(b"".join(all_ids[::2]))
    ids.add(b"")
    assert ids.find(b"".join(all_ids)).tolist() == [True, False] * 1000
    assert ids.find(b"").tolist() == []


def test_an_id_costs_twenty_bytes() -> None:
    ids = IdSet()
    ids.add(np.random.default_rng(1).bytes(16 * 100_000))
    assert sum(part.nbytes for tier in ids._tiers for part in tier) == 20 * 100_000


def test_a_migration_runs_once_and_a_newer_schema_is_refused(tmp_path: Path) -> None:
    from hdr4me.collector.errors import SchemaTooNew

    done: list[str] = []
    assert migrate(0, [("a",), ("b", "c")], done.append, "x") == 2
    assert migrate(2, [("a",), ("b", "c")], done.append, "x") == 2
    assert done == ["a", "b", "c"]
    with pytest.raises(SchemaTooNew, match="x has schema 3, and this program knows schemas up to 2"):
        migrate(3, [("a",), ("b",)], done.append, "x")


@pytest.mark.parametrize(
    "bad",
    [
        {"ids": b"short"},
        {"ids": "x" * 16},
        {"ids": bytes(48)},
        {"data": b""},
        {"data": b"xyz"},
        {"sizes": [1]},
        {"sizes": [1, 2]},
        {"hour": -1},
        {"hour": 1 << 31},
        {"source": 1.0},
        {"round": "1"},
    ],
)
def test_a_bad_batch_is_refused(bad: dict) -> None:
    good = {"round": 1, "source": 0, "ids": bytes(32), "data": b"xx", "sizes": [1, 1], "hour": 5}
    assert len(Batch(**good)) == 2
    with pytest.raises(InvalidInput):
        Batch(**good | bad)
