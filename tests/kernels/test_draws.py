"""The draws against plain NumPy references, word for word; and column sums against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.kernels.simulate.fused import (
    INTERVALS,
    LAPLACE,
    STEPS,
    TWO_INTERVALS,
    column_sums,
    draw,
    scatter_sums,
)

N = 5003
RNG = np.random.default_rng(2)
T = RNG.uniform(-1, 1, N)
WORDS = RNG.integers(0, 2**64, 2 * N, dtype=np.uint64)
WORDS[:4] = [0, 2**64 - 1, 1, 2**12]  # the ends of the range
UNIT = 1 + (WORDS >> 12).astype(np.float64) * 2.0**-52


def reference(family: int, law: np.ndarray) -> np.ndarray:
    """What each family means, in plain NumPy."""
    u = UNIT[:N]
    if family in (TWO_INTERVALS, INTERVALS):
        ends = np.array([row[3] + row[4] * T for row in law[:-1]])
        k = (u >= ends).sum(0)
        a, b, c = law[:, 0][k], law[:, 1][k], law[:, 2][k]
        return a + b * u + c * T
    sign = np.where(WORDS[:N] & np.uint64(1), 1.0, -1.0)
    exponential = -np.log(2 - u)
    if family == LAPLACE:
        return T + sign * law[0, 0] * exponential
    v = UNIT[N:]
    rate, end = law[0, 0], law[0, 1]
    a0, b0, a1, b1, step = law[1]
    size = np.where(v < end, a0 + b0 * v, a1 + b1 * v + step * np.floor(exponential * rate))
    return T + sign * size


LAWS = {
    TWO_INTERVALS: np.array([[-3.0, 2.0, 0.0, 1.4, 0.0], [0.1, 0.7, 1.5, 2.0, 0.0]]),
    INTERVALS: np.array(
        [
            [-3.0, 2.0, 0.0, 1.1, 0.0],
            [0.1, 0.7, 1.5, 1.3, 0.0],
            [4.0, 0.0, 0.0, 1.65, 0.2],
            [-4.0, 0.0, 0.0, 2.0, 0.0],
        ]
    ),
    LAPLACE: np.array([[2.5]]),
    STEPS: np.array([[3.0, 1.2, 0, 0, 0], [-0.5, 0.5, -1.0, 1.0, 2.0]]),
}


@pytest.mark.parametrize("family", LAWS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_draws_equal_the_numpy_reference(family: int, dtype: type) -> None:
    x = np.zeros(N)
    draw(family, T.astype(dtype), WORDS, LAWS[family], x)
    # 1e-14: fused multiply-add and the logarithm's last bits; t itself is rounded when single.
    tolerance = 1e-14 if dtype == np.float64 else 3e-7
    expected = reference(family, LAWS[family])
    near = np.isclose(x, expected, rtol=tolerance, atol=tolerance)
    # A t rounded to single can cross the end of an interval whose weight depends on it, once in ten million.
    assert near.sum() >= N - (dtype == np.float32 and family == INTERVALS)


@pytest.mark.parametrize("family", LAWS)
def test_words_are_all_that_is_used(family: int) -> None:
    words_per_value = 2 if family == STEPS else 1
    n = 100
    x, y = np.zeros(n), np.zeros(n)
    draw(family, T[:n], WORDS[: n * words_per_value], LAWS[family], x)
    longer = np.concatenate([WORDS[: n * words_per_value], WORDS[:50]])
    draw(family, T[:n], longer, LAWS[family], y)
    assert (x == y).all()


def test_the_logarithm_reaches_the_smallest_unit() -> None:
    x = np.zeros(2)
    draw(LAPLACE, np.zeros(2), np.array([2**64 - 1, 0], np.uint64), np.array([[1.0]]), x)
    assert x.tolist() == [pytest.approx(52 * np.log(2), rel=1e-15), 0.0]


@pytest.mark.parametrize(("n", "d"), [(0, 5), (1, 1), (7, 3), (20, 8), (13, 100), (3, 1025)])
def test_column_sums_add_in_order(n: int, d: int) -> None:
    x = np.random.default_rng(n + d).normal(size=(n, d))
    sums, squares = np.full(d, 0.5), np.full(d, 0.25)
    column_sums(x.ravel(), d, sums, squares)
    plain = np.full(d, 0.5)
    for row in x:
        plain += row
    assert (sums == plain).all()
    assert np.allclose(squares, 0.25 + (x**2).sum(0), rtol=1e-14, atol=0)  # fused, so a last bit may differ


def test_scattered_sums() -> None:
    into = np.zeros((3, 4))
    scatter_sums(np.array([1.0, 2.0, -3.0]), np.array([2, 0, 2], np.uint16), into)
    assert into[:, :3].tolist() == [[2, 4, 1], [0, 0, 0], [-2, 10, 2]]
