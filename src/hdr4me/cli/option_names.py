"""Options as text: their names in messages of the Python interface, and lists of numbers and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hdr4me.errors import InvalidInput


def options(*same: str, **others: str) -> dict[str, str]:
    """The option of each parameter: `--name` for those of the same name.

    >>> options("level", n_users="--users")
    {'level': '--level', 'n_users': '--users'}
    """
    return {name: f"--{name}" for name in same} | others


@contextmanager
def named_options(names: Mapping[str, str]) -> Iterator[None]:
    """Within, `InvalidInput` names options."""
    try:
        yield
    except InvalidInput as refusal:
        raise refusal.renamed(names) from None


def numbers(option: str, text: str) -> list[float]:
    """Numbers separated by commas.

    >>> numbers("--quantiles", "0.5, 0.9")
    [0.5, 0.9]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{option} {text!r} is not allowed: numbers separated by commas") from None


def pair_of(option: str, text: str) -> tuple[str, str]:
    """Two names separated by a comma.

    >>> pair_of("--correlation", "age, income")
    ('age', 'income')
    """
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise InvalidInput(f"{option} {text!r} is not allowed: two names separated by a comma")
    return names[0], names[1]
