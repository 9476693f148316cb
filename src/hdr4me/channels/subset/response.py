"""What subset selection says about each category: a report names the categories of its subset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hdr4me.channels.heavy_response import NamingResponse
from hdr4me.channels.response import Mask, Numbers

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


_FAST_SUBSETS = 65537
"""Categories for which a compiled kernel draws subsets of the others."""

_BYTE_SETS, _SPARSE = 256, 40
"""Sets of one in more than so many of more categories than that are quicker drawn one by one."""


class SubsetResponse(NamingResponse):
    """The counters are the categories."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        """The law of `Subset.draw`: a set of the others, one of which gives its place to the input if heavy.

        In as few bytes as a report has.
        """
        from hdr4me.kernels.exact.sets import MOST, with_member

        family = self.channel.family
        if family.size > _FAST_SUBSETS and family.chosen > 1:
            return super().sample(inputs, draws)
        n = len(inputs)
        heavy = draws.words(n) < self.channel.weight
        most = min(MOST, max(_BYTE_SETS, _SPARSE * family.chosen))
        if 2 < 2 * family.chosen < family.size <= most:
            return draws.sets(family.size, family.chosen, inputs, heavy)
        places = draws.below(family.chosen, n)
        output = np.empty((n, family.chosen), f"u{family.fields[0].size}")
        short = 1 < family.chosen < family.size - 1
        others = (draws.short_subsets if short else draws.subsets)(n, family.size - 1, family.chosen)
        with_member(np.ascontiguousarray(others), inputs, heavy, places, output)
        return output

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        return np.asarray((outputs == x).any(axis=1))
