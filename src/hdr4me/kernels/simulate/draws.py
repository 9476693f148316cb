"""Perturbed values from true values and uniform words, for the families of law that continuous mechanisms have.

A family's parameters arrive as plain numbers, made from the mechanism itself (see `hdr4me.simulation.laws`); no formula
of a mechanism is repeated here. u below is a word as a double in [1, 2).

- INTERVALS: a mixture of uniform intervals, from one word. The cumulative weight below which u falls chooses the
  interval, and where u lies within that weight chooses the point: t* = a + b·u + c·t with (a, b, c) of the interval.
- TWO_INTERVALS: the same with two intervals of fixed weight, the form of Piecewise and Square wave.
- LAPLACE: t* = t ± λE with E = -log(2 - u) exponential, the sign the word's lowest bit.
- STEPS: t* = t ± (top or step); one word gives sign and step (the whole part of E/ε), a second one the choice
  between top and step and the point inside.

The compiler may only fuse multiplications and additions (`contract`). Allowed to reassociate sums as well, it made the
Laplace variance wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.simulate.generator import to_unit

TWO_INTERVALS, INTERVALS, LAPLACE, STEPS = range(4)


def _bits_of(typingctx: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def _double_of(typingctx: Any, bits: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


_bits: Any = intrinsic(_bits_of)
_double: Any = intrinsic(_double_of)
_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_LN2 = float(np.log(2.0))


@njit(
    inline="always", fastmath={"contract"}, error_model="numpy"
)  # a check for division by 0 would not vectorise
def _minus_log(v):  # type: ignore[no-untyped-def]
    """-log(v) for normal v > 0, to 2 units in the last place; only arithmetic, so loops of it vectorise.

    v = m·2^k with m in [sqrt(1/2), sqrt(2)); log m = 2·artanh((m-1)/(m+1)) by its series to s^17.
    """
    bits = _bits(v)
    k = (bits - _ROOT_HALF) >> 52
    m = _double(bits - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 17.0
    p = p * z + 2.0 / 15.0
    p = p * z + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return -(k * _LN2 + (2.0 * s + s * z * p))


@kernel(fastmath={"contract"})
def _two_intervals(t, words, law, x):  # type: ignore[no-untyped-def]
    a0, b0, c0 = law[0, 0], law[0, 1], law[0, 2]
    a1, b1, c1 = law[1, 0], law[1, 1], law[1, 2]
    end = law[0, 3]
    for i in range(x.size):
        u = to_unit(words[i])
        first = u < end
        x[i] = (a0 if first else a1) + (c0 if first else c1) * t[i] + (b0 if first else b1) * u


@kernel(fastmath={"contract"})
def _intervals(t, words, law, x):  # type: ignore[no-untyped-def]
    last = law.shape[0] - 1
    for i in range(x.size):
        x[i] = law[last, 0] + law[last, 2] * t[i] + law[last, 1] * to_unit(words[i])
    for k in range(last - 1, -1, -1):
        a, b, c, end, tilt = law[k, 0], law[k, 1], law[k, 2], law[k, 3], law[k, 4]
        for i in range(x.size):
            u = to_unit(words[i])
            x[i] = a + c * t[i] + b * u if u < end + tilt * t[i] else x[i]


@kernel(fastmath={"contract"})
def _laplace(t, words, law, x):  # type: ignore[no-untyped-def]
    scale = law[0, 0]
    for i in range(x.size):
        word = words[i]
        size = scale * _minus_log(2.0 - to_unit(word))
        x[i] = t[i] + (size if word & np.uint64(1) else -size)


@kernel(fastmath={"contract"})
def _steps(t, words, law, x):  # type: ignore[no-untyped-def]
    rate, end = law[0, 0], law[0, 1]
    a0, b0, a1, b1, step = law[1, 0], law[1, 1], law[1, 2], law[1, 3], law[1, 4]
    places = words[x.size : 2 * x.size]
    for i in range(x.size):
        x[i] = np.floor(_minus_log(2.0 - to_unit(words[i])) * rate)
    for i in range(x.size):
        u = to_unit(places[i])
        size = a0 + b0 * u if u < end else a1 + b1 * u + step * x[i]
        x[i] = t[i] + (size if words[i] & np.uint64(1) else -size)


@kernel()
def draw(family, t, words, law, x):  # type: ignore[no-untyped-def]
    """Overwrite x with a perturbed value for each t, from its words."""
    if family == TWO_INTERVALS:
        _two_intervals(t, words, law, x)
    elif family == INTERVALS:
        _intervals(t, words, law, x)
    elif family == LAPLACE:
        _laplace(t, words, law, x)
    else:
        _steps(t, words, law, x)
