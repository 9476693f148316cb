"""The choices of λ*, and every re-calibration method of the figures, applied to the naive means of one repeat.

Lemmas 4 and 5 do not determine λ*. Three choices are needed. The supremum of |θ̂_j − θ̄_j| is infinite for a normal
distribution, so a width replaces it: z = 1, 2 or 3 standard deviations, or the z that covers all d dimensions jointly
with 95 %. The spread is z·σ_j (`noise`) or |δ_j| + z·σ_j (`deviation`). The reference replaces the unknown θ̄_j in L2's
weight: `bias` (the mean of the normal distribution of the deviation, as in the paper), `domain` (1, the largest
possible mean) or `plug-in` (|θ̂_j|, clipped to the domain).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.hdr4me import deviation_bound, l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs

Floats = NDArray[np.float64]
WIDTHS = ("1", "2", "3", "joint")
SPREADS = ("noise", "deviation")
REFERENCES = ("bias", "domain", "plug-in")
DOMAIN = (-1.0, 1.0)
# The methods of the figures; the current aggregation is always among them.
METHODS = ("naive", "l1", "l2", "zeros", "clip", "oracle", "auto", "calibrated")


@dataclass(frozen=True, order=True)
class LambdaChoice:
    """One choice of λ*, for L1 and L2 together."""

    width: str
    spread: str
    reference: str

    def note(self, *found: object) -> None:
        """Receive each number that is looked up under this choice; a subclass in `judge` records the numbers."""

    @property
    def name(self) -> str:
        """The name on the command line, such as `z2-noise-bias`."""
        return f"z{self.width}-{self.spread}-{self.reference}"

    @property
    def title(self) -> str:
        """The name in tables and figures."""
        z = "joint 95 %" if self.width == "joint" else self.width
        return f"z = {z}, {self.spread}, L2 reference {self.reference}"


LAMBDA_CHOICES = tuple(LambdaChoice(*choice) for choice in product(WIDTHS, SPREADS, REFERENCES))
# Under this choice the largest number of claims held in the full run with seed 1. The report counts every choice.
DEFAULT = LambdaChoice("1", "noise", "bias")


def lambda_choice_named(name: str) -> LambdaChoice:
    """The choice of that name."""
    for choice in LAMBDA_CHOICES:
        if choice.name == name:
            return choice
    parts = "-".join("{" + ",".join(choices) + "}" for choices in (WIDTHS, SPREADS, REFERENCES))
    raise InvalidInput.of("lambda_choice", name, f"'z{parts}', such as '{DEFAULT.name}'")


@dataclass(frozen=True)
class Variant:
    """A method under a choice of λ*; the fields of the choice are empty for a method without λ*."""

    method: str
    width: str = ""
    spread: str = ""
    reference: str = ""


# The current aggregation: the mean of the reports.
NAIVE = Variant("naive")


def enhanced(
    means: Floats,
    sd: Floats,
    bias: Floats,
    true_means: Floats,
    slope: float,
    methods: Collection[str] = METHODS,
) -> Iterator[tuple[Variant, Floats, float | None]]:
    """Yield each variant, its means and, for L1 and L2, the median of its weights λ*; `bias` is δ_j.

    `auto` receives what a collector knows: the naive mean is slope·θ̄_j plus noise.
    """
    yield NAIVE, means, None
    paper = "l1" in methods or "l2" in methods
    for spread in (SPREADS if np.any(bias != 0) else SPREADS[:1]) if paper else ():
        inputs = check_inputs(means, sd, bias if spread == "deviation" else None, 1.0, DOMAIN)
        for width in WIDTHS:
            joint = width == "joint"  # 95 % in all dimensions at once
            bound = deviation_bound(inputs, z=None if joint else float(width), simultaneous=joint)
            yield Variant("l1", width, spread), soft_threshold(means, bound), float(np.median(bound))
            for reference in REFERENCES:
                # An array, because `inputs` has no bias where the spread is the noise alone.
                weights = l2_weights(inputs, bound, np.abs(bias) if reference == "bias" else reference)
                variant = Variant("l2", width, spread, reference)
                yield variant, shrink(means, weights), float(np.median(weights))
    others: dict[str, Callable[[], Floats]] = {
        "zeros": lambda: np.zeros_like(means),
        "clip": lambda: np.clip(means, *DOMAIN),
        "oracle": lambda: _oracle(means, sd, true_means, slope),
        "auto": lambda: recalibrate(means, sd, method="auto", slope=slope, domain=DOMAIN).enhanced_mean,
    }
    if slope != 1.0:
        others["calibrated"] = lambda: means / slope
    for name, estimate in others.items():
        if name in methods:
            yield Variant(name), estimate(), None


def _oracle(estimates: Floats, sd: Floats, true_means: Floats, slope: float) -> Floats:
    """E[θ | θ̂_j] under the prior with mass 1/d on each true mean: a lower bound on the error of separable rules."""
    centers, counts = np.unique(true_means, return_counts=True)
    score = -0.5 * ((estimates[:, None] - slope * centers[None, :]) / sd[:, None]) ** 2
    score -= score.max(axis=1, keepdims=True)
    mass = np.exp(score) * counts
    return np.asarray(mass @ centers / mass.sum(axis=1))
