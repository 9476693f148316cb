"""The paper's errata: what it prints, what is right, why, and numbers that show it, computed here."""

from __future__ import annotations

from hdr4me.paper.errata.erratum import Erratum
from hdr4me.paper.errata.framework import FRAMEWORK_ERRATA
from hdr4me.paper.errata.recalibration import RECALIBRATION_ERRATA, harm_ratio

__all__ = ["Erratum", "errata", "harm_ratio"]


def errata() -> list[Erratum]:
    """Every erratum, then the commentary, with their numbers computed.

    >>> errata()[0].title
    'Variance of Piecewise'
    """
    made = [make() for make in (*FRAMEWORK_ERRATA, *RECALIBRATION_ERRATA)]
    return sorted(made, key=lambda item: item.commentary)
