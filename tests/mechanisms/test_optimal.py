from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import cache, mechanism
from hdr4me.mechanisms.optimal import _merged, _packed, _unpacked, optimal
from hdr4me.mechanisms.program import Measure
from hdr4me.mechanisms.table import TableMechanism, window_table


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HDR4ME_CACHE_DIR", str(tmp_path_factory.mktemp("designs")))
        yield


def piecewise_worst(epsilon: float) -> float:
    return float(mechanism("piecewise", epsilon=epsilon).variance(1.0))


@pytest.mark.parametrize("epsilon", [0.05, 0.051, 0.2, 0.5, 1.0, 1.5, 2.0, 2.6, 3.0, 4.0])
def test_within_one_percent_of_the_limit(epsilon):
    certificate = optimal(epsilon).certificate
    assert certificate is not None
    assert 0 <= certificate.gap <= 0.01


@pytest.mark.parametrize("epsilon", [0.06, 1.0, 2.6, 4.0])
def test_mean_objective_within_one_percent(epsilon):
    certificate = optimal(epsilon, "mean").certificate
    assert certificate is not None
    assert 0 <= certificate.gap <= 0.01


@pytest.mark.parametrize(("epsilon", "objective"), [(6.0, "max"), (8.0, "max"), (8.0, "mean")])
def test_within_three_percent_up_to_eight(epsilon, objective):
    certificate = optimal(epsilon, objective).certificate
    assert certificate is not None
    assert 0 <= certificate.gap <= 0.03


@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(0.1, 0.750), (0.5, 0.754), (1.0, 0.764), (2.0, 0.705), (4.0, 0.526), (6.0, 0.370)]
)
def test_limit_is_the_known_one(epsilon, ratio):
    # ratios to Piecewise, three digits; at 6 the limit is only known to lie between .368 and .373
    certificate = optimal(epsilon).certificate
    assert certificate is not None
    relative = certificate.bound / piecewise_worst(epsilon)
    assert 0.99 * ratio - 0.001 < relative < ratio + 0.001
    assert certificate.achieved / piecewise_worst(epsilon) < 1.01 * ratio + 0.001


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 4.0])
def test_no_other_table_goes_below_the_bound(epsilon):
    worst, mean = optimal(epsilon).certificate, optimal(epsilon, "mean").certificate
    assert worst is not None
    assert mean is not None
    others = [
        mechanism(n, epsilon=epsilon).exact()
        for n in ("duchi", "piecewise", "hybrid", "laplace", "staircase")
    ]
    others += [window_table("w", epsilon, n, w) for n, w in ((2, 1), (3, 1), (8, 3), (40, 9), (100, 5))]
    others += [optimal(epsilon), optimal(epsilon, "mean")]
    assert min(table.max_variance() for table in others) >= worst.bound
    assert min(table.mean_variance() for table in others) >= mean.bound
    assert mean.bound <= worst.achieved


def test_each_objective_is_best_at_its_own():
    for epsilon in (1.0, 4.0):
        worst, mean = optimal(epsilon), optimal(epsilon, "mean")
        assert worst.max_variance() < mean.max_variance()
        assert mean.mean_variance() < worst.mean_variance()


def test_certificate_is_the_tables_own_variance():
    table = optimal(2.0)
    assert table.certificate is not None
    t = np.linspace(-1, 1, 4001)
    assert table.certificate.achieved == pytest.approx(float(table.variance(t).max()), rel=1e-5)
    assert table.certificate.objective == "max"


def test_small_budgets_use_duchi():
    table = optimal(0.01)
    assert table.n_cells == 2
    assert table.certificate is not None
    assert table.certificate.gap < 0.002


def test_huge_budgets_use_a_window_and_prove_nothing():
    table = optimal(30.0)
    assert table.certificate is not None
    assert table.certificate.gap == np.inf
    assert table.max_variance() < 2e-5


def test_between_eight_and_twelve_the_better_of_both():
    table = optimal(10.0)
    assert table.certificate is not None
    assert table.certificate.gap < 0.12
    assert table.max_variance() < window_table("w", 10.0, 200, 8).max_variance()


@pytest.mark.parametrize(("epsilon", "objective"), [(0.0, "max"), (float("inf"), "max"), (1.0, "median")])
def test_refuses_what_is_not_allowed(epsilon, objective):
    with pytest.raises(InvalidInput, match=r"epsilon|objective"):
        optimal(epsilon, objective)


def test_merging_keeps_mass_and_mirror_image():
    outputs = np.array([-1.2, -1.0, -0.5, 0.0, 0.5, 1.0, 1.2])
    mass = np.array([0.1, 0.2, 0.0, 0.05, 0.0, 0.2, 0.1])
    for limit, n_cells in ((7, 5), (4, 3)):
        merged = _merged(Measure(outputs, mass), limit)
        assert merged.outputs.size == n_cells
        assert merged.mass.sum() == pytest.approx(mass.sum())
        assert merged.outputs == pytest.approx(-merged.outputs[::-1])
        assert merged.mass @ np.abs(merged.outputs) == pytest.approx(mass @ np.abs(outputs))


