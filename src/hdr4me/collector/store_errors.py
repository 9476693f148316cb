"""What can go wrong with a store, and the damage that a store finds in its blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hdr4me.errors import HDR4MEError, InvalidInput

__all__ = [
    "Damage",
    "Damaged",
    "OnDamage",
    "SchemaTooNew",
    "Sealed",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "UnknownRound",
]


class StoreError(HDR4MEError):
    """The store cannot do what was asked; nothing that was acknowledged is lost."""


class StoreUnavailable(StoreError):
    """The database does not answer, or a write failed: nothing was acknowledged, and the caller may try again."""


class StoreFull(StoreUnavailable):
    """There is no space left for a write."""


class StoreReadOnly(StoreUnavailable):
    """The database may be read and not written."""


class StoreBusy(StoreError):
    """Another process has the store open for writing."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version of this program."""


class Sealed(StoreError):
    """The round's raw reports are gone: only its tally is kept."""


class UnknownRound(InvalidInput):
    """There is no round of this number."""


@dataclass(frozen=True)
class Damage:
    """What cannot be trusted: which block, the round that it claims (None: it cannot be read), and why."""

    block: int | None
    round: int | None
    reason: str

    def __str__(self) -> str:
        if self.block is None:
            return self.reason
        round_ = "a round that cannot be read" if self.round is None else f"round {self.round}"
        return f"block {self.block} of {round_}: {self.reason}"


class Damaged(StoreError):
    """Stored blocks are damaged; `damage` says which. The other blocks can still be read."""

    def __init__(self, where: str, damage: Sequence[Damage]) -> None:
        self.damage = tuple(damage)
        shown = "; ".join(map(str, self.damage[:5]))
        more = f"; and {len(self.damage) - 5} more" if len(self.damage) > 5 else ""
        super().__init__(
            f"{where} is damaged: {shown}{more}. Restore it from a backup; the other blocks are whole"
        )


OnDamage = Callable[[Damage], None]
