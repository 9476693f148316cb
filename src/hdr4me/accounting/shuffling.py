"""The central ε of the shuffle model, computed from the survey's own tables instead of from ε alone.

If the reports of n users are permuted at random and all metadata are removed, the multiset of reports is (ε', δ)-
differentially private with an ε' far below the survey's ε. With the privacy blanket (`channels/blanket.py`)

    δ(ε') ≤ E[(V₁ + … + V_n)₊] / n,    V = ρ_x(Y) − e^{ε'}·ρ_{x'}(Y), Y ~ c;  V = 0 with probability 1 − γ,

for the worst pair of records x, x' (Balle, Bell, Gascón, Nissim 2019, "The privacy blanket of the shuffle model").
Every step gives an upper bound, except for floating-point errors, which are below 10⁻⁶ of δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from hdr4me.accounting import binary
from hdr4me.accounting.excess import COARSE, FINE, log_excess, second_moment, spread
from hdr4me.channels.blanket import Blanket, response_blanket
from hdr4me.channels.channel import is_number
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

# Larger numbers count as this one: more reports never increase δ, but rounding errors grow.
MOST_REPORTS = 10**8
NUMERICAL_ERROR = 1e-6  # the relative error of δ in floating point; `log_delta` is increased by this amount
_ACCURACY = 1e-5
_NONE = 1e-8  # the smallest ε in the search
_MOST_ATOMS = 200_000  # in the blanket of a whole report

Floats = NDArray[np.float64]
Pairs = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Amplification:
    """The guarantee in the shuffle model: the multiset of `n_reports` reports is (`epsilon`, `delta`)-private."""

    epsilon: float
    delta: float
    n_reports: int
    local_epsilon: float
    closed_form: float | None
    """The bound of Feldman, McMillan and Talwar (2021), which uses only the local ε; None where it does not apply."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"reports" if name == "n_reports" else name: value for name, value in vars(self).items()}


def amplification(survey: Survey, n_reports: int, delta: float) -> Amplification:
    """The central (ε, δ) of shuffled reports to a survey; ε is at most the survey's.

    Parameters
    ----------
    survey
        The accountant uses its integer tables and the law of its sampled questions.
    n_reports
        The number of users whose reports are shuffled together, one report from each.
    delta
        The δ of the central guarantee, such as 1e-6.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> result = amplification(survey, 100_000, 1e-6)
    >>> round(result.epsilon, 3), round(result.closed_form, 3)
    (0.085, 0.535)
    """
    if not isinstance(survey, Survey):
        raise InvalidInput(f"survey = {survey!r} must be a Survey")
    n, delta = _checked(n_reports, delta)
    epsilon, closed = Shuffled.of(survey).epsilon(n, delta), closed_form(survey.epsilon, n, delta)
    return Amplification(epsilon, delta, n_reports, survey.epsilon, closed)


def local_epsilon(
    survey: Survey, n_reports: int, delta: float, central_epsilon: float, *, most: float = 20.0
) -> float:
    """The largest local ε at which shuffled reports to the same questions satisfy a central (ε, δ).

    It has three significant digits. The guarantee is verified for a survey that is designed with it.

    Parameters
    ----------
    survey
        Its questions, mechanisms and number of sampled questions are kept.
    n_reports
        The number of reports that are shuffled together.
    delta, central_epsilon
        The central guarantee.
    most
        The largest ε that is tried.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi")
    >>> round(local_epsilon(survey, 100_000, 1e-6, 0.085), 2)
    4.0...
    """
    n, delta = _checked(n_reports, delta)
    if not is_number(central_epsilon) or not central_epsilon > 0:
        raise InvalidInput.of("central_epsilon", central_epsilon, "a positive, finite number")
    if not is_number(most) or not 0 < most <= 100:
        raise InvalidInput.of("most", most, "a number in (0, 100]")

    def keeps(epsilon: float) -> bool:
        return Shuffled.of(redesigned(survey, epsilon)).keeps(central_epsilon, n, delta)

    # The search starts at a value that holds for every survey, so that no survey has to be designed for it.
    return _largest(keeps, local_epsilon_of_any(n, delta, central_epsilon, most=most), most)


