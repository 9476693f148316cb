"""Hierarchical Bayes for the normal means θ̂_j ~ N(θ̄_j, σ_j²) on a bounded domain.

Five accounts of where the means come from, weighted by how well each foretells the data:

- *null*: every mean is the null value (0);
- *centred*: a spike at the null and a normal slab around it, width and spike weight unknown;
- *free*: the same with an unknown centre;
- *smooth* and *sharp*: any distribution at all on the domain, by maximum likelihood.

The first three are integrated over their unknowns. A sharp shape is charged (k+1)·log d, with
k = exp(H(θ̂) − H(noise)) the number of values that the fitted marginal distinguishes: Schwarz's price of k places, k
weights and the two unknowns of the account it departs from. A smooth one has fewer: see `_shapes`.

Two sets of prior odds are used with the same evidence. The *estimate* starts from strong odds on the null, so
that where the noise drowns everything it stays at the null instead of following a noisy common offset: that is
what keeps it from harm. The *spread* (standard deviations, intervals) gives the null no odds of its own, because an
interval's task is to cover also when the offset is real.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

from hdr4me.recalibration.cells import Cells, Floats, Sample, compress, distinct_pairs
from hdr4me.recalibration.hierarchy import Family, Prior, spike_and_slab
from hdr4me.recalibration.nonparametric import free_shape, smoother
from hdr4me.recalibration.posterior import Posterior

__all__ = ["ESTIMATE_ODDS", "SPREAD_ODDS", "fit_posterior"]

ESTIMATE_ODDS = {"null": 0.944, "centred": 0.05, "free": 0.003, "smooth": 0.0015, "sharp": 0.0015}
SPREAD_ODDS = {"null": 0.0, "centred": 0.4, "free": 0.4, "smooth": 0.2, "sharp": 0.002}

_PSEUDO_DIMENSIONS = 1.0
_EM_STEPS = 120
_EMS_STEPS = 40
_LEAST = 1e-3


def fit_posterior(
    x: Floats,
    s: Floats,
    low: float,
    high: float,
    null: float,
    *,
    odds: Mapping[str, float] = ESTIMATE_ODDS,
) -> Posterior:
    """Fit every account to observations x_j with standard errors s_j > 0.

    The answer does not depend on the order of the observations, to the last bit: they are sorted first, and
    equal pairs (x, s) are evaluated once.

    >>> post = fit_posterior(np.array([0.01, -0.02, 0.9, 0.0]), np.full(4, 0.02), -1.0, 1.0, 0.0)
    >>> post.summary().mean.round(2) + 0.0
    array([0. , 0. , 0.9, 0. ])
    """
    first, inverse = distinct_pairs(x, s)
    distinct = Sample(x[first], s[first], np.bincount(inverse).astype(np.float64))
    cells = Cells.for_noise(low, high, null, s)
    sample = compress(distinct)
    likelihood = cells.likelihood(sample.x, sample.s)
    families = {
        "null": _null(cells, sample, likelihood),
        "centred": spike_and_slab(cells, sample, likelihood, centred=True),
        "free": spike_and_slab(cells, sample, likelihood, centred=False),
    }
    families |= _shapes(cells, sample, likelihood, families["free"].prior)
    estimate, evidence = _posterior_weights(families, odds)
    spread, _ = _posterior_weights(families, SPREAD_ODDS)
    return Posterior(
        cells=cells,
        distinct=distinct,
        inverse=inverse,
        estimate_prior=_average(families, estimate),
        spread_prior=_average(families, spread),
        probabilities={name: float(np.exp(w)) for name, w in estimate.items()},
        log_evidence=evidence,
    )


def _null(cells: Cells, sample: Sample, likelihood: Floats) -> Family:
    shape = np.zeros((1, cells.n_cells + 1))
    shape[0, 0] = 1.0
    with np.errstate(divide="ignore"):
        evidence = float(sample.weight @ np.log(likelihood[:, 0]))
    return Family(evidence, Prior(shape, np.zeros(1)))


def _shapes(cells: Cells, sample: Sample, likelihood: Floats, start: Prior) -> dict[str, Family]:
    """One sharp shape and two smooth ones, each charged ½·log d for every unknown it spends.

    A sharp shape places k values and weighs them: 2k + 2. A smooth one with bandwidth h only weighs the
    k·σ/√(σ² + h²) stretches that it can tell apart: that many + 3. Bandwidths: Silverman's rule and a third of it.
    """
    base = np.exp(start.log_weights) @ start.shapes
    # EM cannot give mass to a cell that starts with none, and an outlier may need it.
    base = (1 - _LEAST) * base + _LEAST / base.size
    d = float(sample.weight.sum())
    noise = float(np.exp(sample.weight @ np.log(sample.s) / d))
    middles, cell_mass = cells.middles, base[1:] / base[1:].sum()
    wide = 0.9 * float(np.sqrt(cell_mass @ (middles - cell_mass @ middles) ** 2)) * d**-0.2

    def member(bandwidth: float | None) -> tuple[Floats, float]:
        sharp = bandwidth is None
        shape = free_shape(
            sample,
            likelihood,
            base,
            strength=_PSEUDO_DIMENSIONS,
            iterations=_EM_STEPS if sharp else _EMS_STEPS,
            smoothing=None if bandwidth is None else smoother(cells, max(bandwidth, cells.width)),
        )
        fit = float(sample.weight @ np.log(likelihood @ shape))
        # The likelihood leaves 1/(s√2π) out, so the noise's entropy per observation is 1/2 here.
        values = max(float(np.exp(-fit / d - 0.5)), 1.0)
        unknowns = 2 * values + 2 if bandwidth is None else values * noise / np.hypot(noise, bandwidth) + 3
        return shape, fit - 0.5 * unknowns * float(np.log(d))

    sharp, sharp_evidence = member(None)
    smooth = [member(wide / 3), member(wide)]
    logs = np.array([evidence for _, evidence in smooth])
    total = float(logsumexp(logs))
    return {
        "smooth": Family(total - float(np.log(2)), Prior(np.array([g for g, _ in smooth]), logs - total)),
        "sharp": Family(sharp_evidence, Prior(sharp[None, :], np.zeros(1))),
    }


def _posterior_weights(
    families: dict[str, Family], odds: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """The logarithm of each account's weight, and of the evidence of all together."""
    with np.errstate(divide="ignore"):
        raw = {name: family.log_evidence + float(np.log(odds[name])) for name, family in families.items()}
    total = float(logsumexp(list(raw.values())))
    return {name: w - total for name, w in raw.items()}, total


def _average(families: dict[str, Family], weights: dict[str, float]) -> Prior:
    """All members that matter, as one weighted list; the lightest, together below 0.5 %, are dropped."""
    shapes = np.concatenate([family.prior.shapes for family in families.values()])
    logs = np.concatenate([family.prior.log_weights + weights[name] for name, family in families.items()])
    order = np.argsort(-logs, kind="stable")
    mass = np.cumsum(np.exp(logs[order]))
    keep = np.sort(order[: int(np.searchsorted(mass, 0.995)) + 1])
    return Prior(shapes[keep], logs[keep] - float(logsumexp(logs[keep])))
