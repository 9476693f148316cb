"""The schema: the ordered dimensions of a survey; standard library only."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey.canonical import parse, shallow
from hdr4me.survey.category_file import looking_in, read_list
from hdr4me.survey.dimension import Dimension, dimension_from_dict
from hdr4me.survey.values import first_twice, suggestion

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

    @property
    def readers(self) -> tuple[Dimension, ...]:
        """For each of `columns`, the dimension or the part of a dimension that cleans it."""
        found = {leaf.columns[0]: leaf for x in self.dimensions for leaf in x.leaves}
        return tuple(found[name] for name in self.columns)

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

        shown = self.dimensions[:_SHOWN]
        rows = [[x.name, x.kind, repr(x).removeprefix(type(x).__name__)[:200]] for x in shown]
        more = len(self) - len(shown)
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
        if unknown := [str(name) for name in record if name not in self._readers]:
            hint = suggestion(unknown[0], self.columns)
            raise InvalidInput(f"the record has a field {unknown[0]!r} that the survey does not have{hint}")
        for name, reader in self._readers.items():
            reader.check(record.get(name))

    @cached_property
    def _readers(self) -> dict[str, Dimension]:
        return dict(zip(self.columns, self.readers, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The schema as a document for JSON."""
        return {"dimensions": [dimension.to_dict() for dimension in self.dimensions]}

    @classmethod
    def from_dict(cls, document: Any) -> Schema:
        """The schema of a document; the `type` of a dimension may be omitted."""
        if not isinstance(document, Mapping) or set(document) != {"dimensions"}:
            raise FormatError("a schema must be an object with one field, dimensions")
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
