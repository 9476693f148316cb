"""The privacy of a survey in the shuffle model and over time, and its robustness against poisoned reports.

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