def local_epsilon_of_any(
    n_reports: int, delta: float, central_epsilon: float, *, most: float = 20.0
) -> float:
    """A local ε at which the shuffled reports of any survey satisfy a central (ε, δ).

    Randomized response is the worst channel of its ε (see `response_blanket`).
    """

    def keeps(epsilon: float) -> bool:
        return Shuffled.worst(epsilon).keeps(central_epsilon, n_reports, delta)

    # A local guarantee implies the same central guarantee.
    return _largest(keeps, min(central_epsilon, most), most)


def _largest(keeps: Callable[[float], bool], low: float, most: float) -> float:
    """The largest number up to `most` that satisfies the guarantee, to three digits; `low` satisfies it."""
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


def redesigned(survey: Survey, epsilon: float) -> Survey:
    """The survey with the same questions and mechanisms under another total ε."""
    names, by_input, pairs = survey.schema.names, dict[str, str](), []
    for question in survey.questions:
        mechanism, kind = question.channel.mechanism, question.channel.inputs[0].input_kind
        if len(question.dimensions) == 2:
            pairs.append((names[question.dimensions[0]], names[question.dimensions[1]]))
        elif by_input.setdefault(kind, mechanism) != mechanism:
            by_input[kind] = "auto"
    weights = {names[question.dimensions[0]]: question.weight for question in survey.questions}
    made = Survey(
        survey.schema,
        epsilon,
        mechanism=by_input.get("number", "duchi"),
        sampled=survey.sampled,
        categorical=by_input.get("category", "auto"),
        name=survey.name,
        pair_questions=pairs,
        weights=weights if survey.weighted else {},
    )
    for old, new in zip(survey.questions, made.questions, strict=True):
        if not old.channel.built_in and type(old.channel) is not type(new.channel):
            raise InvalidInput(
                f"channel {old.channel.mechanism!r} cannot be designed for another epsilon, so the "
                "largest local epsilon is unknown"
            )
    return made


def closed_form(epsilon: float, n_reports: int, delta: float) -> float | None:
    """log(1 + (e^ε − 1)/(e^ε + 1)·(8√(e^ε log(4/δ)/n) + 8e^ε/n)), for ε ≤ log(n/(16 log(2/δ))), else None.

    Feldman, McMillan and Talwar, "Hiding among the clones" (2021), Theorem 3.1.
    """
    if epsilon > math.log(n_reports / (16 * math.log(2 / delta))):
        return None
    r = math.exp(epsilon)
    return math.log1p(
        (r - 1) / (r + 1) * (8 * math.sqrt(r * math.log(4 / delta) / n_reports) + 8 * r / n_reports)
    )


