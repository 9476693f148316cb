"""Second rounds: gains, coverage and predicted gains, on the populations of the tuned constants and on others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.statistics.predict import predict_rounds
from more_statistics import Floats, counts_of, real_columns

N, SHARE = 40_000, 0.2


def known(rng: np.random.Generator) -> dict[str, Floats]:
    """The populations that the constants of `predict.py` and `rounds.py` were set on."""
    data: dict[str, Floats] = {
        "sd .1": rng.normal(0, 0.1, N),
        "sd .25": rng.normal(0, 0.25, N),
        "uniform": rng.uniform(-1, 1, N),
        "delays of flights (synthetic)": np.where(
            rng.random(N) < 0.8, rng.normal(-0.85, 0.03, N), -0.9 + rng.exponential(0.15, N)
        ),
    }
    return data | {name: rng.choice(column, N) for name, column in real_columns().items()}


def unknown(rng: np.random.Generator) -> dict[str, Floats]:
    """Populations that no constant was set on."""
    side = rng.random(N) < 0.5
    data: dict[str, Floats] = {
        "Student's t, 3 degrees, scale .08, center -.3": -0.3 + 0.08 * rng.standard_t(3, N),
        "Laplace, scale .1, center .5": 0.5 + rng.laplace(0, 0.1, N),
        "two peaks at -.5 and .4": np.where(side, rng.normal(-0.5, 0.05, N), rng.normal(0.4, 0.08, N)),
        "Beta(.5, .5)": rng.beta(0.5, 0.5, N) * 2 - 1,
        "triangular": rng.triangular(-1, -0.2, 1, N),
        "exponential from -1": -1 + rng.exponential(0.2, N),
        "Pareto, 2.5": -1 + 0.1 * rng.pareto(2.5, N),
        "1 % far away": np.where(rng.random(N) < 0.01, 0.9, rng.normal(-0.4, 0.1, N)),
        "0 or 1, 3 %": np.where(rng.random(N) < 0.03, 1.0, -1.0),
    }
    return data | {name: rng.choice(column, N) for name, column in other_columns().items()}


def other_columns() -> dict[str, Floats]:
    """Real columns on [−1, 1], on ranges that somebody might have declared; none where nothing is installed."""
    found: dict[str, tuple[Floats, float, float]] = {}
    try:
        from sklearn import datasets

        wine, diabetes = datasets.load_wine().data, datasets.load_diabetes(scaled=False)
        found |= {
            "real: proline of wine (0 to 2000)": (wine[:, 12], 0, 2000),
            "real: alcohol of wine (0 to 20)": (wine[:, 0], 0, 20),
            "real: body mass index (10 to 60)": (diabetes.data[:, 2], 10, 60),
            "real: age of patients (0 to 120)": (diabetes.data[:, 0], 0, 120),
        }
    except ImportError:
        pass
    try:
        import statsmodels.api as sm  # type: ignore[import-untyped,unused-ignore]

        visits, engel = sm.datasets.randhie.load_pandas().data, sm.datasets.engel.load_pandas().data
        found |= {
            "real: visits to a doctor (0 to 80)": (visits["mdvis"].to_numpy(np.float64), 0, 80),
            "real: income of households (0 to 5000)": (engel["income"].to_numpy(np.float64), 0, 5000),
        }
    except ImportError:
        pass
    return {
        name: np.clip(2 * (column - low) / (high - low) - 1, -1, 1)
        for name, (column, low, high) in found.items()
    }


def campaign(
    data: dict[str, Floats], epsilon: float, draws: int, rng: np.random.Generator, mechanism: str
) -> Iterator[tuple[str, float, float, float, float, float]]:
    """(values, error of one round, of two, share covered, width kept, predicted gain) for each population.

    Every draw is a dimension of one survey, so that all are fitted together. Users are drawn from the population.
    """
    for name, values in data.items():
        population = np.clip(values, -1, 1)
        true = population.mean()
        schema = hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(draws)])
        survey = hd.Survey(schema, epsilon)
        cut = int(SHARE * N)
        one = np.array(drawn(population, survey, N, rng).estimate().standard_error)
        pilot = drawn(population, survey, cut, rng)
        following = hd.refine(pilot, users=draws * (N - cut), mechanism=mechanism, weigh=False)
        answer = hd.combine([pilot, drawn(population, following, N - cut, rng)])
        low, high = answer.interval()
        inside = float(np.mean((low <= true) & (true <= high)))
        width = float(np.mean([(x.bounds[1] - x.bounds[0]) / 2 for x in following.schema]))
        two = float(np.sqrt(np.mean((answer.value - true) ** 2)))
        expected = np.quantile(population, (np.arange(1024) + 0.5) / 1024)
        predicted = predict_rounds(expected, N, epsilon).gain
        yield name, float(np.sqrt(np.mean(one**2))), two, inside, width, predicted


def drawn(population: Floats, survey: hd.Survey, n: int, rng: np.random.Generator) -> hd.Tally:
    """A tally with n users of the population for each dimension."""
    tally = hd.Tally(survey)
    for q, dimension in enumerate(survey.schema):
        low, high = dimension.bounds
        users = np.clip(rng.choice(population, n), low, high)
        reading = survey.questions[q].channel.response.marginal()
        counts = counts_of((users - low) / (high - low) * 2 - 1, reading, rng)
        tally.layout.of_question(tally.counts, q)[:] = counts
    tally.n_reports = n * len(survey.schema)
    return tally


HEAD = [
    "| values, ε | s.e., one round | RMSE two rounds | gain in MSE | predicted | coverage of 95 % | width kept |",
    "|---|---|---|---|---|---|---|",
]


def _table(data: dict[str, Floats], draws: int, rng: np.random.Generator, mechanism: str) -> list[str]:
    lines = list(HEAD)
    for epsilon in (1.0, 4.0):
        for name, one, two, inside, width, predicted in campaign(data, epsilon, draws, rng, mechanism):
            lines.append(
                f"| {name}, {epsilon:g} | {one:.4f} | {two:.4f} | {(one / two) ** 2:.2f} | {predicted:.2f} | "
                f"{100 * inside:.0f} % | {width:.2f} |"
            )
            print(lines[-1], flush=True)
    return lines


def rounds(rng: np.random.Generator, draws: int = 200) -> list[str]:
    """The second round by tables of least mean variance; `designs` has those for the pilot's distribution."""
    return _table(known(rng), draws, rng, "designed")


