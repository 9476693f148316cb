"""Comparison of mechanisms and budgets on given data: predicted errors and errors of simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.channels.baselines import BASELINES, MEMOIZED_BASELINES, baseline
from hdr4me.comparison.data import public_table, subject
from hdr4me.comparison.measure import Row, measured, supported
from hdr4me.errors import InvalidInput
from hdr4me.io import DataQuality
from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.mechanisms.registry import names
from hdr4me.pages import html
from hdr4me.pages.text import pluralize
from hdr4me.planner.candidates import (
    BLOCKS,
    BLOCKS_FROM,
    CODEBOOK,
    OPTIONAL,
    PAIR,
    PAIRS_FROM,
    PRIVSET,
    arrangement,
    block_names,
    classes,
    neighbors,
    sampled_grid,
)
from hdr4me.planner.workload import Workload
from hdr4me.survey import Dimension, Question, Schema, Survey
from hdr4me.survey.question import split_budget

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_STATISTICS = ("mean", "median", "variance")  # of numbers; other kinds are compared by shares and means
_NUMERIC = ("optimal", "piecewise", "hybrid", "duchi", "laplace")
_JOINT_FROM = {PAIR: PAIRS_FROM, BLOCKS: BLOCKS_FROM}  # the ε from which they are compared by default
_ERRORS = ("predicted MSE", "simulated MSE", "SE of simulated MSE", "re-calibrated MSE")
COLUMNS = ("ε", "mechanism", *_ERRORS, "coverage of 95 % intervals")
_COLORS = ("#0b6e99", "#d1495b", "#2e7d4f", "#b7791f", "#6b4c9a", "#55606b", "#c2577e", "#3d8b8b")


@dataclass(frozen=True)
class Kind:
    """The mechanisms compared by default and on request; `option` is the parameter of `Survey` that selects one."""

    name: str
    usual: tuple[str, ...]
    others: Callable[[], tuple[str, ...]] = tuple
    option: str = ""
    numbers: bool = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Every mechanism for this kind."""
        return tuple(dict.fromkeys((*self.usual, *self.others())))


# By the input kind of a dimension, and whether "no value" is an answer.
KINDS = {
    ("number", False): Kind("numbers", (*_NUMERIC, *_JOINT_FROM), names, "mechanism", numbers=True),
    ("optional", True): Kind("optional numbers", (OPTIONAL,), numbers=True),
    ("vector", False): Kind("vectors", (CODEBOOK,)),
    ("vector", True): Kind("optional vectors", (CODEBOOK,)),
    ("category", False): Kind(
        "categories",
        ("grr", "subset", "oue"),
        lambda: ("projective", "histogram", *BASELINES),
        "categorical",
    ),
    ("selection", False): Kind("selections", (PRIVSET,)),
}
MEMOIZED = "two_stages"  # the default of a survey with memoized responses
MEMOIZED_KINDS = {
    ("number", False): Kind("numbers", (MEMOIZED,), numbers=True),
    ("category", False): Kind("categories", (MEMOIZED,), lambda: tuple(MEMOIZED_BASELINES), "categorical"),
}


