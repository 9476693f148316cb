"""Surveys of version 1, as they are still read: one table for each dimension; standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hdr4me.channels import Channel, Entries, HeavySet, Table
from hdr4me.channels.reading import check_fields, integer_rows, named_epsilon, numbers
from hdr4me.channels.subset import Subset
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey.question import Question
from hdr4me.survey.schema import Schema

__all__ = ["FIELDS", "arguments"]

FIELDS = {
    "format",
    "version",
    "name",
    "bits",
    "epsilon",
    "n_sampled",
    "dimensions",
    "randomizers",
    "fingerprint",
}


def arguments(document: dict[str, Any]) -> dict[str, Any]:
    """What `Survey.from_questions` takes, from a document of version 1."""
    dimensions, randomizers = document["dimensions"], document["randomizers"]
    if not isinstance(dimensions, list) or not all(isinstance(item, Mapping) for item in dimensions):
        raise FormatError("a survey's dimensions are a list of objects")
    if not isinstance(randomizers, list) or document["bits"] != 32:
        raise FormatError("a survey's randomizers are a list, its bits 32")
    plain = [{key: value for key, value in item.items() if key != "randomizer"} for item in dimensions]
    schema = Schema.from_dict({"dimensions": plain})
    made: dict[tuple[int, int], Channel] = {}
    questions = []
    for j, (dimension, item) in enumerate(zip(schema, dimensions, strict=True)):
        index = item.get("randomizer")
        if type(index) is not int or not 0 <= index < len(randomizers):
            raise InvalidInput(f"dimension {dimension.name!r}: randomizer = {index!r} does not exist")
        key = (index, len(dimension.categories))
        if key not in made:
            made[key] = _channel(randomizers[index], len(dimension.categories))
        questions.append(Question((j,), made[key]))
    return {
        "schema": schema,
        "epsilon": document["epsilon"],
        "n_sampled": document["n_sampled"],
        "questions": tuple(questions),
        "name": document["name"],
    }


def _channel(item: Any, n_categories: int) -> Channel:
    if not isinstance(item, Mapping):
        raise FormatError("a randomizer is an object")
    check_fields("randomizer", item, {"mechanism", "epsilon", "kind", "decode", "weights"})
    mechanism, epsilon = named_epsilon("randomizer", item)
    decode, weights = (
        numbers("a randomizer's decode", item["decode"]),
        integer_rows("weights", item["weights"]),
    )
    match item["kind"]:
        case "value":
            return Table(mechanism, epsilon, {"value": decode}, weights)
        case "entries":
            return Entries(mechanism, epsilon, n_categories, decode, weights)
        case "category":
            channel = HeavySet(mechanism, epsilon, Subset(len(weights), 1), _diagonal(mechanism, weights))
            if channel.rows != weights or len(decode) != 2:
                raise InvalidInput(
                    f"randomizer {mechanism!r}: one weight on its diagonal and one, smaller, off it"
                )
            if any(abs(a - b) > 1e-7 * (1 + abs(b)) for a, b in zip(decode, channel.decode, strict=True)):
                raise InvalidInput(f"randomizer {mechanism!r}: its decoding is not unbiased")
            return channel
        case kind:
            raise InvalidInput(
                f"randomizer {mechanism!r}: kind = {kind!r} must be value, category or entries"
            )


def _diagonal(mechanism: str, weights: tuple[tuple[int, ...], ...]) -> int:
    if len(weights) < 2 or not weights[0]:
        raise InvalidInput(f"randomizer {mechanism!r} has too few rows")
    return weights[0][0]
