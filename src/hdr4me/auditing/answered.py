"""What users with one and the same value send, through the engine that batches go through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.privset import PrivSet
from hdr4me.engines.local import Local
from hdr4me.survey import Categorical, Dimension, Numeric, Question, Schema, Selection, Survey, Vector
from hdr4me.tally.counting import fields_of

__all__ = ["answered"]


def answered(channel: Channel, x: int, n_draws: int) -> NDArray[np.int64]:
    """What `n_draws` users with input x send, through the engine that batches go through."""
    dimensions: list[Dimension] = []
    values: list[float] = []
    rest = channel.n_inputs
    if isinstance(channel, HeavySet) and isinstance(channel.family, Codebook):
        return _vectors(channel, channel.family, x, n_draws)
    if isinstance(channel, HeavySet) and isinstance(channel.family, PrivSet):
        return _selected(channel, channel.family, x, n_draws)
    for number, take in enumerate(channel.takes):
        rest //= take.size
        own = (x // rest) % take.size
        if take.reads == "category":
            dimensions.append(Categorical(f"x{number}", range(take.size)))
            values.append(own)
            continue
        n_levels = take.size - (take.reads == "optional")
        dimensions.append(Numeric(f"x{number}", -1, 1, optional=take.reads == "optional"))
        values.append(2 * own / (n_levels - 1) - 1 if own < n_levels else math.nan)
    return _sent(dimensions, channel, np.broadcast_to(np.array(values), (n_draws, len(values))))


def _selected(channel: HeavySet, family: PrivSet, x: int, n_draws: int) -> NDArray[np.int64]:
    """The same for a set of categories."""
    text = "|".join(str(item) for item in family.members(x) if item < family.size)
    records = pa.table({"x": pa.array([text]).take(np.zeros(n_draws, np.int64))})
    return _sent([Selection("x", range(family.size), family.most)], channel, records)


def _vectors(channel: HeavySet, family: Codebook, x: int, n_draws: int) -> NDArray[np.int64]:
    """The same for a vector."""
    records = np.broadcast_to(np.array(family.vector(x)), (n_draws, family.length))
    return _sent([Vector("x", family.length)], channel, records)


def _sent(dimensions: Sequence[Dimension], channel: Channel, records: Any) -> NDArray[np.int64]:
    """The answers to one question about all the dimensions."""
    questions = [Question(tuple(range(len(dimensions))), channel)]
    survey = Survey.from_questions(
        Schema(dimensions), epsilon=channel.epsilon, n_sampled=1, questions=questions
    )
    return np.concatenate([fields_of(block[:, 2:], channel) for block in Local().reports(records, survey)])
