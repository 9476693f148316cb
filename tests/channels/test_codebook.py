"""Codebooks: the law by enumeration, exact draws, numbers of codewords, published errors."""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
import pytest
from scipy import stats

from hdr4me.channels import KSubset, channel_from_dict
from hdr4me.channels.codebook.channel import Codebook, lifted, mix, thresholds, values, word_levels
from hdr4me.channels.codebook.design import codebook_channel, total_error
from hdr4me.channels.codebook.response import Scores, value_variance
from hdr4me.channels.k_subset import heaviest
from hdr4me.checks import check_channel
from hdr4me.errors import FormatError, InvalidInput

SMALL = [(1, 4, 2), (2, 4, 1), (2, 6, 3)]


def channel(epsilon: float, family: Codebook) -> KSubset:
    return KSubset("codebook", epsilon, family, heaviest(epsilon, family))


@pytest.mark.parametrize(("d", "k_all", "k"), SMALL)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_law_by_enumeration(prove, d: int, k_all: int, k: int, epsilon: float) -> None:
    """Every input, every seed and every codeword of small codebooks: a law, its loss the largest ratio."""
    made = channel(epsilon, Codebook(d, k_all, k, seed_bits=1, precision=2))
    check_channel(made)
    outputs = list(made.outputs())
    largest = 0
    for x in range(made.n_inputs):
        assert sum(made.probability(x, y) for y in outputs) == 1
        heavy = [sum(made.family.is_heavy(x, (seed, i)) for i in range(k_all)) for seed in (0, 1)]
        assert heavy == [k, k]
    first, second = made.worst_pair()
    largest = max(made.probability(first, y) / made.probability(second, y) for y in outputs)
    assert largest == made.likelihood_ratio
    for x, z in product(range(0, made.n_inputs, 3), repeat=2):
        assert max(made.probability(x, y) / made.probability(z, y) for y in outputs) <= made.likelihood_ratio


