"""The commands `plan` and `analyze`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.mechanisms import registry
from hdr4me.mechanisms.duchi import Duchi

CASE = (
    *("analyze", "--epsilon", "0.1", "--users", "10000", "--dims", "100", "--sampled", "100"),
    *("--values", "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1.0"),
    *("--tolerance", "0.001,0.01,0.05,0.1", "--json"),
)


def test_analyze_the_case_study(run: Callable[..., Any]) -> None:
    found = run(*CASE, "--mechanism", "piecewise").json
    assert found["variance"] == pytest.approx(533.210352970, rel=1e-10)
    assert found["mse"] == found["variance"]
    assert found["epsilon_per_value"] == pytest.approx(0.001)
    assert found["reports_per_dimension"] == 10_000
    assert list(found["probability_within"]) == ["0.001", "0.01", "0.05", "0.1"]
    assert found["probability_within"]["0.05"] == pytest.approx(0.00172767, rel=2e-6)


def test_analyze_laplace_has_the_right_bound(run: Callable[..., Any]) -> None:
    arguments = (
        "analyze",
        "--mechanism",
        "laplace",
        "--epsilon",
        "1",
        "--users",
        "1000",
    )
    assert run(*arguments, "--json").json["berry_esseen"] == pytest.approx(0.02691215, abs=5e-9)


def test_analyze_in_words(run: Callable[..., Any]) -> None:
    small_sample = run(
        "analyze",
        "--mechanism",
        "duchi",
        "--epsilon",
        "1",
        "--users",
        "20",
        "--tolerance",
        "0.5",
        "--values",
        "uniform",
    )
    assert small_sample.code == 0
    assert "P(one within ±0.5)" in small_sample.out
    assert "Small sample" in small_sample.err


def test_analyze_with_many_reports_is_silent(run: Callable[..., Any]) -> None:
    many = run("analyze", "--mechanism", "duchi", "--epsilon", "1", "--users", "100000")
    assert (many.code, many.err) == (0, "")
    assert "Berry–Esseen bound" in many.out


def test_analyze_the_deployed_table(run: Callable[..., Any]) -> None:
    arguments = (
        "analyze",
        "--mechanism",
        "piecewise",
        "--epsilon",
        "1",
        "--users",
        "2000",
        "--values",
        "uniform",
        "--json",
    )
    law, table = run(*arguments).json, run(*arguments, "--discretized").json
    assert table["mse"] == pytest.approx(law["mse"], rel=5e-3)
    assert table["mse"] != law["mse"]


def test_square_wave_and_its_table_are_on_one_domain(run: Callable[..., Any]) -> None:
    """Both are on [-1, 1]; a note names the bias and the option that removes it."""
    arguments = (
        "analyze",
        "--mechanism",
        "square_wave",
        "--epsilon",
        "1",
        "--users",
        "2000",
        "--values",
        "uniform",
    )
    law, table = (run(*arguments, "--json", *more).json for more in ((), ("--discretized",)))
    assert law["domain"] == table["domain"] == [-1.0, 1.0]
    assert table["mse"] > law["mse"]  # the bias is removed, which increases the variance
    assert "square_wave is biased, and margins include the bias" in run(*arguments).err


def test_analyze_in_the_units_of_the_data(run: Callable[..., Any], plain: Callable[..., str]) -> None:
    """Ages from 0 to 120: a unit of [-1, 1] is 60 years."""
    common = ("analyze", "--mechanism", "piecewise", "--epsilon", "1", "--users", "5000", "--json")
    scaled = run(*common, "--values", "-0.5,0.25", "--tolerance", "0.05").json
    years = run(*common, "--values", "30,75", "--tolerance", "3", "--range", "0:120").json
    assert years["domain"] == [0, 120]
    for name, unit in (("mse", 3600), ("variance", 3600), ("mse_sd", 3600), ("tolerance_95", 60)):
        assert years[name] == pytest.approx(unit * scaled[name], rel=1e-12)
    assert years["norm"]["sd"] == pytest.approx(60 * scaled["norm"]["sd"], rel=1e-12)
    assert years["probability_within"]["3"] == pytest.approx(scaled["probability_within"]["0.05"], rel=1e-12)
    biased = ("analyze", "--mechanism", "square_wave", "--epsilon", "1", "--users", "5000", "--json")
    assert run(*biased, "--range", "0:120").json["bias"] == pytest.approx(60 * run(*biased).json["bias"])
    for range_, says in (
        ("0-120", "two numbers"),
        ("5:5", "the smaller one first"),
        ("nan:1", "two numbers"),
    ):
        assert says in plain(run(*common, "--range", range_))
    assert "--values 130 is not allowed" in plain(run(*common, "--range", "0:120", "--values", "130"))


def test_a_biased_law_without_an_affine_mean_is_analyzed(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cubic(Duchi):
        def mean(self, t: Any) -> Any:
            return np.asarray(t, dtype=np.float64) ** 3

        def parts(self, t: Any) -> Any:
            return super().parts(t**3)

    monkeypatch.setitem(registry._known, "cubic", registry.Registered("cubic", Cubic))
    arguments = ["analyze", "--mechanism", "cubic", "--epsilon", "1", "--users", "1000", "--values", "0.5"]
    assert run(*arguments, "--json").json["bias"] == pytest.approx(0.5**3 - 0.5)
    assert "cubic is biased" in run(*arguments).err


def test_one_dimension_is_reported_by_default(run: Callable[..., Any]) -> None:
    found = run(
        "analyze", "--mechanism", "duchi", "--epsilon", "1", "--users", "2000", "--dims", "10", "--json"
    ).json
    assert found["reports_per_dimension"] == 200
    assert found["epsilon_per_value"] == 1.0


FLIGHTS = """{"dimensions": [{"name": "delay", "type": "numeric", "low": -30, "high": 210},
{"name": "distance", "type": "numeric", "low": 0, "high": 3000}]}"""


def test_tolerances_by_name_are_in_own_units(run: Callable[..., Any], tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(FLIGHTS)
    base = ("plan", "--schema", schema, "--users", 200_000, "--epsilon", 2, "--mechanism", "piecewise")
    found = run(*base, "--tolerance", "delay=5", "--json").json
    assert found["tolerances"] == {"delay": 5.0}
    assert found["tolerance"] == pytest.approx(5 / 120)
    assert list(found["own_units"]) == ["delay"]  # nothing was asked of the distance
    words = run(*base)
    assert "margins of error in the units of each dimension" in words.out
    for bad in ("delay=", "=5", "delay=soon", "nothing=5"):
        assert "tolerance" in run(*base, "--tolerance", bad).err


def test_a_file_of_values_is_a_prior(run: Callable[..., Any], tmp_path: Path) -> None:
    schema, data = tmp_path / "schema.json", tmp_path / "values.csv"
    schema.write_text(FLIGHTS)
    data.write_text("delay\n" + "\n".join(str(20 + k % 7) for k in range(200)) + "\n")
    base = (
        "plan",
        "--schema",
        schema,
        "--users",
        200_000,
        "--epsilon",
        2,
        "--mechanism",
        "piecewise",
        "--json",
    )
    narrow, even = run(*base, "--prior", data).json, run(*base).json
    assert narrow["prior"] == "given"
    assert narrow["options"][0]["mse"] < even["options"][0]["mse"]
    assert "--prior" in run(*base, "--prior", "nowhere.csv").err


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "--mechanism", "magic", "--epsilon", "1", "--users", "9"),
        ("analyze", "--mechanism", "duchi", "--epsilon", "0", "--users", "9"),
        ("analyze", "--mechanism", "duchi", "--epsilon", "1", "--users", "9", "--sampled", "0"),
        ("analyze", "--mechanism", "duchi", "--epsilon", "1", "--users", "9", "--values", "a,b"),
        ("analyze", "--mechanism", "duchi", "--epsilon", "1", "--users", "9", "--tolerance", "-1"),
        ("plan", "--dims", "5"),
        ("plan", "--users", "5", "--dims", "5", "--epsilon", "-1"),
        ("plan", "--users", "5", "--dims", "5", "--epsilon", "1", "--output", "x.json"),
        ("plan", "--users", "5", "--schema", "nowhere.json", "--epsilon", "1"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], plain: Callable[..., str]) -> None:
    plain(*arguments)


def test_plan_as_json(run: Callable[..., Any]) -> None:
    found = run("plan", "--users", "150000", "--dims", "750", "--epsilon", "1", "--json").json
    assert found["reachable"] is True
    errors = [option["mse"] for option in found["options"]]
    assert errors == sorted(errors)
    assert found["options"][0]["sampled"] == 1
    assert found["summary"].startswith("With 150,000 users and ε = 1, each of 750 means will be within ±0.2")


def test_plan_in_words(run: Callable[..., Any]) -> None:
    found = run(
        "plan",
        "--users",
        "5000",
        "--dims",
        "300",
        "--epsilon",
        "1",
        "--tolerance",
        "0.1",
        "--per-dimension",
        "-v",
    )
    assert found.code == 1
    assert "probability; ±" in found.err
    assert "square_wave (biased)" in found.out


def test_a_plan_without_any_bound_prints_no_infinite_number(run: Callable[..., Any]) -> None:
    shown = run("plan", "--users", "10", "--dims", "1000", "--epsilon", "0.1")
    assert "no bound holds for each of 1,000 means" in shown.out
    assert "no bound" in shown.out.splitlines()[-2]
    assert "inf" not in shown.out.replace("information", "")


def test_not_reachable_is_an_answer(run: Callable[..., Any]) -> None:
    arguments = (
        "plan",
        "--users",
        "100",
        "--dims",
        "50",
        "--epsilon",
        "1",
        "--tolerance",
        "0.01",
        "--probability",
        "0.9",
    )
    words, document = run(*arguments), run(*arguments, "--json")
    assert words.code == document.code == 1
    assert words.err.startswith("With 100 users")
    assert document.json["reachable"] is False
    nearest = document.json["nearest"]["options"][0]
    assert nearest["tolerance_joint"] is None  # with two answers per dimension, some dimension has none
    assert nearest["small_sample"] is True
    assert "probability; there are too few answers" in words.err


EVERYTHING = ("plan", "--users", "20000", "--dims", "50", "--epsilon", "1", "--tolerance", "0.05")


def test_everything_given_is_checked_at_95_percent(run: Callable[..., Any], tmp_path: Path) -> None:
    """The probability's default is as good as a typed one: same verdict, same message, same nearest plan."""
    implied, typed = run(*EVERYTHING, "--json"), run(*EVERYTHING, "--probability", "0.95", "--json")
    assert implied.code == typed.code == 1
    assert implied.json["reachable"] is typed.json["reachable"] is False
    assert implied.json["message"] == typed.json["message"]
    assert implied.json["nearest"] == typed.json["nearest"]
    assert implied.json["tolerance"] == 0.05
    assert "±0.05 is not reached" in implied.json["summary"]
    page = tmp_path / "plan.html"
    words = run(*EVERYTHING, "--output", page)
    assert words.code == 1
    assert words.err.startswith("With 20,000 users")
    assert f"wrote {page}\n" in words.err
    assert "&lt; 0.001" in page.read_text("utf-8")
    assert "e-2" not in page.read_text("utf-8").split("Best mechanisms")[1]
    wide = run("plan", "--users", "20000", "--dims", "50", "--epsilon", "1", "--tolerance", "0.5", "--json")
    assert (wide.code, wide.json["reachable"]) == (0, True)


