"""One contract for every exact mechanism: what a table must be, however it was designed.

Privacy is proven in integers and fractions, never sampled. Statistical tests are seeded; each has a false-alarm rate
of about 1e-6, so the whole suite's is below 1e-3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from category_laws import grr, histogram, oue
from scipy import stats

from hdr4me.channels.proof import exp_lower
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.table import TableMechanism

BUDGETS = [1e-8, 1e-3, 0.05, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 5000.0]
NUMERIC = [
    ("laplace", {}),
    ("scdf", {}),
    ("staircase", {}),
    ("staircase", {"variant": "variance"}),
    ("duchi", {}),
    ("piecewise", {}),
    ("hybrid", {}),
    ("square_wave", {}),
    ("square_wave", {"domain": (-1.0, 1.0)}),
]
VALUES = [(name, options, epsilon) for name, options in NUMERIC for epsilon in BUDGETS]
VALUES += [(name, {}, e) for name in ("pm_sub", "three_outputs") for e in (1e-3, 0.5, 2.0, 8.0)]
VALUES += [("optimal_mean", {}, e) for e in (0.05, 1.0, 4.0, 12.0)]
VALUES += [("optimal", {"objective": "max"}, e) for e in (1e-8, 0.05, 0.5, 1.0, 2.0, 4.0, 20.0, 5000.0)]
VALUES += [("optimal", {"objective": "mean"}, e) for e in (0.05, 1.0, 4.0)]

CATEGORIES = [(v, e) for v in (2, 5, 256) for e in (1e-3, 1.0, 5.0, 5000.0)]
UNARY = [("oue", e) for e in (1e-8, 0.1, 1.0, 8.0, 5000.0)]
UNARY += [(base, e) for base in ("optimal", "piecewise", "duchi", "laplace") for e in (0.01, 1.0, 4.0)]

_made: dict[str, TableMechanism] = {}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HDR4ME_CACHE_DIR", str(tmp_path_factory.mktemp("designs")))
        yield


def _name(case: tuple) -> str:
    return "-".join(str(part) for part in case)


@pytest.fixture(params=VALUES, ids=_name)
def value_table(request: pytest.FixtureRequest) -> TableMechanism:
    name, options, epsilon = request.param
    key = _name(request.param)
    if key not in _made:
        _made[key] = mechanism(name, epsilon=epsilon, **options).exact()
    return _made[key]


@pytest.fixture(params=CATEGORIES, ids=_name)
def category_table(request: pytest.FixtureRequest) -> Any:
    category_count, epsilon = request.param
    return grr(epsilon, category_count)


@pytest.fixture(params=UNARY, ids=_name)
def unary_table(request: pytest.FixtureRequest) -> Any:
    name, epsilon = request.param
    return oue(epsilon) if name == "oue" else histogram(epsilon, name)


def _law(table: TableMechanism, t: float) -> list[Fraction]:
    """P(cell | t) as exact fractions, from the definition: the two neighboring rows, mixed."""
    low, high = table.domain
    place = (Fraction(t) - Fraction(low)) / (Fraction(high) - Fraction(low)) * (table.n_levels - 1)
    row = min(int(place), table.n_levels - 2)
    share = place - row
    first, second = table.weights[row].tolist(), table.weights[row + 1].tolist()
    return [((1 - share) * a + share * b) / 2**32 for a, b in zip(first, second, strict=True)]


def _all_pairs_private(rows: list[list[int]], limit: Fraction) -> bool:
    """Every report, every ordered pair of inputs: w/w' ≤ limit."""
    for column in zip(*rows, strict=True):
        if len(set(column)) <= 40:  # equal weights make equal pairs
            for a, b in permutations(set(column), 2):
                if Fraction(a, b) > limit:
                    return False
        elif Fraction(max(column), min(column)) > limit:  # the worst pair bounds the other ones
            return False
    return True


def _chi_square_p(codes: np.ndarray, law: np.ndarray) -> float:
    """The p-value of the counts, cells of expectation below 10 put together (and added to the largest)."""
    expected = law * codes.size
    observed = np.bincount(codes, minlength=law.size).astype(float)
    small = expected < 10
    small[expected.argmax()] = True
    expected = np.append(expected[~small], expected[small].sum())
    observed = np.append(observed[~small], observed[small].sum())
    if expected.size < 2:
        return 1.0
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, expected.size - 1))


def test_rows_sum_to_a_power_of_two(value_table: TableMechanism) -> None:
    assert {sum(row) for row in value_table.weights.tolist()} == {2**32}
    assert min(map(min, value_table.weights.tolist())) >= 1
    assert value_table.n_cells <= 256
    assert value_table.n_levels <= 256


def test_privacy_is_proven_for_every_pair_of_inputs(value_table: TableMechanism) -> None:
    rows = value_table.weights.tolist()
    assert _all_pairs_private(rows, exp_lower(value_table.epsilon))
    assert _all_pairs_private(rows, value_table.likelihood_ratio)
    assert value_table.likelihood_ratio <= exp_lower(value_table.epsilon)


