"""Several choices at once: cleaned as declared, counted in the data-quality report, and estimated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.auditing import audit
from hdr4me.channels.privset import PrivSet
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey
from hdr4me.survey.dimension import dimension_from_dict
from hdr4me.tally import Tally

SPOKEN = Selection("spoken", ["de", "en", "fr", "it", "nl", "pl"], at_most=2)
SURVEY = Survey(Schema([SPOKEN]), epsilon=3.0)
USABLE: list[Any] = [["fr", "de"], ["it", "en", "de"], [], "", ["pl", "pl", "zz"]]
"""What a device answers where `VALUES` has a choice that is none and a missing value: nothing chosen."""
VALUES: list[Any] = [["fr", "de"], ["it", "en", "de"], ["xx"], None, ["pl", "pl", "zz"]]
TRUTH = {"de": 0.4, "en": 0.2, "fr": 0.2, "it": 0.0, "nl": 0.0, "pl": 0.2}
"""Of `VALUES`: the second has one choice too many."""


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (["fr", "de"], (0, 2)),
        ("fr|de", (0, 2)),
        (" fr | xx |", (2,)),
        (("it", "en", "de"), (0, 1)),
        (["fr", "fr"], (2,)),
        ([], ()),
        ("", ()),
        (None, ()),
        (7, ()),
        ({"de": 1}, ()),
        ([None, ["de"], 3.5], ()),
        (np.array(["pl"]), (5,)),
    ],
)
def test_values_are_cleaned(value: Any, found: tuple[int, ...]) -> None:
    assert SPOKEN.clean(value) == found


def test_a_value_that_raises_is_nothing_chosen() -> None:
    class Angry:
        def __iter__(self) -> Any:
            raise RuntimeError("no")

    assert SPOKEN.clean(Angry()) == ()


def test_different_choices_are_different_inputs() -> None:
    family = SURVEY.channels[0].family  # type: ignore[attr-defined]
    assert isinstance(family, PrivSet)
    for value, members in ((None, (6, 7)), (["en"], (1, 6)), (["en", "pl"], (1, 5))):
        assert family.members(SPOKEN.encode(value, 0) >> 16) == members


@pytest.mark.parametrize(
    ("categories", "at_most"),
    [
        (["a"], 1),
        (["a", "a"], 1),
        (["a", "b|c"], 1),
        (["a", " "], 1),
        (["a", "b"], 3),
        (["a", "b"], 0),
        (range(1000), 9),
    ],
)
def test_what_is_not_allowed(categories: Any, at_most: Any) -> None:
    with pytest.raises(InvalidInput, match="dimension 'x'"):
        Selection("x", categories, at_most)


def test_documents() -> None:
    assert dimension_from_dict(SPOKEN.to_dict()) == SPOKEN
    assert Survey.from_json(SURVEY.to_json()).fingerprint == SURVEY.fingerprint
    with pytest.raises(FormatError):
        dimension_from_dict({**SPOKEN.to_dict(), "default": "de"})


def check_answer(tally: Tally) -> None:
    """All within 7 standard errors (false alarm 3e-12 for each number)."""
    found = tally.estimate()
    chosen = found.of("chosen")
    assert chosen.categories == SPOKEN.categories
    truth = np.array(list(TRUTH.values()))
    assert (np.abs(chosen.value - truth) < 7 * chosen.standard_error).all()
    number = found.of("number chosen")
    assert abs(number.value[0] - truth.sum()) < 7 * number.standard_error[0]


def test_on_the_device() -> None:
    client = Client(SURVEY)
    check_answer(Tally(SURVEY).add(client.report({"spoken": value}) for value in USABLE * 400))


def test_files_of_every_kind(tmp_path: Path) -> None:
    """Lists in Parquet and JSON lines, strings in CSV: the same answer and the same data-quality report."""
    rows = VALUES * 1000
    pq.write_table(pa.table({"spoken": rows}), tmp_path / "r.parquet")
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({"spoken": row}) + "\n" for row in rows))
    texts = ["|".join(row or []) for row in rows]
    (tmp_path / "r.csv").write_text("spoken,other\n" + "".join(f"{text},1\n" for text in texts))
    for name in ("r.parquet", "r.jsonl", "r.csv"):
        records = tmp_path / name
        quality = Local().data_quality(records, SURVEY)
        expected = {
            "column": "spoken",
            "read": 5000,
            "missing": 0 if name == "r.csv" else 1000,  # an empty field means that nothing is chosen
            "unknown": 1000,
            "low": 1000,  # one choice is known and one is not
            "high": 1000,
        }
        assert quality.rows() == [expected]
        notes = " ".join(quality.notes())
        assert "partly unknown and only the known categories count" in notes
        assert "more than 2 choices" in notes
        assert "none of the categories" in notes
        tally = Tally(SURVEY)
        for block in Local().reports(records, SURVEY, on_quality=lambda quality: None):
            tally.add_block(block)
        check_answer(tally)


def test_columns_without_a_known_choice_are_named() -> None:
    records = pa.table({"spoken": [["xx"], ["yy"]] * 50})
    assert "no usable value" in Local().data_quality(records, SURVEY).unusable()[0]
    assert not Local().data_quality(pa.table({"spoken": [["de", "en", "fr"]] * 9}), SURVEY).unusable()


def test_a_matrix_is_refused() -> None:
    with pytest.raises(InvalidInput, match="column of lists"):
        list(Local().reports(np.zeros((3, 1)), SURVEY))


def test_beside_other_dimensions() -> None:
    """Reports are padded alike, and every dimension is answered."""
    schema = Schema([Numeric("age", 0, 100), SPOKEN, Categorical("pet", ["cat", "dog"])])
    survey = Survey(schema, epsilon=3.0)
    records = pa.table({"age": [30.0] * 3000, "spoken": [["en"]] * 3000, "pet": ["dog"] * 3000})
    tally = Tally(survey)
    for block in Local().reports(records, survey):
        tally.add_block(block)
    found = tally.estimate()
    assert found.statistics == ("mean", *["chosen"] * 6, "number chosen", "frequency", "frequency")
    low, high = found.interval(1 - 1e-12)
    truth = np.array([30, 0, 1, 0, 0, 0, 0, 1, 0, 1])
    assert ((low < truth) & (truth < high)).all()


def test_no_and_one_report() -> None:
    nothing = Tally(SURVEY).estimate()
    assert np.isnan(nothing.value).all()
    one = Tally(SURVEY).add([Client(SURVEY).report({"spoken": []})]).estimate()
    assert np.isfinite(one.value).all()
    assert np.isnan(one.standard_error).all()


def test_the_error_of_the_number_chosen() -> None:
    """Seeded: all users chose the same number, where the standard error is exact. 400 collections, within 10 %."""
    channel: Any = SURVEY.channels[0]
    rng = np.random.default_rng(5)
    outputs = list(channel.outputs())
    law = np.array([float(channel.probability(3, z)) for z in outputs])
    per = np.zeros((len(outputs), channel.n_counters), np.int64)
    for row, z in enumerate(outputs):
        per[row, list(z)] = 1
    drawn = rng.multinomial(1000, law / law.sum(), 400) @ per
    found = np.array([channel.response.number(counts) for counts in drawn])
    errors = np.sqrt(channel.response.number_variance(found.clip(0, channel.family.most)) / 1000)
    assert found.std() == pytest.approx(errors.mean(), rel=0.1)


def test_the_audit_attacks_sets() -> None:
    """False-alarm rate 1e-6; with 100,000 draws each the bound is within a third of the truth."""
    found = audit(SURVEY, draws=100_000)
    assert found.passed
    assert found.findings[0].epsilon_attacked > 2.0


OPTIONAL = Selection("spoken", ["de", "en"], at_most=2, optional=True)
OPTIONAL_SURVEY = Survey(Schema([OPTIONAL]), epsilon=4.0)
ASKED: list[Any] = [["de"], ["en", "de"], None, [], ["xx"]]
"""Of these, "de" is chosen by 0.4, "en" by 0.2, and 0.4 have no known value."""


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, (2,)),
        ("", (2,)),
        (" ", (2,)),
        (float("nan"), (2,)),
        (["xx"], (2,)),
        ({"de": 1}, (2,)),
        ("missing", (2,)),
        ([], ()),
        ("|", ()),
        ([None], ()),
        (["de", "xx"], (0,)),
        ("en|de", (0, 1)),
    ],
)
def test_a_missing_selection_is_a_category_of_its_own(value: Any, found: tuple[int, ...]) -> None:
    assert OPTIONAL.clean(value) == found


def test_documents_of_an_optional_selection() -> None:
    assert OPTIONAL.to_dict() == {
        "name": "spoken",
        "type": "selection",
        "categories": ["de", "en"],
        "at_most": 2,
        "optional": True,
    }
    assert dimension_from_dict(OPTIONAL.to_dict()) == OPTIONAL
    assert Survey.from_json(OPTIONAL_SURVEY.to_json()).fingerprint == OPTIONAL_SURVEY.fingerprint
    assert "optional" not in SPOKEN.to_dict()
    for wrong in ({"at_most": 3}, {"optional": 1}, {"categories": ["de", "missing"]}):
        with pytest.raises(InvalidInput, match="dimension 'spoken'"):
            dimension_from_dict({**OPTIONAL.to_dict(), **wrong})


def check_optional(tally: Tally) -> None:
    """All within 7 standard errors (false alarm 3e-12 for each number)."""
    found = tally.estimate()
    assert found.of("chosen").categories == ("de", "en", "missing")
    truth = np.array([0.4, 0.2, 0.4, 0.6])  # the number chosen does not count "missing"
    assert (np.abs(found.value - truth) < 7 * found.standard_error).all()


def test_optional_on_the_device() -> None:
    client = Client(OPTIONAL_SURVEY)
    check_optional(Tally(OPTIONAL_SURVEY).add(client.report({"spoken": value}) for value in ASKED * 400))


def test_optional_in_batches_and_files(tmp_path: Path) -> None:
    rows = ASKED * 1000
    pq.write_table(pa.table({"spoken": rows}), tmp_path / "r.parquet")
    (tmp_path / "r.jsonl").write_text("".join(json.dumps({"spoken": row}) + "\n" for row in rows))
    texts = ["" if row is None else "|".join(row) or "|" for row in rows]
    (tmp_path / "r.csv").write_text("spoken,other\n" + "".join(f"{text},1\n" for text in texts))
    for records in (
        pa.table({"spoken": rows}),
        *(tmp_path / f"r.{end}" for end in ("parquet", "jsonl", "csv")),
    ):
        quality = Local().data_quality(records, OPTIONAL_SURVEY)
        counts = {"read": 5000, "missing": 1000, "unknown": 1000, "low": 0, "high": 0}
        assert quality.rows() == [{"column": "spoken", **counts}]
        assert len(quality.notes()) == 1
        assert "count as missing" in quality.notes()[0]
        tally = Tally(OPTIONAL_SURVEY)
        for block in Local().reports(records, OPTIONAL_SURVEY, on_quality=lambda quality: None):
            tally.add_block(block)
        check_optional(tally)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"de": 1}]),
        pa.array([[{"de": 1}]]),
        pa.array([True]),
        pa.array([[True]]),
        pa.array([1.5]),
        pa.array([7]),
        pa.array([7], pa.timestamp("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_that_can_hold_no_choices_are_refused_by_their_type(column: Any) -> None:
    with pytest.raises(InvalidInput) as error:
        Local().data_quality(pa.table({"spoken": column}), SURVEY)
    assert f"column 'spoken' is of type {column.type}: lists of categories" in str(error.value)


def test_numbers_and_booleans_may_be_categories() -> None:
    for categories, values in (([1, 2], [1, 2]), (["true", "x"], [True, None]), ([1, 2], [[1], [2, 1]])):
        survey = Survey(Schema([Selection("s", categories, 2)]), epsilon=4.0)
        assert Local().data_quality(pa.table({"s": values}), survey).rows()[0]["unknown"] == 0
