"""Re-calibration: HDR4ME as the paper has it, and estimators that do no harm."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hdr4me.recalibrate.core import METHODS, recalibrate
from hdr4me.recalibrate.result import Guarantee, Recalibration
from hdr4me.recalibrate.simplex import FREQUENCY_METHODS, Distribution, recalibrate_frequencies

if TYPE_CHECKING:
    from hdr4me.recalibrate.estimates import RecalibratedEstimate as RecalibratedEstimate
    from hdr4me.recalibrate.estimates import recalibrate_estimate as recalibrate_estimate

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
        from hdr4me.recalibrate import estimates

        return getattr(estimates, name)
    raise AttributeError(f"module 'hdr4me.recalibrate' has no attribute {name!r}")


class _Room(ModuleType):
    """Importing this room binds `hdr4me.recalibrate` to it, over the function of that name: so it can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Recalibration:
        return recalibrate(*arguments, **options)


sys.modules[__name__].__class__ = _Room