def test_mean_is_the_level_in_fractions(value_table: TableMechanism) -> None:
    # decode is rounded to double precision: relative 2^-53 for each of the cells
    decode = [Fraction(d) for d in value_table.decode.tolist()]
    tolerance = 1e-13 * max(10.0, float(np.abs(value_table.decode).max()))
    rows = value_table.weights.tolist()
    chosen = sorted({0, 1, len(rows) // 3, len(rows) // 2, len(rows) - 2, len(rows) - 1})
    for i in chosen:
        mean = sum(w * d for w, d in zip(rows[i], decode, strict=True)) / 2**32
        assert abs(float(mean - Fraction(float(value_table.levels[i])))) <= tolerance


@pytest.mark.parametrize("t", [-1.0, -0.37, 0.0, 0.61])
def test_moments_against_enumeration_in_fractions(value_table: TableMechanism, t: float) -> None:
    # 1e-9: the variance's center is t, the rows' means agree with it to 1e-13 of the largest decoded value
    law = _law(value_table, t)
    decode = [Fraction(d) for d in value_table.decode.tolist()]
    mean = sum(p * d for p, d in zip(law, decode, strict=True))
    variance = sum(p * (d - mean) ** 2 for p, d in zip(law, decode, strict=True))
    third = sum(p * abs(d - mean) ** 3 for p, d in zip(law, decode, strict=True))
    scale = max(1.0, float(np.abs(value_table.decode).max()))
    assert float(value_table.mean(t)) == t
    assert abs(float(mean) - t) <= 1e-12 * scale
    assert float(value_table.variance(t)) == pytest.approx(float(variance), rel=1e-9, abs=1e-18)
    assert float(value_table.abs_third_moment(t)) == pytest.approx(float(third), rel=1e-9, abs=1e-18)


def test_atoms_and_cdf_are_the_law(value_table: TableMechanism) -> None:
    place, mass = value_table.atoms(0.25)
    assert mass == pytest.approx([float(p) for p in _law(value_table, 0.25)], rel=1e-12)
    assert float(mass.sum()) == pytest.approx(1.0, abs=1e-12)
    low, high = value_table.support
    assert (place.min(), place.max()) == (low, high)
    assert float(value_table.cdf(high, 0.25)) == pytest.approx(1.0, abs=1e-12)
    assert float(value_table.cdf(low - 1, 0.25)) == 0.0
    below = mass[place <= value_table.decode[0]].sum()
    assert float(value_table.cdf(value_table.decode[0], 0.25)) == pytest.approx(float(below), abs=1e-12)


@pytest.mark.parametrize("t", [-1.0, 0.3])
def test_samples_follow_the_law(value_table: TableMechanism, t: float) -> None:
    """Chi-square on the codes (p > 1e-6), and mean and variance within 5 standard errors (5.7e-7 each)."""
    n = 50_000
    rng = np.random.default_rng(20240229)
    codes = value_table.sample_cells(np.full(n, t), rng)
    assert _chi_square_p(codes, value_table.law_at(t)) > 1e-6
    sample = value_table.sample(np.full(n, t), rng)
    centered = sample - t
    mass = value_table.law_at(t)
    variance = float(value_table.variance(t))
    fourth = float(mass @ (value_table.decode - t) ** 4)
    floor = 2.0**-17 * 2 / (value_table.n_levels - 1)  # the rounding fraction has 16 bits
    assert abs(centered.mean()) < 5 * np.sqrt(variance / n) + floor
    spread = np.sqrt(max(0.0, fourth - variance**2) / n)
    if spread < variance / 20:  # otherwise the sample is too small for a normal mean of squares
        assert abs((centered**2).mean() - variance) < 5 * spread + 1e-4 * variance


def test_randomized_response_is_private_and_unbiased(category_table: TableMechanism) -> None:
    rows = category_table.weights.tolist()
    assert {sum(row) for row in rows} == {2**32}
    assert _all_pairs_private(rows, exp_lower(category_table.epsilon))
    p, q = Fraction(rows[0][0], 2**32), Fraction(rows[0][1], 2**32)
    hit, miss = (Fraction(d) for d in category_table.decode.tolist())
    scale = max(1.0, float(np.abs(category_table.decode).max()))
    assert abs(float(p * hit + (1 - p) * miss) - 1) <= 1e-14 * scale
    assert abs(float(q * hit + (1 - q) * miss)) <= 1e-14 * scale


def test_randomized_response_samples_follow_the_law(category_table: TableMechanism) -> None:
    """Chi-square, p > 1e-6."""
    codes = category_table.sample_cells(np.ones(50_000, dtype=int), np.random.default_rng(7))
    assert _chi_square_p(codes, category_table.probabilities[1]) > 1e-6


def test_unary_encoding_is_private_for_every_pair_of_categories(unary_table: TableMechanism) -> None:
    """Category a against b: entry a goes from present to absent, entry b back; all pairs of their reports."""
    absent, present = unary_table.weights.tolist()
    assert sum(absent) == sum(present) == 2**32
    limit = exp_lower(unary_table.epsilon)
    one = {Fraction(p, a) for p, a in zip(present, absent, strict=True)}
    worst = max(one) / min(one)
    if len(one) <= 40:
        assert all(x / y <= limit for x in one for y in one)
    assert worst == unary_table.likelihood_ratio <= limit


def test_unary_encoding_is_unbiased(unary_table: TableMechanism) -> None:
    decode = [Fraction(d) for d in unary_table.decode.tolist()]
    scale = max(10.0, float(np.abs(unary_table.decode).max()))
    for entry, row in enumerate(unary_table.weights.tolist()):
        mean = sum(w * d for w, d in zip(row, decode, strict=True)) / 2**32
        assert abs(float(mean) - entry) <= 1e-13 * scale
        variance = sum(w * (d - entry) ** 2 for w, d in zip(row, decode, strict=True)) / 2**32
        assert float(unary_table.variance(float(entry))) == pytest.approx(float(variance), rel=1e-9)


def test_unary_encoding_samples_follow_the_law(unary_table: TableMechanism) -> None:
    """Chi-square, p > 1e-6."""
    for entry in (0, 1):
        codes = unary_table.sample_cells(np.full(50_000, entry), np.random.default_rng(11 + entry))
        assert _chi_square_p(codes, unary_table.probabilities[entry]) > 1e-6
