"""The base class of all channels; standard library only."""

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

from hdr4me.channels.proof import check_ratio
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.registry import Registry

if TYPE_CHECKING:
    from hdr4me.channels.response import Response


MAX_FIELDS = 65536  # the largest number of fields of an answer: entries of a one-hot vector, members of a set


class Draws(Protocol):
    """A source of random bits: the operating system for reports, fixed words in tests."""

    def bits(self, n: int) -> int:
        """`n` independent fair bits as an integer."""

    def below(self, n: int) -> int:
        """A uniform integer from 0 to n − 1."""


class SystemDraws:
    """The operating system's randomness, or another source of fair bits.

    `below` is rejection sampling on words of 32 bits (a multiple of 64 bits above 2^32). The number of words depends
    on `n` and on chance, never on a value.
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


class Field(NamedTuple):
    """One integer of an answer: 0 to bound − 1, in 1, 2, 4 or 8 bytes on the wire."""

    bound: int

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        size = 1
        while self.bound > 1 << 8 * size:
            size *= 2
        return size


class Input(NamedTuple):
    """The input of a channel for one dimension.

    `input_kind` is "number" (`size` levels, equally spaced on [−1, 1]; a value between two levels is rounded randomly),
    "optional" (the same with one more input, the last, for "no value"), "category" (`size` categories), "selection" (a
    set of categories, numbered by `hdr4me.channels.privset.rank`) or "vector" (numbered by
    `hdr4me.channels.codebook.Codebook.number`).
    """

    input_kind: str
    size: int

    @property
    def n_levels(self) -> int:
        """The number of inputs except "no value"; 0 for a vector."""
        return 0 if self.input_kind == "vector" else self.size - (self.input_kind == "optional")

    @property
    def rounds(self) -> bool:
        """Whether a client draws sixteen bits to round a value between two inputs: for all kinds except categories."""
        return self.input_kind != "category"


class AnswerFormat(ABC):
    """The inputs and outputs of a channel or of a family of outputs."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Input, ...]:
        """The input for each dimension of the question."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """The integers of an answer."""

    @property
    def device_cost(self) -> int:
        """The work of a client for one answer, in multiplications; the draw of a field counts as eight."""
        return 8 * len(self.fields)

    @property
    @abstractmethod
    def n_counters(self) -> int:
        """The number of counters in a tally for this channel."""

    @property
    @abstractmethod
    def per_report(self) -> int:
        """The number of counters that a report increments, which is the same for all reports."""

    def is_output(self, output: Sequence[int]) -> bool:
        """Whether these integers are an output of this channel."""
        fields = self.fields
        return len(output) == len(fields) and all(
            0 <= number < field.bound for number, field in zip(output, fields, strict=True)
        )

    def outputs(self) -> Iterator[tuple[int, ...]]:
        """All outputs, for proofs by enumeration of small channels."""
        candidates = product(*(range(field.bound) for field in self.fields))
        return (output for output in candidates if self.is_output(output))


class Channel(AnswerFormat):
    """The conditional distribution of one output given one input.

    The input is an integer below `n_inputs`. It combines one integer for each dimension (`inputs`), that of the first
    dimension being the most significant. The output is one integer for each of `fields`. P(output | input) is a ratio
    of integers. `likelihood_ratio` is the largest ratio of two such probabilities for one output, and `check` proves
    that it is at most e^ε.

    >>> from hdr4me.survey import Categorical, Schema, Survey
    >>> channel = Survey(Schema([Categorical("smoker", ["no", "yes"])]), epsilon=1.0).questions[0].channel
    >>> channel.n_inputs, channel.mechanism
    (2, 'grr')
    >>> sum(channel.probability(0, output) for output in [(0,), (1,)])
    Fraction(1, 1)
    """

    kind: ClassVar[str]
    response_class: ClassVar[str] = "hdr4me.channels.response:Response"
    """The class of the channel's response, as module:class."""
    mechanism: str
    epsilon: float
    likelihood_ratio: Fraction

    @abstractmethod
    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        """A random output for input `x`; the sequence of draws does not depend on `x`."""

    @abstractmethod
    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        """P(output | x) as an exact fraction."""

    @abstractmethod
    def counters(self, output: Sequence[int]) -> Iterator[int]:
        """The counters that a report with this valid output increments."""

    @abstractmethod
    def worst_pair(self) -> tuple[int, int]:
        """Two inputs whose output distributions differ most."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The channel in a survey document, including `kind`."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Channel:
        """The channel from the output of `to_dict`; its privacy is proven again."""

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.mechanism!r}: epsilon = {self.epsilon:g}, {self.n_inputs:,} inputs, "
            f"{self.n_counters:,} counters, {self.wire_size} byte(s) per answer>"
        )

    @cached_property
    def response(self) -> Response:
        """The statistical properties of the channel; needs NumPy and is loaded on first use."""
        module, _, name = self.response_class.partition(":")
        made: Response = getattr(import_module(module), name)(self)
        return made

    # -- derived properties ----------------------------------------------------------------------------------

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
        """The total privacy loss of any number of memoized responses for an unchanged value."""
        stages = getattr(self, "stages", None)
        return self.epsilon if stages is None else float(stages.epsilon)

    @property
    def built_in(self) -> bool:
        """Whether the channel is of this package rather than a plug-in."""
        return self.kind in CHANNELS.built_in

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        return prod(input_.size for input_ in self.inputs)

    @property
    def wire_size(self) -> int:
        """Bytes of an answer, without the two bytes for the question."""
        return sum(field.size for field in self.fields)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...] | None:
        """The integer rows that sum to 2^32 and apply to every field, or None if the channel is not a table."""
        return None

    def n_answers(self, counts: Sequence[int]) -> int | None:
        """The number of reports of these counters; None if no reports can give them."""
        total, rest = divmod(sum(counts), self.per_report)
        return None if rest or min(counts) < 0 or max(counts) > total else total

    def check(self) -> None:
        """Prove that `likelihood_ratio` ≤ e^ε; also check the name and the number of fields."""
        if not isinstance(self.mechanism, str) or not self.mechanism or not self.mechanism.isprintable():
            raise InvalidInput(f"channel {self.mechanism!r}: its name must be printable")
        if len(self.fields) > MAX_FIELDS:
            raise InvalidInput(
                f"channel {self.mechanism!r} has {len(self.fields)} fields: at most {MAX_FIELDS} are allowed"
            )
        check_ratio(f"channel {self.mechanism!r}", self.likelihood_ratio, self.epsilon)


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
    """The channel of a document, proven again; FormatError if it is not a channel."""
    if not isinstance(document, Mapping) or not isinstance(document.get("kind"), str):
        raise FormatError("a channel must be an object with a kind")
    if document["kind"] not in CHANNELS:
        raise FormatError(f"channel of kind {document['kind']!r}: known are {', '.join(CHANNELS.names)}")
    fields = {key: value for key, value in document.items() if key != "kind"}
    return CHANNELS[document["kind"]].from_dict(fields)


# -- fields of documents: FormatError for a wrong type ------------------------------------------


def check_fields(kind: str, document: Any, fields: set[str], optional: frozenset[str] = frozenset()) -> None:
    """Raise FormatError unless the document has exactly these fields."""
    if not isinstance(document, Mapping) or not fields <= set(document) <= fields | optional:
        article = "an" if kind[0] in "aeiou" else "a"
        raise FormatError(f"{article} {kind} must be an object with the fields {', '.join(sorted(fields))}")


def named_epsilon(
    kind: str, document: Mapping[str, Any], own: set[str], optional: frozenset[str] = frozenset()
) -> tuple[str, float]:
    """The mechanism and the ε of a channel whose document has these fields besides."""
    check_fields(kind, document, {"mechanism", "epsilon"} | own, optional)
    mechanism, epsilon = document["mechanism"], document["epsilon"]
    if not isinstance(mechanism, str) or not is_number(epsilon):
        raise FormatError(f"the mechanism of a {kind} must be a string and its epsilon a number")
    return mechanism, float(epsilon)


def numbers(what: str, value: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    if not _is_list(value) or not all(map(is_number, value)):
        raise FormatError(f"{what} must be a list of numbers")
    return tuple(map(float, value))


def integer_rows(what: str, value: Any) -> tuple[tuple[int, ...], ...]:
    """A list of lists of integers."""
    if not _is_list(value) or not all(_is_list(row) and all(type(w) is int for w in row) for row in value):
        raise FormatError(f"{what} must be lists of integers")
    return tuple(map(tuple, value))


def integer(what: str, value: Any) -> int:
    """An integer."""
    if type(value) is not int:
        raise FormatError(f"{what} = {value!r} must be an integer")
    return value


def is_number(value: Any) -> bool:
    """Whether a value is a number within the range of floats, and not a Boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
