"""Messages of the Python interface, said again in the command line's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hdr4me.errors import InvalidInput

__all__ = ["named_options"]


@contextmanager
def named_options(names: Mapping[str, str]) -> Iterator[None]:
    """Within, `InvalidInput` names options."""
    try:
        yield
    except InvalidInput as refusal:
        raise refusal.renamed(names) from None
