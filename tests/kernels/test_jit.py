"""Compiled code is cached, and discarded if any source of the kernels changes."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from hdr4me.kernels.exact.sets import subsets
from hdr4me.kernels.machine import jit
from hdr4me.kernels.machine.jit import kernel, sources_digest


def test_the_version_covers_the_room() -> None:
    """The private names of numba that are used; if this fails after an upgrade, stale code can survive."""
    assert subsets._cache._cache_file._version.endswith(sources_digest())


def test_the_digest_covers_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of one folder contains kernels of another: changing any file must forget the compiled code of all."""
    package = Path(jit.__file__).parents[1]
    copy = tmp_path / "kernels"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(jit, "__file__", str(copy / "machine" / "jit.py"))
    before = sources_digest()
    for folder in ("exact/blocks.py", "simulate/fused.py", "machine/intrinsics.py"):
        with (copy / folder).open("a") as out:
            out.write("\n# changed\n")
        after = sources_digest()
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


def test_the_digest_covers_every_folder_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may contain kernels of any other file."""
    read: list[str] = []
    whole = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self.parent.name), whole(self))[1])
    sources_digest()
    assert {"machine", "exact", "simulate"} <= set(read)


def test_no_folder_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation without a writable home: numba refuses to cache, the kernel is compiled all the same."""

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr("numba.core.caching.FunctionCache.__init__", refuse)

    @kernel()
    def double(a: float) -> float:
        return 2 * a

    assert double(2.0) == 4.0


def in_a_file(folder: Path) -> Any:
    """A kernel in a file of its own, so that it has a cache of its own."""
    path = folder / "own.py"
    if not path.exists():  # older versions of numba compare the time of the file
        path.write_text("def double(a):\n    return 2 * a\n")
    found: dict[str, Any] = {"__name__": "own", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), found)
    return kernel()(found["double"])


def test_damaged_files_of_the_cache_are_replaced(tmp_path: Path) -> None:
    assert in_a_file(tmp_path)(2.0) == 4.0
    files = sorted(tmp_path.rglob("*.nb?"))
    assert len(files) == 2
    whole = [file.read_bytes() for file in files]
    for damage in (
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data[:-40] + bytes(40),
    ):
        for file, data in zip(files, whole, strict=True):
            file.write_bytes(damage(data))
        assert in_a_file(tmp_path)(2.0) == 4.0
        again = in_a_file(tmp_path)
        assert again(2.0) == 4.0
        assert sum(again.stats.cache_hits.values()) == 1


def test_a_folder_that_can_no_longer_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    assert in_a_file(tmp_path)(2.0) == 4.0