def others(rng: np.random.Generator, draws: int = 200) -> list[str]:
    return _table(unknown(rng), draws, rng, "designed")


def designs(rng: np.random.Generator, draws: int = 200) -> list[str]:
    """The variance of a report of the second round by three tables, on ranges that pilots chose."""
    lines = ["| values, ε | noise: optimal | optimal_mean | designed for the pilot |", "|---|---|---|---|"]
    chosen = {**known(rng), **unknown(rng)}
    names = (
        "sd .1",
        "sd .25",
        "exponential from -1",
        "two peaks at -.5 and .4",
        "real: visits to a doctor (0 to 80)",
    )
    for epsilon in (1.0, 2.0, 4.0):
        survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon)
        for name in names:
            population = np.clip(chosen[name], -1, 1)
            pilot = drawn(population, survey, int(SHARE * N), rng)
            cells = []
            for mechanism in ("optimal", "optimal_mean", "designed"):
                following = hd.refine(pilot, users=N - int(SHARE * N), mechanism=mechanism)
                low, high = following.schema["x"].bounds
                users = np.clip(population[:5000], low, high)
                reading = following.questions[0].channel.response.marginal()
                decode = reading.decoders["value"]
                x = (users - low) / (high - low) * 2 - 1
                noise = np.mean(reading.at(x)[:, 0] @ decode**2 - x**2)
                cells.append(f"{noise * ((high - low) / 2) ** 2:.4f}")
            lines.append(f"| {name}, {epsilon:g} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


def ends(rng: np.random.Generator, draws: int = 3) -> list[str]:
    """Records through the engine, tallies, a refined survey, records of other users, both rounds together."""
    lines = [
        "| data | users, numbers | ε | MSE one round | MSE two rounds | gain | intervals that cover |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, records, ranges in real_sets(rng):
        for epsilon in (1.0, 4.0):
            schema = hd.Schema([hd.Numeric(f"x{j}", *pair) for j, pair in enumerate(ranges)])
            unit = np.array([(high - low) / 2 for low, high in ranges])
            survey = hd.Survey(schema, epsilon)
            cut = len(records) // 5
            one, two, inside = [], [], []
            for _ in range(draws if len(ranges) > 1 else 12 * draws):
                records = rng.permutation(records)
                true = records.mean(axis=0)
                whole = counted(records, survey).estimate()
                pilot = counted(records[:cut], survey)
                following = hd.refine(pilot, users=len(records) - cut)
                answer = hd.combine([pilot, counted(records[cut:], following)])
                one.append(np.mean((whole.standard_error / unit) ** 2))
                two.append(np.mean(((answer.value - true) / unit) ** 2))
                low, high = answer.interval()
                inside.append(np.mean((low <= true) & (true <= high)))
            lines.append(
                f"| {name} | {len(records):,}, {len(ranges)} | {epsilon:g} | {np.mean(one):.2e} | {np.mean(two):.2e} | "
                f"{np.mean(one) / np.mean(two):.2f} | {100 * np.mean(inside):.0f} % |"
            )
            print(lines[-1], flush=True)
    return lines


def counted(records: Floats, survey: hd.Survey) -> hd.Tally:
    """The engine's own randomness, which is the system's and has no seed."""
    tally = hd.Tally(survey)
    for block in Local(threads=1).reports(records, survey):
        tally.add_block(block)
    return tally


def real_sets(rng: np.random.Generator) -> Iterator[tuple[str, Floats, list[tuple[float, float]]]]:
    """Rows of a real data set, each standing for as many users, and ranges somebody might have declared."""
    from sklearn import datasets

    digits = datasets.load_digits().data
    yield "digits (real), 64 pixels", rng.permutation(np.repeat(digits, 712, axis=0)), [(0.0, 16.0)] * 64
    tumours = datasets.load_breast_cancer().data[:, :10]
    tops = (50, 60, 300, 4000, 0.5, 1, 1, 0.5, 0.5, 0.2)
    yield "tumours (real), 10 measures", np.repeat(tumours, 703, axis=0), [(0.0, float(top)) for top in tops]
    n = 40_000
    delays = np.where(rng.random(n) < 0.8, rng.normal(-5, 10, n), rng.exponential(50, n))
    yield "delays of flights (synthetic)", np.clip(delays, -60, 600)[:, None], [(-60.0, 600.0)]
