"""A file is there whole or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hdr4me import atomic
from hdr4me.atomic import replacing, write_bytes, write_text


def test_written_whole_and_replaced(tmp_path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "é")
    write_bytes(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_permissions_are_those_of_any_new_file(tmp_path) -> None:
    plain, atomic = tmp_path / "plain", tmp_path / "atomic"
    plain.write_text("x")
    write_text(atomic, "x")
    assert stat.S_IMODE(plain.stat().st_mode) == stat.S_IMODE(atomic.stat().st_mode)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_what_was_there(tmp_path, error: BaseException) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_at_the_last_moment(tmp_path, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(tmp_path / "a.txt", "x")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_found_before_any_work(tmp_path) -> None:
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "a.txt"):
        pytest.fail("the block must not run")


def test_a_folder_cannot_be_replaced(tmp_path) -> None:
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pytest.fail("the block must not run")


def test_a_link_stays_a_link(tmp_path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_devices_are_written_to_directly() -> None:
    write_text("/dev/null", "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


# -- what a killed process leaves behind --------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from hdr4me import atomic
from hdr4me.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    if sys.argv[2] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    print("writing", flush=True)
    sys.stdin.read()
"""


def leftovers(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.part"))


def age(path: Path) -> None:
    os.utime(path, (0, 0))


@pytest.fixture(autouse=True)
def _another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_cleaned", set())


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), "die"], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = leftovers(tmp_path)
    age(left)
    write_text(tmp_path / "b.txt", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt"]


def test_what_is_being_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    command = [sys.executable, "-c", KILLED, str(target), "live"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        (busy,) = leftovers(tmp_path)
        age(busy)
        write_text(tmp_path / "b.txt", "whole")
        assert leftovers(tmp_path) == [busy]
        writer.communicate()
    assert target.read_text() == "half"


def test_only_old_files_of_our_own_are_removed(tmp_path: Path) -> None:
    young, other, pipe, link = (
        tmp_path / name
        for name in (".a.0123456789ab.part", ".movie.part", ".p.0123456789ac.part", ".l.0123456789ad.part")
    )
    young.touch()
    other.touch()
    age(other)
    os.mkfifo(pipe)
    age(pipe)
    (tmp_path / "kept").touch()
    age(tmp_path / "kept")
    link.symlink_to(tmp_path / "kept")
    write_text(tmp_path / "b.txt", "whole")
    assert {young, other, pipe, link, tmp_path / "kept"} <= set(tmp_path.iterdir())
