"""The covariance of the rows of any survey: by formula, by enumeration of the outputs, and by simulation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdr4me import plan
from hdr4me.channels import Channel, KSubset
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.oracles import projective
from hdr4me.channels.privset.channel import PrivSet, rank
from hdr4me.channels.subset import Subset
from hdr4me.comparison.measure import predicted
from hdr4me.errors import InvalidInput
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import ask
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey, Vector

LETTERS = list("abcdef")


def _people(n: int) -> pa.Table:
    """Two numbers with a correlation of .98, the first also optional; one category, several, and a vector."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, n)
    y = np.clip(x + rng.normal(0, 0.1, n), -1, 1)
    own = rng.choice(6, n, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    direction = rng.normal(size=(n, 1)) * [0.3, 0.3, -0.3]
    missing = rng.random(n) < 0.3
    vectors = [None if gone else row for gone, row in zip(missing, (direction / 3).tolist(), strict=True)]
    return pa.table(
        {
            "x": 50 * x + 50,
            "y": y,
            "some": pa.array([None if gone else v for gone, v in zip(missing, x, strict=True)], pa.float64()),
            "letter": [LETTERS[i] for i in own],
            "letters": [[LETTERS[i], LETTERS[0]] if i else [LETTERS[1]] for i in own],
            "vector": (direction / 3).tolist(),
            "some vectors": pa.array(vectors, pa.list_(pa.float64())),
        }
    )


X, Y, SOME = Numeric("x", 0, 100), Numeric("y", -1, 1), Numeric("some", -1, 1, optional=True)
LETTER = Categorical("letter", LETTERS)
CASES: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "numbers": ([X, Y], {"epsilon": 8.0}, "mean"),
    "numbers of which two are sampled": ([X, Y, SOME], {"epsilon": 4.0, "sampled": 2}, "mean"),
    "weighted": ([X, Y], {"epsilon": 2.0, "weights": {"x": 3, "y": 1}}, "mean"),
    "pair": ([X, Y], {"epsilon": 4.0, "pair_questions": [("x", "y")]}, "mean"),
    "block": ([X, Y], {"epsilon": 4.0, "block_questions": [("x", "y")]}, "mean"),
    "share": ([SOME], {"epsilon": 4.0}, "share"),
    "grr": ([LETTER], {"epsilon": 1.0, "categorical": "grr"}, "frequency"),
    "subset": ([LETTER], {"epsilon": 1.0, "categorical": "subset"}, "frequency"),
    "oue": ([LETTER], {"epsilon": 1.0, "categorical": "oue"}, "frequency"),
    "projective": ([LETTER], {"epsilon": 1.0, "categorical": "projective"}, "frequency"),
    "selection": ([Selection("letters", LETTERS, at_most=2)], {"epsilon": 2.0}, "chosen"),
    "vector": ([Vector("vector", 3, 1.0)], {"epsilon": 4.0}, "mean"),
    "optional vector": ([Vector("some vectors", 3, 1.0, optional=True)], {"epsilon": 4.0}, "mean"),
}


def _survey(case: str) -> tuple[Survey, str]:
    dimensions, options, statistic = CASES[case]
    return Survey(Schema(dimensions), **options), statistic


@pytest.mark.parametrize("case", CASES)
def test_the_diagonal_is_the_variances(case: str) -> None:
    """More users than one part: the parts add up."""
    survey, statistic = _survey(case)
    found = predicted(survey, _people(5000), statistic)
    assert found is not None
    np.testing.assert_allclose(np.diag(found.covariance), found.variances, rtol=1e-10)
    assert found.mse_law.mean == pytest.approx(found.mse, rel=1e-10)
    np.testing.assert_allclose(
        np.sqrt(np.diag(found.own_covariance)), list(found.standard_errors.values()), rtol=1e-10
    )


