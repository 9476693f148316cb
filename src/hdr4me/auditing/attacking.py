"""An attack on a channel that is deployed: a lower bound of its ε from what it sends, and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdr4me.channels import Channel
from hdr4me.engines.general import answers_of

Floats = NDArray[np.float64]

ALARM = 1e-6
"""The probability that an honest table is accused, for each table."""

_LEAST_DRAWS, _MOST_PRODUCTS = 10_000, 1_000_000_000
"""Draws of a codebook that are always made, and products beyond which no more are."""

_AT_ONCE = 1 << 19
"""Outputs that are in memory at a time."""


def draws_made(channel: Channel, n_draws: int) -> int:
    """How many draws of each value the attack makes when it is asked for `n_draws`.

    A codebook takes K·d products a draw, so that long vectors are drawn fewer times, at least 10,000 times each.

    >>> from hdr4me.channels.codebook.design import codebook_channel
    >>> draws_made(codebook_channel(4.0, 100), 1_000_000)
    10000
    """
    return min(n_draws, max(_LEAST_DRAWS, _MOST_PRODUCTS // channel.response.cost))


def attack(
    channel: Channel, n_draws: int, progress: Callable[[int], None] | None = None, *, whole: bool = False
) -> float:
    """A lower bound of a channel's ε, from outputs alone, wrong with probability at most `ALARM`.

    The channel answers its two worst inputs many times each through the sampler that batches use. Outputs are put
    into classes by their likelihood ratio, and the set of classes is fixed beforehand (the one whose bound should come
    out highest), so the two Clopper–Pearson bounds are honest.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema, Survey
    >>> channel = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi").channels[0]
    >>> 0 < attack(channel, 10_000) <= 1.0
    True
    """
    first, second = channel.worst_pair()
    wanted, told = n_draws, 0
    n_draws = n_draws if whole else draws_made(channel, n_draws)
    hits = [0, 0]
    contrast = channel.response.contrast(first, second)
    chosen = _telling_set(contrast.first, contrast.second, n_draws)
    for start in range(0, n_draws, _AT_ONCE):
        n = min(_AT_ONCE, n_draws - start)
        for i, x in enumerate((first, second)):
            hits[i] += int(chosen[contrast.classify(answers_of(channel, x, n))].sum())
        if progress is not None:
            reached = wanted * (start + n) // n_draws
            progress(reached - told)
            told = reached
    return bound(hits[0], hits[1], n_draws)


def bound(first: int, second: int, n_draws: int) -> float:
    """The lower bound of ε from how many of `n_draws` outputs of each input fell into the telling set.

    >>> bound(731_000, 269_000, 1_000_000) < 1.0
    True
    """
    hits = (first, second)
    low = float(stats.beta.ppf(ALARM / 2, hits[0], n_draws - hits[0] + 1)) if hits[0] else 0.0
    high = float(stats.beta.isf(ALARM / 2, hits[1] + 1, n_draws - hits[1])) if hits[1] < n_draws else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _telling_set(first: Floats, second: Floats, n_draws: int) -> NDArray[np.bool_]:
    """Among the sets {ratio ≥ τ}, the one whose expected bound is highest at this many draws."""
    order = np.argsort(-first / np.maximum(second, 1e-300), kind="stable")
    p, q = np.cumsum(first[order]), np.cumsum(second[order])
    z = float(stats.norm.isf(ALARM / 2))
    low = p - z * np.sqrt(p / n_draws)
    high = q + z * np.sqrt(q / n_draws) + z**2 / n_draws
    best = int(np.argmax(np.where(low > 0, low, 1e-300) / high))
    chosen = np.zeros(first.size, dtype=bool)
    chosen[order[: best + 1]] = True
    return chosen
