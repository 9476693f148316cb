"""The distribution estimated from counts: expectation-maximization with data-dependent smoothing.

With f the shares of the cells and A the law of a cell given a bin, one step is p ← p·A(f/(pA)); smoothing by
[s/4, 1 − s/2, s/4] after each step keeps p smooth (Li et al. 2020: EM for s = 0, EMS for s = 1). A fixed s = 1 flattens
narrow peaks, and s = 0 gives spikes. Therefore the strength is reduced in steps (`LADDER`) as long as each step raises
twice the log-likelihood by more than `WORTH`. On 64 bins the first strength is half that of s = 1 on Li et al.'s 256.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import Floats
from hdr4me.mechanisms.priors import Prior

# Strengths before the ladder; each fit is the start of the next. EM from a uniform start would stop too early, or
# would fit the noise if the tolerance were smaller.
APPROACH = (1.0, 0.3, 0.1)
LADDER = (0.03, 0.01, 0.003, 0.0)  # the strengths of smoothing to choose from
WORTH = 4.0  # the least gain in twice the log-likelihood of a step, which adds one or two degrees of freedom
_TINY = 1e-300
_EVERY = 10


class Fit(NamedTuple):
    """Probabilities of the states, shape (rows of counts, states), their log-likelihoods and smoothing strengths."""

    p: Floats
    log_likelihood: Floats
    strength: Floats


def fit(
    counts: Floats,
    law: Floats,
    shape: tuple[int, int],
    strength: Floats,
    *,
    start: Floats | None = None,
    steps: int = 500,
    tolerance: float = 1e-2,
) -> Fit:
    """The distribution over states that EM finds for each row of counts."""
    n_rows, n_states = len(counts), len(law)
    p = np.full((n_rows, n_states), 1.0 / n_states) if start is None else start.copy()
    shares = counts / counts.sum(axis=1, keepdims=True)
    before = np.full(n_rows, np.inf)
    active = np.arange(n_rows)
    for step in range(steps):
        mixed = np.maximum(p[active] @ law, _TINY)
        if step % _EVERY == 0:
            now = (counts[active] * np.log(mixed)).sum(axis=1)
            going = ~(np.abs(now - before[active]) < _EVERY * tolerance)
            before[active] = now
            active, mixed = active[going], mixed[going]
            if not active.size:
                break
        new = p[active] * ((shares[active] / mixed) @ law.T)
        if strength[active].any():
            new = _smoothed(new, shape, strength[active])
        p[active] = new / new.sum(axis=1, keepdims=True)
    likelihood = (counts * np.log(np.maximum(p @ law, _TINY))).sum(axis=1)
    return Fit(p, likelihood, strength)


def climb(
    counts: Floats,
    law: Floats,
    shape: tuple[int, int],
    *,
    block: int = 128,
    progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """The distribution for each row of counts, with the smoothing chosen by the likelihood (see `fit`).

    `block` rows are computed together; `progress` is called with the number of finished rows and that of all rows.
    """
    parts = []
    for at in range(0, len(counts), block):
        parts.append(_climbed(counts[at : at + block], law, shape))
        if progress is not None:
            progress(min(at + block, len(counts)), len(counts))
    return Fit(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _climbed(counts: Floats, law: Floats, shape: tuple[int, int]) -> Fit:
    start: Floats | None = None
    for rung in APPROACH:
        start = fit(counts, law, shape, np.full(len(counts), rung), start=start).p
    p, likelihood, strength = fit(counts, law, shape, np.full(len(counts), LADDER[0]), start=start)
    going = np.arange(len(counts))
    for rung in LADDER[1:]:
        part = fit(counts[going], law, shape, np.full(going.size, rung), start=p[going])
        better = 2.0 * (part.log_likelihood - likelihood[going]) > WORTH
        going = going[better]
        p[going], likelihood[going], strength[going] = part.p[better], part.log_likelihood[better], rung
        if not going.size:
            break
    return Fit(p, likelihood, strength)


def _smoothed(p: Floats, shape: tuple[int, int], strength: Floats) -> Floats:
    """[s/4, 1 − s/2, s/4] along the bins; mass beyond an end stays in the last bin."""
    size = shape[0] * shape[1]
    own = p[:, :size].reshape(len(p), *shape)
    quarter = (strength / 4)[:, None, None] * own
    out = own - 2 * quarter
    out[:, 1:] += quarter[:, :-1]
    out[:, :-1] += quarter[:, 1:]
    out[:, 0] += quarter[:, 0]
    out[:, -1] += quarter[:, -1]
    return np.concatenate([out.reshape(len(p), size), p[:, size:]], axis=1)


def prior_from_counts(probabilities: ArrayLike, counts: ArrayLike, rounds: int = 200) -> Prior:
    """The prior on [−1, 1] estimated from a table's reports: EM on the levels, stopped early to stay smooth."""
    rows, n = np.asarray(probabilities, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if rows.ndim != 2 or n.shape != (rows.shape[1],) or (n < 0).any() or n.sum() == 0:
        raise InvalidInput.of("counts", counts, "one number >= 0 for each cell, and at least one report")
    share = np.full(len(rows), 1.0 / len(rows))
    cells = n / n.sum()
    for _ in range(rounds):
        share = share * (rows @ (cells / np.maximum(share @ rows, 1e-300)))
    return Prior(np.linspace(-1.0, 1.0, len(rows)), share / share.sum())
