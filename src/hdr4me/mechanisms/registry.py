"""The registry of mechanisms: the built-in ones, and those that other packages register.

A factory is called as `factory(epsilon=…, **options)` with the budget of one value and is imported at its first use.
Installed packages add factories through entry points of the group "hdr4me.mechanisms".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.mechanisms.law import Mechanism

GROUP = "hdr4me.mechanisms"  # the entry-point group of other packages' factories


@dataclass(frozen=True)
class Registered:
    """A name, a factory (a callable or "module:attribute"), and properties that are known without calling it."""

    name: str
    factory: str | Callable[..., Any]
    summary: str = ""
    planned: bool = True  # whether a plan tries this mechanism by default
    scaled: tuple[tuple[str, Any], ...] = ()  # options that put the law on [-1, 1]
    # From this budget of one value on, a plan uses the exact table instead of the law.
    table_from: float = 6.0

    def load(self) -> Callable[..., Any]:
        """The factory, imported if it is given as "module:attribute"."""
        if not isinstance(self.factory, str):
            return self.factory
        module, _, attribute = self.factory.partition(":")
        factory: Callable[..., Any] = getattr(import_module(module), attribute)
        return factory

    def is_planned(self) -> bool:
        """Whether a plan tries the mechanism by default; the factory of another package may have `planned = False`."""
        if not self.planned or self.name in _BUILT_IN:
            return self.planned
        try:
            return bool(getattr(self.load(), "planned", True))
        except (
            Exception
        ):  # a factory of another package may raise any exception; the plan then notes the reason
            return True

    def make(self, epsilon: float, **options: Any) -> Mechanism:
        """The mechanism under the budget `epsilon` of one value."""
        try:
            made: Mechanism = self.load()(epsilon=epsilon, **options)
        except TypeError as error:
            if not options:
                raise
            what = f"options {sorted(options)} are not allowed for mechanism {self.name!r}"
            raise InvalidInput(f"{what}: {error}") from error
        return made


_known: dict[str, Registered] = {
    name: Registered(name, f"hdr4me.mechanisms.{where}", summary, table_from=table_from)
    for name, where, summary, table_from in (
        ("laplace", "laplace:Laplace", "Laplace noise", 30.0),
        ("scdf", "staircase:SCDF", "noise in geometric steps (Soria-Comas et al. 2013)", 8.0),
        ("staircase", "staircase:Staircase", "noise in geometric steps (Geng et al. 2015)", 8.0),
        ("duchi", "duchi:Duchi", "two reports (Duchi et al. 2018)", 2.0),
        ("piecewise", "piecewise:Piecewise", "a band about the value (Wang et al. 2019)", 2.0),
        ("hybrid", "piecewise:Hybrid", "Piecewise or Duchi (Wang et al. 2019)", 2.0),
        ("square_wave", "square_wave:SquareWave", "biased, for distributions (Li et al. 2020)", 2.0),
        ("three_outputs", "duchi:ThreeOutputs", "three reports (Zhao et al. 2020)", 6.0),
        ("pm_sub", "piecewise:PMSub", "Piecewise with a wider band (Zhao et al. 2020)", 6.0),
        ("optimal", "optimal:optimal", "the table of least largest variance", 6.0),
        ("optimal_mean", "joint:optimal_mean", "the table of least mean variance over a prior", 6.0),
    )
}
_known["square_wave"] = replace(_known["square_wave"], scaled=(("domain", (-1.0, 1.0)),))
_BUILT_IN = tuple(_known)


@cache
def _load_plugins() -> None:
    """Register the entry points of installed packages; existing names are not replaced."""
    from importlib.metadata import entry_points  # slow to import

    for point in entry_points(group=GROUP):
        _known.setdefault(point.name, Registered(point.name, f"{point.module}:{point.attr}"))


def built_in() -> tuple[str, ...]:
    """The names of this package's own mechanisms."""
    return _BUILT_IN


def names(*, planned: bool = False) -> tuple[str, ...]:
    """Every registered name; with `planned`, only those that a plan tries by default."""
    _load_plugins()
    return tuple(name for name, entry in _known.items() if not planned or entry.is_planned())


def registered(name: str) -> Registered:
    """The entry with this name; an error that lists all names if there is none."""
    if name not in _known:
        _load_plugins()
    if name not in _known:
        raise InvalidInput.of("mechanism", name, f"use one of {', '.join(names())}")
    return _known[name]


def register_mechanism(
    name: str, factory: str | Callable[..., Any], *, summary: str = "", planned: bool = True
) -> None:
    """Make `name` known to `mechanism`, to plans, to surveys and to the command line.

    Parameters
    ----------
    name
        A word of letters, digits and underscores that no other factory has.
    factory
        Called as `factory(epsilon=…, **options)` with the budget of one value; or "module:attribute".
    summary
        A few words for help texts.
    planned
        Whether a plan tries this mechanism by default. The factory of an entry point may have an attribute
        `planned = False`.

    Examples
    --------
    >>> from hdr4me.mechanisms.duchi import Duchi
    >>> register_mechanism("our_duchi", Duchi, summary="the same as duchi", planned=False)
    >>> mechanism("our_duchi", epsilon=1.0)
    Duchi(epsilon=1.0)
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise InvalidInput.of("name", name, "a word of letters, digits and underscores")
    if not (callable(factory) or (isinstance(factory, str) and ":" in factory)):
        raise InvalidInput.of("factory", factory, "a callable, or 'module:attribute'")
    if name in _known and _known[name].factory != factory:
        raise InvalidInput.of("name", name, "a name that no other mechanism has")
    _known[name] = Registered(name, factory, summary, planned)


def scaled_mechanism(name: str, *, epsilon: float, **options: Any) -> Mechanism:
    """The mechanism called `name` on [-1, 1], the domain of every deployed table."""
    entry = registered(name)
    made = entry.make(epsilon, **{**dict(entry.scaled), **options})
    if tuple(made.domain) != (-1.0, 1.0):
        raise InvalidInput.of("mechanism", name, f"its domain {made.domain} is not [-1, 1]")
    return made


def mechanism(name: str, *, epsilon: float, **options: Any) -> Mechanism:
    """The mechanism called `name` under the budget `epsilon` of one value.

    Parameters
    ----------
    name
        One of `names()`.
    epsilon
        The budget of one value.
    options
        Further parameters of the mechanism: `variant="l1"|"variance"` (staircase), `domain=(-1, 1)|(0, 1)`
        (square_wave), `objective="max"|"mean"` (optimal), `prior=…` (optimal_mean).

    Examples
    --------
    >>> mechanism("duchi", epsilon=1.0).support
    (-2.163953413738653, 2.163953413738653)
    """
    return registered(name).make(epsilon, **options)
