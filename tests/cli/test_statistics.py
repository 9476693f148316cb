"""`hdr4me estimate` beyond means, and `hdr4me refine`, as a user would call them."""

from __future__ import annotations

import csv
import io

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports of 3,000 users about two numbers and a category, all answered, and their tally."""
    from hdr4me.cli import main

    where = tmp_path_factory.mktemp("statistics")
    (where / "schema.toml").write_text(
        '[[dimensions]]\nname = "age"\nlow = 0\nhigh = 120\n[[dimensions]]\nname = "income"\nlow = 0\nhigh = 100\n'
        '[[dimensions]]\nname = "region"\ncategories = ["north", "south"]\n'
    )
    lines = ["age,income,region"]
    lines += [f"{30 + i % 40},{40 + (i % 40) / 2},{'north' if i % 3 else 'south'}" for i in range(3000)]
    (where / "people.csv").write_text("\n".join(lines) + "\n")
    for command in (
        "survey schema.toml --epsilon 30 --sampled 3 --mechanism piecewise -o survey.json",
        "perturb survey.json people.csv -o reports.parquet",
        "tally survey.json reports.parquet -o day.tally --count-pair age,income --count-pair age,region",
        "survey schema.toml --epsilon 4 --mechanism duchi -o duchi.json",
    ):
        words = [str(where / word) if "." in word else word for word in command.split()]
        assert main(words) == 0, command
    return where


def test_quantiles_histograms_and_variances(run, folder):
    """Ten per answer of epsilon: the noise is far below what is asserted, with no seed."""
    asked = ("--quantiles", "0.5,0.9", "--histogram", "age=0,60,120", "--variance", "--json")
    outcome = run("estimate", folder / "day.tally", *asked)
    rows = {(r["statistic"], r["dimension"], r["category"]): r for r in outcome.json["rows"]}
    assert rows["quantile", "age", "0.5"]["estimate"] == pytest.approx(49.5, abs=4)
    assert rows["histogram", "age", "0 to 60"]["estimate"] == pytest.approx(0.75, abs=0.1)
    assert ("histogram", "income", "0 to 60") not in rows
    assert rows["sd", "age", None]["estimate"] == pytest.approx(11.5, abs=2)
    short = run("estimate", folder / "day.tally", "--quantiles", "0.5", "--interval", "approximate").out
    assert "quantile" in short


def test_correlation_and_groups_from_pairs_and_from_reports(run, folder):
    """The correlation's standard deviation over runs is 0.033: a false alarm in about 10^18."""
    asked = ("--correlation", "age,income", "--by", "region", "--json")
    from_pairs = run("estimate", folder / "day.tally", "--pair-counts", folder / "day.tally.pairs", *asked)
    from_reports = run("estimate", folder / "reports.parquet", "--survey", folder / "survey.json", *asked)
    assert "has no joint counts with region of income" in from_pairs.err
    first, second = (
        {(r["statistic"], r["dimension"], r["category"]): r["estimate"] for r in outcome.json["rows"]}
        for outcome in (from_pairs, from_reports)
    )
    assert first["correlation", "age", "income"] == pytest.approx(1.0, abs=0.3)
    assert first.items() <= second.items()  # the same integers, so the same numbers
    assert ("mean_by", "income", "north") in second


def test_the_product_of_two_numbers_from_schema_to_correlation(run, folder):
    """30 an answer of epsilon: the covariance is known to 1 % of itself, so no seed is needed (20 standard errors)."""
    text = (folder / "schema.toml").read_text()
    (folder / "product.toml").write_text(
        text + '[[dimensions]]\nname = "age × income"\nproduct = ["age", "income"]\n'
    )
    made = run("survey", folder / "product.toml", "--epsilon", "30", "-o", folder / "p.json")
    assert made.code == 0, made.err
    run("perturb", folder / "p.json", folder / "people.csv", "-o", folder / "p.parquet")
    run("tally", folder / "p.json", folder / "p.parquet", "-o", folder / "p.tally")
    rows = run("estimate", folder / "p.tally", "--correlation", "age,income", "--json").json["rows"]
    found = {(row["statistic"], row["dimension"]): row for row in rows}
    assert found["correlation", "age"]["estimate"] == pytest.approx(1.0, abs=0.3)
    assert found["mean", "age × income"]["answers"] < 3000


def test_a_plan_for_a_statistic_and_for_two_rounds(run, plain, folder):
    asked = (
        "plan",
        "--users",
        "50000",
        "--dims",
        "1",
        "--epsilon",
        "1",
        "--mechanism",
        "duchi",
        "--mechanism",
        "piecewise",
    )
    found = run(*asked, "--statistic", "quantile", "--quantiles", "0.5,0.9", "--json").json
    assert (found["statistic"], found["options"][0]["mechanism"]) == ("quantile", "piecewise")
    assert 0.002 < found["statistic_errors"][0] < 0.1
    assert "the root mean square error of a quantile is" in run(*asked, "--statistic", "quantile").out
    assert "--statistic 'mode' is not allowed" in plain(*asked, "--statistic", "mode")
    assert "--quantiles 'x' is not allowed" in plain(*asked, "--statistic", "quantile", "--quantiles", "x")
    (folder / "few.csv").write_text("age\n" + "\n".join(str(58 + i % 5) for i in range(200)) + "\n")
    (folder / "age.toml").write_text('[[dimensions]]\nname = "age"\nlow = 0\nhigh = 120\n')
    two = ("plan", "--users", "40000", "--schema", folder / "age.toml", "--epsilon", "4", "--second-round")
    message = run(*two, "--prior", folder / "few.csv", "--json").json["second_round"]
    assert message[0]["gain"] > 2
    assert message[0]["control"] > 0
    assert message[0]["standard_error_of_two"] < message[0]["standard_error"]
    assert "gains nothing" in run(*two).err
    assert "two rounds" in run(*two).out
    small = (*two[:6], "0.5", *two[7:])
    assert "would not give narrower" in run(*small, "--prior", folder / "few.csv").err
    assert "needs numeric dimensions" in plain(*asked[:-4], "--category-count", "3", "--second-round")


