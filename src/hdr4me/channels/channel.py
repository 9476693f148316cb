"""What every channel offers; standard library only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from itertools import product
from math import prod
from random import SystemRandom
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from hdr4me.channels.proof import check_loss
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.registry import Registry

if TYPE_CHECKING:
    from hdr4me.channels.response import Response


MAX_FIELDS = 65536  # the most fields that one answer has: entries of a one-hot vector, members of a set


class Draws(Protocol):
    """Where random bits come from: the system on the way to a report, given words in tests."""

    def bits(self, n: int) -> int:
        """`n` independent fair bits as a whole number."""

    def below(self, n: int) -> int:
        """A uniform whole number from 0 to n − 1."""


class SystemDraws:
    """The operating system's randomness, or another source of fair bits.

    `below` is rejection sampling on words of 32 bits (a multiple of 64 bits above 2^32): how many it takes
    depends on `n` and on chance, never on a value.
    """

    def __init__(self, bits: Callable[[int], int] | None = None) -> None:
        self._bits = SystemRandom().getrandbits if bits is None else bits

    def bits(self, n: int) -> int:
        return self._bits(n)

    def below(self, n: int) -> int:
        return below(self, n)


def below(draws: Draws, n: int) -> int:
    """A uniform number below `n` from words of `draws`: the first word under the largest multiple of n, modulo n."""
    size = 32 if n <= 1 << 32 else -(-(n - 1).bit_length() // 64) * 64
    limit = (1 << size) - (1 << size) % n
    while True:
        word = draws.bits(size)
        if word < limit:
            return word % n


def pick(bounds: Sequence[int], word: int) -> int:
    """The cell that a word picks: the number of bounds at or below it.

    Every bound is compared: a search that stops early would take a time that tells of the input.
    """
    return sum([word >= bound for bound in bounds])


class Field(NamedTuple):
    """One whole number of an answer: 0 to bound − 1, in 1, 2, 4 or 8 bytes on the wire."""

    bound: int

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return next(size for size in (1, 2, 4, 8) if self.bound <= 1 << 8 * size)


class Input(NamedTuple):
    """What a channel takes of one dimension.

    `reads` is "number" (`size` levels, equally spaced on [−1, 1], a value in between is rounded at random),
    "optional" (the same with one more input, the last one: no value), "category" (`size` categories), "selection" (a
    set of categories, numbered as `hdr4me.channels.privset.rank` does) or "vector" (numbered as
    `hdr4me.channels.codebook.Codebook.number` does).
    """

    input_kind: str
    size: int

    @property
    def n_levels(self) -> int:
        """How many inputs are values in order: all but "no value"; 0 for a vector."""
        return 0 if self.input_kind == "vector" else self.size - (self.input_kind == "optional")

    @property
    def rounds(self) -> bool:
        """Whether a client draws sixteen bits to round a value between two inputs: for all but categories."""
        return self.input_kind != "category"


class AnswerFormat(ABC):
    """What a channel, or a family of outputs, accepts and reports."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """What the channel takes of each dimension of its question."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """The numbers that an answer consists of."""

    @property
    @abstractmethod
    def n_counters(self) -> int:
        """How many counters a tally keeps for this channel."""

    @property
    @abstractmethod
    def per_report(self) -> int:
        """How many counters one report adds 1 to: the same for every report."""

    def is_output(self, output: Sequence[int]) -> bool:
        """Whether these numbers are an output of this channel."""
        fields = self.fields
        return len(output) == len(fields) and all(
            0 <= number < field.bound for number, field in zip(output, fields, strict=True)
        )

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """Every output; for proofs by enumeration, where there are few."""
        candidates = product(*(range(field.bound) for field in self.fields))
        return (output for output in candidates if self.is_output(output))


class Channel(AnswerFormat):
    """How one input becomes one output.

    The input is a whole number below `n_inputs`, made of one number for each dimension (`takes`), the first
    dimension's being the most significant. The output is one whole number for each of `fields`. P(output | input) is a
    fraction of integers; `loss` is the largest ratio of two of them for one output, and `check` proves that it is at
    most e^ε.

    >>> from hdr4me.survey import Categorical, Schema, Survey
    >>> channel = Survey(Schema([Categorical("smoker", ["no", "yes"])]), epsilon=1.0).questions[0].channel
    >>> channel.n_inputs, channel.mechanism
    (2, 'grr')
    >>> sum(channel.probability(0, output) for output in [(0,), (1,)])
    Fraction(1, 1)
    """

    kind: ClassVar[str]
    response_class: ClassVar[str] = "hdr4me.channels.response:Response"
    """Where the server side of the channel is, as module:class."""
    mechanism: str
    epsilon: float
    loss: Fraction

    @abstractmethod
    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        """An output for input `x`; which draws are made does not depend on `x`."""

    @abstractmethod
    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        """P(output | x) by whole numbers."""

    @abstractmethod
    def counters(self, output: Sequence[int]) -> Iterator[int]:
        """The counters that a report with this (valid) output adds 1 to."""

    @abstractmethod
    def worst_pair(self) -> tuple[int, int]:
        """Two inputs whose outputs are easiest to tell apart."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The channel as a survey document has it, `kind` included."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Channel:
        """Read what `to_dict` wrote, and prove it again."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.mechanism!r}: epsilon = {self.epsilon:g}, {self.n_inputs:,} inputs, "
            f"{self.n_counters:,} counters, {self.wire_size} byte(s) an answer>"
        )

    @cached_property
    def response(self) -> Response:
        """What the server side knows about the channel; needs NumPy, and is loaded when it is first asked for."""
        module, _, name = self.response_class.partition(":")
        made: Response = getattr(import_module(module), name)(self)
        return made

    # -- what follows from that ----------------------------------------------------------------------------------

    def repeat(self, x: int, memoized: Draws, fresh: Draws) -> tuple[int, ...]:
        """An output for a memoized response.

        Parameters
        ----------
        x
            The input.
        memoized
            Draws that are the same in each report.
        fresh
            Draws that are new in each report.
        """
        return self.sample(x, memoized)

    @property
    def memoized_epsilon(self) -> float:
        """What any number of reports of an unchanged value lose, if the answer is permanent."""
        stages = getattr(self, "stages", None)
        return self.epsilon if stages is None else float(stages.epsilon)

    @property
    def built_in(self) -> bool:
        """Whether the channel is of a kind that this package has, not of a plug-in."""
        return self.kind in CHANNELS.built_in

    @property
    def n_inputs(self) -> int:
        """How many different inputs there are."""
        return prod(input_.size for input_ in self.inputs)

    @property
    def wire_size(self) -> int:
        """Bytes of an answer, without the two that name the question."""
        return sum(field.size for field in self.fields)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...] | None:
        """Integer rows that sum to 2^32 and are applied to every field, where the channel is such a table."""
        return None

    def n_answers(self, counts: Sequence[int]) -> int | None:
        """How many reports these counters come from; None if no reports give them."""
        total, rest = divmod(sum(counts), self.per_report)
        return None if rest or min(counts) < 0 or max(counts) > total else total

    def check(self) -> None:
        """The proof: `loss` ≤ e^ε; also what a name may be."""
        if not isinstance(self.mechanism, str) or not self.mechanism or not self.mechanism.isprintable():
            raise InvalidInput(f"channel {self.mechanism!r}: its name must be printable")
        if len(self.fields) > MAX_FIELDS:
            raise InvalidInput(
                f"channel {self.mechanism!r} has {len(self.fields)} fields: at most {MAX_FIELDS} are allowed"
            )
        check_loss(f"channel {self.mechanism!r}", self.loss, self.epsilon)


CHANNELS: Registry[type[Channel]] = Registry(
    "channel",
    "channels",
    {
        "table": "hdr4me.channels.table:Table",
        "entries": "hdr4me.channels.table:UnaryEncoding",
        "heavy_set": "hdr4me.channels.k_subset:KSubset",
    },
)


def channel_from_dict(document: Any) -> Channel:
    """The channel of a document's object, proven again; what is no channel is a FormatError."""
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise FormatError("a channel is an object with a kind")
    if document["kind"] not in CHANNELS:
        raise FormatError(f"channel of kind {document['kind']!r}: known are {', '.join(CHANNELS.names)}")
    fields = {key: value for key, value in document.items() if key != "kind"}
    return CHANNELS[document["kind"]].from_dict(fields)


