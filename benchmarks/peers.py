"""Categories beside the peers, in one run: error and client speed against multi-freq-ldpy and pure-LDP.

    python benchmarks/peers.py /path/to/an/environment/bin/python benchmarks/results/peers.md

The environment is the peers' own: `pip install multi-freq-ldpy pure-ldp statsmodels scikit-learn "xxhash<4"` in it
(both hash texts, which xxhash 4 refuses). Without a path, or without these libraries, the script says so and ends.
Times are processor times of one thread.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import peers_work
from hdr4me.atomic import write_text
from hdr4me.engines import Local
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.mechanisms.categorical import categorical_channel
from hdr4me.statistics.calibrate import indicator_moments
from hdr4me.survey import Categorical, Schema, Survey
from hdr4me.tally import Tally

PROTOCOLS = {"multi-freq-ldpy": ("GRR", "SS", "OUE", "OLH"), "pure-ldp": ("DE", "OUE", "OLH", "HR")}
BUDGETS = (0.5, 1.0, 2.0, 4.0)
# (categories, users, collections of a protocol): the standard error of a ratio is 1.5 % or less
SIZES = ((10, 200, 1300), (100, 200, 130), (4000, 500, 3))
OURS = 4
"""Collections of ours for one of theirs."""

SCREENED, NEAR = 20, 1.2
"""Every protocol has so many collections (all of them if there are fewer); those near the best then have all."""


class Peers:
    """A running environment of peers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, task: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one task."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"task": task, **arguments}) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))


