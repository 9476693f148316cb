"""Local differential privacy for high-dimensional data.

The public names are listed in `__init__.pyi`, for type checkers and for this module. Each one is loaded when it is
first used, so that `import hdr4me` costs next to nothing and the client runs where NumPy is not installed.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.2.0.dev0"


def _homes() -> dict[str, str]:
    """The package of each public name, from the lines "from package import name as name" of the stub."""
    stub = __loader__.get_data(__file__.rpartition(".")[0] + ".pyi").decode()
    lines = (line.split() for line in stub.splitlines() if line.startswith("from "))
    return {name: package for _, package, _, name, *_ in lines}


_HOMES = _homes()
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me' has no attribute {name!r}")
    home = _HOMES[name]
    if home == __name__:
        return import_module(f"{home}.{name}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
