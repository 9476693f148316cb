"""hdr4me plan: from what is wanted to the survey that brings it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from hdr4me.cli.audit import harm_table
from hdr4me.cli.option_names import named_options, numbers, options
from hdr4me.cli.output import print_json, print_note, print_table, working
from hdr4me.cli.paths import check_outputs, check_picture, write_results
from hdr4me.cli.plan_crowd import check_crowd, crowd_and_time, limits_of_harm, second_round, show_second
from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.mechanisms.registry import built_in
from hdr4me.pages.counted import counted
from hdr4me.pages.stamp import stamp

if TYPE_CHECKING:
    from hdr4me.planner import Plan

_OPTIONS = options(
    "schema",
    "epsilon",
    "tolerance",
    "probability",
    "categorical",
    "prior",
    "values",
    "statistic",
    n_users="--users",
    n_dims="--dims",
    n_categories="--categories",
    rank_by="--rank-by",
    p="--quantiles",
    mechanisms="--mechanism",
)
_PRIORS = ("uniform", "worst")
_SHOWN = (
    "n_sampled", "mse", "probability_within", "joint_probability_within", "tolerance_each", "tolerance_joint",
    "worst_tolerance_joint",
)  # fmt: skip
"""What the table shows of each option."""


def plan(
    users: Annotated[int | None, Option(help="Number of users; left out: the fewest that do.")] = None,
    dims: Annotated[
        int | None, Option(help="Number of dimensions; left out: the most that can be asked.")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Total budget; left out: the smallest that does.")] = None,
    tolerance: Annotated[
        list[str] | None,
        Option(
            metavar="<float or name=float>",
            help="±ξ to keep within, numbers scaled to [-1, 1], vectors to norm 1; or name=ξ in a dimension's own "
            "units (repeat), such as 'delay=5' or, if the schema gives the unit, 'delay=5 min'.",
        ),
    ] = None,
    probability: Annotated[float | None, Option(help="… with this probability (0.95 unless given).")] = None,
    schema: Annotated[Path | None, Option(help="A schema (.json, .toml) instead of --dims.")] = None,
    categories: Annotated[int | None, Option(help="With --dims: each has this many categories.")] = None,
    mechanism: Annotated[
        list[str] | None,
        Option(
            metavar="<str>",
            help=f"Only these mechanisms (repeat): {', '.join(built_in())}, pair (neighbours asked together), "
            "agreement (blocks). Left out: all of them, pairs and blocks from epsilon 1.5 on.",
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        Option(
            metavar="<str>",
            help="Only these for categories: auto, grr, subset, projective, oue … (repeat).",
        ),
    ] = None,
    prior: Annotated[
        str,
        Option(
            help="Whose values: uniform, worst (whatever they are), a tally of an earlier collection, or a CSV or "
            "Parquet file of values to expect (columns by dimension, with --schema)."
        ),
    ] = "uniform",
    each: Annotated[
        bool, Option("--each", help="The tolerance is for each dimension alone, not for all.")
    ] = False,
    rank_by: Annotated[
        str, Option(help="error, or probability (of keeping within the tolerance).")
    ] = "error",
    statistic: Annotated[
        str,
        Option(
            help="What it is for, and ranked by: mean, distribution, quantile, variance, sd, covariance, mean_by."
        ),
    ] = "mean",
    quantiles: Annotated[
        str | None, Option(metavar="<p,…>", help="With --statistic quantile: which (0.25,0.5,0.75).")
    ] = None,
    rounds: Annotated[
        int, Option(help="2: what a second round with narrower ranges would bring (see hdr4me refine).")
    ] = 1,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Write the best option's survey (--schema).")
    ] = None,
    html: Annotated[Path | None, Option(help="Write a page with the pictures.")] = None,
    png: Annotated[Path | None, Option(help="Write the pictures (.png, .svg, .pdf).")] = None,
    shuffled: Annotated[
        bool, Option("--shuffled", help="What the reports are worth together if they are shuffled.")
    ] = False,
    delta: Annotated[float | None, Option(help="… the δ of that guarantee (1e-6 unless given).")] = None,
    every: Annotated[
        str | None, Option(help="The same users are asked every day, week, 30d … (with --for).")
    ] = None,
    during: Annotated[str | None, Option("--for", help="… for so long: 30d, 6m, 1y.")] = None,
    fakes: Annotated[
        float | None, Option(help="Tell what this share of false reports could do, such as 0.01.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Rank the ways to collect by the error they will have, and solve for what is left out.

    Give users, dimensions and epsilon to learn the error; leave one of them out and give a tolerance to learn how many,
    how much or how few. Give all four and they are checked. Exit code 1 if what is asked cannot be reached: the
    nearest that can is shown (and drawn), and no survey is written.

    Example: hdr4me plan --dims 50 --epsilon 1 --tolerance 0.05
    """
    from hdr4me.planner import plan as make

    check_outputs([output, html, png], [schema])
    check_crowd(shuffled, delta, every, during)
    if fakes is not None and not 0 < fakes < 1:
        raise InvalidInput(f"--fakes {fakes} is not allowed: a share between 0 and 1")
    if rounds not in (1, 2):
        raise InvalidInput(f"--rounds {rounds} is not allowed: 1 or 2")
    check_picture("--png", png)
    loaded: Any = None
    if schema is not None:
        from hdr4me.survey import Schema

        loaded = Schema.load(schema)
    if output is not None and loaded is None:
        raise InvalidInput("--output needs --schema: a survey names its dimensions")
    refusal: NotReachable | None = None
    try:
        with named_options(_OPTIONS), working("planning"):
            found = make(
                n_users=users,
                n_dims=dims,
                schema=loaded,
                epsilon=epsilon,
                tolerance=_tolerances(tolerance),
                probability=probability,
                n_categories=categories,
                mechanisms=mechanism,
                categorical=categorical,
                **_expected(prior, loaded),
                jointly=not each,
                rank_by=rank_by,
                statistic=statistic,
                p=None if quantiles is None else numbers("--quantiles", quantiles),
            )
        if not found.reachable:
            refusal = found.refusal()
    except NotReachable as insisted:
        refusal, found = insisted, insisted.nearest
    for note in found.notes:
        print_note(f"note: {note}")
    if refusal is not None and not json:
        print_note(str(refusal))
    made = _made(found, loaded, refusal is None, output, wanted=json or html is not None or png is not None)
    if output is not None and refusal is not None:
        print_note(f"{output} not written: the tolerance asked for is not reached")
    if html is not None or png is not None:
        from hdr4me.cli.plan_figures import draw, plan_page

        with working("drawing"):
            write_results(html, png, made, lambda: plan_page(found), lambda: draw(found))
    lines, more = crowd_and_time(found.best, shuffled, delta, every, during)
    limits = [] if fakes is None else limits_of_harm(found.best, fakes)
    more |= {"fakes": limits} if limits else {}
    second = [] if rounds == 1 else second_round(found)
    more |= {"rounds": second} if second else {}
    if json:
        document = {**made, "reachable": refusal is None, **found.to_dict(), **more}
        if refusal is not None:
            document |= {"message": str(refusal), "nearest": refusal.nearest.to_dict()}
        print_json(document)
    else:
        _show(found)
        show_second(second)
        for line in lines:
            typer.echo(line)
        if limits:
            harm_table(limits)
    if refusal is not None:
        raise typer.Exit(1)


