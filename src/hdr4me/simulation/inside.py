"""Values that are simulated lie in the domain of what randomises them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput


def check_inside(values: NDArray[np.floating[Any]], low: float, high: float, whose: str) -> None:
    """Refuse values outside [low, high] or NaN, and name the first one.

    >>> check_inside(np.array([[0.5, 2.0]]), -1, 1, "duchi")
    Traceback (most recent call last):
    hdr4me.errors.InvalidInput: values[0, 1] = 2.0 is not allowed: values must lie in the domain [-1, 1] of duchi
    """
    if not values.size or (values.min() >= low and values.max() <= high):
        return
    inside = (values >= low) & (values <= high)
    place = tuple(int(index) for index in np.argwhere(~inside)[0])
    raise InvalidInput.of(
        f"values{list(place)}",
        float(values[place]),
        f"values must lie in the domain [{low:g}, {high:g}] of {whose}",
    )
