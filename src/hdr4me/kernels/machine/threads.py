"""Threads that stay: work of a few milliseconds would spend a tenth of them on starting new ones.

The caller works too and pieces are taken as they come, so a thread that comes late, or never, only leaves
more to the others. They are taken in runs, long ones first: few calls, and at the end short ones to even things out.
"""

from __future__ import annotations

import os

# Not threading.Thread, nor a pool of them: an interruption inside of their locks would leave these locked for ever.
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock

__all__ = ["share"]

_MOST = 256
"""Threads at most."""

_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_n_threads = 0


def _after_fork() -> None:
    """A forked child has none of its parent's threads."""
    global _jobs, _n_threads
    _jobs, _n_threads = SimpleQueue(), 0


os.register_at_fork(after_in_child=_after_fork)


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()


def share(work: Callable[[int, int], None], first: int, last: int, threads: int) -> None:
    """work(a, b) for runs [a, b) that make up [first, last), in any order; work(first, last) for one thread.

    >>> done = []
    >>> share(lambda a, b: done.append((a, b)), 0, 12, threads=2)
    >>> sorted(done)[:4]
    [(0, 3), (3, 5), (5, 6), (6, 7)]
    """
    helpers = min(threads, last - first, _MOST) - 1
    if helpers < 1:
        work(first, last)
        return
    cuts = [first]
    while cuts[-1] < last:
        cuts.append(cuts[-1] + max(1, (last - cuts[-1]) // (2 * threads)))
    runs = iter(list(pairwise(cuts)))  # of a list: threads may share it
    errors: list[BaseException] = []
    at_work: list[object] = []
    bell = Lock()
    bell.acquire()
    leaving = False

    def take() -> None:
        for start, stop in runs:
            if errors:
                return
            work(start, stop)

    def help_out() -> None:
        me = object()
        at_work.append(
            me
        )  # before looking whether the caller is leaving, which looks at this after saying so
        try:
            if not leaving:
                take()
        except BaseException as error:
            errors.append(error)
        finally:
            at_work.remove(me)
            with suppress(RuntimeError):  # rung already
                bell.release()

    global _n_threads
    try:
        while _n_threads < helpers:
            _n_threads += 1
            start_new_thread(_serve, (_jobs,))
        for _ in range(helpers):
            _jobs.put(help_out)
        take()
    except BaseException as error:
        errors.append(error)
    finally:
        # What they work on is the caller's memory: never leave while they do, however often interrupted.
        waiting = True
        while waiting:
            try:
                leaving = True
                while at_work:
                    bell.acquire(timeout=0.1)
                waiting = False
            except KeyboardInterrupt as error:
                errors.append(error)
    if errors:
        raise errors[0]
