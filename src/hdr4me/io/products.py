"""Columns of products: computed from the columns of two numbers, by the rule of `hdr4me.survey.Product`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.survey import Product, Schema
from hdr4me.survey.numeric import Numeric

__all__ = ["product_of", "with_products"]

Floats = NDArray[np.float64]


def _scaled(values: NDArray[Any], factor: Numeric) -> Floats:
    """A number's values on [−1, 1], cleaned: missing ones are the default, those out of range the nearer bound."""
    found = values.astype(np.float64)
    found = np.clip(np.where(np.isnan(found), factor.default, found), factor.low, factor.high)
    return np.asarray(2.0 * ((found - factor.low) / (factor.high - factor.low)) - 1.0)


def product_of(first: NDArray[Any], second: NDArray[Any], dimension: Product) -> Floats:
    """The products on [−1, 1] of two columns; NaN stands for a missing value, which counts as its number's default.

    Parameters
    ----------
    first, second
        The columns of the two numbers, in the product's order.
    dimension
        The product.
    """
    a, b = dimension.both
    return _scaled(first, a) * _scaled(second, b)


def with_products(values: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """A matrix [n, columns] with a column for every dimension: the same matrix if the schema has no product."""
    if len(schema.columns) == len(schema):
        return values
    at = {name: place for place, name in enumerate(schema.columns)}
    parts = [
        product_of(values[:, at[x.product[0]]], values[:, at[x.product[1]]], x)
        if isinstance(x, Product)
        else values[:, at[x.name]].astype(np.float64)
        for x in schema
    ]
    return np.stack(parts, axis=1)
