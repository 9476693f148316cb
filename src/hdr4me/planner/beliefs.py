"""Priors, values and tolerances by dimension in own units, converted to groups of a workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.planner.workload import UNIFORM, Group, Workload
from hdr4me.survey.schema import Tolerance
from hdr4me.survey.values import as_number


def scaled_tolerances(tolerance: Any, schema: Any) -> tuple[float | None, dict[str, float], dict[str, float]]:
    """The smallest tolerance on [−1, 1], the ratio of each dimension's tolerance to it, and those in own units."""
    if not isinstance(tolerance, Mapping):
        return tolerance, {}, {}
    if schema is None:
        raise InvalidInput(
            "a tolerance by name needs a schema, which has the names and units of the dimensions"
        )
    own = Tolerance.of(tolerance, schema)
    scaled = own.scaled(schema)
    least = min(scaled.values())
    return least, {name: scaled.get(name, np.inf) / least for name in schema.names}, dict(own.by_dimension)


def prior_by_name(tally: Any, names: Sequence[str]) -> dict[str, Any]:
    """The priors that a tally gives for these dimensions, in own units."""
    known = tally.priors()
    given_priors = {name: known[name] for name in names if name in known}
    if not given_priors:
        raise InvalidInput.of("prior", f"a tally of {', '.join(known)}", f"a tally of {', '.join(names)}")
    return given_priors


def workload_of(
    schema: Any, dims: int, category_count: int | None, prior: Any, scales: Mapping[str, float]
) -> Workload:
    """Groups of dimensions with the same size, prior and tolerance."""
    return (
        _without_names(dims, category_count, prior) if schema is None else _with_names(schema, prior, scales)
    )


def _with_names(schema: Any, prior: Any, scales: Mapping[str, float]) -> Workload:
    known: Mapping[str, Any] = prior if isinstance(prior, Mapping) else {}
    common = UNIFORM if prior is None or isinstance(prior, Mapping) else as_prior(prior)
    names = [dimension.name for dimension in schema.dimensions]
    for name in known:
        if name not in names:
            raise InvalidInput.of("prior", name, f"one of {', '.join(names)}")
    same: dict[str, Prior] = {common.key: common}
    kinds: list[Group] = []
    for dimension in schema.dimensions:
        own = known.get(dimension.name)
        if hasattr(own, "priors"):
            own = prior_by_name(own, [dimension.name])[dimension.name]
        kind = _group(dimension, own, common)
        law = same.setdefault(kind.prior.key, kind.prior)
        kinds.append(replace(kind, prior=law, scale=scales.get(dimension.name, 1.0)))
    return Workload.grouped(kinds)


def _group(dimension: Any, own: Any, common: Prior) -> Group:
    """The group of one dimension with the given information about its values."""
    group = Group.of(dimension, common)
    size, choices, length, optional = group.shape
    if own is None:
        return group
    if size:
        f = _shares(dimension, own, choices)
        return replace(group, squares=float(np.sum(f**2)), chosen=float(f.sum()) if choices else None)
    present: float | None = None
    kind = "vector" if length else "number"
    if isinstance(own, Mapping) and (optional or set(own) & {"present", "values"}):
        present, own = _declared_share(dimension, own, kind), own.get("values")
    if optional and own is not None:
        own, counted = _without_gaps(dimension, own, kind)
        present = counted if present is None else present
    if optional:
        group = replace(group, present=present)
    if own is None:
        return group
    if length:
        squares, energy = _lengths(dimension, own)
        return replace(group, squares=squares, energy=energy)
    return replace(group, prior=_own_units(dimension, own))


