"""What is known about the values and wanted of them, dimension by dimension: from arguments to groups.

A prior for all numbers is on the scale [−1, 1]. A prior, values or a tolerance for a dimension by name are in the
dimension's own units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.planner.workload import UNIFORM, Group, Workload, size_of
from hdr4me.survey.values import as_number


def half_range(dimension: Any) -> float:
    """What 1 on the scale [−1, 1] is in a number's own units: the norm of a vector, and 1 for a frequency."""
    low, high = dimension.bounds
    return 1.0 if dimension.categories else (high - low) / 2


def scaled_tolerances(tolerance: Any, schema: Any) -> tuple[float | None, dict[str, float], dict[str, float]]:
    """The plan's tolerance on [−1, 1], for each dimension its own over that, and those given in own units.

    >>> from hdr4me.survey import Numeric, Schema
    >>> scaled_tolerances({"age": 6.0}, Schema([Numeric("age", 0, 120), Numeric("height", 50, 250)]))
    (0.1, {'age': 1.0, 'height': inf}, {'age': 6.0})
    """
    if not isinstance(tolerance, Mapping):
        return tolerance, {}, {}
    if schema is None:
        raise InvalidInput("tolerance by name needs a schema: its dimensions have names and units")
    known = {dimension.name: dimension for dimension in schema.dimensions}
    for name in tolerance:
        if name not in known:
            raise InvalidInput.of("tolerance", {name: tolerance[name]}, f"one of {', '.join(known)}")
    if not tolerance:
        raise InvalidInput.of("tolerance", tolerance, "at least one dimension")
    own = {name: _own_tolerance(known[name], given) for name, given in tolerance.items()}
    scaled = {name: value / half_range(known[name]) for name, value in own.items()}
    least = min(scaled.values())
    return least, {name: scaled.get(name, np.inf) / least for name in known}, own


def _own_tolerance(dimension: Any, given: Any) -> float:
    """A tolerance in a dimension's own units: a number, or a text of a number and the unit that the schema gives."""
    own = given
    if isinstance(given, str):
        number, _, word = " ".join(given.split()).partition(" ")
        unit = getattr(dimension, "unit", None)
        if word and word != unit:
            meant = f"measured in {unit!r}" if unit else "without a unit in the schema"
            raise InvalidInput.of(
                "tolerance",
                {dimension.name: given},
                f"{dimension.name!r} is {meant}: write {dimension.name}={number}, which is in the dimension's own "
                f"units" + ("" if unit else f', or declare unit = "{word}"'),
            )
        try:
            own = float(number)
        except ValueError:
            own = None
    if isinstance(own, bool) or not isinstance(own, int | float) or not 0 < own < np.inf:
        raise InvalidInput.of(
            "tolerance", {dimension.name: given}, "a positive number in the dimension's own units"
        )
    return float(own)


def prior_by_name(tally: Any, schema: Any) -> dict[str, Any]:
    """What a tally knows of the schema's dimensions, in their own units."""
    if schema is None:
        raise InvalidInput("a tally as prior needs a schema: its dimensions have names and units")
    known, names = tally.priors(), [dimension.name for dimension in schema.dimensions]
    found = {name: known[name] for name in names if name in known}
    if not found:
        raise InvalidInput.of(
            "prior", f"a tally of {', '.join(known)}", f"it must tell one of {', '.join(names)}"
        )
    return found


def workload_of(
    schema: Any, n_dims: int, n_categories: int | None, prior: Any, values: Any, scales: Mapping[str, float]
) -> Workload:
    """Groups of dimensions with the same size, prior and tolerance."""
    if prior is not None and values is not None:
        raise InvalidInput("prior together with values is not allowed: give one")
    try:
        if schema is None:
            return _without_names(n_dims, n_categories, prior, values)
        return _with_names(schema, prior, values, scales)
    except InvalidInput as refusal:
        if values is None or refusal.parameters != ("prior",):
            raise
        raise InvalidInput.of("values", refusal.value, refusal.allowed) from None


def _with_names(schema: Any, prior: Any, values: Any, scales: Mapping[str, float]) -> Workload:
    if values is not None and not isinstance(values, Mapping):
        raise InvalidInput.of(
            "values", type(values).__name__, "with a schema, a mapping from dimension to values"
        )
    known: Mapping[str, Any] = values if values is not None else prior if isinstance(prior, Mapping) else {}
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
            own = prior_by_name(own, schema).get(dimension.name)
            if own is None:
                raise InvalidInput.of(
                    "prior", dimension.name, "its tally must tell the distribution of this dimension"
                )
        kind = _group(dimension, own, common)
        law = same.setdefault(kind.prior.key, kind.prior)
        kinds.append(replace(kind, prior=law, scale=scales.get(dimension.name, 1.0)))
    count = Counter(kinds)
    order = sorted(count, key=lambda kind: (kind.size, kind.choices, kind.length, kind.optional))
    at = {kind: k for k, kind in enumerate(order)}
    return Workload(
        tuple(replace(kind, count=count[kind]) for kind in order), tuple(at[kind] for kind in kinds)
    )


