"""The tuned constants of re-calibration, each fixed by its measured consequence on seeded populations.

The constants were chosen with benchmarks/recalibration_hard.py (margins, thresholds, intervals),
recalibration_curves.py (structure), recalibration_real.py (the announced error) and recalibration_frequencies.py, as
docs/decisions/recalibration.md explains. A case computes the squared error after over before, the announced over the
real error, and the lengths of the intervals over those before. To move a constant, run the benchmarks again and
then write down the new numbers here.
"""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from hdr4me import recalibration
from hdr4me.planner.plan import recalibration as planned
from hdr4me.recalibration import auto, frequencies
from hdr4me.recalibration.auto import intervals, posterior, priors, risk, structure
from hdr4me.recalibration.auto.risk import Evaluation

POPULATIONS = {
    "zeros": lambda d, rng: np.zeros(d),
    "uniform": lambda d, rng: rng.uniform(-0.9, 0.9, d),
    "normal": lambda d, rng: rng.normal(0.2, 0.3, d).clip(-1, 1),
    "clusters": lambda d, rng: np.where(np.arange(d) % 3 == 0, 0.6, -0.3),
    "ends": lambda d, rng: np.where(np.arange(d) % 2 == 0, 1.0, -1.0),
    "day": lambda d, rng: np.tanh(1.5 * np.sin((np.arange(d) - d / 3) / d * 2 * np.pi)) * 0.8,
    "plateau": lambda d, rng: np.clip(np.linspace(-2, 2, d), -1, 1),
    "sparse": lambda d, rng: np.where(np.arange(d) % 10 == 0, 0.6, 0.0),
    "groups": lambda d, rng: rng.normal(0, 0.5, d // 4 + 1).repeat(4)[:d].clip(-1, 1),
}


def measured(case: str) -> tuple[float, ...]:
    """The consequences of `auto` for "population dimensions noise [option]"."""
    name, dims, noise, *option = case.split()
    d, rng = int(dims), np.random.default_rng([len(case), *(int(word) for word in option if word.isdigit())])
    theta = POPULATIONS[name](d, rng)
    spread = 0.7 if "unequal" in option else 0.2 if "similar" in option else 0.0
    s = float(noise) * np.exp(spread * rng.normal(size=d))
    x = theta + s * rng.normal(size=d)
    options: dict[str, Any] = {"order": np.arange(d)} if "order" in option else {}
    options |= {"groups": (np.arange(d) // 4).tolist()} if "groups" in option else {}
    found = recalibration.recalibrate(x, s, **options)
    lengths = [
        float(np.mean(np.subtract(*found.interval(0.95, kind)[::-1]))) for kind in ("average", "credible")
    ]
    real, before = np.mean((found.enhanced_mean - theta) ** 2), np.mean((x - theta) ** 2)
    return (real / before, found.expected_error_after / np.mean(s**2), *(n / np.mean(s) for n in lengths))


def measured_frequencies(case: str) -> tuple[float, ...]:
    """The same for frequencies: "categories concentration users [option]".

    Those of "counts" are of one sample, so that they sum to one; those of "closed" are moved to this sum.
    """
    categories, concentration, users, *option = case.split()
    v, n, rng = int(categories), int(users), np.random.default_rng(len(case) + int(categories))
    truth = rng.dirichlet(np.full(v, float(concentration)))
    seen = rng.binomial(n, 0.3 + 0.4 * truth) / n
    f, s = (seen - 0.3) / 0.4, np.sqrt(seen * (1 - seen) / n) / 0.4
    if "closed" in option:
        f -= (f.sum() - 1) / v
    if "counts" in option:
        counts = rng.multinomial(n, 0.7 * truth + 0.3 / v)
        f, s = (counts / n - 0.3 / v) / 0.7, np.sqrt(np.maximum(counts, 1)) / n / 0.7
    found = recalibration.recalibrate_frequencies(f, s)
    real = np.mean((found.frequencies - truth) ** 2) / np.mean((f - truth) ** 2)
    return float(real), found.expected_error_after / found.expected_error_before


MEASURED: dict[str, tuple[float, ...]] = {
    "ends 9 1.0": (0.754605533, 0.562280479, 1.75653679, 1.8539182),
    "day 12 0.4 order 0": (1, 1, 3.17850994, 2.36837553),
    "day 12 0.3 order": (0.622514455, 0.647674379, 3.5561568, 2.38165726),
    "normal 40 0.5": (0.464301189, 0.520386397, 2.42551259, 2.50113243),
    "normal 24 0.5": (0.522903275, 0.4610918, 2.317994, 2.6202593),
    "zeros 24 0.2": (2.55715155e-07, 0.0838763405, 2.16911621, 2.36533178),
    "normal 40 0.2 4": (0.883453713, 0.829061727, 3.39744661, 3.53398634),
    "day 4 0.05 order": (1, 1, 3.91992797, 3.93211859),
    "day 8 0.3 order": (1, 1, 3.35438441, 2.79292053),
    "normal 40 0.2": (0.807515127, 0.751930371, 3.38647679, 3.29682372),
    "normal 85 0.1 unequal": (0.680893608, 0.831367023, 3.66819952, 3.41205376),
    "normal 300 0.1 unequal": (0.537668225, 0.703743972, 3.36533732, 3.26890336),
    "normal 100 0.1 similar": (0.875907429, 0.936921347, 3.75531008, 3.78624114),
}
FREQUENCIES: dict[str, tuple[float, ...]] = {
    "8 0.01 300": (0.586584821, 0.211771038),
    "40 3 3000": (0.608472193, 0.525802241),
    "10 1 1000 closed": (0.998335079, 0.909204078),
    "16 1 3000 closed": (0.936917505, 0.990169574),
    "100 0.05 80 counts": (0.515689871, 0.409318554),
}
MOVED: list[tuple[ModuleType, str, Any, str]] = [
    (auto, "_FEWEST", 10, "ends 9 1.0"),
    (auto, "_CONFIRMED", 0.9, "day 12 0.4 order 0"),
    (auto, "_CONFIRMED", 0.99, "day 12 0.3 order"),
    (auto, "_NOTHING_THERE", 0.7, "normal 40 0.5"),
    (auto, "_NOTHING_THERE", 0.9, "normal 24 0.5"),
    (auto, "_ENOUGH", 28, "normal 24 0.5"),
    (auto, "_NOTHING_MARGIN", 1.1, "normal 24 0.5"),
    (risk, "_LEAST_OF_MODEL", 0.7, "zeros 24 0.2"),
    (risk, "_LEAST_OF_MODEL", 0.8, "zeros 24 0.2"),
    (risk, "_TOLERANCE", 0.012, "ends 9 1.0"),
    (risk, "_SWITCH_PART", 0.7, "normal 40 0.5"),
    (risk, "_SWITCH_PART", 1.3, "normal 40 0.2 4"),
    (risk, "_STEP", 0.11, "ends 9 1.0"),
    (posterior, "SPIKE", 0.14, "day 12 0.3 order"),
    (structure, "_FEWEST", 5, "day 4 0.05 order"),
    (structure, "_RESIDUALS", (0.0, 0.06, 0.2), "day 12 0.3 order"),
    (structure, "_RESIDUAL_ODDS", (8.0, 3.0, 1.0), "day 12 0.3 order"),
    (structure, "_OFFSET", 0.65, "day 12 0.3 order"),
    (structure, "_PADDING", 0.06, "day 12 0.3 order"),
    (structure, "_AMPLITUDES", 1.1 * structure._AMPLITUDES, "day 12 0.3 order"),
    (structure, "_LENGTHS", 1.1 * structure._LENGTHS, "day 12 0.3 order"),
    (structure, "_FEWEST_ON_A_RING", 9, "day 8 0.3 order"),
    (priors, "_ESTIMATE_ODDS", priors._ESTIMATE_ODDS | {"null": 0.9}, "normal 24 0.5"),
    (priors, "_SPREAD_ODDS", priors._SPREAD_ODDS | {"centered": 0.44}, "ends 9 1.0"),
    (priors, "_WIDTH_SCALE", 0.13, "ends 9 1.0"),
    (priors, "_PSEUDO_DIMENSIONS", 1.1, "day 4 0.05 order"),
    (priors, "_EM_STEPS", 110, "normal 40 0.2"),
    (priors, "_EMS_STEPS", 36, "normal 40 0.2"),
    (intervals, "_FEWEST", 25, "normal 24 0.5"),
    (posterior, "_FEWEST_PER_LEVEL", 45, "normal 85 0.1 unequal"),
    (posterior, "_MOST_LEVELS", 5, "normal 300 0.1 unequal"),
    (posterior, "_UNEQUAL", 1.7, "normal 100 0.1 similar"),
]


@pytest.mark.parametrize("case", MEASURED)
def test_the_consequences_are_those_written_down(case: str) -> None:
    assert measured(case) == pytest.approx(MEASURED[case], rel=1e-5)


@pytest.mark.parametrize(("module", "name", "moved", "case"), MOVED, ids=[f"{m[1]} {m[3]}" for m in MOVED])
def test_a_constant_that_moves_is_noticed(
    module: ModuleType, name: str, moved: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, moved)
    assert measured(case) != pytest.approx(MEASURED[case], rel=1e-5)


@pytest.mark.parametrize("case", FREQUENCIES)
def test_the_consequences_for_frequencies_are_those_written_down(case: str) -> None:
    assert measured_frequencies(case) == pytest.approx(FREQUENCIES[case], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "moved", "case"),
    [
        ("_BAYES_FROM", 9, "8 0.01 300"),
        ("_ODDS", frequencies._ODDS | {"centered": 0.55}, "40 3 3000"),
        ("_EACH", 8, "10 1 1000 closed"),
        ("_EACH", 18, "16 1 3000 closed"),
        ("_PAIRS", 13, "100 0.05 80 counts"),
        ("_PAIRS", 30, "100 0.05 80 counts"),
    ],
)
def test_a_constant_of_frequencies_that_moves_is_noticed(
    name: str, moved: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequencies, name, moved)
    assert measured_frequencies(case) != pytest.approx(FREQUENCIES[case], rel=1e-5)


@pytest.mark.parametrize(("errors", "used"), [(2.4, "first"), (2.6, "second")])
def test_a_rule_replaces_another_from_two_and_a_half_standard_errors_on(errors: float, used: str) -> None:
    """Both rules are better than the base by far; the second one's measured gain is `errors` of its standard error."""
    n, s = 1000, 0.5
    x, still = np.zeros(n), np.zeros(n)
    first = np.full(n, 0.2)
    # (0.2 − f)² − 0.2² over 2·s·f/√n, the difference of the squares over its standard error, is −errors.
    second = first - (2 * 0.2 - errors * 2 * s / np.sqrt(n))
    evaluations = {"first": Evaluation(first, still), "second": Evaluation(second, still)}
    base = Evaluation(np.full(n, 0.3), np.full(n, s**2))
    rules: Any = {name: (lambda y, name=name: name) for name in evaluations}
    found = risk.choose(rules, base, x, np.full(n, s), lambda rule: evaluations[rule(x)])  # type: ignore[index]
    assert (found.used, found.share) == (used, 1.0)


VERDICTS = [(0.251, "help"), (0.249, "little help"), (0.051, "little help"), (0.049, "not worth")]


@pytest.mark.parametrize(("gain", "verdict"), VERDICTS)
def test_the_planners_verdict(gain: float, verdict: str) -> None:
    """A linear rule removes this share of the error; a quarter is what `auto` gains in benchmarks/recalibration.py."""
    assert verdict in planned(gain, 1 - gain).verdict
    assert ("little" in planned(gain, 1 - gain).verdict) == (verdict == "little help")
