"""What every channel must keep, by enumeration in fractions where its outputs are few."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from hdr4me.channels import Channel, Draws, channel_from_dict
from hdr4me.channels.channel import below
from hdr4me.channels.proof import exp_lower

_MOST = 5000
"""Outputs that are enumerated; a channel with more is checked on its first ones."""


class Counter:
    """Draws that count how many bits were asked for, from a fixed sequence."""

    def __init__(self, state: int = 1) -> None:
        self.calls: list[int] = []
        self._state = state

    def bits(self, n: int) -> int:
        """The next bits of a simple congruential sequence: enough to be different, and the same each time."""
        self.calls.append(n)
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 8) % (1 << n)

    def below(self, n: int) -> int:
        """As every source of draws."""
        return below(self, n)


def check_channel(channel: Channel) -> None:
    """A channel's law is a law, its loss is proven, and it answers without telling its input by what it draws.

    Raises
    ------
    AssertionError
        With the sentence that does not hold.
    """
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
    for output in outputs[:200]:
        at = list(channel.counters(output))
        assert len(at) == channel.per_report, (
            f"output {output} adds to {len(at)} counters, not {channel.per_report}"
        )
        assert all(0 <= k < channel.n_counters for k in at), (
            f"output {output} adds to a counter that is not there"
        )
        counts = [0] * channel.n_counters
        for k in at:
            counts[k] += 1
        assert channel.n_answers(counts) == 1, "n_answers does not know one report"


def _check_draws(channel: Channel) -> None:
    """The same draws are made for every input, whatever they give."""
    first, second = channel.worst_pair()
    for state in range(20):
        sources: list[Counter] = []
        for x in (first, second):
            source = Counter(state)
            draws: Draws = source
            output = channel.sample(x, draws)
            assert channel.is_output(output), f"sample gives {output}, which is no output"
            sources.append(source)
        assert sources[0].calls == sources[1].calls, "the draws tell of the input"
