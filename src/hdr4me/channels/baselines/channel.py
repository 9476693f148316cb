"""The channels and families of the baselines that no other package has; standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import comb, prod
from typing import Any

from hdr4me.channels.channel import Channel, Draws, Field, Input, named_epsilon, whole
from hdr4me.channels.k_subset import Family, KSubset
from hdr4me.channels.projective.field import MAX_POWER, dot, is_order
from hdr4me.channels.proof import BITS, ONE, check_ratio
from hdr4me.channels.subset import uniform_subset
from hdr4me.channels.table.channel import STAGE_BITS, STAGE_ONE
from hdr4me.errors import FormatError, InvalidInput

MAX_SIZE = 4096  # categories of a baseline
MAX_OUTPUTS = 1 << 24  # a tally has one counter for each output


class OneNumber(Family):
    """A family of categories whose output is one number, with a counter for each output."""

    size: int

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("category", self.size),)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (Field(self.n_outputs),)

    @property
    def n_counters(self) -> int:
        return self.n_outputs

    @property
    def per_report(self) -> int:
        return 1


@dataclass(frozen=True)
class LocalHashing(OneNumber):
    """Local hashing (Wang, Blocki, Li and Jha 2017): a random hash function and the hashed value among `order` values.

    The function number a hashes the category x to ⟨a, x⟩, with a and x written as vectors of `length` elements of the
    field with `order` elements. Two categories collide under exactly 1/order of the functions.
    """

    name = "local_hashing"
    response_class = "hdr4me.channels.baselines.response:HashingResponse"

    size: int
    order: int
    length: int

    def __post_init__(self) -> None:
        if type(self.order) is not int or not 2 <= self.order < ONE or not is_order(self.order):
            raise InvalidInput.of("order", self.order, f"a prime, or a power of a prime up to {MAX_POWER}")
        if type(self.length) is not int or not 1 <= self.length <= 24 or self.n_outputs > MAX_OUTPUTS:
            raise InvalidInput.of(
                "length", self.length, f"a positive integer with at most {MAX_OUTPUTS} outputs"
            )
        self.check_integer("size", 2, min(MAX_SIZE, self.n_functions))

    @property
    def n_functions(self) -> int:
        """The number of hash functions."""
        return int(self.order**self.length)

    @property
    def n_outputs(self) -> int:
        return self.n_functions * self.order

    @property
    def n_heavy(self) -> int:
        return self.n_functions

    def hashed(self, function: int, x: int) -> int:
        """The hashed value of a category."""
        return dot(self._digits(function), self._digits(x), self.order)

    def _digits(self, number: int) -> list[int]:
        return [number // self.order**place % self.order for place in range(self.length)]

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        function, value = divmod(output[0], self.order)
        return self.hashed(function, x) == value

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        function, shift = draws.below(self.n_functions), 1 + draws.below(self.order - 1)
        value = (self.hashed(function, x) + (0 if heavy else shift)) % self.order
        return (function * self.order + value,)

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        return p, Fraction(1, self.order)


@dataclass(frozen=True)
class Hadamard(OneNumber):
    """Hadamard response (Acharya, Sun and Zhang 2019): `blocks` blocks of outputs, each with a Hadamard matrix.

    Category x belongs to block x mod blocks and to row x // blocks + 1 of its matrix. Its heavy outputs are those of
    its block with the entry +1 in this row. One block is the variant of the authors for a small ε.
    """

    name = "hadamard"
    response_class = "hdr4me.channels.baselines.response:HadamardResponse"

    size: int
    blocks: int

    def __post_init__(self) -> None:
        self.check_integer("size", 2, MAX_SIZE)
        self.check_integer("blocks", 1, self.size)

    @cached_property
    def width(self) -> int:
        """The number of outputs of a block: a power of 2 above the number of its categories."""
        return 1 << (-(-self.size // self.blocks)).bit_length()

    @property
    def n_outputs(self) -> int:
        return self.blocks * self.width

    @property
    def n_heavy(self) -> int:
        return self.width // 2

    def place(self, x: int) -> tuple[int, int]:
        """The block and the row of a category."""
        return x % self.blocks, x // self.blocks + 1

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        block, row = self.place(x)
        return output[0] // self.width == block and (output[0] % self.width & row).bit_count() % 2 == 0

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """All bits of a column but one are drawn; the bit at the first 1 of the row gives the entry its sign.

        A light output is in the same half of a block, or in one of the other blocks.
        """
        block, row = self.place(x)
        inside, outside = draws.below(self.n_heavy), draws.below(self.n_outputs - self.n_heavy)
        free = inside if heavy else outside % self.n_heavy
        low = (row & -row) - 1  # the bits below the first 1 of the row
        column = (free & low) | (free & ~low) << 1
        column |= (low + 1) * (((column & row).bit_count() + (not heavy)) % 2)
        other = outside - self.n_heavy
        elsewhere = other + (self.width if other >= block * self.width else 0)
        return (elsewhere if not heavy and other >= 0 else block * self.width + column,)

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(an output supports x) of users with x, and the mean of this probability over the other categories."""
        light = (1 - p) / (self.n_outputs - self.n_heavy)
        beside = p / 2 + light * self.n_heavy / 2
        q = beside * self.share_beside + light * self.n_heavy * (1 - self.share_beside)
        return p, q

    @cached_property
    def share_beside(self) -> Fraction:
        """The share of the pairs of different categories that belong to one block."""
        full, more = divmod(self.size, self.blocks)
        pairs = more * (full + 1) * full + (self.blocks - more) * full * (full - 1)
        return Fraction(pairs, self.size * (self.size - 1))


