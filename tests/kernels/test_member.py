"""The compiled way to put one's own category into a set is the plain one."""

import numpy as np
import pytest

from hdr4me.kernels.exact.member import small_sets, with_member


@pytest.mark.parametrize(("v", "w"), [(2, 1), (5, 2), (9, 4), (300, 40)])
def test_the_kernel_is_the_plain_formula(v: int, w: int) -> None:
    rng = np.random.default_rng(v)
    n = 500
    others = np.sort(np.array([rng.choice(v - 1, w, replace=False) for _ in range(n)]), axis=1)
    inputs, heavy, places = rng.integers(0, v, n), rng.random(n) < 0.5, rng.integers(0, w, n)
    plain = others + (others >= inputs[:, None])
    plain[np.arange(n), places] = np.where(heavy, inputs, plain[np.arange(n), places])
    out = np.empty_like(others)
    with_member(others, inputs, heavy, places, out)
    assert (out == np.sort(plain, axis=1)).all()


@pytest.mark.parametrize(("v", "w"), [(5, 2), (10, 3), (64, 20), (65, 20), (66, 21), (100, 27), (128, 50)])
def test_small_sets_are_the_plain_ones(v: int, w: int) -> None:
    """Seeded numbers, enough for most of 400 rows: distinct ones become a set, and the rest waits for more numbers."""
    rng = np.random.default_rng(v)
    n = 400
    inputs, heavy, places = rng.integers(0, v, n), rng.random(n) < 0.5, rng.integers(0, w, n)
    inputs[:3] = 0, v - 1, v // 2
    drawn = rng.integers(0, v - 1, n * w).astype(np.uint16)
    out = np.full((n, w), 255, np.uint8)
    first = 7
    done = small_sets(drawn, w, inputs, heavy, places, out, first)
    assert first < done < n
    left = iter(drawn.tolist())
    for row in range(first, done):
        found: set[int] = set()
        while len(found) < w:
            found.add(next(left))
        plain = [k + (k >= inputs[row]) for k in sorted(found)]
        if heavy[row]:
            plain[places[row]] = int(inputs[row])
        assert out[row].tolist() == sorted(plain)
    assert (out[:first] == 255).all()
    assert (out[done:] == 255).all()
