"""A complete collection on this machine in one call: records in, tally or estimates out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.engines.local import Local
from hdr4me.io.quality import DataQuality, check_quality
from hdr4me.survey import Schema, Survey
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from hdr4me.statistics import Answer


def collect(data: Any, survey: Survey, *, allow_unusable: bool = False) -> Tally:
    """Randomize every record and count the reports; neither records nor reports are kept.

    Use it for simulations, and where one machine holds the records; on devices, use `Client`.

    Parameters
    ----------
    data
        A frame (pandas, polars), an Arrow table, a matrix, or files.
    survey
        The survey that the records answer.
    allow_unusable
        Accepts columns with undeclared missing values, or more than 5 % unusable values; they still give a warning.

    Examples
    --------
    >>> import pandas as pd
    >>> from hdr4me.survey import Numeric
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0)
    >>> collect(pd.DataFrame({"age": [30.0, 44.0, 62.0] * 1000}), survey).n_reports
    3000
    """
    tally = Tally(survey)
    tally.round_number = 1  # the responses are fresh

    def on_quality(quality: DataQuality) -> None:
        check_quality(quality, allow_unusable=allow_unusable)
        tally.data_quality = quality

    for block in Local().reports(data, survey, on_quality=on_quality):
        tally.add_block(block)
    return tally


def run(
    data: Any, schema: Schema, epsilon: float = 1.0, *, allow_unusable: bool = False, **options: Any
) -> Answer:
    """Collect `data` with the survey of a schema and return the estimates, for a first look.

    Parameters
    ----------
    data
        The records, as for `collect`.
    schema
        The dimensions, with their ranges and categories.
    epsilon
        The privacy budget ε of one report.
    allow_unusable
        Whether to accept columns that are refused otherwise.
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
    survey = Survey(schema, epsilon=epsilon, **options)
    return collect(data, survey, allow_unusable=allow_unusable).estimate()
