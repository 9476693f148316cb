"""The lock: one holder at a time, an error after a timeout, and no foreign files; POSIX and Windows."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hdr4me.client import Ledger
from hdr4me.client import lock as module
from hdr4me.client.lock import locked
from hdr4me.errors import InvalidInput, LedgerBusy
from hdr4me.survey import Survey

HOLD = """
import sys, time
from pathlib import Path
from hdr4me.client.lock import locked
with locked(Path(sys.argv[1]), 300.0):
    print("held", flush=True)
    time.sleep(60)
"""


def test_waiting_for_another_process_ends_with_an_error(tmp_path: Path, mixed: Survey) -> None:
    ledger = Ledger(tmp_path / "ledger.json", timeout=0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "ledger.json.lock")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        start = time.monotonic()
        with pytest.raises(
            LedgerBusy, match=r"another process held .*ledger.json.lock for 0.2 seconds, so nothing is spent"
        ):
            ledger.spend(mixed)
        assert time.monotonic() - start >= 0.2
        assert ledger.total == 0
    finally:
        holder.kill()
        holder.communicate()
    ledger.spend(mixed)  # the system released what the killed process held
    assert ledger.total == 12


def test_threads_take_turns(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(20):
            with locked(tmp_path / "a.lock", 300.0):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most == [1]


def test_the_lock_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch(mode=0o666)
    path.chmod(0o666)
    with locked(path, 0.0):
        assert path.stat().st_mode & 0o777 == 0o600


def test_an_irregular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.lock").mkdir()
    (tmp_path / "link.lock").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe.lock")
    for name in ("folder", "link", "pipe"):
        with pytest.raises(InvalidInput, match="not a regular file"), locked(tmp_path / f"{name}.lock", 0.0):
            pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InvalidInput, match="another user"), locked(tmp_path / "a.lock", 0.0):
        pass


def test_a_deleted_lock_file_is_created_and_locked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "a.lock", module._lock
    deleted: list[int] = []

    def deletes_once(descriptor: int, *, held: bool) -> None:
        lock(descriptor, held=held)
        if not deleted:
            deleted.append(descriptor)
            path.unlink()

    monkeypatch.setattr(module, "_lock", deletes_once)
    with locked(path, 300.0):
        assert deleted
        with pytest.raises(LedgerBusy), locked(path, 0.0):
            pass


def test_other_errors_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int, *, held: bool) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(module, "_lock", broken)
    with pytest.raises(OSError, match="Input/output"), locked(tmp_path / "a.lock", 1.0):
        pass


def test_on_windows_the_first_byte_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`msvcrt` raises EACCES or EDEADLK while another process holds the byte."""
    calls: list[tuple[int, int]] = []
    refusals = iter([13, 36 if sys.platform == "win32" else 35])

    def locking(descriptor: int, mode: int, count: int) -> None:
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        calls.append((mode, count))
        if mode == 2 and (refusal := next(refusals, None)) is not None:
            raise OSError(refusal, "locked")

    stub: Any = SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking)
    monkeypatch.setitem(sys.modules, "msvcrt", stub)
    monkeypatch.setattr(module.sys, "platform", "win32")  # type: ignore[attr-defined]
    with locked(tmp_path / "a.lock", 300.0):
        calls.append((-1, 0))
    assert calls == [(2, 1), (2, 1), (2, 1), (-1, 0), (0, 1)]
