"""What `auto` uses: hierarchical Bayes, declared structure, measured errors and the choice between rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hdr4me.recalibration.auto.intervals import Intervals, containing
from hdr4me.recalibration.auto.posterior import Belief, Posterior, noise_levels
from hdr4me.recalibration.auto.priors import fit_posterior
from hdr4me.recalibration.auto.risk import (
    Choice,
    Measured,
    Probes,
    Reading,
    Rule,
    choose,
    error_after,
    probes,
    read,
    stein_risk,
)
from hdr4me.recalibration.auto.structure import Structure, blocks, check_structure, structured
from hdr4me.recalibration.inputs import Floats, Inputs
from hdr4me.recalibration.shrinkage import james_stein

__all__ = [
    "Analysis",
    "Intervals",
    "Measured",
    "Probes",
    "Reading",
    "Rule",
    "check_structure",
    "choose",
    "containing",
    "fit_posterior",
    "probes",
    "read",
    "stein_risk",
]

# The constants below come from benchmarks/recalibration_hard.py: with others, some cells were harmed or gained less.
# Fewer dimensions do not distinguish a gain from chance: clipping, or a declared structure that the data confirm.
_FEWEST = 8
# The mean probability from which on the data confirm a declared structure.
_CONFIRMED = 0.95
# The probability of "all are zero", and the number of dimensions, from which on the data support it; the margin.
_NOTHING_THERE, _ENOUGH, _NOTHING_MARGIN = 0.8, 20, 1.25
# Beyond this many dimensions a fit for each level of noise would take most of the time.
_MOST_BY_NOISE = 20_000


class Analysis:
    """What the data say about the noisy dimensions `part`, sorted: x ~ N(θ, s²), θ in [low, high].

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

    def measure(self, rule: Rule) -> Reading:
        """Apply a rule to the data and measure its response to the noise."""
        return read(rule, self.x, self._probes)

    def bayes(self, x: Floats) -> Floats:
        """Posterior means, a declared structure included: as a rule, for any observations x."""
        mean = self._fit(x).mean.copy()
        for belief in structured(self._blocks, self._fit(x), x):
            mean[belief.where] += belief.probability * (belief.curve.mean - mean[belief.where])
        return mean

    @cached_property
    def choice(self) -> Choice:
        """What `auto` chooses; the base is clipping."""
        # Data that leave "all are zero" likely exclude most harm of shrinking to zero. Dimensions count by their noise.
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

    def error(self, used: str, reading: Reading, optimism: float = 0.0, *, safe: bool) -> Measured:
        """The total squared error of the answer of the rule `used`; a `safe` one does not exceed the noise's."""
        n, noise = self.x.size, float(np.mean(self.s**2))
        own = used in ("structure", "bayes")
        model = None
        if safe or own:
            # For a posterior mean s²·∂E[θ|x]/∂x is the posterior variance; for clipping it is its error at an end.
            model = max(float(np.mean(reading.response)), 0.0)
        if own and not (self._blocks and self._mean([b.probability for b in self.beliefs]) > 0.5):
            expected = float(np.mean(self._summary.expected_error(reading.value)))
            # A prior with one unknown, fitted to these n dimensions, costs 1/n of what it gains (James and Stein: 2/n).
            expected += max(noise - expected, 0.0) / n
            model = max(model or 0.0, expected)
        after = error_after(reading, self.part, model, optimism)
        # Clipping is a projection on a set that contains the truth, and `auto` was measured to be no worse.
        most = noise if safe else np.inf
        return after._replace(value=min(after.value, most)).times(n)

    def _mean(self, probabilities: Sequence[float]) -> float:
        """The mean over dimensions of a probability of each structure."""
        sizes = (belief.where.size for belief in self.beliefs)
        return sum(p * size for p, size in zip(probabilities, sizes, strict=True)) / self.x.size

    def _fit(self, x: Floats) -> Posterior:
        """The posterior for observations x, fitted once: rules are applied to the same few x."""
        key = x.tobytes()
        if key not in self._fits:
            self._fits[key] = fit_posterior(x, self.steady, *self.domain, self._null)
        return self._fits[key]

    def _candidates(self) -> dict[str, Rule]:
        """Rules by name, without SURE's soft threshold: it is chosen by the same measurement that would judge it."""
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
