"""What a survey asks, sends and reveals, in plain words, with a technical annex for a data-protection officer."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hdr4me.channels.proof import log_upper
from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.explanation.odds import guess, share, whole_loss
from hdr4me.io.report import Report
from hdr4me.pages.counted import counted, listed
from hdr4me.pages.document import Block, Table, section, to_html, to_markdown
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Selection, Survey, Vector

AUDIENCES = ("user", "dpo")
_SHOWN = 6
_LINES = 30


@dataclass(frozen=True)
class Explanation:
    """A page about one survey; a notebook shows it as it is."""

    title: str
    lead: str
    blocks: tuple[Block, ...]

    def markdown(self) -> str:
        """The page as Markdown."""
        return to_markdown(self.title, self.lead, self.blocks)

    def html(self) -> str:
        """The page as one HTML file that needs no network."""
        return to_html(self.title, self.lead, self.blocks, {})

    def __repr__(self) -> str:
        return f"<Explanation: {self.title}, {len(self.blocks)} parts>"

    def _repr_markdown_(self) -> str:
        return self.markdown()


def explain(survey: Survey, audience: str = "user") -> Explanation:
    """What is asked, what leaves the device, what anybody could learn, what repetition does, and the proof.

    Parameters
    ----------
    survey
        The survey; nothing else is used.
    audience
        "user": the people behind the data, in plain words. "dpo": the same with the technical annex for a
        data-protection officer.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> page = explain(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, name="Ages")).markdown()
    >>> "somebody's guess about you before" in page, "73.2 %" in page
    (True, True)
    """
    if not isinstance(survey, Survey):
        raise InvalidInput.of("survey", survey, "a Survey")
    if audience not in AUDIENCES:
        raise InvalidInput.of("audience", audience, f"one of {', '.join(AUDIENCES)}")
    parts = [_asked, _leaves, _learnt, _again, _proof]
    if audience == "dpo":
        parts += [_identity, _losses, _roles, _kept, _limits]
    title = survey.name or f"Survey {survey.fingerprint[:12]}"
    lead = "What this survey asks, what your device sends, and what can be learnt from it. Written from its document."
    return Explanation(title, lead, tuple(block for part in parts for block in part(survey)))


def _asked(survey: Survey) -> list[Block]:
    m, q = survey.sampled, len(survey.questions)
    only = "that one" if m == 1 else "those"
    drawn = f"Your device draws {m:,} of {q:,} questions at random and answers only {only}."
    if m == q:
        drawn = "Your device answers all of them."
    rows = [[d.name, _described(d)[0]] for d in survey.schema]
    if len(rows) > _LINES:
        rows = [*rows[:_LINES], ["…", f"and {len(rows) - _LINES:,} more, listed in the document"]]
    table = Table(["about", "what your device holds"], rows)
    return section("What is asked", table, *_together(survey), drawn)


def _together(survey: Survey) -> list[str]:
    """A sentence for each question that is about several dimensions."""
    said = []
    several = [question for question in survey.questions if len(question.dimensions) > 1]
    for question in several[:_SHOWN]:
        names = [survey.schema.names[j] for j in question.dimensions]
        shown = listed([*names[: _SHOWN - 1], "…", names[-1]] if len(names) > _SHOWN else names)
        both = "both" if len(names) == 2 else f"all {len(names)}"
        text = f"{shown} are one question: one random answer stands for {both}."
        if question.channel.mechanism == "agreement":
            text += " Before that, each is rounded at random to one of the two ends of its range."
        said.append(text)
    rest = len(several) - len(said)
    return [*said, f"And so are the numbers of {counted(rest, 'more question')}."] if rest else said


def _described(dimension: Dimension) -> tuple[str, Any]:
    """What a dimension's value may be, in words, and a made-up value; None where it has none of its own."""
    match dimension:
        case Numeric(low=low, high=high):
            default = "" if dimension.default is None else f", or {dimension.default:g} if there is none"
            missing = ", or nothing" if dimension.optional else default
            return f"a number from {low:g} to {high:g}{missing}", float(f"{low + (high - low) / 3:.3g}")
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
    one_stage = survey.memoized_epsilon == survey.epsilon
    fresh = "The same person's next report would look different." if one_stage else ""
    return section(
        "What leaves your device",
        "Your values do not leave your device. For each question that is answered, the device replaces your value by "
        "a random one, drawn by a rule that is part of the survey. Often it is far from the truth, on purpose.",
        f"For somebody with these made-up values{more}: `{_cut(json.dumps(shown, ensure_ascii=False))}`",
        f"this is one report that might be sent, and all of it: `{_cut(report)}`",
        "The long number names the survey. In each answer the first number names the question, the others "
        f"are the randomized value. {fresh} No name, no time and no identifier of you or the device is in "
        "it. Reports of different people look alike: a missing or unusual value does not show.",
    )


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
    if survey.memoized_epsilon == survey.epsilon:
        bound, change = "the first one.", "That a value changed, and when, may show."
    else:
        memoized = 1 / (1 + math.exp(-survey.memoized_epsilon))
        bound = f"this: a guess of a coin toss becomes {share(memoized)} at most."
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
        "Everybody. The tables are whole numbers in the survey's document, and the bound above is a fraction of such "
        f"numbers: a report changes the odds of any two possible sets of values by a factor of at most {factor} (ε = "
        f"{survey.epsilon:g}). Your device proves this before it answers, and refuses a survey for which it does not "
        "hold. `hdr4me audit` does the same for anybody, and tries to break it.",
        "Not hidden by this: that your device takes part, and what a network shows of any message (its "
        "address and time). What is done with those is up to those who collect; ask them.",
    )


