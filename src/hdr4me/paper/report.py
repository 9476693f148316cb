"""The report of a run (figures, tables, claims, errata, how it was made) and its files."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hdr4me.atomic import replacing, write_text
from hdr4me.pages import html
from hdr4me.pages.document import Block, Heading, Picture, Table, Text, section, to_html, to_markdown
from hdr4me.pages.text import pluralize
from hdr4me.paper import items
from hdr4me.paper.case_study import TABLE_COLUMNS, TOLERANCES, deviation_on, table2
from hdr4me.paper.cells import MECHANISMS, CellResult, Outcome, title_of
from hdr4me.paper.claims import Verdict
from hdr4me.paper.claims.claim import CHOICE, METHODS, NOISY, VERDICTS
from hdr4me.paper.errata import errata
from hdr4me.paper.figures import draw
from hdr4me.paper.methods import LAMBDA_CHOICES, LambdaChoice
from hdr4me.paper.studies import COLUMNS, DATASETS, Results, rows_of
from hdr4me.paper.theory import CltResult

TITLE = "HDR4ME: the evaluation of the paper, reproduced"
OWN_TITLE = "HDR4ME: a study of your own"
ERRATA_TITLE = "Errata of the paper"
ERRATA_LEAD = (
    "For each error of the paper, this page has the printed statement, the correct statement and the derivation. The "
    "symbols are those of the paper: n users, d dimensions, m of them reported by each user, r_j reports in dimension"
    " j, t a value and t* its report, θ̄_j the original, θ̂_j the estimated and θ*_j the enhanced mean, δ_j and σ_j² "
    "the bias and variance of θ̂_j − θ̄_j, ξ_j the supremum (tolerance), ρ the third absolute moment of a report, λ "
    "the scale of Laplace noise, λ* the weights of L1 and L2. Equations are numbered in the order of the paper. "
    "`hdr4me.paper.errata` generates this page and computes its numbers."
)
_METHODS = ("l1", "l2", "auto", "clip", "zeros", "oracle", "calibrated")
_UNBROKEN = str.maketrans({" ": "\u00a0", "-": "\u2011"})
_SYMBOLS = {"epsilon": "ε", "dims": "d", "m": "m"}
_AXIS = {"epsilon": "ε", "dims": "the number of dimensions", "m": "the number of reported dimensions"}


@dataclass(frozen=True)
class About:
    """The settings of a run, and the machine."""

    command: str
    scale: str
    seed: int
    lambda_choice: LambdaChoice
    workers: int
    machine: dict[str, str]
    seconds: float
    processor_seconds: float = 0.0
    kept: int = 0


def support_of(verdicts: Sequence[Verdict]) -> Counter[str]:
    """For each choice of λ*, the number of claims that hold under it."""
    return Counter({r.name: 0 for r in LAMBDA_CHOICES}) + Counter(
        name for verdict in verdicts for name in verdict.choices_for
    )


def lead_of(verdicts: Sequence[Verdict]) -> str:
    """The number of claims with each verdict, in one sentence."""
    words = Counter(verdict.word for verdict in verdicts)
    parts = [
        f"{words[word]} {sentence[words[word] > 1]}" for word, sentence in VERDICTS.items() if words[word]
    ]
    if len(parts) > 1:
        parts[-1] = f"and {parts[-1]}"
    return f"Of {pluralize(len(verdicts), 'claim')}, {', '.join(parts)}."


def blocks_of(results: Results, verdicts: Sequence[Verdict], about: About) -> list[Block]:
    """The report; parts that were not run are omitted."""
    choice = about.lambda_choice
    if results.has("own"):
        return [*_own(results, choice), *_making(results, about)]
    parts = _opening(results, about)
    if verdicts:
        parts += _summary(verdicts)
    if results.has("fig2"):
        parts += _densities(results, "fig2", "Figure 2: the distribution of the deviation", tuple(MECHANISMS))
    if results.has("fig3"):
        parts += _densities(results, "fig3", "Figure 3: the case study", ("piecewise", "square_wave"))
    parts += _table2()
    if results.has("fig4"):
        parts += _figure4(results, choice)
    if results.has("fig5"):
        parts += _figure5(results, choice)
    if verdicts:
        parts += [*_details(verdicts), *_lambda_choices(verdicts, choice)]
    return [*parts, Heading("Errata, with derivations"), *errata_blocks(), *_making(results, about)]


def _opening(results: Results, about: About) -> list[Block]:
    parts = [
        "The paper: “Utility Analysis and Enhancement of LDP Mechanisms in High-Dimensional Space” (Duan, Ye and Hu). "
        "The command at the end of this page computes every number and every verdict."
    ]
    if about.scale != "full":
        parts.append(
            f"**This is the {about.scale} scale**: the data are smaller and the repeats fewer than in the paper. Each "
            "figure states its sizes, and the verdicts hold for these sizes only."
        )
    if any(cell.stand_in for cell in results.cells):
        parts.append(
            "**The COV-19 data are replaced by a stand-in**: synthetic data of the same size with strongly correlated "
            "dimensions. If you have the CORD-19 embeddings file, pass `--cov19 PATH`."
        )
    name, title = about.lambda_choice.name, about.lambda_choice.title
    parts.append(f"The figures use this choice of λ*: **{title}** (`--lambda-choice {name}`).")
    parts.append(
        "“Naive” is the mean θ̂ without re-calibration, the paper's current aggregation. A setting is one combination "
        "of data, mechanism, ε and number of dimensions d. KS is the Kolmogorov–Smirnov test."
    )
    return [Text(part) for part in parts]


def _summary(verdicts: Sequence[Verdict]) -> list[Block]:
    rows = [[v.text, v.where, v.verdict, v.support, "yes" if v.holds else "no"] for v in verdicts]
    return section(
        "The claims",
        "Each assertion of the paper is a test on the numbers below, by the metric of the paper. **Reproduced**: the "
        "test passes under every choice of λ*. **Depends on the choice** of λ*: it passes under some choices. **Holds "
        "in part**: it passes in some of the panels or mechanisms that the sentence mentions. **Holds in the paper's "
        "settings, false in general**: it passes, and a second test outside the paper's settings fails. **Needs the "
        "COV-19 data**: the outcome depends on means that the stand-in does not have. **Not reproduced**: it fails "
        "under every choice. Choices of λ* that give a claim the same numbers count once. The section after the "
        "figures has the tests, the numbers and the reasons.",
        Table(["claim", "where", "verdict", "choices of λ* for it", "holds in the figures"], rows),
    )


def _details(verdicts: Sequence[Verdict]) -> list[Block]:
    parts: list[Block] = [Heading("The claims, one by one")]
    for item in verdicts:
        own, under = "", f" {item.beyond}" if item.beyond else ""
        if item.verdict == CHOICE:
            own = f", and {'holds' if item.holds else 'fails'} under the choice of the figures"
        if 0 < item.distinct_for < item.distinct_all:
            names = _shortened(item.choices_for)
            under = f" It holds under {item.support} distinct choices of λ*: {names}.{under}"
        parts += section(
            f"{item.where}: “{item.text}”",
            f"**{item.verdict[0].upper()}{item.verdict[1:]}**{own}. Test (`{item.name}`): {item.test}. Found: "
            f"{item.evidence}. {item.why}{under}",
            level=3,
        )
    return parts


def _shortened(names: Sequence[str]) -> str:
    """The choices by a property that describes them exactly, otherwise by their names."""
    chosen = [r for r in LAMBDA_CHOICES if r.name in names]
    for field, words in (("reference", "L2 reference"), ("spread", "spread"), ("width", "z =")):
        values = {getattr(r, field) for r in chosen}
        if len(chosen) == sum(getattr(r, field) in values for r in LAMBDA_CHOICES):
            return f"all with {words} {' or '.join(sorted(values))}"
    return ", ".join(f"`{name}`" for name in names)


def _lambda_choices(verdicts: Sequence[Verdict], choice: LambdaChoice) -> list[Block]:
    support = support_of(verdicts)
    total = sum(1 for verdict in verdicts if verdict.distinct_all)
    rows = [
        [r.title + (" (in the figures)" if r == choice else ""), r.name, f"{support[r.name]} of {total}"]
        for r in sorted(LAMBDA_CHOICES, key=lambda r: -support[r.name])
    ]
    return section(
        "The choices of λ*",
        "Lemmas 4 and 5 leave three choices open: the size of the supremum (z standard deviations, or the z that "
        "covers all dimensions jointly with 95 %), whether the supremum includes the bias, and the reference that "
        "replaces the unknown θ̄_j in the weight of L2. The default is the choice under which most claims hold in the "
        "full run with seed 1.",
        Table(["choice", "name", "claims that hold"], rows),
    )


def errata_blocks() -> list[Block]:
    """Each erratum with the printed and the correct statement, derivation and numbers; then the remarks."""
    parts: list[Block] = []
    found = errata()
    for number, item in enumerate(found, start=1):
        if item.remark and not found[number - 2].remark:
            parts.append(Heading("Remarks"))
        truth = "Remark" if item.remark else "Correct"
        sentence = f"{item.where}. **Printed:** {item.printed}. **{truth}:** {item.right}."
        parts += section(f"{number}. {item.title}", sentence, item.derivation, level=3)
        if item.numbers:
            parts.append(Table(["", "value"], [[what, f"{value:.6g}"] for what, value in item.numbers]))
    return parts


def _making(results: Results, about: About) -> list[Block]:
    """How the cells were simulated, and the settings of the run."""
    ways: dict[tuple[str, str], list[CellResult | CltResult]] = {}
    drawn: list[CellResult | CltResult] = [*results.clt, *results.cells]
    for result in drawn:
        place = f"{result.cell.figure.replace('fig', 'Figure ')}, {title_of(result.cell.mechanism)}"
        ways.setdefault((place, result.how), []).append(result)
    rows = [
        [place, how, len(cells), f"{sum(cell.seconds for cell in cells):.0f} s"]
        for (place, how), cells in ways.items()
    ]
    if results.theory:
        seconds = sum(study.seconds for study in results.theory)
        how = "direct simulation of every report"
        rows.append(["Lemmas and theorems", how, len(results.theory), f"{seconds:.0f} s"])
    lines = {
        "command": about.command,
        "scale": about.scale,
        "seed": str(about.seed),
        "workers": str(about.workers),
        "run time": f"{about.seconds:.0f} s",
        "processor time of all settings": f"{about.processor_seconds:.0f} s",
        "settings kept from an earlier run": str(about.kept),
        **about.machine,
    }
    return section(
        "How it was made",
        "An exact shortcut draws from the same distribution as perturbing every value; the tests compare both. Times "
        "are processor times.",
        Table(["figure", "how", "settings", "time"], rows),
        Table(["", "this run"], list(lines.items())),
    )


# -- figures and tables ------------------------------------------------------------------------------------------


def _densities(results: Results, figure: str, title: str, names: Sequence[str]) -> list[Block]:
    """The section of Figure 2 or 3: sizes, picture, and a table with a row for each panel."""
    found = [results.deviations(figure, name) for name in names]
    cell = found[0].cell
    rows = [
        [
            MECHANISMS[r.cell.mechanism],
            *(f"{value:.5g}" for value in (r.bias, r.sd, r.paper_sd)),
            f"{r.ks_distance:.4f}",
            f"{r.ks_p_value:.3f}",
            f"{r.berry_esseen:.4f}",
        ]
        for r in found
    ]
    return section(
        title,
        f"{cell.users:,} users, d = {cell.dims:,}, m = {cell.sampled}, ε = {cell.epsilon:g}, "
        f"{cell.repeats:,} collections, first dimension; {found[0].how}.",
        Picture(
            f"figure-{figure[-1]}",
            f"The framework's density of the deviation and {cell.repeats:,} simulated collections.",
        ),
        Table(
            ["mechanism", "bias δ", "sd, exact", "sd, paper", "KS distance", "p-value", "Berry–Esseen bound"],
            rows,
        ),
    )


def _table2() -> list[Block]:
    """Table II, and the same probabilities with both mechanisms on one domain."""
    laws = {
        "Piecewise on [−1, 1] (Table II)": deviation_on("piecewise"),
        "Square wave on [0, 1] (Table II)": deviation_on("square_wave"),
        "Piecewise on [0, 1]": deviation_on("piecewise", (0.0, 1.0)),
        "Square wave on [−1, 1]": deviation_on("square_wave", (-1.0, 1.0)),
    }
    rows = [
        [name, f"{float(law.bias):.4g}", *(f"{float(law.probability_within(xi)):.3g}" for xi in TOLERANCES)]
        for name, law in laws.items()
    ]
    return section(
        "Table II and the case study's numbers",
        "Each number of section IV-C and of the example after Theorem 2, printed and recomputed. “Rounded”: the "
        "difference is less than one unit of the last printed digit.",
        Table(TABLE_COLUMNS, table2()),
        "Table II compares Square wave on [0, 1] with Piecewise on [−1, 1]. On a common [0, 1] its conclusion holds. "
        "On a common [−1, 1] the bias of Square wave exceeds every ξ_j of the table:",
        Table(["", "bias δ", *(f"within {xi:g}" for xi in TOLERANCES)], rows),
    )


def _mse_table(cells: Sequence[CellResult], choice: LambdaChoice, axis: str) -> Table:
    """The MSE of every method, a row for each cell; `axis` is the field of a cell that names the row."""
    rows: list[list[object]] = []
    for result in cells:
        have = {item.method for item in result.outcomes}
        naive = result.outcome("naive")
        row = [
            f"{title_of(result.cell.mechanism)}, {_SYMBOLS[axis]} = {getattr(result.cell, axis):g}",
            f"{result.predicted_mse:.4g}",
            f"{naive.mse:.4g} ± {naive.standard_error:.1g}",
            f"{result.distance:+.2f}",
            *(_outcome(result.outcome(m, choice)) if m in have else None for m in _METHODS),
        ]
        # No line breaks inside a number or a label: the table has eleven columns.
        rows.append([item and item.translate(_UNBROKEN) for item in row])
    names = ["L1", "L2", *_METHODS[2:]]
    return Table(["", "predicted", "naive ± s.e.", "in s.e.", *names], rows)


def _outcome(outcome: Outcome) -> str:
    """The simulated MSE, and in parentheses the predicted one if there is one."""
    own = "" if outcome.predicted_mse is None else f" ({outcome.predicted_mse:.3g})"
    return f"{outcome.mse:.3g}{own}"


_BARS = (
    "Bars: two standard deviations of the MSE of a single collection. The axis is categorical, as in the paper: its "
    "values are equally spaced, and the curves are shifted against each other so that equal values remain visible."
)


def _legend(choice: LambdaChoice) -> str:
    return (
        f"Solid: the three curves of the paper (choice of λ*: {choice.title}). Dashed and dotted: methods that the "
        f"paper does not have. Crosses: the predicted MSE. {_BARS}"
    )


def _near_zero(results: Results) -> str:
    """Why `auto` has a larger error than the estimate zero in panels (g) and (h)."""
    cells = [cell for name in NOISY for cell in results.curve("fig4", "uniform", name)]
    others = [
        cell for cell in results.of("fig4") if cell.cell.dataset != "uniform" and cell.cell.mechanism in NOISY
    ]

    def most(among: Sequence[CellResult], beside: str) -> float:
        return max(cell.outcome("auto").mse / cell.outcome(beside).mse for cell in among)

    return (
        "In panels (g) and (h) every true mean is nearly zero, so the estimate zero is nearly exact. There the MSE of "
        f"`auto` is up to {most(cells, 'zeros'):.2g} times that of the estimate zero, and at most "
        f"{100 * most(cells, 'naive'):.2g} % of the naive MSE. `auto` measures its error on the data and cannot know "
        "that every mean is zero: in a small share of the repeats the noise resembles a signal, and these repeats "
        "dominate the average. For Laplace and Piecewise on the other data sets the MSE of `auto` is at most "
        f"{most(others, 'zeros'):.3g} times that of the estimate zero."
    )


def _figure4(results: Results, choice: LambdaChoice) -> list[Block]:
    """The section of Figure 4: the figure and a table for each data set."""
    parts = section(
        "Figure 4: MSE against the budget",
        Picture("figure-4-paper", f"The three curves of the paper (choice of λ*: {choice.title}). {_BARS}"),
        Picture(
            "figure-4", f"The same with other methods; every user reports all dimensions. {_legend(choice)}"
        ),
        _near_zero(results),
    )
    for dataset in DATASETS:
        cells = [cell for name in MECHANISMS for cell in results.curve("fig4", dataset, name)]
        first = cells[0]
        parts += section(
            f"{first.title}: {first.cell.users:,} users, {first.cell.dims} dimensions",
            f"Normalization: {first.normalization}. {first.cell.repeats} repeats. For Square wave, `auto` uses the "
            "calibrated means (last column).",
            _mse_table(cells, choice, "epsilon"),
            level=3,
        )
    return parts


def _figure5(results: Results, choice: LambdaChoice) -> list[Block]:
    """The section of Figure 5: the figure and its table."""
    cells = [cell for name in NOISY for cell in results.curve("fig5", "cov19", name)]
    first = cells[0]
    return section(
        "Figure 5: MSE against the number of dimensions",
        Picture("figure-5-paper", f"The three curves of the paper (choice of λ*: {choice.title}). {_BARS}"),
        Picture(
            "figure-5",
            f"{first.title}, {first.cell.users:,} users, ε = {first.cell.epsilon:g} for all d dimensions together; "
            f"dimensions beyond those of the data are drawn again at random. Choice of λ*: {choice.title}.",
        ),
        _mse_table(cells, choice, "dims"),
    )


def own_lead(results: Results) -> str:
    """The data, the users, the number of cells and the mechanisms in one sentence."""
    cells = results.of("own")
    names = ", ".join(dict.fromkeys(title_of(result.cell.mechanism) for result in cells))
    return f"{cells[0].title}: {cells[0].cell.users:,} users, {pluralize(len(cells), 'setting')}, {names}."


def own_table(results: Results, choice: LambdaChoice) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of the MSE in each cell: predicted, naive, and under every method."""
    methods = ("naive", *_METHODS[:-1])
    rows: list[list[object]] = [
        [
            title_of(result.cell.mechanism),
            result.cell.dims,
            result.cell.m,
            result.cell.epsilon,
            result.predicted_mse,
            *(result.outcome(method, choice).mse for method in methods),
        ]
        for panel in results.own_panels()[1]
        for result in panel
    ]
    return ["mechanism", "dimensions", "questions per person", "ε", "predicted", *methods], rows


