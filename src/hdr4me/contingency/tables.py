"""Tables of two and more attributes from a tally of joint questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from hdr4me.contingency.fit import Joint as Fitted
from hdr4me.contingency.fit import Measured, fit
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import SIGNIFICANT, shared_draw
from hdr4me.recalibration.shrinkage import norm_sub
from hdr4me.statistics import Answer
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.pairs import conditional_shares, fieller, joint_covariance, marginal_cells
from hdr4me.survey import Dimension
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
MODEL = (
    "No question asks these attributes together: the shares follow from the fitted model, without intervals."
)
INDEPENDENT = (
    "No question asks two attributes together: the shares of combinations assume independence, without intervals. For "
    "associations, create a survey with --tables pairs."
)


def tables(tally: Tally) -> Tables:
    """The joint distribution of the attributes that a survey asks together, fitted to all of its answers.

    Each joint question, and each question about one category, is a noisy table. Margins are averaged over all tables
    that hold an attribute. The maximum-entropy distribution with these margins is fitted to the tables as closely as
    their noise allows. Attributes that are only asked alone are independent in it.

    Examples
    --------
    >>> import hdr4me as hd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in ("smoker", "cough", "asthma")])
    >>> survey = hd.Survey(hd.table_schema(schema), epsilon=4.0)
    >>> client = hd.Client(survey)
    >>> record = {"smoker": "yes", "cough": "yes", "asthma": "no"}
    >>> result = tables(hd.Tally(survey).add(client.report(record) for _ in range(3000)))
    >>> bool(result.table("smoker", "cough").shares[1, 1] > 0.9)
    True
    """
    answer, leaves = tally.estimate(), dict[str, Dimension]()
    if answer.stale:
        raise InvalidInput(f"no tables are estimated: responses {answer.stale}")
    sources: dict[str, tuple[str, ...]] = {}
    for dimension in tally.survey.schema:
        if not dimension.is_category:
            continue
        sources[dimension.name] = tuple(leaf.name for leaf in dimension.leaves)
        for leaf in dimension.leaves:
            if leaves.setdefault(leaf.name, leaf) != leaf:
                raise InvalidInput(f"attribute {leaf.name!r} has different categories in two questions")
    if not sources:
        raise InvalidInput(
            "this survey has no joint questions and no categories: create it with hdr4me survey --tables pairs"
        )
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
    >>> import hdr4me as hd, pandas as pd
    >>> schema = hd.Schema([hd.Categorical(name, ["no", "yes"]) for name in ("smoker", "cough")])
    >>> records = pd.DataFrame({"smoker": ["yes", "no"] * 1000, "cough": ["no", "yes"] * 1000})
    >>> hd.tables(hd.collect(records, hd.Survey(hd.table_schema(schema), epsilon=4.0)))
    <Tables of smoker, cough: 1 measured>
    """

    attributes: dict[str, tuple[str, ...]]
    answer: Answer
    sources: dict[str, tuple[str, ...]]
    joint: Fitted

    def __repr__(self) -> str:
        assumed = ", assumed to be independent" if self.independent else ""
        noted = f"; {len(self.notes):,} with notes" if self.notes else ""
        return f"<Tables of {', '.join(self.attributes)}: {len(self.sources)} measured{assumed}{noted}>"

    @cached_property
    def _known(self) -> dict[str, Answer]:
        return {}

    @property
    def independent(self) -> bool:
        """Whether no question asks two attributes together, so that independence is assumed."""
        return all(len(own) == 1 for own in self.sources.values())

    @property
    def notes(self) -> dict[str, str]:
        """The notes on the answers to each question, such as the share of missing values."""
        rows = zip(self.answer.dimensions, self.answer.notes, strict=True)
        return {name: note for name, note in rows if note and name in self.sources}

    def _index(self, name: str) -> int:
        if name not in self.attributes:
            raise InvalidInput(f"{name!r} is not an attribute: known are {', '.join(self.attributes)}")
        return list(self.attributes).index(name)

    def shares(self, *names: str) -> Floats:
        """The fitted shares of one or more attributes, in this order."""
        if not names or len(set(names)) < len(names):
            raise InvalidInput.of("names", names, "one or more different attributes")
        indices = [self._index(name) for name in names]
        ordered = tuple(sorted(indices))
        return self.joint.table(ordered).transpose([ordered.index(j) for j in indices])

    def table(self, *names: str, confidence: float = 0.95) -> Contingency:
        """The table of one or more attributes, in this order.

        Intervals are those of the direct estimates, extended to the fitted share. The direct estimates are those of the
        questions that ask all of these attributes, possibly with others: sums over the others, weighted by the
        precision of each question. Without such a question the table follows from the model, and has no intervals.
        """
        shares = self.shares(*names)
        asked = [q for q, own in self.sources.items() if set(names) <= set(own)]
        categories, shape = tuple(self.attributes[name] for name in names), shares.shape
        if not asked:
            nothing = np.full(shape, np.nan)
            note = INDEPENDENT if self.independent else MODEL
            return Contingency(names, categories, shares, nothing, nothing, nothing, nothing, note=note)
        rows = {q: self._rows(q) for q in asked}
        cells = {q: self._cells(q, names) for q in asked}
        weight = {q: 1 / float(np.sum(rows[q].standard_error ** 2)) for q in asked}
        weight = {q: own / sum(weight.values()) for q, own in weight.items()}
        direct = np.asarray(sum(weight[q] * np.bincount(cells[q], rows[q].value) for q in asked))

        @cache
        def covariance() -> Floats:
            found = [weight[q] ** 2 * self._covariance(q, rows[q], cells[q]) for q in asked]
            users, f, survey = self.answer.n_reports, shares.ravel(), self.answer.survey
            # Users who answer one question do not answer another, so the errors of two questions are correlated.
            drawn = shared_draw(users, len(survey.questions), survey.sampled, even=not survey.weighted)
            drawn *= 1 - sum(own**2 for own in weight.values())
            if all(own.ndim == 2 for own in found):
                return np.asarray(sum(found) + drawn * (np.diag(f) - np.outer(f, f)))
            return np.asarray(
                sum(np.diag(own) if own.ndim == 2 else own for own in found) + drawn * f * (1 - f)
            )

        if len(asked) == 1 and len(self.sources[asked[0]]) == len(names):
            order = np.argsort(cells[asked[0]])
            (low, high), error = rows[asked[0]].interval(confidence), rows[asked[0]].standard_error
            low, high, error = low[order], high[order], error[order]
        else:
            error = np.sqrt(covariance() if covariance().ndim == 1 else np.diag(covariance()))
            reach = quantile(confidence, min(int(own.n_answers[0]) for own in rows.values())) * error
            low, high = direct - reach, direct + reach
        low, high = (np.clip(end, 0.0, 1.0).reshape(shape) for end in (low, high))
        low, high = np.minimum(low, shares), np.maximum(high, shares)
        both = direct.reshape(shape), error.reshape(shape)
        return Contingency(names, categories, shares, low, high, *both, covariance)

    def _rows(self, question: str) -> Answer:
        """The direct estimates of a question."""
        if question not in self._known:
            self._known[question] = self.answer.frequencies(question)
        return self._known[question]

    def _cells(self, question: str, names: Sequence[str]) -> NDArray[np.int64]:
        """For each combination of a question, the number of its cell in the table of some of its attributes."""
        own = self.sources[question]
        return marginal_cells([len(self.attributes[x]) for x in own], [own.index(name) for name in names])

    def _covariance(self, question: str, rows: Answer, cells: NDArray[np.int64]) -> Floats:
        """The covariance of sums of a question's direct estimates, if the fitted distribution is the true one."""
        survey, shares = self.answer.survey, self.shares(*self.sources[question]).ravel()
        channel = survey.questions[survey.question_of(survey.schema.index(question))].channel
        answers = int(rows.n_answers[0])
        return joint_covariance(channel, shares, rows.standard_error, answers, rows.n_reports, cells)

    def sample(self, n: int, seed: int) -> pa.Table:
        """`n` synthetic records drawn from the fitted distribution.

        They preserve the fitted tables up to sampling error. Associations that no table of the survey holds, or that
        are weaker than the noise, are not preserved. Synthetic records reveal nothing beyond the reports.
        """
        if not isinstance(n, int) or n < 1:
            raise InvalidInput.of("n", n, "a positive integer")
        rows = self.joint.sample(n, np.random.default_rng(seed))
        columns = {
            name: pa.array(np.array(categories, object)[rows[:, j]], pa.string())
            for j, (name, categories) in enumerate(self.attributes.items())
        }
        return pa.table(columns)

    def associations(self, confidence: float = 0.95) -> list[dict[str, Any]]:
        """Cramér's V of every pair of attributes, the strongest first."""
        found = []
        for a, b in combinations(self.attributes, 2):
            value, (low, high) = self.table(a, b).cramers_v(confidence)
            found.append({"first": a, "second": b, "cramers_v": value, "lower": low, "upper": high})
        return sorted(found, key=lambda row: -row["cramers_v"])


