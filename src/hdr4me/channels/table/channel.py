"""Tables of integers, for a whole input or for each entry of a one-hot vector; standard library only."""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

from hdr4me.channels.channel import (
    MAX_FIELDS,
    Channel,
    Draws,
    Field,
    Input,
    check_fields,
    integer,
    integer_rows,
    is_number,
    named_epsilon,
    numbers,
)
from hdr4me.channels.proof import BITS, ONE, check_ratio, column_ratio, entries_ratio
from hdr4me.errors import FormatError, InvalidInput

MAX_CELLS = 256  # A cell is one byte on the wire
MAX_INPUTS = 65536
# Tolerance of a decoder's mean, relative to the mean absolute decoded value.
UNBIASED = 1e-7

Rows = tuple[tuple[int, ...], ...]
Ratio = Callable[[Sequence[Sequence[int]]], Fraction]

STAGE_BITS = 16  # a row of either stage sums to 2^16, so a row of their product sums to 2^32
STAGE_ONE = 1 << STAGE_BITS


@dataclass(frozen=True)
class Stages:
    """Two stages of an answer: a memoized table, and a fresh table with a row for each cell of the first.

    The total privacy loss of any number of reports of an unchanged value is at most `epsilon`.
    """

    epsilon: float
    first: Rows
    second: Rows

    def check(self, name: str, weights: Sequence[Sequence[int]], ratio: Ratio = column_ratio) -> None:
        """Check that the product of the stages is `weights` and that the ratio of the first is at most e^`epsilon`."""
        for stage, table in (("first", self.first), ("second", self.second)):
            widths = {len(row) for row in table}
            if len(widths) != 1 or any(min(row) < 0 or sum(row) != STAGE_ONE for row in table):
                raise InvalidInput(
                    f"{name}: every row of its {stage} stage must have weights that sum to {STAGE_ONE}"
                )
        if len(self.first[0]) != len(self.second):
            raise InvalidInput(f"{name}: its second stage must have a row for each cell of the first")
        if product_rows(self.first, self.second) != tuple(map(tuple, weights)):
            raise InvalidInput(f"{name}: its stages do not multiply to its weights")
        check_ratio(f"{name}, in all its reports of one value,", ratio(self.first), self.epsilon)

    def sample(self, row: int, memoized: Draws, fresh: Draws) -> int:
        """The reported cell: 16 memoized bits select a cell of the first stage, 16 fresh bits a cell of the second."""
        first, second = self._cells
        return second[first[row].pick(memoized.bits(STAGE_BITS))].pick(fresh.bits(STAGE_BITS))

    @cached_property
    def _cells(self) -> tuple[list[PackedRow], list[PackedRow]]:
        return [PackedRow(row) for row in self.first], [PackedRow(row) for row in self.second]

    def to_dict(self) -> dict[str, Any]:
        """The stages in the document of a channel."""
        return {
            "epsilon": self.epsilon,
            "first": [list(row) for row in self.first],
            "second": [list(row) for row in self.second],
        }

    @classmethod
    def from_dict(cls, document: Any) -> Stages | None:
        """The stages from the output of `to_dict`; None if a channel has no stages."""
        if document is None:
            return None
        check_fields("pair of stages", document, {"epsilon", "first", "second"})
        if not is_number(document["epsilon"]):
            raise FormatError("the epsilon of a channel's stages must be a number")
        first, second = (integer_rows(f"the {stage} stage", document[stage]) for stage in ("first", "second"))
        if not (first and second and all(first) and all(second)):
            raise FormatError("the stages of a channel must have at least one row and one cell")
        return cls(float(document["epsilon"]), first, second)


