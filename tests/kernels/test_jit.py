"""Compiled code is cached, and forgotten when any source of the room changes."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from hdr4me.kernels.exact.subset import subsets
from hdr4me.kernels.machine import jit
from hdr4me.kernels.machine.jit import kernel, sources_stamp


def test_the_version_covers_the_room() -> None:
    """The private names of numba that are used; if this fails after an upgrade, stale code can survive."""
    assert subsets._cache._cache_file._version.endswith(sources_stamp())


def test_the_stamp_covers_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of one folder contains kernels of another: changing any file must forget the compiled code of all."""
    room = Path(jit.__file__).parents[1]
    copy = tmp_path / "kernels"
    shutil.copytree(room, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "__file__", str(copy / "machine" / "jit.py"))
    before = sources_stamp()
    for folder in ("exact/stages.py", "simulate/draws.py", "machine/vectors.py"):
        with (copy / folder).open("a") as out:
            out.write("\n# changed\n")
        after = sources_stamp()
        assert after != before, folder
        before = after


def test_a_cache_of_other_sources_is_not_even_unpickled(tmp_path: Path) -> None:
    """It may name a class that is gone."""
    index = subsets._cache._cache_file
    other = type(index)(str(tmp_path), "subset", index._source_stamp)
    (tmp_path / "subset.nbi").write_bytes(pickle.dumps(other._version + " older") + b"no pickle")
    assert other._load_index() == {}
    (tmp_path / "subset.nbi").write_bytes(pickle.dumps(other._version) + b"no pickle")
    with pytest.raises(pickle.UnpicklingError):
        other._load_index()


def test_division_is_the_processors() -> None:
    @kernel()
    def divide(a: float, b: float) -> float:
        return a / b

    assert divide(1.0, 0.0) == float("inf")
