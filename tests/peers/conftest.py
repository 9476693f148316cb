"""The peers' environment, which `make .venv-peers/made` builds; HDR4ME_PEERS may name another interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import peers

MADE = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"


@pytest.fixture(scope="session")
def worker() -> Iterator[peers.Peers]:
    """The running peers."""
    python = Path(os.environ.get("HDR4ME_PEERS") or MADE)
    if not python.is_file():
        pytest.skip(f"{python} is not there: `make .venv-peers/made` installs the peers")
    with peers.open_peers(python) as opened:
        yield opened
