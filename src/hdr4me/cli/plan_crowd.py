"""What `hdr4me plan` adds: the survey in the shuffle model, over time, under poisoning, and in a second round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_note, print_table
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.planner import Plan


_DELTA = 1e-6
_SECOND = ("dimensions", "values", "reports", "standard_error", "standard_error_of_two", "gain")


def check_crowd(shuffled: bool, delta: float | None, every: str | None, during: str | None) -> None:
    """Options that need each other, before any work is done."""
    if delta is not None and not shuffled:
        raise InvalidInput("--delta goes with --shuffled: give both")
    if delta is not None and not 1e-100 <= delta < 1:
        raise InvalidInput(f"--delta {delta} is not allowed: a number from 1e-100 and below 1")
    if (every is None) != (during is None):
        raise InvalidInput("--every and --for go together: give both, such as --every week --for 1y")
    if every is not None:
        from hdr4me.client.ledger import rounds

        with named_options({"every": "--every", "during": "--for"}):
            rounds(every, during)


def crowd_and_time(
    option: Any, shuffled: bool, delta: float | None, every: str | None, during: str | None
) -> tuple[list[str], dict[str, Any]]:
    """Sentences for people, and the same for JSON; both empty if nothing was asked."""
    lines: list[str] = []
    document: dict[str, Any] = {}
    if shuffled:
        from hdr4me.accounting.shuffling import amplification, local_epsilon_of_any

        found = amplification(_survey(option), int(option.n_users), _DELTA if delta is None else delta)
        turned = local_epsilon_of_any(found.n_reports, found.delta, option.epsilon)
        told = "" if found.closed_form is None else f" (closed form, from ε alone: {found.closed_form:.3g})"
        lines += [
            f"Shuffled: {found.n_reports:,} reports together are ({found.epsilon:.3g}, {found.delta:g})-private{told}.",
            f"Turned round: every survey with a local ε up to {turned:.3g} keeps a central ε of {option.epsilon:g} "
            "if it is shuffled. That needs a shuffler that is trusted to remove order, origin and time of every "
            "report.",
        ]
        document["shuffled"] = {**found.to_dict(), "local_epsilon_for_this_central_epsilon": turned}
    if every is not None:
        from hdr4me.accounting.repeated import repeated
        from hdr4me.client.ledger import rounds

        told_rounds = repeated(option.epsilon, option.n_sampled, rounds(every, during))
        lines += told_rounds.lines()
        document["repeated"] = told_rounds.to_dict()
    return lines, document


def limits_of_harm(option: Any, share: float) -> list[dict[str, Any]]:
    """What a share of false reports does at most to each dimension of the option's survey."""
    from hdr4me.accounting.harm import harm

    return [item.to_dict(share) for item in harm(_survey(option))]


def _survey(option: Any) -> Any:
    """The option's survey; where only numbers of dimensions were planned, dimensions that stand for them."""
    if option.schema is not None:
        return option.survey()
    from hdr4me.survey import Categorical, Numeric, Schema

    workload = option.workload
    dimensions: list[Any] = [Numeric(f"number {i}", 0, 1) for i in range(workload.numeric)]
    for size, count in workload.categorical:
        values = [str(v) for v in range(size)]
        dimensions += [Categorical(f"choice of {size}, {i}", values) for i in range(count)]
    return option.survey(Schema(dimensions))


def second_round(found: Plan) -> list[dict[str, Any]]:
    """For each kind of number: what two rounds would bring over one (see `hdr4me.statistics.foretell`)."""
    from hdr4me.statistics.foretell import foretell_rounds

    best = found.best
    rows = []
    for group in best.workload.groups:
        if group.is_number:
            gain = foretell_rounds(group.prior, round(best.reports_per_dimension), best.epsilon_per_value)
            rows.append(
                {
                    "dimensions": group.count,
                    "values": "uniform" if group.prior.uniform else "as expected",
                    "reports": round(best.reports_per_dimension),
                    "gain": gain.gain,
                    "low": gain.low,
                    "high": gain.high,
                    "standard_error": gain.one,
                    "standard_error_of_two": gain.two,
                }
            )
    if not rows:
        raise InvalidInput("--rounds 2 concerns numbers, whose ranges a second round narrows: there are none")
    return rows


def show_second(rows: list[dict[str, Any]]) -> None:
    """The table of that, and a word where nothing is to be gained."""
    if not rows:
        return
    print_table(
        "A pilot of a fifth of the users, then a second round on narrower ranges (hdr4me refine)",
        [
            "dimensions",
            "values",
            "reports each",
            "s.e. one round",
            "s.e. two rounds",
            "MSE less by",
            "width kept",
        ],
        [[*(row[key] for key in _SECOND), (row["high"] - row["low"]) / 2] for row in rows],
    )
    if all(row["values"] == "uniform" for row in rows):
        print_note("values that fill their range gain nothing: tell what you expect with --prior values.csv")
