"""Evidence that a table's counts come from no honest population at all.

Whatever the users' values are, the cells' shares are a mixture of the table's rows. Counts are split in two halves at
random. On one half a mixture is fitted, and alternatives are written down: some of the reports all name one cell, or
the shares are as counted. For each alternative the nearest mixture is found, and the other half is asked by which
factor it is better explained by the alternative. Divided by the largest mean that the factor has for any honest user,
it has mean at most 1 if all are honest, whatever they hold, so that it exceeds 1/α with probability at most α.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
_SHARES = (0.003, 0.01, 0.03, 0.1)
_CELLS = 3
_FIRST_STEPS, _STEPS = 100, 400
_CLOSE = 1e-6
_CURIOUS = (
    4.0  # below this largest standardized residual of the fit the other half is not used: the evidence is 1
)


def evidence(rows: Floats, counts: Counts, rng: np.random.Generator) -> float:
    """The log of the evidence against honest reports; above log(1/α) with probability at most α if all are honest.

    Examples
    --------
    >>> rows = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
    >>> bool(evidence(rows, np.array([5000, 500, 5000]), np.random.default_rng(1)) > 50)
    True
    >>> evidence(rows, np.array([3300, 3400, 3300]), np.random.default_rng(1)) < 3
    True
    """
    total = int(counts.sum())
    if rows.shape[1] < 3 or total < 100:
        return 0.0
    first = rng.multivariate_hypergeometric(counts, total // 2, method="marginals")
    halves = (first, counts - first)
    logs = [_asked(rows, halves[i], halves[1 - i]) for i in (0, 1)]
    return float(np.logaddexp(logs[0], logs[1]) - np.log(2.0))


def _asked(rows: Floats, learn: Counts, ask: Counts) -> float:
    """Alternatives learnt on one half, averaged over the other: log of the mean factor."""
    seen = learn.sum()
    shares = learn / seen
    fit = _nearest(rows, shares[None, :], _FIRST_STEPS)[0]
    residual = (shares - fit) / np.sqrt(np.maximum(fit, 1e-300) / seen)
    if residual.max(initial=0.0) < _CURIOUS:
        return 0.0
    suspects = np.argsort(residual)[::-1][:_CELLS]
    made = [(1 - b) * fit + b * np.eye(len(shares))[y] for y in suspects for b in _SHARES]
    made += [(1 - w) * fit + w * shares for w in (0.25, 0.5, 1.0)]
    alternatives = np.maximum(np.array(made), 1e-12)
    alternatives /= alternatives.sum(axis=1, keepdims=True)
    nearest = np.maximum(_nearest(rows, alternatives), 1e-300)
    factor = alternatives / nearest
    largest = (factor @ rows.T).max(axis=1)
    logs = np.log(factor / largest[:, None]) @ ask
    return float(logsumexp(logs) - np.log(len(logs)))


def _nearest(rows: Floats, shares: Floats, steps: int = _STEPS) -> Floats:
    """For each line of shares the mixture of rows that explains it best.

    An EM step multiplies each weight by its gradient, which never explains worse. A power of the gradient goes further;
    it is taken while it helps. The largest gradient less 1 bounds what is still to be gained.
    """

    def explains(mixture: Floats) -> Floats:
        return np.asarray((shares * np.log(np.maximum(mixture, 1e-300))).sum(axis=1))

    weights = np.full((len(shares), len(rows)), 1.0 / len(rows))
    power = np.ones((len(shares), 1))
    mixture = weights @ rows
    for _ in range(steps):
        gradient = (shares / np.maximum(mixture, 1e-300)) @ rows.T
        if gradient.max() < 1 + _CLOSE:
            break
        far = weights * np.minimum(gradient, 1e6) ** power
        far /= far.sum(axis=1, keepdims=True)
        further = explains(far @ rows) > explains(mixture)
        weights = np.where(further[:, None], far, weights * gradient)
        weights /= weights.sum(axis=1, keepdims=True)
        power = np.where(further[:, None], power * 1.5, 1.0)
        mixture = weights @ rows
    return mixture