def _own(results: Results, choice: LambdaChoice) -> list[Block]:
    """The prediction against the simulation, the cells in which L1 and L2 reduce the error, figure and numbers."""
    axis, panels = results.own_panels()
    cells = [cell for panel in panels for cell in panel]
    first = cells[0]
    farthest = max(abs(cell.distance) for cell in cells)
    effects = {method: Counter(cell.effect(method, choice) for cell in cells) for method in METHODS}
    rows = [[method.upper(), found[1], found[-1], found[0]] for method, found in effects.items()]
    parts: list[Block] = [
        Text(
            f"Every user reports m dimensions with the budget ε/m each. Data: {first.title}, normalization "
            f"{first.normalization}, {first.cell.users:,} users, {first.cell.repeats} repeats. The claims of the "
            "paper are about other data and are not judged here."
        ),
        *section(
            "The predicted MSE",
            f"The simulated naive MSE differs from its prediction by at most {farthest:.2f} standard errors in "
            f"{pluralize(len(cells), 'setting')}. With many settings and a small number of repeats, a correct "
            "prediction has differences of 2 to 4 standard errors. In the tables below, the predicted MSE of the other "
            "methods is in parentheses; that of `auto` is an average over draws from the predicted distribution of all "
            "means, as many as there are repeats.",
        ),
        *section(
            "Where re-calibration reduces the error",
            "Settings in which a method differs from the naive mean by more than two standard errors.",
            Table(["method", "better in", "worse in", "no difference in"], rows),
            Picture(
                "figure-own",
                f"MSE against {_AXIS[axis]}. {_legend(choice)}",
            ),
        ),
    ]
    for panel in panels:
        name = title_of(panel[0].cell.mechanism)
        title = name if axis == "dims" else f"{name}, {pluralize(panel[0].cell.dims, 'dimension')}"
        parts += section(title, _mse_table(panel, choice, axis), level=3)
    return parts


