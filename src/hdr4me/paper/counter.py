"""Counter-examples to Theorems 3 and 4, for every reading of λ*, without simulation.

Every dimension has the same θ̄ and σ. The gain of a dimension, (θ̂ − θ̄)² − (θ* − θ̄)², then has a mean μ and a variance
s², both found by quadrature. Where μ < 0, the chance that the sum of d independent gains is positive is at most
s²/(s² + dμ²) (Cantelli), while the theorem promises P(some |θ̂_j − θ̄_j| > τ).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hdr4me.framework.enhancement import L1_THRESHOLD, L2_THRESHOLD, probability_some_exceed
from hdr4me.paper.readings import Reading
from hdr4me.paper.theory.lemmas import width_of
from hdr4me.recalibration.hdr4me import l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs

__all__ = ["CounterExample", "counter_example"]


@dataclass(frozen=True)
class CounterExample:
    """A population and what the theorem says of it: `promised` at least, but the truth is `at_most`."""

    true_mean: float
    sd: float
    n_dims: int
    promised: float
    at_most: float


_POPULATIONS = {"l1": (0.9, 0.45, 10_000, L1_THRESHOLD), "l2": (1.0, 0.4, 10_000_000, L2_THRESHOLD)}


@lru_cache(maxsize=64)
def counter_example(method: str, reading: Reading) -> CounterExample:
    """The theorem's promise for `method` ("l1" or "l2"), and a bound of the probability of an improvement.

    >>> from hdr4me.paper.readings import DEFAULT
    >>> found = counter_example("l1", DEFAULT)
    >>> found.promised > 0.99, found.at_most < 0.01
    (True, True)
    """
    theta, sd, n_dims, threshold = _POPULATIONS[method]
    x = np.linspace(theta - 10 * sd, theta + 10 * sd, 200_001)
    density = np.exp(-0.5 * ((x - theta) / sd) ** 2)
    density /= density.sum()
    bound = np.full(x.size, width_of(reading.width, n_dims) * sd)
    if method == "l1":
        enhanced = soft_threshold(x, bound)
    else:
        inputs = check_inputs(x, np.full(x.size, sd), None, 1.0, (-1.0, 1.0))
        enhanced = shrink(x, l2_weights(inputs, bound, reading.reference))
    gain = (x - theta) ** 2 - (enhanced - theta) ** 2
    mean = float(gain @ density)
    variance = float((gain - mean) ** 2 @ density)
    at_most = variance / (variance + n_dims * mean**2) if mean < 0 else 1.0
    return CounterExample(
        theta, sd, n_dims, probability_some_exceed(0.0, sd, threshold, counts=n_dims), at_most
    )
