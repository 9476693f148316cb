from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, multivariate_normal, norm

from hdr4me.errors import InvalidInput
from hdr4me.framework import deviation
from hdr4me.framework.laws import EntryLaw, as_law, calibrate
from hdr4me.framework.moments import mean_inverse_count
from hdr4me.framework.population import worst_case
from hdr4me.mechanisms import categorical, mechanism

TENTHS = [k / 10 for k in range(1, 11)]
CASE: dict[str, Any] = {
    "users": 10_000,
    "dims": 100,
    "sampled": 100,
    "values": TENTHS,
    "variance_formula": "paper",
}


def test_case_study_piecewise() -> None:
    dev = deviation(mechanism("piecewise", epsilon=0.001), **CASE)
    assert float(dev.bias) == 0.0
    assert float(dev.variance) == pytest.approx(533.210352970, rel=1e-11)
    for ξ, right in ((0.001, 3.45534e-5), (0.01, 3.45534e-4), (0.05, 0.00172767), (0.1, 0.00345533)):
        assert float(dev.probability_within(ξ)) == pytest.approx(right, rel=2e-6)


def test_case_study_square_wave() -> None:
    dev = deviation(mechanism("square_wave", epsilon=0.001), **CASE)
    assert float(dev.bias) == pytest.approx(-0.0499750083, abs=5e-11)
    assert float(dev.variance) == pytest.approx(3.33028784e-5, rel=2e-9)
    for ξ, right in ((0.001, 1.01299e-17), (0.01, 2.14869e-12), (0.05, 0.501728), (0.1, 1.0)):
        assert float(dev.probability_within(ξ)) == pytest.approx(right, rel=3e-6)


def test_a_name_with_the_total_budget_is_the_same() -> None:
    by_name = deviation("piecewise", epsilon=0.1, **CASE)
    assert float(by_name.variance) == pytest.approx(533.210352970, rel=1e-11)


# n·MSE at the best m for d = 100, uniform data, exact variance: what the optimum costs (4 digits).
BEST = {
    0.1: {"laplace": (1, "80033"), "duchi": (1, "40066"), "piecewise": (1, "52055"), "hybrid": (1, "40066"),
          "square_wave": (1, "52073")},
    1.0: {"laplace": (1, "833.0"), "duchi": (1, "467.9"), "piecewise": (1, "452.6"), "hybrid": (1, "461.9"),
          "square_wave": (1, "470.1")},
    4.0: {"laplace": (1, "83.0"), "duchi": (2, "85.87"), "piecewise": (1, "46.70"), "hybrid": (1, "54.90"),
          "square_wave": (1, "60.17")},
    8.0: {"laplace": (2, "41.33"), "duchi": (4, "42.77"), "piecewise": (2, "23.18"), "hybrid": (2, "27.28"),
          "square_wave": (3, "29.53")},
}  # fmt: skip


@pytest.mark.parametrize(("epsilon", "name"), [(e, k) for e, row in BEST.items() for k in row])
def test_best_m_and_its_error(epsilon: float, name: str) -> None:
    """n is large enough (1e12) that what remains of E[1/r] − 1/np is below the fourth digit."""
    n, best_m, best = 10**12, *BEST[epsilon][name]
    options = {"domain": (-1, 1)} if name == "square_wave" else {}

    def cost(m: int) -> float:
        law = mechanism(name, epsilon=epsilon / m, **options)
        dev = deviation(law, users=n, dims=100, sampled=m, prior="uniform", calibrated=True)
        return n * dev.mse

    costs = [cost(m) for m in range(1, 13)]
    assert int(np.argmin(costs)) + 1 == best_m
    assert f"{min(costs):.{len(best.partition('.')[2])}f}" == best


def test_theorem_1_density() -> None:
    law = mechanism("square_wave", epsilon=1.0)
    rows = np.random.default_rng(0).random((5, 8))
    dev = deviation(law, users=300, dims=5, sampled=5, values=rows)
    x = np.linspace(-0.1, 0.2, 5)
    expected = multivariate_normal(dev.bias, np.diag(dev.variance)).logpdf(x)
    assert dev.logpdf(x) == pytest.approx(float(expected), rel=1e-12)
    assert dev.pdf(x) == pytest.approx(float(np.exp(expected)), rel=1e-10)
    assert float(dev.marginal_pdf(0.1, coordinate=3)) == pytest.approx(norm(dev.bias[3], dev.sd[3]).pdf(0.1))