@dataclass(frozen=True)
class _Part:
    """The dimensions of one kind, the mechanisms to compare, and whether the user listed them."""

    kind: Kind
    schema: Schema
    mechanisms: tuple[str, ...]
    chosen: bool
    memoized: float | None

    def statistics(self, of_numbers: str) -> tuple[str, ...]:
        """The statistics to compare; `of_numbers` is the one for numbers."""
        if self.kind.numbers and of_numbers != "mean":
            return (of_numbers,)
        return tuple(name for name in self.schema.dimensions[0].statistics if name != "number chosen")

    def n_answered(self, name: str, sampled: int) -> int:
        """The number of questions that a user answers, at most all of them."""
        return min(sampled, arrangement(name).n_questions(Workload.of(self.schema)))

    def reason_against(self, name: str, epsilon: float, sampled: int, statistic: str) -> str | None:
        """The reason to leave a mechanism out, empty if it was not listed; None if it is compared."""
        if name in _JOINT_FROM and not self.chosen:
            impossible = len(self.schema) < 2 or epsilon < _JOINT_FROM[name]
            return "" if impossible or statistic != "mean" else None
        if name in _JOINT_FROM and len(self.schema) < 2:
            return f"{name} is left out: it asks several numbers together, and there is only one"
        if name in (PAIR, OPTIONAL) and epsilon / self.n_answered(name, sampled) < JOINT_FROM:
            return f"{name} is left out at epsilon = {epsilon:g}: one answer needs at least {JOINT_FROM}"
        return None

    def survey(self, name: str, epsilon: float, sampled: int, users: int) -> Survey:
        """The survey that uses one mechanism; blocks have the size of least error for uniform values."""
        schema, m = self.schema, self.n_answered(name, sampled)
        if name == BLOCKS:
            workload, d = Workload.of(schema), len(schema)
            sizes = tuple(b for b in sampled_grid(d) if arrangement(name).possible(workload, epsilon, b))
            best = sizes[int(np.argmin(classes(workload, name, "", users, epsilon, sizes).mse))]
            return Survey(schema, epsilon=epsilon, block_questions=block_names(schema.names, best))
        if name == PAIR:
            return Survey(schema, epsilon=epsilon, sampled=m, pair_questions=neighbors(schema))
        if name in BASELINES or name in MEMOIZED_BASELINES:
            of_answer = split_budget(epsilon, m)
            memoized = None if self.memoized is None else split_budget(self.memoized, m)
            lengths = {len(x.categories) for x in schema}
            made = {v: baseline(name, of_answer, v, memoized) for v in lengths}
            questions = [Question((j,), made[len(x.categories)]) for j, x in enumerate(schema)]
            return Survey.from_questions(schema, epsilon=epsilon, sampled=m, questions=questions)
        chosen: dict[str, Any] = {self.kind.option: name} if self.kind.option and name != MEMOIZED else {}
        return Survey(schema, epsilon=epsilon, sampled=m, memoized_epsilon=self.memoized, **chosen)


