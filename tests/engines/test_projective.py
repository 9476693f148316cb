"""Projective channels for many users: the kernel equals the formula, and errors match the predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from hdr4me.channels import KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.oracles import projective, space_oracle
from hdr4me.channels.projective import Projective, n_points
from hdr4me.channels.projective.response import ProjectiveResponse
from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.mechanisms.categorical import categorical_channel
from hdr4me.statistics.calibrate import indicator_moments
from hdr4me.survey import Categorical, Schema, Survey
from hdr4me.tally import Tally


class Seeded:
    """Draws for many users from a seeded generator, kept to be drawn again one by one."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.drawn: list[NDArray[Any]] = []

    def words(self, n: int) -> NDArray[np.uint32]:
        self.drawn.append(self.rng.integers(0, 1 << 32, n, dtype=np.uint32))
        return self.drawn[-1]

    def below(self, bound: int, n: int = 0) -> NDArray[np.int64]:
        self.drawn.append(self.rng.integers(0, bound, n))
        return self.drawn[-1]


class Again:
    """The draws of one user."""

    def __init__(self, seeded: Seeded, user: int) -> None:
        self.left = iter([int(column[user]) for column in seeded.drawn])

    def bits(self, n: int) -> int:
        return next(self.left)

    def below(self, n: int) -> int:
        return next(self.left)


@pytest.mark.parametrize(
    ("epsilon", "v"), [(0.1, 5), (0.1, 40), (0.7, 30), (1.0, 257), (2.0, 300), (4.0, 900), (7.0, 300)]
)
def test_the_kernel_is_the_plain_formula(epsilon: float, v: int) -> None:
    channel = projective(epsilon, v)
    inputs = np.random.default_rng(1).integers(0, v, 800)
    draws = Seeded(2)
    outputs = channel.response.sample(inputs, draws)  # type: ignore[arg-type]
    for user, x in enumerate(inputs.tolist()):
        assert channel.sample(x, Again(draws, user)) == tuple(outputs[user].tolist())


@pytest.mark.parametrize(("q", "t"), [(8, 4), (9, 3), (16, 3), (27, 2), (49, 2), (256, 2), (4099, 2)])
def test_the_kernel_in_fields_of_every_kind(q: int, t: int) -> None:
    """Powers of two and of odd primes, and a prime beyond the table of inverses."""
    family = Projective(n_points(q, t), q, t)
    channel = KSubset("projective", 1.0, family, heaviest(1.0, family))
    inputs = np.random.default_rng(q).integers(0, family.size, 500)
    draws = Seeded(3)
    outputs = channel.response.sample(inputs, draws)  # type: ignore[arg-type]
    for user, x in enumerate(inputs.tolist()):
        assert channel.sample(x, Again(draws, user)) == tuple(outputs[user].tolist())


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (4, 3), (7, 2), (8, 2), (9, 3)])
def test_which_points_are_heavy(q: int, t: int) -> None:
    family = Projective(n_points(q, t), q, t)
    response = ProjectiveResponse(KSubset("projective", 1.0, family, heaviest(1.0, family)))
    outputs = np.arange(family.n_outputs)[:, None]
    for x in range(family.size):
        heavy = response.heavy(x, outputs)
        assert heavy.tolist() == [family.is_heavy(x, (y,)) for y in range(family.n_outputs)]


@pytest.mark.parametrize(("name", "epsilon"), [("projective", 1.0), ("projective", 4.0)])
def test_measured_errors_match_the_predictions(name: str, epsilon: float) -> None:
    """Σ (f̂ − f)² over 257 categories in 300 seeded collections of 1,000: within 2 % of V₁ + 256·V₀."""
    v, n, times = 257, 1000, 300
    channel = categorical_channel(name, epsilon, v)
    inputs = np.repeat(np.minimum(np.arange(n) // 4, 200), times)
    outputs = channel.response.sample(inputs, _secure(11))
    truth = np.bincount(inputs, minlength=v) / inputs.size
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])  # type: ignore[attr-defined]
    total = 0.0
    for k in range(times):
        at = channel.response.counters(outputs[k::times])
        counts = np.bincount(at.ravel(), minlength=channel.n_counters)
        frequency, _ = indicator_moments(channel.response.cells(counts), n, channel.response.marginal())
        total += float(((frequency - truth) ** 2).sum())
    assert total / times * n == pytest.approx((v - 1) * absent + present, rel=0.02)


def _secure(seed: int) -> Any:
    from hdr4me.kernels.exact.secure import SecureDraws

    class Generator(SecureDraws):
        def __init__(self) -> None:
            rng = np.random.default_rng(seed)

            class Stream:
                def words32(self, n: int) -> NDArray[np.uint32]:
                    return rng.integers(0, 1 << 32, n, dtype=np.uint32)

            self._stream = Stream()  # type: ignore[assignment]

    return Generator()


def test_the_error_before_rounding_is_the_channel_s() -> None:
    """W is rounded down to 32 bits: the error changes by less than 1e-6 of itself."""
    for epsilon, v in ((0.5, 100), (1.0, 4043), (3.0, 500), (6.0, 4043)):
        channel = projective(epsilon, v)
        family = channel.family
        assert isinstance(family, Projective)
        absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
        predicted = space_oracle(epsilon, v, family.order, family.length).total
        assert (v - 1) * absent + present == pytest.approx(predicted, rel=1e-6)


def test_from_records_to_an_answer() -> None:
    """On the device and in batch, 7 sigma (false alarm 3e-12 a number): both ways give the frequencies."""
    schema = Schema([Categorical("town", [f"t{i}" for i in range(400)], default="t0")])
    survey = Survey(schema, epsilon=2.0, categorical="projective")
    assert survey.channels[0].mechanism == "projective"
    assert survey.report_size == 4
    rows = [{"town": "t399"}, {"town": "t7"}, {"town": "nowhere"}] * 1000
    client = Client(survey)
    by_device = Tally(survey).add(client.report(row) for row in rows)
    by_batch = Tally(survey)
    table = pa.table({"town": [row["town"] for row in rows]})
    for block in Local().reports(table, survey, on_quality=lambda quality: None):
        by_batch.add_block(block)
    for tally in (by_device, by_batch):
        assert tally.n_reports == 3000
        found = tally.estimate().frequencies("town")
        truth = np.zeros(400)
        truth[[399, 7, 0]] = 1 / 3
        assert (np.abs(found.value - truth) < 7 * found.standard_error).all()


def test_what_is_no_point_is_not_counted() -> None:
    channel = projective(1.0, 300)
    bad = np.array([[0], [channel.n_counters - 1], [channel.n_counters]])
    good = channel.response.valid(bad)
    assert good.tolist() == [True, True, False]


@pytest.mark.parametrize("categorical", ["auto", "grr"])
def test_more_categories_than_sixteen_bits_count(categorical: str) -> None:
    """The last of 70,000 categories, at a budget at which it is nearly always reported: 1 % of the reports err."""
    v = 70_000
    survey = Survey(Schema([Categorical("id", range(v))]), epsilon=16.0, categorical=categorical)
    rows = np.full((2000, 1), v - 1.0)
    tally = Tally(survey)
    for block in Local().reports(rows, survey):
        tally.add_block(block)
    found = tally.estimate().frequencies("id").value
    assert found.argmax() == v - 1
    assert found[v - 1] == pytest.approx(1.0, abs=0.1)
