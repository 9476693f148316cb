"""Timing on a shared machine: tasks are interleaved, and the best time of each counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

__all__ = ["Task", "cpu", "interleave", "slope", "wall"]

Task = Callable[[], float]
"""Does its work once and returns the seconds it took, by whatever clock suits it."""


def cpu(work: Callable[[], object]) -> Task:
    """A task by the processor time of this process, all its threads together: what one core would take."""
    return _by(time.process_time, work)


def wall(work: Callable[[], object], times: int = 5) -> Task:
    """A task by wall-clock time, the best of several runs, for multithreaded work."""
    once = _by(time.perf_counter, work)
    return lambda: min(once() for _ in range(times))


def _by(clock: Callable[[], float], work: Callable[[], object]) -> Task:
    def task() -> float:
        start = clock()
        work()
        return clock() - start

    return task


def interleave(tasks: Mapping[str, Task], rounds: int) -> dict[str, float]:
    """The best seconds of each task over rounds in which every task runs once; one round before is for warming up.

    >>> interleave({"a": lambda: 2.0, "b": lambda: 1.0}, 3)
    {'a': 2.0, 'b': 1.0}
    """
    best = dict.fromkeys(tasks, float("inf"))
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            seconds = task()
            if turn:
                best[name] = min(best[name], seconds)
    return best


def slope(x: list[float], seconds: list[float]) -> float:
    """The exponent k of seconds ~ x^k, by least squares on logarithms.

    >>> round(slope([1, 2, 4], [3, 6, 12]), 6)
    1.0
    """
    import numpy as np

    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])
