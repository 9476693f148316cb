"""The schema: the ordered dimensions of a survey; standard library only."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hdr4me.errors import FormatError, InvalidInput, nearest, suggestion
from hdr4me.survey.canonical import parse, shallow
from hdr4me.survey.category_file import looking_in, read_list
from hdr4me.survey.dimension import Dimension, dimension_from_dict
from hdr4me.survey.values import as_number, first_twice

_LONGEST = 200  # characters of parameters in a notebook
_SHOWN = 20  # dimensions shown in a notebook
MAX_DIMENSIONS = 65536  # two bytes in a report give the question


class Schema:
    """The ordered dimensions of a survey, with unique names.

    >>> from hdr4me.survey import Categorical, Numeric
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> len(schema), schema.names
    (2, ('age', 'smoker'))
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    """

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        self.dimensions: tuple[Dimension, ...] = tuple(dimensions)
        for dimension in self.dimensions:
            if not isinstance(dimension, Dimension):
                raise InvalidInput(
                    f"{dimension!r} is not a dimension; use, for example, Numeric or Categorical"
                )
        if not 1 <= len(self.dimensions) <= MAX_DIMENSIONS:
            raise InvalidInput(
                f"a schema of {len(self.dimensions)} dimensions: 1 to {MAX_DIMENSIONS} are allowed"
            )
        self.names: tuple[str, ...] = tuple(dimension.name for dimension in self.dimensions)
        self._index = {name: j for j, name in enumerate(self.names)}
        if len(self._index) < len(self.names):
            raise InvalidInput(f"dimension {first_twice(self.names)!r} appears twice: names must differ")
        others = dict(zip(self.names, self.dimensions, strict=True))
        self.dimensions = tuple(dimension.within(others) for dimension in self.dimensions)
        own = [x.name for x in self.dimensions if x.columns == (x.name,)]
        derived = [name for x in self.dimensions for name in x.columns]
        self.columns: tuple[str, ...] = tuple(dict.fromkeys([*own, *derived]))
        """The columns of a record: those with a dimension of their own, then those of derived dimensions only."""

    @cached_property
    def readers(self) -> dict[str, Dimension]:
        """For each of `columns`, the dimension or the part of a dimension that cleans it."""
        cleaners = {name: leaf for x in self.dimensions for leaf in x.leaves for name in leaf.columns}
        return {name: cleaners[name] for name in self.columns}

    def __len__(self) -> int:
        return len(self.dimensions)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self.dimensions)

    def __getitem__(self, name: str) -> Dimension:
        return self.dimensions[self.index(name)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.dimensions == other.dimensions

    def __hash__(self) -> int:
        return hash(self.dimensions)

    def __repr__(self) -> str:
        return f"Schema({list(self.dimensions)!r})"

    def _repr_html_(self) -> str:
        from hdr4me.pages.html import paragraph, table

        listed = self.dimensions[:_SHOWN]
        rows = [[x.name, x.kind, _parameters(x)] for x in listed]
        more = len(self) - len(listed)
        return table(["dimension", "type", "parameters"], rows) + (
            paragraph(f"… and {more:,} more") if more else ""
        )

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)

    def index(self, name: str) -> int:
        """The index of the dimension called `name`."""
        if name not in self._index:
            raise InvalidInput(f"no dimension is called {name!r}{suggestion(name, self.names)}")
        return self._index[name]

    def check(self, record: Mapping[str, Any]) -> None:
        """Refuse a record with an unknown field, or with a value that `Dimension.check` refuses.

        >>> from hdr4me.survey import Numeric
        >>> Schema([Numeric("age", 0, 120)]).check({"Age": 30})
        Traceback (most recent call last):
        hdr4me.errors.InvalidInput: the record has a field 'Age' that the survey does not have; did you mean 'age'?
        """
        if unknown := [str(name) for name in record if name not in self.readers]:
            hint = suggestion(unknown[0], self.columns)
            raise InvalidInput(f"the record has a field {unknown[0]!r} that the survey does not have{hint}")
        for leaf in self._checked:
            leaf.check(leaf.value_in(record))

    @cached_property
    def _checked(self) -> tuple[Dimension, ...]:
        """The dimensions and parts that may refuse a value, each once: several may have the same column."""
        leaves = {id(leaf): leaf for x in self.dimensions for leaf in x.leaves if not leaf.replaces}
        return tuple(leaves.values())

    def to_dict(self) -> dict[str, Any]:
        """The schema as a document for JSON."""
        return {"dimensions": [dimension.to_dict() for dimension in self.dimensions]}

    @classmethod
    def from_dict(cls, document: Any) -> Schema:
        """The schema of a document; the `type` of a dimension may be omitted."""
        if not isinstance(document, Mapping) or set(document) != {"dimensions"}:
            raise FormatError(
                "a schema must be an object with one field, dimensions; records are a JSON array or JSON lines"
            )
        if not isinstance(document["dimensions"], list):
            raise FormatError("dimensions must be a list")
        return cls(dimension_from_dict(item) for item in document["dimensions"])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a schema from a JSON or TOML file (by its suffix), or the schema of a survey from its file."""
        try:
            text = Path(path).read_bytes().decode("utf-8")
            document = shallow(tomllib.loads(text)) if str(path).endswith(".toml") else parse(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} is not a schema: {error}".replace("\n", " ")) from error
        if isinstance(document, dict) and document.get("format") == "hdr4me-survey":
            from hdr4me.survey.survey import Survey

            return Survey.load(path).schema
        try:
            with looking_in(Path(path).parent):
                return cls.from_dict(_with_categories(document, Path(path).parent))
        except (FormatError, InvalidInput) as error:
            raise FormatError(f"{path} is not a schema: {error}") from error


def _parameters(dimension: Dimension) -> str:
    """The parameters of a dimension in one line."""
    parameters = {key: value for key, value in dimension.to_dict().items() if key not in ("name", "type")}
    text = ", ".join(f"{key} = {value!r}" for key, value in parameters.items())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _with_categories(document: Any, folder: Path) -> Any:
    """The document with each `categories_file`, a path relative to the schema's file, replaced by its categories."""
    if not isinstance(document, Mapping) or not isinstance(document.get("dimensions"), list):
        return document
    items = list(document["dimensions"])
    for k, item in enumerate(items):
        if isinstance(item, Mapping) and isinstance(name := item.get("categories_file"), str):
            what = f"dimension {item.get('name')!r}: categories_file"
            if "categories" in item:
                raise FormatError(f"{what} must be a path, and cannot be combined with categories")
            try:
                items[k] = {**item, "categories": read_list(folder / name), "file": Path(name).name}
            except (OSError, ValueError) as error:
                raise FormatError(f"{what} = {name!r} cannot be read: {error}") from error
            del items[k]["categories_file"]
    return {**document, "dimensions": items}


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
            near = nearest(str(next(iter(unknown))), known) if unknown else ""
            raise InvalidInput.of("tolerance", unknown, f"at least one of {', '.join(known)}{near}")
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