@dataclass(frozen=True, repr=False)
class TwoStages(KSubset):
    """A k-subset response in two stages, memoized and fresh (Arcolezi et al. 2021, 2023).

    Each hash function of the family (one, the identity, for sets of one category) has one heavy value among
    g = n_outputs / n_heavy. The first stage reports it with the weight 2^16 − (g − 1)·`first`, and each other value
    with the weight `first`. The second stage does the same to the result, with `second`. `weight` is the product.

    Parameters
    ----------
    mechanism, epsilon, family, weight
        As for `KSubset`.
    memoized
        The privacy budget of any number of reports of an unchanged value.
    first, second
        The weight of each other value, of 2^16, in the memoized and in the fresh stage.
    """

    kind = "two_stages"

    memoized: float = 0.0
    first: int = 0
    second: int = 0

    def __post_init__(self) -> None:
        g = self.n_values
        for name in ("first", "second"):
            other = getattr(self, name)
            if type(other) is not int or other < 1 or STAGE_ONE - (g - 1) * other <= other:
                raise InvalidInput.of(
                    name, other, f"a positive integer below 2**{STAGE_BITS} / {g}, the number of values"
                )
        same = [STAGE_ONE - (g - 1) * other for other in (self.first, self.second)]
        if self.weight != prod(same) + (g - 1) * self.first * self.second:
            raise InvalidInput(f"channel {self.mechanism!r}: its stages do not multiply to its weight")
        super().__post_init__()
        name = f"channel {self.mechanism!r}, in all its reports of one value,"
        check_ratio(name, Fraction(same[0], self.first), self.memoized)

    @property
    def n_values(self) -> int:
        """g: the number of values that a stage distinguishes."""
        return self.family.n_outputs // self.family.n_heavy

    @property
    def memoized_epsilon(self) -> float:
        return self.memoized

    def repeat(self, x: int, memoized: Draws, fresh: Draws) -> tuple[int, ...]:
        g = self.n_values
        keeps = [
            source.bits(STAGE_BITS) < STAGE_ONE - (g - 1) * other
            for source, other in ((memoized, self.first), (fresh, self.second))
        ]
        function, value = divmod(self.family.draw(x, keeps[0], memoized)[0], g)
        shift = 1 + fresh.below(g - 1)
        return (function * g + (value + (0 if keeps[1] else shift)) % g,)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"memoized": self.memoized, "first": self.first, "second": self.second}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TwoStages:
        own = ("memoized", "first", "second")
        made = KSubset.from_dict({key: value for key, value in document.items() if key not in own})
        if not all(key in document for key in own) or not isinstance(document["memoized"], int | float):
            raise FormatError("a channel of two stages must have the fields memoized, first and second")
        stages = float(document["memoized"]), *(whole(key, document[key]) for key in own[1:])
        return cls(made.mechanism, made.epsilon, made.family, made.weight, *stages)


@dataclass(frozen=True, repr=False)
class BitFlip(Channel):
    """dBitFlip (Ding, Kulkarni and Yekhanin 2017): `bits` random entries of the one-hot vector, each flipped or not.

    A field is 2·category + bit. An entry is flipped with probability `flipped` / 2^32. Two inputs differ in two
    entries, of which one report shows at most two.
    """

    kind = "bit_flip"
    response_class = "hdr4me.channels.baselines.response:BitFlipResponse"

    mechanism: str
    epsilon: float
    size: int
    bits: int
    flipped: int
    likelihood_ratio: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, most in (("size", MAX_SIZE), ("bits", self.size), ("flipped", ONE // 2 - 1)):
            value = getattr(self, name)
            if type(value) is not int or not 1 + (name == "size") <= value <= most:
                raise InvalidInput.of(name, value, f"an integer from {1 + (name == 'size')} to {most}")
        object.__setattr__(self, "likelihood_ratio", Fraction(ONE - self.flipped, self.flipped) ** min(self.bits, 2))
        self.check()

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("category", self.size),)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (Field(2 * self.size),) * self.bits

    @property
    def n_counters(self) -> int:
        return 2 * self.size

    @property
    def per_report(self) -> int:
        return self.bits

    def is_output(self, output: Sequence[int]) -> bool:
        places = [number // 2 for number in output]
        return super().is_output(output) and places == sorted(set(places))

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        places = sorted(uniform_subset(self.size, self.bits, draws))
        return tuple([2 * k + ((k == x) ^ (draws.bits(BITS) < self.flipped)) for k in places])

    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        flips = sum((number // 2 == x) != number % 2 for number in output)
        weights = (ONE - self.flipped) ** (self.bits - flips) * self.flipped**flips
        return Fraction(weights, ONE**self.bits * comb(self.size, self.bits))

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return iter(output)

    def worst_pair(self) -> tuple[int, int]:
        return 0, 1

    def to_dict(self) -> dict[str, Any]:
        own = {"size": self.size, "bits": self.bits, "flipped": self.flipped}
        return {"kind": self.kind, "mechanism": self.mechanism, "epsilon": self.epsilon} | own

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> BitFlip:
        own = ("size", "bits", "flipped")
        named = named_epsilon("dBitFlip channel", document, set(own))
        return cls(*named, *(whole(name, document[name]) for name in own))
