"""What an answer that asks nobody would score: the least that a collection must beat.

- **Numbers**: zero everywhere scores E θ² = 1/3 over true means spread evenly on [−1, 1].
- **Categories**: zero everywhere scores Σ f²/v, and 1/v everywhere scores Σ (f − 1/v)²/v. True frequencies are taken as
  Zipf's, f_k ∝ 1/k, unless the expected ones are known: a few categories are common and most are rare, as they are in
  data. With v categories Σ f² = (π²/6)/(ln v)², roughly.
- **Selections**: the same with shares that sum to the expected number of choices. The mean number over the most is
  taken as spread evenly on [0, 1]: zero scores 1/3 and one half scores 1/12.
- **Optional numbers**: the mean like that of a number, the share of users with one like the mean number of choices.
- **Vectors**: zero everywhere scores |E x|²/d. The mean of vectors of length d is taken as spread evenly in the ball of
  norm 1, so that this is 1/(d + 2), unless the expected one is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdr4me.planner.workload import Group, Workload

__all__ = ["Baseline", "baseline", "zipf_squares"]

# A mean's spread over dimensions when nothing is known: uniform on [−1, 1].
_SPREAD = 1.0 / 3.0


@dataclass(frozen=True)
class Baseline:
    """The MSE of zero everywhere, and of zero for means and 1/v for frequencies, the better guess."""

    zeros: float
    even: float

    @property
    def best(self) -> float:
        """The smaller of the two."""
        return min(self.zeros, self.even)


def zipf_squares(size: int) -> float:
    """Σ f² for Zipf's frequencies of `size` categories.

    >>> round(zipf_squares(4043), 5)
    0.02085
    """
    rank = np.arange(1, size + 1)
    return float(np.sum(1.0 / rank**2) / np.sum(1.0 / rank) ** 2)


def _squares(group: Group) -> float:
    if group.squares is not None:
        return group.squares
    return zipf_squares(group.size) * group.expected_choices**2


def baseline(workload: Workload) -> Baseline:
    """The baselines of a workload, per coordinate.

    >>> from hdr4me.planner.workload import Workload
    >>> round(baseline(Workload.of_size(5)).best, 4)
    0.3333
    """
    zeros = even = 0.0
    for group in workload.groups:
        if group.length:
            known = group.squares
            square = group.length / (group.length + 2) if known is None else known
            zeros += group.count * square
            even += group.count * square
        elif not group.size:
            zeros += group.count * _SPREAD
            even += group.count * _SPREAD
        else:
            total = group.expected_choices
            zeros += group.count * _squares(group)
            even += group.count * max(_squares(group) - total**2 / group.size, 0.0)
        if group.choices or group.optional:
            zeros += group.count * _SPREAD
            even += group.count * _SPREAD / 4
    return Baseline(zeros / workload.n_coordinates, even / workload.n_coordinates)
