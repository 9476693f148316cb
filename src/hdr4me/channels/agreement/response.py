"""What an agreement block says about each of its numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.proof import ONE
from hdr4me.channels.response import Marginal, Response

__all__ = ["AgreementResponse"]


class AgreementResponse(Response):
    """A number is rounded to a sign at random, and the reported sign agrees with it with probability (1 + c)/2."""

    def n_coordinates(self, place: int = 0) -> int:
        return 1

    @cached_property
    def contrast_c(self) -> float:
        """c: a reported sign has mean c times the number."""
        return float(self.channel.family.contrast(Fraction(self.channel.weight, ONE)))

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        return self._sign

    @cached_property
    def _sign(self) -> Marginal:
        agree, differ = map(float, self.channel.family.shares(Fraction(self.channel.weight, ONE)))
        law = np.array([[agree, differ], [differ, agree]])[:, None, :]
        levels = np.array([-1.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": levels / self.contrast_c}, levels)

    def cells(self, counts: NDArray[np.int64], place: int = 0) -> NDArray[np.int64]:
        return counts[None, 2 * place : 2 * place + 2]
