"""The table of peers' protocols in docs/comparing.md has the measured ratios."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from peers import Peers

ROOT = Path(__file__).parents[2]
# Each public name of a library, or its beginning, and a word of its row in the table. The longest beginning counts.
ROWS = {
    "pure-ldp": {
        "CMS": "CMS", "DE": "DE", "FastLH": "FLH", "HE": "THE", "HadamardMech": "HM", "HadamardResponse": "HR",
        "LH": "OLH", "PCS": "PCS", "RAPPOR": "RAPPOR with Bloom", "SketchResponse": "SketchResponse", "UE": "OUE",
        "PEM": "PEM", "SFP": "SFP", "TreeHist": "TreeHistogram",
    },
    "multi-freq-ldpy": {
        "ADP": "ADP", "GRR": "GRR", "HE": "THE", "LH": "OLH", "SS": "SS", "UE": "OUE", "L_ADP": "L-ADP",
        "L_GRR": "L-GRR", "L_LH": "LOLOHA", "L_OSUE": "L-OSUE", "L_OUE": "L-OUE", "L_SOUE": "L-SOUE",
        "L_SUE": "L-SUE", "dBitFlipPM": "dBitFlipPM", "RSpFD": "RS+FD", "SMP": "SMP", "SPL": "SPL",
    },
    "diffprivlib": {
        "Binary": "binary randomized response", "Bingham": "Bingham", "Exponential": "exponential mechanism",
        "PermuteAndFlip": "permute and flip", "Gaussian": "Gaussian", "Geometric": "geometric", "Laplace": "Laplace",
        "LaplaceBoundedNoise": "bounded noise", "Snapping": "snapping", "Staircase": "Staircase",
        "Uniform": "uniform noise", "Vector": "vector",
    },
    "OpenDP": {
        "make_alp_queryable": "approximate Laplace projection", "make_canonical_noise": "canonical noise",
        "make_gaussian": "Gaussian", "make_gaussian_threshold": "thresholds", "make_geometric": "geometric",
        "make_laplace": "Laplace", "make_laplace_threshold": "thresholds", "make_noise": "Laplace",
        "make_noise_threshold": "thresholds", "make_noisy_max": "noisy max", "make_noisy_top_k": "top k",
        "make_private_expr": "queries and frames", "make_private_lazyframe": "queries and frames",
        "make_private_quantile": "private quantiles", "make_randomized_response": "GRR",
        "make_randomized_response_bitvec": "SUE", "make_randomized_response_bool": "binary randomized response",
        "make_report_noisy_max_gumbel": "noisy max",
    },
}  # fmt: skip
NO_PROTOCOLS = {
    "DPMachine",
    "DPMechanism",
    "TruncationAndFoldingMixin",
    "make_proof_link",
    "make_user_measurement",
}


@pytest.mark.parametrize("library", ROWS)
def test_every_protocol_of_a_library_has_a_row(worker: Peers, library: str) -> None:
    """A public class, client or constructor without a row fails."""
    answer = worker.ask("protocols")
    assert "error" not in answer, answer
    page = (ROOT / "docs" / "comparing.md").read_text("utf-8")
    table = page.partition("## Protocols of other libraries")[2].partition("###")[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    names = set(answer[library]) - NO_PROTOCOLS
    assert len(names) > 10
    for name in names:
        known = [start for start in ROWS[library] if name.startswith(start)]
        assert known, f"{library} {name} has no row"
        word = ROWS[library][max(known, key=len)]
        both = "both LDP libraries" if library in ("pure-ldp", "multi-freq-ldpy") else library
        rows = [row for row in cells if re.search(rf"(?<![\w-]){re.escape(word)}(?!\w)", row[0])]
        assert any(library in row[1] or both in row[1] for row in rows), (library, name, word)


def test_the_bloom_filters_of_pure_ldp_keep_every_one(worker: Peers) -> None:
    """The published probability is 1 − f/2 = 3/4; none of 1,000 changes with probability 0.75^1000 if it held."""
    assert worker.ask("bloom", f=0.5, n=1000, seed=1) == {"share": 1.0}


def test_the_page_has_the_measured_ratios() -> None:
    """Each measured protocol is named on the page, and ours is never worse by more than 3 standard errors and 5 %."""
    page = (ROOT / "docs" / "comparing.md").read_text("utf-8")
    results = (ROOT / "benchmarks" / "results" / "peers_protocols.md").read_text("utf-8")
    rows = re.findall(r"^\| (?:[\w-]+ \| )?(\w+) \| (.* ± .*) \|$", results, re.MULTILINE)
    assert len(rows) == 7 + 13 + 7
    for protocol, cells in rows:
        named = protocol.replace("L_BLH", "longitudinal BLH").replace("_", "-")
        assert named in page
        for ratio, error in re.findall(r"([\d.]+) ± ([\d.]+)", cells):
            assert float(ratio) + 3 * float(error) > 0.95


def test_random_sampling_with_fake_data_protects_one_attribute() -> None:
    """RS+FD[GRR] with two attributes of two categories, ε = 1, by enumeration: the loss of a complete record is ε'."""
    amplified = math.log(1 + 2 * math.expm1(1.0))
    p, q = math.exp(amplified) / (math.exp(amplified) + 1), 1 / (math.exp(amplified) + 1)

    def law(y: tuple[int, int], x: tuple[int, int]) -> float:
        return sum(0.5 * (p if y[j] == x[j] else q) * 0.5 for j in (0, 1))

    both = law((0, 0), (0, 0)) / law((0, 0), (1, 1))
    one = max(law(y, (0, 0)) / law(y, (1, 0)) for y in ((0, 0), (0, 1), (1, 0), (1, 1)))
    assert math.isclose(math.log(both), amplified)
    assert math.isclose(math.log(one), 1.0)
