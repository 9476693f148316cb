"""Run the benchmarks in a clone of the project: `make bench`, or `python -m bench` in the folder benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from json import dumps
from pathlib import Path

from bench import run as module
from hdr4me.atomic import replacing, write_text


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the result as Markdown or write it to a folder."""
    parser = argparse.ArgumentParser(
        prog="bench", description="Benchmark hdr4me and its peers (some minutes)."
    )
    parser.add_argument("--output", type=Path, help="folder for bench.json, bench.md and bench.svg")
    parser.add_argument("--rounds", type=int, default=7, help="each time is the best of this many rounds")
    parser.add_argument(
        "--peers", type=Path, help="folder of an environment for peer libraries; created if absent"
    )
    given = parser.parse_args(arguments)
    if given.rounds < 1:
        parser.error("--rounds must be a positive integer")
    document = module.run(
        rounds=given.rounds, peers_folder=given.peers, note=lambda text: print(text, file=sys.stderr)
    )
    if given.output is None:
        print(module.markdown(document))
        return
    given.output.mkdir(parents=True, exist_ok=True)
    write_text(given.output / "bench.json", dumps(document, indent=2) + "\n")
    write_text(given.output / "bench.md", module.markdown(document))
    with replacing(given.output / "bench.svg") as temporary:
        module.plot(document, temporary)


if __name__ == "__main__":
    main()
