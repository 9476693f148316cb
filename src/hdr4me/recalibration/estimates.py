"""Re-calibrate an `Estimate`: its numeric means together, each categorical dimension on its own simplex."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.core import recalibrate
from hdr4me.recalibration.frequencies import FREQUENCY_OPTIONS, Distribution, recalibrate_frequencies
from hdr4me.recalibration.inputs import check_method
from hdr4me.recalibration.intervals import check_kind, holding
from hdr4me.recalibration.methods import OPTIONS
from hdr4me.recalibration.result import Recalibration
from hdr4me.statistics.estimate import Estimate, Frequencies
from hdr4me.survey import Numeric

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

    @property
    def standard_error(self) -> Floats | None:
        """In the user's units, where the mean is as it was (elsewhere NaN); None if it is nowhere."""
        found = None if self.recalibration is None else self.recalibration.standard_error
        if found is None:
            return None
        out = np.full(self._known.size, np.nan)
        out[self._known] = found
        return self._in_units(out) - self._in_units(np.zeros_like(out))

    def interval(self, level: float = 0.95, kind: str = "honest") -> tuple[Floats, Floats]:
        """Intervals of the enhanced means in the user's units, of one of the kinds of `Recalibration.interval`.

        Honest ones are those of the estimate (Student's t for few answers), cut to the range; the mean lies inside.
        """
        check_kind(kind)
        low, high = self.estimate.interval(level)
        found = self.recalibration
        if found is None or found.used == "none":
            return low, high
        if kind == "honest":
            ends = self.estimate.bounds
            return holding(self.mean, np.clip(low, *ends), np.clip(high, *ends))
        for end, inner in zip((low, high), found.interval(level, kind), strict=True):
            scaled = np.full(end.size, np.nan)
            scaled[self._known] = inner
            end[self._known] = self._in_units(scaled)[self._known]
        return low, high

    def frequencies(self, name: str) -> Floats:
        """Enhanced frequencies of a categorical dimension: a distribution, unless nobody answered."""
        before = self.estimate.frequencies(name)
        return self.distributions[name].frequencies if name in self.distributions else before.frequency

    @property
    def advice(self) -> tuple[str, ...]:
        """One line for the numeric dimensions, one for each categorical one."""
        lines = () if self.recalibration is None else (self.recalibration.advice,)
        return lines + tuple(f"{name}: {found.advice}" for name, found in self.distributions.items())

    def table(self, level: float = 0.95, kind: str = "honest") -> list[dict[str, Any]]:
        """`Estimate.table` with the enhanced numbers.

        The interval of a frequency is the estimate's, cut to [0, 1]. What was moved has no standard error: None.
        """
        rows = self.estimate.table(level)
        mean, (low, high), error = self.mean, self.interval(level, kind), self.standard_error
        place = {name: j for j, name in enumerate(self.estimate.names)}
        for row in rows:
            name, category = row["dimension"], row["category"]
            if row["standard_error"] is None:
                continue
            if category is None:
                j = place[name]
                row |= {"lower": float(low[j]), "upper": float(high[j])}
                if error is None or np.isnan(error[j]):
                    row |= {"estimate": float(mean[j]), "standard_error": None}
            elif name in self.distributions:
                k = self.estimate.frequencies(name).categories.index(category)
                value = float(self.frequencies(name)[k])
                row |= {"lower": max(row["lower"], 0.0), "upper": min(row["upper"], 1.0)}
                row["standard_error"] = row["standard_error"] if value == row["estimate"] else None
                row |= {
                    "estimate": value,
                    "lower": min(row["lower"], value),
                    "upper": max(row["upper"], value),
                }
        return rows

    def _in_units(self, scaled: Floats) -> Floats:
        low, high = self.estimate.bounds
        return np.asarray(low + (scaled + 1) / 2 * (high - low))


def recalibrate_estimate(estimate: Estimate, method: str = "auto", **options: Any) -> RecalibratedEstimate:
    """Re-calibrate everything an estimate holds.

    Numeric means share one fit on [−1, 1]. Categorical dimensions are encoded entries: the same method on [0, 1], then
    the simplex. `norm_sub` and `base_cut` are for frequencies and leave the means as they are; `none` leaves all.

    Parameters
    ----------
    estimate
        What a tally says.
    method
        One of `METHODS` or `FREQUENCY_METHODS`.
    **options
        Those of `recalibrate`. Here `order` is a list of names along a curve, or several such lists; `groups` is
        lists of names that belong together. Without them, what the schema declares as `curve` and `group` is used.

    Returns
    -------
    RecalibratedEstimate
        Means, frequencies, intervals, a table and the advice.

    Raises
    ------
    InvalidInput
        For a name that is no numeric dimension, or an option that the method does not take.
    """
    check_method(method, options, FREQUENCY_OPTIONS | OPTIONS)
    known = np.isfinite(estimate.scaled_standard_error)
    means = None
    if known.any():
        given = estimate.scaled_mean[known], estimate.scaled_standard_error[known]
        if "order" in OPTIONS.get(method, ()):
            names = [name for name, there in zip(estimate.names, known.tolist(), strict=True) if there]
            options = _structure(estimate, names, **options)
        means = recalibrate(*given, method, **options) if method in OPTIONS else recalibrate(*given, "none")
    if method == "none":
        return RecalibratedEstimate(estimate, method, means, {})
    rest = {name: value for name, value in options.items() if name not in ("order", "groups")}
    frequencies = {
        name: recalibrate_frequencies(found.frequency, found.standard_error, method, **rest)
        for name, found in ((n, estimate.frequencies(n)) for n in estimate.categorical_names)
        if _answered(found)
    }
    return RecalibratedEstimate(estimate, method, means, frequencies)


def _answered(found: Frequencies) -> bool:
    return bool(np.all(np.isfinite(found.standard_error)))


def _structure(
    estimate: Estimate,
    names: Sequence[str],
    order: Sequence[Any] | None = None,
    groups: Iterable[Any] | None = None,
) -> dict[str, Any]:
    """Positions and labels for the numeric dimensions that are known, from lists of names or from the schema."""
    if order is None and groups is None:
        numeric = [x for x in estimate.survey.schema if isinstance(x, Numeric)]
        order = list(_by_label((x.name, x.curve) for x in numeric).values())
        groups = list(_by_label((x.name, x.group) for x in numeric).values())
    curves = [order] if order and isinstance(order[0], str) else list(order or [])
    together = list(groups.values()) if isinstance(groups, Mapping) else list(groups or [])
    place: dict[str, int] = {}
    label: dict[str, str] = {}
    for kind, lists in (("order", curves), ("groups", together)):
        for number, members in enumerate(lists):
            for position, name in enumerate(members):
                if name not in estimate.names:
                    raise InvalidInput.of(
                        kind, name, f"names of numeric dimensions: {', '.join(estimate.names)}"
                    )
                if name in label:
                    raise InvalidInput.of(kind, name, "each name may be in one curve or group")
                label[name] = f"{kind} {number}"
                if kind == "order":
                    place[name] = position
    if not label:
        return {}
    return {"order": [place.get(name) for name in names], "groups": [label.get(name) for name in names]}


def _by_label(pairs: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, label in pairs:
        if label is not None:
            found.setdefault(label, []).append(name)
    return found
