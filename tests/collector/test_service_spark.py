"""The same bits: the collector's tally, `hdr4me tally` on the export, and Spark, also with repeated exports."""

from __future__ import annotations

import secrets
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch
from hdr4me.collector.export import write_parquet
from hdr4me.engines import Local
from hdr4me.io.blocks import to_wire
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps


def exported(path: Path, survey: Survey, rows: np.ndarray) -> Tally:
    """Store the rows, export them to `path`; the store's tally."""
    data, offsets = to_wire(rows, survey)
    sizes = None if survey.fixed_size else np.diff(offsets).tolist()
    with closing(open_store(path.with_suffix(".db"))) as store:
        store.open_round(survey, now=datetime.now(UTC))
        ids = secrets.token_bytes(16 * len(rows))
        for _ in range(2):  # a repeated upload
            store.write([Batch(1, 0, ids, data.tobytes(), sizes)])
        path.write_bytes(b"".join(write_parquet(store, 1, survey)))
        return store.tally(1)


def test_the_librarys_tally_of_the_export(mixed: Survey, some_reports: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "round.parquet"
    tally = exported(path, mixed, some_reports)
    assert tally.n_reports == len(some_reports)
    assert dumps(Local().tally(path, mixed)) == dumps(tally)
    assert dumps(Tally(mixed).add_block(some_reports)) == dumps(tally)


@pytest.mark.spark
def test_sparks_tally_of_the_export(
    spark_session: Any, mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    from hdr4me.engines import Spark

    path = tmp_path / "round.parquet"
    tally = exported(path, mixed, some_reports)
    engine = Spark(spark_session)
    assert dumps(engine.tally(str(path), mixed)) == dumps(tally)
    twice = spark_session.read.parquet(str(path), str(path))
    assert twice.count() == 2 * len(some_reports)
    once = twice.dropDuplicates(["id"]).select("report")
    assert dumps(engine.tally(once, mixed)) == dumps(tally)
