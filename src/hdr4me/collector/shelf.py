"""What is shown of each round, in files: so that all workers show the same moment, and a restart shows no other."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hdr4me.atomic import write_bytes
from hdr4me.collector.store import Quarantine
from hdr4me.errors import HDR4MEError
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps, loads

__all__ = ["Shelf", "Snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """The tallies of a round at one moment.

    Parameters
    ----------
    stored, state
        How many reports were stored, and the round's state.
    left_out
        What was in quarantine.
    look
        The number of the snapshot, from 1: alarms spend their error probability over all of them.
    every, clean
        The tally of all reports, and of those outside quarantine.
    """

    stored: int
    state: str
    left_out: tuple[Quarantine, ...]
    look: int
    every: Tally
    clean: Tally


@dataclass(frozen=True)
class Shelf:
    """Snapshots in a folder, one file for each round; a file that cannot be read or written counts as none."""

    folder: Path

    def _path(self, round: int) -> Path:
        return self.folder / f"round-{round}.shown"

    def put(self, round: int, held: Snapshot) -> None:
        """Keep a snapshot in the place of the one before."""
        every, clean = dumps(held.every), dumps(held.clean)
        left_out = [[quarantine.hour, quarantine.source] for quarantine in held.left_out]
        head = {"stored": held.stored, "state": held.state, "left_out": left_out, "look": held.look}
        head["every"] = len(every)
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_bytes(self._path(round), json.dumps(head).encode() + b"\n" + every + clean, mode=0o600)

    def get(self, round: int, survey: Survey) -> Snapshot | None:
        """The kept snapshot, every checksum of its tallies verified."""
        try:
            first, _, rest = self._path(round).read_bytes().partition(b"\n")
            head = json.loads(first)
            every, clean = loads(rest[: head["every"]], survey), loads(rest[head["every"] :], survey)
            left_out = tuple(Quarantine(hour, source) for hour, source in head["left_out"])
            return Snapshot(
                int(head["stored"]), str(head["state"]), left_out, int(head["look"]), every, clean
            )
        except (OSError, ValueError, KeyError, TypeError, HDR4MEError):
            return None
