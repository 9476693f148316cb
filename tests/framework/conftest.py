from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@pytest.fixture
def collect() -> Callable[..., Floats]:
    """Simulated deviations θ̂ − θ̄ of one dimension, one per collection.

    A fixed population of n values; in each collection every user reports the dimension with probability
    `share` (r is then binomial and the users a simple random sample given r), and the reports are averaged.
    """

    def run(
        mechanism: Any, values: Floats, share: float, collections: int, seed: int, calibrated: bool = False
    ) -> Floats:
        rng = np.random.default_rng(seed)
        deviations = np.empty(collections)
        step = max(1, 2_000_000 // values.size)
        for start in range(0, collections, step):
            k = min(step, collections - start)
            row, user = np.nonzero(rng.random((k, values.size)) < share)
            reports = mechanism.sample(values[user], rng)
            sums = np.bincount(row, weights=reports, minlength=k)
            received = np.bincount(row, minlength=k)
            assert received.min() > 0
            mean = sums / received
            if calibrated:
                mean = mechanism.calibration(mean)
            deviations[start : start + k] = mean - values.mean()
        return deviations

    return run
