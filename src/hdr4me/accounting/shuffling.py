"""What a survey's ε becomes when its reports are shuffled: computed from the survey's own tables, not from ε alone.

If n users' reports are put into a random order and everything else about their origin is removed, what is left is
(ε', δ)-differentially private with an ε' far below the survey's. With the privacy blanket (`blanket.py`)

    δ(ε') ≤ E[(V₁ + … + V_n)₊] / n,    V = ρ_x(Y) − e^{ε'}·ρ_{x'}(Y), Y ~ c;  V = 0 with probability 1 − γ,

for the worst pair of records x, x' (Balle, Bell, Gascón, Nissim 2019, "The privacy blanket of the shuffle model").
Every step here errs upwards; floating-point errors, which can err downwards, are below 10⁻⁶ of δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hdr4me.accounting.blanket import product_blanket
from hdr4me.accounting.channels import blankets_of, redesigned
from hdr4me.accounting.excess import COARSE, FINE, log_excess, second_moment, spread
from hdr4me.channels.blanket import Blanket, response_blanket
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

MOST_REPORTS = 10**8
"""More reports are counted as so many: more never hurt, and beyond it floating point would."""

NUMERICAL_ERROR = 1e-6
"""How far floating point may put δ below the bound, relatively; `log_delta` is raised by as much."""

_ACCURACY = 1e-5
_NONE = 1e-8
"""An ε not worth searching below."""

Pairs = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Amplification:
    """The central guarantee of shuffled reports: (`epsilon`, `delta`) for the multiset of `n_reports` of them."""

    epsilon: float
    delta: float
    n_reports: int
    local_epsilon: float
    closed_form: float | None
    """The bound of Feldman, McMillan and Talwar (2021), which knows only the local ε; None where it does not hold."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "reports": self.n_reports,
            "local_epsilon": self.local_epsilon,
            "closed_form": self.closed_form,
        }


def amplification(survey: Survey, n_reports: int, delta: float) -> Amplification:
    """The central (ε, δ) of `n_reports` shuffled reports to a survey.

    Parameters
    ----------
    survey : Survey
        Its own integer tables are used, its m questions and their draw included.
    n_reports : int
        How many users' reports are shuffled together, one from each.
    delta : float
        The δ of the central guarantee, such as 1e-6.

    Returns
    -------
    Amplification
        Its `epsilon` is never above the survey's.

    Raises
    ------
    InvalidInput
        If `n_reports` or `delta` is out of range.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> found = amplification(survey, 100_000, 1e-6)
    >>> round(found.epsilon, 3), round(found.closed_form, 3)
    (0.118, 0.535)
    """
    if not isinstance(survey, Survey):
        raise InvalidInput(f"survey = {survey!r} must be a Survey")
    n, delta = _checked(n_reports, delta)
    crowd = Crowd.of(survey)
    return Amplification(
        epsilon=crowd.epsilon(n, delta),
        delta=delta,
        n_reports=n_reports,
        local_epsilon=survey.epsilon,
        closed_form=closed_form(survey.epsilon, n, delta),
    )


def local_epsilon(
    survey: Survey, n_reports: int, delta: float, central_epsilon: float, *, most: float = 20.0
) -> float:
    """The largest ε for the same questions and mechanisms whose shuffled reports keep a central (ε, δ).

    Parameters
    ----------
    survey : Survey
        Its questions, mechanisms and m are kept; its ε is only where the search starts.
    n_reports : int
        How many reports are shuffled together.
    delta : float
        The δ of the central guarantee.
    central_epsilon : float
        The ε of the central guarantee.
    most : float
        The largest ε that is tried.

    Returns
    -------
    float
        Found to three digits, and checked: a survey designed with it keeps the guarantee.

    Raises
    ------
    InvalidInput
        If an argument is out of range, or no ε up to `most` keeps the guarantee.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
    >>> round(local_epsilon(survey, 100_000, 1e-6, 0.12), 2)
    4.0...
    """
    n, delta = _checked(n_reports, delta)
    if not _is_number(central_epsilon) or not 0 < central_epsilon < math.inf:
        raise InvalidInput.of("central_epsilon", central_epsilon, "a positive, finite number")
    if not _is_number(most) or not 0 < most <= 100:
        raise InvalidInput.of("most", most, "a number in (0, 100]")

    def keeps(epsilon: float) -> bool:
        return Crowd.of(redesigned(survey, epsilon)).keeps(central_epsilon, n, delta)

    # What every survey may have is where the search starts: no survey has to be designed for it.
    return _largest(keeps, local_epsilon_of_any(n, delta, central_epsilon, most=most), most)


def local_epsilon_of_any(
    n_reports: int, delta: float, central_epsilon: float, *, most: float = 20.0
) -> float:
    """A local ε at which the shuffled reports of every survey, whatever its tables, keep a central (ε, δ).

    Randomised response is the worst channel of its ε (see `response_blanket`), so what it keeps, all keep.

    >>> round(local_epsilon_of_any(100_000, 1e-6, 0.12), 2)
    4.0...
    """

    def keeps(epsilon: float) -> bool:
        response = Crowd(((response_blanket(math.exp(epsilon)), 1.0),), epsilon)
        return response.keeps(central_epsilon, n_reports, delta)

    return _largest(keeps, min(central_epsilon, most), most)  # a local ε is a central one


