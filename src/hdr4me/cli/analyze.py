"""hdr4me analyze: the error of one mechanism in one setting, by the framework."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from typer import Option

from hdr4me.cli.options import JSON, check, named_options, numbers
from hdr4me.cli.output import print_json, print_note, print_table
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.registry import built_in

_SMALLEST, _LARGEST = 1e-9, 5000.0  # budgets of one value at which every formula holds in floating point
_MOST = 10**15
_LABELS = {
    "epsilon_per_value": "budget of one value",
    "reports_per_dimension": "reports per dimension",
    "bias": "bias",
    "variance": "variance",
    "mse": "expected MSE",
    "berry_esseen": "Berry–Esseen bound",
    "tolerance_95": "within, 95 %, each dimension",
    "joint_tolerance_95": "within, 95 %, all at once",
    "probability_some_exceed_1": "P(some deviation > 1), Theorem 3 as printed",
    "probability_all_exceed_1": "P(every deviation > 1), as its proof needs",
}


def analyze(
    mechanism: Annotated[str, Option(help=f"One of {', '.join(built_in())}, or a registered name.")],
    epsilon: Annotated[float, Option(help="Total privacy budget of one user.")],
    users: Annotated[int, Option(help="Number of users (n).")],
    dims: Annotated[int, Option(help="Number of dimensions (d).")] = 1,
    sampled: Annotated[int, Option(help="Dimensions each user reports (m).")] = 1,
    values: Annotated[str | None, Option(help="The users' values, in the domain: 0.1,0.2,0.3")] = None,
    probabilities: Annotated[str | None, Option(help="The values' shares: 0.5,0.3,0.2 (else equal)")] = None,
    prior: Annotated[str | None, Option(help="uniform; without --prior or --values: the worst case.")] = None,
    variance: Annotated[str, Option(help="exact, or paper (Lemmas 2 and 3 as printed).")] = "exact",
    calibrated: Annotated[bool, Option("--calibrated", help="Undo the bias of a biased mechanism.")] = False,
    table: Annotated[bool, Option("--table", help="The exact table that a survey would deploy.")] = False,
    domain: Annotated[str, Option(help="scaled ([-1, 1]), or own (square_wave's is [0, 1]).")] = "scaled",
    tolerance: Annotated[str | None, Option(help="Tolerances: 0.01,0.05,0.1")] = None,
    json: JSON = False,
) -> None:
    """Predict how far a mechanism's estimates will be from the truth.

    Example: hdr4me analyze --mechanism piecewise --epsilon 1 --users 100000 --dims 50 --sampled 1 --tolerance 0.05,0.1
    """
    from hdr4me.channels.proof import check_epsilon
    from hdr4me.framework import deviation
    from hdr4me.mechanisms import mechanism as own
    from hdr4me.mechanisms.registry import scaled_mechanism

    m = sampled
    check("--domain", repr(domain), domain in ("scaled", "own"), "scaled or own")
    if domain == "own" and table:
        raise InvalidInput("--domain own does not go with --table: every table is on [-1, 1]")
    for option, count in (("--users", users), ("--dims", dims), ("--sampled", m)):
        check(option, count, 1 <= count <= _MOST, f"an integer from 1 to {_MOST:,}")
    at = (
        {}
        if tolerance is None
        else dict(zip(tolerance.split(","), numbers("--tolerance", tolerance), strict=True))
    )
    check("--tolerance", tolerance, all(ξ >= 0 for ξ in at.values()), "numbers >= 0")
    with named_options():
        check_epsilon(epsilon)
        allowed = f"{_SMALLEST:g} to {_LARGEST:g} for each of the {m:,} values sent"
        check("--epsilon", epsilon, _SMALLEST <= epsilon / m <= _LARGEST, allowed)
        law: Any = (own if domain == "own" else scaled_mechanism)(mechanism, epsilon=epsilon / m)
        dev = deviation(
            law.exact() if table else law,
            n_users=users,
            n_dims=dims,
            n_sampled=m,
            values=None if values is None else numbers("--values", values),
            probabilities=None if probabilities is None else numbers("--probabilities", probabilities),
            prior=prior,
            variance=cast("Literal['exact', 'paper']", variance),
            calibrated=calibrated,
        )
    norm = dev.norm_law
    result: dict[str, Any] = {
        "mechanism": mechanism,
        "domain": list(law.domain),
        "epsilon": epsilon,
        "epsilon_per_value": epsilon / m,
        "reports_per_dimension": dev.reports_per_dimension,
        "bias": float(dev.bias),
        "variance": float(dev.variance),
        "mse": dev.mse,
        "probability_within": {text.strip(): float(dev.probability_within(ξ)) for text, ξ in at.items()},
        "joint_probability_within": {text.strip(): dev.joint_probability_within(ξ) for text, ξ in at.items()},
        "berry_esseen": float(dev.berry_esseen),
        "tolerance_95": dev.tolerance(0.95),
        "joint_tolerance_95": dev.tolerance(0.95, jointly=True),
        "norm": {"mean": norm.mean, "sd": norm.sd, "quantile_95": norm.quantile(0.95)},
        "mse_sd": dev.mse_law.sd,
        "mse_quantile_95": dev.mse_law.quantile(0.95),
        "probability_some_exceed_1": dev.probability_some_exceed(1.0),
        "probability_all_exceed_1": dev.probability_all_exceed(1.0),
        "variance_kind": variance,
        "calibrated": calibrated,
    }
    if json:
        print_json(result)
        return
    rows = [["domain of the values", f"[{law.domain[0]:g}, {law.domain[1]:g}]"]]
    rows += [[label, result[key]] for key, label in _LABELS.items()]
    for label, key in (("within", "probability_within"), ("all within", "joint_probability_within")):
        rows += [[f"P({label} {text})", p] for text, p in result[key].items()]
    title = f"{mechanism}, ε = {epsilon:g}, n = {users:,}, d = {dims:,}, m = {m:,}"
    print_table(title, ["quantity", "value"], rows)
    if not (calibrated or table) and float(law.calibration.slope) != 1.0:
        print_note(f"{mechanism} is biased: --calibrated and --table undo that, as a survey does")
    if dev.berry_esseen > 0.05:
        print_note(
            f"few reports: the normal law may be off by up to {float(dev.berry_esseen):.0%} in probability"
        )
