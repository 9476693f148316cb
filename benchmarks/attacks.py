"""The auditor's attack on every channel kind, ten million reports of each of the two worst inputs.

    python benchmarks/attacks.py benchmarks/results/attacks.md [draws]

The attack gives a lower bound of ε from outputs alone, wrong with probability at most 1e-6; it must not exceed the
declared ε, and it shows how near the sampler comes to that ε. Reports are made with the system's randomness.
"""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path

from hdr4me.atomic import write_text
from hdr4me.auditing.auditor import ALARM, attack
from hdr4me.channels import Channel
from hdr4me.channels.proof import log_upper
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey


def channels() -> dict[str, Channel]:
    """A channel of each kind and family, sizes as they are used."""

    def categories(name: str, epsilon: float, v: int) -> Channel:
        return Survey(Schema([Categorical("x", range(v))]), epsilon=epsilon, categorical=name).channels[0]

    optional = Schema([Numeric("x", 0, 1, optional=True)])
    both = Schema([Numeric("x", 0, 1), Numeric("y", 0, 1)])
    chosen = Schema([Selection("x", range(20), at_most=3)])
    return {
        "randomised response, 10": categories("grr", 1.0, 10),
        "randomised response, 1,000": categories("grr", 8.0, 1000),
        "subset selection, 24": categories("subset", 2.0, 24),
        "subset selection, 100": categories("subset", 1.0, 100),
        "projective over 4 numbers, 4,043": categories("projective", 1.0, 4043),
        "projective over 8 numbers, 10,000": categories("projective", 2.0, 10_000),
        "projective over a prime, 10,000": categories("projective", 4.0, 10_000),
        "unary encoding, 10": categories("oue", 1.0, 10),
        "PrivSet, 3 of 20": Survey(chosen, epsilon=2.0).channels[0],
        "optional number": Survey(optional, epsilon=1.0).channels[0],
        "pair of numbers": Survey(both, epsilon=1.0, pairs=[("x", "y")]).channels[0],
        "number, Duchi": Survey(Schema([Numeric("x", 0, 1)]), epsilon=1.0, mechanism="duchi").channels[0],
        "number, Piecewise": Survey(
            Schema([Numeric("x", 0, 1)]), epsilon=2.0, mechanism="piecewise"
        ).channels[0],
    }


def main(path: Path, draws: int) -> None:
    """Attack and write; ends with an error if a bound is above its ε."""
    lines = [
        "# The attack on every channel",
        "",
        f"{draws:,} reports of each of the two worst inputs; a bound is wrong with probability {ALARM:g}; "
        f"{platform.machine()}, Python {platform.python_version()}.",
        "",
        "| channel | declared ε | proven ε | attacked ε (lower bound) | below | processor seconds |",
        "|---|---|---|---|---|---|",
    ]
    failed = False
    for name, channel in channels().items():
        start = time.process_time()
        bound = attack(channel, draws)
        below = bound <= channel.epsilon
        failed |= not below
        line = (
            f"| {name} | {channel.epsilon:g} | {log_upper(channel.loss):.9f} | {bound:.5f} | "
            f"{'yes' if below else 'NO'} | {time.process_time() - start:.0f} |"
        )
        lines.append(line)
        print(line, flush=True)
    write_text(path, "\n".join([*lines, ""]))
    if failed:
        sys.exit("an attack's bound is above the declared ε")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000)
