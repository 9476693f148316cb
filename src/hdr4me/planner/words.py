"""A plan in words: what it promises, of everything that is asked or of the dimensions that were named, and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hdr4me.mechanisms.joint import JOINT_FROM
from hdr4me.pages.counted import counted, listed
from hdr4me.planner.candidates import BLOCKS, CODEBOOK, OPTIONAL, PAIR, PRIVSET, Candidate, arrangement

if TYPE_CHECKING:
    from hdr4me.planner.option import Option
    from hdr4me.planner.plan import Plan
    from hdr4me.planner.workload import Group


_WORTH_WEIGHING = 1.1
_USELESS = 1.0
"""A tolerance of half the range or more says nothing about a mean."""
_UNTOLD = (
    "the share of users who have an optional value is less than three of its standard errors, so that no mean among "
    "them is told"
)


def number(x: float) -> str:
    """Two significant digits and no exponent.

    >>> number(0.2134), number(12.7), number(0.00031)
    ('0.21', '13', '0.00031')
    """
    if not math.isfinite(x):
        return "∞"
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


def summary(plan: Plan) -> str:
    """One line for the person who asked; a plan that is worse than asking nobody says so first."""
    option = plan.best
    if plan.statistic != "mean":
        return _of_statistic(plan)
    parts = [
        _opening(plan) + (_promise_own(plan) if plan.asked_own else _promise(option)),
        plan.shortfall,
        _asked(plan),
        "" if plan.asked_own else _units(plan),
        _choices(option),
        _present(option),
        _sent(option),
        _zeros(option),
        _few(option),
        _uneven(option),
        _in_pairs(plan),
        _why_pairs(plan),
        f"re-calibration is {option.recalibration.verdict}",
        _why_not_optimal(plan),
    ]
    return _warning(option) + "; ".join(part for part in parts if part) + "."


_ERRORS = {
    "distribution": "the distribution will be off by {} (Wasserstein-1 distance)",
    "quantile": "a quantile will be off by {}",
    "variance": "a variance will be off by {}",
    "sd": "a standard deviation will be off by {}",
    "covariance": "a covariance will be off by {}",
    "mean_by": "a mean in one of the groups, all of one size, will be off by {}",
}


def _of_statistic(plan: Plan) -> str:
    """One line for a plan that is for another statistic than the mean."""
    option, error = plan.best, plan.statistic_errors[0]
    body = f"With {counted(option.n_users, 'user')} and ε = {option.epsilon:g}, "
    body += _ERRORS[plan.statistic].format(f"{number(error)} on the scale [-1, 1]")
    shapes = plan.statistic in ("distribution", "quantile") and plan.setting.prior_name == "uniform"
    body += ", averaged over three shapes of values" if shapes else ""
    sent = f"each user sends {option.n_sampled:,} of {counted(option.n_dims, 'value')} by {_by(option)}"
    return f"{body}; {sent}; its means will be within {_plus_minus(option.tolerance_each)} each."


def _warning(option: Option) -> str:
    if option.beats_baseline:
        return ""
    guess, ratio = _guess(option)
    return (
        f"NOT WORTH ASKING AS IT IS: answering {guess} without asking anybody would score BETTER, "
        f"{ratio} of the error{_assumed(option)}. "
    )


def _zeros(option: Option) -> str:
    guess, ratio = _guess(option)
    return f"{guess} would score {ratio} times the error{_assumed(option)}" if option.beats_baseline else ""


def _guess(option: Option) -> tuple[str, str]:
    """The better answer without asking anybody, and its error over the option's."""
    least = min(option.all_zeros_mse, option.even_mse)
    frequencies = option.workload.categorical or option.workload.selections
    even = "equal frequencies" if frequencies else "zeros for means and one half for shares"
    return "all zeros" if option.all_zeros_mse <= option.even_mse else even, number(least / option.mse)


def _assumed(option: Option) -> str:
    """What the baseline takes the truth to be, where it has categories."""
    if not option.workload.categorical:
        return ""
    if all(group.squares is not None for group in option.workload.groups if group.size):
        return " (with the frequencies given)"
    return " (with frequencies like Zipf's, f_k ∝ 1/k)"


def _opening(plan: Plan) -> str:
    option = plan.best
    users, budget = counted(option.n_users, "user"), f"ε = {option.epsilon:g}"
    if plan.solved == "n_users":
        return f"You need {users} at {budget}: then "
    if plan.solved == "epsilon":
        return f"You need {budget} with {users}: then "
    if plan.solved == "n_dims":
        return f"You can ask {counted(option.n_dims, 'dimension')} of {users} at {budget}: then "
    return f"With {users} and {budget}, "


