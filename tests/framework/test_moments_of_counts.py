import mpmath
import pytest

from hdr4me.framework.moments import mean_inverse_count


def exact(n: int, p: float) -> float:
    with mpmath.workdps(40):
        q = 1 - mpmath.mpf(p)
        term, total, mass = n * p * q ** (n - 1), mpmath.mpf(0), mpmath.mpf(0)
        for k in range(1, min(n, int(3 * n * p) + 300) + 1):
            total, mass = total + term / k, mass + term
            term *= mpmath.mpf(n - k) / (k + 1) * p / q
        return float(total / mass)


@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.5), (10, 0.3), (100, 0.001), (1000, 0.01), (150_000, 1 / 750), (10**8, 1e-5), (20_000, 0.49999)],
)
def test_the_binomial_sum(n: int, p: float) -> None:
    assert mean_inverse_count(n, p) == pytest.approx(exact(n, p), rel=1e-11)


@pytest.mark.parametrize(("n", "p"), [(20_000, 0.50001), (12_000, 0.9), (10**9, 1.00001e-5), (10**6, 0.011)])
def test_the_expansion_meets_its_stated_error(n: int, p: float) -> None:
    assert n * p >= 1e4
    assert mean_inverse_count(n, p) == pytest.approx(exact(n, p), rel=2e-14)


def test_everybody_reports() -> None:
    assert mean_inverse_count(123, 1.0) == 1 / 123


def test_first_terms_are_the_textbook_ones() -> None:
    n, p = 10**7, 0.01
    assert mean_inverse_count(n, p) == pytest.approx((1 + (1 - p) / (n * p)) / (n * p), rel=3 / (n * p) ** 2)
