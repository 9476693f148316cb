"""Kinds of dimensions: which mechanisms serve each, what is asked, and the survey that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hdr4me.comparison.cleaned import named
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.mechanisms.registry import built_in
from hdr4me.planner.blocks import BLOCKS, LEAST_EPSILON, block_names, block_variances, possible
from hdr4me.planner.costs import sampled_grid
from hdr4me.planner.pairs import PAIR, PAIRS_FROM, neighbours
from hdr4me.planner.vectors import CODEBOOK
from hdr4me.planner.workload import Group
from hdr4me.survey import Dimension, Schema, Survey, Vector

__all__ = [
    "CATEGORICAL",
    "KINDS",
    "NUMERIC",
    "Kind",
    "Part",
    "parts_of",
    "reason_against",
    "scale",
    "survey_of",
]

NUMERIC = ("optimal", "piecewise", "hybrid", "duchi", "laplace")
CATEGORICAL = ("grr", "subset", "oue")
_TOGETHER = {PAIR: PAIRS_FROM, BLOCKS: LEAST_EPSILON}
"""Mechanisms that ask numbers together, and the ε from which they are compared unless they are asked for."""
OPTIONAL, PRIVSET = "optional", "privset"


@dataclass(frozen=True)
class Kind:
    """What a dimension reads, what is compared unless something is asked for, and what else may be asked for."""

    name: str
    reads: str
    usual: tuple[str, ...]
    others: tuple[str, ...] = ()
    optional: bool = False
    """Of vectors, whether not everybody has one."""

    def holds(self, dimension: Dimension) -> bool:
        """Whether a dimension is of this kind."""
        return dimension.reads == self.reads and (
            not isinstance(dimension, Vector) or dimension.optional == self.optional
        )

    @property
    def served_by(self) -> tuple[str, ...]:
        """Every mechanism for this kind."""
        return tuple(dict.fromkeys((*self.usual, *self.others)))

    def statistics(self, of_numbers: str) -> tuple[str, ...]:
        """What is asked, where `of_numbers` is asked of numbers."""
        match self.reads:
            case "category":
                return ("frequency",)
            case "selection":
                return ("chosen",)
            case "vector":
                return ("mean", "share") if self.optional else ("mean",)
            case "optional" if of_numbers == "mean":
                return ("mean", "share")
        return (of_numbers,)


KINDS = (
    Kind("numbers", "number", (*NUMERIC, *_TOGETHER), built_in()),
    Kind("optional numbers", "optional", (OPTIONAL,)),
    Kind("vectors", "vector", (CODEBOOK,)),
    Kind("optional vectors", "vector", (CODEBOOK,), optional=True),
    Kind("categories", "category", CATEGORICAL, ("projective", "histogram")),
    Kind("selections", "selection", (PRIVSET,)),
)


@dataclass(frozen=True)
class Part:
    """The dimensions of one kind, and the mechanisms to compare for them."""

    kind: Kind
    schema: Schema
    mechanisms: tuple[str, ...]
    chosen: bool
    """Whether these mechanisms were asked for."""


def scale(kind: str, statistic: str) -> str:
    """In words, what the errors of a row are measured in.

    >>> scale("numbers", "mean"), scale("optional vectors", "mean"), scale("optional numbers", "share")
    ('range scaled to [−1, 1]', 'norm scaled to 1', 'shares of users')
    """
    if statistic in ("frequency", "chosen", "share"):
        return "shares of users"
    return "norm scaled to 1" if kind.endswith("vectors") else "range scaled to [−1, 1]"


def parts_of(schema: Schema, mechanisms: Sequence[str] | None) -> tuple[list[Part], list[str]]:
    """The kinds of a schema with the mechanisms for each, and a sentence for those that no chosen one serves."""
    known = tuple(dict.fromkeys(name for kind in KINDS for name in kind.served_by))
    for name in mechanisms or ():
        if name not in known:
            raise InvalidInput.of("mechanisms", name, f"one of {', '.join(known)}")
    parts, unserved = [], []
    for kind in KINDS:
        own = [x for x in schema if kind.holds(x)]
        names = tuple(x for x in mechanisms or kind.usual if x in kind.served_by)
        if own and names:
            parts.append(Part(kind, Schema(own), names, mechanisms is not None))
        elif own:
            add = f"; {kind.usual[0]} serves them" if len(kind.served_by) == 1 else ""
            unserved.append(
                f"{named(x.name for x in own)} left out: no mechanism for {kind.name} is among "
                f"{', '.join(mechanisms or ())}{add}"
            )
    return parts, unserved


def reason_against(part: Part, name: str, epsilon: float, n_sampled: int, statistic: str) -> str | None:
    """Why a mechanism is left out at a budget: a sentence, an empty one if nobody asked for it, None if it is not.

    Parameters
    ----------
    part, name
        The dimensions, and the mechanism.
    epsilon, n_sampled
        The budget of a report, and how many questions each user answers.
    statistic
        What is asked of numbers.
    """
    if name in _TOGETHER and not part.chosen:
        few = len(part.schema) < 2 or epsilon < _TOGETHER[name]
        return "" if few or statistic != "mean" else None
    if name in _TOGETHER and len(part.schema) < 2:
        return f"{name} is left out: it asks numbers together, and there is one number only"
    if name in (PAIR, OPTIONAL) and epsilon / _questions(part, name, n_sampled) < JOINT_FROM:
        return f"{name} is left out at epsilon = {epsilon:g}: one answer needs at least {JOINT_FROM}"
    return None


def _questions(part: Part, name: str, n_sampled: int) -> int:
    """How many questions a user answers: no more than there are."""
    d = len(part.schema)
    return min(n_sampled, d - d // 2 if name == PAIR else d)


def survey_of(part: Part, name: str, epsilon: float, n_sampled: int, n_users: int) -> Survey:
    """The survey in which one mechanism serves the dimensions of one kind.

    A user answers `n_sampled` questions. Blocks have the size of least error, and a user answers one of them.
    """
    schema, m = part.schema, _questions(part, name, n_sampled)
    if name == BLOCKS:
        return Survey(
            schema, epsilon=epsilon, blocks=block_names(schema.names, _size(schema, epsilon, n_users))
        )
    if name == PAIR:
        return Survey(schema, epsilon=epsilon, n_sampled=m, pairs=neighbours(schema))
    chosen: dict[str, Any] = {}
    if part.kind.reads in ("number", "category"):
        chosen = {"mechanism" if part.kind.reads == "number" else "categorical": name}
    return Survey(schema, epsilon=epsilon, n_sampled=m, **chosen)


def _size(schema: Schema, epsilon: float, n_users: int) -> int:
    """How many numbers a block should have, for values spread evenly."""
    d = len(schema)
    sizes = tuple(size for size in sampled_grid(d) if possible(size, d))
    return sizes[int(np.argmin(block_variances(Group(d), n_users, epsilon, sizes, d, worst=False)))]
