"""A block of reports as a reader found it: the reports, their row numbers, and what it could not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.io.report import Rejected

__all__ = ["MOST_REJECTED", "Block"]

MOST_REJECTED = 4096
"""A block holds no more rejected reports, so that memory is bounded whatever a file holds."""


@dataclass(frozen=True)
class Block:
    """Reports of a file that are still to be checked and counted, and the rejected ones among them.

    Parameters
    ----------
    rows
        The reports, uint8 of shape (n, report_size), in memory that nothing else can change.
    numbers
        The row number of each report in its file, from 1; nulls and blank lines count as rows.
    rejected
        What the reader itself rejected since the block before: at most `MOST_REJECTED`.
    """

    rows: NDArray[np.uint8]
    numbers: Sequence[int] | NDArray[np.integer[Any]]
    rejected: Sequence[Rejected] = ()
