"""What an executor does to count two answers of one report together: one vector of integers, added like tallies.

Nothing here knows of Spark: Arrow batches come in and go out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines import spark_counts
from hdr4me.errors import FormatError
from hdr4me.io.blocks import Block
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts

__all__ = ["Names", "from_vector", "pair_batches", "pair_splits", "to_vector"]

Names = Sequence[tuple[str, str]]


def to_vector(counts: PairCounts) -> NDArray[np.int64]:
    """Pair counts as a vector; adding vectors is adding counts."""
    return np.concatenate([counts.counts[key].ravel() for key in sorted(counts.counts)])


def from_vector(vector: NDArray[np.int64], survey: Survey, names: Names) -> PairCounts:
    """The pair counts that a vector holds."""
    found = PairCounts(survey, names)
    at = 0
    for key in sorted(found.counts):
        counts = found.counts[key]
        counts[:] = vector[at : at + counts.size].reshape(counts.shape)
        at += counts.size
    return found


def pair_batches(batches: Iterable[pa.RecordBatch], survey: Survey, names: Names) -> Iterator[pa.RecordBatch]:
    """Partial pair counts of the first column of batches: binary reports, or text with a JSON report in each row."""
    return _counted(spark_counts.blocks_of(batches, survey, ""), survey, names)


def pair_splits(
    splits: Iterable[spark_counts.Split], survey: Survey, names: Names
) -> Iterator[pa.RecordBatch]:
    """Partial pair counts of parts of files, read here and checked as one machine would."""
    blocks = (block for split in splits for block in spark_counts.split_blocks(split, survey))
    return _counted(blocks, survey, names)


def _counted(blocks: Iterable[Block], survey: Survey, names: Names) -> Iterator[pa.RecordBatch]:
    counts = PairCounts(survey, names)
    try:
        for block in blocks:
            if len(block.rows):
                counts.add_block(block.rows)
    except FormatError as error:
        yield spark_counts.partial_row(fault=spark_counts.as_fault(error))
        return
    yield spark_counts.partial_row(to_vector(counts))
