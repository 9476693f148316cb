"""Re-calibration: HDR4ME as in the paper, and shrinkage estimators with a measured error."""

from __future__ import annotations

from hdr4me.recalibration.core import METHODS, Recalibration, recalibrate
from hdr4me.recalibration.frequencies import FREQUENCY_OPTIONS, Distribution, recalibrate_frequencies
from hdr4me.recalibration.hdr4me import Guarantee, enhance

__all__ = [
    "FREQUENCY_OPTIONS",
    "METHODS",
    "Distribution",
    "Guarantee",
    "Recalibration",
    "enhance",
    "recalibrate",
    "recalibrate_frequencies",
]