def _tolerances(given: list[str] | None) -> Any:
    """One number, or a mapping from dimension to a tolerance: "age=5", or "age=5 years" if the schema says years."""
    if not given:
        return None
    named = [text.partition("=") for text in given]
    if len(given) == 1 and not named[0][1]:
        return _number(given[0], given[0])
    found: dict[str, str] = {}
    for (name, equals, text), item in zip(named, given, strict=True):
        if not (name and equals and text) or name.strip() in found:
            raise InvalidInput(
                f"--tolerance {item!r} is not allowed: write one number, or name=number once for each"
            )
        _number(text.split()[0] if text.split() else text, item)
        found[name.strip()] = text.strip()
    return found


def _number(text: str, item: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"--tolerance {item!r} is not allowed: a number, or name=number") from None


def _expected(source: str, schema: Any) -> dict[str, Any]:
    """The arguments `prior` or `values`: a word, a tally, or a file of values."""
    if source in _PRIORS:
        return {"prior": source}
    if Path(source).is_file():
        with Path(source).open("rb") as file:
            head = file.read(256)
        if head.startswith(b'{"checksum":"') and b'"document":' in head:
            from hdr4me.tally import Tally

            return {"prior": Tally.load(source)}
    return {"values": _values(source, schema)}


def _values(source: str, schema: Any) -> Any:
    """The columns of a file that the schema names, as values to expect."""
    if schema is None or not Path(source).is_file():
        raise InvalidInput(
            f"--prior {source!r} is not allowed: uniform, worst, a tally of an earlier collection, or with --schema "
            "a CSV or Parquet file of values"
        )
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    from hdr4me.planner.workload import size_of

    table = parquet.read_table(source) if source.endswith(".parquet") else csv.read_csv(source)
    known = {d.name: table.column(d.name) for d in schema.dimensions if d.name in table.column_names}
    gaps = [d.name for d in schema.dimensions if size_of(d)[-1]]  # where a gap is an answer
    return {
        name: (column if name in gaps else column.drop_null()).to_pylist() for name, column in known.items()
    }


