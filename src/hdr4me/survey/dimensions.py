"""The kinds of dimension by name: numbers, categories, selections, and those of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hdr4me.errors import FormatError
from hdr4me.registry import Registry
from hdr4me.survey.categorical import Categorical
from hdr4me.survey.dimension import Dimension
from hdr4me.survey.numeric import Numeric

DIMENSIONS: Registry[type[Dimension]] = Registry(
    "dimension type",
    "dimensions",
    {
        Numeric.kind: Numeric,
        Categorical.kind: Categorical,
        "selection": "hdr4me.survey.selection:Selection",
        "product": "hdr4me.survey.product:Product",
        "vector": "hdr4me.survey.vector:Vector",
    },
)


def dimension_from_dict(item: Any) -> Dimension:
    """Read what `to_dict` wrote, or what a person did: `type` may be left out for numbers, categories and products."""
    if not isinstance(item, Mapping):
        raise FormatError(f"a dimension must be an object, not {item!r}")
    fields = dict(item)
    listed = {"categories", "categories_file"} & set(fields)
    told = Categorical.kind if listed else "product" if "product" in fields else Numeric.kind
    kind = fields.pop("type", told)
    if not isinstance(kind, str) or kind not in DIMENSIONS:
        raise FormatError(
            f"dimension {fields.get('name')!r}: type = {kind!r} must be one of {', '.join(DIMENSIONS.names)}"
        )
    return DIMENSIONS[kind].from_dict(fields)
