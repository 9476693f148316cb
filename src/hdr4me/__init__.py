"""Local differential privacy for high-dimensional data.

The public names are listed in `__init__.pyi`. Each is imported when it is first used, so that `import hdr4me` is fast
and the client runs where NumPy is not installed.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__version__ = "0.2.0.dev0"
__getattr__, __dir__, __all__ = attach(__name__)
