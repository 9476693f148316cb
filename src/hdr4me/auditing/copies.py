"""How often one and the same report occurs in files of reports."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hdr4me.io.files import read_blocks
from hdr4me.survey import Survey


def most_copies(survey: Survey, paths: Iterable[str | os.PathLike[str]]) -> int:
    """The number of copies of the most frequent report; all reports are held in memory, `report_size` bytes each."""
    blocks = [block.rows for path in paths for block in read_blocks(path, survey)]
    return most_copies_of(np.concatenate(blocks)) if blocks else 0


def most_copies_of(rows: NDArray[np.uint8]) -> int:
    """The same for reports in memory, one in each row.

    >>> most_copies_of(np.array([[1, 2], [3, 4], [1, 2]], np.uint8))
    2
    """
    if not len(rows):
        return 0
    whole = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    return int(np.unique(whole, return_counts=True)[1].max())
