"""`auto`: the rule with the least measured error, as far as it is surely no worse than a safe one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.risk import Measured, Reading, Rule, difference, risk
from hdr4me.recalibration.rules import Problem

__all__ = ["Choice", "blend", "choose", "clip_risk", "confirmed_margin", "sure_margin"]

# What a wrong choice may cost, as a part of the base's own error: far below what can be noticed.
_TOLERANCE = 0.01
# How many standard errors of the measured difference a gain must exceed: beside another rule that is surely no worse
# than clipping; beside one that is so only in part. Beside clipping: `sure_margin`.
_SWITCH, _SWITCH_PART = 2.5, 1.0
_ROOT_2PI = float(np.sqrt(2 * np.pi))


class Choice(NamedTuple):
    """The rule that was taken, its share in the answer (the rest is the base), the answer as measured, and its luck.

    A gain G that was taken because it exceeded z standard errors is too large on average, by se·φ(u)/Φ(u) with
    u = G/se − z: the mean of a normal law above a threshold.
    """

    used: str
    share: float
    reading: Reading
    luck: float = 0.0


def choose(
    rules: dict[str, Rule],
    base: Reading,
    x: Floats,
    s: Floats,
    measure: Callable[[Rule], Reading],
    problem: Problem | None,
    margins: Mapping[str, float] | None = None,
) -> Choice:
    """Try every rule; keep the best of those that are surely no worse than the base, in the share that is.

    The error of base + w·(rule − base) is quadratic in w, so from the measured difference D and the mean square Q of
    rule − base, the largest w at which D's upper confidence bound is not positive is 1 − (D + z·se)/Q, at most 1.

    Parameters
    ----------
    rules
        By name; the first one is kept unless another is surely better.
    base
        The safe answer: clipping for means, the projection on the simplex for frequencies.
    x, s
        The data and their standard errors.
    measure
        Applies a rule to the data and measures its response.
    problem
        Where the base is clipping to this domain: what can be said of any truth in it.
    margins
        Rules for which there is other evidence (a structure that the data confirm), and the margin that is enough.

    Returns
    -------
    Choice
        Its name is "base" where nothing is surely better.

    Examples
    --------
    >>> from hdr4me.recalibration.risk import probes, read
    >>> x, s = np.linspace(-0.35, 0.35, 50), np.full(50, 0.2)
    >>> def measure(rule):
    ...     return read(rule, x, probes(s))
    >>> found = choose({"zeros": np.zeros_like}, measure(np.copy), x, s, measure, None)
    >>> found.used, found.share
    ('zeros', 1.0)
    """
    best = Choice("base", 0.0, base)
    margins = {} if margins is None else margins
    for name, rule in rules.items():
        found = measure(rule)
        margin = margins.get(name, sure_margin(x.size))
        share = _share(found, base, x, s, problem, margin)
        if share <= 0:
            continue
        mixed = blend(found, base, share)
        if best.used != "base":
            gap = difference(mixed, best.reading, x, s)
            clearly = _SWITCH if best.share == 1.0 else _SWITCH_PART
            # An improvement that exceeds every possible error is noise.
            most = np.inf if problem is None else (0.5 * (problem.high - problem.low)) ** 2
            if gap.value + clearly * gap.standard_error >= 0 or gap.value < -most:
                continue
        best = Choice(name, share, mixed, _luck(difference(mixed, base, x, s), margin))
    return best


def _luck(gap: Measured, margin: float) -> float:
    """What a gain that exceeded its margin is too large by, on average; never more than the gain.

    >>> [round(_luck(Measured(-gain, 1.0), 2.0), 3) for gain in (1.0, 2.0, 3.0, 5.0)]
    [1.0, 0.798, 0.288, 0.004]
    """
    if gap.value >= 0 or gap.standard_error == 0:
        return 0.0
    above = -gap.value / gap.standard_error - margin
    mills = np.exp(-0.5 * above**2) / _ROOT_2PI / max(float(ndtr(above)), 1e-12)
    return float(min(gap.standard_error * mills, -gap.value))


def sure_margin(n_dims: int) -> float:
    """How many standard errors of the measured difference a gain over clipping must exceed.

    Few dimensions know neither the difference nor its standard error well, and several rules are tried.

    >>> [round(sure_margin(d), 2) for d in (8, 20, 100, 1000)]
    [3.38, 2.25, 1.65, 1.52]
    """
    return 1.5 * (1 + 10 / n_dims)


def confirmed_margin(n_dims: int) -> float:
    """The same for a declared structure that the data confirm: half a standard error, more below 16 dimensions.

    >>> [confirmed_margin(d) for d in (4, 8, 12, 100)]
    [2.0, 1.5, 1.0, 0.5]
    """
    return 0.5 + 0.125 * max(16 - n_dims, 0)


def blend(found: Reading, base: Reading, share: float) -> Reading:
    """base + share·(rule − base), answer and response."""
    if share == 1.0:
        return found
    return Reading(
        base.value + share * (found.value - base.value),
        base.response + share * (found.response - base.response),
    )


def _share(
    found: Reading, base: Reading, x: Floats, s: Floats, problem: Problem | None, margin: float
) -> float:
    Q = float(np.mean((found.value - base.value) ** 2))
    if Q <= 0:
        return 0.0
    gap = difference(found, base, x, s)
    noise = float(np.mean(s**2))
    allowed = _TOLERANCE * min(max(risk(base, x, s).value, 0.0), noise)
    # An answer that moves by √Q from a base whose error is at most the noise's gains no more than 2√(Q·noise) − Q.
    upper = max(gap.value, Q - 2 * np.sqrt(Q * noise)) + margin * gap.standard_error
    if upper > allowed and problem is not None:
        upper = min(upper, _largest_difference(found, problem))
    excess = upper - allowed
    return float(np.clip(1 - excess / Q, 0.0, 1.0))


def _largest_difference(found: Reading, problem: Problem) -> float:
    """The most that the rule can lose to clipping, whatever the truth in the domain is.

    Where the noise far exceeds the domain no measurement tells much, but a rule that hardly follows the noise errs by
    no more than (δ_j − θ)² and the variance of its answer, and clipping's own error is a known function of θ.
    """
    s, low, high, _ = problem
    levels, place = np.unique(np.round(np.log(s), 2), return_inverse=True)
    θ = np.linspace(low, high, 21)
    clipping = clip_risk(θ, np.exp(levels)[:, None], low, high)
    variance = (found.response / s) ** 2
    total = np.zeros(s.size)
    worst = np.full(s.size, -np.inf)
    for i, t in enumerate(θ.tolist()):
        total = (found.value - t) ** 2 + variance - clipping[place, i]
        np.maximum(worst, total, out=worst)
    return float(worst.mean())


def clip_risk(θ: Floats, s: Floats, low: float, high: float) -> Floats:
    """E(clip(x) − θ)² for x ~ N(θ, s²), exactly.

    >>> float(clip_risk(np.array(0.0), np.array(1e-3), -1.0, 1.0))
    1e-06
    >>> round(float(clip_risk(np.array(1.0), np.array(1e-3), -1.0, 1.0)) * 1e6, 6)
    0.5
    """
    a, b = (low - θ) / s, (high - θ) / s
    φa, φb = np.exp(-0.5 * a**2) / _ROOT_2PI, np.exp(-0.5 * b**2) / _ROOT_2PI
    inside = ndtr(b) - ndtr(a) - b * φb + a * φa
    return np.asarray(s**2 * (inside + a**2 * ndtr(a) + b**2 * ndtr(-b)))