def _sent(option: Option) -> str:
    questions = arrangement(option.base).n_questions(option.workload)
    if questions == option.n_dims:
        return f"each user sends {option.n_sampled:,} of {counted(option.n_dims, 'value')} by {_by(option)}"
    return f"each user answers {option.n_sampled:,} of {questions:,} questions, numbers in pairs"


def _in_pairs(plan: Plan) -> str:
    """Whether asking numbers two by two would pay, where pairs were no candidate."""
    setting, best = plan.setting, plan.best
    plain = best.workload.prior is not None and best.workload.prior.uniform and not setting.worst
    if PAIR in setting.mechanisms or best.workload.numeric < 2 or not plain or not _may_pair(best):
        return ""
    method = best.categorical
    m = setting.best_sampled(Candidate(PAIR, method))
    gain = best.mse / float(setting.classes(Candidate(PAIR, method), (m,)).mse[0])
    if gain < _WORTH_WEIGHING:
        return ""
    return f"asking numbers in pairs (mechanism pair) would lower the error {number(gain)} times"


def _why_pairs(plan: Plan) -> str:
    """Why numbers are asked in pairs: the error of the best that asks for one at a time."""
    alone = next((x for x in plan.options if x.mechanism not in (PAIR, BLOCKS)), None)
    if plan.best.mechanism != PAIR or alone is None:
        return ""
    return (
        f"pairs, because two numbers asked together under the whole budget have {number(alone.mse / plan.best.mse)} "
        f"times less error than one at a time by {alone.mechanism}"
    )


def _may_pair(option: Option) -> bool:
    """Pairs are of numbers that are not optional, under at least `JOINT_FROM`."""
    return option.epsilon >= JOINT_FROM and arrangement(PAIR).supports(option.workload)


def _choices(option: Option) -> str:
    """The predicted errors of selections, vectors and what is optional."""
    kept = ", ".join(f"{name} ±{number(error)}" for name, error in list(option.errors.items())[:4])
    kinds = [("selections", option.workload.selections), ("vectors", option.workload.vectors)]
    kinds += [("optional vectors", option.workload.optional_vectors)]
    kinds += [("optional numbers", option.workload.optional)]
    of = listed([kind for kind, there in kinds if there])
    return f"standard errors of {of}: {kept}" if kept else ""


def _present(option: Option) -> str:
    """How many users are taken to have an optional number, and how many an optional vector."""
    groups = [group for group in option.workload.groups if group.optional]
    kinds = [("number", [group for group in groups if not group.length])]
    kinds += [("vector", [group for group in groups if group.length])]
    return "; ".join(_taken(kind, own) for kind, own in kinds if own)


def _taken(kind: str, groups: list[Group]) -> str:
    shares = sorted({group.expected_present for group in groups})
    taken = " to ".join(dict.fromkeys(percent(share) for share in (shares[0], shares[-1])))
    told = [group.present is not None for group in groups]
    how = "in part assumed" if any(told) else "assumed: values with gaps tell otherwise"
    how = "as told" if all(told) else how
    return f"{taken} of the users are taken to have an optional {kind} ({how})"


def _by(option: Option) -> str:
    both = option.categorical and option.workload.numeric
    if option.mechanism == BLOCKS:
        return f"{BLOCKS} blocks (signs, asked together)"
    words = [option.mechanism, option.categorical] if both else [option.mechanism]
    own = [(PRIVSET, option.workload.selections), (CODEBOOK, _has_vectors(option))]
    own += [(OPTIONAL, option.workload.optional)]
    return listed([*words, *(name for name, there in own if there and name not in words)])


def _few(option: Option) -> str:
    if not option.few:
        return ""
    few = number(option.reports_per_dimension)
    few += " answer" if few == "1" else " answers"
    return (
        f"with {few} for each dimension the normal law does not carry: the "
        "number of answers is summed over, and what holds whatever the values are is a bound"
    )


def _uneven(option: Option) -> str:
    """Whether asking some dimensions more often than others would pay."""
    if option.n_sampled != 1 or len(option.workload.groups) < 2:
        return ""
    gain = option.draw().gain
    if gain < _WORTH_WEIGHING:
        return ""
    return f"asking dimensions of larger error more often would lower the error {number(gain)} times"


def _why_not_optimal(plan: Plan) -> str:
    """Why `optimal` was a candidate for numbers and is not the first; empty if it is, or was none."""
    best = plan.best
    first = best.mechanism in ("optimal", "optimal_mean") and not plan.setting.worst
    if not best.workload.numeric or best.mechanism == "optimal" or first:
        return ""
    if "optimal" not in plan.setting.mechanisms or best.mechanism == PAIR:
        return ""
    words = "optimal, which makes the largest variance of a report smallest, is not first here: "
    if not plan.setting.worst:
        return (
            words + f"over the values assumed {best.mechanism} has less on average "
            '(--prior worst, prior="worst", ranks by the worst case)'
        )
    return words + f"with the spread of the values themselves {best.mechanism} has less at its worst"


