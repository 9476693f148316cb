"""`exact`: any law becomes a proven, unbiased table whose variance is the law's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import exact, mechanism


@dataclass(frozen=True)
class TruncatedLaplace:
    """A law of another package: Laplace noise cut to [-1, 1] and rescaled; its mean is not affine in the value."""

    epsilon: float
    name = "truncated"
    domain = (-1.0, 1.0)
    support = (-1.0, 1.0)

    def _raw(self, x: np.ndarray, t: np.ndarray) -> np.ndarray:
        z = (np.asarray(x, float) - t) * self.epsilon / 4
        return np.where(z < 0, np.exp(np.minimum(z, 0)) / 2, 1 - np.exp(-np.maximum(z, 0)) / 2)

    def cdf(self, x, t):
        x, t = np.clip(np.asarray(x, float), -1, 1), np.asarray(t, float)
        low, high = self._raw(-1.0, t), self._raw(1.0, t)
        return (self._raw(x, t) - low) / (high - low)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_a_law_of_ones_own_is_proven_and_unbiased(epsilon: float) -> None:
    table = hd.exact(TruncatedLaplace(epsilon))
    loss = max(Fraction(int(c.max()), int(c.min())) for c in table.weights.T)
    assert loss == table.likelihood_ratio
    assert loss <= exp_lower(epsilon)
    t = np.linspace(-1, 1, 41)
    np.testing.assert_allclose(table.law_at(t) @ table.decode, t, atol=1e-11 * np.abs(table.decode).max())


@pytest.mark.parametrize("name", ["piecewise", "hybrid", "pm_sub", "duchi", "laplace", "three_outputs"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_tables_variance_is_the_laws(name: str, epsilon: float) -> None:
    """Within 1.5 %: bins, levels and integers cost no more."""
    law = mechanism(name, epsilon=epsilon)
    table = exact(law)
    even = float(np.mean(law.variance(np.linspace(-1, 1, 2001))))
    assert table.mean_variance() == pytest.approx(even, rel=0.015)
    assert table.max_variance() == pytest.approx(
        float(law.variance(np.linspace(-1, 1, 201)).max()), rel=0.015
    )


def test_levels_and_cells_can_be_given() -> None:
    table = exact(mechanism("piecewise", epsilon=1.0), levels=9, cells=64)
    assert (table.n_levels, table.n_cells) == (9, 64)


def test_a_table_is_its_own() -> None:
    table = mechanism("duchi", epsilon=1.0).exact()
    assert exact(table) is table


def test_the_domain_is_mapped_to_the_tables() -> None:
    """Square wave on [0, 1] and on [-1, 1] are the same table."""
    one, other = (exact(mechanism("square_wave", epsilon=1.0, domain=d)) for d in ((0, 1), (-1, 1)))
    np.testing.assert_allclose(one.decode, other.decode, rtol=1e-5)


@dataclass(frozen=True)
class Loud:
    """A law that claims an ε it does not keep."""

    epsilon: float = 1.0
    name = "loud"
    support = (-1.0, 1.0)

    def cdf(self, x, t):
        return np.where(np.asarray(x) < 0, 0.45 - 0.4 * np.asarray(t), 1.0)


@dataclass(frozen=True)
class Deaf:
    """A law that does not depend on the value."""

    epsilon: float = 1.0
    support = (-1.0, 1.0)

    def cdf(self, x, t):
        return np.clip((np.asarray(x) + 1) / 2 + 0 * np.asarray(t), 0, 1)


@dataclass(frozen=True)
class Wrong(Deaf):
    def cdf(self, x, t):
        return 3.0 * np.asarray(x) + 0 * np.asarray(t)


@pytest.mark.parametrize(
    ("law", "options", "match"),
    [
        (Loud(), {}, "not private at its epsilon"),
        (Deaf(), {}, "the same mean at both ends"),
        (Wrong(), {}, "must return probabilities"),
        (object(), {}, "with the attribute epsilon"),
        (mechanism("duchi", epsilon=1.0), {"levels": 1}, "levels = 1"),
        (mechanism("duchi", epsilon=1.0), {"cells": 300}, "cells = 300"),
        (mechanism("pm_sub", epsilon=1e-8), {}, "epsilon = 1e-08"),
    ],
)
def test_what_is_refused(law: object, options: dict[str, int], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        exact(law, **options)


def test_unbounded_laws_are_cut_where_little_is_left() -> None:
    table = exact(mechanism("laplace", epsilon=1.0))
    assert math.isclose(table.support[1], 1 + 2 * math.log(1 / 2e-4), rel_tol=0.2)