@contextmanager
def open_peers(python: Path) -> Iterator[Peers]:
    """The peers under an interpreter of their own."""
    command = [str(python), str(Path(peers_work.__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Peers(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=60)


def zipf(k: int, n: int, seed: int) -> list[int]:
    """n values whose frequencies are like Zipf's."""
    weights = 1.0 / np.arange(1, k + 1)
    found: list[int] = np.random.default_rng(seed).choice(k, n, p=weights / weights.sum()).tolist()
    return found


def ours(epsilon: float, k: int, values: list[int], times: int) -> list[float]:
    """Σ (f̂ − f)² of our default oracle in several collections of the same values."""
    survey = Survey(Schema([Categorical("x", range(k))]), epsilon=epsilon)
    records = np.array(values, np.float64)[:, None]
    truth = np.bincount(values, minlength=k) / len(values)
    blocks = Local(threads=1).reports(np.tile(records, (times, 1)), survey)
    reports = np.concatenate(list(blocks)).reshape(times, len(values), survey.report_size)
    found = []
    for one in reports:
        tally = Tally(survey).add_block(one)
        response = survey.channels[0].response
        frequency, _ = indicator_moments(
            response.cells(tally.counts),
            len(values),
            response.marginal(),
        )
        found.append(float(((frequency - truth) ** 2).sum()))
    return found


def theirs(
    peers: Peers,
    library: str,
    protocol: str,
    epsilon: float,
    k: int,
    values: list[int],
    times: int,
    first: int = 0,
) -> list[float] | None:
    """The same of a peer's protocol, seeds from `first` on; None if it cannot."""
    truth = np.bincount(values, minlength=k) / len(values)
    found = []
    for seed in range(first, first + times):
        answer = peers.ask(
            "frequencies", library=library, protocol=protocol, epsilon=epsilon, k=k, values=values, seed=seed
        )
        if "error" in answer:
            return None
        found.append(float(((np.array(answer["estimate"]) - truth) ** 2).sum()))
    return found


def accuracy(peers: Peers, k: int, n: int, times: int) -> Iterator[str]:
    """A line for each budget: n·Σ(f̂ − f)² of ours and of each library's best protocol, with standard errors."""
    for epsilon in BUDGETS:
        values = zipf(k, n, seed=k)
        mine = np.array(ours(epsilon, k, values, OURS * times)) * n
        channel: Any = Survey(Schema([Categorical("x", range(k))]), epsilon=epsilon).channels[0]
        absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
        predicted = (k - 1) * absent + present
        row, above = [f"{k:,}", f"{epsilon:g}", f"{channel.mechanism} {_mean(mine)}"], False
        for library, protocols in PROTOCOLS.items():
            found = {}
            for protocol in protocols:
                first = theirs(peers, library, protocol, epsilon, k, values, min(SCREENED, times))
                if first is not None:
                    found[protocol] = np.array(first) * n
            if not found:
                row += ["absent", "–", "–"]
                continue
            least = min(errors.mean() for errors in found.values())
            near = [name for name, errors in found.items() if errors.mean() <= NEAR * least]
            left = max(0, times - SCREENED)
            for protocol in near:
                more = theirs(peers, library, protocol, epsilon, k, values, left, SCREENED) or []
                found[protocol] = np.concatenate([found[protocol], np.array(more) * n])
            best = sorted((float(found[name].mean()), name) for name in near)[0][1]
            its = found[best]
            noise = float(np.hypot(_se(mine, k), _se(its, k)))
            above |= bool(mine.mean() > its.mean() + 3 * noise)
            relative = float(np.hypot(_se(mine, k) / mine.mean(), _se(its, k) / its.mean()))
            ratio = float(its.mean() / mine.mean())
            formula = total(best, epsilon, k)
            row += [
                f"{best} {_mean(its)}",
                f"{ratio:.3f} ± {ratio * relative:.3f}",
                "–" if formula is None else f"{formula / predicted:.3f}",
            ]
        yield f"| {' | '.join(row)} | {'ABOVE' if above else 'no'} |"


def by_formula(k: int, epsilon: float) -> str:
    """A line: our error predicted, and every protocol's over it."""
    channel: Any = Survey(Schema([Categorical("x", range(k))]), epsilon=epsilon).channels[0]
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    mine = (k - 1) * absent + present
    others = (f"{(total(name, epsilon, k) or 0.0) / mine:.3f}" for name in ("GRR", "SS", "OUE", "OLH"))
    return f"| {k:,} | {epsilon:g} | {channel.mechanism} {mine:.4g} | {' | '.join(others)} |"


def total(protocol: str, epsilon: float, k: int) -> float | None:
    """n·Σ(f̂ − f)² of a peer's protocol by its published p and q; None if it has no such pair."""
    e = float(np.exp(epsilon))
    w = max(1, int(np.rint(k / (e + 1))))
    g = int(np.rint(e)) + 1
    pairs = {
        "GRR": (e / (e + k - 1), 1 / (e + k - 1)),
        "SS": (w * e / (w * e + k - w), ((w - 1) * w * e + (k - w) * w) / ((k - 1) * (w * e + k - w))),
        "OUE": (0.5, 1 / (e + 1)),
        "OLH": (e / (e + g - 1), 1 / g),
    }
    name = {"DE": "GRR"}.get(protocol, protocol)
    if name not in pairs:
        return None
    p, q = pairs[name]
    return ((k - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2


def _se(errors: np.ndarray[Any, Any], k: int) -> float:
    """Standard error of the mean; of a few collections from √(2/(k − 1)), as for k squares of normal errors."""
    if errors.size > 10:
        return float(errors.std(ddof=1) / errors.size**0.5)
    return float(errors.mean() * (2 / (k - 1) / errors.size) ** 0.5)


def _mean(errors: np.ndarray[Any, Any]) -> str:
    return f"{errors.mean():.4g}"


def speed(peers: Peers) -> Iterator[str]:
    """Reports a second, like beside like: sets beside sets, one number beside one number."""
    for k in (10, 100, 4000):
        rates = {name: _rate(name, k) for name in ("subset", "projective")}
        for library, protocol in (("multi-freq-ldpy", "SS"), ("multi-freq-ldpy", "OLH"), ("pure-ldp", "OLH")):
            own = "subset" if protocol == "SS" else "projective"
            mine = rates[own]
            found = [
                peers.ask("client_speed", library=library, protocol=protocol, epsilon=1.0, k=k, n=5000)
                for _ in range(3)
            ]
            if any("error" in x for x in found):
                yield f"| {k:,} | {library} {protocol} | absent | {own} | {mine / 1e6:.2f} M | – |"
                continue
            rate = 5000 / min(x["seconds"] for x in found)
            yield (
                f"| {k:,} | {library} {protocol} | {rate / 1e3:.1f} k | {own} | {mine / 1e6:.2f} M | "
                f"{mine / rate:.0f} |"
            )


def _rate(name: str, k: int) -> float:
    """Reports a second that the engine makes of inputs, by processor time; the best of five."""
    channel = categorical_channel(name, 1.0, k)
    n = 400_000 if k < 1000 or name == "projective" else 5000
    inputs = np.arange(n) % k
    channel.response.sample(inputs[:100], SecureDraws())
    seconds = []
    for _ in range(5):
        start = time.process_time()
        channel.response.sample(inputs, SecureDraws())
        seconds.append(time.process_time() - start)
    return n / min(seconds)


def main(python: Path, path: Path) -> None:
    """Measure and write; absent peers are named."""
    with open_peers(python) as peers:
        versions = peers.ask("versions")
        absent = [name for name in PROTOCOLS if versions.get(name) is None]
        if len(absent) == len(PROTOCOLS):
            print(f"skipped: {python} has none of {', '.join(PROTOCOLS)}")
            return
        known = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        lines = [
            "# Categories beside the peers",
            "",
            f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {known}. Load average "
            f"{os.getloadavg()[0]:.1f} at the start; times are processor times of one thread.",
            *([f"Absent: {', '.join(absent)}."] if absent else []),
            "",
            "n·Σ(f̂ − f)² of unbiased estimates, Zipf data, the same for all; the peers' best protocol of",
            "; ".join(f"{name}: {', '.join(protocols)}" for name, protocols in PROTOCOLS.items()) + ".",
            "",
            "A ratio is the error of the peer over that of hdr4me, with its standard error and by formula.",
            "The protocol with the smallest measured error is named; its ratio is about one standard error too small.",
            "",
            "| categories | epsilon | ours | multi-freq-ldpy | over ours | by formula | pure-LDP | over ours "
            "| by formula | ours above by 3 se |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        rates = list(speed(peers))
        print("\n".join(rates), flush=True)
        for size in SIZES:
            for line in accuracy(peers, *size):
                lines.append(line)
                print(line, flush=True)
        lines += [
            "",
            "Reports per second at epsilon = 1, by peers one by one, by hdr4me together (cryptographic randomness);",
            "subset selection, and projective reports compared with local hashing:",
            "",
            "| categories | peer | its rate | oracle of hdr4me | its rate | ratio |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            *rates,
            "",
            "n·Σ(f̂ − f)² by each protocol's p and q, over that of hdr4me. At 4,000 categories the default is a",
            "report of 2 bytes instead of subset selection's 2,152.",
            "",
            "| categories | epsilon | ours | GRR over ours | SS | OUE | OLH |",
            "|---|---|---|---|---|---|---|",
            *(by_formula(k, epsilon) for k, *_ in SIZES for epsilon in BUDGETS),
        ]
        write_text(path, "\n".join([*lines, ""]))


if __name__ == "__main__":
    if len(sys.argv) != 3 or not Path(sys.argv[1]).is_file():
        print("skipped: give the interpreter of an environment that has the peers, and where to write")
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
