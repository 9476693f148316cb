"""Mechanisms and budgets beside one another on given data: the error foretold, and that of simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hdr4me.comparison.data import public_table
from hdr4me.comparison.kinds import CATEGORICAL, NUMERIC, Part, parts_of, reason_against, survey_of
from hdr4me.comparison.measure import Row, measured, served
from hdr4me.errors import InvalidInput
from hdr4me.io import Account
from hdr4me.survey import Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CATEGORICAL", "NUMERIC", "STATISTICS", "Comparison", "Row", "compare"]

STATISTICS = ("mean", "median", "variance")
"""What may be asked of numbers; categories and selections are compared by shares, vectors by means."""


@dataclass(frozen=True)
class Comparison:
    """All rows; a notebook shows the picture and the table.

    Parameters
    ----------
    rows
        One for each mechanism and budget, and for each statistic where several are asked. Each row names the scale of
        its errors; errors on different scales are never added up.
    n_users, n_sampled
        How many users there are, and how many questions each answers.
    repeats, seed
        How many collections were simulated for each row, and their seed.
    notes
        What was left out or cleaned, in sentences.
    account
        How many values of each column were read, missing, unknown or out of range. It is counted from true values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
    >>> found = compare(people, epsilon=[1.0, 2.0], mechanisms=["grr"], repeats=2)
    >>> [(row["epsilon"], row["mechanism"]) for row in found.table()]
    [(1.0, 'grr'), (2.0, 'grr')]
    >>> found.best(2.0, "categories").mechanism
    'grr'
    """

    rows: tuple[Row, ...]
    n_users: int
    n_sampled: int
    repeats: int
    seed: int
    notes: tuple[str, ...]
    account: Account

    def table(self) -> list[dict[str, Any]]:
        """The rows as plain values.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> import pyarrow as pa
        >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
        >>> found = compare(people, epsilon=2.0, mechanisms=["grr"], repeats=2)
        >>> len(found.table())
        1
        """
        return [asdict(row) for row in self.rows]

    def best(self, epsilon: float, kind: str = "numbers", statistic: str | None = None) -> Row:
        """The row with the least simulated error at one budget.

        Parameters
        ----------
        epsilon
            The budget.
        kind
            "numbers", "optional numbers", "vectors", "optional vectors", "categories" or "selections".
        statistic
            Of rows of this statistic; the first one of the kind unless given.

        Returns
        -------
        Row

        Raises
        ------
        InvalidInput
            If nothing was compared at this budget for this kind and statistic.

        Examples
        --------
        >>> import pyarrow as pa
        >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
        >>> found = compare(people, epsilon=2.0, mechanisms=["grr"], repeats=2)
        >>> found.best(2.0, "categories").mechanism
        'grr'
        """
        rows = [row for row in self.rows if row.epsilon == epsilon and row.kind == kind]
        asked = [row for row in rows if row.statistic == (statistic or rows[0].statistic)]
        if not asked:
            told = "" if statistic is None else f"the {statistic} of "
            raise InvalidInput(f"nothing was compared for {told}{kind} at epsilon = {epsilon:g}")
        return min(asked, key=lambda row: row.simulated)

    def plot(self) -> Figure:
        """Error by ε, one line for each mechanism.

        Returns
        -------
        matplotlib.figure.Figure

        Examples
        --------
        >>> import pyarrow as pa
        >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
        >>> found = compare(people, epsilon=2.0, mechanisms=["grr"], repeats=2)
        >>> len(found.plot().axes)
        1
        """
        from hdr4me.comparison.page import draw

        return draw(self)

    def html(self) -> str:
        """One page with picture and table that needs no network.

        Returns
        -------
        str

        Examples
        --------
        >>> import pyarrow as pa
        >>> people = pa.table({"smoker": ["no", "no", "yes"] * 200})
        >>> found = compare(people, epsilon=2.0, mechanisms=["grr"], repeats=2)
        >>> found.html().startswith("<!doctype html>")
        True
        """
        from hdr4me.comparison.page import page

        return page(self)

    def __repr__(self) -> str:
        budgets = sorted({row.epsilon for row in self.rows})
        return (
            f"<Comparison of {len({row.mechanism for row in self.rows})} mechanisms at ε = "
            f"{', '.join(f'{x:g}' for x in budgets)} on {self.n_users:,} users, {self.repeats} collections each>"
        )

    def _repr_html_(self) -> str:
        from hdr4me.comparison.page import fragment

        return fragment(self)


def compare(
    data: Any,
    *,
    epsilon: float | Sequence[float] = (0.5, 1.0, 2.0, 4.0),
    mechanisms: Sequence[str] | None = None,
    statistic: str = "mean",
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    n_sampled: int = 1,
    n_users: int | None = None,
    repeats: int = 20,
    recalibrate: bool = True,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Foretold and simulated error of each mechanism, before and after re-calibration, on these data.

    It reads true values, and ranges and categories off them: for public or synthetic data only.

    Parameters
    ----------
    data
        A CSV, Parquet or JSON lines file, an Arrow table, or a pandas or polars frame.
    epsilon
        The budgets of a report.
    mechanisms
        For each kind of column; a few well-known ones unless given. Numbers are served by every mechanism for numbers,
        and by "pair" and "agreement", which ask them together (unless given, from ε = 1.5 on, for two numbers or more).
        Categories are served by "grr", "subset", "projective", "oue" and "histogram", optional numbers by "optional",
        vectors by "codebook", selections by "privset".
    statistic
        What is asked of numbers: "mean", "median" or "variance". Categories and selections are asked for shares,
        vectors for the means of their coordinates, optional numbers and vectors also for the share of users who have
        one.
    schema
        The dimensions with their ranges and categories, if they are known.
    columns
        Only these columns, where no schema is given.
    n_sampled
        How many questions each user answers, of those of one kind. Of blocks ("agreement") it is always one.
    n_users
        How many users to draw from the rows, with replacement; the rows themselves unless given.
    repeats
        How many collections are simulated for each mechanism and budget.
    recalibrate
        Whether to re-calibrate each of them too, which takes most of the time.
    seed
        The same seed gives the same numbers.
    progress
        Called with 1 after each simulated collection.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInput
        Where an argument is not allowed or no column can be compared.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(1)
    >>> found = compare(pa.table({"age": rng.integers(18, 90, 2000)}), epsilon=1.0, repeats=2, mechanisms=["duchi"])
    >>> found
    <Comparison of 1 mechanisms at ε = 1 on 2,000 users, 2 collections each>
    """
    budgets = _budgets(epsilon)
    if statistic not in STATISTICS:
        raise InvalidInput.of("statistic", statistic, f"one of {', '.join(STATISTICS)}")
    if type(repeats) is not int or not 1 <= repeats <= 10_000:
        raise InvalidInput.of("repeats", repeats, "a whole number from 1 to 10000")
    table, known, notes, account = public_table(data, list(columns) if columns else None, schema)
    rng = np.random.default_rng(seed)
    if n_users is not None:
        if type(n_users) is not int or not 10 <= n_users <= 10_000_000:
            raise InvalidInput.of("n_users", n_users, "a whole number from 10 to 10000000")
        table = table.take(rng.integers(0, table.num_rows, n_users))
    rows: list[Row] = []
    parts, unserved = parts_of(known, mechanisms)
    if not parts:
        raise InvalidInput(
            f"none of the mechanisms serves a column of these data: {'; '.join([*unserved, *notes])}"
        )
    notes += unserved

    def lines(part: Part, budget: float, name: str) -> list[Row]:
        """The rows of one mechanism at one budget; none, and a note, if it is left out."""
        against = reason_against(part, name, budget, n_sampled, statistic)
        if against is not None:
            notes.extend([against] if against else [])
            return []
        asked = part.kind.statistics(statistic)
        survey = survey_of(part, name, budget, n_sampled, table.num_rows)
        if not all(served(survey, each) for each in asked):
            notes.append(f"{name} is left out: its reports do not tell the {asked[0]}")
            return []
        seeds = [int(x) for x in rng.integers(0, 2**62, repeats)]
        found = measured(
            name, part.kind.name, asked, survey, table, seeds, recalibrate=recalibrate, progress=progress
        )
        notes.extend(
            f"the {row.statistic} of {row.kind} by {name} at epsilon = {budget:g}: {100 * (1 - row.told):.3g} % of the "
            "answers are left out, because too few reports tell them"
            for row in found
            if row.told < 1
        )
        return [row for row in found if row.told > 0]

    for part in parts:
        for budget in budgets:
            for name in part.mechanisms:
                rows += lines(part, budget, name)
    if not rows:
        raise InvalidInput("nothing could be compared: " + "; ".join(notes))
    return Comparison(
        tuple(rows), table.num_rows, n_sampled, repeats, seed, tuple(dict.fromkeys(notes)), account
    )


def _budgets(epsilon: float | Sequence[float]) -> list[float]:
    given = [epsilon] if isinstance(epsilon, int | float) else list(epsilon)
    for value in given:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InvalidInput.of("epsilon", value, "positive, finite numbers")
    if not given:
        raise InvalidInput.of("epsilon", epsilon, "at least one number")
    return [float(value) for value in given]
