"""Frequencies of one categorical dimension: never negative, and their sum is one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.framework.supremum import tolerance_for
from hdr4me.recalibration.advice import TOLERANCE
from hdr4me.recalibration.bayes import fit_posterior
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.core import OPTIONS, recalibrate
from hdr4me.recalibration.inputs import check_inputs, check_method, check_probability
from hdr4me.recalibration.result import Recalibration

__all__ = [
    "FREQUENCY_METHODS",
    "FREQUENCY_OPTIONS",
    "Distribution",
    "base_cut",
    "norm_sub",
    "recalibrate_frequencies",
]

FREQUENCY_OPTIONS: dict[str, tuple[str, ...]] = {"auto": (), "norm_sub": (), "base_cut": ("confidence",)}
FREQUENCY_OPTIONS |= {name: taken for name, taken in OPTIONS.items() if name not in ("auto", "none")}
FREQUENCY_METHODS = tuple(FREQUENCY_OPTIONS)
"""Every method that `recalibrate_frequencies` takes."""

_BAYES_FROM = 8
# Frequencies sum to one, so "all are zero" is never true, and a common offset cannot lead astray.
_ODDS = {"null": 0.0, "centred": 0.5, "free": 0.2, "smooth": 0.15, "sharp": 0.15}


class Distribution(NamedTuple):
    """Enhanced frequencies and what was done."""

    frequencies: Floats
    used: str
    advice: str


def norm_sub(frequencies: Floats, variances: Floats | float = 1.0) -> Floats:
    """The nearest point of the simplex: f_k = max(f̂_k − δ·v_k, 0) with δ such that the sum is one.

    With equal v (norm-sub) it is the Euclidean projection, which can never move away from a true distribution. With
    variances v it is the projection in their metric: a well-known frequency moves less.

    >>> norm_sub(np.array([0.7, 0.5, -0.2]))
    array([0.6, 0.4, 0. ])
    """
    v = np.broadcast_to(np.asarray(variances, dtype=np.float64), frequencies.shape)
    # A frequency known exactly must still give way if nothing else can: a billionth of the largest variance.
    v = np.maximum(v, 1e-9 * v.max()) if v.max() > 0 else np.ones_like(v)
    order = np.argsort(-frequencies / v, kind="stable")
    δ = (np.cumsum(frequencies[order]) - 1) / np.cumsum(v[order])
    last = int(np.flatnonzero(frequencies[order] - δ * v[order] > 0)[-1])
    out = np.maximum(frequencies - δ[last] * v, 0.0)
    return np.asarray(out / out.sum())


def base_cut(frequencies: Floats, standard_errors: Floats, confidence: float = 0.95) -> Floats:
    """Frequencies that noise alone could have produced are cut; what the others leave of one is shared out equally.

    The cut is at z·σ_k, z simultaneous over the v categories, one-sided. The cut categories share what the kept
    ones leave; if those sum to more than one, they are projected on the simplex.

    >>> base_cut(np.array([0.6, 0.3, 0.03, -0.02]), np.full(4, 0.02))
    array([0.6 , 0.3 , 0.05, 0.05])
    """
    z = float(
        tolerance_for(1.0, 2 * check_probability("confidence", confidence) ** (1 / frequencies.size) - 1)
    )
    keep = frequencies > z * standard_errors
    out = np.where(keep, frequencies, 0.0)
    left = 1.0 - float(out.sum())
    if left >= 0 and not keep.all():
        out[~keep] = left / (~keep).sum()
        return out
    out[keep] = norm_sub(frequencies[keep])
    return out


def recalibrate_frequencies(
    frequencies: ArrayLike, standard_errors: ArrayLike, method: str = "auto", **options: Any
) -> Distribution:
    """Enhanced frequencies of one dimension, on the simplex.

    `norm_sub` and `base_cut` work on the frequencies as they are. `bayes` takes each entry's posterior mean on
    [0, 1] (spike at zero) and projects in the metric of the posterior variances, which is conditioning on the
    sum being one. Any other method of `recalibrate` is applied to the entries on [0, 1], then projected. `auto` is
    `bayes` from eight categories on, else `norm_sub`.

    >>> recalibrate_frequencies([0.62, 0.43, -0.05], [0.05, 0.05, 0.05]).frequencies.round(3)
    array([0.595, 0.405, 0.   ])
    """
    check_method(method, options, FREQUENCY_OPTIONS)
    given = check_inputs(frequencies, standard_errors, None, 1.0, (0.0, 1.0))
    f, s = given.means, given.standard_errors
    used = method if method != "auto" else "bayes" if f.size >= _BAYES_FROM else "norm_sub"
    harm = ""
    if used == "base_cut":
        answer = base_cut(f, s, **options)
    elif used == "norm_sub":
        answer = norm_sub(f)
    elif used == "bayes" and given.noisy.any():
        answer = _bayes(f, s, given.noisy)
    else:
        entries = recalibrate(f, s, used, domain=(0.0, 1.0), **options)
        answer = norm_sub(entries.enhanced_mean)
        harm = _harm(entries, answer, given.noisy)
    moved = float(np.mean((answer - f) ** 2))
    line = (
        f"{used}{harm}: {int((f < 0).sum())} of {f.size} frequencies were negative and their sum was {f.sum():.4g}; "
        f"mean square of the change {moved:.3g}, of the noise {float(np.mean(s**2)):.3g}."
    )
    return Distribution(answer, used, line)


def _harm(entries: Recalibration, answer: Floats, noisy: NDArray[np.bool_]) -> str:
    """Words for harm, where the posterior expects more error than the noise's and than the bare projection's."""
    # Clipping and projecting are both projections on sets that hold the truth.
    if entries.used == "clip" or entries._posterior is None:
        return ""
    summary = entries._posterior.summary()
    after = float(np.mean(summary.expected_error(answer[noisy])))
    bare = float(np.mean(summary.expected_error(norm_sub(entries.estimated_mean)[noisy])))
    before = float(np.mean(entries.standard_error[noisy] ** 2))
    if after <= TOLERANCE * max(before, bare):
        return ""
    return f" HARMS here, expected error {before:.3g} before and {after:.3g} after ({after / before:.1f} times worse)"


def _bayes(f: Floats, s: Floats, noisy: NDArray[np.bool_]) -> Floats:
    summary = fit_posterior(f[noisy], s[noisy], 0.0, 1.0, 0.0, odds=_ODDS).summary()
    mean, variance = f.copy(), np.zeros(f.size)
    mean[noisy] = summary.mean
    variance[noisy] = np.maximum(summary.expected_error(summary.mean), 1e-12)
    return norm_sub(mean, variance)