class Every:
    """Draws that are given."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def bits(self, n: int) -> int:
        self.asked.append(("bits", n))
        return self.answers.pop(0)

    def below(self, n: int) -> int:
        self.asked.append(("below", n))
        return self.answers.pop(0)


@pytest.mark.parametrize("equal", [False, True])
def test_every_draw_is_another_output(equal: bool, monkeypatch) -> None:
    """All draws tried: each heavy (light) codeword of each seed comes out as often, also where scores are equal."""
    family = Codebook(2, 6, 2, seed_bits=2, precision=3)
    if equal:
        monkeypatch.setattr(Codebook, "codeword", lambda self, seed, index: (seed, seed, seed))
    for x in (0, 9, family.n_heavy, 63):
        for heavy in (True, False):
            found, shapes = [], set()
            for seed, inside, outside in product(range(4), range(2), range(4)):
                draws = Every(seed, inside, outside)
                found.append(family.draw(x, heavy, draws))
                shapes.add(tuple(draws.asked))
            assert shapes == {(("bits", 2), ("below", 2), ("below", 4))}
            times = 4 if heavy else 2
            expected = [y for y in family.outputs() if family.is_heavy(x, y) == heavy]
            assert sorted(found) == sorted(expected * times)


def test_the_numbers_of_codewords_are_fixed() -> None:
    """Reports of today must be decoded tomorrow: the generator, the levels and their values do not change."""
    assert [mix(i) for i in (1, 2, 3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert hashlib.sha256(word_levels()).hexdigest() == DIGEST
    assert Codebook(3, 16, 2).codeword(7, 5) == WORDS
    ends = thresholds()
    assert len(ends) == 257
    assert [a + b for a, b in zip(ends, reversed(ends), strict=True)] == [65536] * 257
    shares = np.diff(ends) / 65536
    assert shares @ np.array(values()) == pytest.approx(0.0, abs=1e-15)
    assert value_variance() == pytest.approx(1.0, abs=2e-4)


DIGEST = "83a4bf06b7680c03d166f78747963208dddf4d09ce007789bea582b2e9db2c6c"
WORDS = (8918, 36092, 49481, 39310)


def test_codewords_look_normal() -> None:
    """The generator is fixed, so this is no matter of luck: moments and correlations of 40,000 numbers."""
    family = Codebook(99, 400, 1)
    table = np.array(values())[np.frombuffer(word_levels(), np.uint8)]
    words = np.array([family.codeword(3, index) for index in range(400)])
    numbers = table[words]
    assert stats.kstest((words.ravel() + 0.5) / 65536, "uniform").pvalue > 1e-4
    correlation = np.corrcoef(numbers.T) - np.eye(100)
    assert np.abs(correlation).max() < 6 / np.sqrt(400)


def test_inputs_are_vectors() -> None:
    family = Codebook(3, 16, 2)
    for vector in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-0.6, 0.48, 0.64]):
        assert family.vector(family.number(vector)) == pytest.approx(vector, abs=2**-20)
    assert lifted([0.6, 0.0]) == pytest.approx([0.6, 0.0, 0.8])
    assert lifted([1.0, 1.0])[2] == 0.0


@pytest.mark.parametrize(
    ("epsilon", "k_all", "k", "most"),
    [(4.0, 1024, 67, 0.44), (8.0, 4096, 12, 0.135), (4.0, None, None, 0.44), (8.0, None, None, 0.135)],
)
def test_errors_of_a_hundred_coordinates(epsilon, k_all, k, most) -> None:
    """n·MSE for each coordinate of vectors on the sphere."""
    made = codebook_channel(epsilon, 100, k_all)
    assert total_error(made) / 100 <= most
    if k is not None:
        assert abs(made.family.to_dict()["heavy"] - k) <= 1
        assert total_error(channel(epsilon, Codebook(100, k_all, k))) / 100 <= most


@pytest.mark.parametrize(("k_all", "k"), [(8, 1), (64, 9), (1024, 67)])
def test_moments_of_scores(k_all: int, k: int) -> None:
    """E z and E z² of the sent codeword against a seeded simulation of normal scores; 5 standard errors."""
    made = channel(3.0, Codebook(10, k_all, k))
    rng = np.random.default_rng(2)
    n = 4000
    z = -np.sort(-rng.standard_normal((n, k_all)), axis=1)
    p = made.weight / 2**32
    first = p * z[:, :k].mean(axis=1) + (1 - p) * z[:, k:].mean(axis=1)
    second = p * (z[:, :k] ** 2).mean(axis=1) + (1 - p) * (z[:, k:] ** 2).mean(axis=1)
    expected = made.response.scores  # type: ignore[attr-defined]
    for sample, value in ((first, expected.first), (second, expected.second)):
        assert abs(sample.mean() - value) < 5 * sample.std() / np.sqrt(n)
    assert Scores(2.0, 5.0).contrast == pytest.approx(2.0, rel=1e-3)


def test_an_axis_is_answered_as_any_direction() -> None:
    """For a vector along an axis the scores are levels, not normal numbers: c differs by less than 2e-4.

    The mean of the k largest of K numbers drawn from the levels, exactly: Σ over levels of what lies above.
    """
    shares, at = np.diff(thresholds()) / 65536, np.array(values())
    below = np.concatenate([[0.0], np.cumsum(shares)])
    for k_all, k in ((1024, 68), (4096, 13), (128, 9)):
        exceed = 1 - below  # P(a number is at level l or above)
        i = np.arange(1, k + 1)
        tail = stats.binom.sf(
            i[:, None] - 1, k_all, exceed[None, :]
        )  # P(the i-th largest is at level l or above)
        mean = float(((tail[:, :-1] - tail[:, 1:]) @ at).mean())
        made = codebook_channel(4.0, 2, k_all)
        p, rest = 0.9, k / (k_all - k)
        axis = p * mean - (1 - p) * rest * mean
        from hdr4me.channels.codebook.response import codebook_scores

        assert axis / codebook_scores(k_all, k, p).contrast == pytest.approx(1.0, abs=2e-4)
        assert made.family.to_dict()["codewords"] == k_all


def test_a_tampered_document_is_refused() -> None:
    document = codebook_channel(4.0, 5).to_dict()
    assert channel_from_dict(document).to_dict() == document
    with pytest.raises(InvalidInput, match="leaks a factor"):
        channel_from_dict({**document, "weight": document["weight"] + 1})
    family = document["family"]
    for field, wrong in (
        ("heavy", 4000),
        ("length", 0),
        ("codewords", 1),
        ("seed_bits", 33),
        ("precision", 1),
    ):
        with pytest.raises(InvalidInput, match=field):
            channel_from_dict({**document, "family": {**family, field: wrong}})
    with pytest.raises(FormatError, match="codebook"):
        channel_from_dict({**document, "family": {"name": "codebook", "length": 5}})


def test_counts_that_no_reports_give() -> None:
    made = codebook_channel(4.0, 2)
    counts = [0] * 512
    counts[3], counts[256] = 2, 2
    assert made.n_answers(counts) == 2
    counts[256], counts[4] = 1, 1
    assert made.n_answers(counts) is None


@pytest.mark.parametrize(("epsilon", "length"), [(1.0, 8), (2.0, 16), (4.0, 8)])
def test_the_smallest_codebook_within_half_a_per_cent_is_used(epsilon: float, length: int) -> None:
    """At most 0.5 % more error than 4,096 codewords, and half of the codewords would have more."""
    made = codebook_channel(epsilon, length)
    least = total_error(codebook_channel(epsilon, length, 4096))
    size = made.family.codewords  # type: ignore[attr-defined]
    assert total_error(made) <= 1.005 * least < total_error(codebook_channel(epsilon, length, size // 2))