def not_reachable(nearest: Plan, tolerance: float, probability: float, reason: str) -> str:
    """That nothing keeps the tolerance, and what comes nearest."""
    best = nearest.best
    reached = best.tolerance_joint if nearest.setting.jointly else best.tolerance_each
    return (
        f"not reachable: {reason} do not keep {best.workload.what} within ±{number(tolerance)} with "
        f"{percent(probability)} probability; the nearest is ±{number(reached)} by {best.mechanism}, "
        f"{best.n_sampled:,} of {counted(best.n_dims, 'value')} sent"
    )


def _promise(option: Option) -> str:
    single = option.workload.n_coordinates == 1
    p, each, joint = percent(option.probability), option.tolerance_each, option.tolerance_joint
    worst = [option.worst_tolerance_each] + ([] if single else [option.worst_tolerance_joint])
    if not math.isfinite(each) and _has_optional(option):
        return f"nothing can be promised of {option.workload.what}: {_UNTOLD}"
    bounded = option.workload.numeric or option.workload.optional or _has_vectors(option)
    if not single and option.few and joint > _USELESS and bounded:
        return (
            f"each of {option.workload.what} will be within {_plus_minus(each)} with {p} probability, if the values "
            "are as assumed; for all of them at once nothing that helps can be promised: too few answers"
        )
    if single:
        body = f"the estimate will be within {_plus_minus(each)} with {p} probability"
    else:
        body = (
            f"each of {option.workload.what} will be within {_plus_minus(each)} with {p} probability, and all of them "
            f"at once within {_plus_minus(joint)}"
        )
    if option.few and max(worst) > _USELESS and bounded:
        return body + " (nothing that helps can be promised whatever the values are: too few answers)"
    return body + f" ({' and '.join(map(_plus_minus, worst))} whatever the values are)"


def _promise_own(plan: Plan) -> str:
    """What is kept of the dimensions that were asked for by name; nothing is asked of the others."""
    names, kept = list(plan.asked_own), plan.own_units
    if not math.isfinite(plan.best.tolerance_each) and _has_optional(plan.best):
        return f"nothing can be promised of {', '.join(names[:3])}: {_UNTOLD}"
    shown = ", ".join(_own(plan, name, kept[name]["each"]) for name in names[:3])
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    several = len(names) > 1 or _is_vector(plan, names[0])
    body = f"{shown}{more} will be kept with {percent(plan.best.probability)} probability" + (
        " each" if several else ""
    )
    if several:
        body += (
            f"; all of these at once: {', '.join(_own(plan, name, kept[name]['all']) for name in names[:3])}"
        )
    worst = ", ".join(_own(plan, name, kept[name]["worst_all"]) for name in names[:3])
    return f"{body} ({worst} whatever the values are)"


def _plus_minus(x: float) -> str:
    return f"±{number(x)}" if math.isfinite(x) else "no bound"


def _asked(plan: Plan) -> str:
    option = plan.best
    if plan.asked is None or plan.solved:
        return ""
    what = f"±{number(plan.asked)}"
    own = ", ".join(_own(plan, name, x) for name, x in list(plan.asked_in_units.items())[:3])
    if plan.asked_own:
        what = own
    elif own:
        what += f" of a range scaled to [−1, 1] ({own})"
    words = f"{what} is kept by each with {percent(option.probability_within)}"
    if option.workload.n_coordinates > 1:
        words += f" and by all at once with {percent(option.joint_probability_within)} probability"
    return words


def _units(plan: Plan) -> str:
    """The first numbers of a schema in their own units."""
    if plan.best.schema is None or not math.isfinite(plan.best.tolerance_each):
        return ""
    numbers = [d.name for d in plan.best.schema.dimensions if not d.categories]
    shown = [name for name in numbers if name in plan.own_units][:3]
    if not shown:
        return ""
    kept = ", ".join(_own(plan, name, plan.own_units[name]["each"]) for name in shown)
    return f"in their own units, each: {kept}"


def _own(plan: Plan, name: str, tolerance: float) -> str:
    """One dimension's tolerance in its own units, the unit's name behind it."""
    called = f"coordinates of {name}" if _is_vector(plan, name) else name
    return f"{called} ±{number(tolerance)} {plan.unit(name)}".rstrip()


def _is_vector(plan: Plan, name: str) -> bool:
    schema = plan.best.schema
    return schema is not None and bool(getattr(schema[name], "length", 0))


def _has_optional(option: Option) -> bool:
    return any(group.optional for group in option.workload.groups)


def _has_vectors(option: Option) -> bool:
    return any(group.length for group in option.workload.groups)
