"""The rules that `auto` chooses from, each a function of the calibrated means alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration.bayes import fit_posterior
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.james_stein import james_stein
from hdr4me.recalibration.posterior import Posterior
from hdr4me.recalibration.risk import Rule
from hdr4me.recalibration.smooth import Block
from hdr4me.recalibration.structure import structured, structured_mean
from hdr4me.recalibration.trivial import clip

__all__ = ["Fits", "Problem", "candidates", "noise_levels"]

_FEWEST_PER_LEVEL = 40
_MOST_LEVELS = 6
_UNEQUAL = 1.5
# Beyond this many dimensions a fit for each level would take most of the time.
_MOST_BY_NOISE = 20_000


class Problem(NamedTuple):
    """Standard errors and domain, which every rule takes as known."""

    s: Floats
    low: float
    high: float
    null: float


class Fits:
    """Posteriors by observations, each fitted once: rules are applied to the same few x."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[bytes, Posterior] = {}

    def __call__(self, x: Floats) -> Posterior:
        key = x.tobytes()
        if key not in self._known:
            self._known[key] = fit_posterior(x, *self.problem)
        return self._known[key]


def candidates(fits: Fits, blocks: Sequence[Block]) -> dict[str, Rule]:
    """Rules by name; the first is the one that the others must surely beat.

    SURE's soft threshold is not among them: it is chosen by the very measurement that would judge it.
    """
    s, low, high, null = fits.problem

    def bayes(x: Floats) -> Floats:
        return fits(x).mean

    def with_structure(x: Floats) -> Floats:
        return structured_mean(structured(blocks, fits(x), x), fits(x))

    levels = noise_levels(s)

    def by_noise(x: Floats) -> Floats:
        out = np.empty_like(x)
        for level in levels:
            out[level] = fit_posterior(x[level], s[level], low, high, null).mean
        return out

    rules: dict[str, Rule] = {"structure": with_structure} if blocks else {}
    rules["bayes"] = bayes
    if len(levels) > 1 and s.size <= _MOST_BY_NOISE:
        rules["bayes_by_noise"] = by_noise
    rules["james_stein"] = lambda x: clip(james_stein(x, s, towards_mean=False), low, high)
    rules["james_stein_mean"] = lambda x: clip(james_stein(x, s, towards_mean=True), low, high)
    return rules


def noise_levels(s: Floats) -> list[NDArray[np.int64]]:
    """Dimensions in levels of standard error, at least 40 in each; one level if they hardly differ.

    Equal standard errors stay together: a cut between them would sort by the observed means.

    >>> [level.size for level in noise_levels(np.geomspace(0.01, 1, 100))]
    [50, 50]
    >>> [level.size for level in noise_levels(np.repeat([0.1, 0.3], [50, 70]))]
    [50, 70]
    >>> len(noise_levels(np.full(1000, 0.1)))
    1
    """
    number = min(s.size // _FEWEST_PER_LEVEL, _MOST_LEVELS)
    order = np.argsort(s, kind="stable")
    if number < 2 or np.quantile(s, 0.9) < _UNEQUAL * np.quantile(s, 0.1):
        return [order]
    rising = s[order]
    cuts: list[int] = []
    for level in np.array_split(rising, number)[:-1]:
        cut = int(np.searchsorted(rising, level[-1], "right"))
        if cut - (cuts[-1] if cuts else 0) >= _FEWEST_PER_LEVEL and s.size - cut >= _FEWEST_PER_LEVEL:
            cuts.append(cut)
    return np.split(order, cuts)
