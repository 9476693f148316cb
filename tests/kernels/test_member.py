"""The compiled way to put one's own category into a set is the plain one."""

import numpy as np
import pytest

from hdr4me.kernels.exact.sets import with_member


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
