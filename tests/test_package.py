"""What is built can be installed: the wheel holds what it needs, and a device needs nothing else."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import hdr4me as hd

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built from what git would hand out, without a network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("src", "clients"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_the_wheel_holds_all_files_of_the_package(built: Path) -> None:
    names = set(zipfile.ZipFile(next(built.glob("*.whl"))).namelist())
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert path.relative_to(ROOT / "src").as_posix() in names
    assert "hdr4me/py.typed" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


def test_the_source_archive_can_build_it_again(built: Path) -> None:
    archive = next(built.glob("*.tar.gz"))
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/hdr4me/__init__.py"} <= names


def test_a_device_needs_the_wheel_and_nothing_else(built: Path, tmp_path: Path) -> None:
    """An interpreter without any other package: a survey is read and proven, a report is made, a ledger is kept."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    schema = hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("mood", ["low", "good"])])
    hd.Survey(schema, epsilon=1.0, sampled=2).save(tmp_path / "survey.json")
    code = (
        "import hdr4me as hd, sys\n"
        "survey = hd.Survey.load('survey.json')\n"
        "client = hd.Client(survey, hd.Ledger('ledger.json'))\n"
        "report = client.report({'age': 31, 'mood': 'good'})\n"
        "assert len(report.answers) == 2\n"
        "kept = hd.MemoizedClient(survey, hd.Ledger('other.json'))\n"
        "assert kept.report({'age': 31, 'mood': 'low'}) == kept.report({'age': 31, 'mood': 'low'})\n"
        "print(hd.__version__)\n"
    )
    environment = {"PYTHONPATH": str(tmp_path / "site"), "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}
    bare = [getattr(sys, "_base_executable", sys.executable), "-S", "-W", "error", "-c", code]
    done = subprocess.run(bare, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == hd.__version__


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    cited = re.search(r'^version: "(.+)"$', (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == hd.__version__


def test_the_oldest_versions_are_those_that_are_declared() -> None:
    """Every lower bound of the package stands in lowest.txt, which `make lowest` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lowest = dict(
        line.split("==") for line in (ROOT / "lowest.txt").read_text("utf-8").splitlines() if "==" in line
    )
    for requirement in project["dependencies"]:
        name, _, version = requirement.partition(">=")
        assert lowest[name].startswith(version), requirement
