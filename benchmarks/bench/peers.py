"""Peers in a separate environment, so that their dependencies do not conflict with ours; missing peers are reported."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import peer_work

__all__ = ["PEERS", "Peers", "install", "open_peers"]

PEERS = {
    "opendp": ["opendp==0.16.0"],
    "diffprivlib": ["diffprivlib==0.6.6", "scikit-learn==1.6.1"],  # it imports what later ones no longer have
    "pure_ldp": ["pure-ldp==1.2.0", "statsmodels==0.15.0"],  # it does not name all that it imports
    "multi_freq_ldpy": ["multi-freq-ldpy==0.2.5"],
    "duckdb": ["duckdb==2.0.0"],
    "polars": ["polars==2.1.0"],
}
"""Task name and the packages that do it, each at one version: a ratio is against something that stays."""


def install(folder: Path) -> Path:
    """The environment's interpreter, made and filled if need be; a package that cannot be had is left out."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    for packages in PEERS.values():
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(command, check=False, capture_output=True, timeout=600)
    return python


class Peers:
    """A running environment that does tasks by name."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.absent: dict[str, str] = {}

    def seconds(self, name: str, argument: str = "") -> tuple[float, float]:
        """Seconds and amount of work of one run; infinite seconds, and a note, if it cannot be done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if name in self.absent:
            return float("inf"), 1.0
        try:
            self._process.stdin.write(f"{name} {argument}\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            answer = {"error": "its process ended"}
        if "error" in answer:
            self.absent[name] = str(answer["error"])
            return float("inf"), 1.0
        return float(answer["seconds"]), float(answer["amount"])


@contextmanager
def open_peers(python: Path | None) -> Iterator[Peers]:
    """Start the peers under an interpreter (this one, if none is given: then most are absent)."""
    command = [str(python or sys.executable), str(Path(peer_work.__file__))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Peers(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=60)
