"""hdr4me plan: from what is wanted to the survey that provides it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.audit import manipulation_table
from hdr4me.cli.options import HTML, JSON, PNG, QUANTILES, SCHEMA, File, Texts
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.pages.counted import counted
from hdr4me.pages.html import stamp

if TYPE_CHECKING:
    from hdr4me.planner import Option as Way
    from hdr4me.planner import Plan

_SHOWN = (
    "sampled", "mse", "probability_within", "joint_probability_within", "tolerance_each", "tolerance_joint",
    "worst_tolerance_joint",
)  # fmt: skip
_SECOND = ("dimensions", "values", "reports", "standard_error", "standard_error_of_two", "gain")


def plan(
    users: Annotated[int | None, Option(help="Number of users; left out: the fewest that suffice.")] = None,
    dims: Annotated[int | None, Option(help="Number of dimensions; left out: the most that can be.")] = None,
    epsilon: Annotated[float | None, Option(help="Total budget; left out: the least that suffices.")] = None,
    tolerance: Annotated[Texts, Option(metavar="<x or name=x>", help="Largest error (repeat).")] = None,
    probability: Annotated[float | None, Option(help="… with this probability (0.95 unless given).")] = None,
    schema: SCHEMA = None,
    category_count: Annotated[int | None, Option(help="With --dims: each has this many categories.")] = None,
    mechanism: Annotated[Texts, Option(metavar="<str>", help="Only these for numbers (repeat).")] = None,
    categorical: Annotated[Texts, Option(metavar="<str>", help="Only these for categories (repeat).")] = None,
    prior: Annotated[str, Option(help="uniform, worst, a tally, or a file of values.")] = "uniform",
    per_dimension: Annotated[
        bool, Option("--per-dimension", help="The tolerance is for each dimension alone.")
    ] = False,
    rank_by: Annotated[str, Option(help="error, or probability (of staying within tolerance).")] = "error",
    statistic: Annotated[str, Option(help="Rank by: mean, distribution, quantile, variance, sd …")] = "mean",
    quantiles: QUANTILES = None,
    rounds: Annotated[int, Option(help="2: the gain of a second round, see hdr4me refine.")] = 1,
    output: Annotated[File, Option("--output", "-o", help="Write the best survey (--schema).")] = None,
    html: HTML = None,
    png: PNG = None,
    shuffled: Annotated[bool, Option("--shuffled", help="The guarantee in the shuffle model.")] = False,
    delta: Annotated[float | None, Option(help="… the δ of that guarantee (1e-6 unless given).")] = None,
    every: Annotated[str | None, Option(help="The same users answer every day, week, 30d …")] = None,
    duration: Annotated[str | None, Option(help="… for so long: 30d, 6m, 1y.")] = None,
    poisoned: Annotated[
        float | None, Option(help="Share of poisoned reports to bound, such as 0.01.")
    ] = None,
    json: JSON = False,
) -> None:
    """Rank the ways to collect by their predicted error, and solve for what is left out.

    Give users, dimensions and epsilon to predict the error. Leave one of them out and give a tolerance to solve for it.
    A tolerance is on the scale [-1, 1] (vectors: norm 1), or in a dimension's own units, such as 'delay=5' or 'delay=5
    min'. A file of values for --prior needs --schema. Exit code 1 if a tolerance cannot be reached: the nearest plan is
    shown, and no survey is written.

    Example: hdr4me plan --dims 50 --epsilon 1 --tolerance 0.05
    """
    from hdr4me.planner import plan as make

    opt.check_outputs([output, html], [schema], png=png)
    if delta is not None and not shuffled:
        raise InvalidInput("--delta goes with --shuffled: give both")
    opt.check("--delta", delta, delta is None or 1e-100 <= delta < 1, "a number from 1e-100 and below 1")
    opt.check("--poisoned", poisoned, poisoned is None or 0 < poisoned < 1, "a share between 0 and 1")
    opt.check("--rounds", rounds, rounds in (1, 2), "1 or 2")
    n_rounds = _periods(every, duration)
    loaded = opt.load_schema(schema)
    if output is not None and loaded is None:
        raise InvalidInput("--output needs --schema: a survey names its dimensions")
    refusal: NotReachable | None = None
    try:
        with opt.named_options(), working("planning"):
            found = make(
                users=users,
                dims=dims,
                schema=loaded,
                epsilon=epsilon,
                tolerance=_tolerances(tolerance),
                probability=probability,
                category_count=category_count,
                mechanisms=mechanism,
                categorical=categorical,
                **_expected(prior, loaded),
                jointly=not per_dimension,
                rank_by=rank_by,
                statistic=statistic,
                p=None if quantiles is None else opt.numbers("--quantiles", quantiles),
            )
        if not found.reachable:
            refusal = found.refusal()
    except NotReachable as insisted:
        refusal, found = insisted, insisted.nearest
    best = found.best
    for note in found.notes:
        print_note(f"note: {note}")
    if refusal is not None and not json:
        print_note(str(refusal))
    survey = None
    if loaded is not None and refusal is None and (output or html or png or json):
        with working("designing the survey"):
            survey = best.survey(loaded)
    if output is not None and survey is not None:
        survey.save(output)
        print_note(f"wrote {output}")
    elif output is not None:
        print_note(f"{output} not written: the tolerance asked for is not reached")
    made = stamp(None if survey is None else survey.fingerprint, best.epsilon, best.probability)
    if html is not None or png is not None:
        from hdr4me.cli.plan_figures import draw, plan_page

        with working("drawing"):
            opt.write_results(html, png, made, lambda: plan_page(found), lambda: draw(found))
    lines, more = _guarantees(best, shuffled, 1e-6 if delta is None else delta, n_rounds)
    if poisoned is not None:
        from hdr4me.accounting.poisoning import manipulation_bounds

        more["poisoning"] = [item.to_dict(poisoned) for item in manipulation_bounds(_survey(best))]
    if rounds == 2:
        more["rounds"] = _second_round(found)
    if json:
        document = {**made, "reachable": refusal is None, **found.to_dict(), **more}
        if refusal is not None:
            document |= {"message": str(refusal), "nearest": refusal.nearest.to_dict()}
        print_json(document)
    else:
        _show(found)
        if rounds == 2:
            _show_second(more["rounds"])
        for line in lines:
            typer.echo(line)
        if more.get("poisoning"):
            manipulation_table(more["poisoning"])
    if refusal is not None:
        raise typer.Exit(1)


def _periods(every: str | None, during: str | None) -> int | None:
    """How often the same users answer."""
    if every is None and during is None:
        return None
    if every is None or during is None:
        raise InvalidInput(
            "--every and --duration go together: give both, such as --every week --duration 1y"
        )
    from hdr4me.client.ledger import rounds

    with opt.named_options():
        return rounds(every, during)


def _tolerances(given: list[str] | None) -> Any:
    """One number, or a mapping from dimension to a tolerance: "age=5", or "age=5 years" if the schema says years."""
    found: dict[str, str] = {}
    for item in given or ():
        name, equals, text = (part.strip() for part in item.partition("="))
        try:
            value = float((text.split() or [""])[0] if equals else name)
        except ValueError:
            raise InvalidInput(f"--tolerance {item!r} is not allowed: a number, or name=number") from None
        if not equals and given == [item]:
            return value
        if not (name and equals) or name in found:
            raise InvalidInput(
                f"--tolerance {item!r} is not allowed: one number, or name=number once for each"
            )
        found[name] = text
    return found or None


def _expected(source: str, schema: Any) -> dict[str, Any]:
    """The arguments `prior` or `values`: a word, a tally, or the columns of a file that the schema names."""
    if source in ("uniform", "worst"):
        return {"prior": source}
    path = Path(source)
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(256)
        if head.startswith(b'{"checksum":"') and b'"document":' in head:
            from hdr4me.tally import Tally

            return {"prior": Tally.load(path)}
    allowed = (
        "uniform, worst, a tally of an earlier collection, or with --schema a CSV or Parquet file of values"
    )
    opt.check("--prior", repr(source), schema is not None and path.is_file(), allowed)
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    from hdr4me.planner.workload import size_of

    table = parquet.read_table(path) if source.endswith(".parquet") else csv.read_csv(path)
    known = [(d, table.column(d.name)) for d in schema if d.name in table.column_names]
    # Where size_of says so, a gap is an answer.
    return {"values": {d.name: (c if size_of(d)[-1] else c.drop_null()).to_pylist() for d, c in known}}


def _survey(option: Way) -> Any:
    """The option's survey; where only numbers of dimensions were planned, dimensions that stand for them."""
    if option.schema is not None:
        return option.survey()
    from hdr4me.survey import Categorical, Numeric, Schema

    dimensions: list[Any] = [Numeric(f"number {i}", 0, 1) for i in range(option.workload.numeric)]
    for size, count in option.workload.categorical:
        values = [str(v) for v in range(size)]
        dimensions += [Categorical(f"choice of {size}, {i}", values) for i in range(count)]
    return option.survey(Schema(dimensions))


