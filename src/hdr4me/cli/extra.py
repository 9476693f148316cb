"""Commands that need an optional extra say so in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hdr4me.errors import MissingDependency


@contextmanager
def needs_collector() -> Iterator[None]:
    """Within, a package that is not installed is an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("hdr4me"):
            raise
        raise MissingDependency(f"{error.name} is not installed: pip install 'hdr4me[collector]'") from None
