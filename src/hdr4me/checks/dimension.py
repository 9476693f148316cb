"""What every kind of dimension must keep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hdr4me.channels import Take
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, dimension_from_dict

_STRANGE: tuple[Any, ...] = (
    None,
    float("nan"),
    float("inf"),
    "",
    "?",
    object(),
    b"x",
    [],
    {},
    True,
    10**400,
    -1,
    1e308,
)


def check_dimension(dimension: Dimension, values: Iterable[Any] = ()) -> None:
    """A dimension takes any value without an error, gives it a place inside, and survives its document.

    Parameters
    ----------
    dimension
        An instance of the kind.
    values
        Some values that people would give it.

    Raises
    ------
    AssertionError
        With the sentence that does not hold.
    """
    assert dimension.reads in ("number", "optional", "category"), (
        f"reads = {dimension.reads!r} is known to no channel"
    )
    size = len(dimension.categories) if dimension.reads == "category" else 9
    assert dimension.fits(Take(dimension.reads, size)), "it does not fit a channel that takes what it reads"
    for value in (*values, *_STRANGE):
        place = dimension.place(value, size)
        assert type(place) is int, f"the place of {value!r} is {place!r}, not a whole number"
        assert 0 <= place <= (size - 1) << FRACTION_BITS, f"the place of {value!r} is outside"
        if dimension.reads == "category":
            assert place % (1 << FRACTION_BITS) == 0, f"the category of {value!r} has a fraction"
    again = dimension_from_dict(dimension.to_dict())
    assert again.to_dict() == dimension.to_dict(), "to_dict and from_dict do not agree"
