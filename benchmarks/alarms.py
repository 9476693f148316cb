"""False alarms among difficult populations, and 1 % of poisoned reports at the worst cell of every built-in table.

python benchmarks/alarms.py benchmarks/results/alarms.md
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.auditing import watch
from hdr4me.channels import Table
from hdr4me.channels.proof import ONE
from hdr4me.mechanisms.registry import built_in
from hdr4me.tally import Tally

REPORTS, HONEST, LEVEL = 100_000, 40, 0.05
Floats = NDArray[np.float64]


def populations(n_levels: int) -> dict[str, Floats]:
    """Shares of the levels: extreme, split, narrow, even, skewed."""
    level = np.linspace(0, 1, n_levels)
    made = {
        "all at an end": (level == 1).astype(float),
        "half at each end": ((level == 0) | (level == 1)).astype(float),
        "narrow": np.exp(-(((level - 0.6) / 0.02) ** 2)) + 1e-12,
        "even": np.ones(n_levels),
        "skewed": level * (1 - level) ** 4 + 1e-9,
    }
    return {name: shares / shares.sum() for name, shares in made.items()}


def main(path: Path) -> None:
    """One line for each table."""
    rng = np.random.default_rng(20261116)
    lines = [
        "# Alarms",
        "",
        f"{REPORTS:,} reports; false alarms among {HONEST} tallies without poisoned reports for each of five "
        f"populations, at a nominal {100 * LEVEL:g} % over all audits; poisoned: 1 % at the cell of the "
        f"largest decoded value; p-value at most "
        "over the populations (level 0.1 %).",
        "",
        "| table | ε | cells | false alarms | poisoning detected in | largest p-value |",
        "|---|---|---|---|---|---|",
    ]
    for name in built_in():
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            survey = hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]), epsilon=epsilon, mechanism=name)
            channel = survey.channels[0]
            assert isinstance(channel, Table)
            rows = np.array(channel.weights, np.float64) / ONE
            worst = int(np.argmax(channel.decoders["value"]))
            false, found, largest = 0, 0, 0.0
            laws = {key: shares @ rows for key, shares in populations(len(rows)).items()}
            for law in laws.values():
                for _ in range(HONEST):
                    false += bool(
                        watch(
                            _tally(survey, rng.multinomial(REPORTS, law / law.sum())), false_alarm_rate=LEVEL
                        ).alarms
                    )
                counts = rng.multinomial(REPORTS - REPORTS // 100, law / law.sum())
                counts[worst] += REPORTS // 100
                p = min(
                    [a.p_value for a in watch(_tally(survey, counts), false_alarm_rate=0.5).alarms],
                    default=1.0,
                )
                found, largest = found + (p <= 0.001), max(largest, p)
            total = HONEST * len(laws)
            lines.append(
                f"| {name} | {epsilon:g} | {rows.shape[1]} | {false} of {total} | {found} of {len(laws)} "
                f"| {largest:.1g} |"
            )
            print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tally(survey: hd.Survey, counts: NDArray[np.int64]) -> Tally:
    tally = Tally(survey)
    tally.counts[:] = counts
    tally.n_reports = int(counts.sum())
    return tally


if __name__ == "__main__":
    main(Path(sys.argv[1]))
