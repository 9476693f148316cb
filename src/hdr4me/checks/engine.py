"""What every engine must keep: the counts of this machine for the same reports, and nothing lost in silence."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from hdr4me.engines import Engine, Local
from hdr4me.errors import HDR4MEError
from hdr4me.survey import Survey


def check_engine(engine: Engine, survey: Survey, records: pa.Table) -> None:
    """Reports are written whole, tallied to the same integers as on this machine, and bad ones are counted.

    Parameters
    ----------
    engine
        An open engine.
    survey
        What is asked.
    records
        A few hundred records with a column for each dimension.

    Raises
    ------
    AssertionError
        With the sentence that does not hold.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n = engine.perturb(records, survey, folder / "theirs.parquet")
        assert n == records.num_rows, f"{n} reports of {records.num_rows} records"
        theirs, ours = (
            engine.tally(folder / "theirs.parquet", survey),
            Local().tally(folder / "theirs.parquet", survey),
        )
        assert theirs == ours, "the same reports give other counts than on this machine"
        assert theirs.n_reports == records.num_rows, "reports were lost"
        Local().perturb(records.slice(0, 50), survey, folder / "some.jsonl")
        with (folder / "some.jsonl").open("a", encoding="utf-8") as file:
            file.write("not a report\n")
        counted = engine.tally([folder / "some.jsonl"], survey)
        assert counted.n_reports == 50, "a bad line took others with it"
        assert sum(counted.rejected.values()) == 1, "a bad line was not counted"
        try:
            engine.tally([folder / "some.jsonl"], survey, strict=True)
        except HDR4MEError:
            return
        raise AssertionError("a bad report is no error, though strict")