def test_ten_thousand_dimensions_do_not_underflow() -> None:
    d = 10_000
    dev = deviation(mechanism("piecewise", epsilon=0.1), users=10**5, dims=d, sampled=1, prior="uniform")
    assert dev.logpdf(0.0) == pytest.approx(-0.5 * d * np.log(2 * np.pi * float(dev.variance)), rel=1e-12)
    assert dev.pdf(0.0) == 0.0
    assert dev.log_joint_probability_within(0.01) == pytest.approx(
        d * np.log(float(dev.probability_within(0.01))), rel=1e-9
    )
    assert -1e6 < dev.log_joint_probability_within(0.01) < -5e4


def test_vector_tolerances_and_rows() -> None:
    rows = np.array([[-0.5, 0.5], [0.2, 0.9], [1.0, 1.0]])
    dev = deviation(mechanism("piecewise", epsilon=1.0), users=1000, dims=3, sampled=1, values=rows)
    single = [
        deviation(mechanism("piecewise", epsilon=1.0), users=1000, dims=3, sampled=1, values=row)
        for row in rows
    ]
    assert dev.variance == pytest.approx([float(s.variance) for s in single])
    ξ = np.array([0.1, 0.2, 0.3])
    each = [float(s.probability_within(x)) for s, x in zip(single, ξ, strict=True)]
    assert dev.probability_within(ξ) == pytest.approx(each)
    assert dev.joint_probability_within(ξ) == pytest.approx(float(np.prod(each)))
    assert dev.probability_some_exceed(ξ) == pytest.approx(1 - float(np.prod(each)))
    assert dev.probability_all_exceed(ξ) == pytest.approx(float(np.prod(1 - np.array(each))))
    assert dev.tolerance(0.9) == pytest.approx(1.6448536 * float(np.max(dev.sd)))
    assert dev.n_coordinates == 3
    same = deviation(mechanism("piecewise", epsilon=1.0), users=1000, dims=3, sampled=1, values=rows[0])
    assert same.probability_within([0.1, 0.1, 0.2]).shape == (3,)


def test_probabilities_weight_values() -> None:
    law = mechanism("duchi", epsilon=1.0)
    weighted = deviation(law, users=100, values=[-1.0, 0.5], probabilities=[0.25, 0.75])
    listed = deviation(law, users=100, values=[-1.0, 0.5, 0.5, 0.5])
    assert float(weighted.variance) == pytest.approx(float(listed.variance), rel=1e-13)


def test_exact_variance_of_everybody_is_the_noise_alone() -> None:
    """m = d: users are not sampled, so S² cancels and only V̄/n is left."""
    law = mechanism("piecewise", epsilon=1.0)
    exact = deviation(law, users=500, dims=7, sampled=7, values=TENTHS)
    paper = deviation(law, users=500, dims=7, sampled=7, values=TENTHS, variance_formula="paper")
    assert float(exact.variance) == pytest.approx(float(paper.variance), rel=1e-12)
    assert float(exact.berry_esseen) == pytest.approx(float(paper.berry_esseen), rel=1e-12)


def test_priors() -> None:
    law = mechanism("piecewise", epsilon=1.0)
    assert deviation(law, users=9, values="uniform").mse == deviation(law, users=9, prior="uniform").mse
    assert deviation(law, users=9, values="worst").mse == deviation(law, users=9).mse
    uniform = deviation(law, users=1000, dims=10, prior="uniform")
    same = deviation(law, users=1000, dims=10, prior=beta(1, 1, loc=-1, scale=2))
    assert float(same.variance) == pytest.approx(float(uniform.variance), rel=1e-6)  # mid-quantiles of 2,048
    a, c = 1 / (np.exp(0.5) - 1), (np.exp(0.5) + 3) / (3 * (np.exp(0.5) - 1) ** 2)
    by_hand = mean_inverse_count(1000, 0.1) * (a / 3 + c + 1 / 3) - 1 / 3000
    assert float(uniform.variance) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    "name", ["laplace", "scdf", "staircase", "duchi", "piecewise", "hybrid", "square_wave"]
)
@pytest.mark.parametrize(("d", "m"), [(1, 1), (20, 1)])
@pytest.mark.parametrize("variance", ["exact", "paper"])
def test_no_population_is_worse_than_the_worst(name: str, d: int, m: int, variance: Any) -> None:
    law = mechanism(name, epsilon=1.5)
    setting: dict[str, Any] = {"users": 300, "dims": d, "sampled": m, "variance_formula": variance}
    worst = deviation(law, **setting).mse
    rng = np.random.default_rng(2)
    low, high = law.domain
    for shape in (0.2, 1.0, 5.0):
        for k in (1, 2, 3, 300):
            t = low + (high - low) * rng.beta(shape, shape, k)
            assert deviation(law, values=t, **setting).mse <= worst * (1 + 1e-9)
    for corner in ([low], [high], [low, high]):
        assert deviation(law, values=corner, **setting).mse <= worst * (1 + 1e-9)


