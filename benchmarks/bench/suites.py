"""The measurements: each returns rows (what, millions per second) and the ratios that matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import rivals
from bench.clock import Task, cpu, interleave, wall
from bench.peers import Peers
from hdr4me.engines.general import plan_of
from hdr4me.engines.local import Local
from hdr4me.io import read_reports, write_reports
from hdr4me.io.columns import from_matrix
from hdr4me.kernels.exact.perturb import perturb, perturb_matrix
from hdr4me.kernels.exact.secure import BLOCK, Keystream
from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.simulate.fused import accumulate, column_sums, draw
from hdr4me.kernels.simulate.generator import LANES, fill, seed_lanes
from hdr4me.survey import Categorical, Numeric, Schema, Survey

__all__ = ["Suite", "exact", "limits", "sampled", "simulation", "tally"]

_N, _D = 100_000, 100


@dataclass
class Suite:
    """One table of the report: unit, rates in millions of units per second, and named ratios with what is asked."""

    title: str
    unit: str
    rates: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, tuple[float, float]] = field(default_factory=dict)

    def ratio(self, text: str, found: float, asked: float) -> None:
        """Note a ratio and the least that is asked of it."""
        self.ratios[text] = (round(found, 3), asked)


def limits(rounds: int) -> Suite:
    """The limits of this machine: cipher, generator, memory; in GB per second."""
    suite = Suite("Limits of the machine", "GB")
    buffer, stream = np.empty(BLOCK, np.uint8), Keystream()
    state, words = np.zeros((4, LANES), np.uint64), np.empty(2048, np.uint64)
    seed_lanes(1, 1, state)
    large, other = np.ones(1 << 24), np.ones(1 << 24)
    tasks = {
        "AES-256-CTR keystream": cpu(lambda: _stretch(stream, buffer, 256)),
        "xoshiro256++ in lanes": cpu(lambda: _refill(state, words, 4096)),
        "memory read (sum)": cpu(lambda: large.sum()),
        "memory copy (read and write)": cpu(lambda: np.copyto(other, large)),
    }
    sizes = [256 * BLOCK, 4096 * words.nbytes, large.nbytes, 2 * large.nbytes]
    for (name, seconds), size in zip(interleave(tasks, rounds).items(), sizes, strict=True):
        suite.rates[name] = size / seconds / 1e9
    return suite


def _stretch(stream: Keystream, buffer: NDArray[np.uint8], times: int) -> None:
    for _ in range(times):
        stream.fill(buffer)


@kernel()
def _refill(state, words, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        fill(state, words)


@kernel()
def _draw_only(family, flat, words, law, x):  # type: ignore[no-untyped-def]
    for start in range(0, flat.size - x.size + 1, x.size):
        draw(family, flat[start : start + x.size], words, law, x)


@kernel()
def _sum_only(x, d, sums, squares, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        column_sums(x, d, sums, squares)


def simulation(rounds: int, peers: Peers) -> Suite:
    """Fused simulation of n = 1e5 users × d = 100, all reported: sums and sums of squares of every dimension."""
    suite = Suite(f"Simulation, n = {_N:,}, d = m = {_D}, one core", "million values")
    values = np.random.default_rng(1).uniform(0, 1, (_N, _D))
    loop = rivals.numba_random(1.0)
    tasks: dict[str, Task] = {}
    for name in ("piecewise", "square_wave", "laplace", "scdf", "staircase", "duchi", "hybrid"):
        family, law = rivals.law_of(name, 1.0)
        tasks[f"hdr4me {name}"] = cpu(_bound(values, family, law, 1))
    tasks["chunked NumPy piecewise"] = cpu(lambda: rivals.mixture("piecewise", 1.0, values))
    tasks["chunked NumPy square_wave"] = cpu(lambda: rivals.mixture("square_wave", 1.0, values))
    tasks["chunked NumPy laplace, its own"] = cpu(lambda: rivals.laplace_library(1.0, values))
    tasks["chunked NumPy laplace, difference"] = cpu(lambda: rivals.laplace_difference(1.0, values))
    tasks["chunked NumPy laplace, sign"] = cpu(lambda: rivals.laplace_sign(1.0, values))
    tasks["np.random in numba, piecewise"] = cpu(lambda: loop(values))
    family, law = rivals.law_of("piecewise", 1.0)
    tasks |= _stages(values, family, law)
    tasks["one thread (wall)"] = wall(_bound(values, family, law, 1))
    tasks["two threads (wall)"] = wall(_bound(values, family, law, 2))
    best = interleave(tasks, rounds)
    stages = sum(best.pop(name) for name in list(best) if name.startswith("stage"))
    one, two = best.pop("one thread (wall)"), best.pop("two threads (wall)")
    suite.rates = {name: values.size / seconds / 1e6 for name, seconds in best.items()}
    suite.rates["hdr4me piecewise, two threads"] = values.size / two / 1e6
    some_users = values[:500]
    user = interleave({"user": cpu(lambda: rivals.per_user(1.0, some_users, _D))}, rounds)["user"]
    suite.rates["NumPy user by user, piecewise"] = some_users.size / user / 1e6
    for name in ("opendp", "diffprivlib"):
        suite.rates[f"{name}, Laplace"] = _peer_rate(peers, name, rounds)
    laplace = min(seconds for name, seconds in best.items() if name.startswith("chunked NumPy laplace"))
    for name, asked in (("piecewise", 14), ("square_wave", 14)):
        ratio = best[f"chunked NumPy {name}"] / best[f"hdr4me {name}"]
        suite.ratio(f"{name} over chunked NumPy", ratio, asked)
    suite.ratio("laplace over the best chunked NumPy", laplace / best["hdr4me laplace"], 6)
    suite.ratio("piecewise, share of the bound 1/Σ stages", stages / best["hdr4me piecewise"], 0.9)
    suite.ratio("two threads over one, on the wall clock", one / two, 1.7)
    return suite


def _bound(values: NDArray[np.float64], family: int, law: NDArray[np.float64], threads: int) -> Any:
    return lambda: accumulate(values, family, law, sampled=values.shape[1], seed=1, threads=threads)


def _stages(values: NDArray[np.float64], family: int, law: NDArray[np.float64]) -> dict[str, Task]:
    """The stages of the fused kernel, each alone on as many values: draw words, perturb (reading memory), sum."""
    size = 2048 // _D * _D
    times = values.size // size
    state, words, x = np.zeros((4, LANES), np.uint64), np.empty(2048, np.uint64), np.empty(size)
    seed_lanes(1, 1, state)
    words_needed, flat = words[: -(-size // LANES) * LANES], values.reshape(-1)
    sums, squares = np.zeros(_D), np.zeros(_D)
    return {
        "stage: words": cpu(lambda: _refill(state, words_needed, times)),
        "stage: perturb": cpu(lambda: _draw_only(family, flat, words, law, x)),
        "stage: sum": cpu(lambda: _sum_only(x, _D, sums, squares, times)),
    }


def _peer_rate(peers: Peers, name: str, rounds: int) -> float:
    best = min(peers.seconds(name) for _ in range(rounds + 1))
    return best[1] / best[0] / 1e6


def _numeric_survey(d: int, sampled: int, epsilon: float) -> Survey:
    return Survey(Schema(Numeric(f"x{j}", -1, 1) for j in range(d)), epsilon=epsilon, sampled=sampled)


def exact(rounds: int, peers: Peers) -> Suite:
    """Secure, exact reports: `optimal` under ε = 1 for each value, from a matrix of doubles, bytes written."""
    suite = Suite(f"Secure exact reports, n = {_N:,}, d = m = {_D}, one core", "million values")
    values = np.random.default_rng(2).uniform(-1, 1, (_N, _D))
    plan = plan_of(_numeric_survey(_D, _D, float(_D)))
    out = np.empty((_N, plan.report_size), np.uint8)
    stream, buffer = Keystream(), np.empty(BLOCK, np.uint8)
    blocks = 6 * values.size // BLOCK
    schema = Schema([Categorical("c", [str(k) for k in range(10)])])
    choice_survey = Survey(schema, epsilon=1.0, categorical="grr")
    choice = plan_of(choice_survey)
    answers = np.random.default_rng(3).integers(0, 10, (10 * _N, 1)).astype(np.uint8)
    categories = from_matrix(answers, choice_survey)
    tasks = {
        "hdr4me optimal, report bytes": cpu(lambda: perturb_matrix(values, plan, out=out)),
        "hdr4me optimal, reports by columns": cpu(_columns(values, plan, out)),
        "chunked NumPy piecewise, floats, not private": cpu(lambda: rivals.mixture("piecewise", 1.0, values)),
        "keystream alone, 6 bytes a value": cpu(lambda: _stretch(stream, buffer, blocks)),
        "hdr4me GRR on 10 categories": cpu(lambda: perturb(categories.columns, choice, categories.n)),
    }
    best = interleave(tasks, rounds)
    amounts = dict.fromkeys(tasks, values.size) | {
        "hdr4me GRR on 10 categories": categories.n,
        "keystream alone, 6 bytes a value": blocks * BLOCK // 6,
    }
    suite.rates = {name: amounts[name] / seconds / 1e6 for name, seconds in best.items()}
    for name in ("pure_ldp", "multi_freq_ldpy"):
        suite.rates[f"{name}, GRR on 10 categories"] = _peer_rate(peers, name, rounds)
    rate = suite.rates["hdr4me optimal, report bytes"]
    suite.ratio(
        "over chunked NumPy's floating-point piecewise",
        rate / suite.rates["chunked NumPy piecewise, floats, not private"],
        5,
    )
    suite.ratio(
        "share of what the keystream allows", rate / suite.rates["keystream alone, 6 bytes a value"], 0.5
    )
    return suite


def _columns(values: NDArray[np.float64], plan: Any, out: NDArray[np.uint8]) -> Any:
    source = from_matrix(values, _numeric_survey(values.shape[1], values.shape[1], float(values.shape[1])))
    return lambda: perturb(source.columns, plan, source.n, out=out)


def sampled(rounds: int) -> Suite:
    """m of d dimensions, m far below d: the cost must be of m."""
    n, d, m = 1_000, 5_000, 50
    suite = Suite(f"Sampling m = {m} of d = {d:,}, n = {n:,}, one core", "million values")
    values = np.random.default_rng(4).uniform(-1, 1, (n, d)).astype(np.float32)
    family, law = rivals.law_of("piecewise", 1.0)
    survey = _numeric_survey(d, m, float(m))
    plan, source = plan_of(survey), from_matrix(values, survey)
    out = np.empty((n, plan.report_size), np.uint8)
    tasks = {
        "hdr4me simulation": cpu(
            lambda: [accumulate(values, family, law, sampled=m, seed=1) for _ in range(9)]
        ),
        "hdr4me secure reports": cpu(lambda: [perturb(source.columns, plan, n, out=out) for _ in range(9)]),
        "NumPy user by user": cpu(lambda: rivals.per_user(1.0, values, m)),
    }
    best = interleave(tasks, rounds)
    suite.rates = {
        name: (1 if "NumPy" in name else 9) * n * m / seconds / 1e6 for name, seconds in best.items()
    }
    for name in ("hdr4me simulation", "hdr4me secure reports"):
        suite.ratio(
            f"{name[7:]} over NumPy user by user", suite.rates[name] / suite.rates["NumPy user by user"], 40
        )
    return suite


def tally(rounds: int, peers: Peers, folder: Path) -> Suite:
    """Counts from a file of reports; the others get the same reports as a long table, their best layout.

    DuckDB gets the very file of binary reports as well.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, d, m = 1_000_000, 1_000, 10
    suite = Suite(f"Tally of a file, n = {n:,}, m = {m}, d = {d:,}, one core", "million reports")
    survey = _numeric_survey(d, m, float(m))
    values = np.zeros((n // 20, d), np.float32)
    path, arrow_path, long_path = (
        folder / name for name in ("reports.parquet", "reports.arrow", "long.parquet")
    )
    slots = []
    with write_reports(path, survey) as writer, write_reports(arrow_path, survey) as arrow_writer:
        for _ in range(20):
            block = np.concatenate(list(Local(1).reports(values, survey)))
            writer.write(block)
            arrow_writer.write(block)
            slots.append(block.reshape(-1, 3))
    long = np.concatenate(slots)
    dimension = long[:, 0].astype(np.uint16) | long[:, 1].astype(np.uint16) << 8
    pq.write_table(
        pa.table({"dimension": dimension, "code": long[:, 2].copy()}), long_path, compression="zstd"
    )
    engine = Local(threads=1)
    tasks: dict[str, Task] = {
        "hdr4me, Parquet": cpu(lambda: engine.tally([path], survey)),
        "hdr4me, Arrow file": cpu(lambda: engine.tally([arrow_path], survey)),
        "reading the Parquet file only": cpu(lambda: [len(block) for block in read_reports(path, survey)]),
        "pyarrow group_by, long table": cpu(lambda: _arrow_counts(long_path)),
        "duckdb, long table": lambda: peers.seconds("duckdb", str(long_path))[0],
        "duckdb, the same Parquet file": lambda: peers.seconds("duckdb_reports", f"{m} {path}")[0],
        "polars, long table": lambda: peers.seconds("polars", str(long_path))[0],
    }
    best = interleave(tasks, rounds)
    suite.rates = {name: n / seconds / 1e6 for name, seconds in best.items()}
    if not {"duckdb", "duckdb_reports"} & set(peers.absent):
        for file, other in (
            ("Parquet", "the same Parquet file"),
            ("Parquet", "long table"),
            ("Arrow file", "long table"),
        ):
            ratio = suite.rates[f"hdr4me, {file}"] / suite.rates[f"duckdb, {other}"]
            suite.ratio(f"{file} over duckdb, {other}", ratio, 7)
    reading = suite.rates["reading the Parquet file only"]
    suite.ratio("share of just reading the Parquet file", suite.rates["hdr4me, Parquet"] / reading, 0.5)
    return suite


def _arrow_counts(path: Path) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(path, use_threads=False)
    return table.group_by(["dimension", "code"], use_threads=False).aggregate([([], "count_all")])