def _parts(
    schema: Schema, mechanisms: Sequence[str] | None, memoized: float | None
) -> tuple[list[_Part], list[str]]:
    """The kinds of a schema with the mechanisms for each, and notes about kinds without a listed mechanism."""
    kinds = KINDS if memoized is None else MEMOIZED_KINDS
    known = tuple(dict.fromkeys(name for kind in kinds.values() for name in kind.mechanisms))
    for name in mechanisms or ():
        if name not in known:
            raise InvalidInput.of("mechanisms", name, f"one of {', '.join(known)}")
    parts, notes = list[_Part](), list[str]()
    own: dict[tuple[str, bool], list[Dimension]] = {key: [] for key in kinds}
    for dimension in schema:
        own.setdefault((dimension.input_kind, dimension.has_gaps), []).append(dimension)
    for key, dimensions in own.items():
        kind = kinds.get(key)
        if kind is None:
            words = f"dimensions of input kind {key[0]!r} are not compared"
            notes.append(f"{subject(x.name for x in dimensions)} left out: {words}")
            continue
        chosen = tuple(x for x in mechanisms or kind.usual if x in kind.mechanisms)
        if dimensions and chosen:
            parts.append(_Part(kind, Schema(dimensions), chosen, mechanisms is not None, memoized))
        elif dimensions:
            words = f"no mechanism for {kind.name} is among {', '.join(mechanisms or ())}"
            notes.append(f"{subject(x.name for x in dimensions)} left out: {words}; add {kind.usual[0]}")
    return parts, notes


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison; a notebook shows a figure and a table.

    Parameters
    ----------
    rows
        One row for each mechanism, budget and statistic. Each row names the scale of its errors; errors on different
        scales are never combined.
    users, sampled
        The number of users, and the number of questions that each user answers.
    repeats, seed
        The number of simulated collections for each row, and their seed.
    notes
        What was left out or cleaned, in sentences.
    data_quality
        The numbers of values of each column that were read, missing, unknown or out of range. They are computed from
        true values and are not private.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
    >>> result = compare(people, epsilon=[1.0, 2.0], mechanisms=["grr"], repeats=2)
    >>> [(row["epsilon"], row["mechanism"]) for row in result.table()]
    [(1.0, 'grr'), (2.0, 'grr')]
    >>> result.best(2.0, "categories").mechanism
    'grr'
    """

    rows: tuple[Row, ...]
    users: int
    sampled: int
    repeats: int
    seed: int
    notes: tuple[str, ...]
    data_quality: DataQuality

    def table(self) -> list[dict[str, Any]]:
        """The rows as plain values."""
        return [asdict(row) for row in self.rows]

    def best(self, epsilon: float, kind: str = "numbers", statistic: str | None = None) -> Row:
        """The row with the smallest simulated error at one budget.

        Parameters
        ----------
        epsilon
            The budget.
        kind
            "numbers", "optional numbers", "vectors", "optional vectors", "categories" or "selections".
        statistic
            The statistic; by default the first one of the kind.
        """
        rows = [row for row in self.rows if (row.epsilon, row.kind) == (epsilon, kind)]
        candidates = [row for row in rows if row.statistic == (statistic or rows[0].statistic)]
        if not candidates:
            of = "" if statistic is None else f"the {statistic} of "
            raise InvalidInput(f"nothing was compared for {of}{kind} at epsilon = {epsilon:g}")
        return min(candidates, key=lambda row: row.simulated)

    def titled(self) -> dict[str, list[Row]]:
        """The rows of each kind and statistic, which have one scale, by title."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            of = "share chosen" if row.statistic == "chosen" else row.statistic
            found.setdefault(f"The {of} of {row.kind}", []).append(row)
        return found

    def plot(self) -> Figure:
        """Root mean squared error by ε: points are simulated, dashed lines predicted, hollow points re-calibrated."""
        from matplotlib.figure import Figure

        tables = self.titled().values()
        figure = Figure(figsize=(6.2 * len(tables), 4.2), layout="constrained")
        for axes, rows in zip(figure.subplots(1, len(tables), squeeze=False)[0], tables, strict=True):
            _panel(axes, rows, f"{rows[0].statistic} of {rows[0].kind}, {self.users:,} users")
        return figure

    def html(self) -> str:
        """A self-contained HTML page with figure and tables."""
        lead = (
            f"{self.users:,} users, {pluralize(self.sampled, 'question')} per report, {self.repeats} simulated "
            f"collections for each row, seed {self.seed}. This page was computed from true values and is not private."
        )
        return html.page("Mechanisms compared on these data", lead, self._repr_html_())

    def _repr_html_(self) -> str:
        caption = "Points: simulated. Dashed lines: predicted. Circles: after re-calibration."
        parts = [html.figure(self.plot(), caption)]
        for title, rows in self.titled().items():
            scale = html.paragraph(f"Errors: {rows[0].scale}.")
            parts.append(html.section(title, scale, html.table(COLUMNS, [row.cells() for row in rows])))
        return "".join([*parts, *map(html.paragraph, self.notes)])

    def __repr__(self) -> str:
        budgets = sorted({row.epsilon for row in self.rows})
        return (
            f"<Comparison of {len({row.mechanism for row in self.rows})} mechanisms at ε = "
            f"{', '.join(f'{x:g}' for x in budgets)} on {self.users:,} users, {self.repeats} collections each>"
        )


def _panel(axes: Axes, rows: list[Row], title: str) -> None:
    for color, name in zip(_COLORS * 4, dict.fromkeys(row.mechanism for row in rows), strict=False):
        own = sorted((row for row in rows if row.mechanism == name), key=lambda row: row.epsilon)
        simulated, predicted, after = (
            np.sqrt([np.nan if (x := getattr(row, of)) is None else x for row in own])
            for of in ("simulated", "predicted", "recalibrated")
        )
        x = [row.epsilon for row in own]
        axes.plot(x, simulated, "o-", color=color, label=name, markersize=5)
        axes.plot(x, predicted, "--", color=color, linewidth=1)
        axes.plot(x, after, "o", color=color, markerfacecolor="none", markersize=9)
    budgets = sorted({row.epsilon for row in rows})
    ylabel = f"root mean squared error ({rows[0].scale})"
    axes.set(xscale="log", yscale="log", xlabel="ε of a report", ylabel=ylabel)
    axes.set_xticks(budgets, [f"{x:g}" for x in budgets])
    axes.minorticks_off()
    html.log_ticks(axes.yaxis)
    axes.set_title(title, fontsize=10, loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False)


