"""The maximum-entropy joint distribution that agrees with noisy tables of some of its attributes.

The distribution is P ∝ exp(Σ θ_c) with one potential θ_c for each clique of a junction tree. A full domain of moderate
size is one clique. Otherwise attributes whose tables depart most from independence share a clique, as long as no clique
becomes too large; a pair of attributes that shares no clique is related through the others only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Names = tuple[int, ...]  # attributes in increasing order

ONE_CLIQUE = 300_000  # cells of a domain that is fitted as a whole
LARGEST_CLIQUE = 100_000  # cells of a clique of a larger domain
# Standard deviations by which independence must fit worse than noise alone before the fit leaves it; from
# `benchmarks/joint_tables.py`, and tested by tests/contingency/test_tables.py.
_CHANCE = 3.0
_ALONE = 4.0  # the same for a single table, of which there are many
_STEPS = 150


@dataclass(frozen=True)
class Measured:
    """A table of some attributes: estimated shares, and the mean variance of a cell."""

    names: Names
    shares: Floats
    variance: float

    @property
    def free(self) -> int:
        """The number of degrees of freedom of the table, given the margins of its attributes."""
        shape: tuple[int, ...] = self.shares.shape
        return prod(shape) - 1 - sum(k - 1 for k in shape)

    def agreeing(self, margins: Sequence[Floats]) -> Measured:
        """The table with these margins: the difference is spread evenly over the cells of each category."""
        shares = self.shares
        for i, j in enumerate(self.names):
            others = tuple(k for k in range(shares.ndim) if k != i)
            gap = (margins[j] - shares.sum(axis=others)) * shares.shape[i] / shares.size
            shares = shares + gap.reshape([-1 if k == i else 1 for k in range(shares.ndim)])
        return Measured(self.names, shares, self.variance)


class Joint:
    """A distribution over attributes, as the marginal distributions of the cliques of a junction tree."""

    def __init__(self, shape: Sequence[int], cliques: Sequence[Names]) -> None:
        self.shape, self.cliques = tuple(shape), list(cliques)
        self._tree = _spanning(self.cliques)
        self.beliefs: list[Floats] = []

    def cells(self, names: Iterable[int]) -> tuple[int, ...]:
        """The shape of a table."""
        return tuple(self.shape[j] for j in names)

    def set(self, potentials: Sequence[Floats]) -> None:
        """The marginal distributions of the cliques, by passing messages up and down the tree."""
        logs = [potential - potential.max() for potential in potentials]
        upward: dict[int, Floats] = {}
        for child, parent in reversed(self._tree):
            shared = self._shared(child, parent)
            message = _log_sum(logs[child], self.cliques[child], shared)
            upward[child] = message
            logs[parent] = logs[parent] + _spread(message, shared, self.cliques[parent], self.shape)
        root = self._tree[0][1] if self._tree else 0
        for clique in {root, *range(len(self.cliques))} - {child for child, _ in self._tree}:
            logs[clique] = logs[clique] - logsumexp(logs[clique])
        for child, parent in self._tree:
            shared = self._shared(child, parent)
            total = _log_sum(logs[parent], self.cliques[parent], shared)
            logs[child] = logs[child] + _spread(
                total - upward[child], shared, self.cliques[child], self.shape
            )
        self.beliefs = [np.exp(log) for log in logs]

    def _shared(self, child: int, parent: int) -> Names:
        return tuple(j for j in self.cliques[child] if j in self.cliques[parent])

    def clique_of(self, names: Iterable[int]) -> int | None:
        """The smallest clique that holds the attributes."""
        required = set(names)
        found = [c for c, clique in enumerate(self.cliques) if required <= set(clique)]
        return min(found, key=lambda c: prod(self.cells(self.cliques[c])), default=None)

    def tables(self, wanted: Sequence[Names]) -> dict[Names, Floats]:
        """The tables of attributes that share a clique; sums over leading attributes are shared."""
        by_names: dict[Names, Floats] = {}
        for c, clique in enumerate(self.cliques):
            own, rest, left = self.beliefs[c], clique, [x for x in wanted if self.clique_of(x) == c]
            while left:
                for names in [x for x in left if x[0] == rest[0]]:
                    by_names[names] = own.sum(axis=tuple(i for i, j in enumerate(rest) if j not in names))
                left = [x for x in left if x[0] != rest[0]]
                own, rest = own.sum(axis=0), rest[1:]
        return by_names

    def table(self, names: Names) -> Floats:
        """The table of any attributes; those that share no clique are joined along the tree."""
        if self.clique_of(names) is not None:
            return self.tables([names])[names]
        needed = self._conditionals()
        while gone := {j for own, _ in needed for j in own} - set(names):
            reach = {j: {k for own, _ in needed if j in own for k in own} for j in gone}
            j = min(gone, key=lambda j: prod(self.cells(reach[j])))  # the cheapest one first
            own, values = _multiplied([factor for factor in needed if j in factor[0]], self.shape)
            needed = [factor for factor in needed if j not in factor[0]]
            needed.append((tuple(k for k in own if k != j), values.sum(axis=own.index(j))))
        own, values = _multiplied(needed, self.shape)
        return values if own == names else values.transpose([own.index(j) for j in names])

    def _conditionals(self) -> list[tuple[Names, Floats]]:
        """Factors whose product is the distribution: each clique, conditional on what it shares with its parent."""
        parents = dict(self._tree)
        factors = []
        for c, clique in enumerate(self.cliques):
            belief = self.beliefs[c]
            if c in parents:
                shared = self._shared(c, parents[c])
                whole = belief.sum(
                    axis=tuple(i for i, j in enumerate(clique) if j not in shared), keepdims=True
                )
                belief = np.divide(belief, whole, out=np.zeros_like(belief), where=whole > 0)
            factors.append((clique, belief))
        return factors

    def sample(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Rows [n, attributes] drawn from the distribution, clique after clique."""
        rows = np.zeros((n, len(self.shape)), np.int64)
        parents, known = dict(self._tree), set[int]()
        order = [c for c in range(len(self.cliques)) if c not in parents] + [child for child, _ in self._tree]
        for c in order:
            clique, belief = self.cliques[c], self.beliefs[c]
            conditions = [j for j in clique if j in known]
            new = [j for j in clique if j not in known]
            if not new:
                continue
            axes = [clique.index(j) for j in conditions + new]
            flat = belief.transpose(axes).reshape(prod(self.cells(conditions)), -1)
            group = (
                np.ravel_multi_index([rows[:, j] for j in conditions], self.cells(conditions))
                if conditions
                else np.zeros(n, int)
            )
            drawn = np.zeros(n, np.int64)
            for g in np.unique(group):
                who = np.flatnonzero(group == g)
                chances = (
                    flat[g] / flat[g].sum()
                    if flat[g].sum() > 0
                    else np.full(flat.shape[1], 1 / flat.shape[1])
                )
                drawn[who] = rng.choice(chances.size, who.size, p=chances)
            for j, values in zip(new, np.unravel_index(drawn, self.cells(new)), strict=True):
                rows[:, j] = values
            known |= set(new)
        return rows


