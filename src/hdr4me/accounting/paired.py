"""The change between two rounds, from the reports of users who can be matched by a pseudonym."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hdr4me.accounting.channels import decoded_answers
from hdr4me.accounting.rounds import paired_difference
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

Answers = Sequence[Sequence[int]]


def paired_rounds(
    survey: Survey, first: Sequence[Answers], second: Sequence[Answers]
) -> list[dict[str, Any]]:
    """Means and frequencies of the second round minus those of the first, user by user.

    Permanent noise that two rounds share cancels in each user's own difference, so the standard error is that of what
    changed: zero where nothing did. Tallies cannot show this (see `hdr4me.accounting.rounds`).

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> same = [((0, 1),), ((0, 0),), ((0, 1),)]
    >>> row = paired_rounds(survey, same, same)[0]
    >>> row["dimension"], row["estimate"], row["standard_error"], row["users"]
    ('age', 0.0, 0.0, 3)
    """
    if len(first) != len(second):
        raise InvalidInput(
            f"{len(first)} and {len(second)} users cannot be paired: give the reports of the same users"
        )
    told: dict[int, list[tuple[Sequence[int], Sequence[int]]]] = {q: [] for q in range(len(survey.questions))}
    for before, after in zip(first, second, strict=True):
        later = {answer[0]: answer[1:] for answer in after}
        for q, *output in before:
            if q in later:
                told[q].append((output, later[q]))
    rows: list[dict[str, Any]] = []
    for q, pairs in told.items():
        for dimension, categories, decode in decoded_answers(survey, q):
            nothing = {"users": len(pairs), "estimate": None, "standard_error": None, "status": "ok"}
            found: list[dict[str, Any]] = [
                {"dimension": dimension, "category": category, **nothing} for category in categories
            ]
            if isinstance(decode, str):
                found[0]["status"] = f"not defined for {decode}"
            elif len(pairs) < 2:
                for row in found:
                    row["status"] = "fewer than two users in both rounds"
            else:
                before, after = (decode(np.array(outputs, np.int64)) for outputs in zip(*pairs, strict=True))
                change = paired_difference(before, after)
                for row, estimate, error in zip(found, change.estimate, change.standard_error, strict=True):
                    row |= {"estimate": float(estimate), "standard_error": float(error)}
            rows += found
    return rows
