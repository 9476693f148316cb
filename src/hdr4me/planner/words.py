"""A plan in words: which tolerances it keeps, of all dimensions or of those named."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hdr4me.pages.counted import counted, listed
from hdr4me.planner.candidates import BLOCKS, CODEBOOK, OPTIONAL, PAIR, PRIVSET, arrangement

if TYPE_CHECKING:
    from hdr4me.planner.plan import Option, Plan

_USELESS = 1.0  # a tolerance of half the range or more says nothing about a mean
_NO_MEAN = "the share of users who have an optional value is less than three of its standard errors"


def number(x: float) -> str:
    """Two significant digits and no exponent."""
    return f"{float(f'{x:.2g}'):.10f}".rstrip("0").rstrip(".") if math.isfinite(x) else "∞"


def percent(p: float) -> str:
    """A probability as a percentage that never rounds to certainty."""
    if 0.999 < p < 1:
        return "over 99.9 %"
    return "under 0.1 %" if 0 < p < 0.001 else f"{100 * p:.3g} %"


def summary(plan: Plan) -> str:
    """One line for the person who asked; a plan that is worse than asking nobody says so first."""
    option = plan.best
    if plan.statistic != "mean":
        return _of_statistic(plan)
    guess, ratio, beats = *_guess(option), option.beats_baseline
    answers = number(option.reports_per_dimension)
    answers += " answer" if answers == "1" else " answers"
    kept = ", ".join(f"{name} ±{number(error)}" for name, error in list(option.errors.items())[:4])
    better = f"answering {guess} without asking anybody would score BETTER, {ratio}. "
    parts = [
        _opening(plan) + (_promise_own(plan) if plan.asked_own else _promise(option)),
        plan.shortfall,
        _asked(plan),
        "" if plan.asked_own else _units(plan),
        f"standard errors: {kept}" if kept else "",
        _present(option),
        _sent(plan),
        f"{guess} would score {ratio}" if beats else "",
        f"with {answers} for each dimension bounds replace the normal law" if option.small_sample else "",
        f"re-calibration is {option.recalibration.verdict}",
    ]
    return (
        ("" if beats else f"NOT WORTH ASKING AS IT IS: {better}")
        + "; ".join(part for part in parts if part)
        + "."
    )


def _of_statistic(plan: Plan) -> str:
    names = {"sd": "standard deviation", "mean_by": "mean in one of the groups"}
    error = f"a {names.get(plan.statistic, plan.statistic)} will be off by {number(plan.statistic_errors[0])}"
    means = f"its means will be within {_plus_minus(plan.best.tolerance_each)} each"
    return f"{_opening(plan)}{error} on the scale [-1, 1]; {_sent(plan)}; {means}."


def _guess(option: Option) -> tuple[str, str]:
    """The better answer without asking anybody, and its error over the option's."""
    categories = [group for group in option.workload.groups if group.size]
    even = "equal frequencies" if categories else "zeros for means and one half for shares"
    words = f"{number(min(option.all_zeros_mse, option.even_mse) / option.mse)} times the error"
    if any(not group.choices and group.squares is None for group in categories):
        words += " (with frequencies like Zipf's, f_k ∝ 1/k)"
    return "all zeros" if option.all_zeros_mse <= option.even_mse else even, words


def _opening(plan: Plan) -> str:
    option = plan.best
    users, budget = counted(option.users, "user"), f"ε = {option.epsilon:g}"
    openings = {
        "users": f"You need {users} at {budget}: then ",
        "epsilon": f"You need {budget} with {users}: then ",
        "dims": f"You can ask {counted(option.dims, 'dimension')} of {users} at {budget}: then ",
    }
    return openings.get(plan.solved, f"With {users} and {budget}, ")


def _sent(plan: Plan) -> str:
    """How many questions a user answers and by which mechanisms; of pairs also what they gain."""
    option, workload = plan.best, plan.best.workload
    questions = arrangement(option.base).n_questions(workload)
    alone = next((x for x in plan.options if x.mechanism not in (PAIR, BLOCKS)), None)
    if questions != option.dims:
        words = f"each user answers {option.sampled:,} of {questions:,} questions, numbers in pairs"
        if option.mechanism == PAIR and alone is not None:
            gain = f"{number(alone.mse / option.mse)} times less error"
            words += f", because two numbers asked together under the whole budget have {gain} than {alone.mechanism}"
        return words
    by = f"{BLOCKS} blocks (signs, asked together)"
    if option.mechanism != BLOCKS:
        names = [option.mechanism, option.categorical, PRIVSET if workload.selections else ""]
        names += [CODEBOOK if any(group.length for group in workload.groups) else ""]
        names += [OPTIONAL if workload.optional else ""]
        by = listed(list(dict.fromkeys(name for name in names if name)))
    return f"each user sends {option.sampled:,} of {counted(option.dims, 'value')} by {by}"


