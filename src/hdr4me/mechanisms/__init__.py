"""Mechanisms: how one value is perturbed.

`mechanism(name, epsilon=…)` makes a mechanism, `register_mechanism` adds a name, and `exact` makes a deployable table
from any law. The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