def test_pictures_and_csv(run, folder):
    page, picture, table = (folder / name for name in ("out.html", "out.png", "out.csv"))
    files = ("--output", page, "--output", picture, "--output", table)
    outcome = run("estimate", folder / "day.tally", "--quantiles", "0.5", "--interval", "approximate", *files)
    assert outcome.code == 0
    assert "<svg" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {row["statistic"] for row in rows} == {"mean", "frequency", "quantile"}


def test_a_second_round(run, folder):
    outcome = run("refine", folder / "day.tally", "-o", folder / "round2.json", "--json")
    narrow = {row["dimension"]: row for row in outcome.json["rows"]}
    assert 0 <= narrow["age"]["next_low"] < 49.5 < narrow["age"]["next_high"] <= 120
    assert narrow["region"]["range_kept"] is None
    assert run("refine", folder / "day.tally", "-o", folder / "round2.json").code == 0
    run("perturb", folder / "round2.json", folder / "people.csv", "-o", folder / "reports2.parquet")
    run("tally", folder / "round2.json", folder / "reports2.parquet", "-o", folder / "second.tally")
    both = run("estimate", folder / "day.tally", "--later-round", folder / "second.tally", "--json").json
    age = next(row for row in both["rows"] if row["dimension"] == "age")
    assert age["estimate"] == pytest.approx(49.5, abs=2)
    assert age["answers"] == 6000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--quantiles", "a"], "--quantiles 'a' is not allowed"),
        (["--quantiles", "1.5"], "--quantiles [1.5] is not allowed"),
        (["--histogram", "age=5,1"], "--histogram [5.0, 1.0] is not allowed"),
        (["--correlation", "age"], "two names separated by a comma"),
        (["--correlation", "age,income"], "give --pair-counts"),
        (["--by", "age"], "a categorical dimension (region)"),
        (["--later-round", "x.tally", "--variance"], "--later-round combines means"),
    ],
)
def test_bad_options_are_named(plain, folder, options, words):
    assert words in plain("estimate", folder / "day.tally", *options)


def test_statistics_that_a_channel_does_not_support(run, plain, folder):
    run("perturb", folder / "duchi.json", folder / "people.csv", "-o", folder / "duchi.parquet")
    run("tally", folder / "duchi.json", folder / "duchi.parquet", "-o", folder / "duchi.tally")
    assert "does not allow quantiles" in run("estimate", folder / "duchi.tally", "--quantiles", "0.5").err
    assert "square_wave" in plain("estimate", folder / "duchi.tally", "--histogram", "age=0,60")
    assert "no range can be narrowed" in plain("refine", folder / "duchi.tally", "-o", folder / "none.json")
    assert "each person answers one question" in plain(
        "tally",
        folder / "duchi.json",
        folder / "duchi.parquet",
        "-o",
        folder / "x.tally",
        "--count-pair",
        "age,income",
    )
    assert "two names" in plain(
        "tally",
        folder / "duchi.json",
        folder / "duchi.parquet",
        "-o",
        folder / "x.tally",
        "--count-pair",
        "age",
    )


def test_a_survey_for_distributions(run, plain, folder):
    shown = run("survey", folder / "schema.toml", "--purpose", "distribution", "--json").json
    assert "square_wave" in {channel["mechanism"] for channel in shown["channels"]}
    assert "--purpose 'fun' is not allowed" in plain("survey", folder / "schema.toml", "--purpose", "fun")


def test_long_steps_of_estimate_show_progress(run, folder, monkeypatch, tmp_path):
    """On a terminal each of these is named after two seconds; intervals report their progress by dimension."""
    from hdr4me.cli.output import Watch

    seen: list[str] = []
    now: list[tuple[int, int]] = []

    class Recorded(Watch):
        def __call__(self, label):
            seen.append(label)
            return super().__call__(label)

        def update(self, done, of):
            if seen[-1].startswith("intervals"):
                now.append((done, of))

    monkeypatch.setattr("hdr4me.cli.estimate.Watch", Recorded)
    asked = ("--quantiles", "0.5", "--histogram", "4", "--variance", "--output", tmp_path / "page.html")
    run("estimate", folder / "day.tally", *asked)
    assert seen[:3] == ["reading tallies", "estimating", "intervals"]
    assert set(seen[3:]) == {
        "fitting distributions",
        "estimating variances",
        "intervals: quantile",
        "intervals: distribution",
        "intervals: variance",
        "intervals: sd",
        "selecting rows",
        "drawing",
    }
    assert now == [(0, 2), (1, 2)] * 2


def test_rows_are_grouped_by_dimension(run, folder):
    lines = run("estimate", folder / "day.tally", "--quantiles", "0.5", "--variance").out.splitlines()
    names = [
        line.split()[0]
        for line in lines
        if line[1:2].strip() and line.split()[0] in ("age", "income", "region")
    ]
    assert names == [
        "age",
        "income",
        "region",
    ]  # once each: the other rows of a dimension follow without its name
    first = [line.split()[0] for line in lines if line.split()]
    assert first.index("quantile") < first.index("income")
