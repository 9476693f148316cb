"""The k-subset response: N outputs, of which k are heavy for each input, and one integer W; standard library only.

The output is one of the k heavy outputs of the input with probability W / 2^32, uniform among these, and otherwise
uniform among the other N − k outputs. The ratio of two probabilities of one output is 1 or W(N − k) / ((2^32 − W)k), so
that one fraction proves the privacy of every member of this family.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from math import comb, floor
from typing import Any, ClassVar, Self

from hdr4me.channels.channel import (
    AnswerFormat,
    Channel,
    Draws,
    Field,
    Input,
    check_fields,
    integer,
    named_epsilon,
)
from hdr4me.channels.proof import BITS, ONE, exp_lower
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.registry import Registry


class Family(AnswerFormat):
    """A set of outputs, and the heavy outputs of each input.

    By default the input is one of `size` categories, and an output is one integer with a counter of its own.
    """

    name: ClassVar[str]
    response_class: ClassVar[str] = "hdr4me.channels.k_subset_response:KSubsetResponse"
    size: int

    @property
    @abstractmethod
    def n_outputs(self) -> int: ...

    @cached_property
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

    @property
    @abstractmethod
    def n_heavy(self) -> int:
        """The number of heavy outputs, which is the same for all inputs."""

    @abstractmethod
    def is_heavy(self, x: int, output: Sequence[int]) -> bool: ...

    @abstractmethod
    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """A uniform heavy or light output of `x`; the sequence of draws depends on neither argument."""

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return iter(output)

    @abstractmethod
    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(a report supports category c) for users with category c, and for other users."""

    def to_dict(self) -> dict[str, Any]:
        """The family's parameters: the fields of its dataclass."""
        return {name: getattr(self, name) for name in self._names()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """The family from the output of `to_dict`."""
        names = cls._names()
        check_fields(f"{cls.name} family", document, set(names))
        return cls(*(integer(name, document[name]) for name in names))

    @classmethod
    def _names(cls) -> list[str]:
        return [parameter.name for parameter in fields(cls)]  # type: ignore[arg-type]

    def check_integer(self, name: str, least: int, most: int) -> None:
        """Refuse a parameter that is not an integer within these bounds."""
        value = getattr(self, name)
        if type(value) is not int or not least <= value <= most:
            raise InvalidInput.of(name, value, f"an integer from {least} to {most}")

    def is_output(self, output: Sequence[int]) -> bool:
        """Whether fields within their bounds are an output."""
        return True

    def are_counts(self, counts: Sequence[int], n: int) -> bool:
        """Whether n reports can give counters with the right sum."""
        return True

    def worst_pair(self) -> tuple[int, int]:
        """Two inputs whose output distributions differ most."""
        return 0, 1

    def integer_rows(self, weight: int) -> tuple[tuple[int, ...], ...] | None:
        """The same distribution as a table of integers, if possible; otherwise None."""
        return None


class SetFamily(Family):
    """Sets of `chosen` items as outputs, sent in increasing order; each member has a counter."""

    chosen: int

    @property
    @abstractmethod
    def n_items(self) -> int:
        """The number of items."""

    @cached_property
    def n_outputs(self) -> int:
        return comb(self.n_items, self.chosen)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return (Field(self.n_items),) * self.chosen

    @property
    def n_counters(self) -> int:
        return self.n_items

    @property
    def per_report(self) -> int:
        return self.chosen

    def is_output(self, output: Sequence[int]) -> bool:
        return all(a < b for a, b in pairwise(output))

    def outputs(self) -> Iterator[tuple[int, ...]]:
        return combinations(range(self.n_items), self.chosen)


FAMILIES: Registry[type[Family]] = Registry(
    "family",
    "families",
    {
        "subset": "hdr4me.channels.subset:Subset",
        "projective": "hdr4me.channels.projective:Projective",
        "privset": "hdr4me.channels.privset:PrivSet",
        "agreement": "hdr4me.channels.agreement:Agreement",
        "codebook": "hdr4me.channels.codebook:Codebook",
        "hadamard": "hdr4me.channels.baselines.channel:Hadamard",
    },
)


@dataclass(frozen=True, repr=False)
class KSubset(Channel):
    """A family and the weight W of its heavy outputs.

    Parameters
    ----------
    mechanism, epsilon
        The name of the design, and the privacy budget of an answer.
    family, weight
        The outputs, and the heavy outputs of each input, which have the probability W / 2^32 together.

    Examples
    --------
    >>> from hdr4me.channels.subset import Subset
    >>> family = Subset(size=10, chosen=3)
    >>> channel = KSubset("subset", 1.0, family, heaviest(1.0, family))
    >>> float(channel.likelihood_ratio) <= 2.718281828459045, channel.n_counters, channel.per_report
    (True, 10, 3)
    """

    kind = "heavy_set"

    mechanism: str
    epsilon: float
    family: Family
    weight: int
    likelihood_ratio: Fraction = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if type(self.weight) is not int or not 0 < self.weight < ONE:
            raise InvalidInput.of("weight", self.weight, f"an integer from 1 to 2**{BITS} - 1")
        n, k = self.family.n_outputs, self.family.n_heavy
        ratio = Fraction(self.weight * (n - k), (ONE - self.weight) * k)
        if ratio <= 1:
            raise InvalidInput(
                f"channel {self.mechanism!r}: epsilon = {self.epsilon:g} is too small for weights of {BITS} bits: "
                "heavy outputs are not more likely than the others"
            )
        object.__setattr__(self, "likelihood_ratio", ratio)
        object.__setattr__(self, "response_class", self.family.response_class)
        self.check()

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.family.inputs

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.family.fields

    @property
    def n_counters(self) -> int:
        return self.family.n_counters

    @property
    def device_cost(self) -> int:
        return self.family.device_cost

    @property
    def per_report(self) -> int:
        return self.family.per_report

    @property
    def rows(self) -> tuple[tuple[int, ...], ...] | None:
        return self.family.integer_rows(self.weight)

    def is_output(self, output: Sequence[int]) -> bool:
        return super().is_output(output) and self.family.is_output(output)

    def outputs(self) -> Iterator[tuple[int, ...]]:
        return self.family.outputs()

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        return self.family.draw(x, draws.bits(BITS) < self.weight, draws)

    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        n, k = self.family.n_outputs, self.family.n_heavy
        if self.family.is_heavy(x, output):
            return Fraction(self.weight, ONE * k)
        return Fraction(ONE - self.weight, ONE * (n - k))

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return self.family.counters(output)

    def n_answers(self, counts: Sequence[int]) -> int | None:
        n = super().n_answers(counts)
        return n if n is not None and self.family.are_counts(counts, n) else None

    def worst_pair(self) -> tuple[int, int]:
        return self.family.worst_pair()

    @property
    def shares(self) -> tuple[float, float]:
        """P(a report supports category c) with and without category c, as floats."""
        p, q = self.family.shares(Fraction(self.weight, ONE))
        return float(p), float(q)

    @property
    def decode(self) -> tuple[float, float]:
        """The decoded values of reports that support category c and of those that do not."""
        p, q = self.family.shares(Fraction(self.weight, ONE))
        return float((1 - q) / (p - q)), float(-q / (p - q))

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "family": {"name": self.family.name, **self.family.to_dict()},
            "weight": self.weight,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> KSubset:
        mechanism, epsilon = named_epsilon("k-subset response", document, {"family", "weight"})
        family = document["family"]
        if not isinstance(family, Mapping) or not isinstance(family.get("name"), str):
            raise FormatError("the family of a k-subset response must be an object with a name")
        if family["name"] not in FAMILIES:
            raise FormatError(f"family {family['name']!r} is unknown: use one of {', '.join(FAMILIES.names)}")
        rest = {key: value for key, value in family.items() if key != "name"}
        made = FAMILIES[family["name"]].from_dict(rest)
        return cls(mechanism, epsilon, made, integer("weight", document["weight"]))


def heaviest(epsilon: float, family: Family) -> int:
    """The largest W for ε: ⌊2^32·rk / (rk + N − k)⌋ with a rational r ≤ e^ε, so that ratio ≤ r."""
    n, k = family.n_outputs, family.n_heavy
    heavy = exp_lower(epsilon) * k
    return floor(ONE * heavy / (heavy + n - k))
