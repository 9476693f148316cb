"""Registries of named items that other packages can extend; standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from hdr4me.errors import InvalidInput

T = TypeVar("T")


class Registry(Generic[T]):
    """Named items of one kind, built in or registered by other packages.

    A built-in item may be given as "module:attribute" and is imported when it is first used. Another package
    registers an item by calling `register`, or declares an entry point of the group `hdr4me.<plural>` whose module does
    so when it is loaded. Entry points are loaded when a name is not found, or when all names are listed.

    >>> shapes: Registry[type] = Registry("shape", "shapes", {"list": "builtins:list"})
    >>> shapes.register("tuple", tuple)
    >>> shapes["list"], shapes.names
    (<class 'list'>, ('list', 'tuple'))
    >>> shapes["cube"]
    Traceback (most recent call last):
    ...
    hdr4me.errors.InvalidInput: shape = 'cube' is not allowed: one of list, tuple
    """

    def __init__(self, noun: str, plural: str, built_in: dict[str, T | str] | None = None) -> None:
        self.noun = noun
        self.group = f"hdr4me.{plural}"
        self.built_in = frozenset(built_in or ())
        self._items: dict[str, T | str] = dict(built_in or {})
        self._loaded_outside = False

    def register(self, name: str, item: T) -> None:
        """Register `item` under `name`; an error if another item has this name."""
        if not isinstance(name, str) or not name or not name.isprintable():
            raise InvalidInput.of(self.noun, name, "a printable name")
        if name in self._items and self._items[name] is not item:
            raise InvalidInput.of(self.noun, name, "a name that no other item has")
        self._items[name] = item

    def remove(self, name: str) -> None:
        """Remove a name, for tests of packages that register items."""
        self._items.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, built-in ones first."""
        self._load_outside()
        return tuple(self._items)

    def __contains__(self, name: object) -> bool:
        if name not in self._items:
            self._load_outside()
        return name in self._items

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self:
            raise InvalidInput.of(self.noun, name, f"one of {', '.join(self.names)}")
        item = self._items[name]
        if isinstance(item, str):
            module, _, attribute = item.partition(":")
            item = self._items[name] = getattr(import_module(module), attribute)
        return item

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def _load_outside(self) -> None:
        if not self._loaded_outside:
            self._loaded_outside = True
            for point in entry_points(group=self.group):
                point.load()
