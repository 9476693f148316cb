"""The framework: how far an estimate will be from the truth, before anybody sends anything (section IV)."""

from __future__ import annotations

from hdr4me.framework.deviation import Deviation
from hdr4me.framework.predict import deviation

__all__ = ["Deviation", "deviation"]
