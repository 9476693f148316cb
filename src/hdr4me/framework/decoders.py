"""Numbers for the cells of a table whose mean is what is wanted at every input, of least variance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["decoder_of", "inverse_of"]

Floats = NDArray[np.float64]


def inverse_of(law: Floats) -> Floats:
    """Applied to numbers given for every input, a number for each cell with these means, of least variance.

    The weight of a cell is its mean probability. Where no numbers for the cells have these means, the nearest ones.

    Parameters
    ----------
    law
        P(cell | input), shape (inputs, cells).
    """
    mass = law.mean(axis=0)
    scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
    return np.asarray(scale[:, None] * np.linalg.pinv(law * scale, rcond=1e-12))


def decoder_of(law: Floats, target: Floats, inverse: Floats | None = None) -> Floats | None:
    """A number for each cell whose mean is `target` at every input; None if there is none.

    Parameters
    ----------
    law
        P(cell | input), shape (inputs, cells).
    target
        The wanted mean at every input.
    inverse
        What `inverse_of` gives for this law, if it is there already.

    Examples
    --------
    >>> coin = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> decoder_of(coin, np.array([-1.0, 1.0])).round(6).tolist()
    [-2.0, 2.0]
    """
    found = (inverse_of(law) if inverse is None else inverse) @ target
    gap = float(np.abs(law @ found - target).max())
    return np.asarray(found) if gap < 1e-7 * (1.0 + float(np.abs(target).max())) else None
