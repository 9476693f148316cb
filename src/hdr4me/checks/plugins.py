"""What every channel, dimension, statistic and engine must keep."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hdr4me.channels import Channel, Input, channel_from_dict
from hdr4me.channels.channel import below
from hdr4me.channels.proof import exp_lower
from hdr4me.engines import Engine, Local
from hdr4me.errors import HDR4MEError
from hdr4me.statistics import Statistic
from hdr4me.survey import Survey
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, dimension_from_dict
from hdr4me.tally import Tally

_MOST = 5000  # outputs that are enumerated; a channel with more is checked on its first ones
_STRANGE: tuple[Any, ...] = (
    *(None, float("nan"), float("inf"), "", "?", object(), b"x"),
    *([], {}, True, 10**400, -1, 1e308),
)


def check_channel(channel: Channel) -> None:
    """A channel's probabilities sum to 1, its loss is proven by enumeration, and its draws do not reveal the input."""
    outputs = list(islice(channel.outputs(), _MOST + 1))
    inputs = sorted({0, channel.n_inputs // 2, channel.n_inputs - 1, *channel.worst_pair()})
    assert all(channel.is_output(output) for output in outputs), "outputs() gives what is_output() refuses"
    if len(outputs) <= _MOST:
        inputs = range(channel.n_inputs) if channel.n_inputs * len(outputs) <= _MOST**2 // 100 else inputs  # type: ignore[assignment]
        for x in inputs:
            total = sum((channel.probability(x, output) for output in outputs), Fraction(0))
            assert total == 1, f"the probabilities of input {x} sum to {total}"
    largest = Fraction(1)
    for output in outputs[:_MOST]:
        shares = [channel.probability(x, output) for x in inputs]
        assert (min(shares) > 0) == (max(shares) > 0), f"output {output} gives an input away"
        if min(shares) > 0:
            largest = max(largest, max(shares) / min(shares))
    assert largest <= channel.loss, (
        f"two inputs differ by a factor of {largest}, more than the loss {channel.loss}"
    )
    assert channel.loss <= exp_lower(channel.epsilon), "the loss is more than e^epsilon"
    _check_counters(channel, outputs[:_MOST])
    _check_draws(channel)
    again = channel_from_dict(channel.to_dict())
    assert again.to_dict() == channel.to_dict(), "to_dict and from_dict do not agree"


def _check_counters(channel: Channel, outputs: list[tuple[int, ...]]) -> None:
    n, most = channel.n_counters, channel.per_report
    for output in outputs[:200]:
        at = list(channel.counters(output))
        assert len(at) == most, f"output {output} adds to {len(at)} counters, not {most}"
        assert all(0 <= k < n for k in at), f"output {output} adds to a counter that is not there"
        raised = Counter(at)
        assert channel.n_answers([raised[k] for k in range(n)]) == 1, "n_answers does not know one report"


class _Draws:
    """Seeded draws that record how many bits were asked for."""

    def __init__(self, seed: int) -> None:
        self.calls: list[int] = []
        self._random = random.Random(seed)

    def bits(self, n: int) -> int:
        self.calls.append(n)
        return self._random.getrandbits(n)

    def below(self, n: int) -> int:
        return below(self, n)


def _check_draws(channel: Channel) -> None:
    """The same draws are made for every input, whatever they give."""
    for seed in range(20):
        sources = _Draws(seed), _Draws(seed)
        for x, source in zip(channel.worst_pair(), sources, strict=True):
            output = channel.sample(x, source)
            assert channel.is_output(output), f"sample gives {output}, which is no output"
        assert sources[0].calls == sources[1].calls, "the draws tell of the input"


def check_dimension(dimension: Dimension, values: Iterable[Any] = ()) -> None:
    """A dimension accepts `values` and any other value, gives each a position inside, and survives its document."""
    known = dimension.is_number or dimension.has_gaps or dimension.is_category
    assert known, f"reads = {dimension.input_kind!r} is known to no channel"
    size = len(dimension.categories) if dimension.is_category else 9
    assert dimension.fits(Input(dimension.input_kind, size)), (
        "it does not fit a channel that takes what it reads"
    )
    for value in (*values, *_STRANGE):
        place = dimension.encode(value, size)
        assert type(place) is int, f"the place of {value!r} is {place!r}, not a whole number"
        assert 0 <= place <= (size - 1) << FRACTION_BITS, f"the place of {value!r} is outside"
        if dimension.is_category:
            assert place % (1 << FRACTION_BITS) == 0, f"the category of {value!r} has a fraction"
    again = dimension_from_dict(dimension.to_dict())
    assert again.to_dict() == dimension.to_dict(), "to_dict and from_dict do not agree"


def check_statistic(statistic: Statistic, survey: Survey, **options: Any) -> None:
    """An empty tally of a survey that the statistic serves is answered by "no reports", with a value for each row."""
    served = [
        j
        for j, dimension in enumerate(survey.schema)
        if statistic.supports(dimension, survey.questions[survey.question_of(j)].channel)
    ]
    assert served, "the survey has no dimension that the statistic serves"
    for part in statistic.parts(Tally(survey), served, **options):
        assert part.dimension in served, "a part is of a dimension that was not asked for"
        sizes = {len(part.categories), np.size(part.value), np.size(part.error)}
        assert len(sizes) == 1, "rows, values and errors are of different numbers"
        assert part.n_answers == 0, "an empty tally has answers"
        assert bool(np.isnan(part.value).all()), "an empty tally gives a value"


def check_engine(engine: Engine, survey: Survey, records: pa.Table) -> None:
    """An open engine writes a few hundred reports whole, counts them as this machine does, and counts bad ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n = engine.perturb(records, survey, folder / "theirs.parquet")
        assert n == records.num_rows, f"{n} reports of {records.num_rows} records"
        theirs = engine.tally(folder / "theirs.parquet", survey)
        assert theirs == Local().tally(folder / "theirs.parquet", survey), (
            "the same reports give other counts than on this machine"
        )
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
