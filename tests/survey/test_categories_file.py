"""Categories from a file, one a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hdr4me.errors import FormatError
from hdr4me.survey import Schema


def schema(folder: Path, dimension: dict[str, object]) -> Path:
    path = folder / "schema.json"
    path.write_text(json.dumps({"dimensions": [{"name": "town", **dimension}]}))
    return path


def test_categories_come_from_a_file_beside_the_schema(tmp_path: Path) -> None:
    (tmp_path / "towns.txt").write_text("\ufeffBonn\n\n  Köln \nBad Ems\r\n", "utf-8")
    loaded = Schema.load(schema(tmp_path, {"categories_file": "towns.txt", "default": "Köln"}))
    assert loaded["town"].categories == ("Bonn", "Köln", "Bad Ems")
    assert "categories_file" not in loaded["town"].to_dict()
    toml = tmp_path / "schema.toml"
    toml.write_text(
        '[[dimensions]]\nname = "town"\ntype = "selection"\nat_most = 2\ncategories_file = "towns.txt"\n'
    )
    assert Schema.load(toml)["town"].categories == ("Bonn", "Köln", "Bad Ems")


def test_a_file_of_many(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("\n".join(f"w{i}" for i in range(70_000)))
    assert len(Schema.load(schema(tmp_path, {"categories_file": "many.txt"}))["town"].categories) == 70_000


@pytest.mark.parametrize(
    "dimension",
    [
        {"categories_file": "nowhere.txt"},
        {"categories_file": 7},
        {"categories_file": "x.txt", "categories": ["a", "b"]},
        {"categories_file": "bad.txt"},
        {"categories_file": "twice.txt"},
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, dimension: dict[str, object]) -> None:
    (tmp_path / "bad.txt").write_bytes(b"a\n\xff\n")
    (tmp_path / "twice.txt").write_text("a\na\n")
    with pytest.raises(FormatError, match="dimension 'town'"):
        Schema.load(schema(tmp_path, dimension))
