"""The mechanisms that the fused kernel can sample, and their parameters.

The kernel has three families: Laplace noise, stepped noise, and mixtures of uniform intervals whose centers and weights
are affine in t and whose widths do not depend on t. Membership is checked: a mixture is evaluated at two values of t
and compared at many others, and noise is recognized only if its class does not override the sampling methods.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.simulate.fused import INTERVALS, LAPLACE, STEPS, TWO_INTERVALS
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import AdditiveNoise, Mechanism, Parts, UniformMixture
from hdr4me.mechanisms.staircase import StaircaseFamily

Floats = NDArray[np.float64]

# The number of values of t at which a law is compared: evenly spaced, and random (seeded).
_GRID, _RANDOM = 257, 256
# For weights, and for centers and widths relative to the largest of them. It is well above rounding errors, and small
# enough to detect a weight that depends on t at any budget from 1e-9.
_TOLERANCE = 1e-12


def fused_law(mechanism: Mechanism) -> tuple[int, Floats] | None:
    """The kernel's family and parameters, or None if only the mechanism's own `sample` can draw its reports.

    >>> from hdr4me.mechanisms import mechanism
    >>> fused_law(mechanism("laplace", epsilon=1.0))[1].tolist()
    [[2.0]]
    """
    if isinstance(mechanism, Laplace):
        return (LAPLACE, np.array([[mechanism.scale]])) if _draws_itself(mechanism, Laplace) else None
    if isinstance(mechanism, StaircaseFamily):
        return _steps(mechanism) if _draws_itself(mechanism, StaircaseFamily) else None
    if isinstance(mechanism, UniformMixture) and type(mechanism).sample is UniformMixture.sample:
        return _mixture(mechanism)
    return None


def _draws_itself(mechanism: AdditiveNoise, family: type) -> bool:
    """Whether the mechanism's class has the methods of `family` that determine how a report is drawn."""
    kind = type(mechanism)
    return all(
        getattr(kind, name) is getattr(family, name)
        for name in ("sample", "noise_sample", "noise_tail", "mean")
    )


def _steps(mechanism: StaircaseFamily) -> tuple[int, Floats]:
    top, mass = mechanism.top, mechanism.top_mass
    flat = _interval(0.0, mass, top / 2, top / 2)
    step = _interval(mass, 1 - mass, top + 1.0, 1.0) if mass < 1 else (top, 0.0)
    return STEPS, np.array([[1 / mechanism.epsilon, 1 + mass, 0, 0, 0], [*flat, *step, 2.0]])


def _mixture(mechanism: UniformMixture) -> tuple[int, Floats] | None:
    low, high = mechanism.domain
    if low > 0 or high < 1 or not _is_affine(mechanism):
        return None
    ends = np.array([0.0, 1.0])
    weight, offset, half = mechanism.parts(ends)
    center = mechanism.mean(ends) + offset
    order = np.argsort(weight[:, 0] != weight[:, 1], kind="stable")  # parts of fixed weight first
    rows, before, tilt = [], 0.0, 0.0
    for w, c, h in zip(weight[order], center[order], half[order, 0], strict=True):
        if h > 0 and (tilt != 0 or w[0] != w[1]):
            return None  # the kernel needs cumulative weights of intervals that do not depend on t
        intercept, factor = _interval(before, w[0], c[0], h) if w[0] > 0 else (c[0], 0.0)
        before, tilt = before + w[0], tilt + (w[1] - w[0])
        rows.append([intercept, factor, c[1] - c[0], 1 + before, tilt])
    fixed = len(rows) == 2 and rows[0][4] == 0
    return TWO_INTERVALS if fixed else INTERVALS, np.array(rows)


def _is_affine(mechanism: UniformMixture) -> bool:
    """Whether weights and centers are affine in t and widths constant, at a grid of values and at random ones."""
    low, high = mechanism.domain
    t = np.concatenate([np.linspace(low, high, _GRID), np.random.default_rng(1).uniform(low, high, _RANDOM)])
    ends, here = (_shape(mechanism, values) for values in (np.array([0.0, 1.0]), t))
    if ends.weight.shape[0] != here.weight.shape[0]:
        return False
    scale = max(float(np.abs(here.offset).max()), float(here.half_width.max()), 1e-300)
    for name, allowed in (("weight", 1.0), ("offset", scale), ("half_width", scale)):
        first, last = np.moveaxis(getattr(ends, name), 1, 0)
        slope = np.zeros_like(first) if name == "half_width" else last - first
        expected = first[:, None] + slope[:, None] * t
        if not np.all(np.abs(getattr(here, name) - expected) <= _TOLERANCE * allowed):
            return False
    return True


def _shape(mechanism: UniformMixture, t: Floats) -> Parts:
    """The parts with the center of each interval instead of its offset."""
    weight, offset, half = mechanism.parts(t)
    return Parts(weight, mechanism.mean(t) + offset, half)


def _interval(before: float, weight: float, center: float, half: float) -> tuple[float, float]:
    """(a, b) such that a + b·u maps 1 + [before, before + weight) to center ± half."""
    factor = 2 * half / weight
    return center - half - factor * (1 + before), factor
