"""What a data set is here: named columns of values in [−1, 1], each made or read when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Dataset"]

Column = NDArray[np.float32]


@dataclass(frozen=True)
class Dataset:
    """`n_users` users by `n_dims` dimensions, already in [−1, 1]; `column(j)` is the j-th dimension.

    `title` is what tables and figures call it; a stand-in says so there. `normalisation` is how the values
    came into [−1, 1].
    """

    name: str
    title: str
    n_users: int
    n_dims: int
    normalisation: str
    column: Callable[[int], Column]
    stand_in: bool = False
