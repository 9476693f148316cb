"""A complete collection on this machine in one call: records in, tally or estimates out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.engines.local import Local
from hdr4me.io.quality import DataQuality, judge
from hdr4me.survey import Schema, Survey
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from hdr4me.statistics import Answer


def collect(data: Any, survey: Survey) -> Tally:
    """Randomize every record and count the reports; neither records nor reports are kept.

    `data` is a frame (pandas, polars), an Arrow table, a matrix, or files. Use it for simulations, and where one
    machine holds the records; on devices, use `Client`. Unusable values give a warning or an error.

    Examples
    --------
    >>> import pandas as pd
    >>> from hdr4me.survey import Numeric
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0)
    >>> collect(pd.DataFrame({"age": [30.0, 44.0, 62.0] * 1000}), survey).n_reports
    3000
    """
    tally = Tally(survey)

    def on_quality(found: DataQuality) -> None:
        judge(found)
        tally.data_quality = found

    for block in Local().reports(data, survey, on_quality=on_quality):
        tally.add_block(block)
    return tally


def run(data: Any, schema: Schema, epsilon: float = 1.0, **options: Any) -> Answer:
    """Collect `data` with the survey of a schema and return the estimates, for a first look.

    Parameters
    ----------
    data
        The records, as for `collect`.
    schema
        The dimensions, with their ranges and categories.
    epsilon
        The privacy budget ε of one report.
    options
        Other parameters of `Survey`, such as `sampled` and `purpose`.

    Examples
    --------
    >>> import pandas as pd
    >>> from hdr4me.survey import Numeric
    >>> people = pd.DataFrame({"age": [30.0, 44.0, 62.0] * 10_000})
    >>> answer = run(people, Schema([Numeric("age", 0, 120)]), epsilon=4.0)
    >>> bool(abs(answer.value[0] - 45.3) < 5)
    True
    """
    return collect(data, Survey(schema, epsilon=epsilon, **options)).estimate()