@dataclass(frozen=True, eq=False)
class Shuffled:
    """The blankets of a report, each with the share of its questions, and the local ε, `most`.

    `ones` are the largest and the smallest probability of cell 1 if a report has two cells; then ε is not computed from
    the blanket (see `binary`).
    """

    blankets: tuple[tuple[Blanket, float], ...]
    most: float
    ones: tuple[float, float] | None = None

    @classmethod
    def of(cls, survey: Survey) -> Shuffled:
        """The blanket of a whole report: the sampled questions and all their answers."""
        weights = {id(channel): 0 for channel in survey.channels}
        for question in survey.questions:
            weights[id(question.channel)] += question.weight if survey.weighted else 1
        blankets, counts = [c.response.blanket() for c in survey.channels], list(weights.values())
        if survey.sampled == 1:
            shares = [count / sum(counts) for count in counts]
            return cls(tuple(zip(blankets, shares, strict=True)), survey.epsilon, _ones(survey))
        product = product_blanket(blankets, counts, survey.sampled)
        return cls.worst(survey.epsilon) if product is None else cls(((product, 1.0),), survey.epsilon)

    @classmethod
    def worst(cls, epsilon: float) -> Shuffled:
        """Randomized response, which dominates every report of this ε."""
        return cls(((response_blanket(math.exp(epsilon)), 1.0),), epsilon)

    def log_delta(self, epsilon: float, n: int, pairs: Pairs | None = None, fineness: int = FINE) -> float:
        """log δ(ε) over `pairs` of inputs (default: every pair)."""
        return self._compared(epsilon, n, pairs, fineness)[0]

    def _compared(
        self, epsilon: float, n: int, pairs: Pairs | None = None, fineness: int = FINE
    ) -> tuple[float, Pairs]:
        """log δ(ε) over `pairs`, and the pairs that attain it."""
        every = [blanket.pairs for blanket, _ in self.blankets]
        law, attained = spread(self.blankets, pairs or every, math.exp(epsilon), fineness)
        return log_excess(law, n) - math.log(n) + NUMERICAL_ERROR, attained

    def epsilon(self, n: int, delta: float) -> float:
        """The smallest ε with δ(ε) ≤ delta: found with one pair of inputs and verified with all pairs."""
        if self.ones is not None and delta >= binary.LEAST_DELTA:
            return min(binary.epsilon(*self.ones, n, delta), self.most)
        target, least = math.log(delta), 0.0
        pairs = [blanket.pairs[:1] for blanket, _ in self.blankets]
        while True:
            found = max(self._crossing(n, target, pairs), least)
            if found >= self.most:
                return self.most
            confirmed, attained = self._compared(found, n)
            if confirmed <= target:
                return found
            least = found * (1.0 + _ACCURACY)  # another pair is worse there: add it to the search
            pairs = [np.unique(np.concatenate(both), axis=0) for both in zip(pairs, attained, strict=True)]

    def keeps(self, epsilon: float, n: int, delta: float) -> bool:
        """Whether δ(ε) ≤ delta; one pair of inputs often suffices to reject it."""
        if self.ones is not None and delta >= binary.LEAST_DELTA:
            return binary.holds(*self.ones, n, epsilon, delta)
        one = [blanket.pairs[:1] for blanket, _ in self.blankets]
        return all(self.log_delta(epsilon, n, pairs) <= math.log(delta) for pairs in (one, None))

    def _crossing(self, n: int, target: float, pairs: Pairs) -> float:
        """Slightly above the ε at which log δ(ε) of these pairs equals `target`, and at most `most`."""

        def above(epsilon: float) -> float:
            return self.log_delta(epsilon, n, pairs, COARSE) - target

        high = min(_normal_crossing(second_moment(self.blankets, 1.0), n, target), self.most)
        if high <= _NONE and above(0.0) <= 0:
            return 0.0
        low = high
        while above(high) > 0:
            if high >= self.most:
                return self.most
            low, high = high, min(1.1 * high, self.most)
        while low > 0.0 and (low == high or above(low) <= 0):
            low, high = (0.9 * low, low) if low > _NONE else (0.0, low)
        root = float(brentq(above, low, high, xtol=1e-15, rtol=_ACCURACY))
        slope = above(root * 0.999) / (0.001 * root)  # of −log δ
        # The coarse grid overestimates δ, so the fine grid allows a smaller ε: take a Newton step, then verify.
        root -= max(0.0, (target - self.log_delta(root, n, pairs)) / slope) * 0.99
        while self.log_delta(root, n, pairs) > target:
            root *= 1.0 + _ACCURACY
        return min(root, self.most)


