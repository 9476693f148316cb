"""The channel for several categories at once."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from hdr4me.channels import HeavySet
from hdr4me.channels.heavy_set import heaviest
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.proof import ONE
from hdr4me.mechanisms.law import check_epsilon

__all__ = ["number_variance", "selection_channel", "total_error"]

_MOST_CHOSEN = 256


def total_error(epsilon: float, family: PrivSet) -> float:
    """n·Σ Var over all items, dummies too: (s·p(1 − p) + (V − s)·q(1 − q))/(p − q)²."""
    p, q = family.shares(Fraction(heaviest(epsilon, family), ONE))
    found = (family.most * p * (1 - p) + family.size * q * (1 - q)) / (p - q) ** 2
    return float(found)


def number_variance(channel: HeavySet, chosen: float) -> float:
    """Variance of the number of choices that one report counts for, if all users chose `chosen` categories.

    A report names a categories. With c chosen, E a = c·p + (v − c)·q, and a² has the mean
    E a + (c(c − 1) + 2c(v − c))·P(both | one or both chosen) + (v − c)(v − c − 1)·P(both | neither chosen),
    which is a concave function of c. A report counts for (a − v·q)/(p − q).

    >>> channel = selection_channel(1.0, 95, 5)
    >>> round(number_variance(channel, 0.0), 2), round(number_variance(channel, 5.0), 2)
    (132.15, 87.44)
    """
    family = channel.family
    assert isinstance(family, PrivSet)
    weight, v, c = Fraction(channel.weight, ONE), family.size, chosen
    p, q = map(float, family.shares(weight))
    both, neither = map(float, family.pair_shares(weight))
    mean = c * p + (v - c) * q
    pairs = (c * (c - 1) + 2 * c * (v - c)) * both + (v - c) * (v - c - 1) * neither
    return max(mean + pairs - mean**2, 0.0) / (p - q) ** 2


@lru_cache(maxsize=64)
def selection_channel(epsilon: float, n_categories: int, at_most: int) -> HeavySet:
    """PrivSet with outputs of the size of least error.

    Parameters
    ----------
    epsilon
        The budget of one answer.
    n_categories
        How many categories there are.
    at_most
        How many of them a user may have.

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
