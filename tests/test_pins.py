"""What is built and measured with stays the same until someone moves it on purpose."""

from __future__ import annotations

import tomllib
from pathlib import Path

from bench.peers import PEERS

ROOT = Path(__file__).parents[1]


def test_the_build_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    required = project["build-system"]["requires"]
    assert all("==" in package for package in required)
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert set(required) <= set(constraints)
    assert all("==" in line for line in constraints)


def test_peers_are_pinned() -> None:
    assert all("==" in package for packages in PEERS.values() for package in packages)
    lines = (ROOT / "peers.txt").read_text("utf-8").splitlines()
    assert all("==" in line for line in lines if not line.startswith("#"))
