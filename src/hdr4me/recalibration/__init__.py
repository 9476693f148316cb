"""Re-calibration: HDR4ME as the paper has it, and estimators that do no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.recalibration.core import recalibrate
from hdr4me.recalibration.frequencies import FREQUENCY_METHODS, Distribution, recalibrate_frequencies
from hdr4me.recalibration.methods import METHODS
from hdr4me.recalibration.result import Guarantee, Recalibration

if TYPE_CHECKING:
    from hdr4me.recalibration.estimates import RecalibratedEstimate as RecalibratedEstimate
    from hdr4me.recalibration.estimates import recalibrate_estimate as recalibrate_estimate

__all__ = [
    "FREQUENCY_METHODS",
    "METHODS",
    "Distribution",
    "Guarantee",
    "RecalibratedEstimate",
    "Recalibration",
    "recalibrate",
    "recalibrate_estimate",
    "recalibrate_frequencies",
]


def __getattr__(name: str) -> Any:
    # Plain arrays need nothing of surveys and tallies, so those are loaded only for an Estimate.
    if name in ("RecalibratedEstimate", "recalibrate_estimate"):
        from hdr4me.recalibration import estimates

        return getattr(estimates, name)
    raise AttributeError(f"module 'hdr4me.recalibration' has no attribute {name!r}")
