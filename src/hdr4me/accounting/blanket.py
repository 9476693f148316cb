"""The privacy blanket of a report with several answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.blanket import Blanket

Floats = NDArray[np.float64]

_MOST_ATOMS = 200_000


def product_blanket(blankets: Sequence[Blanket], counts: Sequence[int], n_sampled: int) -> Blanket | None:
    """A report with m answers, its questions drawn without replacement from `counts[i]` with channel i.

    Each channel is first replaced by one with two ratios, 1 and r, by moving every pair (ρ_x, ρ_x') to the corners of
    the square [1, r]², means kept. The product then has few atoms. None if there are too many to list.
    """
    total = sum(counts)
    laws = [_corners(blanket) for blanket in blankets]
    tables = [_powers(mass, min(count, n_sampled)) for (mass, _), count in zip(laws, counts, strict=True)]
    # atoms[s] are the atoms of a report with s answers so far: weight, product of the first input's ratios, second's.
    atoms: list[list[tuple[Floats, Floats, Floats]]] = [[] for _ in range(n_sampled + 1)]
    atoms[0].append((np.ones(1), np.ones(1), np.ones(1)))
    for (_, r), table, count in zip(laws, tables, counts, strict=True):
        grown: list[list[tuple[Floats, Floats, Floats]]] = [[] for _ in range(n_sampled + 1)]
        for done, parts in enumerate(atoms):
            for weight, first, second in parts:
                for k in range(min(count, n_sampled - done) + 1):
                    w, power = table[k] * float(comb(count, k)), r ** np.arange(k + 1, dtype=np.float64)
                    grown[done + k].append(
                        (
                            np.multiply.outer(weight, w).ravel(),
                            np.multiply.outer(first, np.broadcast_to(power[:, None], w.shape)).ravel(),
                            np.multiply.outer(second, np.broadcast_to(power, w.shape)).ravel(),
                        )
                    )
        atoms = [[_joined(parts)] if parts else [] for parts in grown]
        if sum(len(part[0]) for parts in atoms for part in parts) > _MOST_ATOMS:
            return None
    weight, first, second = atoms[n_sampled][0]
    kept = weight > 0
    mass = weight[kept] / float(comb(total, n_sampled))
    return Blanket(mass, np.stack([first[kept], second[kept]]), np.array([[0, 1]], np.int64))


def _joined(parts: Sequence[tuple[Floats, Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
    weight, first, second = zip(*parts, strict=True)
    return np.concatenate(weight), np.concatenate(first), np.concatenate(second)


def _corners(blanket: Blanket) -> tuple[Floats, float]:
    """The masses at (r, r), (r, 1), (1, r), (1, 1) of the pair that shares least, and r."""
    r = blanket.largest_ratio
    if r == 1.0:
        return np.array([0.0, 0.0, 0.0, blanket.gamma]), r
    u = (blanket.ratios - 1.0) / (r - 1.0)
    high = float((u @ blanket.mass).max())
    shared = min(float((np.minimum(u[x], u[y]) * blanket.mass).sum()) for x, y in blanket.pairs.tolist())
    return np.array([shared, high - shared, high - shared, blanket.gamma - 2 * high + shared]), r


def _powers(mass: Floats, most: int) -> list[Floats]:
    """For k = 0..most, the mass of (i heavy answers of the first input, j of the second) in k answers."""
    both, first, second, neither = mass.tolist()
    tables = [np.ones((1, 1))]
    for k in range(most):
        last, grown = tables[-1], np.zeros((k + 2, k + 2))
        grown[1:, 1:] += both * last
        grown[1:, :-1] += first * last
        grown[:-1, 1:] += second * last
        grown[:-1, :-1] += max(neither, 0.0) * last
        tables.append(grown)
    return tables