def _guarantees(
    option: Way, shuffled: bool, delta: float, n_rounds: int | None
) -> tuple[list[str], dict[str, Any]]:
    """Privacy in the shuffle model and over repeated rounds: sentences, and the same for JSON."""
    lines: list[str] = []
    document: dict[str, Any] = {}
    if shuffled:
        from hdr4me.accounting.shuffling import amplification, local_epsilon_of_any

        found = amplification(_survey(option), int(option.users), delta)
        local = local_epsilon_of_any(found.n_reports, found.delta, option.epsilon)
        known = found.closed_form is not None
        closed = f" (closed form, from ε alone: {found.closed_form:.3g})" if known else ""
        private = f"({found.epsilon:.3g}, {found.delta:g})-private"
        lines += [
            f"Shuffled: {found.n_reports:,} reports together are {private}{closed}.",
            f"Conversely, a local ε up to {local:.3g} gives a central ε of {option.epsilon:g}. Both need a trusted "
            "shuffler that removes order, source and time of every report.",
        ]
        document["shuffled"] = {**found.to_dict(), "local_epsilon_for_this_central_epsilon": local}
    if n_rounds is not None:
        from hdr4me.accounting.repeated import repeated

        again = repeated(option.epsilon, option.sampled, n_rounds)
        lines += again.lines()
        document["repeated"] = again.to_dict()
    return lines, document


