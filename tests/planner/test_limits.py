"""Every ranked option can be deployed: candidates are left out beyond their limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.cli.app import app
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.categorical import categorical_channel, categorical_fits
from hdr4me.planner.reports import NEVER, entry_variances

WORDS = hd.Schema([hd.Categorical("word", [str(i) for i in range(100_000)])])


@pytest.mark.parametrize("prior", ["uniform", "worst"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 12.0])
def test_every_option_of_very_many_categories_is_a_survey(prior: str, epsilon: float) -> None:
    """Unary and histogram encoding end at 65,536 categories, randomized response where 32 bits end."""
    plan = hd.plan(schema=WORDS, users=100_000, epsilon=epsilon, prior=prior)
    assert plan.options
    for option in plan.options:
        assert option.mechanism not in ("oue", "histogram")
        assert option.survey().epsilon == epsilon


def test_the_limit_itself() -> None:
    at, above = (
        hd.plan(users=10_000, dims=1, category_count=n, epsilon=4.0, prior="worst") for n in (65_536, 65_537)
    )
    assert "histogram" in {option.mechanism for option in at}
    assert "histogram" not in {option.mechanism for option in above}
    assert entry_variances("histogram", "optimal", 4.0, 65_536)[0] < NEVER
    assert entry_variances("histogram", "optimal", 4.0, 65_537) == (NEVER, NEVER)


def test_numbers_beside_very_many_categories() -> None:
    schema = hd.Schema([hd.Numeric("x", 0, 1), *WORDS.dimensions, hd.Categorical("pet", ["cat", "dog"])])
    plan = hd.plan(schema=schema, users=100_000, epsilon=1.0, mechanisms=["duchi"])
    for option in plan.options:
        assert option.survey().sampled == option.sampled


def test_a_method_that_fits_no_dimension_is_an_error_by_name() -> None:
    asked = {"schema": WORDS, "categorical": ["oue", "histogram"]}
    with pytest.raises(InvalidInput, match=r"categorical = 'oue, histogram'.*projective.*100,000 categories"):
        hd.plan(users=1000, epsilon=1.0, **asked)
    with pytest.raises(InvalidInput, match="categorical = 'oue, histogram'"):
        hd.plan(users=1000, tolerance=0.1, **asked)


@pytest.mark.parametrize("name", ["grr", "subset", "projective", "oue", "histogram"])
def test_what_fits_has_a_channel_and_what_does_not_has_none(name: str) -> None:
    for category_count in (2, 5_000, 65_536, 65_537):
        for epsilon in (0.001, 0.5, 4.0):
            if categorical_fits(name, epsilon, category_count):
                assert categorical_channel(name, epsilon, category_count).inputs[0].size == category_count
            else:
                with pytest.raises(InvalidInput):
                    categorical_channel(name, epsilon, category_count)


def test_large_sets_do_not_fit() -> None:
    """377,541 of a million categories in a set are more fields than an answer has; "auto" uses a short report."""
    assert not categorical_fits("subset", 0.5, 1_000_000)
    assert categorical_fits("auto", 0.5, 1_000_000)


def test_the_command_line_writes_the_survey(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(WORDS.dimensions[0].categories))
    (tmp_path / "s.toml").write_text(
        '[[dimensions]]\nname = "word"\ntype = "categorical"\ncategories_file = "words.txt"\n'
    )
    command = (
        f"plan --users 100000 --schema {tmp_path}/s.toml --epsilon 4 --prior worst -o {tmp_path}/worst.json"
    )
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    assert hd.Survey.load(tmp_path / "worst.json").channels[0].mechanism == "projective"
