"""What every mechanism's law must keep: moments that agree with its own draws, and an exact table that is proven."""

from __future__ import annotations

import numpy as np

from hdr4me.mechanisms.law import Mechanism

__all__ = ["check_mechanism"]

_SIGMAS = 6.0


def check_mechanism(mechanism: Mechanism, *, seed: int = 1, n_draws: int = 200_000) -> None:
    """Mean and variance are those of the draws, and the exact table is unbiased and private.

    Parameters
    ----------
    mechanism
        An instance of the law.
    seed
        Of the draws.
    n_draws
        At each of five values; a right law is accused with a probability of about 2e-8.

    Raises
    ------
    AssertionError
        With the sentence that does not hold.
    """
    rng = np.random.default_rng(seed)
    low, high = mechanism.domain
    for t in np.linspace(low, high, 5):
        drawn = np.asarray(mechanism.sample(np.full(n_draws, t), rng), np.float64)
        mean, variance = (
            float(np.asarray(f(np.array([t])))[0]) for f in (mechanism.mean, mechanism.variance)
        )
        error = np.sqrt(variance / n_draws) + 1e-12
        assert abs(drawn.mean() - mean) < _SIGMAS * error, f"at t = {t:g} the draws' mean is not the law's"
        squares = (drawn - mean) ** 2
        spread = squares.std() / np.sqrt(n_draws) + 1e-12
        assert abs(squares.mean() - variance) < _SIGMAS * spread, (
            f"at t = {t:g} the draws' variance is not the law's"
        )
    channel = mechanism.exact().channel()
    assert channel.epsilon <= mechanism.epsilon, "its exact table spends more than the mechanism"
