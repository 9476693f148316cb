"""The choice of channels for a new survey; the only module of this package that imports the mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hdr4me.channels import Channel
from hdr4me.channels.agreement import MAX_SIZE
from hdr4me.errors import InvalidInput
from hdr4me.survey.categorical import Selection
from hdr4me.survey.dimension import Dimension
from hdr4me.survey.question import Question
from hdr4me.survey.schema import Schema
from hdr4me.survey.vector import Vector

# The mechanism for numbers, by the purpose of the survey.
PURPOSES = {"mean": "optimal", "distribution": "square_wave", "both": "piecewise"}
CATEGORICAL = ("auto", "grr", "subset", "projective", "oue", "histogram")


def design(
    schema: Schema,
    epsilon: float,
    mechanism: Any,
    categorical: str,
    *,
    pair_questions: Sequence[tuple[str, str]] = (),
    block_questions: Sequence[Sequence[str]] = (),
    weights: Mapping[str, int] | None = None,
    memoized_epsilon: float | None = None,
    priors: Mapping[str, Any] | None = None,
) -> tuple[Question, ...]:
    """The questions of a schema, each answered under `epsilon`; dimensions that need the same channel share it.

    The parameters are those of `Survey`, except that both budgets are for one answer. `priors` holds the expected
    distribution of each number on the scale [−1, 1], by name (`hdr4me.mechanisms.priors.Prior`). `optimal_mean` and
    pairs are designed for it. All pairs share one table.
    """
    if categorical not in CATEGORICAL:
        raise InvalidInput.of("categorical", categorical, f"one of {', '.join(CATEGORICAL)}")
    together = _joint_questions(schema, pair_questions, block_questions)
    later = {j for _, own in together.values() for j in own[1:]}
    named = [[schema.names[j] for j in own] for what, own in together.values() if what == "pair"]
    own_tables, pair_laws = _designed_for(mechanism, named, priors or {})
    weights = dict(weights or {})
    made: dict[tuple[Any, ...], Channel] = {}
    questions: list[Question] = []
    for j, dimension in enumerate(schema):
        if j in later:
            continue
        what, dimensions = together.get(j, ("", (j,)))
        key = (what, len(dimensions)) if what else _key(dimension, epsilon, categorical)
        prior = own_tables.get(dimension.name) if key == ("number",) else None
        if prior is not None:
            key = ("number", prior.key)
        if key not in made:
            made[key] = _channel(key, epsilon, mechanism, prior, pair_laws, memoized_epsilon)
        questions.append(Question(dimensions, made[key], weights.pop(dimension.name, 1)))
    if weights:
        raise InvalidInput.of("weights", next(iter(weights)), "the name of a question's first dimension")
    return tuple(questions)


def mechanism_for(purpose: str | None, mechanism: Any) -> Any:
    """The mechanism for a purpose, or the given mechanism if there is no purpose."""
    if purpose is None:
        return mechanism
    if purpose not in PURPOSES:
        raise InvalidInput.of("purpose", purpose, f"one of {', '.join(PURPOSES)}")
    if mechanism not in ("optimal", PURPOSES[purpose]):
        raise InvalidInput("give either mechanism or purpose: a purpose chooses the mechanism")
    return PURPOSES[purpose]


def check_memoized(
    schema: Schema,
    epsilon: float,
    memoized_epsilon: Any,
    mechanism: Any,
    categorical: str,
    together: Sequence[Any],
) -> None:
    """Check that the memoized budget exceeds ε and that nothing else chooses the mechanisms."""
    if (
        isinstance(memoized_epsilon, bool)
        or not isinstance(memoized_epsilon, int | float)
        or not epsilon < memoized_epsilon < math.inf
    ):
        raise InvalidInput.of(
            "memoized_epsilon", memoized_epsilon, f"a finite number above epsilon = {epsilon:g}"
        )
    if mechanism != "optimal" or categorical != "auto":
        raise InvalidInput(
            "memoized_epsilon chooses the mechanisms: do not give mechanism, purpose or categorical"
        )
    odd = next((x.name for x in schema if not (x.is_number or x.is_category)), None)
    if odd is not None or together:
        what = "a pair or block" if odd is None else repr(odd)
        raise InvalidInput(f"memoized_epsilon supports numbers and categories only, not {what}")


def _joint_questions(
    schema: Schema, pair_questions: Sequence[tuple[str, str]], block_questions: Sequence[Sequence[str]]
) -> dict[int, tuple[str, tuple[int, ...]]]:
    """For the first dimension of each pair and block: "pair" or "block", and its dimensions in order."""
    groups: dict[int, tuple[str, tuple[int, ...]]] = {}
    used: set[int] = set()
    pairs = (("pair", names, 2) for names in pair_questions)
    blocks = (("block", names, MAX_SIZE) for names in block_questions)
    for what, names, most in [*pairs, *blocks]:
        option = f"{what}_questions"
        if isinstance(names, str) or not 2 <= len(names) <= most:
            words = "two names" if most == 2 else f"2 to {most} names"
            raise InvalidInput.of(option, names, f"{words} of numeric dimensions")
        own = tuple(sorted(schema.index(name) for name in names))
        if len(set(own)) < len(own):
            raise InvalidInput.of(option, names, "each dimension once")
        if used & set(own):
            raise InvalidInput.of(option, names, "dimensions that are in no other pair or block")
        dimensions = [schema.dimensions[j] for j in own]
        odd = next((dimension for dimension in dimensions if not dimension.is_number), None)
        if odd is not None:
            allowed = f"numbers only; {odd.name!r} is a {odd.input_kind}, leave it out"
            if odd.input_kind == "optional":
                allowed = "numbers that are not optional: leave an optional one out, or give it a default"
            raise InvalidInput.of(option, names, allowed)
        used |= set(own)
        groups[own[0]] = what, own
    return groups


def _key(dimension: Dimension, epsilon: float, categorical: str) -> tuple[Any, ...]:
    """The key that decides on the channel of a dimension that is asked alone."""
    if isinstance(dimension, Vector):
        return ("vector", dimension.n_asked)
    if isinstance(dimension, Selection):
        return ("selection", len(dimension.categories), dimension.at_most)
    if dimension.input_kind != "category":
        return (dimension.input_kind,)
    from hdr4me.mechanisms.categorical import categorical_choice

    v = len(dimension.categories)
    return (categorical_choice(epsilon, v) if categorical == "auto" else categorical, v)


def _designed_for(
    mechanism: Any, pairs: Sequence[Sequence[str]], priors: Mapping[str, Any]
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The prior for the table of each number, by name, and the priors for the table of all pairs."""
    if not priors:
        return {}, {}
    from hdr4me.mechanisms.priors import mean_law, table_priors

    own = {}
    if isinstance(mechanism, str) and mechanism == "optimal_mean":
        designed = zip(priors, table_priors(list(priors.values())), strict=True)
        own = {name: prior for name, prior in designed if not prior.uniform}
    if not pairs:
        return own, {}
    first, second = (mean_law([priors[pair[place]] for pair in pairs]) for place in (0, 1))
    return own, {"first": first, "second": second}


