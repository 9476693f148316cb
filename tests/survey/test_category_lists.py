"""Lists of more than 4,096 categories: the document holds their hash, and loading it needs the file."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from hdr4me.client import Client
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey import Categorical, Schema, Selection, Survey, category_file
from hdr4me.tally import Tally

TOWNS = [f"town {i}" for i in range(5000)]


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process that has read no list before."""
    monkeypatch.setattr(category_file, "_known", {})
    monkeypatch.delenv(category_file.VARIABLE, raising=False)


def forget() -> None:
    category_file._known.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "towns.txt").write_text("\ufeff" + "\r\n".join(TOWNS), "utf-8")
    (tmp_path / "schema.toml").write_text('[[dimensions]]\nname = "town"\ncategories_file = "towns.txt"\n')
    return tmp_path


def made(folder: Path) -> Survey:
    return Survey(Schema.load(folder / "schema.toml"), epsilon=2.0)


def test_the_document_has_the_hash_of_the_list(folder: Path) -> None:
    """SHA-256 of the lines as any tool finds it: a byte order mark and carriage returns do not count."""
    document = json.loads(made(folder).to_json())["dimensions"][0]
    plain = "".join(f"{town}\n" for town in TOWNS).encode()
    assert document["categories_file"] == {
        "name": "towns.txt",
        "count": 5000,
        "sha256": hashlib.sha256(plain).hexdigest(),
    }
    assert "categories" not in document
    assert len(made(folder).to_json()) < 1000


def test_up_to_4096_are_written_out() -> None:
    short = Categorical("town", TOWNS[:4096], file="towns.txt")
    assert short.file is None
    assert len(short.to_dict()["categories"]) == 4096
    assert Categorical("town", TOWNS).to_dict()["categories"] == TOWNS  # a list that came from no file


def test_the_file_is_found_beside_the_document(folder: Path) -> None:
    survey = made(folder)
    survey.save(folder / "survey.json")
    forget()
    loaded = Survey.load(folder / "survey.json")
    assert loaded == survey
    assert loaded.schema["town"].categories == tuple(TOWNS)
    assert Schema.load(folder / "survey.json") == survey.schema
    forget()
    tally = Tally(loaded).add([Client(loaded).report({"town": "town 4999"})])
    tally.save(folder / "tally")
    assert Tally.load(folder / "tally") == tally


