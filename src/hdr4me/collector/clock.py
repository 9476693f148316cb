"""The clock of a collector: it does not follow a jump of the system's clock before the jump has lasted for an hour."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

_SLEW = 60.0  # seconds of difference that are not a jump
_ACCEPTED_AFTER = (
    3600.0  # seconds after which the time after a jump is accepted, and until then the clock is not steady
)


# Seconds that pass also while the machine is suspended, and that nobody sets.
_elapsed: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic
)


class Clock:
    """The time since 1970, and whether it can be trusted with something irreversible."""

    def __init__(
        self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = _elapsed
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._since = elapsed()  # when the trusted time was last set
        self._offset = wall() - self._since
        self._jump: tuple[float, float] | None = None  # another offset, and when it was first seen

    def now(self) -> float:
        """Seconds since 1970."""
        at = self._elapsed()
        offset = self._wall() - at
        if abs(offset - self._offset) <= _SLEW:
            self._offset, self._jump = offset, None
        elif self._jump is None or abs(offset - self._jump[0]) > _SLEW:
            self._jump = offset, at
        elif at - self._jump[1] >= _ACCEPTED_AFTER:
            self._offset, self._since, self._jump = offset, at, None
        return at + self._offset

    @property
    def jump(self) -> float:
        """Seconds by which the system's clock differs from the trusted time; 0 if it has not jumped."""
        self.now()
        return 0.0 if self._jump is None else self._jump[0] - self._offset

    @property
    def steady(self) -> bool:
        """Whether the clock has run for an hour without a jump."""
        return not self.jump and self._elapsed() - self._since >= _ACCEPTED_AFTER


CLOCK = Clock()
