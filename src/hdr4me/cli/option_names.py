"""Messages of the Python interface, said again in the command line's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hdr4me.errors import InvalidInput

__all__ = ["in_option_names", "named_options"]


def in_option_names(message: str, names: Mapping[str, str]) -> str:
    """`message` with each parameter called by its option, "name = value" as it would be typed.

    A name with an underscore is a parameter wherever it stands; a plain word only where a message names what it is
    about: at the start, or in a list that starts there.

    >>> in_option_names("n_users = 0 is not allowed: a whole number", {"n_users": "--users"})
    '--users 0 is not allowed: a whole number'
    >>> in_option_names("n_users and epsilon are missing", {"n_users": "--users", "epsilon": "--epsilon"})
    '--users and --epsilon are missing'
    """
    for name, option in names.items():
        where = rf"(?<![\w'\"]){name}\b" if "_" in name else rf"^((?:\S+ and )*){name}\b"
        message = re.sub(where, option if "_" in name else rf"\g<1>{option}", message)
    return re.sub(r"(?<!\S)(--[\w-]+) = ", r"\1 ", message)


@contextmanager
def named_options(names: Mapping[str, str]) -> Iterator[None]:
    """Within, `InvalidInput` names options."""
    try:
        yield
    except InvalidInput as refusal:
        if refusal.parameters:
            raise refusal.renamed(names) from None
        raise InvalidInput(in_option_names(str(refusal), names)) from None