class PackedRow:
    """The cells of a row of weights, from which a word selects one: cell i if it is in the i-th interval of weights.

    A word is compared with all bounds between cells at once: they are packed into one integer with 64 bits for each,
    so that the sum of 2^32 − bound and the word reaches 2^32 where the word is at or above the bound. The running
    time of a search that stops early would depend on the input.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        bounds = list(accumulate(weights))[:-1]
        self._gaps = _packed([ONE - bound for bound in bounds])
        self._each = _packed([1] * len(bounds))

    def pick(self, word: int) -> int:
        """The cell of a word: the number of bounds at or below it."""
        return (self._gaps + word * self._each & self._each << BITS).bit_count()


def _packed(numbers: Sequence[int]) -> int:
    return int.from_bytes(struct.pack(f"<{len(numbers)}Q", *numbers), "little")


def product_rows(first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> Rows:
    """The product of two integer tables."""
    columns = range(len(second[0]))
    return tuple(
        tuple(sum(w * second[kept][y] for kept, w in enumerate(row)) for y in columns) for row in first
    )


class IntegerTable(Channel):
    """A channel whose fields are drawn from rows of integers that sum to 2^32."""

    weights: Rows
    stages: Stages | None
    ratio_of: ClassVar[Ratio]

    def prove(self, name: str, most: int) -> None:
        """Check the rows, prove that their ratio is at most e^ε, and check the stages if there are any."""
        check_rows(name, self.weights, most)
        try:
            object.__setattr__(self, "likelihood_ratio", type(self).ratio_of(self.weights))
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}") from error
        self.check()
        if self.stages is not None:
            self.stages.check(name, self.weights, type(self).ratio_of)

    @abstractmethod
    def field_rows(self, x: int) -> tuple[int, ...]:
        """The row of each field of an answer for input `x`."""

    @property
    def n_cells(self) -> int:
        """The number of cells of a field."""
        return len(self.weights[0])

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The integers of an answer, each a cell."""
        return (Field(self.n_cells),) * len(self.field_rows(0))

    @property
    def n_counters(self) -> int:
        return len(self.fields) * self.n_cells

    @property
    def per_report(self) -> int:
        return len(self.fields)

    @property
    def rows(self) -> Rows:
        return self.weights

    @cached_property
    def _cells(self) -> list[PackedRow]:
        return [PackedRow(row) for row in self.weights]

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        return tuple([self._cells[row].pick(draws.bits(BITS)) for row in self.field_rows(x)])

    def repeat(self, x: int, memoized: Draws, fresh: Draws) -> tuple[int, ...]:
        if self.stages is None:
            return self.sample(x, memoized)
        return tuple([self.stages.sample(row, memoized, fresh) for row in self.field_rows(x)])

    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        rows = zip(self.field_rows(x), output, strict=True)
        return math.prod((Fraction(self.weights[row][cell], ONE) for row, cell in rows), start=Fraction(1))

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return (k * self.n_cells + cell for k, cell in enumerate(output))

    def n_answers(self, counts: Sequence[int]) -> int | None:
        totals = {sum(counts[start : start + self.n_cells]) for start in range(0, len(counts), self.n_cells)}
        return totals.pop() if len(totals) == 1 and min(counts) >= 0 else None

    def document(self, **own: Any) -> dict[str, Any]:
        """The channel in a survey document, with its own fields in the middle."""
        made = {"kind": self.kind, "mechanism": self.mechanism, "epsilon": self.epsilon} | own
        stages = {} if self.stages is None else {"stages": self.stages.to_dict()}
        return made | {"weights": [list(row) for row in self.weights]} | stages


