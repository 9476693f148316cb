"""A thread pool that is kept between calls, because starting threads would take a tenth of a short call.

The caller's thread works as well. All threads take runs of pieces from one shared list, so a thread that starts late,
or never, only leaves more runs to the others. The first runs are long, which keeps the number of calls small; the last
runs are short, so that all threads end at about the same time.
"""

from __future__ import annotations

import os

# Neither threading.Thread nor a pool from the standard library: if Ctrl-C interrupted the code that holds one of their
# locks, that lock would never be released.
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock

_MOST = 256  # the largest number of threads in the pool

_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_n_threads = 0


def _after_fork() -> None:
    """Discard the pool: a forked child process does not have the threads of its parent."""
    global _jobs, _n_threads
    _jobs, _n_threads = SimpleQueue(), 0


os.register_at_fork(after_in_child=_after_fork)


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    """The loop of each thread of the pool: get a job from the queue and run it."""
    while True:
        jobs.get()()


def share(work: Callable[[int, int], None], first: int, last: int, threads: int) -> None:
    """Call work(a, b) for runs [a, b) that together make up [first, last), in any order and from several threads."""
    helpers = min(threads, last - first, _MOST) - 1
    if helpers < 1:
        work(first, last)
        return
    cuts = [first]
    while cuts[-1] < last:
        cuts.append(cuts[-1] + max(1, (last - cuts[-1]) // (2 * threads)))
    runs = iter(list(pairwise(cuts)))  # the iterator of a list: several threads may call next on it
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
        # Add the entry to `at_work` first, then read `leaving`. The caller does the reverse: it sets `leaving`, then
        # reads `at_work`. So either this thread sees that the caller leaves, or the caller sees this thread.
        at_work.append(me)
        try:
            if not leaving:
                take()
        except BaseException as error:
            errors.append(error)
        finally:
            at_work.remove(me)
            with suppress(RuntimeError):  # another thread has released the lock already
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
        # The threads write to the caller's memory, so wait until all have finished, also after repeated Ctrl-C.
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
