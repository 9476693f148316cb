"""Seeded simulation of a collection with exact channels, for comparisons and teaching, not for deployment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.engines.general import perturb_any
from hdr4me.io.columns import from_batch
from hdr4me.io.reading import record_batches
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.survey import Survey
from hdr4me.tally import Tally


class SeededDraws(SecureDraws):
    """The draws of `SecureDraws` from a seeded generator, which is reproducible and therefore not private."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._stream: Any = self

    def words32(self, n: int) -> NDArray[np.uint32]:
        return self._rng.integers(0, 1 << 32, n, dtype=np.uint32)

    def words16(self, n: int) -> NDArray[np.uint16]:
        return self._rng.integers(0, 1 << 16, n, dtype=np.uint16)


def simulate_tally(records: Any, survey: Survey, *, seed: int) -> Tally:
    """A simulated tally of a survey of these records, drawn from the distributions of the survey's channels.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0)
    >>> tally = simulate_tally(pa.table({"age": [30.0] * 5000}), survey, seed=1)
    >>> tally.n_reports, bool(abs(tally.estimate().value[0] - 30) < 5)
    (5000, True)
    """
    rng = np.random.default_rng(seed)
    tally = Tally(survey)
    tally.round_number = 1
    for batch in record_batches(records, survey):
        source = from_batch(batch, survey)
        tally.add_block(perturb_any(source.columns, survey, source.n, source.vectors, SeededDraws(rng)))
    return tally