@dataclass(frozen=True, repr=False)
class Table(IntegerTable):
    """Input x is reported as cell y with probability weights[x][y] / 2^32.

    A dimension's part of the input is one of equally spaced levels on [−1, 1] or, for an optional number, one of the
    levels or the last input, "no value". A decoder has a number for each cell whose mean, given the input, is the
    decoder's target: the level for "value" (0 for a missing value), and 1 or 0 (missing) for "present". A table for
    several dimensions has the decoders "value", "value 2", "value 3" …

    The constructor proves the privacy of the table: integer weights, rows that sum to 2^32, unbiased decoders, and a
    largest ratio in a column of at most e^ε.

    Parameters
    ----------
    mechanism, epsilon
        The name of the design, and the privacy budget of an answer.
    decoders
        The decoded values of the cells, by the name of the decoder.
    weights, stages
        One row of integers for each input; the memoized and the fresh table whose product they are, if there are any.
    parts
        The input of each dimension; one number with a level for each row unless given.

    Examples
    --------
    >>> half = 1 << 31
    >>> rows = ((3 * half // 2, half // 2), (half // 2, 3 * half // 2))
    >>> coin = Table("coin", 1.1, {"value": (-2.0, 2.0)}, rows)
    >>> coin.likelihood_ratio, coin.n_inputs, coin.n_cells
    (Fraction(3, 1), 2, 2)
    >>> Table("coin", 1.0, coin.decoders, coin.weights)
    Traceback (most recent call last):
    ...
    hdr4me.errors.InvalidInput: channel 'coin' leaks a factor of 3, more than e^epsilon at its epsilon = 1.0
    """

    kind = "table"
    ratio_of = column_ratio
    response_class = "hdr4me.channels.table.response:TableResponse"

    mechanism: str
    epsilon: float
    decoders: Mapping[str, tuple[float, ...]]
    weights: tuple[tuple[int, ...], ...]
    parts: tuple[Input, ...] = ()
    stages: Stages | None = None
    likelihood_ratio: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "decoders", {name: tuple(values) for name, values in self.decoders.items()})
        if not self.parts:
            put(self, "parts", (Input("number", len(self.weights)),))
        name = f"channel {self.mechanism!r}"
        for part in self.parts:
            least = {"number": 2, "optional": 3}.get(part.input_kind)
            if least is None or part.size < least:
                raise InvalidInput(
                    f"{name} has {part.size} inputs for a {part.input_kind}: not a number with levels"
                )
        if self.n_inputs != len(self.weights):
            raise InvalidInput(f"{name} has {len(self.weights)} rows for {self.n_inputs} inputs")
        self.prove(name, MAX_INPUTS)
        targets = self.targets
        if set(self.decoders) != set(targets):
            raise InvalidInput(
                f"{name} has decoders {', '.join(self.decoders) or 'none'}: expected {', '.join(targets)}"
            )
        for decoder, values in self.decoders.items():
            check_unbiased(f"{name}: decoder {decoder!r}", self.weights, values, targets[decoder])

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.parts

    def field_rows(self, x: int) -> tuple[int, ...]:
        return (x,)

    def worst_pair(self) -> tuple[int, int]:
        columns = [column for column in zip(*self.weights, strict=True) if max(column)]
        worst = max(columns, key=lambda column: Fraction(max(column), min(column)))
        return worst.index(max(worst)), worst.index(min(worst))

    @cached_property
    def targets(self) -> dict[str, tuple[float, ...]]:
        """The required mean of each decoder, given the input."""
        decoders: dict[str, tuple[float, ...]] = {}
        block = self.n_inputs
        for number, part in enumerate(self.parts, start=1):
            block //= part.size
            n_levels = part.n_levels
            own = [(x // block) % part.size for x in range(self.n_inputs)]
            suffix = f" {number}" if number > 1 else ""
            level = [2 * i / (n_levels - 1) - 1 for i in range(n_levels)] + [0.0] * (part.size - n_levels)
            decoders["value" + suffix] = tuple(level[i] for i in own)
            if part.input_kind == "optional":
                decoders["present" + suffix] = tuple(float(i < n_levels) for i in own)
        return decoders

    def to_dict(self) -> dict[str, Any]:
        inputs = [{"reads": part.input_kind, "size": part.size} for part in self.parts]
        return self.document(takes=inputs, decoders={name: list(x) for name, x in self.decoders.items()})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Table:
        named = named_epsilon("table", document, {"takes", "decoders", "weights"}, frozenset({"stages"}))
        inputs, decoders = document["takes"], document["decoders"]
        if not isinstance(inputs, list) or not inputs or not isinstance(decoders, Mapping):
            raise FormatError("the field takes of a table must be a list, and decoders an object")
        for item in inputs:
            check_fields("table's part", item, {"reads", "size"})
            if not isinstance(item["reads"], str):
                raise FormatError("reads must be a string")
        return cls(
            *named,
            {str(name): numbers("a table's decoder", values) for name, values in decoders.items()},
            integer_rows("a table's weights", document["weights"]),
            tuple(Input(item["reads"], integer("size", item["size"])) for item in inputs),
            Stages.from_dict(document.get("stages")),
        )


@dataclass(frozen=True, repr=False)
class UnaryEncoding(IntegerTable):
    """One of `size` categories as a vector of entries, each sent through the same table of two rows.

    Row 0 is for absent entries, row 1 for the present entry; `decode` is unbiased for 0 and 1. Two inputs differ in two
    entries, so the ratio is the product of the largest ratios in both directions.

    Parameters
    ----------
    mechanism, epsilon
        The name of the design, and the privacy budget of an answer.
    size
        The number of categories.
    weights, decode, stages
        The two rows of integers, the decoded value of each cell, and the two stages of memoized responses, if any.

    Examples
    --------
    >>> half = 1 << 31
    >>> bits = UnaryEncoding("bits", 1.1, 5, (-1.0, 3.0), ((3 * half // 2, half // 2), (half, half)))
    >>> bits.likelihood_ratio, bits.n_counters, bits.per_report
    (Fraction(3, 1), 10, 5)
    """

    kind = "entries"
    ratio_of = entries_ratio
    response_class = "hdr4me.channels.table.response:UnaryResponse"

    mechanism: str
    epsilon: float
    size: int
    decode: tuple[float, ...]
    weights: tuple[tuple[int, ...], ...]
    stages: Stages | None = None
    likelihood_ratio: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        name = f"channel {self.mechanism!r}"
        object.__setattr__(self, "decode", tuple(self.decode))
        if type(self.size) is not int or not 2 <= self.size <= MAX_FIELDS:
            raise InvalidInput(f"{name}: size = {self.size!r} must be 2 to {MAX_FIELDS} categories")
        self.prove(name, 2)
        check_unbiased(f"{name}: decode", self.weights, self.decode, (0.0, 1.0))

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("category", self.size),)

    def field_rows(self, x: int) -> tuple[int, ...]:
        return tuple([int(k == x) for k in range(self.size)])

    def worst_pair(self) -> tuple[int, int]:
        return 0, 1

    def to_dict(self) -> dict[str, Any]:
        return self.document(size=self.size, decode=list(self.decode))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> UnaryEncoding:
        own, optional = {"size", "decode", "weights"}, frozenset({"stages"})
        return cls(
            *named_epsilon("channel of unary encoding", document, own, optional),
            integer("size", document["size"]),
            numbers("decode", document["decode"]),
            integer_rows("weights", document["weights"]),
            Stages.from_dict(document.get("stages")),
        )


def check_rows(name: str, rows: Sequence[Sequence[int]], most: int) -> None:
    """Check for 2 to `most` rows of 2 to 256 integers that sum to 2^32, without unused columns."""
    n_rows, n_cells = len(rows), len(rows[0]) if rows else 0
    if not 2 <= n_rows <= most or not 2 <= n_cells <= MAX_CELLS:
        raise InvalidInput(
            f"{name} has {n_rows} rows and {n_cells} cells: 2 to {most} rows and 2 to {MAX_CELLS} cells are allowed"
        )
    for row in rows:
        if len(row) != n_cells or min(row) < 0 or sum(row) != ONE:
            raise InvalidInput(f"{name}: every row must have {n_cells} weights that sum to 2**{BITS}")


def check_unbiased(
    name: str, rows: Sequence[Sequence[int]], values: Sequence[float], targets: Sequence[float]
) -> None:
    """Check that each row's mean of `values` is its target, within 1e-7 of its mean absolute decoded value.

    The tolerance is weighted by probability, so that a large decoded value of a rare cell does not hide an error. The
    decoded value of an unused cell must be 0.
    """
    if len(values) != len(rows[0]) or not all(map(math.isfinite, values)):
        raise InvalidInput(f"{name} needs {len(rows[0])} finite values")
    unused = [y for y, column in enumerate(zip(*rows, strict=True)) if not max(column)]
    if any(values[y] for y in unused):
        raise InvalidInput(f"{name} has a nonzero value for an unused cell")
    for row, target in zip(rows, targets, strict=True):
        parts = [w * y for w, y in zip(row, values, strict=True)]
        mean, size = (math.ldexp(math.fsum(x), -BITS) for x in (parts, map(abs, parts)))
        if abs(mean - target) > UNBIASED * (1.0 + size):
            raise InvalidInput(f"{name} is biased: its mean is {mean:.9g} instead of {target:.9g}")
