"""The page for the people behind the data: the questions in words, an example report, what can be learnt."""

from __future__ import annotations

import json
import math
from typing import Any

from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.explanation.odds import guess, share, whole_loss
from hdr4me.io.report import Report
from hdr4me.pages.counted import counted, listed
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Selection, Survey, Vector

_SHOWN = 6
_LINES = 30


def section(title: str, *parts: str | Block) -> list[Block]:
    """A heading and what follows it; a string is a paragraph."""
    return [Heading(title), *(Text(part) if isinstance(part, str) else part for part in parts)]


def blocks(survey: Survey) -> list[Block]:
    """What is asked, what leaves the device, what can be learnt, what repetition does, who can check."""
    return [*_asked(survey), *_leaves(survey), *_learnt(survey), *_again(survey), *_proof(survey)]


# -- what is asked ------------------------------------------------------------------------------------------------


def _asked(survey: Survey) -> list[Block]:
    m, q = survey.n_sampled, len(survey.questions)
    only = "that one" if m == 1 else "those"
    drawn = f"Your device draws {m:,} of {q:,} questions at random and answers only {only}."
    if m == q:
        drawn = "Your device answers all of them."
    return section("What is asked", _questions(survey), *_together(survey), drawn)


def _questions(survey: Survey) -> Table:
    """A row for each dimension: its name and the values it may have."""
    rows: list[list[object]] = [[d.name, _described(d)[0]] for d in survey.schema]
    if len(rows) > _LINES:
        rest = len(rows) - _LINES
        rows = [*rows[:_LINES], ["…", f"and {rest:,} more, listed in the document"]]
    return Table(["about", "what your device holds"], rows)


def _together(survey: Survey) -> list[str]:
    """A sentence for each question that is about several dimensions."""
    said = []
    several = [question for question in survey.questions if len(question.dimensions) > 1]
    for question in several[:_SHOWN]:
        names = [survey.schema.names[j] for j in question.dimensions]
        rounded = (
            " Before that, each is rounded at random to one of the two ends of its range."
            if question.channel.mechanism == "agreement"
            else ""
        )
        both = "both" if len(names) == 2 else f"all {len(names)}"
        said.append(f"{_and(names)} are one question: one random answer stands for {both}.{rounded}")
    rest = len(several) - len(said)
    return [*said, f"And so are the numbers of {counted(rest, 'more question')}."] if rest else said


def _and(names: list[str]) -> str:
    """Names in a sentence; of many the first ones and the last one."""
    return listed([*names[: _SHOWN - 1], "…", names[-1]] if len(names) > _SHOWN else names)


def _described(dimension: Dimension) -> tuple[str, Any]:
    """What a dimension's value may be, in words, and a made-up value; None where it has none of its own."""
    match dimension:
        case Numeric(low=low, high=high):
            missing = "nothing" if dimension.optional else f"{dimension.default:g} if there is none"
            return f"a number from {low:g} to {high:g}, or {missing}", float(f"{low + (high - low) / 3:.3g}")
        case Selection(categories=categories, at_most=most):
            own = categories[: len(categories) - dimension.optional]
            missing = ", or missing" if dimension.optional else ""
            return f"at most {most} of: {_first(own)}{missing}", list(categories[:1])
        case Categorical(categories=categories):
            return f"one of: {_first(categories)}", categories[0]
        case Vector(length=length, norm=norm):
            words = f"a vector of {counted(length, 'number')}, of norm {norm:g} at most, or "
            missing = "nothing" if dimension.optional else "0 if there is none"
            return words + missing, [float(f"{norm / 3:.3g}"), *[0.0] * (length - 1)]
        case Product():
            return f"a {dimension.kind}", None
        case _ if dimension.categories:
            return f"a {dimension.kind}", dimension.categories[0]
        case _:
            low, high = dimension.bounds
            return f"a {dimension.kind} from {low:g} to {high:g}", round(low + (high - low) / 3)


def _first(names: tuple[str, ...]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" … and {rest:,} more" if rest > 0 else "")


