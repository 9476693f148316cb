"""Re-calibration: HDR4ME as the paper has it, and estimators that do no harm."""

from __future__ import annotations

from hdr4me.recalibration.core import recalibrate
from hdr4me.recalibration.frequencies import FREQUENCY_METHODS, Distribution, recalibrate_frequencies
from hdr4me.recalibration.methods import METHODS
from hdr4me.recalibration.result import Guarantee, Recalibration

__all__ = [
    "FREQUENCY_METHODS",
    "METHODS",
    "Distribution",
    "Guarantee",
    "Recalibration",
    "recalibrate",
    "recalibrate_frequencies",
]
