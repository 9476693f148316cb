"""Tables of two and more attributes from a tally of joint questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import norm

from hdr4me.contingency.fit import Joint as Fitted
from hdr4me.contingency.fit import Measured, fit
from hdr4me.errors import InvalidInput
from hdr4me.recalibration.shrinkage import norm_sub
from hdr4me.statistics import Answer
from hdr4me.survey import Dimension
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

_SIGNIFICANT = (
    3.0  # a conditional share needs a condition whose share is this many standard errors above zero
)


def tables(tally: Tally) -> Tables:
    """The joint distribution of the attributes that a survey asks together, fitted to all of its answers.

    Each joint question, and each question about one category, is a noisy table. Margins are averaged over all tables
    that hold an attribute. The maximum-entropy distribution with these margins is fitted to the tables as closely as
    their noise allows.

    Examples
    --------
    >>> import hdr4me as hd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in ("smoker", "cough", "asthma")])
    >>> survey = hd.Survey(hd.table_schema(schema), epsilon=4.0)
    >>> client = hd.Client(survey)
    >>> record = {"smoker": "yes", "cough": "yes", "asthma": "no"}
    >>> found = tables(hd.Tally(survey).add(client.report(record) for _ in range(3000)))
    >>> bool(found.table("smoker", "cough").shares[1, 1] > 0.9)
    True
    """
    answer, leaves = tally.estimate(), dict[str, Dimension]()
    sources: dict[str, tuple[str, ...]] = {}
    for dimension in tally.survey.schema:
        if not dimension.is_category:
            continue
        sources[dimension.name] = tuple(leaf.name for leaf in dimension.leaves)
        for leaf in dimension.leaves:
            if leaves.setdefault(leaf.name, leaf) != leaf:
                raise InvalidInput(f"attribute {leaf.name!r} has different categories in two questions")
    if not sources:
        raise InvalidInput("this survey has no joint questions: create it with hdr4me survey --tables pairs")
    order = {name: j for j, name in enumerate(leaves)}
    shape = [len(leaf.categories) for leaf in leaves.values()]
    measured = []
    for name, own in sources.items():
        rows = answer.frequencies(name)
        if not np.isfinite(rows.standard_error).all():
            raise InvalidInput(f"question {name!r} has too few answers for a table: collect more reports")
        shares = rows.value.reshape([shape[order[x]] for x in own])
        sequence = sorted(range(len(own)), key=lambda i: order[own[i]])
        names = tuple(order[own[i]] for i in sequence)
        measured.append(Measured(names, shares.transpose(sequence), float(np.mean(rows.standard_error**2))))
    margins = [_margin(j, measured) for j in range(len(shape))]
    return Tables(
        {name: leaf.categories for name, leaf in leaves.items()},
        answer,
        sources,
        fit(shape, measured, margins),
    )


def _margin(j: int, measured: Sequence[Measured]) -> Floats:
    """The shares of one attribute: its margins in all tables, weighted by their precision, without negative shares."""
    total, weight = np.zeros(1), 0.0
    for table in measured:
        if j in table.names:
            i = table.names.index(j)
            own = table.shares.sum(axis=tuple(k for k in range(table.shares.ndim) if k != i))
            precision = own.size / (table.variance * table.shares.size)
            total, weight = total + precision * own, weight + precision
    return norm_sub(total / weight)


@dataclass(frozen=True, eq=False)
class Tables:
    """A fitted joint distribution.

    Parameters
    ----------
    attributes
        The categories of each attribute.
    answer
        The direct estimates of all questions.
    sources
        The attributes of each question.
    joint
        The fitted distribution.

    Examples
    --------
    >>> import hdr4me as hd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in ("smoker", "cough")])
    >>> survey = hd.Survey(hd.table_schema(schema), epsilon=4.0)
    >>> client = hd.Client(survey)
    >>> reports = (client.report({"smoker": "yes", "cough": "no"}) for _ in range(2000))
    >>> hd.tables(hd.Tally(survey).add(reports))
    <Tables of smoker, cough: 1 measured>
    """

    attributes: dict[str, tuple[str, ...]]
    answer: Answer
    sources: dict[str, tuple[str, ...]]
    joint: Fitted

    def __repr__(self) -> str:
        return f"<Tables of {', '.join(self.attributes)}: {len(self.sources)} measured>"

    def _index(self, name: str) -> int:
        if name not in self.attributes:
            raise InvalidInput(f"{name!r} is not an attribute: known are {', '.join(self.attributes)}")
        return list(self.attributes).index(name)

    def table(self, *names: str, level: float = 0.95) -> Contingency:
        """The table of one or more attributes, in this order.

        Intervals are those of the direct estimates of a question about exactly these attributes, extended to the fitted
        share. Without such a question the table follows from the model, and has no intervals.
        """
        if not names or len(set(names)) < len(names):
            raise InvalidInput.of("names", names, "one or more different attributes")
        indices = [self._index(name) for name in names]
        ordered = tuple(sorted(indices))
        shares = self.joint.table(ordered).transpose([ordered.index(j) for j in indices])
        asked = next((q for q, own in self.sources.items() if sorted(own) == sorted(names)), None)
        categories = tuple(self.attributes[name] for name in names)
        if asked is None:
            nothing = np.full(shares.shape, np.nan)
            return Contingency(names, categories, shares, nothing, nothing, nothing, nothing, False)
        own, rows = self.sources[asked], self.answer.frequencies(asked)
        cells = [len(self.attributes[name]) for name in own]
        turn = [own.index(name) for name in names]
        low, high = rows.interval(level)
        direct, error, low, high = (
            x.reshape(cells).transpose(turn) for x in (rows.value, rows.standard_error, low, high)
        )
        low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return Contingency(
            names, categories, shares, np.minimum(low, shares), np.maximum(high, shares), direct, error, True
        )

    def sample(self, n: int, seed: int) -> pa.Table:
        """`n` synthetic records drawn from the fitted distribution.

        They preserve the fitted tables up to sampling error. Relations that no table of the survey holds, and relations
        that are weaker than the noise, are not preserved. Synthetic records reveal nothing beyond the reports.
        """
        if not isinstance(n, int) or n < 1:
            raise InvalidInput.of("n", n, "a positive integer")
        rows = self.joint.sample(n, np.random.default_rng(seed))
        columns = {
            name: pa.array(np.array(categories, object)[rows[:, j]], pa.string())
            for j, (name, categories) in enumerate(self.attributes.items())
        }
        return pa.table(columns)

    def associations(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Cramér's V of every pair of attributes, the strongest first."""
        found = []
        for a, b in combinations(self.attributes, 2):
            value, (low, high) = self.table(a, b).cramers_v(level)
            found.append({"first": a, "second": b, "cramers_v": value, "lower": low, "upper": high})
        return sorted(found, key=lambda row: -row["cramers_v"])


