"""How fast it is: against NumPy, peers and the machine's own limits, in one interleaved run."""

from __future__ import annotations

from hdr4me.evaluation.bench.run import run

__all__ = ["run"]
