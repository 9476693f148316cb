"""The damage that a store finds: noted once, written to the log, and handed to whoever reads the blocks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from hdr4me.collector.store import Damage, Damaged, OnDamage

__all__ = ["DamageLog", "hand_over"]

_log = logging.getLogger("hdr4me.collector")


class DamageLog:
    """The damage found so far in one store; any thread may note and read it.

    >>> found = DamageLog("reports.db")
    >>> found.all()
    []
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._lock = threading.Lock()
        self._damage: list[Damage] = []

    def note(self, damage: Damage) -> None:
        """Remember a damage and write it to the log; a damage that is known already is passed over."""
        with self._lock:
            if damage not in self._damage:
                self._damage.append(damage)
                _log.error("%s is damaged: %s", self._where, damage)

    def all(self) -> list[Damage]:
        """A copy of what was found, in the order in which it was found."""
        with self._lock:
            return list(self._damage)

    def clear(self) -> None:
        """Forget what was found, before the store is read anew."""
        with self._lock:
            self._damage = []


def hand_over(where: str, found: Sequence[Damage], on_damage: OnDamage | None) -> None:
    """Give each damage to `on_damage`; without `on_damage`, raise Damaged if there is any.

    >>> hand_over("reports.db", [Damage(7, 1, "its checksum is wrong")], print)
    block 7 of round 1: its checksum is wrong
    """
    if found and on_damage is None:
        raise Damaged(where, found)
    if on_damage is not None:
        for damage in found:
            on_damage(damage)