def _ones(survey: Survey) -> tuple[float, float] | None:
    """The largest and the smallest probability of cell 1 of a survey whose reports have two cells; else None."""
    channel = survey.questions[0].channel
    rows = channel.response.table
    if len(survey.questions) > 1 or channel.per_report > 1 or rows is None or rows.shape[1] != 2:
        return None
    largest, smallest = float(rows[:, 1].max()), float(rows[:, 1].min())
    return (largest, smallest) if 0 < smallest < largest < 1 else None


def _normal_crossing(variance: float, n: int, target: float) -> float:
    """The ε at which δ would be e^target if the sum were normal: σ/√n·(φ(z) − z·Q(z)) at z = √n(e^ε − 1)/σ."""
    scale = math.sqrt(variance / n)

    def above(z: float) -> float:
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return math.log(max(density - z * math.erfc(z / math.sqrt(2)) / 2, 1e-300) * scale) - target

    if above(0.0) <= 0:
        return _NONE
    return math.log1p(scale * float(brentq(above, 0.0, 36.0))) if above(36.0) < 0 else math.inf


def product_blanket(blankets: Sequence[Blanket], counts: Sequence[int], sampled: int) -> Blanket | None:
    """A report with m answers, whose questions are drawn without replacement; `counts[i]` questions have channel i.

    Each channel is first replaced by one with two ratios, 1 and r: every pair (ρ_x, ρ_x') is moved to the corners of
    the square [1, r]² with its mean kept. The product then has a small number of atoms. None if there are too many.
    """
    # Keyed by the number of answers so far. Atoms: weight, product of the first input's ratios, and of the second's.
    atoms = {0: np.ones((3, 1))}
    for blanket, count in zip(blankets, counts, strict=True):
        r, powers = blanket.largest_ratio, _powers(blanket, min(count, sampled))
        grown: dict[int, list[Floats]] = {}
        for done, known in atoms.items():
            for k in range(min(count, sampled - done) + 1):
                i, j = np.indices((k + 1, k + 1)).reshape(2, -1)
                added = np.stack([powers[k].ravel() * float(math.comb(count, k)), r**i, r**j])
                grown.setdefault(done + k, []).append((known[:, :, None] * added[:, None]).reshape(3, -1))
        atoms = {done: np.concatenate(parts, axis=1) for done, parts in grown.items()}
        if sum(part.shape[1] for part in atoms.values()) > _MOST_ATOMS:
            return None
    weight, *ratios = atoms[sampled][:, atoms[sampled][0] > 0]
    return Blanket(weight / float(math.comb(sum(counts), sampled)), np.stack(ratios), np.array([[0, 1]]))


def _powers(blanket: Blanket, most: int) -> list[Floats]:
    """For k = 0..most answers, the mass where i answers have ratio r for the first input and j for the second.

    The masses of one answer at (r, r), (r, 1), (1, r), (1, 1) are those of the pair of inputs that overlaps least.
    """
    both = high = 0.0
    if (r := blanket.largest_ratio) > 1.0:
        u = (blanket.ratios - 1.0) / (r - 1.0)
        high = float((u @ blanket.mass).max())
        both = min(float((np.minimum(u[x], u[y]) * blanket.mass).sum()) for x, y in blanket.pairs.tolist())
    tables = [np.ones((1, 1))]
    for k in range(most):
        last, grown = tables[-1], np.zeros((k + 2, k + 2))
        grown[1:, 1:] += both * last
        grown[1:, :-1] += (high - both) * last
        grown[:-1, 1:] += (high - both) * last
        grown[:-1, :-1] += max(blanket.gamma - 2 * high + both, 0.0) * last
        tables.append(grown)
    return tables


def _checked(n_reports: Any, delta: Any) -> tuple[int, float]:
    if type(n_reports) is not int or n_reports < 1:
        raise InvalidInput.of("n_reports", n_reports, "a positive integer")
    if not is_number(delta) or not 1e-100 <= delta < 1:
        raise InvalidInput.of("delta", delta, "a number of at least 1e-100 and below 1")
    return min(n_reports, MOST_REPORTS), float(delta)
