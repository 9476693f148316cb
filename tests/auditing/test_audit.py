"""The audit proves the declared ε, and its attack detects a sampler that does not follow its table."""

import math

import numpy as np
import pytest

from hdr4me.auditing import auditor
from hdr4me.auditing.auditor import ALARM, attack, audit
from hdr4me.channels import Channel
from hdr4me.channels.proof import exp_lower
from hdr4me.survey import Categorical, Numeric, Schema, Survey

SCHEMA = Schema([Numeric("x", 0, 1), Categorical("c", ["a", "b", "d"]), Categorical("e", list("abcdefgh"))])


@pytest.mark.parametrize("categorical", ["grr", "subset", "projective", "oue", "histogram"])
@pytest.mark.parametrize("mechanism", ["optimal", "duchi", "laplace"])
def test_a_correct_survey_passes(mechanism: str, categorical: str) -> None:
    """False-alarm rate at most ALARM = 1e-6 a channel; the draws are the system's.

    A correct channel fails only if its bound exceeds the declared budget.
    """
    survey = Survey(SCHEMA, epsilon=2.0, mechanism=mechanism, sampled=2, categorical=categorical)
    found = audit(survey, draws=50_000)
    assert found.passed
    assert found.likelihood_ratio <= exp_lower(2.0)
    assert found.epsilon_proven <= 2.0 * (1 + 1e-12)
    for finding in found.findings:
        assert finding.epsilon_attacked <= finding.epsilon_declared
        assert finding.epsilon_proven <= finding.epsilon_declared * (1 + 1e-12)
    assert sum(finding.dims for finding in found.findings) == 3


def test_the_attack_is_close_to_the_true_loss() -> None:
    """Duchi's two cells have the loss e^1 exactly; with a million draws the bound is within 5 % of it."""
    survey = Survey(Schema([Numeric("x", 0, 1)]), epsilon=1.0, mechanism="duchi")
    assert 0.95 < attack(survey.channels[0], 1_000_000) <= 1.0


def test_a_sampler_that_leaks_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that follows the table for twice the budget: the proof passes, the attack does not."""
    declared = Survey(Schema([Numeric("x", 0, 1)]), epsilon=1.0, mechanism="duchi").channels[0]
    rng = np.random.default_rng(3)
    p = 1 / (1 + math.exp(-2.0))

    def leaky(channel: Channel, x: int, draws: int) -> np.ndarray:
        return np.where(rng.random(draws) < p, x, 1 - x)[:, None]

    monkeypatch.setattr(auditor, "answers_of", leaky)
    assert attack(declared, 100_000) > 1.9


def test_the_attack_finds_nothing_at_a_tiny_epsilon() -> None:
    survey = Survey(Schema([Numeric("x", 0, 1)]), epsilon=1e-4, mechanism="duchi")
    assert attack(survey.channels[0], 2000) == 0.0
    assert ALARM == 1e-6