def compare(
    data: Any,
    *,
    epsilon: float | Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    mechanisms: Sequence[str] | None = None,
    statistic: str = "mean",
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    sampled: int = 1,
    memoized_epsilon: float | None = None,
    users: int | None = None,
    repeats: int = 20,
    recalibrate: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Predicted and simulated errors of each mechanism on given data, before and after re-calibration.

    For public or synthetic data only: it uses true values, and takes ranges and categories from them.

    Parameters
    ----------
    data
        A CSV, Parquet or JSON lines file, an Arrow table, or a pandas or polars frame.
    epsilon
        The budgets of a report.
    mechanisms
        The mechanisms to compare; by default some for each kind of column. Numbers: every registered mechanism, "pair"
        and "agreement". Categories: "grr", "subset", "projective", "oue" and "histogram", and the baselines "sue",
        "the", "olh", "blh", "hadamard" and "dbitflip". Optional numbers: "optional". Vectors: "codebook". Selections:
        "privset". With `memoized_epsilon`: "two_stages" and, for categories, "l_grr", "l_sue", "l_osue" and "loloha".
    statistic
        The statistic of numbers: "mean", "median" or "variance". Other kinds are compared by shares and means.
    schema
        The dimensions with their ranges and categories.
    columns
        The columns to use if there is no schema.
    sampled
        The number of questions of one kind that each user answers; always 1 for blocks ("agreement").
    memoized_epsilon
        The budget of any number of memoized responses of an unchanged value, as for `Survey`; one report is simulated.
    users
        The number of users to draw from the rows with replacement; by default each row is one user.
    repeats
        The number of simulated collections for each mechanism and budget.
    recalibrate
        Whether each collection is also re-calibrated, which takes most of the time.
    seed
        The seed of the simulation.
    progress
        Called with 1 after each simulated collection.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(1)
    >>> result = compare(pa.table({"age": rng.integers(18, 90, 2000)}), epsilon=1.0, repeats=2, mechanisms=["duchi"])
    >>> result
    <Comparison of 1 mechanisms at ε = 1 on 2,000 users, 2 collections each>
    """
    budgets = _budgets(epsilon)
    if statistic not in _STATISTICS:
        raise InvalidInput.of("statistic", statistic, f"one of {', '.join(_STATISTICS)}")
    if type(repeats) is not int or not 1 <= repeats <= 10_000:
        raise InvalidInput.of("repeats", repeats, "an integer from 1 to 10,000")
    if type(seed) is not int or seed < 0:
        raise InvalidInput.of("seed", seed, "a non-negative integer")
    table, known, notes, quality = public_table(data, list(columns) if columns else None, schema)
    rng = np.random.default_rng(seed)
    if users is not None:
        if type(users) is not int or not 10 <= users <= 10_000_000:
            raise InvalidInput.of("users", users, "an integer from 10 to 10,000,000")
        table = table.take(rng.integers(0, table.num_rows, users))
    rows: list[Row] = []
    parts, left_out = _parts(known, mechanisms, memoized_epsilon)
    notes += left_out
    runs = [(part, *run) for part in parts for run in product(budgets, part.mechanisms)]
    for part, budget, name in runs:
        against = part.reason_against(name, budget, sampled, statistic)
        if against is not None:
            notes += [against] if against else []
            continue
        asked, survey = part.statistics(statistic), part.survey(name, budget, sampled, table.num_rows)
        if not all(supported(survey, each) for each in asked):
            notes.append(f"{name} is left out: it cannot estimate the {asked[0]}")
            continue
        seeds = [int(x) for x in rng.integers(0, 2**62, repeats)]
        found = measured(
            name, part.kind.name, asked, survey, table, seeds, recalibrate=recalibrate, progress=progress
        )
        notes += [
            f"{100 * (1 - row.answered):.3g} % of the estimates of the {row.statistic} of {row.kind} by {name} "
            f"at epsilon = {budget:g} are left out: there are too few reports"
            for row in found
            if row.answered < 1
        ]
        rows += [row for row in found if row.answered > 0]
    if not rows:
        raise InvalidInput("no mechanism can be compared: " + "; ".join(notes))
    distinct_notes = tuple(dict.fromkeys(notes))
    return Comparison(tuple(rows), table.num_rows, sampled, repeats, seed, distinct_notes, quality)


def _budgets(epsilon: Any) -> list[float]:
    budgets = [epsilon] if isinstance(epsilon, int | float) else list(epsilon)
    for value in budgets or [budgets]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InvalidInput.of("epsilon", value, "positive, finite numbers")
    return [float(value) for value in budgets]
