"""A plan in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hdr4me.planner.option import Option

__all__ = ["number", "percent", "summary"]


def number(x: float) -> str:
    """Two significant digits and no exponent.

    >>> number(0.2134), number(12.7), number(0.00031)
    ('0.21', '13', '0.00031')
    """
    text = f"{x:.2g}"
    return (
        f"{float(text):.0f}"
        if "e+" in text
        else (f"{float(text):.10f}".rstrip("0") if "e-" in text else text)
    )


def percent(p: float) -> str:
    """A probability as a percentage that never rounds to certainty.

    >>> percent(0.95), percent(0.99999), percent(0.0004)
    ('95 %', 'over 99.9 %', 'under 0.1 %')
    """
    if p > 0.999 and p < 1:
        return "over 99.9 %"
    if 0 < p < 0.001:
        return "under 0.1 %"
    return f"{100 * p:.3g} %"


def summary(
    option: Option, solved: str, asked: float | None = None, shortfall: str = "", why: str = ""
) -> str:
    """One line for the person who asked; `shortfall` says what is not reached, `why` what may surprise."""
    what = option.workload.what
    single = option.workload.n_coordinates == 1
    ask = {"n_users": "You need", "epsilon": "You need", "n_dims": "You can ask"}.get(solved, "")
    if solved == "n_users":
        head = f"{ask} {option.n_users:,} users at ε = {option.epsilon:g}: then "
    elif solved == "epsilon":
        head = f"{ask} ε = {option.epsilon:g} with {option.n_users:,} users: then "
    elif solved == "n_dims":
        head = (
            f"{ask} {option.n_dims:,} dimensions of {option.n_users:,} users at ε = {option.epsilon:g}: then "
        )
    else:
        head = f"With {option.n_users:,} users and ε = {option.epsilon:g}, "
    if single:
        body = (
            f"the estimate will be within ±{number(option.tolerance_each)} with {percent(option.probability)} "
            "probability"
        )
    else:
        body = (
            f"each of {what} will be within ±{number(option.tolerance_each)} with {percent(option.probability)} "
            f"probability, and all of them at once within ±{number(option.tolerance_joint)}"
        )
    worst = (
        f" (±{number(option.worst_tolerance_each)}"
        + ("" if single else f" and ±{number(option.worst_tolerance_joint)}")
        + " whatever the values are)"
    )
    within = ""
    if asked is not None and not solved:
        within = f"; ±{number(asked)} is kept by each with {percent(option.probability_within)}"
        within += (
            ""
            if single
            else f" and by all at once with {percent(option.joint_probability_within)} probability"
        )
    if shortfall:
        within = f"; {shortfall}" + within
    by = option.mechanism
    if option.categorical and option.workload.numeric:
        by += f" and {option.categorical}"
    how = f"; each user sends {option.n_sampled:,} of {option.n_dims:,} values by {by}"
    zeros = option.all_zeros_mse / option.mse
    if zeros >= 1:
        baseline = f"; all zeros would score {number(zeros)} times the error"
    else:
        baseline = (
            f"; all zeros would score BETTER, {number(zeros)} of the error: too few reports to learn from"
        )
    return (
        head
        + body
        + worst
        + within
        + how
        + baseline
        + f"; re-calibration is {option.recalibration.verdict}"
        + (f"; {why}." if why else ".")
    )