@dataclass(frozen=True, eq=False)
class Contingency:
    """One table: fitted shares with intervals, and the direct estimates where the attributes were asked together.

    Parameters
    ----------
    names, categories
        The attributes, and the categories of each.
    shares
        The fitted share of each combination.
    lower, upper
        The ends of the intervals; NaN for a table that no question asks.
    direct, standard_error
        The unbiased estimates of the question about these attributes, and their standard errors.
    measured
        Whether there is such a question.

    Examples
    --------
    >>> import hdr4me as hd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in ("smoker", "cough")])
    >>> survey = hd.Survey(hd.table_schema(schema), epsilon=4.0)
    >>> client = hd.Client(survey)
    >>> reports = (client.report({"smoker": "yes", "cough": "no"}) for _ in range(2000))
    >>> table = hd.tables(hd.Tally(survey).add(reports)).table("smoker", "cough")
    >>> table.names, table.measured
    (('smoker', 'cough'), True)
    """

    names: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    shares: Floats
    lower: Floats
    upper: Floats
    direct: Floats
    standard_error: Floats
    measured: bool

    def rows(self) -> list[dict[str, Any]]:
        """One row for each cell."""
        cells = product(*(range(len(own)) for own in self.categories))
        return [
            {name: own[i] for name, own, i in zip(self.names, self.categories, cell, strict=True)}
            | {
                "share": float(self.shares[cell]),
                "lower": _known(self.lower[cell]),
                "upper": _known(self.upper[cell]),
            }
            for cell in cells
        ]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return pa.Table.from_pylist(self.rows()).to_pandas()

    def plot(self) -> Figure:
        """A heat map of the shares of two attributes."""
        from matplotlib.figure import Figure

        if len(self.names) != 2:
            raise InvalidInput(f"a heat map shows two attributes: the table has {len(self.names)}")
        rows, columns = self.shares.shape
        figure = Figure(figsize=(2 + 0.6 * columns, 1.5 + 0.4 * rows), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(100 * self.shares, cmap="viridis", aspect="auto")
        axes.set_xticks(range(columns), self.categories[1], rotation=45, ha="right")
        axes.set_yticks(range(rows), self.categories[0])
        axes.set_xlabel(self.names[1])
        axes.set_ylabel(self.names[0])
        figure.colorbar(image, label="share (%)")
        return figure

    def conditional(self, given: str, level: float = 0.95) -> list[dict[str, Any]]:
        """The shares of the other attribute's categories among those who have each category of `given`.

        The interval is that of a ratio by the delta method, from the direct estimates; there is none where the share of
        the condition is not significantly above zero.
        """
        shares, direct, error = self._given(given)
        other = next(i for i, name in enumerate(self.names) if name != given)
        labels, conditions = self.categories[other], self.categories[self.names.index(given)]
        z, found = float(norm.ppf((1 + level) / 2)), []
        for g, condition in enumerate(conditions):
            total, variance = direct[g].sum(), error[g] ** 2
            known = self.measured and total > _SIGNIFICANT * math.sqrt(variance.sum())
            for k, label in enumerate(labels):
                share = float(shares[g, k] / shares[g].sum()) if shares[g].sum() > 0 else math.nan
                row: dict[str, Any] = {given: condition, self.names[other]: label, "share": share}
                low = high = None
                if known:
                    ratio = direct[g, k] / total
                    spread = (1 - 2 * ratio) * variance[k] + ratio**2 * variance.sum()
                    reach = z * math.sqrt(max(spread, 0.0)) / total
                    low, high = float(np.clip(ratio - reach, 0, 1)), float(np.clip(ratio + reach, 0, 1))
                    low, high = min(low, share), max(high, share)
                found.append(row | {"lower": low, "upper": high})
        return found

    def _given(self, given: str) -> tuple[Floats, Floats, Floats]:
        """Shares, direct estimates and standard errors with the condition first."""
        if len(self.names) != 2 or given not in self.names:
            raise InvalidInput.of(
                "given", given, f"one of the two attributes of the table, {', '.join(self.names)}"
            )
        turn = (lambda x: x) if self.names[0] == given else np.transpose
        return turn(self.shares), turn(self.direct), turn(self.standard_error)

    def relative_risk(
        self, outcome: tuple[str, str], exposed: str, other: str, level: float = 0.95
    ) -> dict[str, Any]:
        """The share of an outcome among the exposed over that among the others, with an interval by the delta method.

        Parameters
        ----------
        outcome
            An attribute of the table and one of its categories.
        exposed, other
            Two categories of the other attribute.
        level
            The probability that the interval covers the ratio.
        """
        name, category = outcome
        given = next(x for x in self.names if x != name)
        rows = {row[given]: row for row in self.conditional(given, level) if row[name] == category}
        first, second = rows[exposed], rows[other]
        ratio = first["share"] / second["share"] if second["share"] > 0 else math.nan
        low = high = None
        if first["lower"] is not None and second["lower"] is not None and second["lower"] > 0:
            spread = math.hypot(
                *((row["upper"] - row["lower"]) / 2 / max(row["share"], 1e-12) for row in (first, second))
            )
            low, high = ratio * math.exp(-spread), ratio * math.exp(spread)
        return {"relative_risk": ratio, "lower": low, "upper": high}

    def cramers_v(self, level: float = 0.95) -> tuple[float, tuple[float | None, float | None]]:
        """Cramér's V of the fitted table, with an interval from the noise of the direct estimates."""
        if len(self.names) != 2:
            raise InvalidInput(f"Cramér's V belongs to two attributes: the table has {len(self.names)}")
        value = _cramers_v(self.shares)
        if not self.measured:
            return value, (None, None)
        z = float(norm.ppf((1 + level) / 2))
        rng, drawn = np.random.default_rng(0), []
        for _ in range(200):
            noisy = norm_sub((self.shares + rng.normal(size=self.shares.shape) * self.standard_error).ravel())
            drawn.append(_cramers_v(noisy.reshape(self.shares.shape)))
        reach = z * float(np.std(drawn)) + abs(float(np.mean(drawn)) - value)
        return value, (max(0.0, value - reach), min(1.0, value + reach))


def _cramers_v(shares: Floats) -> float:
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    some = expected > 0
    chi = float(np.sum((shares - expected)[some] ** 2 / expected[some]))
    return math.sqrt(chi / (min(shares.shape) - 1))


def _known(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