# -- reading documents: what is not of the right type is a FormatError ------------------------------------------


def check_fields(kind: str, document: Any, fields: set[str], optional: frozenset[str] = frozenset()) -> None:
    """The document is an object with these fields and no others."""
    if not isinstance(document, Mapping) or not fields <= set(document) <= fields | optional:
        article = "an" if kind[0] in "aeiou" else "a"
        raise FormatError(f"{article} {kind} is an object with the fields {', '.join(sorted(fields))}")


def named_epsilon(
    kind: str, document: Mapping[str, Any], own: set[str], optional: frozenset[str] = frozenset()
) -> tuple[str, float]:
    """The mechanism's name and the ε of a channel whose document has these fields of its own."""
    check_fields(kind, document, {"mechanism", "epsilon"} | own, optional)
    mechanism, epsilon = document["mechanism"], document["epsilon"]
    if not isinstance(mechanism, str) or not is_number(epsilon):
        raise FormatError(f"a {kind}'s mechanism is a string, its epsilon a number")
    return mechanism, float(epsilon)


def numbers(what: str, value: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not _is_list(value) or not all(map(is_number, value)):
        raise FormatError(f"{what} must be a list of numbers")
    return tuple(map(float, value))


def integer_rows(what: str, value: Any) -> tuple[tuple[int, ...], ...]:
    """A list of lists of whole numbers."""
    if not _is_list(value) or not all(_is_list(row) and all(type(w) is int for w in row) for row in value):
        raise FormatError(f"{what} must be lists of whole numbers")
    return tuple(map(tuple, value))


def whole(what: str, value: Any) -> int:
    """A whole number."""
    if type(value) is not int:
        raise FormatError(f"{what} = {value!r} must be a whole number")
    return value


def is_number(value: Any) -> bool:
    """A number that a float can hold, and not a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
