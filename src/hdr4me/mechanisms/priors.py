"""Priors: an expected distribution of values on [-1, 1], as values and their shares."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput

Floats = NDArray[np.float64]

# With more distinct priors than this, all numbers share one table, so that survey documents stay small.
MOST_TABLES = 16
_QUANTILES, _PER_BIN = 4096, 64
_ALLOWED = (
    "'uniform', a distribution with ppf (SciPy's), a histogram (edges, weights), or an array of values, "
    "all scaled to [-1, 1]"
)


@dataclass(frozen=True, eq=False)
class Prior:
    """Values on [-1, 1] and their shares, which sum to 1; `uniform` for the uniform distribution."""

    values: Floats
    shares: Floats
    uniform: bool = False

    @property
    def mean(self) -> float:
        """E t."""
        return 0.0 if self.uniform else float(self.shares @ self.values)

    @property
    def mean_square(self) -> float:
        """E t²."""
        return 1.0 / 3.0 if self.uniform else float(self.shares @ self.values**2)

    @property
    def variance(self) -> float:
        """Var t."""
        return self.mean_square - self.mean**2

    def on_levels(self, n_levels: int) -> Floats:
        """The share of users at each of `n_levels` equally spaced levels after random rounding."""
        if self.uniform:
            even = np.full(n_levels, 1.0 / (n_levels - 1))
            even[[0, -1]] /= 2
            return even
        position = (self.values + 1) / 2 * (n_levels - 1)
        row = np.minimum(position.astype(np.int64), n_levels - 2)
        up = position - row
        low = np.bincount(row, weights=self.shares * (1 - up), minlength=n_levels)
        return np.asarray(low + np.bincount(row + 1, weights=self.shares * up, minlength=n_levels))

    @property
    def key(self) -> str:
        """A cache key, equal for equal priors."""
        if self.uniform:
            return "uniform"
        return hashlib.sha256(self.values.tobytes() + self.shares.tobytes()).hexdigest()[:32]


def as_prior(given: Any, low: float = -1.0, high: float = 1.0) -> Prior:
    """The prior given as "uniform", a SciPy distribution, a histogram or an array of values."""
    if isinstance(given, Prior):
        return given
    if isinstance(given, str):
        if given != "uniform":
            raise InvalidInput.of("prior", given, _ALLOWED)
        return Prior(*_in_bins(np.array([-1.0, 1.0]), np.ones(1), _QUANTILES), uniform=True)
    if hasattr(given, "ppf"):
        quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        return _weighted(np.asarray(given.ppf(quantiles), dtype=np.float64), np.ones(_QUANTILES), low, high)
    if isinstance(given, tuple) and len(given) == 2:
        edges, weights = map(_floats, given)
        flat = edges.ndim == weights.ndim == 1 and edges.size == weights.size + 1
        if flat and (np.diff(edges) > 0).all():
            return _weighted(*_in_bins(edges, weights, _PER_BIN), low, high)
        raise InvalidInput.of("prior", "tuple", "a histogram with increasing edges, one more than weights")
    values = _floats(given)
    if values.ndim != 1 or values.size == 0:
        raise InvalidInput.of("prior", f"array of shape {values.shape}", _ALLOWED)
    return _weighted(values, np.ones(values.size), low, high)


def _floats(given: Any) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except Exception:  # from NumPy or the library of a frame; its message, like `given`, may contain values
        raise InvalidInput.of("prior", type(given).__name__, _ALLOWED) from None


def mean_law(priors: Sequence[Prior]) -> Prior:
    """The mixture of these priors with equal weights, or the prior itself if all are the same."""
    keys = {id(prior): prior.key for prior in priors}
    count = Counter(keys[id(prior)] for prior in priors)
    different = {keys[id(prior)]: prior for prior in priors}
    if len(different) == 1:
        return priors[0]
    values = np.concatenate([prior.values for prior in different.values()])
    shares = [count[key] / len(priors) * prior.shares for key, prior in different.items()]
    return Prior(values, np.concatenate(shares))


def table_priors(priors: Sequence[Prior]) -> list[Prior]:
    """The prior that each number's table is designed for: its own, or the mixture of all if there are too many."""
    if len({id(prior) for prior in priors}) > MOST_TABLES and len({p.key for p in priors}) > MOST_TABLES:
        return [mean_law(priors)] * len(priors)
    return list(priors)


def _in_bins(edges: Floats, weights: Floats, per_bin: int) -> tuple[Floats, Floats]:
    """Midpoints of `per_bin` equal parts of each bin, and their shares."""
    inside = (np.arange(per_bin) + 0.5) / per_bin
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InvalidInput.of("prior", weights.tolist(), "finite weights >= 0 that are not all 0")
    values = edges[:-1, None] + np.diff(edges)[:, None] * inside
    return values.ravel(), np.repeat(weights / weights.sum() / per_bin, per_bin)


def _weighted(values: Floats, weights: Floats, low: float, high: float) -> Prior:
    if not np.isfinite(values).all():
        raise InvalidInput.of("prior", values[~np.isfinite(values)].tolist()[:3], "finite values")
    return Prior(np.clip(values, low, high), weights / weights.sum())
