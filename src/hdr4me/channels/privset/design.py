"""The channel for several categories at once."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from hdr4me.channels import HeavySet
from hdr4me.channels.heavy_set import heaviest
from hdr4me.channels.privset.channel import PrivSet
from hdr4me.channels.privset.response import PrivSetResponse
from hdr4me.channels.proof import ONE, check_epsilon

_MOST_CHOSEN = 256


def total_error(epsilon: float, family: PrivSet) -> float:
    """n·Σ Var over all items, dummies too: (s·p(1 − p) + (V − s)·q(1 − q))/(p − q)²."""
    p, q = family.shares(Fraction(heaviest(epsilon, family), ONE))
    found = (family.most * p * (1 - p) + family.size * q * (1 - q)) / (p - q) ** 2
    return float(found)


def number_variance(channel: HeavySet, chosen: float) -> float:
    """Variance of the number of choices that one report counts for, if all users chose `chosen` categories.

    >>> channel = selection_channel(1.0, 95, 5)
    >>> round(number_variance(channel, 0.0), 2), round(number_variance(channel, 5.0), 2)
    (132.15, 87.44)
    """
    return float(PrivSetResponse(channel).number_variance(chosen))


@lru_cache(maxsize=64)
def selection_channel(epsilon: float, n_categories: int, at_most: int) -> HeavySet:
    """PrivSet with outputs of the size of least error.

    Examples
    --------
    >>> channel = selection_channel(1.0, 95, 5)
    >>> channel.family.to_dict()
    {'size': 95, 'most': 5, 'chosen': 5}
    """
    check_epsilon(epsilon)
    best, error = PrivSet(n_categories, at_most, 1), float("inf")
    for chosen in range(1, min(n_categories, _MOST_CHOSEN) + 1):
        family = PrivSet(n_categories, at_most, chosen)
        found = total_error(epsilon, family)
        if found >= error:
            break
        best, error = family, found
    return HeavySet("privset", float(epsilon), best, heaviest(epsilon, best))