def _example_record(survey: Survey) -> dict[str, Any]:
    values = {dimension.name: _described(dimension)[1] for dimension in survey.schema}
    return {name: value for name, value in values.items() if value is not None}


# -- what leaves the device, and what it reveals ---------------------------------------------------------------


def example_report(survey: Survey) -> str:
    """A report of the made-up record as it is sent; its noise is drawn from the fingerprint, so the page is stable."""
    draws = Stream(bytes.fromhex(survey.fingerprint), survey.series, Use.ANSWER)
    record = _example_record(survey)
    answers = tuple((q, *answer(survey, q, record, draws)) for q in draw_questions(survey, draws))
    return Report(survey.fingerprint, answers).to_json()


def _leaves(survey: Survey) -> list[Block]:
    record, report = _example_record(survey), example_report(survey)
    shown = dict(list(record.items())[:8])
    more = "" if len(shown) == len(record) else f" (and {len(record) - len(shown):,} more values)"
    fresh = "The same person's next report would look different." if _one_stage(survey) else ""
    return section(
        "What leaves your device",
        "Your values do not leave your device. For each question that is answered, the device replaces "
        "your value by a random one, drawn by a rule that is part of the survey. Often it is far from the "
        "truth, on purpose.",
        f"For somebody with these made-up values{more}: `{_cut(json.dumps(shown, ensure_ascii=False))}`",
        f"this is one report that might be sent, and all of it: `{_cut(report)}`",
        "The long number names the survey. In each answer the first number names the question, the others "
        f"are the randomised value. {fresh} No name, no time and no identifier of you or the device is in "
        "it. Reports of different people look alike: a missing or unusual value does not show.",
    )


def _one_stage(survey: Survey) -> bool:
    return survey.lasting_epsilon == survey.epsilon


def _cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters in all)"


def _learnt(survey: Survey) -> list[Block]:
    loss = whole_loss(survey)
    rows = [
        [f"{name} ({share(before)})", f"at most {share(guess(before, loss))}"]
        for name, before in (("a coin toss", 0.5), ("one in ten", 0.1), ("one in a thousand", 0.001))
    ]
    return section(
        "What anybody could learn from it",
        "Whoever sees the report, whatever else they know and whatever computer they have, can become at "
        "most this much surer of anything about you. This holds for those who collect too.",
        Table(["somebody's guess about you before", "after seeing your report"], rows),
        "From many people's reports together the noise cancels out, and averages and shares of all can be "
        "estimated. That is what the survey is for.",
    )


def _again(survey: Survey) -> list[Block]:
    ten = guess(0.5, whole_loss(survey) ** 10)
    if _one_stage(survey):
        bound, change = "the first one.", "That a value changed, and when, may show."
    else:
        lasting = 1 / (1 + math.exp(-survey.lasting_epsilon))
        bound = f"this: a guess of a coin toss becomes {share(lasting)} at most."
        change = "Fresh noise on top hides when a value changed."
    return section(
        "If you are asked again",
        "Each further report with new noise adds to what can be learnt: after ten reports that can be linked "
        f"to you, a guess of a coin toss could become {share(ten)} at most. Your device keeps a "
        "ledger and refuses to answer when the allowance is used up.",
        "A device with permanent answers keeps its random choices instead: while your values stay the same, "
        f"any number of reports tells no more than {bound} {change} When the allowance is used up, the device "
        "repeats its last answers, whatever your values are.",
    )


def _proof(survey: Survey) -> list[Block]:
    factor = f"{float(whole_loss(survey)):.4g}"
    return section(
        "Who can check this",
        "Everybody. The tables are whole numbers in the survey's document, and the bound above is a "
        "fraction of such numbers: a report changes the odds of any two possible sets of values by a "
        f"factor of at most {factor} (ε = {survey.epsilon:g}). Your device proves this before it "
        "answers, and refuses a survey for which it does not hold. `hdr4me audit` does the same for "
        "anybody, and tries to break it.",
        "Not hidden by this: that your device takes part, and what a network shows of any message (its "
        "address and time). What is done with those is up to those who collect; ask them.",
    )