def fit(shape: Sequence[int], measured: Sequence[Measured], margins: Sequence[Floats]) -> Joint:
    """The joint distribution of attributes that minimizes Σ (table − measured)²/variance, from independence on.

    Entropic mirror descent: the step is halved until the loss falls, and grows after each success. It stops when the
    tables together agree with what was measured as well as the noise allows (the discrepancy principle): further steps
    would fit the noise. Where independence is a standard deviation or two too far from the measured tables, that
    may be chance: with a score of z standard deviations, the fit stops at _CHANCE²/max(z, _CHANCE) of them. Then only
    the tables that alone do not agree (`_bound`) are fitted further, because a small table with a strong relation has
    little weight among many cells.
    """
    measured = [table.agreeing(margins) for table in measured if table.free]
    model = Joint(shape, cliques_of(shape, measured, margins))
    used = [table for table in measured if model.clique_of(table.names) is not None]
    wanted = [table.names for table in used]
    potentials = [np.zeros(model.cells(clique)) for clique in model.cliques]
    for j, margin in enumerate(margins):
        c = next(c for c, clique in enumerate(model.cliques) if j in clique)
        potentials[c] += _spread(np.log(np.maximum(margin, 1e-9)), (j,), model.cliques[c], model.shape)
    model.set(potentials)
    enough = float(sum(table.free for table in used))
    # Tables that were chosen for their distance from independence lie too far from it.
    if len(used) < len(measured):
        chance = _chance(measured)
        excess = [chance**2 / max(_dependence(table, margins), chance) for table in used]
        enough += sum(x * np.sqrt(2 * table.free) for x, table in zip(excess, used, strict=True))

    def loss(tables: Mapping[Names, Floats], some: Sequence[Measured]) -> float:
        return sum(float(np.sum((tables[t.names] - t.shares) ** 2)) / t.variance for t in some)

    tables = model.tables(wanted)
    spread = float(np.sqrt(2 * max(enough, 1.0)))
    score = (loss(tables, used) - enough) / spread
    enough += _CHANCE**2 / max(score, _CHANCE) * spread
    bounds = {table.names: _bound(table, margins) for table in used}
    step = 0.1 * min((t.variance for t in used), default=1.0)
    for _ in range(_STEPS):
        active = used
        if loss(tables, used) <= enough:
            active = [t for t in used if loss(tables, [t]) > bounds[t.names]]
        if not active:
            break
        slopes = [np.zeros(model.cells(clique)) for clique in model.cliques]
        for c, clique in enumerate(model.cliques):
            _add_slopes(slopes[c], clique, [t for t in active if model.clique_of(t.names) == c], tables)
        before = loss(tables, active)
        while True:
            moved = [potential - step * slope for potential, slope in zip(potentials, slopes, strict=True)]
            model.set(moved)
            tables = model.tables(wanted)
            now = loss(tables, active)
            if now <= before or step < 1e-12 * max(1.0, before):
                break
            step /= 2
        potentials, step = moved, 1.3 * step
        if before - now < 1e-4 * before:
            break
    return model