def _without_names(dims: int, category_count: int | None, prior: Any) -> Workload:
    if isinstance(prior, Mapping):
        raise InvalidInput("a prior by name needs a schema, which has the names and units of the dimensions")
    if category_count is not None and not (prior is None or isinstance(prior, str)):
        raise InvalidInput("prior is not allowed with category_count: use a schema")
    if getattr(prior, "ndim", 1) != 2:
        return Workload.of_size(dims, category_count, UNIFORM if prior is None else as_prior(prior))
    table = np.asarray(prior, dtype=np.float64)
    if table.shape[1] != dims:
        raise InvalidInput.of("prior", f"shape {table.shape}", f"one column for each of {dims} dimensions")
    return Workload(tuple(Group(1, prior=as_prior(column)) for column in table.T))


def _own_units(dimension: Any, given: Any) -> Prior:
    """A prior in the dimension's own units, or a `Prior` that is on [−1, 1] already."""
    if isinstance(given, Prior) or (isinstance(given, str) and given == "uniform"):
        return as_prior(given)
    low, high = dimension.bounds
    own = as_prior(given, low, high)
    return Prior(np.clip((own.values - low) / dimension.half_range - 1.0, -1.0, 1.0), own.shares)


def _without_gaps(dimension: Any, given: Any, kind: str) -> tuple[Any, float | None]:
    """The present values and the share of users with a value, which a distribution or histogram does not give."""
    histogram = isinstance(given, tuple) and len(given) == 2 and all(map(np.ndim, given))
    law = isinstance(given, str | Prior) or hasattr(given, "ppf") or not isinstance(given, Iterable)
    if law or (histogram and kind == "number"):
        return given, None
    listed = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
    if kind == "vector":
        there: list[Any] = [value for value in listed if dimension.has(value)]
    else:
        there = [x for x in map(as_number, listed) if not np.isnan(x)]
    if not there and (listed or kind == "number"):
        raise InvalidInput.of("prior", dimension.name, f"at least one {kind} that is not missing")
    return there, len(there) / max(len(listed), 1)


def _declared_share(dimension: Any, given: Mapping[str, Any], kind: str) -> float | None:
    """The share of users who have an optional number or vector, if it is given."""
    share = given.get("present")
    number = isinstance(share, int | float) and not isinstance(share, bool) and 0 < share <= 1
    if not set(given) <= {"present", "values"} or not (share is None or number):
        words = f"of an optional {kind} {{'present': a share above 0 and up to 1, 'values': a prior}}"
        raise InvalidInput.of("prior", {dimension.name: list(given)}, words)
    return None if share is None else float(share)


def _lengths(dimension: Any, given: Any) -> tuple[float, float]:
    """|E x|² and E|x|² of the given vectors, cleaned as on a device and divided by the norm."""
    words = "vectors in the dimension's own units: lists of numbers, or texts with '|' between them"
    listed = [] if isinstance(given, str | Mapping) or not isinstance(given, Iterable) else list(given)
    if not listed:
        raise InvalidInput.of("prior", dimension.name, words)
    found = np.array([dimension.clean(value) for value in listed], np.float64) / dimension.norm
    return float(np.sum(found.mean(axis=0) ** 2)), float(np.mean(np.sum(found**2, axis=1)))


def _shares(dimension: Any, given: Any, choices: int) -> NDArray[np.float64]:
    """The share of users with each category, given or counted; shares of a single choice sum to 1."""
    categories = list(dimension.categories)
    if isinstance(given, Mapping):
        f = np.array([float(given.get(label, 0.0)) for label in categories])
    elif choices:
        chosen = [list(dimension.clean(value)) for value in given]
        f = np.bincount([k for each in chosen for k in each], minlength=len(categories)) / max(len(chosen), 1)
    else:
        count = Counter(str(label) for label in given)
        f = np.array([float(count[label]) for label in categories])
    total, most = float(f.sum()), dimension.at_most if choices else np.inf
    if not choices and total > 0:
        f = f / total
    if not ((f >= 0) & (f <= 1)).all() or total > most or not (choices or total > 0):
        words = f"frequencies or labels of {', '.join(categories[:5])} …"
        if choices:
            words = f"shares of users from 0 to 1 that sum to at most {most}, or selections"
        raise InvalidInput.of("prior", dimension.name, words)
    return np.asarray(f, np.float64)
