"""hdr4me analyze and compare: the error of mechanisms, predicted for a setting or simulated on public data."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import EPSILON, JSON, RESULTS, SAMPLED, SCHEMA, Read, Texts
from hdr4me.cli.output import print_json, print_note, print_table, probability, progress
from hdr4me.cli.reports import show_quality
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.registry import built_in
from hdr4me.pages.html import provenance
from hdr4me.pages.text import pluralize

_SMALLEST, _LARGEST = 1e-9, 5000.0  # budgets per answer for which every formula is accurate in floating point
_MOST = 10**15


def analyze(
    mechanism: Annotated[str, Option(help=f"One of {', '.join(built_in())}, or a mechanism of a plug-in.")],
    epsilon: EPSILON,
    users: Annotated[int, Option(help="Number of users.")],
    dims: Annotated[int, Option(help="Number of dimensions.")] = 1,
    sampled: Annotated[int, Option(help="Number of dimensions that each person reports.")] = 1,
    values: Annotated[
        str | None,
        Option(
            metavar="<uniform or x,…>", help="True values: uniform, or 0.1,0.2,0.3; default: the worst case."
        ),
    ] = None,
    discretized: Annotated[
        bool, Option("--discretized", help="Use the discretized mechanism, as a survey does.")
    ] = False,
    tolerance: Annotated[
        str | None, Option(metavar="<x,…>", help="Tolerances, such as 0.01,0.05,0.1.")
    ] = None,
    range_: Annotated[
        str | None, Option("--range", metavar="<low:high>", help="The range of the data, in their own units.")
    ] = None,
    json: JSON = False,
) -> None:
    """Predict the error of one mechanism: bias, variance and the probability of staying within a tolerance.

    Values, tolerances and errors are in the units of --range; without it, on the scale [-1, 1]. For dimensions with
    different ranges use hdr4me plan --schema.

    Example: hdr4me analyze --mechanism piecewise --epsilon 1 --users 100000 --dims 50 --sampled 1 --tolerance 0.05,0.1
    """
    from hdr4me.channels.proof import check_epsilon
    from hdr4me.framework import deviation
    from hdr4me.mechanisms.registry import scaled_mechanism

    m = sampled
    for option, count in (("--users", users), ("--dims", dims), ("--sampled", m)):
        opt.check(option, count, 1 <= count <= _MOST, f"a positive integer up to {_MOST:,}")
    at = (
        {}
        if tolerance is None
        else dict(
            zip(map(str.strip, tolerance.split(",")), opt.numbers("--tolerance", tolerance), strict=True)
        )
    )
    opt.check("--tolerance", tolerance, all(ξ >= 0 for ξ in at.values()), "numbers >= 0")
    with opt.named_options():
        check_epsilon(epsilon)
        allowed = f"{_SMALLEST:g} to {_LARGEST:g} for each of the {m:,} answers"
        opt.check("--epsilon", epsilon, _SMALLEST <= epsilon / m <= _LARGEST, allowed)
        law: Any = scaled_mechanism(mechanism, epsilon=epsilon / m)
        (first, last), (low, high) = law.domain, _range(range_) if range_ else law.domain
        unit = (high - low) / (last - first)
        known = None if values in (None, "uniform") else opt.numbers("--values", values)
        inside = all(low <= value <= high for value in known or ())
        opt.check("--values", values, inside or not range_, f"values in the range from {low:g} to {high:g}")
        dev = deviation(
            law.exact() if discretized else law,
            users=users,
            dims=dims,
            sampled=m,
            values=known and [first + (value - low) / unit for value in known],
            prior="uniform" if values == "uniform" else None,
        )
    norm, squared = dev.norm_law, unit**2
    jointly = {text: dev.joint_probability_within(ξ / unit) for text, ξ in at.items()}
    some, every = dev.probability_some_exceed(1.0), dev.probability_all_exceed(1.0)
    # The keys in JSON, the labels in the table (none: not shown), and the values.
    facts: list[tuple[str, str, Any]] = [
        ("mechanism", "", mechanism),
        ("domain", "", [low, high]),
        ("epsilon", "", epsilon),
        ("epsilon_per_value", "ε per answer", epsilon / m),
        ("reports_per_dimension", "answers per dimension", dev.reports_per_dimension),
        ("bias", "bias", unit * float(dev.bias)),
        ("variance", "variance", squared * float(dev.variance)),
        ("mse", "mean squared error", squared * dev.mse),
        (
            "probability_within",
            "P(one within ±{})",
            {text: float(dev.probability_within(ξ / unit)) for text, ξ in at.items()},
        ),
        ("joint_probability_within", f"P(all {dims:,} within ±{{}})", jointly),
        (
            "berry_esseen",
            "error of the probabilities, at most (Berry–Esseen bound)",
            float(dev.berry_esseen),
        ),
        ("tolerance_95", "margin of error (95 %) of one dimension", unit * dev.tolerance(0.95)),
        (
            "joint_tolerance_95",
            f"margin of error (95 %) of all {dims:,} dimensions jointly",
            unit * dev.tolerance(0.95, jointly=True),
        ),
        (
            "norm",
            "",
            {"mean": unit * norm.mean, "sd": unit * norm.sd, "quantile_95": unit * norm.quantile(0.95)},
        ),
        ("mse_sd", "", squared * dev.mse_law.sd),
        ("mse_quantile_95", "", squared * dev.mse_law.quantile(0.95)),
        ("probability_some_exceed_1", "", some),
        ("probability_all_exceed_1", "", every),
        ("discretized", "", discretized),
    ]
    if json:
        print_json({key: value for key, _, value in facts})
        return
    if dims == 1:
        joint = ("joint_probability_within", "joint_tolerance_95")
        facts = [fact for fact in facts if fact[0] not in joint]
    if abs(dev.bias) < 1e-9:  # the mean squared error is the variance
        facts = [fact for fact in facts if fact[0] != "mse"]
    rows: list[list[Any]] = [
        ["scale of values and errors", f"[{low:g}, {high:g}]"],
        ["true values", "uniform" if values == "uniform" else "given" if values else "worst case"],
    ]
    for key, label, value in facts:
        parts = value if isinstance(value, dict) else {"": value}
        shown = probability if "probability" in key else lambda part: part
        rows += [[label.format(text), shown(part)] for text, part in parts.items() if label]
    each = "" if dims == 1 else f", each reports {m:,} of {dims:,} dimensions"
    title = f"{mechanism}, ε = {epsilon:g}, {users:,} users{each}"
    print_table(title, ["quantity", "value"], rows)
    biases = law.bias([first + (last - first) * k / 64 for k in range(65)])
    if abs(biases).max() > 1e-9 and not discretized:
        print_note(
            f"{mechanism} is biased, and margins include the bias; --discretized is the unbiased table of a survey."
        )
    if dev.berry_esseen > 0.05:
        most = f"{100 * float(dev.berry_esseen):.0f} %"
        print_note(f"Small sample: probabilities may be off by up to {most} (Berry–Esseen bound).")


def _range(text: str) -> tuple[float, float]:
    """The two ends of a range such as 0:120.

    >>> _range("0:120")
    (0.0, 120.0)
    """
    low, colon, high = text.partition(":")
    with suppress(ValueError):
        ends = float(low), float(high)
        if colon and math.isfinite(ends[1] - ends[0]) and ends[0] < ends[1]:
            return ends
    raise InvalidInput(f"--range {text} is not allowed: two numbers such as 0:120, the smaller one first")


@opt.reads_records
def compare(
    data: Annotated[Path, Argument(help="Public or synthetic data: CSV, Parquet, JSON or Excel.")],
    epsilon: Annotated[
        str, Option(metavar="<ε,…>", help="Privacy budgets ε of one report, separated by commas.")
    ] = "0.5,1,2,4",
    mechanisms: Annotated[
        Texts, Option("--mechanism", help="Use only these mechanisms (repeatable).")
    ] = None,
    statistic: Annotated[str, Option(help="For numbers: mean, median or variance.")] = "mean",
    columns: Annotated[Texts, Option("--column", help="Use only these columns (repeatable).")] = None,
    schema: SCHEMA = None,
    sampled: SAMPLED = 1,
    memoized_epsilon: Annotated[
        float | None, Option(help="Compare memoized responses with this budget for all reports.")
    ] = None,
    users: Annotated[
        int | None,
        Option(
            help="Number of simulated users, drawn from the rows with replacement; default: each row once."
        ),
    ] = None,
    repeats: Annotated[int, Option(help="Simulated collections per row.")] = 20,
    outputs: RESULTS = None,
    json: JSON = False,
    *,
    read: Read,
) -> None:
    """Compare mechanisms and budgets on your data: predicted and simulated error, with and without re-calibration.

    The command uses true values, and without --schema it takes ranges and categories from them: use it with public or
    synthetic data only. With --schema it also compares optional numbers, selections and vectors.

    \b
    Mechanisms for --mechanism, by kind of column:
      numbers           the mechanisms of hdr4me analyze; pair and agreement
                        (by default from ε = 1.5)
      categories        grr, subset, oue, projective, histogram; the baselines
                        sue, the, olh, blh, hadamard, dbitflip
      optional numbers  optional
      vectors           codebook
      selections        privset

    Example: hdr4me compare people.csv --epsilon 0.5,1,2,4 --output compare.html
    """
    from hdr4me.comparison import compare as run
    from hdr4me.comparison.compare import COLUMNS
    from hdr4me.comparison.measure import LEVEL

    html, png = opt.outputs_of(outputs, ".html", ".png")
    opt.check_outputs([html, png], [data, schema])
    known = opt.load_schema(schema)
    print_note("This command uses true values: use public or synthetic data only.")
    with opt.named_options(data="DATA"), progress("simulated collections", None) as done:
        found = run(
            read([data]),
            epsilon=opt.numbers("--epsilon", epsilon),
            mechanisms=mechanisms,
            statistic=statistic,
            schema=known,
            columns=columns,
            sampled=sampled,
            memoized_epsilon=memoized_epsilon,
            users=users,
            repeats=repeats,
            progress=done,
        )
    cleaned = found.data_quality.notes()
    for note in found.notes:
        print_note("warning: " * (note in cleaned) + note)
    made = provenance(None, sorted({row.epsilon for row in found.rows}), LEVEL)
    opt.write_results(html, png, made, found.html, found.plot)
    if json:
        shown = {key: value for key, value in vars(found).items() if key not in ("rows", "data_quality")}
        quality = found.data_quality.rows()
        print_json({"data": data.name, **made, **shown, "data_quality": quality, "rows": found.table()})
        return
    if found.data_quality.counts[:, 1:].any():
        show_quality(found.data_quality)
    for title, rows in found.titled().items():
        line = (
            f"{title}: mean squared errors ({rows[0].scale}), averaged over all estimates; {found.users:,} users, "
            f"{pluralize(repeats, 'simulated collection')} per row"
        )
        cells = [row.cells() for row in rows]
        used = [i for i in range(len(COLUMNS)) if any(row[i] is not None for row in cells)]
        print_table(line, [COLUMNS[i] for i in used], [[row[i] for i in used] for row in cells])
