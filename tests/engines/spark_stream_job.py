"""A driver program of its own that follows a folder of reports, one file a batch, until there is no more.

python spark_stream_job.py SURVEY INPUT STATE
"""

from __future__ import annotations

import sys

from hdr4me.engines import open_session, spark
from hdr4me.engines.spark_session import report_schema
from hdr4me.survey import Survey


def main(survey_path: str, source: str, state: str) -> None:
    session = open_session("local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    survey = Survey.load(survey_path)
    stream = session.readStream.schema(report_schema(survey)).option("maxFilesPerTrigger", 1).parquet(source)
    query = spark(session).follow(stream, survey, state, keep_rejected=True)
    query.processAllAvailable()
    query.stop()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