def test_saving_a_survey_also_saves_its_lists(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    made(folder).save(other / "survey.json")
    made(folder).save(other / "survey.json")  # again: the list is there already
    forget()
    assert Survey.load(other / "survey.json").schema["town"].categories == tuple(TOWNS)
    (other / "towns.txt").write_text("a\nb\n")
    with pytest.raises(InvalidInput, match=r"towns\.txt holds a different list"):
        made(folder).save(other / "survey.json")


def test_without_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file, the hash, where it was looked for and what to do."""
    text = made(folder).to_json()
    path = folder / "sub" / "survey.json"
    path.parent.mkdir()
    path.write_text(text)
    forget()
    with pytest.raises(FormatError, match=r"5,000 categories are in 'towns\.txt' .*HDR4ME_CATEGORIES"):
        Survey.load(path)
    with pytest.raises(FormatError, match="not found in no folder"):
        Survey.from_json(text)
    monkeypatch.setenv("HDR4ME_CATEGORIES", f"{folder / 'sub'}:{folder}")
    assert Survey.load(path).schema["town"].categories == tuple(TOWNS)
    forget()
    monkeypatch.delenv("HDR4ME_CATEGORIES")
    assert Survey.from_json(text, categories={"town": TOWNS}).schema["town"].categories == tuple(TOWNS)


def test_another_list_is_refused(folder: Path) -> None:
    made(folder).save(folder / "survey.json")
    for wrong in ([*TOWNS, "one more"], TOWNS[:-1], TOWNS[::-1]):
        forget()
        (folder / "towns.txt").write_text("\n".join(wrong))
        with pytest.raises(FormatError, match=r"instead of .* Use the file"):
            Survey.load(folder / "survey.json")
    (folder / "towns.txt").write_bytes(b"\xff\n")
    forget()
    with pytest.raises(FormatError, match="cannot be read"):
        Survey.load(folder / "survey.json")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../towns.txt"},
        {"name": ""},
        {"name": 7},
        {"count": "5000"},
        {"sha256": None},
        {"more": 1},
    ],
)
def test_what_is_no_file(change: dict[str, object]) -> None:
    good = Categorical("town", TOWNS, file="towns.txt").to_dict()
    bad = {**good["categories_file"], **change}
    with pytest.raises((FormatError, InvalidInput), match="dimension 'town': categories_file"):
        Schema.from_dict({"dimensions": [{**good, "categories_file": bad}]})


def test_a_changed_document_is_refused(folder: Path) -> None:
    document = json.loads(made(folder).to_json())
    document["dimensions"][0]["categories_file"]["name"] = "cities.txt"
    with pytest.raises(FingerprintMismatch):
        Survey.from_json(json.dumps(document))


def test_optional_dimensions_and_selections() -> None:
    """The category "missing" is no line of the file; a selection may come from a file too."""
    optional = Categorical("town", TOWNS, optional=True, file="towns.txt")
    assert optional.to_dict()["categories_file"]["count"] == 5000
    chosen = Selection("towns", TOWNS, at_most=2, file="towns.txt")
    schema = Schema([optional, chosen])
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema["town"].categories[-1] == "missing"
    default = Categorical("town", TOWNS, default="town 7", file="towns.txt")
    assert Categorical.from_dict({k: v for k, v in default.to_dict().items() if k != "type"}) == default


@pytest.mark.parametrize("bad", ["two\nlines", " blank", ""])
def test_a_category_is_one_line(bad: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be written to a file"):
        Categorical("town", [*TOWNS, bad], file="towns.txt")


def test_a_survey_travels_to_workers_with_its_lists(folder: Path) -> None:
    """Engines send surveys by pickling: a worker needs no file."""
    survey = made(folder)
    text = pickle.dumps(survey)
    forget()
    assert pickle.loads(text).schema["town"].categories == tuple(TOWNS)


def test_lists_are_remembered_up_to_a_number_of_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(category_file, "_REMEMBERED", 20)
    for k in range(40):
        category_file.remember([f"{k}", "x"])
    assert len(category_file._known) == 10
    category_file.remember(map(str, range(100)))
    assert len(category_file._known) == 1


def test_a_schema_of_many_long_lists_is_saved_and_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A survey holds its own lists: nothing depends on what the process remembers."""
    monkeypatch.setattr(category_file, "_REMEMBERED", 0)
    lists = {f"d{k}": [f"{k} {i}" for i in range(4200)] for k in range(3)}
    dimensions = [Categorical(name, labels, file=f"{name}.txt") for name, labels in lists.items()]
    optional = Categorical("o", lists["d0"], optional=True, file="o.txt")
    survey = Survey(Schema([*dimensions, optional]), epsilon=8.0)
    survey.save(tmp_path / "survey.json")
    forget()
    assert Survey.load(tmp_path / "survey.json") == survey
    forget()
    assert Survey.from_json(survey.to_json(), categories=lists) == survey


def test_categories_for_a_dimension_that_is_not_there_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="'village' is not allowed"):
        Survey.from_json(made(folder).to_json(), categories={"town": TOWNS, "village": TOWNS})


def test_a_wrong_number_of_categories_is_named(folder: Path) -> None:
    text = made(folder).to_json().replace(f'"count": {len(TOWNS)}', '"count": 7000')
    with pytest.raises(FormatError, match=r"its 7,000 categories .* but the list with this SHA-256 has"):
        Survey.from_json(text)
