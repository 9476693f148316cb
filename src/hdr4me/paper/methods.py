"""Every re-calibration that the figures show, applied to one repeat's naive means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdr4me.paper.readings import REFERENCES, SPREADS, WIDTHS
from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.hdr4me import deviation_bound, l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import Inputs, check_inputs
from hdr4me.recalibration.shrinkage import clip, zeros

Floats = NDArray[np.float64]
_DOMAIN = (-1.0, 1.0)
_JOINT = 0.95


@dataclass(frozen=True)
class Variant:
    """A method under a reading of λ* (empty where it has none)."""

    method: str
    width: str = ""
    spread: str = ""
    reference: str = ""


NAIVE = Variant("naive")
"""The current aggregation: the mean of the reports, as it is."""


def enhanced(
    means: Floats, sd: Floats, bias: Floats, true_means: Floats, slope: float
) -> Iterator[tuple[Variant, Floats, float | None]]:
    """Each variant with its means and, for L1 and L2, the median of its weights λ*.

    `bias` is the deviation's own mean δ_j, which the paper's readings use. Ours uses what a collector knows: the
    naive mean is slope·θ̄_j plus noise.

    Examples
    --------
    >>> one = np.array([1.0, -3.0])
    >>> found = enhanced(one, np.full(2, 0.5), np.zeros(2), np.zeros(2), 1.0)
    >>> {v.width: new.tolist() for v, new, _ in found if v.method == "l1"}["2"]
    [0.0, -2.0]
    """
    yield NAIVE, means, None
    for spread in SPREADS if np.any(bias != 0) else SPREADS[:1]:
        inputs = check_inputs(means, sd, bias if spread == "deviation" else None, 1.0, _DOMAIN)
        for width in WIDTHS:
            bound = _bound(inputs, width)
            yield Variant("l1", width, spread), soft_threshold(means, bound), float(np.median(bound))
            for reference in REFERENCES:
                # Given as an array, because with the spread of the noise alone `inputs` does not hold the bias.
                weights = l2_weights(inputs, bound, np.abs(bias) if reference == "bias" else reference)
                variant = Variant("l2", width, spread, reference)
                yield variant, shrink(means, weights), float(np.median(weights))
    yield Variant("zeros"), zeros(means), None
    yield Variant("clip"), clip(means, *_DOMAIN), None
    yield Variant("oracle"), oracle_means(means, sd, true_means, slope), None
    ours = recalibrate(means, sd, method="auto", slope=slope, domain=_DOMAIN)
    yield Variant("auto"), ours.enhanced_mean, None
    if slope != 1.0:
        yield Variant("calibrated"), means / slope, None


def _bound(inputs: Inputs, width: str) -> Floats:
    if width == "joint":
        return deviation_bound(inputs, confidence=_JOINT, simultaneous=True)
    return deviation_bound(inputs, z=float(width))


def oracle_means(estimates: Floats, sd: Floats, true_means: Floats, slope: float = 1.0) -> Floats:
    """E[θ | θ̂_j] under the prior that puts 1/d on each true mean; θ̂_j ~ N(slope·θ_j, sd_j²).

    No rule that treats each dimension alone has a smaller expected squared error over that prior. It
    cannot be used (it knows the answer); it shows how much any re-calibration could gain.

    >>> oracle_means(np.array([5.0, -5.0]), np.array([0.1, 0.1]), np.array([-1.0, 1.0]))
    array([ 1., -1.])
    """
    centres, counts = np.unique(true_means, return_counts=True)
    score = -0.5 * ((estimates[:, None] - slope * centres[None, :]) / sd[:, None]) ** 2
    score -= score.max(axis=1, keepdims=True)
    mass = np.exp(score) * counts
    return np.asarray(mass @ centres / mass.sum(axis=1))
