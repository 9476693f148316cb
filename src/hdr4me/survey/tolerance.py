"""The accuracy that a survey is planned for, from the plan to the dashboard; standard library only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.dimension import Dimension
from hdr4me.survey.schema import Schema
from hdr4me.survey.values import as_number


@dataclass(frozen=True)
class Tolerance:
    """The largest error of each dimension in its own units, kept with `probability` by all at once or by each.

    Examples
    --------
    >>> from hdr4me.survey import Numeric
    >>> schema = Schema([Numeric("delay", -30, 210, unit="min"), Numeric("distance", 0, 3000)])
    >>> Tolerance.of(0.1, schema).by_dimension
    {'delay': 12.0, 'distance': 150.0}
    >>> Tolerance.of({"delay": "4 min"}, schema).scaled(schema)
    {'delay': 0.03333333333333333}
    """

    by_dimension: Mapping[str, float]
    probability: float = 0.95
    jointly: bool = True

    @classmethod
    def of(cls, given: Any, schema: Schema, probability: float = 0.95, *, jointly: bool = True) -> Tolerance:
        """A tolerance from one number on the scale [−1, 1] for all dimensions, or from a mapping in own units."""
        known = {dimension.name: dimension for dimension in schema}
        if not isinstance(given, Mapping):
            _check("tolerance", given, 0, math.inf, "a positive number, or a mapping from dimension to one")
            return cls({name: given * known[name].half_range for name in known}, probability, jointly)
        unknown = {name: value for name, value in given.items() if name not in known}
        if unknown or not given:
            raise InvalidInput.of("tolerance", unknown, f"at least one of {', '.join(known)}")
        _check("probability", probability, 0, 1, "a number between 0 and 1")
        if type(jointly) is not bool:
            raise InvalidInput.of("jointly", jointly, "true or false")
        own = {name: own_tolerance(known[name], value) for name, value in given.items()}
        return cls(own, float(probability), jointly)

    def scaled(self, schema: Schema) -> dict[str, float]:
        """The tolerances on the scale [−1, 1] (frequencies and shares: [0, 1])."""
        return {name: own / schema[name].half_range for name, own in self.by_dimension.items()}

    def to_dict(self) -> dict[str, Any]:
        """The tolerance in a survey document."""
        return {
            "by_dimension": dict(self.by_dimension),
            "probability": self.probability,
            "jointly": self.jointly,
        }

    @classmethod
    def from_dict(cls, document: Any, schema: Schema) -> Tolerance:
        """The tolerance from a survey document."""
        if not isinstance(document, Mapping) or set(document) != {"by_dimension", "probability", "jointly"}:
            raise InvalidInput.of(
                "tolerance", document, "an object with by_dimension, probability and jointly"
            )
        return cls.of(document["by_dimension"], schema, document["probability"], jointly=document["jointly"])


def own_tolerance(dimension: Dimension, given: Any) -> float:
    """A tolerance in a dimension's own units: a number, or a text of a number and the schema's unit."""
    own, unit = given, getattr(dimension, "unit", None)
    words = "a positive number in the dimension's own units"
    if isinstance(given, str):
        number, _, word = " ".join(given.split()).partition(" ")
        own = as_number(number)
        if word and word != unit:
            own, words = None, f"{words} ({unit!r})" if unit else f"{words} (the schema gives no unit)"
    _check("tolerance", own, 0, math.inf, words, {dimension.name: given})
    return float(own)


def _check(name: str, value: Any, low: float, high: float, words: str, shown: Any = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        raise InvalidInput.of(name, value if shown is None else shown, words)
