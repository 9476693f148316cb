"""Optional vectors in a schema that is to be planned: the refusal, with what to do instead."""

from __future__ import annotations

from typing import Any

from hdr4me.errors import InvalidInput

__all__ = ["refuse_optional_vectors"]


def refuse_optional_vectors(schema: Any) -> None:
    """Refuse a schema with an optional vector: its error depends on how many users have one.

    Raises
    ------
    InvalidInput
        If a vector is optional; the sentences say what to do.

    Examples
    --------
    >>> from hdr4me.survey import Schema, Vector
    >>> refuse_optional_vectors(Schema([Vector("move", 3)]))
    """
    for dimension in schema.dimensions:
        if dimension.reads == "vector" and getattr(dimension, "optional", False):
            raise InvalidInput(
                f"the schema has the optional vector {dimension.name!r}, and optional vectors are not planned: the "
                "standard error of the mean among those who have a vector is about 1/share times that of a vector "
                "which everybody has, and the share is not known. `hdr4me survey` makes a survey without a plan. "
                "docs/vectors.md says more"
            )
