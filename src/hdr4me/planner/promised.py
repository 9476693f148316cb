"""What a plan promises, in words: of everything that is asked, or of the dimensions that were named."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hdr4me.planner.printed import number, percent

if TYPE_CHECKING:
    from hdr4me.planner.option import Option
    from hdr4me.planner.plan import Plan

__all__ = ["asked", "has_optional", "has_vectors", "plus_minus", "promise", "promise_own", "units"]

_USELESS = 1.0
"""A tolerance of half the range or more says nothing about a mean."""
_UNTOLD = (
    "the share of users who have an optional value is less than three of its standard errors, so that no mean among "
    "them is told"
)


def promise(option: Option) -> str:
    single = option.workload.n_coordinates == 1
    p, each, joint = percent(option.probability), option.tolerance_each, option.tolerance_joint
    worst = [option.worst_tolerance_each] + ([] if single else [option.worst_tolerance_joint])
    if not math.isfinite(each) and has_optional(option):
        return f"nothing can be promised of {option.workload.what}: {_UNTOLD}"
    bounded = option.workload.numeric or option.workload.optional or has_vectors(option)
    if not single and option.few and joint > _USELESS and bounded:
        return (
            f"each of {option.workload.what} will be within {plus_minus(each)} with {p} probability, if the values are "
            "as assumed; for all of them at once nothing that helps can be promised: too few answers"
        )
    if single:
        body = f"the estimate will be within {plus_minus(each)} with {p} probability"
    else:
        body = (
            f"each of {option.workload.what} will be within {plus_minus(each)} with {p} probability, and all of them "
            f"at once within {plus_minus(joint)}"
        )
    if option.few and max(worst) > _USELESS and bounded:
        return body + " (nothing that helps can be promised whatever the values are: too few answers)"
    return body + f" ({' and '.join(map(plus_minus, worst))} whatever the values are)"


def promise_own(plan: Plan) -> str:
    """What is kept of the dimensions that were asked for by name; nothing is asked of the others."""
    names, kept = list(plan.asked_own), plan.own_units
    if not math.isfinite(plan.best.tolerance_each) and has_optional(plan.best):
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


def plus_minus(x: float) -> str:
    return f"±{number(x)}" if math.isfinite(x) else "no bound"


def asked(plan: Plan) -> str:
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


def units(plan: Plan) -> str:
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
    return schema is not None and schema[name].reads == "vector"


def has_optional(option: Option) -> bool:
    """Whether something is optional."""
    return any(group.optional for group in option.workload.groups)


def has_vectors(option: Option) -> bool:
    """Whether there are vectors, optional or not."""
    return bool(option.workload.vectors or option.workload.optional_vectors)
