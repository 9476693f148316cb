"""The largest variance of each exact table over Piecewise's, and what is proven about `optimal`.

python benchmarks/optimal_tables.py            # prints the tables of docs/decisions/optimal-tables.md
"""

from __future__ import annotations

import time

from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.optimal import design
from hdr4me.mechanisms.table import TableMechanism, window_table

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)


def piecewise(epsilon: float) -> float:
    return float(mechanism("piecewise", epsilon=epsilon).variance(1.0))


def best_window(epsilon: float) -> TableMechanism:
    """The best of the closed-form windows: a scan over cells and heavy cells."""
    tables = (
        window_table("window", epsilon, n, w)
        for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
        for w in sorted(
            {max(1, round(n * share)) for share in (0.02, 0.04, 0.08, 0.12, 0.17, 0.25, 0.33, 0.42, 0.5)}
        )
        if w < n
    )
    return min(tables, key=TableMechanism.max_variance)


def main() -> None:
    designs = {}
    print("| ε | levels × cells | seconds | bound | achieved | gap | mean: bound | achieved | gap |")
    print("|---|---|---|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        start = time.perf_counter()
        table = designs[epsilon] = design(epsilon, "max")
        seconds = time.perf_counter() - start
        worst, mean = table.certificate, design(epsilon, "mean").certificate
        assert worst is not None
        assert mean is not None
        print(
            f"| {epsilon:g} | {table.n_levels} × {table.n_cells} | {seconds:.1f} "
            f"| {worst.bound:.5g} | {worst.achieved:.5g} | {worst.gap:.2%} "
            f"| {mean.bound:.5g} | {mean.achieved:.5g} | {mean.gap:.2%} |"
        )
    print()
    print("| ε | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
    print("|---" * (len(EPSILONS) + 1) + "|")
    for name in ("duchi", "hybrid", "laplace", "square_wave"):
        row = [mechanism(name, epsilon=e).exact().max_variance() / piecewise(e) for e in EPSILONS]
        print(f"| {name} | " + " | ".join(f"{x:.3f}" for x in row) + " |")
    row = [best_window(e).max_variance() / piecewise(e) for e in EPSILONS]
    print("| best window | " + " | ".join(f"{x:.3f}" for x in row) + " |")
    row = [designs[e].max_variance() / piecewise(e) for e in EPSILONS]
    print("| **optimal** | " + " | ".join(f"**{x:.3f}**" for x in row) + " |")
    row = [designs[e].certificate.bound / piecewise(e) for e in EPSILONS]  # type: ignore[union-attr]
    print("| bound for any mechanism | " + " | ".join(f"{x:.3f}" for x in row) + " |")


if __name__ == "__main__":
    main()