def _present(option: Option) -> str:
    """How many users are assumed to have an optional value."""
    groups = [group for group in option.workload.groups if group.optional]
    if not groups:
        return ""
    shares = [group.expected_present for group in groups]
    taken = " to ".join(dict.fromkeys((percent(min(shares)), percent(max(shares)))))
    given = [group.present is not None for group in groups]
    how = "as given" if all(given) else "in part assumed" if any(given) else "assumed"
    return f"{taken} of the users have an optional value ({how})"


def not_reachable(nearest: Plan, tolerance: float, probability: float, reason: str) -> str:
    """That nothing keeps the tolerance, and what comes nearest."""
    best = nearest.best
    reached = best.tolerance_joint if nearest.setting.jointly else best.tolerance_each
    return (
        f"not reachable: {reason} do not keep {best.workload.what} within ±{number(tolerance)} with "
        f"{percent(probability)} probability; the nearest is ±{number(reached)} by {best.mechanism}, "
        f"{best.sampled:,} of {counted(best.dims, 'value')} sent"
    )


def _promise(option: Option) -> str:
    workload, single = option.workload, option.workload.n_coordinates == 1
    worst = [option.worst_tolerance_each] + ([] if single else [option.worst_tolerance_joint])
    if not math.isfinite(option.tolerance_each) and workload.has_optional:
        return f"nothing can be promised of {workload.what}: {_NO_MEAN}"
    useless = (
        _USELESS if option.small_sample and not all(group.size for group in workload.groups) else math.inf
    )
    subject = "the estimate" if single else f"each of {workload.what}"
    p = percent(option.probability)
    each = f"{subject} will be within {_plus_minus(option.tolerance_each)} with {p} probability"
    if not single and option.tolerance_joint > useless:
        return f"{each}; for all of them at once nothing useful can be promised: too few answers"
    joint = "" if single else f", and all of them at once within {_plus_minus(option.tolerance_joint)}"
    if max(worst) > useless:
        return f"{each}{joint} (nothing useful can be promised whatever the values are: too few answers)"
    return f"{each}{joint} ({' and '.join(map(_plus_minus, worst))} whatever the values are)"


def _promise_own(plan: Plan) -> str:
    """What is kept of the dimensions that were asked for by name; nothing is asked of the others."""
    names, p = list(plan.asked_own), percent(plan.best.probability)
    if not math.isfinite(plan.best.tolerance_each) and plan.best.workload.has_optional:
        return f"nothing can be promised of {', '.join(names[:3])}: {_NO_MEAN}"
    each, together, worst = (
        _own(plan, {name: plan.own_units[name][of] for name in names}) for of in ("each", "all", "worst_all")
    )
    several = len(names) > 1 or "coordinates of " in each
    joint = f" each; all of these at once: {together}" if several else ""
    return f"{each} will be kept with {p} probability{joint} ({worst} whatever the values are)"


def _plus_minus(x: float) -> str:
    return f"±{number(x)}" if math.isfinite(x) else "no bound"


def _asked(plan: Plan) -> str:
    option = plan.best
    if plan.asked is None or plan.solved:
        return ""
    own = _own(plan, plan.asked_in_units)
    scaled = f"±{number(plan.asked)}" + (f" of a range scaled to [−1, 1] ({own})" if own else "")
    words = f"{own if plan.asked_own else scaled} is kept by each with {percent(option.probability_within)}"
    if option.workload.n_coordinates > 1:
        words += f" and by all at once with {percent(option.joint_probability_within)} probability"
    return words


def _units(plan: Plan) -> str:
    """The first numbers of a schema in their own units."""
    if plan.best.schema is None or not math.isfinite(plan.best.tolerance_each):
        return ""
    numbers = [d.name for d in plan.best.schema.dimensions if not d.categories and d.name in plan.own_units]
    kept = _own(plan, {name: plan.own_units[name]["each"] for name in numbers})
    return f"in their own units, each: {kept}" if kept else ""


def _own(plan: Plan, tolerances: dict[str, float]) -> str:
    """Tolerances of the first dimensions in their own units, the unit's name behind each."""
    words = []
    for name, tolerance in list(tolerances.items())[:3]:
        of = "coordinates of " if getattr(plan.best.schema[name], "length", 0) else ""
        words.append(f"{of}{name} ±{number(tolerance)} {plan.unit(name)}".rstrip())
    more = f" and {len(tolerances) - 3:,} more" if len(tolerances) > 3 else ""
    return ", ".join(words) + more
