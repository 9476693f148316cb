"""Reports of a file put into a round, under new ids: how the demonstration's collector has something to show."""

from __future__ import annotations

import os
import secrets

import numpy as np

from hdr4me.collector.loads import Load
from hdr4me.collector.store import Store
from hdr4me.collector.writer import hour_now
from hdr4me.io.blocks import to_wire
from hdr4me.io.files import read_reports
from hdr4me.survey import Survey

__all__ = ["load_reports"]


def load_reports(store: Store, round: int, path: str | os.PathLike[str], survey: Survey) -> int:
    """Put the reports of a file into a round; how many were stored.

    Parameters
    ----------
    store, round
        Where they go.
    path
        A file of reports.
    survey
        The survey that they answer.
    """
    n = 0
    for rows in read_reports(path, survey):
        data, offsets = to_wire(np.ascontiguousarray(rows), survey)
        sizes = None if survey.fixed_size else np.diff(offsets).tolist()
        ids = secrets.token_bytes(16 * len(rows))
        (outcome,) = store.write_loads([Load(round, hour_now(), 0, ids, data.tobytes(), sizes)])
        n += outcome.stored
    return n