def _add_slopes(out: Floats, clique: Names, used: Sequence[Measured], tables: Mapping[Names, Floats]) -> None:
    """The gradient of the loss by a clique's potential: the tables' differences, spread over the clique."""
    grown: Floats = np.zeros(())
    for i in range(len(clique) - 1, -1, -1):
        rest = clique[i:]
        grown = grown[None] if grown.ndim else grown
        for t in used:
            if t.names[0] == clique[i]:
                slope = 2 * (tables[t.names] - t.shares) / t.variance
                shape = [slope.shape[t.names.index(j)] if j in t.names else 1 for j in rest]
                grown = grown + slope.reshape(shape)
    out += grown.reshape(grown.shape + (1,) * (out.ndim - grown.ndim)) if grown.ndim else grown


def cliques_of(shape: Sequence[int], measured: Sequence[Measured], margins: Sequence[Floats]) -> list[Names]:
    """All attributes as one clique if the domain is small; otherwise cliques that contain the most dependent tables."""
    everything = tuple(range(len(shape)))
    if prod(shape) <= ONE_CLIQUE:
        return [everything]
    edges: set[tuple[int, int]] = set()
    best: list[Names] = [(j,) for j in everything]
    scores = {table.names: _dependence(table, margins) for table in measured}
    for table in sorted(measured, key=lambda t: -scores[t.names]):
        if scores[table.names] <= _chance(measured):
            break
        tried = edges | set(combinations(table.names, 2))
        cliques = _triangulated(len(shape), tried)
        if max(prod(shape[j] for j in clique) for clique in cliques) <= LARGEST_CLIQUE:
            edges, best = tried, cliques
    return best


