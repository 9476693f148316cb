"""The parts of `auto`: hierarchical Bayes, declared structure, measured errors, and the choice between rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hdr4me.recalibration.auto.intervals import Intervals, containing
from hdr4me.recalibration.auto.posterior import Belief, Posterior, noise_levels
from hdr4me.recalibration.auto.priors import fit_posterior
from hdr4me.recalibration.auto.risk import (
    Choice,
    Evaluation,
    Measured,
    Probes,
    Rule,
    choose,
    error_after,
    evaluate,
    probes,
    stein_risk,
)
from hdr4me.recalibration.auto.structure import Structure, blocks, check_structure, structured
from hdr4me.recalibration.inputs import Floats, Inputs
from hdr4me.recalibration.shrinkage import james_stein

__all__ = [
    "Analysis",
    "Evaluation",
    "Intervals",
    "Measured",
    "Probes",
    "Rule",
    "check_structure",
    "choose",
    "containing",
    "evaluate",
    "fit_posterior",
    "probes",
    "stein_risk",
]

# benchmarks/recalibration_hard.py determined the constants below: with others the error of some cells is larger.
# With fewer dimensions a gain is not significant: `auto` clips, or uses a structure that the data confirm.
_FEWEST = 8
# The mean probability above which the data confirm a declared structure.
_CONFIRMED = 0.95
# The data support "all are zero" above this probability and number of dimensions; then this is the margin.
_NOTHING_THERE, _ENOUGH, _NOTHING_MARGIN = 0.8, 20, 1.25
# Above this many dimensions a separate fit for each level of noise takes too long.
_MOST_BY_NOISE = 20_000


class Analysis:
    """The analysis of the noisy dimensions `part`, sorted: x ~ N(θ, s²), θ in [low, high].

    Rules use the `steady` standard errors; errors are measured with the given ones.
    """

    def __init__(self, part: Inputs, structure: Structure | None, *, dependent: bool) -> None:
        self.part, self.x, self.s = part, part.calibrated, part.calibrated_errors
        self.steady = part.calibrated_steady
        self.domain, self._null = (part.low, part.high), float(np.clip(0.0, part.low, part.high))
        self._fits: dict[bytes, Posterior] = {}
        self._blocks = [] if structure is None else blocks(structure, self.steady, *self.domain)
        rank = None if structure is None else np.argsort(np.lexsort((structure.position, structure.group)))
        self._probes = probes(self.s, dependent=bool(self._blocks) or dependent, rank=rank)
        self.posterior = self._fit(self.x)
        self._summary = self.posterior.summary()
        self.signal = self._summary.signal
        self.beliefs: Sequence[Belief] = structured(self._blocks, self.posterior, self.x)

    def measure(self, rule: Rule) -> Evaluation:
        """Apply a rule to the data and measure its response to the noise."""
        return evaluate(rule, self.x, self._probes)

    def bayes(self, x: Floats) -> Floats:
        """Posterior means for any observations x, including a declared structure."""
        mean = self._fit(x).mean.copy()
        for belief in structured(self._blocks, self._fit(x), x):
            mean[belief.where] += belief.probability * (belief.curve.mean - mean[belief.where])
        return mean

    @cached_property
    def choice(self) -> Choice:
        """The choice of `auto`; the base is clipping."""
        # If "all are zero" is likely, shrinkage to zero is safe. Dimensions are weighted by their noise.
        effective = float(np.sum(self.s**2)) ** 2 / float(np.sum(self.s**4))
        nothing = effective >= _ENOUGH and self.posterior.probabilities["null"] > _NOTHING_THERE
        margins = dict.fromkeys(("structure", "bayes"), _NOTHING_MARGIN) if nothing else {}
        if self._mean([belief.confirmed for belief in self.beliefs]) > _CONFIRMED:
            # Half a standard error, more below 16 dimensions.
            margins["structure"] = 0.5 + 0.125 * max(16 - self.x.size, 0)
        rules = self._candidates()
        if self.x.size < _FEWEST:
            rules = {name: rule for name, rule in rules.items() if name in margins}
        base = self.measure(lambda y: np.clip(y, *self.domain))
        return choose(rules, base, self.x, self.s, self.measure, (self.steady, *self.domain), margins)

    def error(self, used: str, evaluation: Evaluation, optimism: float = 0.0, *, safe: bool) -> Measured:
        """The total squared error of the rule `used`; that of a `safe` rule is at most that of the noise."""
        n, noise = self.x.size, float(np.mean(self.s**2))
        own = used in ("structure", "bayes")
        model = None
        if safe or own:
            # For a posterior mean s²·∂E[θ|x]/∂x is the posterior variance; for clipping it is the error at an end.
            model = max(float(np.mean(evaluation.response)), 0.0)
        if own and not (self._blocks and self._mean([b.probability for b in self.beliefs]) > 0.5):
            expected = float(np.mean(self._summary.expected_error(evaluation.value)))
            # Fitting a prior with one unknown to n dimensions costs 1/n of the gain (James and Stein: 2/n).
            expected += max(noise - expected, 0.0) / n
            model = max(model or 0.0, expected)
        after = error_after(evaluation, self.part, model, optimism)
        # Clipping is a projection on a set that contains the truth, and the measured error of `auto` is not larger.
        most = noise if safe else np.inf
        return after._replace(value=min(after.value, most)).times(n)

    def _mean(self, probabilities: Sequence[float]) -> float:
        """The mean over dimensions of a probability of each structure."""
        sizes = (belief.where.size for belief in self.beliefs)
        return sum(p * size for p, size in zip(probabilities, sizes, strict=True)) / self.x.size

    def _fit(self, x: Floats) -> Posterior:
        """The posterior for observations x; each fit is stored, because rules are applied to the same x."""
        key = x.tobytes()
        if key not in self._fits:
            self._fits[key] = fit_posterior(x, self.steady, *self.domain, self._null)
        return self._fits[key]

    def _candidates(self) -> dict[str, Rule]:
        """The rules by name, without SURE: its threshold minimizes the measurement that compares the rules."""
        s, (low, high) = self.steady, self.domain
        levels = noise_levels(s)

        def by_noise(x: Floats) -> Floats:
            out = np.empty_like(x)
            for level in levels:
                out[level] = fit_posterior(x[level], s[level], low, high, self._null).mean
            return out

        rules: dict[str, Rule] = {"structure": self.bayes} if self._blocks else {}
        rules["bayes"] = lambda x: self._fit(x).mean
        if len(levels) > 1 and s.size <= _MOST_BY_NOISE:
            rules["bayes_by_noise"] = by_noise
        rules["james_stein"] = lambda x: np.clip(james_stein(x, s, towards_mean=False), low, high)
        rules["james_stein_mean"] = lambda x: np.clip(james_stein(x, s, towards_mean=True), low, high)
        return rules
