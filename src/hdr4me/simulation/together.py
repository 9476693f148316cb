"""Simulated answers to questions about many numbers at once: blocks of signs, and vectors by codewords; seeded.

A codebook is not made: the place of the codeword that is sent gives its score by the law of order statistics, and what
is left of it at right angles to the input is normal. That is exact for codewords of normal numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hdr4me.channels import HeavySet
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.proof import ONE
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.agreement import contrast
from hdr4me.mechanisms.codebook import scores_of, value_variance
from hdr4me.simulation.inside import check_inside
from hdr4me.simulation.seeds import generator

__all__ = ["simulate_together"]

Floats = NDArray[np.float64]
_CHUNK = 1 << 18
"""Numbers in a chunk. Part of the streams' names: another number gives other draws."""


def simulate_together(channel: HeavySet, values: Floats, seed: int) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of decoded reports for each number of the question.

    Parameters
    ----------
    channel
        An agreement block or a codebook.
    values
        True values [n, b] on [−1, 1], or vectors [n, length] of the ball of norm 1.
    seed
        Each chunk of users has a stream of its own under this seed.
    """
    family = channel.family
    size = family.size if isinstance(family, Agreement) else getattr(family, "length", 0)
    if values.ndim != 2 or values.shape[1] != size:
        raise InvalidInput(f"values of shape {values.shape}: expected (n, {size})")
    rows = max(1, _CHUNK // size)
    total, squares = np.zeros((2, size))
    for chunk, start in enumerate(range(0, len(values), rows)):
        part = np.asarray(values[start : start + rows], np.float64)
        rng = generator(seed, family.name, chunk)
        made = _signs(channel, part, rng) if isinstance(family, Agreement) else _codewords(channel, part, rng)
        total += made.sum(axis=0)
        squares += np.square(made).sum(axis=0)
    return total, squares, np.full(size, float(len(values)))


def _signs(channel: HeavySet, values: Floats, rng: np.random.Generator) -> Floats:
    """Decoded signs ±1/c."""
    family = channel.family
    assert isinstance(family, Agreement)
    check_inside(values, -1.0, 1.0, "an agreement block")
    n, b = values.shape
    signs = np.where(rng.random(values.shape) < (1 + values) / 2, 1.0, -1.0)
    k, most = family.n_heavy, family.size - family.agreeing
    heavy = rng.random(n) < channel.weight / ONE
    inside = np.array([float(Fraction(end, k)) for end in family.ends[: most + 1]])
    outside = np.array([float(Fraction(end - k, family.n_outputs - k)) for end in family.ends[most + 1 :]])
    u = rng.random(n)
    t = np.where(
        heavy,
        np.searchsorted(inside, u, side="right"),
        most + 1 + np.searchsorted(outside, u, side="right"),
    )
    places = rng.random((n, b)).argsort(axis=1).argsort(axis=1)
    return np.asarray(np.where(places < t[:, None], -signs, signs) / contrast(channel))


def _codewords(channel: HeavySet, values: Floats, rng: np.random.Generator) -> Floats:
    """Decoded codewords without their last number, the lifted one."""
    family = channel.family
    assert isinstance(family, Codebook)
    squares = np.square(values).sum(axis=1)
    if not np.all(squares <= 1 + 1e-9):
        raise InvalidInput("values must lie in the ball of norm 1 of a codebook")
    n, d = values.shape
    target = np.concatenate([values, np.sqrt(np.maximum(0.0, 1 - squares))[:, None]], axis=1)
    heavy = rng.random(n) < channel.weight / ONE
    place = np.where(heavy, rng.integers(0, family.heavy, n), rng.integers(family.heavy, family.codewords, n))
    score = -special.ndtri(rng.beta(place + 1.0, family.codewords - place))
    free = rng.standard_normal((n, d + 1))
    along = score - (free * target).sum(axis=1)
    found = free + along[:, None] * target
    return np.asarray(found[:, :d] * np.sqrt(value_variance()) / scores_of(channel).contrast)
