"""The contracts of channels, dimensions, statistics and engines."""

from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import binom

from hdr4me.auditing.auditor import attack
from hdr4me.channels import Channel, Input, channel_from_dict
from hdr4me.channels.channel import below
from hdr4me.channels.proof import exp_lower
from hdr4me.engines import Engine, Local
from hdr4me.errors import HDR4MEError
from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import Statistic
from hdr4me.statistics.answer import OK
from hdr4me.statistics.statistic import answer_of
from hdr4me.survey import Survey
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, dimension_from_dict
from hdr4me.tally import Tally

# The largest number of outputs that are enumerated; of a larger channel the first ones are checked.
_MOST = 5000
_DRAWS, _FALSE_ALARM = 5000, 1e-9  # draws of each input, and the false-alarm rate of each comparison
_STRANGE: tuple[Any, ...] = (
    *(None, float("nan"), float("inf"), "", "?", object(), b"x"),
    *([], {}, True, 10**400, -1, 1e308),
)


def check_channel(channel: Channel) -> None:
    """Check that probabilities sum to 1, that the likelihood ratio is proven, and that the samplers follow them.

    The likelihood ratio is checked by enumeration. For every input the sampler must request the same random bits. The
    draws of the device and of the batch sampler are compared with the probabilities by the Dvoretzky–Kiefer–Wolfowitz
    inequality; a channel that is too large to enumerate is attacked instead (`hdr4me.auditing`). A correct channel
    fails with a probability of at most 1e-6.
    """
    outputs = list(islice(channel.outputs(), _MOST + 1))
    inputs = sorted({0, channel.n_inputs // 2, channel.n_inputs - 1, *channel.worst_pair()})
    assert all(channel.is_output(output) for output in outputs), (
        "outputs() yields an output that is_output() rejects"
    )
    if len(outputs) <= _MOST:
        inputs = range(channel.n_inputs) if channel.n_inputs * len(outputs) <= _MOST**2 // 100 else inputs  # type: ignore[assignment]
        for x in inputs:
            total = sum((channel.probability(x, output) for output in outputs), Fraction(0))
            assert total == 1, f"the probabilities of input {x} sum to {total}"
    largest = Fraction(1)
    for output in outputs[:_MOST]:
        shares = [channel.probability(x, output) for x in inputs]
        assert (min(shares) > 0) == (max(shares) > 0), (
            f"output {output} has probability 0 for some inputs only"
        )
        if min(shares) > 0:
            largest = max(largest, max(shares) / min(shares))
    assert largest <= channel.likelihood_ratio, (
        f"the probabilities of two inputs differ by a factor of {largest}, more than {channel.likelihood_ratio}"
    )
    assert channel.likelihood_ratio <= exp_lower(channel.epsilon), (
        "the likelihood ratio is larger than e^epsilon"
    )
    _check_counters(channel, outputs[:_MOST])
    _check_draws(channel)
    if len(outputs) <= _MOST:
        _check_law(channel, outputs)
    else:
        found = attack(channel, min(_DRAWS, max(1000, 10**8 // channel.response.cost)))
        assert found <= channel.epsilon, f"an attack on the samples finds an epsilon of at least {found:.3g}"
    again = channel_from_dict(channel.to_dict())
    assert again.to_dict() == channel.to_dict(), "to_dict and from_dict do not agree"


def _check_counters(channel: Channel, outputs: list[tuple[int, ...]]) -> None:
    n, most = channel.n_counters, channel.per_report
    for output in outputs[:200]:
        at = list(channel.counters(output))
        assert len(at) == most, f"output {output} adds to {len(at)} counters, not {most}"
        assert all(0 <= k < n for k in at), f"output {output} adds to a counter that does not exist"
        raised = Counter(at)
        assert channel.n_answers([raised[k] for k in range(n)]) == 1, (
            "n_answers of the counters of one report is not 1"
        )


class _Draws:
    """A seeded source of random bits that records the number of bits of each request."""

    def __init__(self, seed: int) -> None:
        self.calls: list[int] = []
        self._random = random.Random(seed)

    def bits(self, n: int) -> int:
        self.calls.append(n)
        return self._random.getrandbits(n)

    def below(self, n: int) -> int:
        return below(self, n)


def _check_draws(channel: Channel) -> None:
    """Check that the sampler requests the same random bits for every input."""
    for seed in range(20):
        sources = _Draws(seed), _Draws(seed)
        for x, source in zip(channel.worst_pair(), sources, strict=True):
            output = channel.sample(x, source)
            assert channel.is_output(output), f"sample() returns {output}, which is not an output"
        assert sources[0].calls == sources[1].calls, "the requested random bits depend on the input"


def _check_law(channel: Channel, outputs: Sequence[tuple[int, ...]]) -> None:
    """Compare draws of the worst pair of inputs with the probabilities of all outputs."""
    place, response = {output: i for i, output in enumerate(outputs)}, channel.response
    most = math.sqrt(math.log(2 / _FALSE_ALARM) / (2 * _DRAWS))
    for x in channel.worst_pair():
        cdf = np.cumsum([float(channel.probability(x, output)) for output in outputs])
        source = _Draws(x & 0xFFFF)
        by_device = [channel.sample(x, source) for _ in range(_DRAWS)]
        by_batch = response.sample(response.inputs_of(x, _DRAWS), SecureDraws()).tolist()
        for name, drawn in (("sample()", by_device), ("response.sample()", by_batch)):
            counts = np.bincount([place[tuple(output)] for output in drawn], minlength=len(outputs))
            gap = float(np.abs(counts.cumsum() / _DRAWS - cdf).max())
            assert gap <= most, f"the draws of {name} for input {x} do not follow probability()"


def check_dimension(dimension: Dimension, values: Iterable[Any] = ()) -> None:
    """Check that a dimension encodes `values` and any other value in range, and that its document round-trips."""
    known = dimension.is_number or dimension.has_gaps or dimension.is_category
    assert known, f"no channel supports the input kind {dimension.input_kind!r}"
    size = len(dimension.categories) if dimension.is_category else 9
    assert dimension.fits(Input(dimension.input_kind, size)), (
        "fits() rejects a channel with the input kind of the dimension"
    )
    for value in (*values, *_STRANGE):
        code = dimension.encode(value, size)
        assert type(code) is int, f"the code of {value!r} is {code!r}, not an integer"
        assert 0 <= code <= (size - 1) << FRACTION_BITS, f"the code of {value!r} is out of range"
        if dimension.is_category:
            assert code % (1 << FRACTION_BITS) == 0, f"the category of {value!r} has a fraction"
    again = dimension_from_dict(dimension.to_dict())
    assert again.to_dict() == dimension.to_dict(), "to_dict and from_dict do not agree"


def check_statistic(
    statistic: Statistic,
    survey: Survey,
    *,
    records: Any = None,
    truth: Sequence[float] | None = None,
    runs: int = 200,
    **options: Any,
) -> None:
    """Check the rows of an empty tally, and the 95 % intervals of simulated ones.

    Parameters
    ----------
    statistic, survey
        The statistic, and a survey with dimensions that it supports.
    records, truth
        Records of users (say 50, because small samples are the hardest), and the true value of each row. Each interval
        must contain its estimate and have a positive width, and the intervals of each row must cover its truth in 93 %
        of the runs; correct intervals fail with a probability of at most 1e-4 per row.
    runs
        The number of simulated collections, with seeds 0, 1, ….
    options
        Options of the statistic.
    """
    supported = [
        j
        for j, dimension in enumerate(survey.schema)
        if statistic.supports(dimension, survey.questions[survey.question_of(j)].channel)
    ]
    assert supported, "the statistic supports no dimension of the survey"
    for part in statistic.parts(Tally(survey), supported, **options):
        assert part.dimension in supported, "parts() returns a dimension that was not requested"
        sizes = {len(part.categories), np.size(part.value), np.size(part.error)}
        assert len(sizes) == 1, "categories, value and error have different lengths"
        assert part.n_answers == 0, "an empty tally has answers"
        assert bool(np.isnan(part.value).all()), "the value of an empty tally is not NaN"
    if records is None or truth is None:
        return
    covered, shown = np.zeros((2, len(truth)), np.int64)
    for seed in range(runs):
        tally = simulate_tally(records, survey, seed=seed)
        parts = statistic.parts(tally, supported, **options)
        answer = answer_of(tally, [(statistic.name, part) for part in parts])
        assert len(answer) == len(truth), f"the statistic has {len(answer)} rows, and truth {len(truth)}"
        low, high = answer.interval(0.95)
        ok = np.array([status == OK for status in answer.status])
        assert (high > low)[ok].all(), "an interval has no width"
        assert ((low <= answer.value) & (answer.value <= high))[ok].all(), (
            "an interval does not contain its estimate"
        )
        covered += ok & (low <= truth) & (truth <= high)
        shown += ok
    least = binom.ppf(1e-4, shown, 0.93)
    for i in np.flatnonzero(covered < least).tolist():
        raise AssertionError(f"the interval of row {i} covers the truth in {covered[i]} of {shown[i]} runs")


def check_engine(engine: Engine, survey: Survey, records: pa.Table) -> None:
    """Check that an open engine writes all reports, counts them like the local engine, and counts invalid ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n = engine.perturb(records, survey, folder / "theirs.parquet")
        assert n == records.num_rows, f"{n} reports of {records.num_rows} records"
        theirs = engine.tally(folder / "theirs.parquet", survey)
        assert theirs == Local().tally(folder / "theirs.parquet", survey), (
            "the same reports give different counts than with the local engine"
        )
        assert theirs.n_reports == records.num_rows, "reports were lost"
        Local().perturb(records.slice(0, 50), survey, folder / "some.jsonl")
        with (folder / "some.jsonl").open("a", encoding="utf-8") as file:
            file.write("not a report\n")
        counted = engine.tally([folder / "some.jsonl"], survey)
        assert counted.n_reports == 50, "a malformed line changed the number of counted reports"
        assert sum(counted.rejected.values()) == 1, "a malformed line was not counted as rejected"
        try:
            engine.tally([folder / "some.jsonl"], survey, strict=True)
        except HDR4MEError:
            return
        raise AssertionError("a malformed report raised no error with strict=True")