@pytest.mark.no_cover
@pytest.mark.parametrize(("case", "runs"), [("numbers", 150), ("subset", 400), ("pair", 400)])
def test_simulated_collections(case: str, runs: int) -> None:
    """Each entry is within 5 standard errors: a false-alarm rate below 1e-5 for all three cases.

    Without its covariances, the correlation of −.95 (numbers), −.21 (subset) and .24 (pair) would be 0, which is 8, 4
    and 5 standard errors away.
    """
    survey, statistic = _survey(case)
    table = _people(1000)
    found = predicted(survey, table, statistic)
    assert found is not None
    values = [ask(simulate_tally(table, survey, seed=seed), statistic, None).value for seed in range(runs)]
    expected = found.own_covariance
    sd = np.sqrt(np.diag(expected))
    noise = np.sqrt((np.outer(sd, sd) ** 2 + expected**2) / runs)
    assert np.all(np.abs(np.cov(np.transpose(values)) - expected) <= 5 * noise)


def test_the_correlation_of_two_numbers_of_which_one_is_sampled() -> None:
    """−C(d − m)/(nm(d − 1)); for equal uniform values at d = 2, m = 1, ε = 8 a correlation of about −.95.

    Piecewise has −.928, which the reproduction simulates as −.930 ± .005, and the table of least variance −.962.
    """
    even = np.linspace(-1, 1, 2000)
    table = pa.table({"a": even, "b": even, "c": even})
    names = [Numeric(name, -1, 1) for name in "abc"]
    for mechanism, correlation in (("piecewise", -0.928), ("optimal", -0.962)):
        two = predicted(Survey(Schema(names[:2]), epsilon=8.0, mechanism=mechanism), table, "mean")
        assert two is not None
        assert two.covariance[0, 1] / two.variances[0] == pytest.approx(correlation, abs=0.001)
        assert two.covariance[0, 1] == pytest.approx(-even.var() / 2000, rel=1e-9)
    three = predicted(Survey(Schema(names), epsilon=8.0, sampled=2), table, "mean")
    assert three is not None
    assert three.covariance[0, 2] == pytest.approx(-even.var() * (3 - 2) / (2000 * 2 * (3 - 1)), rel=1e-9)
    with pytest.raises(InvalidInput, match="needs the users' values"):
        _ = plan(users=1000, dims=2, epsilon=1.0).best.deviation().covariance


def _enumerated(channel: Channel, x: int, mean: np.ndarray) -> np.ndarray:
    """Cov(y | x) from the probability of every output."""
    outputs = list(channel.outputs())
    law = np.array([float(channel.probability(x, output)) for output in outputs])
    places = range(len(channel.inputs))
    y = np.concatenate([channel.response.decoded(np.array(outputs), place) for place in places], axis=1)
    np.testing.assert_allclose(law @ y, mean, atol=1e-7)
    return (y.T * law) @ y - np.outer(mean, mean)


def _channel(family: Any) -> KSubset:
    return KSubset(family.name, 1.5, family, heaviest(1.5, family))


@pytest.mark.parametrize(
    ("channel", "x", "mean"),
    [
        (_channel(Subset(5, 1)), 2, [0, 0, 1, 0, 0]),
        (_channel(Subset(5, 3)), 2, [0, 0, 1, 0, 0]),
        (_channel(Subset(2, 1)), 1, [0, 1]),
        (projective(1.5, 11), 4, [0.0] * 4 + [1.0] + [0.0] * 6),
        (_channel(PrivSet(5, 2, 3)), rank([1, 4]), [0, 1, 0, 0, 1]),
        (_channel(PrivSet(5, 2, 1)), rank([1, 5]), [0, 1, 0, 0, 0]),
        (_channel(Agreement(4, 3)), 0b0110, [-1, 1, 1, -1]),
    ],
)
def test_closed_forms_against_all_outputs(channel: Channel, x: int, mean: list[float]) -> None:
    one = np.array(mean, np.float64)
    expected = _enumerated(channel, x, one)
    np.testing.assert_allclose(channel.response.covariance(one[None], np.ones(1)), expected, atol=1e-9)


def test_the_pair_of_signs() -> None:
    """With all weight on equal blocks two signs always agree; on all outputs alike they are independent."""
    family = Agreement(3, 3)
    assert family.pair_mean(Fraction(1)) == 1
    assert family.pair_mean(Fraction(family.n_heavy, family.n_outputs)) == 0
