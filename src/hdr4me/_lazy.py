"""Public names that are imported on first use; standard library only.

The stub `__init__.pyi` of a package lists its public names, one line `from module import name as name` for each. Type
checkers read the stub too, so that there is one list.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def modules_of(package: str) -> dict[str, str]:
    """The module of each public name of a package, from the package's stub."""
    module: Any = sys.modules[package]  # a loader gives the stub of a package inside a zip file too
    stub = module.__loader__.get_data(module.__file__.rpartition(".")[0] + ".pyi").decode()
    lines = (line.split() for line in stub.splitlines() if line.startswith("from "))
    return {name: home for _, home, _, name, *_ in lines}


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The values of `__getattr__`, `__dir__` and `__all__` for a package with a stub."""
    modules = modules_of(package)
    names = sorted(modules)

    def load(name: str) -> Any:
        if name not in modules:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(
                message, name=name, obj=sys.modules[package]
            )  # Python suggests the nearest name
        if modules[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, names.copy, names
