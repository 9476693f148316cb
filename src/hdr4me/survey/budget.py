"""The budget: how it is shared among the answers sent, and that no channel spends more; standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.survey.schema import Schema

MAX_ROWS = 65536
"""Rows of all tables together: a client may lay them end to end and address one with 16 bits and a fraction."""


def split_budget(epsilon: float, n_sampled: int) -> float:
    """The largest float x with n_sampled·x ≤ epsilon, exactly.

    >>> split_budget(1.0, 3) * 3, Fraction(split_budget(1.0, 3)) * 3 <= 1
    (1.0, True)
    """
    share = epsilon / n_sampled
    while Fraction(share) * n_sampled > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return share


def check_budget(schema: Any, epsilon: Any, n_sampled: Any) -> None:
    """A schema, 0 < ε ≤ 65536 and m ≥ 1, or InvalidInput."""
    if not isinstance(schema, Schema):
        raise InvalidInput(f"schema = {schema!r} must be a Schema")
    try:
        positive = not isinstance(epsilon, bool | str) and 0 < float(epsilon) <= 65536
    except (TypeError, ValueError, OverflowError):
        positive = False
    if not positive:
        raise InvalidInput.of("epsilon", epsilon, "it must be positive and at most 65536")
    check_n_sampled(n_sampled, len(schema))


def check_n_sampled(n_sampled: Any, most: int) -> None:
    """1 ≤ m ≤ the number of questions."""
    whole = hasattr(n_sampled, "__index__") and not isinstance(n_sampled, bool)
    if not whole or not 1 <= n_sampled <= most:
        raise InvalidInput.of("n_sampled", n_sampled, f"it must be 1 to the number of questions, {most}")


def check_channels(epsilon: float, n_sampled: int, channels: Iterable[Channel]) -> None:
    """m answers of the channel that spends most stay within ε, or InvalidInput."""
    n_rows = 0
    for channel in channels:
        n_rows += len(channel.rows or ())
        if n_sampled * Fraction(channel.epsilon) > Fraction(epsilon):
            raise InvalidInput(
                f"channel {channel.mechanism!r} spends {channel.epsilon} on each of {n_sampled} answers, "
                f"more than the survey's epsilon = {epsilon}"
            )
    if n_rows > MAX_ROWS:
        raise InvalidInput(f"the channels have {n_rows} rows in all: at most {MAX_ROWS} are allowed")