def _second_round(found: Plan) -> list[dict[str, Any]]:
    """For each kind of number: the gain of two rounds over one (see `hdr4me.statistics.predict`)."""
    from hdr4me.statistics.predict import predict_rounds

    best, n, rows = found.best, round(found.best.reports_per_dimension), []
    for group in best.workload.groups:
        if group.is_number:
            gain = predict_rounds(group.prior, n, best.epsilon_per_value)
            values = "uniform" if group.prior.uniform else "as expected"
            row: dict[str, Any] = {"dimensions": group.count, "values": values, "reports": n}
            row |= {"gain": gain.gain, "low": gain.low, "high": gain.high}
            rows.append({**row, "standard_error": gain.one, "standard_error_of_two": gain.two})
    if not rows:
        raise InvalidInput("--rounds 2 concerns numbers, whose ranges a second round narrows: there are none")
    return rows


def _show_second(rows: list[dict[str, Any]]) -> None:
    print_table(
        "A pilot of a fifth of the users, then a second round on narrower ranges (hdr4me refine)",
        [
            "dimensions",
            "values",
            "reports each",
            "s.e. one round",
            "s.e. two rounds",
            "MSE less by",
            "width kept",
        ],
        [[*(row[key] for key in _SECOND), (row["high"] - row["low"]) / 2] for row in rows],
    )
    if all(row["values"] == "uniform" for row in rows):
        print_note("values that fill their range gain nothing: give expected values with --prior values.csv")


def option_table(found: Plan, options: tuple[Way, ...]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the options of a plan."""
    each = f"within ±{found.best.tolerance:.3g}: each"
    columns = ["mechanism", "m", "MSE", each, "all", "95 % each ±", "all ±", "worst case ±"]
    rows = [
        [
            f"{o.mechanism} + {o.categorical}" if o.workload.numeric and o.categorical else o.mechanism,
            *(getattr(o, name) for name in _SHOWN),
            *([] if found.statistic == "mean" else [found.error_of(o)]),
        ]
        for o in options
    ]
    return [*columns, *([] if found.statistic == "mean" else [f"error of the {found.statistic}"])], rows


def _show(found: Plan) -> None:
    best = found.best
    typer.echo(found.summary)
    setting = f"{counted(best.users, 'user')}, {counted(best.dims, 'dimension')}, ε = {best.epsilon:g}"
    print_table(f"Options for {setting}", *option_table(found, found.mechanisms))
    if found.own_units:
        each = "95 % each ±" if best.probability == 0.95 else "each ±"
        print_table(
            "In their own units, by the first option",
            ["dimension", each, "all ±", "worst case ±", "unit"],
            [[name, *kept.values(), found.unit(name)] for name, kept in found.own_units.items()],
        )
    if found.statistic == "mean":
        if best.errors:
            title = "Standard errors of selections, vectors and optional numbers, by the first option"
            print_table(title, ["of", "standard error"], list(best.errors.items()))
        print_table("Different tolerances, different winners", *winner_table(found))


def winner_table(found: Plan) -> tuple[list[str], list[list[Any]]]:
    """Which mechanism is the most likely to stay within each tolerance; raw is without calibration, and biased."""
    rows = [
        [f"±{w.tolerance:.3g}", w.mechanism + " (raw)" * w.raw, w.sampled, w.probability_within]
        for w in found.winners
    ]
    return ["tolerance", "most likely within", "m", "probability"], rows