@dataclass(frozen=True, eq=False)
class Contingency:
    """One table: fitted shares with intervals, and the direct estimates if a question asks the attributes together.

    Parameters
    ----------
    names, categories
        The attributes, and the categories of each.
    shares
        The fitted share of each combination.
    lower, upper
        The ends of the intervals; NaN without a question about these attributes.
    direct, standard_error
        The unbiased estimates of the questions about these attributes, and their standard errors.
    dependence
        Computes the covariance of the direct estimates; None without such a question.
    note
        Why there are no intervals; empty if there are.

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
    dependence: Callable[[], Floats] | None = None
    note: str = ""

    @property
    def measured(self) -> bool:
        """Whether a question asks these attributes together."""
        return self.dependence is not None

    @cached_property
    def covariance(self) -> Floats | None:
        """The covariance matrix of the direct estimates; their variances only if there are more than 256 cells."""
        return None if self.dependence is None else self.dependence()

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
        beside, below = (max(map(len, labels)) for labels in self.categories)
        size = (2 + 0.6 * columns + 0.09 * beside, 1.2 + 0.4 * rows + 0.06 * below)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(100 * self.shares, cmap="viridis", aspect="auto", vmin=0)
        axes.set_xticks(range(columns), self.categories[1], rotation=45, ha="right")
        axes.set_yticks(range(rows), self.categories[0])
        axes.set_xlabel(self.names[1])
        axes.set_ylabel(self.names[0])
        figure.colorbar(image, label="share (%)")
        return figure

    def conditional(self, given: str, confidence: float = 0.95) -> list[dict[str, Any]]:
        """The shares of the other attribute's categories among those who have each category of `given`.

        The interval is Fieller's interval of the ratio of the direct estimates, extended to the fitted ratio; there is
        none where the share of the condition is not significantly above zero.
        """
        table = self._condition_first(given)
        totals = table.shares.sum(axis=1, keepdims=True)
        shares = np.divide(table.shares, totals, out=np.full(table.shares.shape, np.nan), where=totals > 0)
        low = high = np.full(shares.shape, np.nan)
        if table.covariance is not None:
            _, _, low, high = conditional_shares(table.direct, table.covariance, confidence)
        rows = zip(shares.flat, np.fmin(low, shares).flat, np.fmax(high, shares).flat, low.flat, strict=True)
        cells = product(*table.categories)
        return [
            {given: condition, table.names[1]: label, "share": float(share)}
            | {"lower": None if math.isnan(end) else float(a), "upper": None if math.isnan(end) else float(b)}
            for (condition, label), (share, a, b, end) in zip(cells, rows, strict=True)
        ]

    def _condition_first(self, given: str) -> Contingency:
        """The same table of two attributes, the condition first."""
        if len(self.names) != 2 or given not in self.names:
            raise InvalidInput.of(
                "given", given, f"one of the two attributes of the table, {', '.join(self.names)}"
            )
        if self.names[0] == given:
            return self
        covariance = self.covariance
        order = np.arange(self.shares.size).reshape(self.shares.shape).T.ravel()
        dependence = None if covariance is None else lambda: _in_order(covariance, order)
        shares, lower, upper, direct, error = (
            x.T for x in (self.shares, self.lower, self.upper, self.direct, self.standard_error)
        )
        names, categories = self.names[::-1], self.categories[::-1]
        return Contingency(names, categories, shares, lower, upper, direct, error, dependence)

    def relative_risk(
        self, outcome: tuple[str, str], exposed: str, other: str, confidence: float = 0.95
    ) -> dict[str, Any]:
        """The share of an outcome among the exposed over that among the others.

        The interval is Fieller's interval of the direct estimates, extended to the fitted ratio. There is none where
        the share of a condition, or of the outcome among the others, is not significantly above zero.

        Parameters
        ----------
        outcome
            An attribute of the table and one of its categories.
        exposed, other
            Two categories of the other attribute.
        confidence
            The probability that the interval covers the ratio.
        """
        name, category = outcome
        if name not in self.names:
            raise InvalidInput.of(
                "outcome", name, f"one of the attributes of the table, {', '.join(self.names)}"
            )
        table = self._condition_first(next((x for x in self.names if x != name), name))
        conditions, labels = table.categories
        for parameter, given, known in (
            ("outcome", category, labels),
            ("exposed", exposed, conditions),
            ("other", other, conditions),
        ):
            if given not in known:
                raise InvalidInput.of(parameter, given, f"one of {', '.join(known)}")
        c, groups = labels.index(category), [conditions.index(exposed), conditions.index(other)]
        first, second = (table.shares[g, c] / (table.shares[g].sum() or math.nan) for g in groups)
        ratio = float(first / second) if second > 0 else math.nan
        low = high = math.nan
        if table.covariance is not None:
            value, error, _, _ = conditional_shares(table.direct, table.covariance, confidence)
            first, second = (value[g, c] for g in groups)
            cross = 0.0
            if table.covariance.ndim == 2:
                slopes = np.zeros((2, *table.shares.shape))
                for slope, g in zip(slopes, groups, strict=True):
                    slope[g] = -value[g, c] / table.direct[g].sum()
                    slope[g, c] += 1 / table.direct[g].sum()
                both = slopes.reshape(2, -1)
                cross = float(both[0] @ table.covariance @ both[1])
            variances = [error[g, c] ** 2 for g in groups]
            low, high = fieller(first, second, variances[0], cross, variances[1], confidence)
        if math.isnan(low):
            return {"relative_risk": ratio, "lower": None, "upper": None}
        low, high = max(0.0, np.fmin(low, ratio)), np.fmax(high, ratio)
        return {"relative_risk": ratio, "lower": float(low), "upper": float(high)}

    def cramers_v(self, confidence: float = 0.95) -> tuple[float, tuple[float | None, float | None]]:
        """Cramér's V of the fitted table, with an interval from the direct estimates, extended to the fitted value.

        With D = (share − expected)/√expected, V² is Σ D² over the smaller number of categories less 1. Rare categories
        have a large weight in D, so categories whose share is not significantly above zero are merged. The direct
        estimates of the other D have the covariance M, so that their sum of squares is about c times a noncentral
        chi-square variable with c = tr M²/tr M and (tr M)²/tr M² degrees of freedom; the interval inverts its
        noncentrality. Merging reduces Σ D², by at most ρ(1/q − 1) if a share ρ of the users is in merged categories of
        one attribute and q is the least share of the other one. If categories of both are merged, the upper end is 1.
        """
        if len(self.names) != 2:
            raise InvalidInput(f"Cramér's V belongs to two attributes: the table has {len(self.names)}")
        value = _cramers_v(self.shares)
        if self.covariance is None:
            return value, (None, None)
        merging = [self._merging(axis) for axis in (0, 1)]
        shares = merging[0] @ self.shares @ merging[1].T
        margins = shares.sum(axis=1), shares.sum(axis=0)
        left, right = (
            np.divide(
                matrix - p[:, None], np.sqrt(p)[:, None], out=np.zeros_like(matrix), where=p[:, None] > 0
            )
            for matrix, p in zip(merging, margins, strict=True)
        )
        if self.covariance.ndim == 2:
            project = np.kron(left, right)
            noise = project @ self.covariance @ project.T
            trace, square = float(np.trace(noise)), float((noise**2).sum())
        else:
            variances, both = self.covariance.reshape(self.shares.shape), (left.T @ left, right.T @ right)
            trace = float(np.diag(both[0]) @ variances @ np.diag(both[1]))
            square = float((variances * (both[0] ** 2 @ variances @ both[1] ** 2)).sum())
        unit, free = square / trace, trace**2 / square
        found = float(((left @ self.direct @ right.T) ** 2).sum()) / unit
        low, high = (
            unit * _noncentrality(found, free, p) for p in ((1 + confidence) / 2, (1 - confidence) / 2)
        )
        rare = [float(p[matrix.sum(axis=1) > 1].sum()) for matrix, p in zip(merging, margins, strict=True)]
        if all(rare):
            high = math.inf
        elif any(rare):
            high += sum(rare) * (1 / margins[1 if rare[0] else 0].min() - 1)
        most = min(self.shares.shape) - 1
        return value, (min(math.sqrt(low / most), value), min(max(math.sqrt(high / most), value), 1.0))

    def _merging(self, axis: int) -> Floats:
        """The matrix that adds up the categories of an attribute whose shares are not significantly above zero.

        They are merged with the smallest of the other categories. The two largest categories are never merged.
        """
        k = self.shares.shape[axis]
        cells = np.moveaxis(np.arange(self.shares.size).reshape(self.shares.shape), axis, 0).reshape(k, -1)
        error = np.sqrt([_in_order(self.covariance, own).sum() for own in cells])
        margin = self.shares.sum(axis=1 - axis)
        n_separate = max(int((margin > SIGNIFICANT * error).sum()), min(2, k))
        matrix = np.zeros((n_separate, k))
        matrix[np.minimum(np.arange(k), n_separate - 1), np.argsort(-margin)] = 1.0
        return matrix


def _in_order(covariance: Any, cells: Any) -> Floats:
    """The covariance, or the variances, of some cells."""
    return np.asarray(covariance[cells] if covariance.ndim == 1 else covariance[np.ix_(cells, cells)])


def _noncentrality(statistic: float, free: float, probability: float) -> float:
    """The noncentrality at which a chi-square variable is at most `found` with this probability; 0 if there is none."""

    def excess(x: float) -> float:
        return float(ncx2.cdf(statistic, free, x) if x > 0 else chi2.cdf(statistic, free)) - probability

    if excess(0.0) <= 0:
        return 0.0
    high = statistic + 1.0
    while excess(high) > 0:
        high *= 2
    return float(brentq(excess, 0.0, high))


def _cramers_v(shares: Floats) -> float:
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    some = expected > 0
    chi = float(np.sum((shares - expected)[some] ** 2 / expected[some]))
    return math.sqrt(chi / (min(shares.shape) - 1))


def _known(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
