"""The peers' environment, made by these tests in a folder of its own, if HDR4ME_PEERS asks for it.

HDR4ME_PEERS=1 makes the environment (network needed); HDR4ME_PEERS=/path/to/python uses one that is there.
"""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import peers

PACKAGES = (
    "multi-freq-ldpy==0.2.5",
    "pure-ldp==1.2.0",
    "xxhash<4",  # the two above hash texts, which xxhash 4 refuses
    "statsmodels",  # pure-ldp imports it without saying so
    "ldp-toolbox==0.1.3",
    "diffprivlib==0.6.6",
    "scikit-learn==1.6.1",  # diffprivlib imports what later ones no longer have
    "opendp==0.16.0",
    "dp-accounting==0.6.0",
)


def _made(folder: Path) -> Path:
    python = folder / "bin" / "python"
    venv.create(folder, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        pytest.skip("the peers could not be installed in 15 minutes")
    if done.returncode:
        pytest.skip(f"the peers could not be installed: {done.stderr.strip().splitlines()[-1:]}")
    return python


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.Peers]:
    """The running peers."""
    asked = os.environ.get("HDR4ME_PEERS", "")
    if not asked:
        pytest.skip("HDR4ME_PEERS is not set: 1 installs the peers (network), a path names their interpreter")
    python = _made(tmp_path_factory.mktemp("peers")) if asked == "1" else Path(asked)
    if not python.is_file():
        pytest.skip(f"HDR4ME_PEERS = {asked}: there is no such interpreter")
    with peers.open_peers(python) as opened:
        yield opened
