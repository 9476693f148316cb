"""ε as a bound on guesses: how certain an observer of a report can become."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from hdr4me.survey import Survey


def report_ratio(survey: Survey) -> Fraction:
    """Return the largest factor by which a report changes the odds of two records: the m largest ratios multiplied."""
    ratios = sorted((question.channel.likelihood_ratio for question in survey.questions), reverse=True)
    return prod(ratios[: survey.sampled], start=Fraction(1))


def guess(before: Fraction | float, factor: Fraction | float) -> float:
    """Return the largest probability of a guess after its odds are multiplied by `factor`.

    >>> guess(0.5, 3), round(guess(0.001, 3), 6)
    (0.75, 0.002994)
    """
    odds = Fraction(before) / (1 - Fraction(before)) * Fraction(factor)
    return float(odds / (1 + odds))


def share(value: float) -> str:
    """Format a probability as a percentage, rounded up.

    >>> [share(x) for x in (0.73106, 0.0029, 0.99996)]
    ['73.2 %', '0.3 %', 'almost 100 %']
    """
    tenths = -int(-value * 1000 // 1)
    return "almost 100 %" if tenths > 999 else f"{tenths / 10:g} %"
