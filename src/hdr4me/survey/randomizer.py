"""A table as a survey carries it: integers, their decoding and the proof of their privacy; standard library only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, get_args

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.mechanisms.exactness import BITS, column_loss, entries_loss, exp_lower

if TYPE_CHECKING:
    from hdr4me.mechanisms.table import Table

__all__ = ["MAX_CELLS", "Kind", "Randomizer"]

Kind = Literal["value", "category", "entries"]

MAX_CELLS = 256
"""A code is one byte."""


@dataclass(frozen=True)
class Randomizer:
    """How one value is randomised: row = input level, P(code y | row) = weights[row][y] / 2^32.

    Its construction is its audit: whole weights, rows that sum to 2^32, decoding that is unbiased, and a privacy
    loss (the largest ratio in a column; for entries the product of the two largest) proven at most e^ε.

    >>> half = 1 << 31
    >>> coin = Randomizer("coin", 1.1, "value", (-2.0, 2.0), ((3 * half // 2, half // 2), (half // 2, 3 * half // 2)))
    >>> coin.loss, coin.n_levels, coin.n_cells
    (Fraction(3, 1), 2, 2)
    >>> Randomizer("coin", 1.0, "value", coin.decode, coin.weights)
    Traceback (most recent call last):
    ...
    hdr4me.errors.InvalidInput: randomizer 'coin' leaks a factor of 3, more than e^epsilon at its epsilon = 1.0
    """

    mechanism: str
    epsilon: float
    kind: Kind
    decode: tuple[float, ...]
    weights: tuple[tuple[int, ...], ...]
    loss: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self._check_types()
        self._check_shape()
        try:
            loss = entries_loss(self.weights) if self.kind == "entries" else column_loss(self.weights)
        except InvalidInput as error:
            raise InvalidInput(f"{self._name}: {error}") from error
        if loss > exp_lower(self.epsilon):
            raise InvalidInput(
                f"{self._name} leaks a factor of {float(loss):.15g}, "
                f"more than e^epsilon at its epsilon = {self.epsilon}"
            )
        object.__setattr__(self, "loss", loss)
        self._check_decoding()

    @property
    def _name(self) -> str:
        return f"randomizer {self.mechanism!r}"

    def _check_types(self) -> None:
        if not self.mechanism.isprintable():
            raise InvalidInput(f"{self._name}: its name must be printable")
        if self.kind not in get_args(Kind):
            raise InvalidInput(
                f"{self._name}: kind = {self.kind!r} must be one of {', '.join(get_args(Kind))}"
            )
        if not 0 < self.epsilon < math.inf:
            raise InvalidInput(f"{self._name}: epsilon = {self.epsilon} must be positive and finite")
        if not all(math.isfinite(value) for value in self.decode):
            raise InvalidInput(f"{self._name}: decode must be finite")

    def _check_shape(self) -> None:
        n_rows, n_cells = len(self.weights), len(self.weights[0]) if self.weights else 0
        if not 2 <= n_rows <= MAX_CELLS or not 2 <= n_cells <= MAX_CELLS:
            raise InvalidInput(
                f"{self._name} has {n_rows} rows and {n_cells} cells: 2 to {MAX_CELLS} are allowed"
            )
        for row in self.weights:
            if len(row) != n_cells or min(row) < 0 or sum(row) != 1 << BITS:
                raise InvalidInput(
                    f"{self._name}: every row must have {n_cells} weights that sum to 2**{BITS}"
                )
        n_decoded = 2 if self.kind == "category" else n_cells
        if len(self.decode) != n_decoded:
            raise InvalidInput(f"{self._name}: {len(self.decode)} decoded values, expected {n_decoded}")
        if self.kind == "entries" and n_rows != 2:
            raise InvalidInput(f"{self._name} has {n_rows} rows: entries have 2, absent and present")
        if self.kind == "category":
            diagonal = {row[i] for i, row in enumerate(self.weights) if i < n_cells}
            others = {weight for i, row in enumerate(self.weights) for y, weight in enumerate(row) if y != i}
            if n_rows != n_cells or len(diagonal) > 1 or len(others) > 1 or max(others) >= max(diagonal):
                raise InvalidInput(
                    f"{self._name}: a category table is square, one weight on its diagonal and one, smaller, off it"
                )

    def _check_decoding(self) -> None:
        # A wrong decoding harms no one's privacy, only the answer; rounding alone stays far inside 1e-7.
        tolerance = 1e-7 * (1.0 + max(map(abs, self.decode)))
        if self.kind == "category":
            equal, other = self.decode
            p, q = (math.ldexp(w, -BITS) for w in self.weights[0][:2])
            pairs = [(p * equal + (1 - p) * other, 1.0), (q * equal + (1 - q) * other, 0.0)]
        else:
            products = (
                math.fsum(w * y for w, y in zip(row, self.decode, strict=True)) * 2.0**-BITS
                for row in self.weights
            )
            pairs = list(zip(products, self.levels, strict=True))
        if any(abs(mean - level) > tolerance for mean, level in pairs):
            raise InvalidInput(f"{self._name}: its decoding is not unbiased")

    @property
    def n_levels(self) -> int:
        return len(self.weights)

    @property
    def n_cells(self) -> int:
        return len(self.weights[0])

    @cached_property
    def levels(self) -> tuple[float, ...]:
        """What each row stands for: equally spaced on [-1, 1] for a value, its own number otherwise."""
        if self.kind == "value":
            return tuple(2 * i / (self.n_levels - 1) - 1 for i in range(self.n_levels))
        return tuple(map(float, range(self.n_levels)))

    @cached_property
    def cumulative(self) -> tuple[tuple[int, ...], ...]:
        """The running sums of each row, the last one (2^32) left out: code y of a word w is #{c ≤ w}."""
        return tuple(tuple(accumulate(row))[:-1] for row in self.weights)

    @classmethod
    def from_table(cls, table: Table) -> Randomizer:
        """The deployed form of a designed table."""
        return cls(
            mechanism=table.name,
            epsilon=float(table.epsilon),
            kind=table.kind,
            decode=tuple(table.decode.tolist()),
            weights=tuple(map(tuple, table.weights.tolist())),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "kind": self.kind,
            "decode": list(self.decode),
            "weights": [list(row) for row in self.weights],
        }

    @classmethod
    def from_dict(cls, document: Any) -> Randomizer:
        """Read what `to_dict` wrote and prove it again."""
        fields = {"mechanism", "epsilon", "kind", "decode", "weights"}
        if not isinstance(document, Mapping) or set(document) != fields:
            raise FormatError(f"a randomizer is an object with the fields {', '.join(sorted(fields))}")
        mechanism, kind, epsilon = document["mechanism"], document["kind"], document["epsilon"]
        if not isinstance(mechanism, str) or not isinstance(kind, str) or not _is_number(epsilon):
            raise FormatError("a randomizer's mechanism and kind are strings, its epsilon a number")
        decode, weights = document["decode"], document["weights"]
        if not _is_list(decode) or not all(map(_is_number, decode)):
            raise FormatError("a randomizer's decode is a list of numbers")
        if not _is_list(weights) or not all(
            _is_list(row) and all(type(w) is int for w in row) for row in weights
        ):
            raise FormatError("a randomizer's weights are lists of whole numbers")
        return cls(
            mechanism=mechanism,
            epsilon=float(epsilon),
            kind=kind,  # type: ignore[arg-type]  # its value is checked by the constructor
            decode=tuple(map(float, decode)),
            weights=tuple(map(tuple, weights)),
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
