"""The page for the people behind the data."""

from __future__ import annotations

import json
import math

from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.explanation.asked import example_record, questions_table, together
from hdr4me.explanation.odds import guess, share, whole_loss
from hdr4me.io.report import Report
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.survey import Survey

__all__ = ["blocks", "example_report"]


def example_report(survey: Survey) -> str:
    """A report as it is sent, of the made-up record; its noise is drawn from the fingerprint, so the page is "
    "stable."""
    draws = Stream(bytes.fromhex(survey.fingerprint), survey.series, Use.ANSWER)
    record = example_record(survey)
    answers = tuple((q, *answer(survey, q, record, draws)) for q in draw_questions(survey, draws))
    return Report(survey.fingerprint, answers).to_json()


def blocks(survey: Survey) -> list[Block]:
    """What is asked, what leaves the device, what can be learnt, what repetition does, who can check."""
    return [*_asked(survey), *_leaves(survey), *_learnt(survey), *_again(survey), *_proof(survey)]


def _asked(survey: Survey) -> list[Block]:
    m, q = survey.n_sampled, len(survey.questions)
    only = "that one" if m == 1 else "those"
    drawn = f"Your device draws {m:,} of {q:,} questions at random and answers only {only}."
    if m == q:
        drawn = "Your device answers all of them."
    return [Heading("What is asked"), questions_table(survey), *map(Text, together(survey)), Text(drawn)]


def _leaves(survey: Survey) -> list[Block]:
    record, report = example_record(survey), example_report(survey)
    shown = dict(list(record.items())[:8])
    more = "" if len(shown) == len(record) else f" (and {len(record) - len(shown):,} more values)"
    fresh = (
        "The same person's next report would look different."
        if survey.lasting_epsilon == survey.epsilon
        else ""
    )
    return [
        Heading("What leaves your device"),
        Text(
            "Your values do not leave your device. For each question that is answered, the device replaces "
            "your value by a random one, drawn by a rule that is part of the survey. Often it is far from the "
            "truth, on purpose."
        ),
        Text(
            f"For somebody with these made-up values{more}: `{_cut(json.dumps(shown, ensure_ascii=False))}`"
        ),
        Text(f"this is one report that might be sent, and all of it: `{_cut(report)}`"),
        Text(
            "The long number names the survey. In each answer the first number names the question, the others "
            f"are the randomised value. {fresh} No name, no time and no identifier of you or the device is in "
            "it. Reports of different people look alike: a missing or unusual value does not show."
        ),
    ]


def _cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters in all)"


def _learnt(survey: Survey) -> list[Block]:
    loss = whole_loss(survey)
    rows = [
        [f"{name} ({share(before)})", f"at most {share(guess(before, loss))}"]
        for name, before in (("a coin toss", 0.5), ("one in ten", 0.1), ("one in a thousand", 0.001))
    ]
    return [
        Heading("What anybody could learn from it"),
        Text(
            "Whoever sees the report, whatever else they know and whatever computer they have, can become at "
            "most this much surer of anything about you. This holds for those who collect too."
        ),
        Table(["somebody's guess about you before", "after seeing your report"], rows),
        Text(
            "From many people's reports together the noise cancels out, and averages and shares of all can be "
            "estimated. That is what the survey is for."
        ),
    ]


def _again(survey: Survey) -> list[Block]:
    ten = whole_loss(survey) ** 10
    text = (
        "Each further report with new noise adds to what can be learnt: after ten reports that can be linked "
        f"to you, a guess of a coin toss could become {share(guess(0.5, ten))} at most. Your device keeps a "
        "ledger and refuses to answer when the allowance is used up."
    )
    lasting = (
        "A device with permanent answers keeps its random choices instead: while your values stay the same, "
        "any number of reports tells no more than "
        + (
            "the first one."
            if survey.lasting_epsilon == survey.epsilon
            else f"this: a guess of a coin toss becomes {share(_logistic(survey.lasting_epsilon))} at most."
        )
        + (
            " That a value changed, and when, may show."
            if survey.lasting_epsilon == survey.epsilon
            else " Fresh noise on top hides when a value changed."
        )
    )
    return [Heading("If you are asked again"), Text(text), Text(lasting)]


def _logistic(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


def _proof(survey: Survey) -> list[Block]:
    loss = whole_loss(survey)
    return [
        Heading("Who can check this"),
        Text(
            "Everybody. The tables are whole numbers in the survey's document, and the bound above is a "
            "fraction of such numbers: a report changes the odds of any two possible sets of values by a "
            f"factor of at most {float(loss):.4g} (ε = {survey.epsilon:g}). Your device proves this before it "
            "answers, and refuses a survey for which it does not hold. `hdr4me audit` does the same for "
            "anybody, and tries to break it."
        ),
        Text(
            "Not hidden by this: that your device takes part, and what a network shows of any message (its "
            "address and time). What is done with those is up to those who collect; ask them."
        ),
    ]
