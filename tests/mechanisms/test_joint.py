"""Joint designs: proven integers, unbiased decoders, and the variance that was promised."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hdr4me.channels import Table
from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import cache
from hdr4me.mechanisms.cache import cached_design
from hdr4me.mechanisms.joint import number_pair, optional_number, second_moments
from hdr4me.mechanisms.priors import as_prior

PRESENT = 0.9


def proven(design: Table) -> None:
    """Everything a deployed channel must keep, by fractions only."""
    for row in design.weights:
        assert sum(row) == 1 << 32
        assert min(row) >= 1
    columns = list(zip(*design.weights, strict=True))
    assert len(columns) <= 256
    assert len(design.weights) <= 256
    loss = max(Fraction(max(column), min(column)) for column in columns)
    assert loss == design.likelihood_ratio
    assert loss <= exp_lower(design.epsilon)
    for name, decoder in design.decoders.items():
        exact = [Fraction(y) for y in decoder]
        for row, mean in zip(design.weights, design.targets[name], strict=True):
            got = sum((w * y for w, y in zip(row, exact, strict=True)), Fraction(0)) / (1 << 32)
            assert abs(got - Fraction(mean)) <= Fraction(1, 10**9)


@pytest.mark.parametrize(("epsilon", "bar"), [(1.0, 5.46), (2.0, 1.44), (4.0, 0.508)])
def test_an_optional_number_is_proven_and_precise(epsilon: float, bar: float) -> None:
    """n·Var of the mean among those with a number: 90 % have one, uniform. Asking one of two: 10.6, 2.86, 1.05."""
    design = optional_number(epsilon)
    proven(design)
    shares = np.append(PRESENT * as_prior("uniform").on_levels(design.inputs[0].n_levels), 1 - PRESENT)
    value, present = second_moments(design)
    assert float(shares @ value) / PRESENT**2 <= bar  # the mean itself is 0
    presence = float(shares @ present) - PRESENT**2
    assert presence <= {1.0: 2.7, 2.0: 0.45, 4.0: 0.12}[epsilon]


@pytest.mark.parametrize(("epsilon", "bar"), [(1.0, 8.5), (2.0, 2.05), (3.0, 0.94), (4.0, 0.600)])
def test_a_pair_is_proven_and_precise(epsilon: float, bar: float) -> None:
    """The second moment of each number, both uniform; one of two numbers asked has 9.1, 2.34, 1.25, 0.91."""
    design = number_pair(epsilon)
    proven(design)
    one = as_prior("uniform").on_levels(design.inputs[0].n_levels)
    shares = np.outer(one, one).ravel()
    for second in second_moments(design):
        assert float(shares @ second) <= bar
    assert len(design.weights) == design.inputs[0].n_levels ** 2 <= 81
    assert len(design.weights[0]) <= 256


def test_a_pair_serves_unequal_priors() -> None:
    """A prior on one number lowers that number's second moment; unbiasedness and proof do not depend on it."""
    design = number_pair(2.0, first=stats.norm(0, 0.1), second="uniform")
    proven(design)
    first = as_prior(stats.norm(0, 0.1)).on_levels(design.inputs[0].n_levels)
    second = as_prior("uniform").on_levels(design.inputs[0].n_levels)
    shares = np.outer(first, second).ravel()
    even = number_pair(2.0)
    own = [float(shares @ moments) for moments in second_moments(design)]
    other = [float(shares @ moments) for moments in second_moments(even)]
    assert all(a < b * 1.02 for a, b in zip(own, other, strict=True))
    assert sum(own) < 0.95 * sum(other)


def test_larger_budgets_use_the_design_of_the_largest() -> None:
    assert optional_number(11.0) is optional_number(10.0)
    proven(optional_number(10.0))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 0.01, float("nan")])
def test_budgets_that_no_joint_design_supports(epsilon: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        number_pair(epsilon)


@pytest.mark.parametrize(
    "bad", [{"present": 0.0}, {"present": 1.0}, {"presence_weight": 0.0}, {"prior": "skew"}]
)
def test_bad_options(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        optional_number(1.0, **bad)


def test_designs_are_kept_and_checked(tmp_path, monkeypatch) -> None:
    """A second process reads the file; a damaged file is designed again."""
    monkeypatch.setenv("HDR4ME_CACHE_DIR", str(tmp_path))
    first = optional_number(1.0)
    (path,) = tmp_path.glob("design-*.json")
    cache._memory.clear()

    def refuse() -> Table:
        raise AssertionError("designed twice")

    key = json.loads(path.read_bytes()[32:])["key"]
    assert cached_design(json.loads(key), refuse) == first
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    cache._memory.clear()
    with pytest.raises(AssertionError, match="designed twice"):
        cached_design(json.loads(key), refuse)
    monkeypatch.setenv("HDR4ME_CACHE_DIR", "")
    assert optional_number(1.0) == first
    cache._memory.clear()
