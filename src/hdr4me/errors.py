"""The exceptions of this package.

    HDR4MEError
    ├── InvalidInput          (also a ValueError) a parameter, record, schema or option is not allowed
    ├── FormatError           a file or message has an invalid format
    │   └── FingerprintMismatch   it belongs to another survey
    ├── BudgetExceeded        the ledger refuses to spend more
    ├── LedgerBusy            another process holds the ledger's lock
    ├── NotReachable          no plan reaches the tolerance; carries the nearest plan
    └── MissingDependency     an optional package is not installed; says how to install it

Each message names the parameter, its value and what is allowed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

_SHOWN = 8  # names in an error message

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """`text` with every control, format and line-separator character escaped.

    File names, names of dimensions and lines of uploaded files are not trusted and could control a terminal.

    >>> printable("age\\x1b[2J"), printable("été, ε = 1")
    ('age\\\\x1b[2J', 'été, ε = 1')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _UNSAFE
        else character
        for character in text
    )


class HDR4MEError(Exception):
    """The base class of all errors of this package."""


class InvalidInput(HDR4MEError, ValueError):
    """A parameter, record, schema or option is not allowed.

    `parameters`, `value` and `allowed` describe the invalid parameter, so that the command line can repeat the message
    with the name of its option.

    >>> error = InvalidInput.of("users", 0, "a positive integer")
    >>> str(error), error.parameters, error.value
    ('users = 0 is not allowed: a positive integer', ('users',), 0)
    >>> str(error.renamed({"users": "--users"}))
    '--users 0 is not allowed: a positive integer'
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.parameters: tuple[str, ...] = ()
        self.value: Any = None
        self.allowed = ""
        self.one_of = False
        self.hint = ""

    @classmethod
    def of(cls, parameter: str, value: Any, allowed: str) -> InvalidInput:
        """The value of a parameter is not allowed; `allowed` describes the allowed values.

        >>> print(InvalidInput.of("purpose", "means", "one of mean, distribution, both"))
        purpose = 'means' is not allowed: did you mean 'mean'? (one of mean, distribution, both)
        """
        listed = allowed.removeprefix("use ")
        if isinstance(value, str) and listed.startswith("one of "):
            near = nearest(value, listed.removeprefix("one of ").split(", "))
            allowed = f"{near.removeprefix('; ')} ({listed})" if near else allowed
        error = cls(f"{parameter} = {value!r} is not allowed: {allowed}")
        error.parameters, error.value, error.allowed = (parameter,), value, allowed
        return error

    @classmethod
    def missing(cls, *parameters: str, one_of: bool = False, hint: str = "") -> InvalidInput:
        """Required parameters are missing; with `one_of`, one of them is required. `hint` ends the message.

        >>> print(InvalidInput.missing("users", "dims", "epsilon"))
        users, dims and epsilon are missing
        >>> print(InvalidInput.missing("epsilon", "tolerance", one_of=True))
        epsilon or tolerance is missing: give one of them
        """
        *first, last = parameters
        together = f"{', '.join(first)}{' or ' if one_of else ' and '}{last}" if first else last
        error = cls(
            f"{together} is missing: give one of them"
            if one_of
            else f"{together} {'are' if first else 'is'} missing{hint}"
        )
        error.parameters, error.one_of, error.hint = parameters, one_of, hint
        return error

    def renamed(self, names: Mapping[str, str]) -> InvalidInput:
        """The same error with parameters renamed by `names`, as "name value"."""
        if not any(parameter in names for parameter in self.parameters):
            return self
        called = tuple(names.get(parameter, parameter) for parameter in self.parameters)
        if not self.allowed:
            return InvalidInput.missing(*called, one_of=self.one_of, hint=self.hint)
        value = f"{self.value:.15g}" if type(self.value) is float else repr(self.value)
        error = InvalidInput(f"{called[0]} {value} is not allowed: {self.allowed}")
        error.parameters, error.value, error.allowed = called, self.value, self.allowed
        return error


class PrivacyWarning(UserWarning):
    """A setting is allowed, but gives little privacy."""


class FormatError(HDR4MEError):
    """A file or a message has an invalid format."""


class FingerprintMismatch(FormatError):
    """A report or tally belongs to another survey; the message has the beginning of both fingerprints."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(
            f"{what} belongs to survey {printable(found[:12])}, not to {expected[:12]}: use files of one survey"
        )
        self.expected = expected
        self.found = found


class BudgetExceeded(HDR4MEError):
    """The ledger's limit does not allow another report."""


class LedgerBusy(HDR4MEError):
    """Another process holds the ledger's lock, so nothing was read and nothing was spent."""


class NotReachable(HDR4MEError):
    """No plan reaches the tolerance; `nearest` is the plan that comes closest."""

    def __init__(self, message: str, nearest: Any = None) -> None:
        super().__init__(message)
        self.nearest = nearest


class MissingDependency(HDR4MEError):
    """An optional package is not installed."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known name, or nothing if several are as near.

    >>> nearest("fig9", ["fig2", "fig3", "table2"]), nearest("Fig3", ["fig2", "fig3"])
    ('', "; did you mean 'fig3'?")
    """
    from difflib import SequenceMatcher, get_close_matches

    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, 2, 0.6)
    ratios = [SequenceMatcher(None, each, name.lower()).ratio() for each in near]
    return f"; did you mean {lower[near[0]]!r}?" if len(set(ratios)) == len(near) > 0 else ""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: the nearest known name, or all if there are few.

    >>> suggestion("Age", ["age", "income"]), suggestion("x", ["age", "income"])
    ("; did you mean 'age'?", '; known are age, income')
    """
    names = list(known)
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return nearest(name, names) or f"; known are {', '.join(names[:_SHOWN]) or 'none'}{more}"
