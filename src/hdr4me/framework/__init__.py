"""The framework: the distribution of the error of an estimate before any data are collected (section IV)."""

from __future__ import annotations

from hdr4me.framework.deviation import Deviation, deviation
from hdr4me.framework.prediction import Prediction

__all__ = ["Deviation", "Prediction", "deviation"]