def test_worst_case_of_a_lopsided_law() -> None:
    """All noise at one end: the worst population is two unequal shares, found by the quadratic."""

    class Lopsided:
        domain = (0.0, 1.0)

        def mean(self, t: Any) -> Any:
            return np.asarray(t)

        def variance(self, t: Any) -> Any:
            return 0.5 * np.asarray(t)

        def abs_third_moment(self, t: Any) -> Any:
            return np.asarray(t)

    found = worst_case(Lopsided(), 1.0, 1e9, sampling=True)
    # maximize w/2 + w(1 − w) over the share w of ones: w = 3/4
    top = dict(zip(found.values.tolist(), found.shares.tolist(), strict=True))
    assert top[1.0] == pytest.approx(0.75, rel=1e-6)


def grr(p: float, v: int) -> Any:
    """Randomized response that reports the own category with probability p."""
    return categorical.categorical_channel("grr", float(np.log(p * (v - 1) / (1 - p))), v)


def test_frequencies_of_randomised_response() -> None:
    """Simulated: 4 categories, 3,000 collections of 500 users; variances within 4.5 standard errors (7e-6)."""
    v, p, n, k = 4, 0.6, 500, 3000
    table, f = grr(p, v), np.array([0.5, 0.3, 0.15, 0.05])
    dev = deviation(table, users=n, dims=1, sampled=1, probabilities=f)
    truth = np.repeat(np.arange(v), (f * n).astype(int))
    rng = np.random.default_rng(6)
    keep = rng.random((k, n)) < p
    other = (truth + rng.integers(1, v, (k, n))) % v
    report = np.where(keep, truth, other)
    q = (1 - p) / (v - 1)
    estimates = np.stack([((report == c).mean(axis=1) - q) / (p - q) for c in range(v)])
    assert dev.variance == pytest.approx(estimates.var(axis=1, ddof=1), rel=4.5 * np.sqrt(2 / (k - 1)))
    assert dev.n_coordinates == v


def test_mixed_numeric_and_categorical_dimensions() -> None:
    piecewise, table = mechanism("piecewise", epsilon=1.0), grr(0.6, 3)
    dev = deviation(
        [piecewise, table, mechanism("duchi", epsilon=1.0)],
        users=1000,
        dims=3,
        sampled=1,
        values=[[0.1, 0.2], None, None],
        probabilities=[None, [0.2, 0.3, 0.5], None],
    )
    assert dev.n_coordinates == 1 + 3 + 1
    alone = deviation(table, users=1000, dims=3, sampled=1, probabilities=[0.2, 0.3, 0.5])
    assert dev.variance[1:4] == pytest.approx(alone.variance[:3])
    assert alone.n_coordinates == 9
    worst = deviation(table, users=1000, dims=3, sampled=1)
    assert worst.n_coordinates == 9
    assert float(worst.variance) >= np.max(alone.variance)


def test_a_mechanism_for_each_dimension() -> None:
    laws = [mechanism("duchi", epsilon=1.0), mechanism("laplace", epsilon=1.0)]
    setting: dict[str, Any] = {"users": 500, "dims": 2}
    rows = np.array([[0.1, 0.9], [0.3, -0.5]])
    together = deviation(laws, values=rows, **setting)
    alone = [
        float(deviation(law, values=row, **setting).variance) for law, row in zip(laws, rows, strict=True)
    ]
    assert together.variance == pytest.approx(alone)
    shared = deviation(laws, values=[0.1, 0.9], **setting)
    assert shared.variance[0] == pytest.approx(alone[0])
    spread = deviation(laws, prior="uniform", **setting)
    assert spread.variance[0] == pytest.approx(float(deviation(laws[0], prior="uniform", **setting).variance))


def test_entry_law_moments() -> None:
    channel = grr(0.6, 3)  # another category is reported with probability 0.2
    law = EntryLaw.of(channel)
    for t, π in ((1, 0.6), (0, 0.2)):
        hi, lo = (1 - 0.2) / 0.4, -0.2 / 0.4
        mean = π * hi + (1 - π) * lo
        assert mean == pytest.approx(t)
        assert float(law.variance(t)) == pytest.approx(π * (hi - mean) ** 2 + (1 - π) * (lo - mean) ** 2)
        third = π * abs(hi - mean) ** 3 + (1 - π) * abs(lo - mean) ** 3
        assert float(law.abs_third_moment(t)) == pytest.approx(third)


