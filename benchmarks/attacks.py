"""The auditor's attack on every channel kind, ten million reports of each of the two worst inputs.

    python benchmarks/attacks.py benchmarks/results/attacks.md [draws] [only the channels whose names have this text]

The attack gives a lower bound of ε from outputs alone, wrong with probability at most 1e-6. It must not exceed the
declared ε. Reports use the system's randomness. A run of some channels replaces their lines of the file and keeps the
others.

Each report of a vector is compared with a thousand codewords, so ten million reports take hours. The two worst vectors
are the ends of the first axis. The subsets of k likely codewords of the two ends are disjoint
(`tests/auditing/test_every_channel.py`), and unlikely codewords are equally likely. So the number of reports in the
other subset has the law of the number of ranks among the last k. The lines "places" attack the ranks that the engine
draws, ten million times. The lines "in full" attack whole reports, fewer times.
"""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path

from hdr4me.atomic import write_text
from hdr4me.auditing.auditor import ALARM, attack, bound
from hdr4me.channels import Channel
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.codebook.design import codebook_channel
from hdr4me.channels.codebook.response import CodebookResponse
from hdr4me.channels.k_subset import KSubset
from hdr4me.channels.proof import log_upper
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey

IN_FULL = {"vector of 10, in full": 100, "vector of 100, in full": 100}
"""Channels that are attacked with so many times fewer draws."""
_AT_ONCE = 1 << 20


def attack_places(channel: KSubset, draws: int) -> float:
    """The attack on a codebook by the places that the engine draws: among the first k, and among the last k."""
    family = channel.family
    assert isinstance(family, Codebook)
    source, hits = SecureDraws(), [0, 0]
    for start in range(0, draws, _AT_ONCE):
        n = min(_AT_ONCE, draws - start)
        ranks = CodebookResponse(channel).ranks
        places = ranks(n, source), family.codewords - 1 - ranks(n, source)
        hits = [before + int((own < family.heavy).sum()) for before, own in zip(hits, places, strict=True)]
    return bound(hits[0], hits[1], draws)


def channels() -> dict[str, Channel]:
    """A channel of each kind and family, sizes as they are used."""

    def categories(name: str, epsilon: float, v: int) -> Channel:
        return Survey(Schema([Categorical("x", range(v))]), epsilon=epsilon, categorical=name).channels[0]

    optional = Schema([Numeric("x", 0, 1, optional=True)])
    numbers = [f"x{i}" for i in range(64)]

    def block(epsilon: float, b: int) -> Channel:
        schema = Schema([Numeric(x, -1, 1) for x in numbers[:b]])
        return Survey(schema, epsilon=epsilon, block_questions=[numbers[:b]]).channels[0]

    both = Schema([Numeric("x", 0, 1), Numeric("y", 0, 1)])
    chosen = Schema([Selection("x", range(20), at_most=3)])
    return {
        "randomized response, 10": categories("grr", 1.0, 10),
        "randomized response, 1,000": categories("grr", 8.0, 1000),
        "subset selection, 24": categories("subset", 2.0, 24),
        "subset selection, 100": categories("subset", 1.0, 100),
        "projective over 4 numbers, 4,043": categories("projective", 1.0, 4043),
        "projective over 8 numbers, 10,000": categories("projective", 2.0, 10_000),
        "projective over a prime, 10,000": categories("projective", 4.0, 10_000),
        "unary encoding, 10": categories("oue", 1.0, 10),
        "PrivSet, 3 of 20": Survey(chosen, epsilon=2.0).channels[0],
        "optional number": Survey(optional, epsilon=1.0).channels[0],
        "pair of numbers": Survey(both, epsilon=1.0, pair_questions=[("x", "y")]).channels[0],
        "number, Duchi": Survey(Schema([Numeric("x", 0, 1)]), epsilon=1.0, mechanism="duchi").channels[0],
        "number, Piecewise": Survey(
            Schema([Numeric("x", 0, 1)]), epsilon=2.0, mechanism="piecewise"
        ).channels[0],
        "block of 4 numbers": block(4.0, 4),
        "block of 64 numbers": block(8.0, 64),
        "vector of 10, places": codebook_channel(4.0, 10),
        "vector of 100, places": codebook_channel(4.0, 100),
        "vector of 100, ε = 8, places": codebook_channel(8.0, 100),
        "vector of 10, in full": codebook_channel(4.0, 10),
        "vector of 100, in full": codebook_channel(4.0, 100),
    }


def measured(name: str, channel: Channel, draws: int) -> tuple[str, bool]:
    """One line, and whether the bound is below ε."""
    start = time.process_time()
    if name.endswith("places"):
        assert isinstance(channel, KSubset)
        found = attack_places(channel, draws)
    else:
        found = attack(channel, draws)
    below = found <= channel.epsilon
    line = (
        f"| {name} | {draws:,} | {channel.epsilon:g} | {log_upper(channel.likelihood_ratio):.9f} | {found:.5f} | "
        f"{'yes' if below else 'NO'} | {time.process_time() - start:.0f} |"
    )
    return line, below


def main(path: Path, draws: int, only: str) -> None:
    """Attack and write after each line; ends with an error if a bound is above its ε."""
    head = [
        "# The attack on every channel",
        "",
        f"Reports of each of the two worst inputs; a bound is wrong with probability {ALARM:g}; "
        f"{platform.machine()}, Python {platform.python_version()}. `benchmarks/attacks.py` explains "
        "the lines of vectors.",
        "",
        "| channel | draws | declared ε | proven ε | attacked ε (lower bound) | below | processor seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    kept = path.read_text().splitlines() if only and path.exists() else []
    lines = {line.split(" | ")[0][2:]: line for line in kept if line.startswith("| ") and " | " in line}
    failed = False
    for name, channel in channels().items():
        if only in name:
            lines[name], below = measured(name, channel, draws // IN_FULL.get(name, 1))
            failed |= not below
            print(lines[name], flush=True)
            write_text(path, "\n".join([*head, *(lines[x] for x in channels() if x in lines), ""]))
    if failed:
        sys.exit("an attack's bound is above the declared ε")


if __name__ == "__main__":
    given = sys.argv[2:]
    main(Path(sys.argv[1]), int(given[0]) if given else 10_000_000, given[1] if len(given) > 1 else "")