def _group(dimension: Any, own: Any, common: Prior) -> Group:
    """One dimension, and what is known of its values."""
    size, choices, length, optional = size_of(dimension)
    law = UNIFORM if size or length else common
    group = Group(1, size, law, choices=choices, length=length, optional=bool(optional))
    if own is None:
        return group
    if size:
        f = _shares(dimension, own, choices)
        return replace(group, squares=float(np.sum(f**2)), chosen=float(f.sum()) if choices else None)
    if optional:
        own, present = _with_gaps(dimension, own, vectors=bool(length))
        group = replace(group, present=present)
    elif isinstance(own, Mapping) and set(own) & {
        "present",
        "values",
    }:  # it was optional in an earlier collection
        own = own.get("values")
    if own is None:
        return group
    if length:
        squares, energy = _lengths(dimension, own)
        return replace(group, squares=squares, energy=energy)
    return replace(group, prior=_own_units(dimension, own))


def _without_names(n_dims: int, n_categories: int | None, prior: Any, values: Any) -> Workload:
    if isinstance(prior, Mapping) or isinstance(values, Mapping):
        raise InvalidInput("a prior or values by name need a schema: its dimensions have names and units")
    if n_categories is not None and not (prior in (None, "uniform") and values is None):
        raise InvalidInput("prior and values are not allowed with n_categories: use a schema to name them")
    if values is None:
        return Workload.of_size(n_dims, n_categories, UNIFORM if prior is None else as_prior(prior))
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        return Workload.of_size(n_dims, None, as_prior(table))
    if table.ndim != 2 or table.shape[1] != n_dims:
        raise InvalidInput.of("values", f"shape {table.shape}", f"one column for each of {n_dims} dimensions")
    return Workload(tuple(Group(1, prior=as_prior(column)) for column in table.T))


def _own_units(dimension: Any, given: Any) -> Prior:
    """A prior in the dimension's own units, or a `Prior` that is on [−1, 1] already."""
    if isinstance(given, Prior) or (isinstance(given, str) and given == "uniform"):
        return as_prior(given)
    low, high = dimension.bounds
    own = as_prior(given, low, high)
    return Prior(np.clip((own.values - low) / half_range(dimension) - 1.0, -1.0, 1.0), own.shares)


def _with_gaps(dimension: Any, given: Any, *, vectors: bool) -> tuple[Any, float | None]:
    """What is known of users who have an optional value (None: nothing), and their share, if it is known.

    A mapping has "present", "values" or both; values with gaps among them give both; a distribution or a histogram is
    about those who have a number.
    """
    if isinstance(given, Mapping):
        share = _given_share(dimension, given, vectors=vectors)
        inner = given.get("values") if "values" in given else None
        known, counted = (None, None) if inner is None else _with_gaps(dimension, inner, vectors=vectors)
        return known, counted if share is None else share
    histogram = not vectors and isinstance(given, tuple) and len(given) == 2 and all(map(np.ndim, given))
    law = isinstance(given, str | Prior) or hasattr(given, "ppf") or not isinstance(given, Iterable)
    if histogram or law:
        return given, None
    listed = given.to_pylist() if hasattr(given, "to_pylist") else list(given)
    if vectors:
        there: Any = [value for value in listed if dimension.has(value)]
    else:
        numbers = np.array([as_number(x) for x in listed], np.float64)
        there = numbers[~np.isnan(numbers)]
    if not len(there) and (len(listed) or not vectors):
        kind = "vector" if vectors else "value"
        raise InvalidInput.of("prior", dimension.name, f"at least one {kind} that is not missing")
    return there, len(there) / max(len(listed), 1)


def _given_share(dimension: Any, given: Mapping[str, Any], *, vectors: bool) -> float | None:
    """The share of users who have an optional number or vector, if it is given."""
    share = given.get("present")
    numeric = share is None or (isinstance(share, int | float) and not isinstance(share, bool))
    if not set(given) <= {"present", "values"} or not numeric or not (share is None or 0 < share <= 1):
        kind = "vector" if vectors else "number"
        words = (
            f"of an optional {kind} {{'present': a share above 0 and up to 1, 'values': what is expected}}"
        )
        raise InvalidInput.of("prior", {dimension.name: given}, words)
    return None if share is None else float(share)


def _lengths(dimension: Any, given: Any) -> tuple[float, float]:
    """|E x|² and E|x|² of the vectors that are given, cleaned as a device cleans them, on the scale of norm 1."""
    words = "vectors in the dimension's own units: lists of numbers, or texts with '|' between them"
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidInput.of("prior", dimension.name, words)
    found = np.array([dimension.clean(value) for value in given], np.float64) / dimension.norm
    if not found.size:
        raise InvalidInput.of("prior", dimension.name, words)
    return float(np.sum(found.mean(axis=0) ** 2)), float(np.mean(np.sum(found**2, axis=1)))


def _shares(dimension: Any, given: Any, choices: int) -> NDArray[np.float64]:
    """The share of users with each category: as given, or counted; those of a single choice sum to 1."""
    categories = list(dimension.categories)
    if isinstance(given, Mapping):
        f = np.array([float(given.get(label, 0.0)) for label in categories])
    elif choices:
        f, n = np.zeros(len(categories)), 0
        for value in given:
            f[list(dimension.clean(value))] += 1.0
            n += 1
        f /= max(n, 1)
    else:
        count = Counter(str(label) for label in given)
        f = np.array([float(count[label]) for label in categories])
    if not choices:
        if not (f >= 0).all() or f.sum() <= 0:
            raise InvalidInput.of(
                "prior", dimension.name, f"frequencies or labels of {', '.join(categories[:5])} …"
            )
        return np.asarray(f / f.sum())
    if not ((f >= 0) & (f <= 1)).all() or f.sum() > dimension.at_most:
        raise InvalidInput.of(
            "prior",
            dimension.name,
            f"shares of users from 0 to 1 that sum to at most {dimension.at_most}, or selections",
        )
    return f