def _identity(survey: Survey) -> list[Block]:
    rows: list[list[object]] = [
        ["fingerprint (SHA-256 of the canonical document)", survey.fingerprint],
        ["series (the same without the name; the ledger counts by it)", survey.series],
        ["budget of one report, ε", survey.epsilon],
        ["budget of all permanent answers to an unchanged record", survey.memoized_epsilon],
        ["questions; answered by each user", f"{len(survey.questions):,}; {survey.sampled:,}"],
        ["budget of one answer", survey.epsilon_per_answer],
        ["bytes of a report", survey.report_size],
    ]
    return section("Annex: the survey", Table(["property", "value"], rows))


def _losses(survey: Survey) -> list[Block]:
    rows = [
        [
            channel.mechanism,
            channel.kind,
            sum(question.channel is channel for question in survey.questions),
            ratio if len(ratio := str(channel.loss)) <= 44 else f"a fraction of {len(ratio):,} digits",
            f"{log_upper(channel.loss):.9g}",
            f"{channel.epsilon:.9g}",
        ]
        for channel in survey.channels
    ]
    loss = whole_loss(survey)
    return section(
        "Annex: the proof",
        "Local differential privacy: for any two records and any report, the probabilities of that report differ by "
        "a factor of at most e^ε. Each channel's probabilities are whole numbers over 2^32, so its largest ratio is "
        "an exact fraction. It is compared with a rational number that is provably below e^ε. No rounding enters.",
        Table(["design", "channel", "questions", "largest ratio", "ε proven", "ε declared"], rows),
        f"A whole report: ratio at most {float(loss):.12g}, ε ≤ {log_upper(loss):.9g} of "
        f"{survey.epsilon:g} declared. Which questions are drawn does not depend on the record. Randomness "
        "on the device is the operating system's. The number of random draws, the size of a report and "
        "the steps taken do not depend on the values.",
    )


def _roles(survey: Survey) -> list[Block]:
    rows = [
        ["the device", "true values, its ledger (what was spent, no values), its secret", "stay there"],
        ["the network", "address, time and size of a message; the report if it is not encrypted", "use TLS"],
        ["the collector", "randomized reports, each under a random identifier", "never a true value"],
        [
            "the analyst",
            "sums over all reports (the tally) and estimates from them",
            "no single report needed",
        ],
        ["the public", "estimates with intervals", "post-processing: no further loss"],
    ]
    return section("Annex: who sees what", Table(["who", "sees", "note"], rows))


def _kept(survey: Survey) -> list[Block]:
    return section(
        "Annex: what is kept, and how long",
        "The collector of this project (`hdr4me serve`) stores the report, its random identifier and the hour. It "
        "does not store addresses, user agents or exact times, and forgets the order of arrival. Raw reports are "
        "kept while a round is open and for a grace period (7 days unless set otherwise), so that a report can be "
        "deleted by its identifier; then only the tally remains. Other collectors: as their operator declares.",
        "A report is still data about a person in many jurisdictions: it is randomized, and it can be linked to her "
        "by who receives it together with an address. The bound above holds in that case too.",
    )


def _limits(survey: Survey) -> list[Block]:
    return section(
        "Annex: what is not covered",
        f"**Repetition.** Fresh reports add up: T of them lose up to T·{survey.epsilon:g}. The ledger on the "
        "device refuses more than it allows; deleting its storage deletes its memory.",
        "**Groups.** The bound is for one person. A household of k people who answer alike is covered with k·ε.",
        "**Conclusions about all.** Estimates may tell something about a person because she is like the "
        "others. That is learning about the population, and it does not depend on her report.",
        "**Fakes.** Anybody can send false reports; they harm the answer, not anybody's privacy.",
        "**A changed program.** The proof is about the survey's document and this client. A device that runs "
        "another program can send anything.",
    )
