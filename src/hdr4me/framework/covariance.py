"""How the errors of different coordinates depend on each other, and the spectrum that the norm's law needs.

- **Shared draw.** A user who reports one dimension reports another less often (m of d are drawn without replacement).
  So with m < d the errors of dimensions j and k have the covariance −C_jk·(d−m)/(nm(d−1)), C the values' covariance.
- **Frequencies of one dimension** come from the same reports. Under randomised response a report of one category is not
  one of another: with P_c the law of the report of a user of category c and f the frequencies, the reports' covariance
  is [diag(Σ f_c P_c) − Σ f_c P_c P_cᵀ]/(p−q)². Under unary encoding the entries are perturbed independently. The draw
  of users adds κ(diag f − f fᵀ) in both.

The squared norm of a normal vector with covariance Σ is Σ_i (shift_i + √λ_i·Z_i)² over the eigenvalues λ of Σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.framework.laws import EntryLaw
from hdr4me.framework.moments import mean_inverse_count, sampling_factor

Floats = NDArray[np.float64]

MAX_COORDINATES = (
    1024  # larger covariance matrices are not decomposed: their coordinates count as independent
)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Independent normal parts N(shift_i, spread_i²), `counts_i` of each, with the same squared norm."""

    shift: Floats
    spread: Floats
    counts: Floats


def shared_draw(n_users: float, n_dims: int, n_sampled: int, *, even: bool = True) -> float:
    """−(d−m)/(nm(d−1)), what a covariance of the values is multiplied by; 0 when all dimensions are reported.

    In general it is (π_jk/(π_j·π_k) − 1)/n with π the probabilities that one or two dimensions are answered. Drawn
    unevenly, π_jk is 0 if one dimension is drawn; for more it is not known, and the errors count as independent.
    """
    if n_dims == n_sampled or not (even or n_sampled == 1):
        return 0.0
    return -(n_dims - n_sampled) / (n_users * n_sampled * (n_dims - 1))


def frequency_covariance(
    mechanism: Channel, frequencies: Floats, n_users: float, inverse_count: float
) -> Floats:
    """The covariance matrix of the frequency estimates of one dimension."""
    f = np.asarray(frequencies, dtype=np.float64)
    κ = float(sampling_factor(n_users, inverse_count)) * n_users / max(n_users - 1, 1)
    spread = κ * (np.diag(f) - np.outer(f, f))
    if mechanism.per_report > 1:  # entries are randomized independently, or nearly so
        absent, present = EntryLaw.of(mechanism).variances
        return np.asarray(inverse_count * (np.diag(absent * (1 - f) + present * f) + spread))
    (_, q), (_, p) = mechanism.response.marginal().rows
    mean = q + (p - q) * f
    both = q * q + q * (p - q) * (f[:, None] + f[None, :]) + (p - q) ** 2 * np.diag(f)
    return np.asarray(inverse_count * ((np.diag(mean) - both) / (p - q) ** 2 + spread))


def frequency_spectrum(
    mechanism: Any, frequencies: Any, n_users: int, share: float, copies: int
) -> Spectrum | None:
    """The spectrum of `copies` dimensions with these frequencies; None where they are not known or too many."""
    if frequencies is None or np.ndim(frequencies) != 1 or not 1 < len(frequencies) <= MAX_COORDINATES:
        return None
    f = np.asarray(frequencies, dtype=np.float64)
    covariance = frequency_covariance(mechanism, f, n_users, mean_inverse_count(n_users, share))
    return _decomposed(np.zeros(f.size), covariance, copies)


def values_correlation(given: Any, values: Any, probabilities: Any, n_dims: int) -> Floats | float:
    """The values' correlation between dimensions: given, found from one row per dimension, or none."""
    if given is not None:
        r = np.asarray(given, dtype=np.float64)
        if r.shape not in ((), (n_dims, n_dims)) or not np.all(np.abs(r) <= 1):
            raise InvalidInput.of(
                "correlation", given, f"a number from -1 to 1, or a matrix of {n_dims} rows and columns"
            )
        return float(r) if r.ndim == 0 else r
    rows = _matrix(values)
    shares = None if probabilities is None else _matrix(probabilities)
    if rows is None or len(rows) != n_dims or not 1 < n_dims <= MAX_COORDINATES or rows.shape[1] < 2:
        return 0.0
    if shares is not None and len(shares) > 1:
        return 0.0  # each dimension has its own shares: which values belong to one user is not known
    weights = np.full(rows.shape[1], 1 / rows.shape[1]) if shares is None else shares[0]
    centred = rows - (rows @ weights)[:, None]
    covariance = (centred * weights) @ centred.T
    sd = np.sqrt(np.diag(covariance))
    safe = np.where(sd > 0, sd, 1.0)
    return np.asarray(covariance / np.outer(safe, safe))


def _matrix(given: Any) -> Floats | None:
    """Numbers in two axes (one axis: one row); None if they are not."""
    if given is None or isinstance(given, str):
        return None
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return np.atleast_2d(found) if 1 <= found.ndim <= 2 else None


def means_spectrum(
    biases: Floats,
    variances: Floats,
    spreads: Floats,
    counts: NDArray[np.int64],
    fraction: float,
    correlation: Floats | float,
) -> Spectrum | None:
    """The spectrum of correlated errors of means; None where they are independent, or too many.

    Given are δ, σ², S² and the number of coordinates of each class, what a covariance of the values is multiplied by
    (`shared_draw`), and the values' correlation, a number or a matrix.
    """
    n = int(counts.sum())
    if fraction == 0 or not 1 < n <= MAX_COORDINATES or not np.any(correlation):
        return None
    if np.ndim(correlation) and np.shape(correlation) != (n, n):
        return None
    if biases.size == 1 and np.ndim(correlation) == 0:
        shared = fraction * float(correlation) * float(spreads[0])
        first, rest = variances[0] + (n - 1) * shared, variances[0] - shared
        return Spectrum(
            np.array([float(biases[0]) * np.sqrt(n), 0.0]),
            np.sqrt(np.maximum([first, rest], 0.0)),
            np.array([1.0, n - 1.0]),
        )
    sd = np.sqrt(np.repeat(spreads, counts))
    covariance = fraction * np.outer(sd, sd) * correlation
    np.fill_diagonal(covariance, np.repeat(variances, counts))
    return _decomposed(np.repeat(biases, counts), covariance, 1)


def _decomposed(biases: Floats, covariance: Floats, copies: int) -> Spectrum:
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(values, 0.0))
    return Spectrum(np.asarray(vectors.T @ biases), spread, np.full(values.size, float(copies)))
