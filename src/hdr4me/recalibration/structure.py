"""`order` and `groups`, checked, and the estimate that averages them with the exchangeable one by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.edges import edged
from hdr4me.recalibration.posterior import Belief, Posterior
from hdr4me.recalibration.smooth import Block, curve_block, group_block

__all__ = ["Structure", "blocks", "check_structure", "structured", "structured_mean"]

# A curve needs a few points, and a group effect a few groups, before either can be told from none.
_FEWEST = 4
# One to one: evidence decides.
_LOG_ODDS = 0.0


class Structure(NamedTuple):
    """For each dimension its position on a curve (NaN: none) and the number of its group (−1: none)."""

    position: Floats
    group: NDArray[np.int64]

    def only(self, which: NDArray[Any]) -> Structure:
        """The same for some of the dimensions."""
        return Structure(self.position[which], self.group[which])


def check_structure(order: ArrayLike | None, groups: Sequence[Any] | None, n_dims: int) -> Structure | None:
    """Positions and group numbers of every dimension, or None if neither is declared.

    >>> check_structure([2, 0, 1], ["a", None, "a"], 3)
    Structure(position=array([2., 0., 1.]), group=array([ 0, -1,  0]))
    """
    if order is None and groups is None:
        return None
    position = np.full(n_dims, np.nan)
    if order is not None:
        try:
            given = list(np.asarray(order, dtype=object))
            position = np.array([np.nan if p is None else float(p) for p in given], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput.of(
                "order", order, "one position (a number) for each mean, None where there is none"
            ) from error
        _check_length("order", position.size, n_dims)
        wrong = [j for j, p in enumerate(given) if p is not None and not np.isfinite(position[j])]
        if wrong:
            raise InvalidInput.of(
                f"order[{wrong[0]}]",
                float(position[wrong[0]]),
                "a position is a finite number, None where there is none",
            )
    group = np.full(n_dims, -1, dtype=np.int64)
    if groups is not None:
        if isinstance(groups, str) or not hasattr(groups, "__len__"):
            raise InvalidInput.of("groups", groups, "one label for each mean, None where there is none")
        labels = list(groups)
        _check_length("groups", len(labels), n_dims)
        try:
            number = {label: i for i, label in enumerate(dict.fromkeys(x for x in labels if x is not None))}
        except TypeError as error:  # a list, say, which is no label
            raise InvalidInput.of(
                "groups", groups, "one label for each mean, None where there is none"
            ) from error
        group = np.array([-1 if x is None else number[x] for x in labels], dtype=np.int64)
    return Structure(position, group)


def _check_length(name: str, found: int, n_dims: int) -> None:
    if found != n_dims:
        raise InvalidInput(f"{name} has {found} elements but means has {n_dims}: they must match")


def blocks(structure: Structure, s: Floats, low: float, high: float) -> list[Block]:
    """One curve for each group that has positions (one in all without groups); one block for all groups without.

    Blocks that are too small to tell anything are left to the exchangeable model.
    """
    out: list[Block] = []
    on_curve = np.isfinite(structure.position)
    for number in np.unique(structure.group[on_curve]).tolist():
        index = np.flatnonzero(on_curve & (structure.group == number))
        if np.unique(structure.position[index]).size >= _FEWEST:
            out.append(curve_block(index, structure.position[index], s[index], low, high))
    index = np.flatnonzero(~on_curve & (structure.group >= 0))
    _, group = np.unique(structure.group[index], return_inverse=True)
    if index.size and _FEWEST <= int(group.max()) + 1 < index.size:
        out.append(group_block(index, group.astype(np.int64), s[index], low, high))
    return out


def structured(parts: Sequence[Block], posterior: Posterior, x: Floats) -> list[Belief]:
    """What each block says of its dimensions, and how probable it is.

    A block's structure is weighed against the exchangeable account of the same dimensions, at even prior odds. The data
    confirm it as far as it is also more probable than means that differ without any structure.
    """
    whole = any(part.index.size == x.size for part in parts)
    alone = np.empty(0) if whole or not parts else posterior.log_marginal()
    out = []
    for part in parts:
        found = part.fit(x[part.index])
        rival = posterior.log_evidence if whole else float(alone[part.index].sum())
        curve = edged(found.mean, found.variance, posterior.cells.low, posterior.cells.high)
        plain = part.plain_log_evidence(x[part.index])
        probability, confirmed = (
            float(expit(found.log_evidence - other + _LOG_ODDS))
            for other in (rival, np.logaddexp(rival, plain))
        )
        out.append(Belief(part.index, curve, probability, confirmed))
    return out


def structured_mean(beliefs: Sequence[Belief], posterior: Posterior) -> Floats:
    """Posterior means: structures averaged with the exchangeable account."""
    mean = posterior.mean.copy()
    for belief in beliefs:
        mean[belief.where] += belief.probability * (belief.curve.mean - mean[belief.where])
    return mean
