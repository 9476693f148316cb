"""The browser client in Node: the same answers as the Python client, and an enforced budget."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import hdr4me
from hdr4me.survey import Categorical, Numeric, Schema, Survey

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "clients" / "javascript"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
MODULES = [PACKAGE / "hdr4me.js", PACKAGE / "src" / "hdr4me.js"]


def run(*arguments: object, **more: Any) -> str:
    done = subprocess.run(
        [str(NODE), *map(str, arguments)], capture_output=True, text=True, timeout=120, **more
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- the package -------------------------------------------------------------------------------------------------------


def test_the_module_is_at_most_16_kilobytes_without_dependencies() -> None:
    module = (PACKAGE / "hdr4me.js").read_text("utf-8")
    assert len(module.encode()) <= 16_000
    for text in (module, (PACKAGE / "src" / "hdr4me.js").read_text("utf-8")):
        assert not re.search(r"Math\.random|\bimport\b|\beval\b", text)
        assert "getRandomValues" in text


def test_the_module_is_built_from_the_current_source() -> None:
    about = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    source = (PACKAGE / "src" / "hdr4me.js").read_bytes()
    assert about["config"]["builtFrom"] == hashlib.sha256(source).hexdigest(), "run: npm run build"


@needs_node
@pytest.mark.skipif(not (PACKAGE / "node_modules" / "terser").exists(), reason="needs terser")
def test_building_again_gives_the_same_module(tmp_path: Path) -> None:
    folder = shutil.copytree(PACKAGE, tmp_path / "package", symlinks=True)
    run("build.js", cwd=folder)
    assert (folder / "hdr4me.js").read_bytes() == (PACKAGE / "hdr4me.js").read_bytes()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
def test_npm_packs_the_module_its_types_and_its_source(tmp_path: Path) -> None:
    folder = shutil.copytree(PACKAGE, tmp_path / "package", ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        ["npm", "pack", "--dry-run", "--json", "--offline"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    packed = {item["path"] for item in json.loads(done.stdout)[0]["files"]}
    assert packed == {"hdr4me.js", "hdr4me.d.ts", "src/hdr4me.js", "package.json", "README.md"}


@needs_node
def test_the_pages_of_the_collector_can_be_parsed() -> None:
    """Without a browser: a name that is declared twice leaves a page empty."""
    pages = Path(hdr4me.__file__).parent / "collector" / "pages"
    parse = "import vm from 'vm'; import fs from 'fs'; for (const name of process.argv.slice(1)) "
    parse += "new vm.SourceTextModule(fs.readFileSync(name, 'utf8'), { identifier: name });"
    scripts = sorted(pages.glob("*.js"))
    assert len(scripts) > 5
    run("--no-warnings", "--experimental-vm-modules", "--input-type=module", "-e", parse, *scripts)


@needs_node
def test_every_export_has_a_type() -> None:
    names = json.loads(
        run("--input-type=module", "-e", f"console.log(JSON.stringify(Object.keys(await import('{MODULES[0]}'))))")
    )  # fmt: skip
    types = (PACKAGE / "hdr4me.d.ts").read_text("utf-8")
    assert sorted(names) == ["Client", "below", "browserStore", "fixed", "fresh", "memoized", "readSurvey"]
    assert all(f"export function {name}" in types or f"export class {name}" in types for name in names)


# -- the same answers --------------------------------------------------------------------------------------------------


@needs_node
def test_the_same_answers_as_python_for_the_same_words() -> None:
    found = json.loads(run(HERE / "vectors.mjs", MODULES[0]))
    assert found["fresh"]["cases"] >= 20_000
    assert found["derived"]["cases"] >= 2_400
    assert found["memoized"] >= 2_900 + 2_268


@needs_node
def test_the_readable_source_gives_the_same_answers_too() -> None:
    assert json.loads(run(HERE / "vectors.mjs", MODULES[1], 20))["fresh"]["cases"] >= 1_000


# -- ledger, queue, preview, opting out --------------------------------------------------------------------------------


@needs_node
@pytest.mark.parametrize("module", MODULES, ids=["built", "source"])
def test_ledger_and_queue(module: Path, tmp_path: Path) -> None:
    ages = Survey(Schema([Numeric("age", 0, 120, default=60)]), 1.0, mechanism="piecewise")
    moods = Survey(Schema([Categorical("mood", ["low", "fair", "good"], default="low")]), 1.0)
    staged = Survey(Schema([Categorical("mood", ["low", "fair", "good"])]), 1.0, memoized_epsilon=3.0)
    tenth = Survey(Schema([Numeric("age", 0, 120)]), 0.1, mechanism="duchi")
    wide = Survey(
        Schema([Categorical("town", [f"town {k}" for k in range(40_000)], default="town 0")]),
        1.0,
        categorical="oue",
    )
    documents = {name: json.loads(survey.to_json()) for name, survey in
                 {"ages": ages, "moods": moods, "tenth": tenth, "staged": staged, "wide": wide}.items()}  # fmt: skip
    documents["strict"] = json.loads((HERE.parent / "vectors" / "records.json").read_text("utf-8"))
    (tmp_path / "surveys.json").write_text(json.dumps(documents), "utf-8")
    environment = {
        **os.environ,
        "HDR4ME_CLIENT": str(module),
        "HDR4ME_SURVEYS": str(tmp_path / "surveys.json"),
    }
    run("--test", HERE / "client.test.mjs", env=environment)
