"""The whole benchmark: every suite in one run, as a document, a page of tables and a plot."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.growth import memory, time_growth
from bench.peers import install, open_peers
from bench.suites import Suite, exact, limits, sampled, simulation, tally
from hdr4me.pages.text import machine

__all__ = ["markdown", "plot", "run"]


def run(
    *, rounds: int = 7, peers_folder: Path | None = None, note: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Measure everything; with `peers_folder`, against peers installed there in an environment of their own."""
    python: Path | None = None
    if peers_folder is not None:
        note("installing the peers in an environment of their own")
        python = install(peers_folder)
    suites: list[Suite] = []
    with open_peers(python) as peers, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps: list[tuple[str, Callable[[], Suite]]] = [
            ("limits", lambda: limits(rounds)),
            ("simulation", lambda: simulation(rounds, peers)),
            ("secure reports", lambda: exact(rounds, peers)),
            ("sampling", lambda: sampled(rounds)),
            ("tally", lambda: tally(rounds, peers, folder)),
            ("growth of time", lambda: time_growth(rounds, folder)),
        ]
        for text, step in steps:
            note(f"measuring {text}")
            suites.append(step())
        note("measuring memory")
        peaks = memory(folder, (1_000_000, 10_000_000))
        absent = dict(peers.absent)
    return {
        "format": "hdr4me-bench",
        "version": 1,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "suites": [vars(suite) for suite in suites],
        "memory_megabytes": {what: {str(n): peak for n, peak in by.items()} for what, by in peaks.items()},
        "absent": absent,
    }


def markdown(document: dict[str, Any]) -> str:
    """The tables of docs/performance.md."""
    lines = [
        f"Measured on {document['date']}: "
        + ", ".join(f"{k} {v}" for k, v in document["machine"].items())
        + "."
    ]
    for suite in document["suites"]:
        lines += ["", f"### {suite['title']}", ""]
        unit = f"{suite['unit']} per second" if suite["unit"] else "exponent"
        lines += [f"| | {unit} |", "|---|---:|"]
        lines += [
            f"| {name} | {_number(rate)} |"
            for name, rate in suite["rates"].items()
            if rate > 0 or not suite["unit"]
        ]
        if suite["ratios"]:
            lines += ["", "| ratio | found | target |", "|---|---:|---:|"]
            lines += [
                f"| {text} | {found:.2f} | {asked:g} |" for text, (found, asked) in suite["ratios"].items()
            ]
    lines += [
        "",
        "### Peak of memory above a warmed-up process, MB",
        "",
        "| | 1,000,000 users | 10,000,000 users |",
    ]
    lines += ["|---|---:|---:|"]
    lines += [f"| {what} | " + " | ".join(f"{peak:.0f}" for peak in by.values()) + " |"
              for what, by in document["memory_megabytes"].items()]  # fmt: skip
    for name, reason in document["absent"].items():
        lines += ["", f"{name}: absent ({reason})."]
    return "\n".join(lines) + "\n"


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def plot(document: dict[str, Any], path: Path) -> None:
    """A bar for every rate, suite by suite, on a logarithmic axis."""
    from matplotlib.figure import Figure

    suites = [suite for suite in document["suites"] if suite["unit"]]
    heights = [len(suite["rates"]) for suite in suites]
    figure = Figure(figsize=(8, 0.28 * sum(heights) + 0.8 * len(suites)), layout="constrained")
    for axes, suite in zip(
        figure.subplots(len(suites), 1, height_ratios=heights, squeeze=False)[:, 0], suites, strict=True
    ):
        names = [name for name, rate in suite["rates"].items() if rate > 0]
        ours = ["#1f6f8b" if name.startswith("hdr4me") else "#b8bec4" for name in names]
        axes.barh(names, [suite["rates"][name] for name in names], color=ours)
        axes.set_xscale("log")
        axes.invert_yaxis()
        axes.set_title(suite["title"], fontsize=9, loc="left")
        axes.set_xlabel(f"{suite['unit']} per second", fontsize=8)
        axes.tick_params(labelsize=7)
    figure.savefig(path, format="svg")
