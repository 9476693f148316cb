"""A short run of the fuzzer in `benchmarks/collector_fuzz.py`, seeded; the long one has a million requests."""

from __future__ import annotations

from collector_fuzz import in_process, over_sockets


def test_mutated_requests_in_process() -> None:
    found = in_process(3000, seed=11)
    assert found["faults"] == []
    assert sum(found["statuses"].values()) == 3000
    assert {"200", "400", "422"} <= set(found["statuses"])


def test_mutated_bytes_over_sockets() -> None:
    found = over_sockets(300, seed=12)
    assert found["faults"] == []
