"""Statistics: estimates from the counts of a tally, with confidence intervals.

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
