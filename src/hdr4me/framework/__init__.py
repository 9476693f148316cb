"""The framework: how far an estimate will be from the truth, before anybody sends anything (section IV)."""

from __future__ import annotations

from hdr4me.framework.deviation import Deviation, deviation
from hdr4me.framework.prediction import Prediction

__all__ = ["Deviation", "Prediction", "deviation"]