def test_no_survey_for_what_is_not_reached(run: Callable[..., Any], collected: Any, tmp_path: Path) -> None:
    survey = tmp_path / "survey.json"
    found = run(
        *("plan", "--schema", collected.schema, "--users", 100, "--epsilon", 1, "--tolerance", 0.01),
        *("--mechanism", "duchi", "--output", survey),
    )
    assert found.code == 1
    assert f"{survey} is not written" in found.err
    assert not survey.exists()


SMALL = ("plan", "--users", "100", "--dims", "2", "--epsilon", "1")
ONE = ("analyze", "--mechanism", "piecewise", "--epsilon", "1", "--users", "100")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan", "--tolerance", "0.05"), "--users, --dims and --epsilon are missing"),
        (
            ("plan", "--users", "9", "--dims", "5"),
            "--epsilon or --tolerance is missing: give one of them",
        ),
        (("plan", "--user", "9"), "No such option: --user; did you mean '--users'?"),
        (("plan", "--users", "0", "--dims", "5", "--epsilon", "1"), "--users 0 is not allowed"),
        ((*SMALL, "--mechanism", "users"), "--mechanism 'users' is not allowed"),
        ((*SMALL, "--output", "p.txt"), "--output p.txt is not allowed: its name must end in .json, .html"),
        (
            (*SMALL, "--output", "p.svg", "--output", "./p.svg"),
            "--output p.svg is not allowed: p.svg has the same format",
        ),
        ((*SMALL, "--output", ""), "--output . is not allowed: its name must end in"),
        ((*ONE, "--tolerance", ""), "--tolerance '' is not allowed: numbers"),
        ((*ONE, "--tolerance", "nan"), "--tolerance nan is not allowed: numbers >= 0"),
        ((*ONE, "--dims", "0"), "--dims 0 is not allowed"),
        (
            (*ONE, "--dims", "3", "--sampled", "4"),
            "--sampled 4 is not allowed: at most the number of dimensions, 3",
        ),
        ((*ONE, "--values", "7"), "--values 7 is not allowed: piecewise accepts values in [-1, 1]"),
        ((*ONE, "--values", "0.5,nan"), "--values nan is not allowed: finite numbers"),
    ],
)
def test_messages_name_options(arguments: tuple[str, ...], says: str, plain: Callable[..., str]) -> None:
    assert plain(*arguments).startswith(f"hdr4me: {says}")


