"""The readings of λ*, and every re-calibration that the figures show, applied to one repeat's naive means.

Lemmas 4 and 5 leave three choices open. The supremum of |θ̂_j − θ̄_j| is infinite for a normal law: its width here is
z = 1, 2, 3, or the z that all d dimensions keep at once with 95 %. The spread is z·σ_j (`noise`), or with the bias
|δ_j| added (`deviation`). L2's reference for the unknown θ̄_j is `bias` (the mean of the deviation's normal law, as
the paper says), `domain` (1, the largest mean there can be) or `plug-in` (|θ̂_j|, clipped).
"""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, order=True)
class Reading:
    """One way to read λ* for L1 and L2 together."""

    width: str
    spread: str
    reference: str

    def note(self, *found: object) -> None:
        """Called with each number that is looked up under this reading; `judge` has readings that remember it."""

    @property
    def name(self) -> str:
        """The name on the command line, such as `z2-noise-bias`."""
        return f"z{self.width}-{self.spread}-{self.reference}"

    @property
    def title(self) -> str:
        """The name in tables and figures."""
        z = "joint 95 %" if self.width == "joint" else self.width
        return f"z = {z}, {self.spread}, L2 reference {self.reference}"


READINGS = tuple(Reading(*choice) for choice in product(WIDTHS, SPREADS, REFERENCES))
# The reading under which most claims held in the full run of seed 1; the report counts them for every reading.
DEFAULT = Reading("1", "noise", "bias")


def reading_named(name: str) -> Reading:
    """The reading of that name."""
    for reading in READINGS:
        if reading.name == name:
            return reading
    parts = "-".join("{" + ",".join(choices) + "}" for choices in (WIDTHS, SPREADS, REFERENCES))
    raise InvalidInput.of("reading", name, f"'z{parts}', such as '{DEFAULT.name}'")


@dataclass(frozen=True)
class Variant:
    """A method under a reading of λ* (empty where it has none)."""

    method: str
    width: str = ""
    spread: str = ""
    reference: str = ""


# The current aggregation: the mean of the reports, as it is.
NAIVE = Variant("naive")


def enhanced(
    means: Floats, sd: Floats, bias: Floats, true_means: Floats, slope: float
) -> Iterator[tuple[Variant, Floats, float | None]]:
    """Each variant with its means and, for L1 and L2, the median of its weights λ*; `bias` is the deviation's mean δ_j.

    `auto` uses what a collector knows: the naive mean is slope·θ̄_j plus noise.
    """
    yield NAIVE, means, None
    for spread in SPREADS if np.any(bias != 0) else SPREADS[:1]:
        inputs = check_inputs(means, sd, bias if spread == "deviation" else None, 1.0, DOMAIN)
        for width in WIDTHS:
            joint = width == "joint"  # 95 % in all dimensions at once
            bound = deviation_bound(inputs, z=None if joint else float(width), simultaneous=joint)
            yield Variant("l1", width, spread), soft_threshold(means, bound), float(np.median(bound))
            for reference in REFERENCES:
                # Given as an array, because with the spread of the noise alone `inputs` does not hold the bias.
                weights = l2_weights(inputs, bound, np.abs(bias) if reference == "bias" else reference)
                variant = Variant("l2", width, spread, reference)
                yield variant, shrink(means, weights), float(np.median(weights))
    yield Variant("zeros"), np.zeros_like(means), None
    yield Variant("clip"), np.clip(means, *DOMAIN), None
    yield Variant("oracle"), _oracle(means, sd, true_means, slope), None
    ours = recalibrate(means, sd, method="auto", slope=slope, domain=DOMAIN)
    yield Variant("auto"), ours.enhanced_mean, None
    if slope != 1.0:
        yield Variant("calibrated"), means / slope, None


def _oracle(estimates: Floats, sd: Floats, true_means: Floats, slope: float) -> Floats:
    """E[θ | θ̂_j] under the prior that puts 1/d on each true mean: a bound on the gain of any re-calibration."""
    centers, counts = np.unique(true_means, return_counts=True)
    score = -0.5 * ((estimates[:, None] - slope * centers[None, :]) / sd[:, None]) ** 2
    score -= score.max(axis=1, keepdims=True)
    mass = np.exp(score) * counts
    return np.asarray(mass @ centers / mass.sum(axis=1))
