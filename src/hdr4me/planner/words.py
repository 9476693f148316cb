"""A plan in sentences: the tolerances that it meets, and notes in the order of their importance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hdr4me.pages.text import pluralize
from hdr4me.planner.candidates import BLOCKS, CODEBOOK, OPTIONAL, PAIR, PRIVSET, arrangement

if TYPE_CHECKING:
    from hdr4me.planner.plan import Option, Plan

_SCALE = "scale [-1, 1]"
_USELESS = 1.0  # a tolerance of half the range or more carries no information about a mean
_NEARLY = 1 - 1e-9  # the largest probability of a prediction: none is certain
_NO_MEAN = "the share of users who have an optional value is less than three of its standard errors"
_TOO_FEW = "there are too few answers"


def number(x: float) -> str:
    """Two significant digits and no exponent."""
    return f"{float(f'{x:.2g}'):.10f}".rstrip("0").rstrip(".") if math.isfinite(x) else "∞"


def percent(p: float) -> str:
    """A probability as a percentage that never rounds to certainty."""
    if 0.999 < p < 1:
        return "over 99.9 %"
    return "under 0.1 %" if 0 < p < 0.001 else f"{100 * p:.3g} %"


def summary(plan: Plan) -> str:
    """The predicted accuracy and the design, in two to four sentences."""
    option = plan.best
    if plan.statistic != "mean":
        return f"{_of_statistic(plan)} {_sent(plan)}"
    guess = _guess(option)[0]
    useless = f"Not recommended: guessing {guess} without any data has a smaller expected error."
    promise = _promise_own(plan) if plan.requested_own else _promise(option)
    sentences = [
        "" if option.beats_baseline else useless,
        f"{_opening(plan)}{promise}.",
        f"{plan.shortfall}." if plan.shortfall and math.isfinite(option.tolerance_each) else "",
        "" if plan.shortfall else _tolerance_result(plan),
        _sent(plan),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def notes(plan: Plan) -> tuple[str, ...]:
    """Assumptions and details in sentences, the most important first."""
    if plan.statistic != "mean":
        return plan.left_out
    option = plan.best
    guess, ratio = _guess(option)
    answers = number(option.reports_per_dimension)
    few = f"With {answers} answer{'s' * (answers != '1')} for each dimension, bounds replace the normal approximation."
    kept = ", ".join(f"{name} ±{number(error)}" for name, error in list(option.errors.items())[:4])
    found = [
        few if option.small_sample else "",
        _present(option),
        _assumption(plan),
        *(f"{sentence}." for sentence in plan.left_out),
        _largest(option),
        _gain(plan),
        "" if plan.requested_own else _units(plan),
        f"Standard errors: {kept}." if kept else "",
        f"Guessing {guess}, without any data, would have {ratio}." if option.beats_baseline else "",
        f"Re-calibration is {option.recalibration.verdict}.",
    ]
    return tuple(note for note in found if note)


def _of_statistic(plan: Plan) -> str:
    error = f"the {error_name(plan.statistic)} is {number(plan.statistic_errors[0])}"
    within = (
        f"{_plus_minus(plan.best.tolerance_each)} ({percent(plan.best.probability)} probability; {_SCALE})"
    )
    return f"{_opening(plan)}{error}, and each mean will be within {within}."


def error_name(statistic: str) -> str:
    """What a plan predicts for a statistic (see `hdr4me.planner.statistics.predict`)."""
    names = {
        "distribution": "Wasserstein distance of a distribution",
        "quantile": "root mean square error of a quantile",
        "sd": "standard error of a standard deviation",
        "mean_by": "standard error of the mean in a group",
    }
    return names.get(statistic, f"standard error of a {statistic}")


def _guess(option: Option) -> tuple[str, str]:
    """The better answer that needs no data, and its error in words."""
    groups = option.workload.groups
    categories = [group for group in groups if group.size]
    means = [group for group in groups if not group.size]
    shares = categories or any(group.optional for group in groups)
    even = "equal frequencies" if categories else "zero for means and one half for shares"
    zero = f"zero for every {' and '.join(['mean'] * bool(means) + ['share'] * bool(shares))}"
    ratio = number(min(option.all_zeros_mse, option.even_mse) / option.mse)
    words = f"{ratio} times the mean squared error of this plan"
    assumed = (
        ["the true means are spread evenly over their ranges"]
        if any(not group.length or group.squares is None for group in means)
        else []
    )
    if any(not group.choices and group.squares is None for group in categories):
        assumed.append("frequencies follow Zipf's law, f_k ∝ 1/k")
    words += f" if {' and '.join(assumed)}" if assumed else ""
    return zero if option.all_zeros_mse <= option.even_mse else even, words


def _opening(plan: Plan) -> str:
    option = plan.best
    users, budget = pluralize(option.users, "user"), f"ε = {option.epsilon:g}"
    openings = {
        "users": f"You need {users} at {budget}. Then ",
        "epsilon": f"You need {budget} with {users}. Then ",
        "dims": f"The survey can have {pluralize(option.dims, 'dimension')} with {users} at {budget}. Then ",
    }
    return openings.get(plan.solved, f"With {users} and {budget}, ")


def _sent(plan: Plan) -> str:
    """The number of questions that a person answers, and the mechanism of each kind of question."""
    option, workload = plan.best, plan.best.workload
    questions = arrangement(option.base).n_questions(workload, option.sampled)
    answered, numbers = option.sampled, option.mechanism
    if option.mechanism == BLOCKS:
        answered, numbers = 1, f"{BLOCKS} in blocks of {option.sampled}"
    elif option.mechanism == PAIR:
        numbers = "in pairs"
    auto = option.categorical == "auto"
    by = {
        "numbers": numbers if workload.numeric else "",
        "optional numbers": OPTIONAL if workload.optional else "",
        "vectors": CODEBOOK if any(group.length for group in workload.groups) else "",
        "categories": "chosen automatically" if auto else option.categorical,
        "selections": PRIVSET if workload.selections else "",
    }
    kinds = "; ".join(f"{kind}: {name}" for kind, name in by.items() if name)
    of = f"{answered:,} of the {questions:,} questions"
    if answered == questions:
        of = "the question" if questions == 1 else f"all {questions:,} questions"
    return f"Each person answers {of} (mechanism for {kinds})."


def _gain(plan: Plan) -> str:
    """How much smaller the error of pairs is than that of numbers in single questions."""
    alone = next((x for x in plan.options if x.mechanism not in (PAIR, BLOCKS)), None)
    if plan.best.mechanism != PAIR or alone is None or alone.mse < 1.05 * plan.best.mse:
        return ""
    ratio = number(alone.mse / plan.best.mse)
    return (
        f"Asking numbers in pairs divides the mean squared error by {ratio}, compared with {alone.mechanism}."
    )


def _present(option: Option) -> str:
    """The share of users that is assumed to have an optional value."""
    groups = [group for group in option.workload.groups if group.optional]
    if not groups:
        return ""
    shares = [group.expected_present for group in groups]
    range_of_shares = " to ".join(dict.fromkeys((percent(min(shares)), percent(max(shares)))))
    specified = [group.present is not None for group in groups]
    if all(specified):
        return f"Uses the given share of people with an optional value, {range_of_shares}."
    part = " (given for some dimensions)" if any(specified) else ""
    return f"Assumes that {range_of_shares} of people have a value{part}; pass --prior FILE to use your own share."


def _assumption(plan: Plan) -> str:
    """What the margins of error assume about the values."""
    if plan.setting.worst:
        return "The margins of error hold for any values."
    if plan.setting.prior_name == "given":
        return "The margins of error are for the given values."
    how = (
        "values are spread evenly over their ranges"
        if plan.best.workload.numeric
        else "all answers are equally common"
    )
    return f"Assumes that {how}; pass --prior FILE to use your own values."


def _largest(option: Option) -> str:
    """The least accurate row, where rows differ."""
    law = option.deviation()
    if not law.rows or law.variances.max() <= 1.1 * law.variances.min():
        return ""
    row = max(law.rows, key=lambda row: float(law.variances[row.kind]))
    return f"The least accurate row is the {row.label}."


def not_reachable(
    nearest: Plan, tolerance: float, probability: float, reason: str, own: Mapping[str, float]
) -> str:
    """That no candidate meets the tolerance (`own`: by dimension, in own units), and the nearest one that is met."""
    best = nearest.best
    reached = best.tolerance_joint if nearest.setting.jointly else best.tolerance_each
    asked, met = f"±{number(tolerance)} for {best.workload.what}", _TOO_FEW
    if own:
        asked = _own(nearest, own)
    if math.isfinite(reached):
        met = f"{_own(nearest, {k: x * reached / tolerance for k, x in own.items()}) or f'±{number(reached)}'} is"
    return f"{reason}, the tolerance {asked} is not reached with {percent(probability)} probability; {met}"


def _promise(option: Option) -> str:
    workload, single = option.workload, option.workload.n_coordinates == 1
    if not math.isfinite(option.tolerance_each) and workload.has_optional:
        return f"no accuracy can be promised for {workload.what}, because {_NO_MEAN}"
    numeric = not all(group.size for group in workload.groups)
    useless = _USELESS if option.small_sample and numeric else math.inf
    subject = "the estimate" if single else f"each of {workload.what}"
    if ", " in workload.what:
        subject = f"each estimate ({workload.what})"
    if not math.isfinite(option.tolerance_each):
        return f"no bound holds for {subject}, because {_TOO_FEW}"
    shares = "; shares: [0, 1]" if numeric and option.workload.categorical else ""
    under = percent(option.probability) + " probability" + f"; {_SCALE}{shares}" * numeric
    each = f"{subject} will be within {_plus_minus(option.tolerance_each)}"
    if single:
        return f"{each} ({under})"
    if option.tolerance_joint > useless:
        return f"{each} ({under}); no useful bound holds for all of them at once, because {_TOO_FEW}"
    return f"{each}, and all of them at once within {_plus_minus(option.tolerance_joint)} ({under})"


def _promise_own(plan: Plan) -> str:
    """The margins of error of the dimensions that have a tolerance."""
    names, p = list(plan.requested_own), percent(plan.best.probability)
    if not math.isfinite(plan.best.tolerance_each) and plan.best.workload.has_optional:
        return f"no accuracy can be promised for {', '.join(names[:3])}, because {_NO_MEAN}"
    each, together = (
        _own(plan, {name: plan.own_units[name][of] for name in names}) for of in ("each", "all")
    )
    if len(names) == 1 and "coordinates of " not in each:
        return f"the margin of error is {each} ({p} probability)"
    return f"the margins of error are {each}; jointly they are {together} ({p} probability)"


def _plus_minus(x: float) -> str:
    return f"±{number(x)}" if math.isfinite(x) else "no bound"


def _tolerance_result(plan: Plan) -> str:
    option = plan.best
    if plan.requested is None or plan.solved:
        return ""
    own = _own(plan, plan.requested_in_units)
    scaled = f"±{number(plan.requested)}" + (f" of a range scaled to [-1, 1] ({own})" if own else "")
    words = f"The tolerance {own if plan.requested_own else scaled} is met with"
    each, joint = (
        percent(min(p, _NEARLY)) for p in (option.probability_within, option.joint_probability_within)
    )
    if each == joint:
        return f"{words} {each} probability."
    return f"{words} {each} probability by each estimate, and with {joint} by all of them at once."


def _units(plan: Plan) -> str:
    """The tolerances of the first numbers of a schema in their own units."""
    if plan.best.schema is None or not math.isfinite(plan.best.tolerance_each):
        return ""
    numbers = [d.name for d in plan.best.schema.dimensions if not d.categories and d.name in plan.own_units]
    tolerances = _own(plan, {name: plan.own_units[name]["each"] for name in numbers})
    return f"Margins of error of each alone: {tolerances}." if tolerances else ""


def _own(plan: Plan, tolerances: Mapping[str, float]) -> str:
    """Tolerances of the first dimensions in their own units, each with the names of unit and dimension."""
    words = []
    for name, tolerance in list(tolerances.items())[:3]:
        of = "coordinates of " if getattr(plan.best.schema[name], "length", 0) else ""
        size = f"±{number(tolerance)} {plan.unit(name)}".rstrip()
        words.append(f"{size} for {of}{name}")
    more = f" and {len(tolerances) - 3:,} more" if len(tolerances) > 3 else ""
    return ", ".join(words) + more
