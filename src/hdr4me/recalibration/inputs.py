"""The arguments of `recalibrate`, validated once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.errors import InvalidInput

Floats = NDArray[np.float64]


class Inputs(NamedTuple):
    """θ̂_j ~ N(slope_j·θ̄_j + bias_j, σ_j²), θ̄_j in the domain."""

    means: Floats
    standard_errors: Floats
    bias: Floats
    slope: Floats
    low: float
    high: float
    steady: Floats
    """Standard errors that are not correlated with the means."""

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """Dimensions with noise: a standard error above a billionth of the domain."""
        return self.calibrated_errors > 1e-9 * (self.high - self.low)

    def only(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Inputs:
        """The inputs of some dimensions."""
        return Inputs._make(a[which] if isinstance(a, np.ndarray) else a for a in self)

    @property
    def calibrated(self) -> Floats:
        """The unbiased estimates (θ̂ − bias)/slope."""
        return (self.means - self.bias) / self.slope

    @property
    def calibrated_errors(self) -> Floats:
        """The standard errors σ/|slope| of the unbiased estimates."""
        return self.standard_errors / np.abs(self.slope)

    @property
    def calibrated_steady(self) -> Floats:
        """The steady standard errors of the unbiased estimates."""
        return self.steady / np.abs(self.slope)


def _vector(name: str, value: ArrayLike) -> Floats:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is not an array of numbers") from error
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"{name} has shape {array.shape}: it must be a non-empty list of numbers")
    check_elements(~np.isfinite(array), name, array, "every element must be a finite number")
    return array


def alongside(name: str, value: ArrayLike, n: int) -> Floats:
    """A vector of n finite numbers; a single number is repeated n times."""
    checked = _vector(name, np.full(n, float(value)) if np.ndim(value) == 0 else value)  # type: ignore[arg-type]
    check_length(name, checked.size, n)
    return checked


def check_length(name: str, length: int, n: int) -> None:
    """Raise an error if an argument does not have one element for each mean."""
    if length != n:
        raise InvalidInput(f"{name} has {length} elements but means has {n}: they must match")


def check_inputs(
    means: ArrayLike,
    standard_errors: ArrayLike,
    bias: ArrayLike | None,
    slope: ArrayLike,
    domain: tuple[float, float],
    steady_errors: ArrayLike | None = None,
) -> Inputs:
    """Finite arrays of one length, non-negative standard errors, nonzero slopes, and a domain with low < high.

    A standard error that was estimated from the same answers as its mean is correlated with it; a steady one is not.
    """
    x = _vector("means", means)
    s = alongside("standard_errors", standard_errors, x.size)
    check_elements(s < 0, "standard_errors", s, "it must be ≥ 0")
    δ = np.zeros(x.size) if bias is None else alongside("bias", bias, x.size)
    a = alongside("slope", slope, x.size)
    check_elements(a == 0, "slope", a, "it must not be 0, or reports do not depend on the mean")
    try:
        low, high = (float(end) for end in domain)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"domain = {domain!r} is not allowed: it must be (low, high)") from error
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidInput(f"domain = {domain!r} is not allowed: low < high is needed, both finite")
    steady = s if steady_errors is None else alongside("steady_errors", steady_errors, x.size)
    check_elements(
        (steady <= 0) & (s > 0), "steady_errors", steady, "it must be > 0 where the standard error is"
    )
    return Inputs(x, s, δ, a, low, high, steady)


def check_elements(wrong: NDArray[np.bool_], name: str, values: Floats, rule: str) -> None:
    """Raise an error that names the first invalid element of an argument."""
    if np.any(wrong):
        j = int(np.flatnonzero(wrong)[0])
        raise InvalidInput.of(f"{name}[{j}]", float(values[j]), rule)


def check_method(method: str, options: Mapping[str, Any], known: Mapping[str, tuple[str, ...]]) -> None:
    """Raise an error for an unknown method, or an option that the method does not accept."""
    if method not in known:
        raise InvalidInput.of("method", method, f"use one of {', '.join(known)}")
    for name in options:
        if name not in known[method]:
            allowed = ", ".join(known[method]) or "none"
            raise InvalidInput(
                f"option {name!r} is not allowed for method {method!r}, which accepts: {allowed}"
            )


def check_probability(name: str, value: float) -> float:
    """A number strictly between 0 and 1."""
    if not (isinstance(value, (int, float)) and 0 < value < 1):
        raise InvalidInput(f"{name} = {value!r} is not allowed: it must lie strictly between 0 and 1")
    return float(value)
