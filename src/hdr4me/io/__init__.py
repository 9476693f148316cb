"""Records and reports: one reader and one writer for all commands.

Records are true values in any format (files, tables, frames) and never leave the machine that holds them. Reports are
what users send. The public names are listed in `__init__.pyi` and imported when they are first used: the module
`report` needs only the standard library, and the others load NumPy and Arrow.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
