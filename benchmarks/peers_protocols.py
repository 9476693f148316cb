"""Every frequency protocol of pure-ldp and multi-freq-ldpy beside ours: measured errors over our predicted ones.

Run `python benchmarks/peers_protocols.py [INTERPRETER]` with the peers' interpreter (`make .venv-peers/made`). It
writes benchmarks/results/peers_protocols.md, from which docs/comparing.md has its table. Estimates are unbiased, and
the data have Zipf frequencies. The standard error of a ratio is about √(2/(k·collections)).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hdr4me as hd
from hdr4me.atomic import write_text
from hdr4me.framework.population import from_frequencies
from hdr4me.framework.prediction import survey_prediction
from peers import Peers, open_peers, zipf

ROOT = Path(__file__).parents[1]
PROTOCOLS = {
    "multi-freq-ldpy": ("GRR", "SUE", "OUE", "BLH", "OLH", "SS", "THE"),
    "pure-ldp": ["DE", "SUE", "OUE", "BLH", "OLH", "FLH", "SHE", "THE", "HR", "HM", "CMS", "HCMS", "PCS"],
}
LONGITUDINAL = ("L_GRR", "L_SUE", "L_OUE", "L_SOUE", "L_OSUE", "LOLOHA", "L_BLH")
CASES = ((10, 1.0), (100, 1.0), (100, 4.0))
PERMANENT, FIRST = 4.0, 1.0
USERS = 500


def predicted(survey: hd.Survey, values: list[int], k: int) -> float:
    """Σ E(f̂ − f)² of our survey for these users."""
    truth = np.bincount(values, minlength=k) / len(values)
    return survey_prediction(survey, [from_frequencies(truth)], len(values)).mse * k


def measured(ask: Callable[..., dict[str, Any]], values: list[int], k: int) -> np.ndarray[Any, Any]:
    """Σ (f̂ − f)² of each collection; empty if the peer cannot."""
    truth = np.bincount(values, minlength=k) / len(values)
    found = []
    for seed in range(max(4, 2000 // k)):
        answer = ask(seed=seed)
        if "error" in answer:
            print(answer["error"], file=sys.stderr)
            return np.zeros(0)
        found.append(float(((np.array(answer["estimate"]) - truth) ** 2).sum()))
    return np.array(found)


def cell(errors: np.ndarray[Any, Any], ours: float) -> str:
    """A ratio with its standard error."""
    if not errors.size:
        return "–"
    return f"{errors.mean() / ours:.2f} ± {errors.std(ddof=1) / np.sqrt(errors.size) / ours:.2f}"


def lines(peers: Peers) -> Iterator[str]:
    """The two tables, line by line."""
    schemas = {k: hd.Schema([hd.Categorical("x", [str(v) for v in range(k)])]) for k, _ in CASES}
    yield "| library | protocol | " + " | ".join(f"k = {k}, ε = {e:g}" for k, e in CASES) + " |"
    yield "|---|---|" + "---:|" * len(CASES)
    for library, protocols in PROTOCOLS.items():
        for protocol in protocols:
            cells = []
            for k, epsilon in CASES:
                values = zipf(k, USERS, 1)
                asked = {
                    "library": library,
                    "protocol": protocol,
                    "epsilon": epsilon,
                    "k": k,
                    "values": values,
                }
                errors = measured(partial(peers.ask, "frequencies", **asked), values, k)
                cells.append(cell(errors, predicted(hd.Survey(schemas[k], epsilon=epsilon), values, k)))
            yield f"| {library} | {protocol} | {' | '.join(cells)} |"
    yield ""
    yield f"Memoization protocols of multi-freq-ldpy, one report per user: ε∞ = {PERMANENT:g}, ε₁ = {FIRST:g}."
    yield ""
    yield "| protocol | k = 10 | k = 100 |"
    yield "|---|---:|---:|"
    for protocol in LONGITUDINAL:
        cells = []
        for k in (10, 100):
            values = zipf(k, USERS, 1)
            asked = {"protocol": protocol, "permanent": PERMANENT, "first": FIRST, "k": k, "values": values}
            errors = measured(partial(peers.ask, "longitudinal", **asked), values, k)
            survey = hd.Survey(schemas[k], epsilon=FIRST, memoized_epsilon=PERMANENT)
            cells.append(cell(errors, predicted(survey, values, k)))
        yield f"| {protocol} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and write."""
    python = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".venv-peers" / "bin" / "python"
    with open_peers(python) as peers:
        known = peers.ask("versions")
        named = ", ".join(f"{name} {known[name]}" for name in PROTOCOLS)
        text = [
            "# Protocols of the peers",
            "",
            f"{named}. Their Σ(f̂ − f)² over ours, {USERS} users, Zipf data.",
            "",
        ]
        for line in lines(peers):
            print(line, flush=True)
            text.append(line)
    write_text(ROOT / "benchmarks" / "results" / "peers_protocols.md", "\n".join(text) + "\n")


if __name__ == "__main__":
    main()
