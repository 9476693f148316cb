"""The survey: what is asked, under which budget, by which integer tables; standard library only to load and use."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hdr4me.atomic import write_text
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey.budget import check_budget, check_tables, split_budget
from hdr4me.survey.canonical import fingerprint, parse
from hdr4me.survey.randomizer import Randomizer
from hdr4me.survey.schema import Schema

__all__ = ["Survey"]

FORMAT, VERSION = "hdr4me-survey", 1
_FIELDS = {
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


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Survey:
    """A schema, a total budget ε, m = `n_sampled` dimensions per user, and the tables that randomise them.

    Each of the m values sent is randomised under ε/m. A survey is a JSON document that carries its tables, so a
    client in any language needs nothing else, and its SHA-256 `fingerprint` is on every report and tally.

    >>> from hdr4me.survey import Categorical, Numeric
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> survey = Survey(schema, epsilon=2.0, mechanism="duchi", n_sampled=2)
    >>> survey.epsilon_per_value, survey.report_size
    (1.0, 6)
    >>> Survey.from_json(survey.to_json()) == survey
    True
    """

    schema: Schema
    epsilon: float
    n_sampled: int
    randomizers: tuple[Randomizer, ...]
    assignment: tuple[int, ...]
    name: str

    def __init__(
        self,
        schema: Schema,
        epsilon: float = 1.0,
        mechanism: Any = "optimal",
        n_sampled: int = 1,
        categorical: str = "auto",
        name: str = "",
    ) -> None:
        from hdr4me.survey.design import design

        check_budget(schema, epsilon, n_sampled)
        per_value = split_budget(float(epsilon), int(n_sampled))
        randomizers, assignment = design(schema, per_value, mechanism, categorical)
        self._adopt(schema, float(epsilon), int(n_sampled), randomizers, assignment, name)

    @classmethod
    def from_tables(
        cls,
        schema: Schema,
        *,
        epsilon: float,
        n_sampled: int,
        randomizers: tuple[Randomizer, ...],
        assignment: tuple[int, ...],
        name: str = "",
    ) -> Survey:
        """A survey from tables that are there already; everything about them is checked."""
        check_budget(schema, epsilon, n_sampled)
        survey = cls.__new__(cls)
        survey._adopt(schema, float(epsilon), int(n_sampled), tuple(randomizers), tuple(assignment), name)
        return survey

    def _adopt(
        self,
        schema: Schema,
        epsilon: float,
        n_sampled: int,
        randomizers: tuple[Randomizer, ...],
        assignment: tuple[int, ...],
        name: str,
    ) -> None:
        if not isinstance(name, str):
            raise InvalidInput(f"name = {name!r} must be a string")
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(f"name = {name!r} has no UTF-8 form") from None
        check_tables(schema, epsilon, n_sampled, randomizers, assignment)
        fields = zip(
            ("schema", "epsilon", "n_sampled", "randomizers", "assignment", "name"),
            (schema, epsilon, n_sampled, randomizers, assignment, name),
            strict=True,
        )
        for field, value in fields:
            object.__setattr__(self, field, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Survey) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        mechanisms = ", ".join(dict.fromkeys(r.mechanism for r in self.randomizers))
        return (
            f"<Survey {self.fingerprint[:12]}: {len(self.schema)} dimensions, epsilon = {self.epsilon}, "
            f"{self.n_sampled} sent by each user, by {mechanisms}>"
        )

    # -- what follows from the fields --------------------------------------------------------------------------

    @property
    def epsilon_per_value(self) -> float:
        """ε/m, rounded down: m of them never exceed ε, not even by the last bit."""
        return split_budget(self.epsilon, self.n_sampled)

    def randomizer(self, j: int) -> Randomizer:
        """The table of dimension j."""
        return self.randomizers[self.assignment[j]]

    def n_codes(self, j: int) -> int:
        """How many codes an answer to dimension j has: one, or one for each category (kind "entries")."""
        return self._code_counts[j]

    @cached_property
    def _code_counts(self) -> tuple[int, ...]:
        return tuple(
            len(getattr(dimension, "categories", ())) if self.randomizer(j).kind == "entries" else 1
            for j, dimension in enumerate(self.schema)
        )

    @cached_property
    def code_width(self) -> int:
        """The bytes of codes in a slot: the largest `n_codes`."""
        return max(self._code_counts)

    @property
    def slot_size(self) -> int:
        """Two bytes name the dimension, then come its codes."""
        return 2 + self.code_width

    @property
    def report_size(self) -> int:
        return self.n_sampled * self.slot_size

    # -- the document ------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical document: two surveys with the same fingerprint ask the same in the same way."""
        return fingerprint(self._body())

    @cached_property
    def series(self) -> str:
        """The fingerprint of the same survey without its name: a renamed survey shares its budget."""
        return fingerprint({**self._body(), "name": ""})

    def _body(self) -> dict[str, Any]:
        dimensions = [
            {**dimension.to_dict(), "randomizer": index}
            for dimension, index in zip(self.schema, self.assignment, strict=True)
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "bits": 32,
            "epsilon": self.epsilon,
            "n_sampled": self.n_sampled,
            "dimensions": dimensions,
            "randomizers": [randomizer.to_dict() for randomizer in self.randomizers],
        }

    def to_json(self) -> str:
        """The document, tables and fingerprint included."""
        return json.dumps(
            {**self._body(), "fingerprint": self.fingerprint}, ensure_ascii=False, allow_nan=False
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Survey:
        """Read a document and check all of it: version, schema, tables, privacy, fingerprint."""
        try:
            document = parse(text)
        except ValueError as error:
            raise FormatError(f"not a survey: {error}".replace("\n", " ")) from error
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FormatError(f"not a survey: its format is not {FORMAT!r}")
        if document.get("version") != VERSION or isinstance(document["version"], bool):
            raise FormatError(
                f"survey of version {document.get('version')!r}: this program reads version {VERSION}"
            )
        if set(document) != _FIELDS:
            odd = ", ".join(sorted(map(repr, set(document) ^ _FIELDS)))
            raise FormatError(f"not a survey: fields missing or unknown: {odd}")
        try:
            survey = cls._from_document(document)
        except InvalidInput as error:
            raise FormatError(f"not a valid survey: {error}") from error
        if survey.fingerprint != document["fingerprint"]:
            raise FingerprintMismatch("the survey document", str(document["fingerprint"]), survey.fingerprint)
        return survey

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> Survey:
        dimensions, randomizers = document["dimensions"], document["randomizers"]
        if not isinstance(dimensions, list) or not all(isinstance(item, Mapping) for item in dimensions):
            raise FormatError("a survey's dimensions are a list of objects")
        if not isinstance(randomizers, list) or document["bits"] != 32:
            raise FormatError("a survey's randomizers are a list, its bits 32")
        plain = [{key: value for key, value in item.items() if key != "randomizer"} for item in dimensions]
        return cls.from_tables(
            Schema.from_dict({"dimensions": plain}),
            epsilon=document["epsilon"],
            n_sampled=document["n_sampled"],
            randomizers=tuple(map(Randomizer.from_dict, randomizers)),
            assignment=tuple(item.get("randomizer") for item in dimensions),
            name=document["name"],
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document, atomically."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Survey:
        """Read a survey's file."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except FingerprintMismatch:
            raise
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
