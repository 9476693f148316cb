"""Numbers and probabilities of a plan as people read them."""

from __future__ import annotations

import math

__all__ = ["number", "percent"]


def number(x: float) -> str:
    """Two significant digits and no exponent.

    >>> number(0.2134), number(12.7), number(0.00031)
    ('0.21', '13', '0.00031')
    """
    if not math.isfinite(x):
        return "∞"
    text = f"{x:.2g}"
    return (
        f"{float(text):.0f}"
        if "e+" in text
        else (f"{float(text):.10f}".rstrip("0") if "e-" in text else text)
    )


def percent(p: float) -> str:
    """A probability as a percentage that never rounds to certainty.

    >>> percent(0.95), percent(0.99999), percent(0.0004)
    ('95 %', 'over 99.9 %', 'under 0.1 %')
    """
    if p > 0.999 and p < 1:
        return "over 99.9 %"
    if 0 < p < 0.001:
        return "under 0.1 %"
    return f"{100 * p:.3g} %"