class TestCache:
    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("HDR4ME_CACHE_DIR", str(tmp_path / "here"))
        return tmp_path / "here"

    def test_is_read_back_equal(self, place):
        first = optimal(0.7)
        cache._memory.clear()
        second = optimal(0.7)
        assert second is not first
        assert (second.weights == first.weights).all()
        assert (second.decode == first.decode).all()
        assert second.certificate == first.certificate
        assert optimal(0.7) is second
        assert [p.name for p in place.iterdir()] == ["optimal-v3-max-0x1.6666666666666p-1.json"]

    @pytest.mark.parametrize("harm", [b"", b"nonsense" * 20, None])
    def test_a_damaged_file_is_designed_again(self, place, harm, monkeypatch):
        first = optimal(0.8)
        (file,) = place.iterdir()
        if harm is None:
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 2] ^= 1
            harm = bytes(raw)
        file.write_bytes(harm)
        cache._memory.clear()
        assert (optimal(0.8).weights == first.weights).all()
        cache._memory.clear()
        monkeypatch.setattr("hdr4me.mechanisms.optimal.design", None)  # a second design would be an error
        assert (optimal(0.8).weights == first.weights).all()

    def test_a_file_for_another_budget_is_not_believed(self, place):
        optimal(0.9)
        (file,) = place.iterdir()
        file.rename(file.with_name("optimal-v3-max-" + (0.1).hex() + ".json"))
        assert float(optimal(0.1).likelihood_ratio) <= np.exp(0.1)

    @pytest.mark.parametrize("objective", ["max", "mean"])
    def test_what_a_file_claims_is_computed_again(self, place, objective):
        first = optimal(0.7, objective)
        cache._memory.clear()
        again = optimal(0.7, objective)
        assert first.certificate is not None
        assert again.certificate is not None
        assert again.certificate.bound == pytest.approx(first.certificate.bound, rel=1e-12)
        assert again.certificate.achieved == first.certificate.achieved

    @pytest.mark.parametrize("pretender", ["laplace", "piecewise"])
    def test_another_table_does_not_pose_as_optimal(self, place, pretender):
        """A private and unbiased table of larger variance, with the true multipliers beside it."""
        best = optimal(0.7)
        other = mechanism(pretender, epsilon=0.7).exact()
        (file,) = place.iterdir()
        cache.save(file, _packed(replace(other, certificate=best.certificate)))
        cache._memory.clear()
        assert (optimal(0.7).weights == best.weights).all()

    @pytest.mark.parametrize(
        "change",
        [
            lambda proof: proof * 2,
            lambda proof: np.full_like(proof, np.nan),
            lambda proof: np.vstack([proof[:1], proof[1:2] + 0.3, proof[2:]]),
            lambda proof: np.vstack([proof[:1] * 1.5, proof[1:]]),
            lambda proof: np.vstack([proof[:3], -proof[3:]]),
            lambda proof: proof * 1e200,
        ],
    )
    @pytest.mark.parametrize("objective", ["max", "mean"])
    def test_forged_multipliers_prove_nothing(self, place, objective, change):
        best = optimal(0.7, objective)
        assert best.certificate is not None
        assert best.certificate.proof is not None
        forged = replace(best.certificate, proof=change(best.certificate.proof))
        (file,) = place.iterdir()
        cache.save(file, _packed(replace(best, certificate=forged)))
        found = cache._load(file, lambda stored: _unpacked(stored, 0.7, objective))
        if found is not None:
            assert found.certificate is not None
            assert found.certificate.bound <= best.certificate.bound * (1 + 1e-9)

    @pytest.mark.parametrize(
        "content",
        [
            {"weights": [[1] * 300] * 300, "decode": [0.0] * 300, "proof": [[0.0] * 2000] * 4},
            {"weights": [True, 2], "decode": "text", "proof": [[0.0, 1.0]] * 4},
            {"weights": [[1, 1], [1, 1]], "decode": [0.0, 1.0], "proof": [[0.0, 1.0]] * 3},
            b"[" * 100_000,
            {"weights": [[1, 1], [1, 1]]},
            bytes(1 << 22),
        ],
        ids=["sizes", "types", "short", "nested", "missing", "large"],
    )
    def test_a_broken_entry_is_replaced(self, place, content):
        best = optimal(0.7)
        (file,) = place.iterdir()
        whole = file.read_bytes()
        if isinstance(content, bytes):
            file.write_bytes(hashlib.sha256(content).digest() + content)
        else:
            cache.save(file, content)
        cache._memory.clear()
        assert (optimal(0.7).weights == best.weights).all()
        assert file.read_bytes() == whole

    def test_a_pipe_is_not_waited_for(self, place):
        best = optimal(0.7)
        (file,) = place.iterdir()
        file.unlink()
        os.mkfifo(file)
        cache._memory.clear()
        assert (optimal(0.7).weights == best.weights).all()

    def test_quick_designs_leave_no_file(self, place):
        optimal(0.01)
        optimal(20.0)
        assert not place.exists()

    def test_a_disk_that_cannot_be_written_is_no_error(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("HDR4ME_CACHE_DIR", str(tmp_path / "file"))
        assert isinstance(optimal(0.6), TableMechanism)

    def test_an_interrupted_write_leaves_nothing(self, place, monkeypatch):
        def full(*_: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", full)
            optimal(0.55)
        assert list(place.iterdir()) == []

    def test_directories(self, monkeypatch):
        monkeypatch.setenv("HDR4ME_CACHE_DIR", "")
        assert cache.cache_directory() is None
        assert optimal(0.01).n_cells == 2
        monkeypatch.delenv("HDR4ME_CACHE_DIR")
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert cache.cache_directory() == Path("/somewhere/hdr4me")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", "/home/nobody")
        assert cache.cache_directory() == Path("/home/nobody/.cache/hdr4me")

        def homeless() -> Path:
            raise RuntimeError

        monkeypatch.setattr(Path, "home", homeless)
        assert cache.cache_directory() is None
