"""The law of the squared Euclidean deviation, and of the norm and the MSE that follow from it.

X = Σ_j (θ̂_j − θ̄_j)² with independent N(δ_j, σ_j²) terms is a generalized chi-square. Its moments are exact. Its
distribution function is the (non-central) chi-square if all dimensions have the same law. For up to 60 dimensions with
small bias it is Talbot's inversion of the Laplace transform (error below 1e-9), otherwise the Lugannani–Rice
saddlepoint formula (error below 1e-4 if no dimension dominates, about 0.02 if one or two have nearly all variance).

Correlated errors with covariance Σ have the squared norm Σ_i (shift_i + √λ_i·Z_i)² over the eigenvalues λ of Σ. Means
are correlated because they share the sampling of users, frequencies of one dimension because they share reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, chndtr, ndtr

from hdr4me.framework.moments import Floats

_NONCENTRAL_LIMIT = 1e4  # the length of SciPy's series grows with the non-centrality
# Beyond these limits Talbot's fixed contour is not accurate.
_TALBOT_DIMENSIONS, _TALBOT_NONCENTRALITY, _TALBOT_NODES = 60, 50.0, 32


@dataclass(frozen=True, eq=False)
class SquaredNorm:
    """scale · Σ_j counts_j copies of (shift_j + spread_j Z)², Z standard normal; with `root`, its square root.

    scale 1 is ‖θ̂ − θ̄‖₂² (its root is the norm), scale 1/d the MSE.
    """

    shift: Floats
    spread: Floats
    counts: Floats
    scale: float = 1.0
    root: bool = False

    @property
    def mean(self) -> float:
        """E X = Σ (σ² + δ²), exact; E √X by quadrature, to about 1e-12."""
        return self._mean_root() if self.root else self._mean_square

    @property
    def sd(self) -> float:
        """√(Σ 2σ⁴ + 4σ²δ²); of the root, √(E X − (E √X)²)."""
        if self.root:
            return math.sqrt(max(self._mean_square - self._mean_root() ** 2, 0.0))
        v, b2 = self._parts
        return math.sqrt(float(np.sum(self.counts * (2 * v**2 + 4 * v * b2))))

    def cdf(self, x: float) -> float:
        """P(X ≤ x)."""
        y = float(x) ** 2 if self.root and x > 0 else float(x)
        if y <= 0 or self._mean_square == 0:
            return float(y >= self._mean_square) if y >= 0 and self._mean_square == 0 else 0.0
        v, b2 = self._parts
        if v.size == 1 and v[0] > 0:
            noncentrality = self.counts[0] * b2[0] / v[0]
            if noncentrality == 0:
                return float(chdtr(self.counts[0], y / v[0]))
            if noncentrality < _NONCENTRAL_LIMIT:
                return float(chndtr(y / v[0], self.counts[0], noncentrality))
        with np.errstate(divide="ignore", invalid="ignore"):
            noncentralities = self.counts * np.where(b2 > 0, b2 / v, 0.0)
        if self.counts.sum() <= _TALBOT_DIMENSIONS and noncentralities.sum() <= _TALBOT_NONCENTRALITY:
            return self._talbot(y)
        return self._saddlepoint(y)

    def quantile(self, probability: float) -> float:
        """The x with P(X ≤ x) = probability; for a mean square below 1e-280, the mean."""
        if self._mean_square < 1e-280:
            return math.sqrt(self._mean_square) if self.root else self._mean_square
        center, step = self._mean_square, max(self._mean_square, 1e-300)
        high = center + step
        square = replace(self, root=False)
        while square.cdf(high) < probability:
            high += step
            step *= 2
        low = high / 2
        while square.cdf(low) > probability and low > 1e-300:
            low /= 2
        x = float(brentq(lambda y: square.cdf(y) - probability, low, high, xtol=1e-14 * high, rtol=1e-12))
        return math.sqrt(x) if self.root else x

    @property
    def _parts(self) -> tuple[Floats, Floats]:
        """scale·σ² and scale·δ²."""
        return self.scale * self.spread**2, self.scale * self.shift**2

    @property
    def _mean_square(self) -> float:
        v, b2 = self._parts
        return float(np.sum(self.counts * (v + b2)))

    def _mean_root(self) -> float:
        """E √X = (1/2√π) ∫ s^{−3/2} (1 − E e^{−sX}) ds, by the trapezoid rule in log s: ±64 leaves out under 1e-13."""
        center = self._mean_square
        if center == 0:
            return 0.0
        step = 0.125
        u = np.arange(-64.0, 64.0 + step, step)
        s = np.exp(u) / center
        v, b2 = self._parts
        log_laplace = np.empty_like(s)
        for i, point in enumerate(s):  # one s at a time: d = 10,000 stays small in memory
            q = 1.0 + 2.0 * point * v
            log_laplace[i] = -float(np.sum(self.counts * (0.5 * np.log1p(2.0 * point * v) + point * b2 / q)))
        total = float(np.sum(np.exp(-u / 2) * -np.expm1(log_laplace)) * step)
        return math.sqrt(center) * total / (2 * math.sqrt(math.pi))

    def _cumulants(self, s: float) -> tuple[float, float, float]:
        """K(s) = log E e^{sX} and its first two derivatives."""
        v, b2 = self._parts
        q = 1.0 - 2.0 * s * v
        k0 = np.sum(self.counts * (-0.5 * np.log(q) + s * b2 / q))
        k1 = np.sum(self.counts * (v / q + b2 / q**2))
        k2 = np.sum(self.counts * (2 * v**2 / q**2 + 4 * v * b2 / q**3))
        return float(k0), float(k1), float(k2)

    def _talbot(self, x: float) -> float:
        """P(X ≤ x) = (1/2πi) ∫ e^{px} E[e^{−pX}]/p dp on Talbot's contour: every singularity is real and ≤ 0."""
        v, b2 = self._parts
        n = _TALBOT_NODES
        r, angle = 2 * n / (5 * x), np.arange(1, n) * np.pi / n
        cot = 1 / np.tan(angle)
        p = np.concatenate([[r], r * angle * (cot + 1j)])
        turn = np.concatenate([[0.5], 1 + 1j * (angle + (angle * cot - 1) * cot)])
        q = 1 + 2 * np.multiply.outer(p, v)
        log_transform = -(0.5 * np.log(q) + p[:, None] * b2 / q) @ self.counts
        total = float(np.sum((np.exp(x * p + log_transform) / p * turn).real)) * r / n
        return min(max(total, 0.0), 1.0)

    def _saddlepoint(self, x: float) -> float:
        """Lugannani–Rice: Φ(w) + φ(w)(1/w − 1/u) at the saddle K'(s) = x."""
        v, b2 = self._parts
        top = float(np.max(v))
        if top == 0:
            return float(x >= self._mean_square)
        floor = float(np.sum(self.counts * np.where(v == 0, b2, 0.0)))
        if x <= floor:
            return 0.0
        sd = replace(self, root=False).sd
        z = (x - self._mean_square) / sd
        skew = float(np.sum(self.counts * (8 * v**3 + 24 * v**2 * b2))) / sd**3
        if abs(z) < 1e-4:  # the formula is 0/0 at the mean; its limit and slope
            return 0.5 + skew / (6 * math.sqrt(2 * math.pi)) + z / math.sqrt(2 * math.pi)
        edge = 1.0 / (2.0 * top)
        if z > 0:
            gap = 0.5  # s = edge·(1 − gap): approach the pole until K' passes x
            while self._cumulants(edge * (1 - gap))[1] < x:
                gap /= 2
            low, high = 0.0, edge * (1 - gap)
        else:
            low = -edge
            while self._cumulants(low)[1] > x:
                low *= 2
            high = 0.0
        s = float(brentq(lambda t: self._cumulants(t)[1] - x, low, high, xtol=1e-300, rtol=1e-13))
        k0, _, k2 = self._cumulants(s)
        w = math.copysign(math.sqrt(max(2.0 * (s * x - k0), 0.0)), s)
        u = s * math.sqrt(k2)
        density = math.exp(-0.5 * w * w) / math.sqrt(2 * math.pi)
        return min(max(float(ndtr(w)) + density * (1 / w - 1 / u), 0.0), 1.0)


def decomposed(biases: Floats, covariance: Floats, copies: int) -> SquaredNorm:
    """The law of correlated errors with this covariance, in independent copies."""
    values, vectors = np.linalg.eigh(covariance)
    spread = np.sqrt(np.maximum(values, 0.0))
    return SquaredNorm(np.asarray(vectors.T @ biases), spread, np.full(values.size, float(copies)))
