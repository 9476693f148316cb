"""Inputs that a whole number of 64 bits cannot hold: blocks of signs, and vectors."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook
from hdr4me.engines.plan import placing
from hdr4me.engines.secure import SecureDraws
from hdr4me.kernels.exact.agreement import row_signs, signs
from hdr4me.kernels.exact.perturb import Columns
from hdr4me.kernels.exact.positions import BOTTOM, DEFAULT, LOW, SCALE, TOP
from hdr4me.kernels.machine.intrinsics import DTYPES
from hdr4me.survey import Survey

__all__ = ["Vectors", "is_wide", "wide_inputs"]

Vectors = Mapping[int, NDArray[np.float64]]
"""The vectors [n, n_asked] of each dimension that is one, in the ball of norm 1."""

_CHUNK = 1 << 12
"""Users whose random halves are made together: they fit into the second-level cache."""


def is_wide(channel: Channel) -> bool:
    """Whether the channel's inputs are made here."""
    return isinstance(channel, HeavySet) and isinstance(channel.family, Agreement | Codebook)


@lru_cache(maxsize=16)
def _ranges(survey: Survey) -> NDArray[np.float64]:
    return placing(survey, np.zeros(len(survey.schema), np.int64))


def wide_inputs(
    columns: Columns, vectors: Vectors, survey: Survey, q: int, users: NDArray[np.int64], draws: SecureDraws
) -> NDArray[Any]:
    """What the sampler of question q takes of these users.

    Parameters
    ----------
    columns, vectors
        The records.
    survey
        What is asked.
    q
        The question's number.
    users
        The records' numbers.
    draws
        The system's randomness, which rounds numbers to signs.

    Returns
    -------
    array
        The signs of a block [users, fields] as bit patterns, or vectors [users, n_asked].
    """
    question = survey.questions[q]
    channel = question.channel
    assert isinstance(channel, HeavySet)
    if isinstance(channel.family, Codebook):
        return vectors[question.dimensions[0]][users]
    assert isinstance(channel.family, Agreement)
    ranges = _ranges(survey)
    found = np.empty((len(users), len(channel.fields)), np.int64)
    done = 0
    for field, width in enumerate(channel.family.widths):
        dims = np.array(question.dimensions[done : done + width], np.int64)
        done += width
        rows = _side_by_side(columns, dims, users)
        lines = np.ascontiguousarray(ranges[dims][:, [LOW, SCALE, BOTTOM, TOP, DEFAULT]].T)
        for start in range(0, len(users), _CHUNK):
            part = users[start : start + _CHUNK]
            halves = draws.halves(width * len(part))
            block = np.empty(len(part), np.uint64)
            if rows is not None:
                row_signs(*rows, lines, part, halves.reshape(len(part), width), block)
            else:
                signs(columns, ranges, dims, part, halves.reshape(width, len(part)), block)
            found[start : start + _CHUNK, field] = block.view(np.int64)
    return found


def _side_by_side(
    columns: Columns, dims: NDArray[np.int64], users: NDArray[np.int64]
) -> tuple[NDArray[Any], int] | None:
    """The memory of floats that stand side by side in rows, and the distance of rows in elements.

    None if the block's values stand otherwise: in columns of their own, as whole numbers, or with bitmaps.
    """
    dtype = DTYPES[columns.dtype[dims[0]]]
    size, stride, address = dtype.itemsize, int(columns.stride[dims[0]]), columns.address[dims]
    if not columns.step or dtype.kind != "f" or stride < size * len(dims) or stride % size or not users.size:
        return None
    if (address != address[0] + np.arange(len(dims), dtype=np.uint64) * np.uint64(size)).any():
        return None
    elements = int(users.max()) * (stride // size) + len(dims)
    memory = (ctypes.c_char * (elements * size)).from_address(int(address[0]))
    return np.frombuffer(memory, dtype), stride // size
