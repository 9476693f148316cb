"""Sharing pieces among threads that stay: each piece once, errors raised, concurrent callers, forked children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from hdr4me.kernels.machine.threads import share


@pytest.mark.parametrize("threads", [1, 2, 5, 1000])
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_every_piece_is_done_once(threads: int, n: int) -> None:
    done: list[int] = []
    share(lambda a, b: done.extend(range(a, b)), 3, 3 + n, threads)
    assert sorted(done) == list(range(3, 3 + n))


def test_an_error_in_any_thread_reaches_the_caller() -> None:
    for bad in range(6):

        def work(a: int, b: int, bad: int = bad) -> None:
            time.sleep(0.001)
            if a == bad:
                raise ValueError(f"piece {a}")

        with pytest.raises(ValueError, match=f"piece {bad}"):
            share(work, 0, 6, threads=3)


def test_no_thread_works_on_after_the_caller_has_gone() -> None:
    caller = threading.get_ident()
    working = 0

    def work(a: int, b: int) -> None:
        nonlocal working
        if threading.get_ident() == caller:
            time.sleep(0.005)  # so that another has begun
            raise RuntimeError
        working += 1
        time.sleep(0.05)
        working -= 1

    with pytest.raises(RuntimeError):
        share(work, 0, 3, threads=2)
    assert working == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_an_interrupted_run_ends_after_its_workers() -> None:
    """Ctrl-C, twice in a row, at any moment: no thread is at work afterwards, or begins, on memory that may be gone."""
    program = """
import signal, time
from hdr4me.kernels.machine.threads import share
left, interrupted, late = False, 0, []
def work(a, b):
    for _ in range(b - a):
        time.sleep(0.0002)
        if left:
            late.append(a)
rings = 0
def ring(*_):
    global rings
    rings += 1
    if rings == 2:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if not left:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, ring)
share(work, 0, 8, threads=4)
for attempt in range(200):
    left, rings = False, 0
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 * (attempt + 1), 0.0003)
            share(work, 0, 40, threads=4)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            left = True
    except KeyboardInterrupt:
        left = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(0.002)
assert interrupted > 150, interrupted
assert not late, late
"""
    found = subprocess.run(
        [sys.executable, "-c", program], timeout=120, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


def test_many_callers_at_once() -> None:
    totals = [0] * 8

    def call(k: int) -> None:
        done: list[int] = []
        for _ in range(20):
            share(lambda a, b: done.extend(range(a, b)), 0, 10, threads=4)
        totals[k] = len(done)

    callers = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert totals == [200] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_threads_of_its_own() -> None:
    """With its parent's pool the child would wait for threads that it does not have."""
    program = """
import os, threading, time
from hdr4me.kernels.machine.threads import share
def names():
    seen = set()
    def work(a, b):
        time.sleep(0.01)
        seen.add(threading.get_ident())
    share(work, 0, 20, 2)
    return len(seen)
assert names() == 2
child = os.fork()
if child == 0:
    os._exit(0 if names() == 2 else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