class Bent:
    def mean(self, t: Any) -> Any:
        return np.asarray(t) ** 2

    def variance(self, t: Any) -> Any:
        return np.ones_like(np.asarray(t, dtype=float))

    abs_third_moment = variance


class Deaf(Bent):
    def mean(self, t: Any) -> Any:
        return np.zeros_like(np.asarray(t, dtype=float))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"users": 0}, "users = 0"),
        ({"dims": 2.5}, "dims = 2.5"),
        ({"sampled": 5}, "sampled = 5"),
        ({"variance_formula": "approximate"}, "variance_formula = 'approximate'"),
        ({"mechanism": object()}, "must have mean, variance"),
        ({"mechanism": "piecewise"}, "epsilon is missing"),
        ({"mechanism": [mechanism("duchi", epsilon=1.0)]}, "1 mechanisms"),
        ({"mechanism": Bent(), "calibrated": True}, "not affine"),
        ({"mechanism": Deaf(), "calibrated": True}, "do not depend"),
        ({"values": [[0.1], [0.2], [0.3]]}, "3 rows"),
        ({"values": []}, "shape (0,)"),
        ({"values": [2.0]}, "2.0"),
        ({"values": ["a"]}, "values of type list"),
        ({"values": "normal"}, "prior = 'normal'"),
        ({"values": [0.1, 0.2], "probabilities": [0.5, 0.6]}, "sum 1"),
        ({"values": [0.1, 0.2], "probabilities": [1.0]}, "do not match"),
        ({"probabilities": [1.0]}, "without values"),
        ({"prior": "uniform", "values": [0.1]}, "give only one"),
        ({"prior": "gaussian"}, "prior = 'gaussian'"),
        ({"mechanism": grr(0.6, 3), "prior": "uniform"}, "frequencies"),
        ({"mechanism": [mechanism("duchi", epsilon=1.0)] * 4, "values": [[0.1], [0.2]]}, "2 entries"),
    ],
)
def test_refusals_name_the_parameter(change: dict[str, Any], says: str) -> None:
    arguments: dict[str, Any] = {
        "mechanism": mechanism("duchi", epsilon=1.0),
        "users": 100,
        "dims": 4,
        **change,
    }
    with pytest.raises(InvalidInput) as refusal:
        deviation(arguments.pop("mechanism"), **arguments)
    assert says in str(refusal.value)


def test_refusals_of_a_deviation() -> None:
    dev = deviation(mechanism("duchi", epsilon=1.0), users=100, dims=4)
    for call in (
        lambda: dev.logpdf([0.1, 0.2]),
        lambda: dev.probability_within([0.1, 0.2]),
        lambda: dev.probability_within(-0.1),
        lambda: dev.tolerance(1.0),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_calibrating_an_unbiased_law_changes_nothing() -> None:
    law = as_law(mechanism("piecewise", epsilon=1.0))
    assert calibrate(law) is law


def test_a_name_has_the_common_domain_unless_the_own_one_is_asked_for() -> None:
    """Square wave on its own [0, 1] has a quarter of the variance that it has on [−1, 1], the domain of the others."""
    given: dict[str, Any] = {"users": 1000, "epsilon": 1.0, "prior": "uniform", "calibrated": True}
    scaled = deviation("square_wave", **given)
    own = deviation("square_wave", domain="own", **given)
    assert float(scaled.variance) == pytest.approx(4 * float(own.variance), rel=1e-9)
    wide = mechanism("square_wave", epsilon=1.0, domain=(-1.0, 1.0))
    law = deviation(wide, users=1000, prior="uniform", calibrated=True)
    assert float(scaled.variance) == float(law.variance)
    with pytest.raises(InvalidInput, match="domain = 'wide' is not allowed: 'scaled' or 'own'"):
        deviation("duchi", users=10, epsilon=1.0, domain="wide")


def test_a_list_of_budgets_gives_a_list_of_deviations() -> None:
    found = deviation("duchi", users=1000, dims=4, sampled=2, epsilon=[1, 2.0], prior="uniform")
    alone = [deviation("duchi", users=1000, dims=4, sampled=2, epsilon=x, prior="uniform") for x in (1, 2.0)]
    assert [x.mse for x in found] == [x.mse for x in alone]
    swept = deviation("duchi", users=1000, dims=4, sampled=2, epsilon=np.array([1, 2.0]), prior="uniform")
    assert [x.mse for x in swept] == [x.mse for x in alone]