def test_plan_draws_and_writes(run: Callable[..., Any], collected: Any, tmp_path: Path) -> None:
    survey, page, picture = tmp_path / "survey.json", tmp_path / "plan.html", tmp_path / "plan.png"
    found = run(
        *("plan", "--schema", collected.schema, "--users", 1000, "--epsilon", 1, "--mechanism", "duchi"),
        *("--categorical", "grr", "--output", survey, "--output", page, "--output", picture, "--json"),
    )
    assert found.code == 0
    assert run("survey", survey, "--json").json["epsilon"] == 1
    text = page.read_text("utf-8")
    assert "<svg" in text
    assert "highest probability of staying within a tolerance" in text
    only = ("plan", "--users", 1000, "--dims", 3, "--epsilon", 1, "--mechanism", "duchi")
    for suffix in ("svg", "html"):
        other = tmp_path / f"other.{suffix}"
        lines = run(*only, "--output", other).err.splitlines()
        assert lines[0] == f"wrote {other}"
        assert len(lines) == 2  # and one note
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_figure_is_written_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run) -> None:
    picture = tmp_path / "p.png"
    picture.write_bytes(b"the old one")

    def half(self: object, path: Path, **_: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    assert run(*SMALL, "--output", picture).code == 2
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("p.png", b"the old one")]


def test_singular_nouns(run: Callable[..., Any]) -> None:
    """No "1 dimensions": a plan for one user and one dimension, and the survey of one dimension."""
    outcome = run("plan", "--users", 1, "--dims", 1, "--epsilon", 1, "-v")
    said = outcome.out + outcome.err
    for noun in ("user", "dimension", "answer"):
        assert f" 1 {noun}" in said
        assert f" 1 {noun}s" not in said
    shown = repr(hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]), 1.0, "duchi"))
    assert ": 1 dimension, " in shown
    assert "1 of 1 question answered" in shown