def _dependence(table: Measured, margins: Sequence[Floats]) -> float:
    """How far a table is from independence, in standard deviations of what noise alone would give."""
    expected: Floats = np.ones(())
    for j in table.names:
        expected = np.multiply.outer(expected, margins[j])
    excess = float(np.sum((table.shares - expected) ** 2)) / table.variance - table.free
    return excess / float(np.sqrt(2 * table.free))


def _bound(table: Measured, margins: Sequence[Floats]) -> float:
    """The loss of one table up to which it agrees with what was measured.

    It is that of noise alone and _ALONE²/max(z, _ALONE) standard deviations, with the score z of independence. A close
    fit follows a part of the noise: if independence has significantly more than s times the loss of noise alone, the
    bound has 1/√s of it.
    """
    score, spread = _dependence(table, margins), float(np.sqrt(2 * table.free))
    signal = 1.0 + max(0.0, score - 2 * _CHANCE) * spread / table.free
    return table.free / math.sqrt(signal) + _ALONE**2 / max(score, _ALONE) * spread


def _chance(measured: Sequence[Measured]) -> float:
    """The approximate maximum of this number of scores if all attributes are independent."""
    return float(np.sqrt(2 * np.log(max(len(measured), 2))))


def _triangulated(n: int, edges: Iterable[tuple[int, int]]) -> list[Names]:
    """The maximal cliques of a triangulation that repeatedly eliminates the attribute which adds the fewest edges."""
    neighbors: dict[int, set[int]] = {j: set() for j in range(n)}
    for a, b in edges:
        neighbors[a].add(b)
        neighbors[b].add(a)
    cliques: list[set[int]] = []
    while neighbors:
        missing = {
            j: sum(b not in neighbors[a] for a, b in combinations(own, 2)) for j, own in neighbors.items()
        }
        j = min(missing, key=lambda j: (missing[j], len(neighbors[j]), j))
        own = neighbors.pop(j)
        for a in own:
            neighbors[a] |= own - {a}
            neighbors[a].discard(j)
        if not any({j, *own} <= clique for clique in cliques):
            cliques.append({j, *own})
    return [tuple(sorted(clique)) for clique in cliques]


def _spanning(cliques: Sequence[Names]) -> list[tuple[int, int]]:
    """A junction forest: (child, parent), parents first, by the spanning tree of the largest overlaps."""
    linked, tree = set[int](), list[tuple[int, int]]()
    for start in range(len(cliques)):
        if start in linked:
            continue
        linked.add(start)
        while True:
            overlaps = [
                (len(set(cliques[a]) & set(cliques[b])), -a, -b)
                for a in range(len(cliques))
                if a not in linked
                for b in linked
            ]
            size, child, parent = max(overlaps, default=(0, 0, 0))
            if not size:
                break
            tree.append((-child, -parent))
            linked.add(-child)
    return tree


def _spread(values: Floats, own: Names, clique: Names, shape: Sequence[int]) -> Floats:
    """A table of some attributes in the shape of a clique, by broadcasting."""
    return values.reshape([shape[j] if j in own else 1 for j in clique])


def _log_sum(log: Floats, clique: Names, kept: Names) -> Floats:
    """log Σ exp over the attributes that are not kept."""
    return np.asarray(logsumexp(log, axis=tuple(i for i, j in enumerate(clique) if j not in kept)))


def _multiplied(factors: Sequence[tuple[Names, Floats]], shape: Sequence[int]) -> tuple[Names, Floats]:
    """The product of factors over all of their attributes."""
    names = tuple(sorted({j for own, _ in factors for j in own}))
    found = np.ones(tuple(shape[j] for j in names))
    for own, values in factors:
        found = found * values.reshape([shape[j] if j in own else 1 for j in names])
    return names, found
