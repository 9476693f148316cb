"""The tuned constants of re-calibration, each fixed by its measured consequence on seeded populations.

The constants were chosen with benchmarks/recalibration_hard.py (margins, thresholds, intervals),
recalibration_curves.py (structure), recalibration_real.py (the announced error) and recalibration_frequencies.py, as
docs/decisions/recalibration.md explains. A case computes the squared error after over before, the announced over the
real error, and the lengths of the intervals over those before. Whoever moves a constant runs the benchmarks again and
then writes down the new numbers here.
"""

from typing import Any

import numpy as np

from hdr4me import recalibration

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
    if name == "zeros" and "following" in option:
        theta = np.where(s > np.median(s), 2 * s, 0.0).clip(-1, 1)
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
    """The same for frequencies: "categories concentration users"."""
    categories, concentration, users = case.split()
    v, n, rng = int(categories), int(users), np.random.default_rng(len(case) + int(categories))
    truth = rng.dirichlet(np.full(v, float(concentration)))
    seen = rng.binomial(n, 0.3 + 0.4 * truth) / n
    f, s = (seen - 0.3) / 0.4, np.sqrt(seen * (1 - seen) / n) / 0.4
    found = recalibration.recalibrate_frequencies(f, s)
    real = np.mean((found.frequencies - truth) ** 2) / np.mean((f - truth) ** 2)
    return float(real), found.expected_error_after / found.expected_error_before
