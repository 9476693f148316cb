"""Re-calibrate an `Estimate`: its numeric means together, each categorical dimension on its own simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.core import OPTIONS, recalibrate
from hdr4me.recalibration.expected import unmoved
from hdr4me.recalibration.inputs import check_method
from hdr4me.recalibration.result import Recalibration
from hdr4me.recalibration.simplex import FREQUENCY_OPTIONS, Distribution, recalibrate_frequencies
from hdr4me.statistics.estimate import Estimate, Frequencies

__all__ = ["RecalibratedEstimate", "recalibrate_estimate"]


@dataclass(frozen=True)
class RecalibratedEstimate:
    """Enhanced means and frequencies beside the estimate they come from."""

    estimate: Estimate
    method: str
    recalibration: Recalibration | None
    """The numeric dimensions that have a standard error, in order; None if there are none."""
    distributions: dict[str, Distribution]

    @property
    def _known(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.estimate.scaled_standard_error))

    @property
    def _kept(self) -> NDArray[np.bool_]:
        """Numeric dimensions that are as they were: so are their standard errors and intervals."""
        out = ~self._known
        found = self.recalibration
        if found is not None:
            out[self._known] = unmoved(found.used, found.estimated_mean, found.enhanced_mean)
        return out

    @property
    def scaled_mean(self) -> Floats:
        """Enhanced means on [−1, 1]; a dimension without a standard error keeps what it had."""
        out = self.estimate.scaled_mean.copy()
        if self.recalibration is not None:
            out[self._known] = self.recalibration.enhanced_mean
        return out

    @property
    def mean(self) -> Floats:
        """Enhanced means in the user's units."""
        return self._in_units(self.scaled_mean)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Intervals of the enhanced means in the user's units; as they were where the mean is."""
        low = np.full(self.estimate.scaled_mean.size, np.nan)
        high = low.copy()
        if self.recalibration is not None:
            low[self._known], high[self._known] = self.recalibration.interval(level)
        own, kept = self.estimate.interval(level), self._kept
        return np.where(kept, own[0], self._in_units(low)), np.where(kept, own[1], self._in_units(high))

    def frequencies(self, name: str) -> Floats:
        """Enhanced frequencies of a categorical dimension: a distribution, unless nobody answered."""
        before = self.estimate.frequencies(name)
        return self.distributions[name].frequencies if name in self.distributions else before.frequency

    @property
    def advice(self) -> tuple[str, ...]:
        """One line for the numeric dimensions, one for each categorical one."""
        lines = () if self.recalibration is None else (self.recalibration.advice,)
        return lines + tuple(f"{name}: {found.advice}" for name, found in self.distributions.items())

    def table(self, level: float = 0.95) -> list[dict[str, Any]]:
        """`Estimate.table` with the enhanced numbers; a frequency's interval is the estimate's, cut to [0, 1]."""
        rows = self.estimate.table(level)
        mean, (low, high) = self.mean, self.interval(level)
        sd = np.full(mean.size, np.nan)
        if self.recalibration is not None:
            sd[self._known] = self.recalibration.posterior_sd
        sd = self._in_units(sd) - self._in_units(np.zeros_like(sd))
        kept = self._kept
        place = {name: j for j, name in enumerate(self.estimate.names)}
        for row in rows:
            name, category = row["dimension"], row["category"]
            if row["standard_error"] is None:
                continue
            if category is None:
                j = place[name]
                if kept[j]:
                    continue
                row |= {"estimate": float(mean[j]), "standard_error": float(sd[j])}
                row |= {"lower": float(low[j]), "upper": float(high[j])}
            elif name in self.distributions:
                k = self.estimate.frequencies(name).categories.index(category)
                value = float(self.frequencies(name)[k])
                row["estimate"] = value
                row["lower"] = min(max(row["lower"], 0.0), value)
                row["upper"] = max(min(row["upper"], 1.0), value)
        return rows

    def _in_units(self, scaled: Floats) -> Floats:
        low, high = self.estimate.bounds
        return np.asarray(low + (scaled + 1) / 2 * (high - low))


def recalibrate_estimate(estimate: Estimate, method: str = "auto", **options: Any) -> RecalibratedEstimate:
    """Re-calibrate everything an estimate holds.

    Numeric means share one fit on [−1, 1]. Categorical dimensions are encoded entries: the same method on [0, 1], then
    the simplex. `norm_sub` and `base_cut` are for frequencies and leave the means as they are; `none` leaves all.
    """
    check_method(method, options, OPTIONS | FREQUENCY_OPTIONS)
    known = np.isfinite(estimate.scaled_standard_error)
    means = None
    if known.any():
        given = estimate.scaled_mean[known], estimate.scaled_standard_error[known]
        means = recalibrate(*given, method, **options) if method in OPTIONS else recalibrate(*given, "none")
    if method == "none":
        return RecalibratedEstimate(estimate, method, means, {})
    frequencies = {
        name: recalibrate_frequencies(found.frequency, found.standard_error, method, **options)
        for name, found in ((n, estimate.frequencies(n)) for n in estimate.categorical_names)
        if _answered(found)
    }
    return RecalibratedEstimate(estimate, method, means, frequencies)


def _answered(found: Frequencies) -> bool:
    return bool(np.all(np.isfinite(found.standard_error)))
