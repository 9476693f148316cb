"""hdr4me plan: predict the error of a collection, and find the survey that reaches a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from hdr4me.cli import options as opt
from hdr4me.cli.audit import manipulation_table
from hdr4me.cli.options import JSON, QUANTILES, SCHEMA, VERBOSE, Read, Texts
from hdr4me.cli.output import (
    print_json,
    print_note,
    print_notes,
    print_table,
    print_text,
    probability,
    working,
)
from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.pages.html import provenance
from hdr4me.pages.text import pluralize

if TYPE_CHECKING:
    from hdr4me.planner import Option as Way
    from hdr4me.planner import Plan
    from hdr4me.survey import Schema

_SHOWN = (
    "sampled", "mse", "probability_within", "joint_probability_within", "tolerance_each", "tolerance_joint",
    "worst_tolerance_joint",
)  # fmt: skip
_DETAILS = ("mse", "probability_within")  # shown with --verbose
_OF_MEANS = ("joint_probability_within", "tolerance_joint", "worst_tolerance_joint")
_MARGINS = ["each alone (±)", "all jointly (±)", "all jointly, for the worst values (±)"]
_BEST = 5  # options shown without --verbose
_SECOND = ("dimensions", "values", "standard_error", "standard_error_of_two")


@opt.reads_records
def plan(
    users: Annotated[
        int | None, Option(help="Number of users; if omitted, the fewest that are sufficient.")
    ] = None,
    dims: Annotated[
        int | None, Option(help="Number of dimensions; if omitted, the most that are possible.")
    ] = None,
    epsilon: Annotated[
        float | None,
        Option(help="Privacy budget ε of one report; if omitted, the smallest that is sufficient."),
    ] = None,
    tolerance: Annotated[
        Texts, Option(metavar="<x or name=x>", help="Largest accepted error (repeatable).")
    ] = None,
    probability: Annotated[
        float | None, Option(help="Probability that all errors are within the tolerance; default: 0.95.")
    ] = None,
    schema: SCHEMA = None,
    category_count: Annotated[int | None, Option(help="With --dims: categories of each dimension.")] = None,
    mechanisms: Annotated[
        Texts, Option("--mechanism", help="Consider only this mechanism for numbers (repeatable).")
    ] = None,
    categorical: Annotated[
        Texts,
        Option(
            help="Only this one for categories (repeatable): auto, grr, subset, projective (geometry), oue, histogram."
        ),
    ] = None,
    prior: Annotated[
        str,
        Option(
            metavar="<name or file>",
            help="Assumed values: uniform, worst, a tally, or a file of values.",
        ),
    ] = "uniform",
    per_dimension: Annotated[
        bool, Option("--per-dimension", help="The tolerance holds for each dimension alone, not jointly.")
    ] = False,
    statistic: Annotated[
        str,
        Option(help="Rank by: mean, distribution, quantile, variance, sd, covariance, mean_by or tables."),
    ] = "mean",
    quantiles: QUANTILES = None,
    second_round: Annotated[
        bool, Option("--second-round", help="Also predict the gain of a second round (hdr4me refine).")
    ] = False,
    outputs: Annotated[
        opt.Files,
        opt.written("the survey (.json; needs --schema), a page (.html), figures (.png, .svg, .pdf)"),
    ] = None,
    delta: Annotated[
        float | None, Option(help="Also print the (ε, δ) guarantee in the shuffle model, for this δ.")
    ] = None,
    rounds: Annotated[
        int | None, Option(help="Also print the privacy loss of a user who answers in this many rounds.")
    ] = None,
    poisoned: Annotated[
        float | None, Option(help="Bound the effect of this share of poisoned reports, such as 0.01.")
    ] = None,
    json: JSON = False,
    verbose: VERBOSE = False,
    *,
    read: Read,
) -> None:
    """Predict the error of a collection and rank mechanisms, or solve for the missing quantity.

    Give users, dimensions and ε to predict the error. Omit one of them and give a tolerance to solve for it. A
    tolerance without a name is on the scale [-1, 1] (shares: [0, 1]; vectors: divided by their largest norm). A
    tolerance with a name is in the units of that dimension: 'delay=5' or 'delay=5 min'. If the tolerance cannot be
    reached, the nearest plan is shown, no survey is written, and the exit code is 1.

    Example: hdr4me plan --dims 50 --epsilon 1 --tolerance 0.05
    """
    from hdr4me.planner import plan as make

    output, html, png = opt.outputs_of(outputs, ".json", ".html", ".png")
    opt.check_outputs([output, html, png], [schema])
    opt.check("--delta", delta, delta is None or 1e-100 <= delta < 1, "a number of at least 1e-100, below 1")
    opt.check("--poisoned", poisoned, poisoned is None or 0 < poisoned < 1, "a number between 0 and 1")
    loaded = opt.load_schema(schema)
    if loaded is not None and (dims is not None or category_count is not None):
        raise InvalidInput("--schema gives the dimensions: omit --dims and --category-count")
    if output is not None and loaded is None:
        raise InvalidInput(f"--output {output} needs --schema, which names the dimensions of the survey")
    if statistic == "tables":
        _rank_tables(loaded, users, epsilon, prior, read, json)
        return
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
                mechanisms=mechanisms,
                categorical=categorical,
                **_expected(prior, loaded, read),
                per_dimension=per_dimension,
                statistic=statistic,
                quantiles=None if quantiles is None else opt.numbers("--quantiles", quantiles),
            )
        if not found.reachable:
            refusal = found.refusal()
    except NotReachable as insisted:
        refusal, found = insisted, insisted.nearest
    best = found.best
    if refusal is not None and not json:
        print_note(f"{refusal}.")
    survey = None
    if loaded is not None and refusal is None and (output or html or png or json):
        with working("designing the survey"):
            survey = best.survey(loaded)
    if output is not None and survey is not None:
        opt.save_survey(survey, output)
    elif output is not None:
        print_note(f"{output} is not written, because the tolerance is not reached")
    made = provenance(None if survey is None else survey.fingerprint, best.epsilon, best.probability)
    lines, details, more = _guarantees(best, delta, rounds)
    if poisoned is not None:
        from hdr4me.accounting.poisoning import PRESENT, manipulation_bounds

        more["poisoning"] = [
            replace(item, present=present).to_dict(poisoned)
            for item in manipulation_bounds(_survey(best))
            for present in ((0.9, 0.5, 0.2, PRESENT) if item.cells else (1.0,))
        ]
    if second_round:
        more["second_round"] = _second_round(found)
    if html is not None or png is not None:
        from hdr4me.cli.plan_figures import draw, plan_page

        with working("drawing"):
            opt.write_results(
                html,
                png,
                made,
                lambda: plan_page(found, [*lines, *found.notes, *details], _tables(found, more, True)),
                lambda: draw(found),
            )
    if json:
        document = {**made, "reachable": refusal is None, **found.to_dict(), **more}
        if refusal is not None:
            document |= {"message": str(refusal), "nearest": refusal.nearest.to_dict()}
        print_json(document)
    else:
        if refusal is None:
            print_text(found.summary)
        for table in _tables(found, more, verbose, nearest=refusal is not None):
            print_table(*table)
        for line in lines:
            print_text(line)
        print_notes([*found.notes, *details], verbose, most=1)
        if second_round and all(row["values"] == "uniform" for row in more["second_round"]):
            print_note(
                "A second round gains nothing if values are spread over the whole range. For your own values, give "
                "--prior values.csv."
            )
        elif second_round and all(row["gain"] == 1.0 for row in more["second_round"]):
            print_note("A second round would not give narrower intervals: ask all users in one round.")
    if refusal is not None:
        raise typer.Exit(1)


def _rank_tables(
    schema: Schema | None, users: int | None, epsilon: float | None, prior: str, read: Read, json: bool
) -> None:
    """Rank the designs of a survey for tables by simulation: of public records as prior, or of assumed ones."""
    from hdr4me.contingency import plan_tables

    if schema is None or users is None or epsilon is None:
        raise InvalidInput("--statistic tables needs --schema, --users and --epsilon")
    opt.check(
        "--prior", prior, prior != "worst", "with --statistic tables, a file of public records, or nothing"
    )
    data = None if prior == "uniform" else read([prior])
    with opt.named_options(data="--prior"), working("simulating"):
        rows = plan_tables(schema, users=users, epsilon=epsilon, data=data)
    if json:
        print_json({"users": users, "epsilon": epsilon, "assumed": data is None, "designs": rows})
        return
    heads = ["design", "questions", "from noise alone", "two-way tables", "three-way tables"]
    title = (
        "Predicted total variation distance between estimated and true tables (0: equal; 1: disjoint); "
        f"{users:,} users, ε = {epsilon:g}"
    )
    print_table(title, heads, [list(row.values()) for row in rows])
    best, *others = rows
    how = " (independence is assumed)" if best["design"] == "one-way" else ""
    text = (
        f"Best: {best['design']}{how}, with a predicted distance of {best['two_way']:.3g} for two-way tables"
    )
    print_text(text + "".join(f", then {x['design']} with {x['two_way']:.3g}" for x in others) + ".")
    if data is None:
        print_note(
            "Assumes associations that are as strong as in census data; pass --prior FILE to use those of a file."
        )


def _tolerances(given: list[str] | None) -> Any:
    """One number, or a mapping from dimension to tolerance: "age=5", or "age=5 years" if that is the unit."""
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
                "--tolerance: give one number for all dimensions, or name=number for some of them, each once; not both"
            )
        found[name] = text
    return found or None


def _expected(source: str, schema: Any, read: Read) -> dict[str, Any]:
    """The argument `prior` or `values`: a word, a tally, or the columns of a file that the schema names."""
    if source in ("uniform", "worst"):
        return {"prior": source}
    path = Path(source)
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(256)
        if head.startswith(b'{"checksum":"') and b'"document":' in head:
            from hdr4me.tally import Tally

            return {"prior": Tally.load(path)}
    allowed = "uniform, worst, a tally of an earlier collection, or with --schema a file of values"
    opt.check("--prior", repr(source), schema is not None and path.is_file(), allowed)
    from hdr4me.comparison.data import REMEDY, clean_values, cleaned
    from hdr4me.io.quality import refusal
    from hdr4me.io.reading import column_types
    from hdr4me.survey import Schema

    files = read([source])
    there = set(column_types(files, schema.columns).names)
    known = [x for x in schema if x.columns == (x.name,) and x.name in there]
    if not known:
        raise InvalidInput(f"--prior {source} has no column of the schema: {', '.join(schema.names[:8])}")
    table, quality = cleaned(files, Schema(known))
    if refused := quality.refused():
        raise refusal(refused, REMEDY)
    return {"prior": {x.name: clean_values(x, table).to_pylist() for x in known}}


def _survey(option: Way) -> Any:
    """The survey of an option; without a schema, its dimensions have placeholder names."""
    if option.schema is not None:
        return option.survey()
    from hdr4me.survey import Categorical, Numeric, Schema

    dimensions: list[Any] = [Numeric(f"number #{i + 1}", 0, 1) for i in range(option.workload.numeric)]
    for size, count in option.workload.categorical:
        values = [str(v) for v in range(size)]
        dimensions += [Categorical(f"choice of {size} #{i + 1}", values) for i in range(count)]
    return option.survey(Schema(dimensions))


def _guarantees(
    option: Way, delta: float | None, rounds: int | None
) -> tuple[list[str], list[str], dict[str, Any]]:
    """The privacy guarantee in the shuffle model and over repeated rounds: sentences, details, and values for JSON."""
    lines: list[str] = []
    details: list[str] = []
    document: dict[str, Any] = {}
    if delta is not None:
        from hdr4me.accounting.shuffling import amplification, local_epsilon_of_any

        found = amplification(_survey(option), int(option.users), delta)
        local = local_epsilon_of_any(found.n_reports, found.delta, option.epsilon)
        lines += [
            f"In the shuffle model, the collection of {found.n_reports:,} reports has ε = {found.epsilon:.3g} at δ = "
            f"{found.delta:g}, if a trusted shuffler removes the order, source and time of every report.",
            f"For a central ε of {option.epsilon:g} at this δ, each report may have a local ε of up to {local:.3g}.",
        ]
        document["shuffled"] = {**found.to_dict(), "local_epsilon_for_this_central_epsilon": local}
    if rounds is not None:
        from hdr4me.accounting.repeated import repeated

        with opt.named_options():
            again = repeated(option.epsilon, option.sampled, rounds)
        lines += again.lines()[:2]
        details = again.lines()[2:]
        document["repeated"] = again.to_dict()
    return lines, details, document


def _second_round(found: Plan) -> list[dict[str, Any]]:
    """For each kind of number: the gain of two rounds over one (see `hdr4me.statistics.predict`)."""
    from hdr4me.statistics.predict import predict_rounds

    best, n, rows = found.best, round(found.best.reports_per_dimension), []
    for group in best.workload.groups:
        if group.is_number:
            gain = predict_rounds(group.prior, n, best.epsilon_per_value)
            values = "uniform" if group.prior.uniform else "as expected"
            row: dict[str, Any] = {"dimensions": group.count, "values": values, "reports": n}
            row |= {"gain": gain.gain, "low": gain.low, "high": gain.high, "control": gain.control}
            rows.append({**row, "standard_error": gain.one, "standard_error_of_two": gain.two})
    if not rows:
        raise InvalidInput("--second-round needs numeric dimensions, whose ranges a second round narrows")
    return rows


Table = tuple[str, list[str], list[list[Any]]]


def _tables(found: Plan, more: Mapping[str, Any], verbose: bool, *, nearest: bool = False) -> list[Table]:
    """The tables of a plan, as (title, columns, rows), for the terminal and the page; own units first."""
    best, tables = found.best, list[Table]()
    percent = f"{100 * best.probability:g} %"
    if found.own_units:
        shares = " (categories: shares)" if best.workload.categorical else ""
        units = ["unit"] if any(map(found.unit, found.own_units)) else []
        tables.append(
            (
                f"{percent} margins of error in the units of each dimension{shares}",
                ["dimension", *units, *_MARGINS],
                [
                    [name, *[found.unit(name) for _ in units], *map(_bounded, errors.values())]
                    for name, errors in found.own_units.items()
                ],
            )
        )
    if found.statistic == "mean" and best.errors:
        title = "Standard errors of selections, vectors and optional numbers"
        tables.append((title, ["estimate", "standard error"], list(map(list, best.errors.items()))))
    options = found.options if verbose else found.mechanisms[:_BEST]
    which = "Nearest plan (tolerance not reached)" if nearest else "Best mechanisms"
    setting = f"{pluralize(best.users, 'user')}, {pluralize(best.dims, 'dimension')}, ε = {best.epsilon:g}"
    tables.append(
        (
            f"{which} for {setting}; {percent} margins of error on the scale [-1, 1]",
            *_options(found, options, verbose),
        )
    )
    if verbose and found.statistic == "mean":
        tables.append(
            (
                "Mechanism with the highest probability of staying within a tolerance on the scale [-1, 1]",
                *_winners(found),
            )
        )
    if "second_round" in more:
        tables.append(
            (
                "Standard errors on the scale [-1, 1] in one round, or in a pilot with a fifth of the users and a "
                "second round on narrower ranges (hdr4me refine)",
                ["dimensions", "assumed values", "one round", "two rounds", "width of the new range (old: 1)"],
                [[*(row[key] for key in _SECOND), (row["high"] - row["low"]) / 2] for row in more["second_round"]],
            )
        )  # fmt: skip
    if "poisoning" in more:
        bounds = more["poisoning"]
        if best.schema is None:  # the dimensions of one kind are alike
            bounds = list({item["dimension"]: item for item in map(_without_number, bounds)}.values())
        tables.append(manipulation_table(bounds))
    return tables


def _options(found: Plan, options: Sequence[Way], verbose: bool) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the options of a plan; without `verbose`, the columns that matter most."""
    from hdr4me.planner.words import error_name

    within = "within the tolerance" if found.requested_own else f"within ±{found.best.tolerance:.3g}"
    heads = ["questions per person", "MSE", f"P(one {within})", f"P(all {within})"]
    heads += _MARGINS
    left_out = set() if verbose else set(_DETAILS)
    if not verbose and found.statistic != "mean":
        left_out.update(_OF_MEANS)
    elif not verbose and found.requested is None:
        left_out.add("joint_probability_within")  # 95 % for the best option: no tolerance was given
    used = [(head, name) for head, name in zip(heads, _SHOWN, strict=True) if name not in left_out]
    if math.isinf(found.best.tolerance):
        used = [(head, name) for head, name in used if "within" not in name]
    rows = [
        [
            f"{o.mechanism} + {o.categorical}" if o.workload.numeric and o.categorical else o.mechanism,
            *(
                probability(getattr(o, name)) if "within" in name else _bounded(getattr(o, name))
                for _, name in used
            ),
            *([] if found.statistic == "mean" else [found.error_of(o)]),
        ]
        for o in options
    ]
    columns = ["mechanism", *(head for head, _ in used)]
    return [*columns, *([] if found.statistic == "mean" else [error_name(found.statistic)])], rows


def _without_number(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item of a placeholder dimension (see `_survey`), named as each dimension of its kind."""
    return {**item, "dimension": "each " + item["dimension"].partition(" #")[0]}


def _bounded(value: float) -> float | str:
    """A margin of error, or that there is none."""
    return "no bound" if math.isinf(value) else value


def _winners(found: Plan) -> tuple[list[str], list[list[Any]]]:
    """The mechanism that is the most likely to stay within each tolerance; biased means without calibration."""
    rows = [
        [
            f"±{w.tolerance:.3g}",
            w.mechanism + " (biased)" * w.raw,
            w.sampled,
            probability(w.probability_within),
        ]
        for w in found.winners
    ]
    return ["tolerance", "mechanism", "questions per person", "probability"], rows