def _largest(keeps: Callable[[float], bool], low: float, most: float) -> float:
    """The largest number up to `most` that keeps, to three digits; `low` does."""
    high, step = low, 0.02 * low
    while high < most:
        high = min(high + step, most)
        if not keeps(high):
            break
        low, step = high, 2.0 * step
    else:
        return most
    while high - low > 1e-3 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def closed_form(epsilon: float, n_reports: int, delta: float) -> float | None:
    """log(1 + (e^ε − 1)/(e^ε + 1)·(8√(e^ε log(4/δ)/n) + 8e^ε/n)), for ε ≤ log(n/(16 log(2/δ))), else None.

    Feldman, McMillan and Talwar, "Hiding among the clones" (2021), Theorem 3.1.

    >>> round(closed_form(4.0, 100_000, 1e-6), 3)
    0.535
    """
    if n_reports <= 16 * math.log(2 / delta) or epsilon > math.log(n_reports / (16 * math.log(2 / delta))):
        return None
    r = math.exp(epsilon)
    return math.log1p(
        (r - 1) / (r + 1) * (8 * math.sqrt(r * math.log(4 / delta) / n_reports) + 8 * r / n_reports)
    )


@dataclass(frozen=True, eq=False)
class Crowd:
    """A report's blankets with their shares of the questions, ready to be compared."""

    blankets: tuple[tuple[Blanket, float], ...]
    most: float

    @classmethod
    def of(cls, survey: Survey) -> Crowd:
        """The blanket of a whole report: the draw of the questions and all m answers."""
        found = blankets_of(survey)
        total = sum(count for _, count in found)
        if survey.n_sampled == 1:
            return cls(tuple((blanket, count / total) for blanket, count in found), survey.epsilon)
        product = product_blanket([b for b, _ in found], [count for _, count in found], survey.n_sampled)
        if product is None:  # too many kinds of questions to list: any report of this ε is below this one
            product = response_blanket(math.exp(survey.epsilon))
        return cls(((product, 1.0),), survey.epsilon)

    def log_delta(self, epsilon: float, n: int, pairs: Pairs | None = None, fineness: int = FINE) -> float:
        """log δ(ε), all `pairs` of inputs compared (left out: every pair)."""
        return self._compared(epsilon, n, pairs or self._every, fineness)[0]

    @property
    def _every(self) -> Pairs:
        return [blanket.pairs for blanket, _ in self.blankets]

    @property
    def _few(self) -> Pairs:
        return [blanket.pairs[:1] for blanket, _ in self.blankets]

    def _compared(self, epsilon: float, n: int, pairs: Pairs, fineness: int) -> tuple[float, Pairs]:
        law, attained = spread(self.blankets, pairs, math.exp(epsilon), fineness)
        return log_excess(law, n) - math.log(n) + NUMERICAL_ERROR, attained

    def epsilon(self, n: int, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ delta; found with few pairs, confirmed with all, and with more if need be."""
        target, pairs, least = math.log(delta), self._few, 0.0
        while True:
            found = max(self._crossing(n, target, pairs), least)
            if found >= self.most:
                return self.most
            confirmed, attained = self._compared(found, n, self._every, FINE)
            if confirmed <= target:
                return found
            least = found * (
                1.0 + _ACCURACY
            )  # some other pair is worse there: those that are join the search
            pairs = [np.unique(np.concatenate(both), axis=0) for both in zip(pairs, attained, strict=True)]

    def keeps(self, epsilon: float, n: int, delta: float) -> bool:
        """Whether δ(ε) ≤ delta; one pair of inputs is often enough to say no."""
        target = math.log(delta)
        return self.log_delta(epsilon, n, self._few) <= target and self.log_delta(epsilon, n) <= target

    def _crossing(self, n: int, target: float, pairs: Pairs) -> float:
        """Just beyond the ε at which log δ(ε) with these pairs falls to `target`; `most` if it does not before."""

        def above(epsilon: float) -> float:
            return self.log_delta(epsilon, n, pairs, COARSE) - target

        high = min(_by_the_normal_law(second_moment(self.blankets, 1.0), n, target), self.most)
        if high <= _NONE and above(0.0) <= 0:
            return 0.0
        low = high
        while above(high) > 0:
            if high >= self.most:
                return self.most
            low, high = high, min(1.1 * high, self.most)
        while low == high or above(low) <= 0:
            low, high = (0.9 * low, low) if low > _NONE else (0.0, low)
            if low == 0.0:
                break
        root = float(brentq(above, low, high, xtol=1e-15, rtol=_ACCURACY))
        slope = above(root * 0.999) / (0.001 * root)  # of −log δ
        # The coarse grid errs upwards, so the fine one allows a little less: one step towards it, then certain.
        root -= max(0.0, (target - self.log_delta(root, n, pairs)) / slope) * 0.99
        while self.log_delta(root, n, pairs) > target:
            root *= 1.0 + _ACCURACY
        return min(root, self.most)


def _by_the_normal_law(variance: float, n: int, target: float) -> float:
    """Where δ would fall to e^target if the sum were normal: σ/√n·(φ(z) − z·Q(z)) at z = √n(e^ε − 1)/σ."""
    scale = math.sqrt(variance / n)

    def above(z: float) -> float:
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return math.log(max(density - z * math.erfc(z / math.sqrt(2)) / 2, 1e-300) * scale) - target

    if above(0.0) <= 0:
        return _NONE
    return math.log1p(scale * float(brentq(above, 0.0, 36.0))) if above(36.0) < 0 else math.inf


def _checked(n_reports: Any, delta: Any) -> tuple[int, float]:
    if type(n_reports) is not int or n_reports < 1:
        raise InvalidInput.of("n_reports", n_reports, "a whole number from 1")
    if not _is_number(delta) or not 1e-100 <= delta < 1:
        raise InvalidInput.of("delta", delta, "a number from 1e-100 and below 1")
    return min(n_reports, MOST_REPORTS), float(delta)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
