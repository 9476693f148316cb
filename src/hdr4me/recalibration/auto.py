"""The method that does no harm, by the number of dimensions there are to learn from."""

from __future__ import annotations

__all__ = ["choose"]

_JAMES_STEIN_FROM = 4
_BAYES_FROM = 40


def choose(n_dims: int) -> str:
    """`clip` below 4 dimensions, `james_stein` below 40, `bayes` from there on.

    Clipping is a projection on a convex set that holds the truth, and James–Stein with equal standard errors is
    never worse than the estimate in total. The Bayes estimate's strong odds on zero do harm where few dimensions
    must outweigh them: 1.7 times naive's error was measured at 5 dimensions of signal-to-noise 2, none from 10 on;
    40 leaves a margin.

    >>> choose(2), choose(10), choose(100)
    ('clip', 'james_stein', 'bayes')
    """
    if n_dims < _JAMES_STEIN_FROM:
        return "clip"
    return "james_stein" if n_dims < _BAYES_FROM else "bayes"
