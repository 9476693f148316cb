"""hdr4me bench: how fast it is here, against NumPy, peers and the machine's limits."""

from __future__ import annotations

import sys
from importlib import import_module
from json import dumps
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from hdr4me.atomic import replacing, write_text
from hdr4me.cli import options as opt
from hdr4me.cli.options import JSON, File
from hdr4me.cli.output import print_json, print_note, print_table
from hdr4me.errors import InvalidInput


def bench(
    output: Annotated[File, Option("--output", "-o", help="Folder for bench.json, .md and .svg.")] = None,
    rounds: Annotated[int, Option(help="Each time is the best of this many.")] = 7,
    peers: Annotated[File, Option(help="Folder of the peers' environment, made if absent.")] = Path(
        "~/.cache/hdr4me/peers"
    ),
    no_peers: Annotated[bool, Option("--no-peers", help="Leave the peers out.")] = False,
    json: JSON = False,
) -> None:
    """Measure simulation, secure reports, sampling, tally and growth in one interleaved run (some minutes).

    Peers (OpenDP, diffprivlib, pure-ldp, multi-freq-ldpy, DuckDB, polars) get an environment of their own; one that
    cannot be installed is reported absent. All times but one are processor time on one core.

    Example: hdr4me bench --json > bench.json
    """
    opt.check("--rounds", rounds, rounds >= 1, "at least 1 is needed")
    if output is not None and output.exists() and not output.is_dir():
        raise InvalidInput(f"--output {output} is a file: a folder is expected")
    run = _benchmarks()
    folder = None if no_peers or peers is None else peers.expanduser()
    document = run.run(rounds=rounds, peers_folder=folder, note=print_note)
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_text(output / "bench.json", dumps(document, indent=2) + "\n")
        write_text(output / "bench.md", run.markdown(document))
        with replacing(output / "bench.svg") as temporary:
            run.plot(document, temporary)
        print_note(f"wrote bench.json, bench.md and bench.svg to {output}")
    if json:
        print_json(document)
        return
    for suite in document["suites"]:
        unit = f"{suite['unit']} a second" if suite["unit"] else "exponent"
        print_table(suite["title"], ("what", unit), list(suite["rates"].items()))
    ratios = [[text, *pair] for suite in document["suites"] for text, pair in suite["ratios"].items()]
    print_table("Ratios in this run", ("ratio", "found", "target"), ratios)
    for name, reason in document["absent"].items():
        print_note(f"{name} is absent: {reason}")


def _benchmarks() -> Any:
    """The module benchmarks/bench/run.py, which only a clone of the project has."""
    folder = Path(__file__).parents[3] / "benchmarks"
    if not (folder / "bench" / "run.py").is_file():
        raise InvalidInput("hdr4me bench runs from a clone of the project, where benchmarks/bench lives")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return import_module("bench.run")
