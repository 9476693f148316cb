"""Subsets of the other categories become subsets that may have one's own, for many users at once."""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.jit import kernel

__all__ = ["with_member"]


@kernel()
def with_member(sets, inputs, heavy, places, out):  # type: ignore[no-untyped-def]
    """Write each sorted set of others as a sorted set of categories; where `heavy`, its own takes the place of one.

    sets[i] are numbers among the categories other than inputs[i]; places[i] says which of them gives way.
    """
    width = sets.shape[1]
    for i in range(sets.shape[0]):
        x = inputs[i]
        gone = places[i] if heavy[i] else width
        at = 0
        waiting = heavy[i]
        for c in range(width):
            number = np.int64(sets[i, c])
            number += number >= x
            if c == gone:
                continue
            if waiting and number > x:
                out[i, at] = x
                at += 1
                waiting = False
            out[i, at] = number
            at += 1
        if waiting:
            out[i, at] = x
