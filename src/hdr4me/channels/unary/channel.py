"""Entries: one small table for each entry of a one-hot vector; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hdr4me.channels.channel import (
    MAX_FIELDS,
    Take,
    check_fields,
    integer_rows,
    named_epsilon,
    numbers,
    whole,
)
from hdr4me.channels.proof import entries_loss
from hdr4me.channels.table.channel import IntegerTable, Stages, check_unbiased
from hdr4me.errors import InvalidInput


@dataclass(frozen=True, repr=False)
class Entries(IntegerTable):
    """One of `size` categories as a vector of entries, each sent through the same table of two rows.

    Row 0 is an absent entry, row 1 the present one; `decode` is unbiased for 0 and 1. Two inputs differ in two entries,
    so the loss is the product of the largest ratios both ways.

    Parameters
    ----------
    mechanism
        The name of the design.
    epsilon
        The budget that an answer stays within.
    size
        The number of categories.
    decode
        What each cell of an entry counts for.
    weights
        The two rows of integers.
    stages
        The permanent and the fresh table whose product `weights` is, for memoized responses (`hdr4me.client`).

    Examples
    --------
    >>> half = 1 << 31
    >>> bits = Entries("bits", 1.1, 5, (-1.0, 3.0), ((3 * half // 2, half // 2), (half, half)))
    >>> bits.loss, bits.n_counters, bits.per_report
    (Fraction(3, 1), 10, 5)
    """

    kind = "entries"
    loss_of = entries_loss
    response_class = "hdr4me.channels.unary.response:UnaryResponse"

    mechanism: str
    epsilon: float
    size: int
    decode: tuple[float, ...]
    weights: tuple[tuple[int, ...], ...]
    stages: Stages | None = None
    loss: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        name = f"channel {self.mechanism!r}"
        object.__setattr__(self, "decode", tuple(self.decode))
        if type(self.size) is not int or not 2 <= self.size <= MAX_FIELDS:
            raise InvalidInput(f"{name}: size = {self.size!r} must be 2 to {MAX_FIELDS} categories")
        self.prove(name, 2)
        check_unbiased(f"{name}: decode", self.weights, self.decode, (0.0, 1.0))

    @property
    def takes(self) -> tuple[Take, ...]:
        return (Take("category", self.size),)

    def field_rows(self, x: int) -> tuple[int, ...]:
        return tuple([int(k == x) for k in range(self.size)])

    def worst_pair(self) -> tuple[int, int]:
        return 0, 1

    def to_dict(self) -> dict[str, Any]:
        return self.document(size=self.size, decode=list(self.decode))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Entries:
        fields = {"mechanism", "epsilon", "size", "decode", "weights"}
        check_fields("channel of entries", document, fields, frozenset({"stages"}))
        mechanism, epsilon = named_epsilon("channel of entries", document)
        return cls(
            mechanism,
            epsilon,
            whole("size", document["size"]),
            numbers("decode", document["decode"]),
            integer_rows("weights", document["weights"]),
            Stages.from_dict(document.get("stages")),
        )