def _made(found: Plan, schema: Any, reachable: bool, output: Path | None, *, wanted: bool) -> dict[str, Any]:
    """The stamp of the plan; with a schema, the best option's survey, which is written to `output`."""
    survey = None
    if schema is not None and reachable and (wanted or output is not None):
        with working("designing the survey"):
            document = found.best.survey(schema)
        survey = document.fingerprint
        if output is not None:
            document.save(output)
            print_note(f"wrote {output}")
    return stamp(survey, found.best.epsilon, found.best.probability)


def _show(found: Plan) -> None:
    best, mean = found.best, found.statistic == "mean"
    typer.echo(found.summary)
    each = f"within ±{best.tolerance:.3g}: each"
    columns = ["m", "MSE", each, "all", "95 % each ±", "all ±", "worst case ±"]
    print_table(
        f"Options for {counted(best.n_users, 'user')}, {counted(best.n_dims, 'dimension')}, ε = {best.epsilon:g}",
        ["mechanism", *columns, *([] if mean else [f"error of the {found.statistic}"])],
        [
            [
                option.mechanism
                + (f" + {option.categorical}" if option.workload.numeric and option.categorical else ""),
                *(getattr(option, name) for name in _SHOWN),
                *([] if mean else [found.error_of(option)]),
            ]
            for option in found.mechanisms
        ],
    )
    if found.own_units:
        print_table(
            "In their own units, by the first option",
            [
                "dimension",
                "95 % each ±" if best.probability == 0.95 else "each ±",
                "all ±",
                "worst case ±",
                "unit",
            ],
            [
                [name, kept["each"], kept["all"], kept["worst_all"], found.unit(name)]
                for name, kept in found.own_units.items()
            ],
        )
    if not mean:
        return
    if best.errors:
        title = "Standard errors of selections, vectors and optional numbers, by the first option"
        print_table(title, ["of", "standard error"], [[name, error] for name, error in best.errors.items()])
    typer.echo("Likeliest to keep one estimate within ±ξ:")
    for winner in found.winners:
        how = " (raw: by shrinking, not by knowing)" if winner.raw else ""
        typer.echo(
            f"  ξ = {winner.tolerance:<8.3g} {winner.mechanism}, m = {winner.n_sampled:,}{how}: "
            f"{winner.probability_within:.3g}"
        )