# -- files -------------------------------------------------------------------------------------------------------

_CLT = ("figure", "mechanism", "epsilon", "users", "dims", "sampled", "repeats")
_DENSITY_COLUMNS = [
    "seed",
    "how",
    "true_mean",
    "bias",
    "sd",
    "paper_sd",
    "berry_esseen",
    "ks_distance",
    "ks_p_value",
]


def as_first_run(about: About, output: Path) -> About:
    """`about` with the time and machine of the earlier run in `output`, where no cell was computed again."""
    try:
        before = json.loads((output / "run.json").read_text(encoding="utf-8"))
        same = all(before[name] == getattr(about, name) for name in ("scale", "seed", "processor_seconds"))
        record = {name: before[name] for name in ("workers", "machine", "seconds", "kept")}
    except (OSError, ValueError, KeyError):
        return about
    return replace(about, **record) if same else about


def publish(results: Results, verdicts: Sequence[Verdict], about: About, output: Path) -> list[str]:
    """Write everything into `output` and return the files' names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    output.mkdir(parents=True, exist_ok=True)
    figures = draw(results, about.lambda_choice)
    drawings = {name: html.svg(figure) for name, figure in figures.items()}
    blocks = blocks_of(results, verdicts, about)
    own = results.has("own")
    title = OWN_TITLE if own else TITLE
    lead = lead_of(verdicts) if verdicts else "The case study of the paper, recomputed."
    lead = own_lead(results) if own else lead
    files = {
        "report.html": to_html(title, lead, blocks, drawings),
        "report.md": to_markdown(title, lead, blocks),
        "run.json": _json({**asdict(about), "lambda_choice": about.lambda_choice.name}),
        **{f"{name}.svg": drawing for name, drawing in drawings.items()},
    }
    if not own:
        files["table-2.csv"] = _csv(TABLE_COLUMNS, table2())
    if verdicts and not own:
        files["items.md"] = to_markdown(
            items.TITLE, items.items_lead(), items.items_blocks(verdicts, _seeds(output))
        )
        claims = {"claims": [asdict(v) for v in verdicts]}
        files["claims.json"] = _json({**claims, "claims_that_hold_under_a_choice": support_of(verdicts)})
    if results.clt:
        panels = [
            [*(vars(r.cell)[k] for k in _CLT), *(vars(r)[k] for k in _DENSITY_COLUMNS)] for r in results.clt
        ]
        points = [
            [r.cell.figure, r.cell.mechanism, number, f"{value:.9g}"]
            for r in results.clt
            for number, value in enumerate(r.deviations)
        ]
        files["deviations.csv"] = _csv((*_CLT, *_DENSITY_COLUMNS), panels)
        files["deviations-simulated.csv"] = _csv(("figure", "mechanism", "repeat", "deviation"), points)
    if results.theory:
        rows = [[r.cell.study, name, value] for r in results.theory for name, value in r.numbers.items()]
        files["theory.csv"] = _csv(("study", "quantity", "value"), rows)
    numbers = rows_of(results.cells)
    if numbers:
        files["numbers.csv"] = _csv(COLUMNS, [list(row.values()) for row in numbers])
    for name, text in files.items():
        write_text(output / name, text)
    written = [*files, *(f"{name}.{kind}" for name in figures for kind in ("png", "pdf"))]
    for name, figure in figures.items():
        with replacing(output / f"{name}.png") as path:
            figure.savefig(path, format="png", dpi=110, metadata={"Software": None})
        with replacing(output / f"{name}.pdf") as path:
            figure.savefig(path, format="pdf", metadata={"CreationDate": None})
    if numbers:
        written.append("numbers.parquet")
        with replacing(output / "numbers.parquet") as path:
            pq.write_table(pa.Table.from_pylist(numbers), path)
    return sorted(written)


def _seeds(output: Path) -> dict[int, dict[str, str]]:
    """The verdicts of runs with other seeds, from the files claims-seed-N.json beside the report."""
    verdicts = {}
    for path in sorted(output.glob("claims-seed-*.json")):
        claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
        verdicts[int(path.stem.rpartition("-")[2])] = {item["name"]: item["verdict"] for item in claims}
    return verdicts


def _csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _json(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
