"""Frequencies of one categorical dimension: non-negative, with sum one, and with a smaller error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.recalibration.auto import (
    Evaluation,
    Measured,
    Probes,
    Rule,
    choose,
    evaluate,
    fit_posterior,
    probes,
    stein_risk,
)
from hdr4me.recalibration.core import OPTIONS, harms, rule
from hdr4me.recalibration.inputs import Floats, Inputs, check_inputs, check_method
from hdr4me.recalibration.shrinkage import base_cut, norm_sub

_OWN = {"auto": (), "norm_sub": (), "base_cut": ("confidence",)}
FREQUENCY_OPTIONS: dict[str, tuple[str, ...]] = (
    _OWN
    | {name: options for name, options in OPTIONS.items() if name not in ("auto", "none")}
    | {"bayes": ()}
)
_BAYES_FROM = 8
# Frequencies sum to one, so "all are zero" is never true, and there is no common offset.
_ODDS = {"null": 0.0, "centered": 0.5, "free": 0.2, "smooth": 0.15, "sharp": 0.15}
_SEED, _EACH, _PAIRS = 20221, 12, 20

# How a rule is called in a sentence.
_WORDS = {
    "norm_sub": "projection onto the probability simplex (norm_sub)",
    "base_cut": "small frequencies set to zero (base_cut)",
}


def same(after: Floats, before: Floats) -> NDArray[np.bool_]:
    """Which frequencies a rule has not changed, apart from rounding errors."""
    return np.abs(after - before) <= 1e-12


class Distribution(NamedTuple):
    """Enhanced frequencies; the rule `used` has this `share` in the result, and the rest is norm-sub."""

    frequencies: Floats
    used: str
    advice: str
    share: float = 1.0
    expected_error_before: float = 0.0
    expected_error_after: float = 0.0
    expected_error_uncertainty: float = 0.0


def recalibrate_frequencies(
    frequencies: ArrayLike, standard_errors: ArrayLike, method: str = "auto", **options: Any
) -> Distribution:
    """Enhanced frequencies of one dimension, on the simplex.

    Examples
    --------
    >>> recalibrate_frequencies([0.62, 0.43, -0.05], [0.05, 0.05, 0.05]).frequencies.round(3)
    array([0.595, 0.405, 0.   ])
    """
    check_method(method, options, FREQUENCY_OPTIONS)
    inputs = check_inputs(frequencies, standard_errors, None, 1.0, (0.0, 1.0))
    order = np.lexsort((inputs.standard_errors, inputs.means))
    part = inputs.only(order)
    f, s, noisy = part.means, part.standard_errors, part.noisy
    used, share, optimism, after = method, 1.0, 0.0, Measured(0.0, 0.0)
    if noisy.any():
        s = np.where(noisy, _own_errors(f, s), s)
        part = part._replace(standard_errors=s, steady=s)
        directions = _directions(f, s)
        step = _one_report(f, s)

        def measure(rule_: Rule) -> Evaluation:
            return evaluate(rule_, f, directions) if step is None else _evaluate_by_reports(rule_, f, s, step)

        base = measure(norm_sub)
        if method == "auto":
            names = ("bayes", "sure") if f.size >= _BAYES_FROM else ()
            rules = {name: _rule(name, part, {}) for name in names}
            used, share, evaluation, optimism = choose(rules, base, f, s, measure)
            used, share = ("norm_sub", 1.0) if used == "base" else (used, share)
        else:
            evaluation = measure(_rule(method, part, options))
        after = _after(evaluation, f, s, optimism, safe=method in ("auto", "norm_sub"))
        answer = evaluation.value
    else:
        used = "norm_sub" if method == "auto" else method
        answer = _rule(used, part, options)(f)
    before = float(np.mean(s**2))
    out = np.empty_like(answer)
    out[order] = answer
    worse = harms(before, after.value)
    part_of = f", {100 * share:.0f} % of it" if share < 1 else ""
    line = (
        f"{_WORDS.get(used, used)}{part_of}{' increases the error' if worse else ''}: {int((f < 0).sum())} of "
        f"{f.size} frequencies were negative and their sum was {f.sum():.4g}; expected error {before:.3g} before, "
        f"{after.value:.3g} ± {after.standard_error:.1g} after{f' ({worse})' if worse else ''}."
    )
    if same(answer, f).all():
        line = f"unchanged: no frequency is negative, and their sum is {f.sum():.4g}."
    return Distribution(out, used, line, share, before, after.value, after.standard_error)


def _after(evaluation: Evaluation, f: Floats, s: Floats, optimism: float, *, safe: bool) -> Measured:
    """The measured error: for a safe rule at most that of the noise, and at least the variance of the result."""
    found = stein_risk(evaluation, f, s)
    least = float(np.mean(np.where(s > 0, evaluation.response / np.where(s > 0, s, 1.0), 0.0) ** 2))
    most = float(np.mean(s**2)) if safe else 2.0 / f.size
    value = float(np.clip(found.value + optimism, min(least, most), most))
    return Measured(value, found.standard_error)


def _one_report(f: Floats, s: Floats) -> float | None:
    """The contribution of one report to a frequency, if it exceeds half of the standard error; otherwise None."""
    distinct = np.unique(f)
    gaps = np.diff(distinct[np.concatenate([[True], np.diff(distinct) > 1e-9 * np.ptp(f)])])
    if gaps.size == 0:
        return None
    step = float(gaps.min())
    integer_multiples = np.abs(gaps / step - np.round(gaps / step)).max() < 1e-3
    return step if integer_multiples and step > 0.5 * float(np.median(s)) else None


def _evaluate_by_reports(rule: Rule, f: Floats, s: Floats, step: float) -> Evaluation:
    """Apply a rule and measure its response to one additional report in each category.

    For Poisson counts E[(X − λ)·g(X)] = λ·E[g(X + 1) − g(X)] replaces Stein's identity (Hudson 1978). A few categories
    at a time gain a report, and as many others lose one, so that the sum does not change.
    """
    value = rule(f)
    after = value.copy()
    parts = np.array_split(np.random.default_rng(_SEED).permutation(f.size), 2 * min(_PAIRS, f.size // 2))
    for more, less in zip(parts, parts[1:] + parts[:1], strict=True):
        moved = f.copy()
        moved[more] += step
        moved[less] -= step
        after[more] = rule(moved)[more]
    return Evaluation(value, s**2 * (after - value) / step)


def _own_errors(f: Floats, s: Floats) -> Floats:
    """Standard errors without the noise that they share with the frequencies.

    The variance is a quadratic polynomial of the frequency, evaluated at the estimate. The polynomial is fitted and
    evaluated at an estimate with less noise (base-cut).
    """
    inside = np.clip(f, 0.0, 1.0)
    if f.size < 4 or np.ptp(s) <= 1e-9 * s.max():
        return s
    powers = np.stack([np.ones_like(inside), inside, inside**2], axis=1)
    coefficients = np.linalg.lstsq(powers, s**2, rcond=None)[0]
    if float(np.mean((powers @ coefficients - s**2) ** 2)) > 0.04 * float(np.mean(s**2)) ** 2:
        return s
    steady = base_cut(f, s)
    fitted = np.stack([np.ones_like(steady), steady, steady**2], axis=1) @ coefficients
    return np.asarray(np.sqrt(np.clip(fitted, np.min(s**2), np.max(s**2))))


def _directions(f: Floats, s: Floats) -> Probes:
    """Probes with the covariance of the noise; if frequencies sum to one by construction, their noise sums to zero.

    Then the covariance is that of shares of one sample, diag(w) − wwᵀ/Σw, with diagonal s².
    """
    if abs(float(f.sum()) - 1) > 1e-6:
        return probes(s)
    w = s**2
    for _ in range(30):
        w = s**2 / (1 - np.minimum(w / w.sum(), 0.9))
    if f.size <= _EACH:
        return Probes(np.diag(np.sqrt(w)) - np.sqrt(w)[:, None] * w / w.sum(), float(f.size))
    # One large category may have half of the noise: its direction has both signs for every row of the others.
    large = int(np.argmax(w))
    rest = np.delete(np.arange(f.size), large)
    number = 2 if f.size <= 300 else 1
    signs = np.random.default_rng(_SEED).integers(0, 2, (number, rest.size)) * 2.0 - 1.0
    others = np.sqrt(w[rest]) * signs
    total = w[rest].sum()
    z = np.zeros((number, 2, f.size))
    z[:, :, rest] = (others - others.sum(axis=1, keepdims=True) * w[rest] / total)[:, None, :]
    alone = np.zeros(f.size)
    alone[large], alone[rest] = 1.0, -w[rest] / total
    alone *= np.sqrt(w[large] * total / w.sum())
    z += np.array([[1.0], [-1.0]]) * alone
    return Probes(z.reshape(-1, f.size), 1.0)


def _rule(method: str, part: Inputs, options: dict[str, Any]) -> Rule:
    """A method as a function of the frequencies; methods of `recalibrate` are projected on the simplex."""
    s, noisy = part.standard_errors, part.noisy
    if method == "base_cut":
        return lambda f: base_cut(f, s, **options)
    if method == "norm_sub" or not noisy.any():
        return norm_sub
    inner = rule("sure" if method == "bayes" else method, part.only(noisy), options)

    def projected(f: Floats) -> Floats:
        out = f.copy()
        out[noisy] = inner(f[noisy])
        return norm_sub(out)

    def bayes(f: Floats) -> Floats:
        """Posterior means; the atom is at the value that the soft threshold of SURE gives to rare categories."""
        null, out = float(np.clip(np.min(projected(f)), 0.0, 1.0)), f.copy()
        out[noisy] = fit_posterior(f[noisy], s[noisy], 0.0, 1.0, null, odds=_ODDS).mean
        return norm_sub(out)

    return bayes if method == "bayes" else projected