def _channel(
    key: tuple[Any, ...],
    epsilon: float,
    mechanism: Any,
    prior: Any,
    pair_laws: Mapping[str, Any],
    memoized_epsilon: float | None,
) -> Channel:
    match key:
        case (_, *size) if memoized_epsilon is not None:
            from hdr4me.channels.table.design import staged_category, staged_number

            return (
                staged_category(epsilon, memoized_epsilon, *size)
                if size
                else staged_number(epsilon, memoized_epsilon)
            )
        case ("number", *_):
            return _number(epsilon, mechanism, prior)
        case ("optional",):
            from hdr4me.mechanisms.joint import optional_number

            return optional_number(epsilon)
        case ("pair", _):
            from hdr4me.mechanisms.joint import number_pair

            return number_pair(epsilon, **pair_laws)
        case ("block", size):
            from hdr4me.channels.agreement.design import agreement_channel

            return agreement_channel(epsilon, size)
        case ("vector", length):
            from hdr4me.channels.codebook.design import codebook_channel

            return codebook_channel(epsilon, length)
        case ("selection", v, most):
            from hdr4me.channels.privset.channel import selection_channel

            return selection_channel(epsilon, v, most)
        case (name, v):
            from hdr4me.mechanisms.categorical import categorical_channel

            numbers = mechanism if isinstance(mechanism, str) else "optimal"
            return categorical_channel(name, epsilon, v, numbers)
    raise InvalidInput(f"no channel accepts a dimension of the kind {key[0]!r}")


def _number(epsilon: float, mechanism: Any, prior: Any) -> Channel:
    if prior is not None:
        from hdr4me.mechanisms.joint import optimal_mean

        mechanism = optimal_mean(epsilon, prior)
    elif isinstance(mechanism, str):
        from hdr4me.mechanisms import mechanism as named

        mechanism = named(mechanism, epsilon=epsilon)
    if not hasattr(mechanism, "exact"):
        raise InvalidInput.of("mechanism", mechanism, "a mechanism's name, or a mechanism")
    channel: Channel = mechanism.exact().channel()
    return channel
