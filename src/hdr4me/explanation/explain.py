"""A page that explains a survey in plain words, with a technical annex for a data-protection officer."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hdr4me.channels.proof import log_upper
from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.explanation.odds import guess, report_ratio, share
from hdr4me.io.report import Report
from hdr4me.pages.document import Block, Table, section, to_html, to_markdown
from hdr4me.pages.text import listed, pluralize
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Selection, Survey, Tolerance, Vector
from hdr4me.survey.derived import Hash, Outer, Prefix
from hdr4me.survey.times import Calendar, Time

AUDIENCES = ("user", "dpo")
_SHOWN = 6
_WHEN = "2013-01-31 17:30"  # an example of a date and time
_LINES = 30


@dataclass(frozen=True)
class Explanation:
    """A page about one survey; notebooks display it."""

    title: str
    lead: str
    blocks: tuple[Block, ...]

    def markdown(self) -> str:
        """The page as Markdown."""
        return to_markdown(self.title, self.lead, self.blocks)

    def html(self) -> str:
        """The page as one self-contained HTML file."""
        return to_html(self.title, self.lead, self.blocks, {})

    def __repr__(self) -> str:
        return f"<Explanation: {self.title}, {len(self.blocks)} parts>"

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        return self.html()


def explain(survey: Survey, audience: str = "user") -> Explanation:
    """Explain a survey: its questions, what leaves the device, what an observer can learn, repetition, and the proof.

    Parameters
    ----------
    survey
        The survey. The page is derived from its document alone.
    audience
        "user" for participants; "dpo" adds a technical annex for a data-protection officer.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> page = explain(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, name="Ages")).markdown()
    >>> "probability before your report" in page, "73.2 %" in page
    (True, True)
    """
    if not isinstance(survey, Survey):
        raise InvalidInput.of("survey", survey, "a Survey")
    if audience not in AUDIENCES:
        raise InvalidInput.of("audience", audience, f"one of {', '.join(AUDIENCES)}")
    parts = [_questions, _sent, _learned, _repeated, _proof]
    if audience == "dpo":
        parts += [_identity, _ratios, _roles, _retention, _limits]
    title = survey.name or f"Survey {survey.fingerprint[:12]}"
    lead = "What this survey asks, what your device sends, and what others can learn from it."
    return Explanation(title, lead, tuple(block for part in parts for block in part(survey)))


def _questions(survey: Survey) -> list[Block]:
    m, q = survey.sampled, len(survey.questions)
    only = "that question" if m == 1 else "those questions"
    drawn = f"Your device draws {m:,} of {q:,} questions at random and answers only {only}."
    if m == q:
        drawn = "Your device answers all questions."
    rows = [[d.name, _described(d)[0]] for d in survey.schema]
    if len(rows) > _LINES:
        rows = [*rows[:_LINES], ["…", f"and {len(rows) - _LINES:,} more, listed in the survey document"]]
    table = Table(["name", "value on your device"], rows)
    needed = [dimension.name for dimension in survey.schema if not dimension.replaces and dimension.columns]
    if needed:
        drawn += " It sends no report if any value is missing or unusable and this table has no replacement for it."
    return section("What is asked", table, *_joint_questions(survey), drawn)


def _joint_questions(survey: Survey) -> list[str]:
    """Return a sentence for each question about several dimensions."""
    sentences = []
    several = [question for question in survey.questions if len(question.dimensions) > 1]
    for question in several[:_SHOWN]:
        names = [survey.schema.names[j] for j in question.dimensions]
        named = listed([*names[: _SHOWN - 1], "…", names[-1]] if len(names) > _SHOWN else names)
        both = "both" if len(names) == 2 else f"all {len(names)}"
        text = f"{named} are one question: one randomized answer covers {both}."
        if question.channel.mechanism == "agreement":
            text += " Each of these numbers is first rounded at random to one end of its range."
        sentences.append(text)
    rest = len(several) - len(sentences)
    if rest:
        sentences.append(f"{pluralize(rest, 'further question')} also cover several numbers each.")
    return sentences


def _described(dimension: Dimension) -> tuple[str, Any]:
    """Describe the possible values of a dimension, and return an example value (None for a computed dimension)."""
    match dimension:
        case Time(start=start, end=end):
            missing = ", or no value" if dimension.optional else ""
            example = _WHEN if start[2] == ":" else start[:10] + _WHEN[10:]  # a time of day may have any date
            return f"a date or time from {start} to {end}{missing}", example
        case Numeric(low=low, high=high):
            default = "" if dimension.default is None else f", or {dimension.default:g} if it is missing"
            missing = ", or no value" if dimension.optional else default
            return f"a number from {low:g} to {high:g}{missing}", float(f"{low + (high - low) / 3:.3g}")
        case Selection(categories=categories, at_most=most):
            own = categories[: len(categories) - dimension.optional]
            missing = ", or missing" if dimension.optional else ""
            return f"at most {most} of: {_first(own)}{missing}", list(categories[:1])
        case Calendar(part=part):
            return f"the {part} of a date or time ({_first(dimension.categories)})", _WHEN
        case Categorical(categories=categories):
            declared = dimension.default is not None and not dimension.optional
            missing = f"; {dimension.default} if it is missing" if declared else ""
            return f"one of: {_first(categories)}{missing}", categories[0]
        case Outer():
            return (
                f"{_parts(dimension)}, asked together: one random answer represents all their products",
                None,
            )
        case Vector(length=length, norm=norm):
            words = f"a vector of {pluralize(length, 'number')} with a norm of at most {norm:g}"
            missing = ", or no value" if dimension.optional else ""
            return words + missing, [float(f"{norm / 3:.3g}"), *[0.0] * (length - 1)]
        case Product(product=names):
            return f"the product of {listed(list(names))}: one random answer represents both", None
        case Hash(buckets=buckets):
            return (
                f"a text, of which only its bucket counts (one of {buckets:,}, which other texts share)",
                "example",
            )
        case Prefix(prefix=(part,), length=length):
            words, example = _described(part)
            return f"the first {pluralize(length, 'character')} of a text: {words}", example
        case _ if dimension.categories and len(dimension.leaves) > 1:
            return f"{_parts(dimension)}, asked together: one random answer represents the combination", None
        case _ if dimension.categories:
            example = getattr(dimension, "example", dimension.categories[0])
            return f"one of: {_first(dimension.categories)}", example
        case _:
            low, high = dimension.bounds
            return f"a {dimension.kind} from {low:g} to {high:g}", round(low + (high - low) / 3)


def _parts(dimension: Dimension) -> str:
    """The parts of a dimension with their values."""
    return listed([f"{part.name} ({_described(part)[0]})" for part in dimension.leaves])


def _first(names: tuple[str, ...]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names) if rest < 2 else ", ".join(names[:_SHOWN]) + f" … and {rest:,} more"


def _example_record(survey: Survey) -> dict[str, Any]:
    values = {name: _described(reader)[1] for name, reader in survey.schema.readers.items()}
    return {name: value for name, value in values.items() if value is not None}


def example_report(survey: Survey) -> str:
    """Return a report of the example record; its noise is derived from the fingerprint, so that the page is stable."""
    draws = Stream(bytes.fromhex(survey.fingerprint), survey.series, Use.ANSWER)
    record = _example_record(survey)
    answers = tuple((q, *answer(survey, q, record, draws)) for q in draw_questions(survey, draws))
    return Report(survey.fingerprint, answers).to_json()


def _sent(survey: Survey) -> list[Block]:
    record, report = _example_record(survey), example_report(survey)
    example = dict(list(record.items())[:8])
    more = "" if len(example) == len(record) else f" (and {len(record) - len(example):,} more values)"
    one_stage = survey.memoized_epsilon == survey.epsilon
    fresh = "The next report of the same person has new noise. " if one_stage else ""
    return section(
        "What leaves your device",
        "Your values do not leave your device. For each question that it answers, the device replaces your value with "
        "one that it draws at random. Your value changes the probabilities only a little, and the drawn value is often "
        "a different one; this protects you.",
        f"Example: for a person with these values{more}: `{_cut(json.dumps(example, ensure_ascii=False))}`",
        f"the device could send this report, and nothing else: `{_cut(report)}`",
        "The long hexadecimal number identifies the survey. In each answer the first number is the question "
        f"(0 is the first one), and the other numbers are the randomized value. {fresh}The report contains no name, "
        "no time and no identifier of you or of the device. A random identifier goes with it, so that it is counted "
        "once and can be deleted. It does not show whether a value is missing or unusual.",
    )


def _cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters in total)"


def _learned(survey: Survey) -> list[Block]:
    ratio = report_ratio(survey)
    rows = [
        [f"{name} ({share(before)})", f"at most {share(guess(before, ratio))}"]
        for name, before in (("a coin toss", 0.5), ("one in ten", 0.1), ("one in a thousand", 0.001))
    ]
    return section(
        "What an observer can learn from it",
        "The table bounds how certain an observer of your report can become about any statement about you. The bound "
        "holds for every observer, including the collector, whatever they know and regardless of computing power.",
        Table(["probability before your report", "after seeing your report"], rows),
        "In the sum of many people's reports the noise averages out. The survey estimates means and shares of all "
        "participants.",
    )


def _repeated(survey: Survey) -> list[Block]:
    ten = guess(0.5, report_ratio(survey) ** 10)
    if survey.memoized_epsilon == survey.epsilon:
        bound, change = "the first report.", "An observer may see that a value changed, and when."
    else:
        memoized = 1 / (1 + math.exp(-survey.memoized_epsilon))
        bound = f"this bound: a guess of 50 % can rise to {share(memoized)}."
        change = "Additional fresh noise hides when a value changed."
    return section(
        "If you are asked again",
        "Each further report with new noise reveals more. After ten reports that an observer can link to you, a guess "
        f"of 50 % can rise to {share(ten)}. A device that counts its privacy budget in a ledger sends no "
        "more reports once the budget is spent.",
        *_row_budget(survey),
        "A device that stores its responses and repeats them (memoized responses) draws its noise once: while your "
        "values stay the same, any number of reports "
        f"reveals no more than {bound} {change} Once the budget is spent, the device repeats its last responses, "
        "whatever your values are.",
    )


def _row_budget(survey: Survey) -> list[str]:
    if survey.row_budget is None:
        return []
    return [
        f"This survey is made for repeated reports with memoized responses. Its row budget is {survey.row_budget}: a "
        "device pays for this number of different values of a question. Later reports may not follow your values, and "
        "the survey's estimates state this."
    ]


def _proof(survey: Survey) -> list[Block]:
    factor = f"{float(report_ratio(survey)):.4g}"
    return section(
        "Who can check this",
        "Everyone. The survey document contains all probabilities as integers, so the bound is computed "
        "without rounding: a report changes the odds of any two possible sets of values by a factor of at most "
        f"{factor} (ε = "
        f"{survey.epsilon:g}). Your device proves this bound before it answers, and refuses a survey for which it does "
        "not hold. Anyone can run the same proof with `hdr4me audit`, which also runs an empirical privacy test.",
        "The bound does not hide that your device participates. Network operators can see the address and the time of "
        "each message. Ask the collector how it handles those.",
    )


def _margins(planned: Tolerance, survey: Survey) -> str:
    """The tolerance of the plan, for each dimension in its own units."""
    units = {x.name: f" {getattr(x, 'unit', None) or ''}".rstrip() for x in survey.schema}
    each = [f"{name} ±{own:g}{units[name]}" for name, own in planned.by_dimension.items()]
    more = [pluralize(len(each) - _SHOWN, "more dimension")] if len(each) > _SHOWN else []
    together = "all at once" if planned.jointly else "each"
    return f"{listed([*each[:_SHOWN], *more])}; {together} with {100 * planned.probability:g} % probability"


def _identity(survey: Survey) -> list[Block]:
    rows: list[list[object]] = [
        ["fingerprint (SHA-256 of the canonical document)", survey.fingerprint],
        ["series (fingerprint without the name; a ledger counts the budget of each series)", survey.series],
        ["ε of one report", survey.epsilon],
        ["ε of all memoized responses to an unchanged record", survey.memoized_epsilon],
        ["questions", len(survey.questions)],
        ["questions per person", survey.sampled],
        ["ε of one answer", survey.epsilon_per_answer],
        ["size of a report in bytes", survey.report_size],
    ]
    if survey.tolerance is not None:
        rows.append(["planned margins of error", _margins(survey.tolerance, survey)])
    return section("Annex: the survey", Table(["property", "value"], rows))


def _ratios(survey: Survey) -> list[Block]:
    rows = [
        [
            channel.mechanism,
            type(channel).__name__,
            sum(question.channel is channel for question in survey.questions),
            exact
            if len(exact := str(channel.likelihood_ratio)) <= 44
            else f"a fraction of {len(exact):,} digits",
            f"{log_upper(channel.likelihood_ratio):.9g}",
            f"{channel.epsilon:.9g}",
        ]
        for channel in survey.channels
    ]
    ratio = report_ratio(survey)
    return section(
        "Annex: the proof",
        "Local differential privacy: for any two records and any report, the probabilities of that report differ by "
        "a factor of at most e^ε. Each channel's probabilities are integers divided by 2^32, so their largest ratio is "
        "an exact fraction. The proof compares it with a rational lower bound of e^ε, without rounding.",
        Table(["mechanism", "channel", "questions", "largest ratio", "ε proven", "ε declared"], rows),
        f"A complete report has a ratio of at most {float(ratio):.6g}, so ε ≤ {log_upper(ratio):.9g}; declared: "
        f"{survey.epsilon:g}. The choice of questions does not depend on the record. The device uses the operating "
        "system's randomness. The number of random draws, the size of a report and the control flow do not depend on "
        "the values.",
    )


def _roles(survey: Survey) -> list[Block]:
    rows = [
        [
            "the device",
            "true values, the ledger (spent budget, no values), the secret",
            "none of these leave the device",
        ],
        ["the network", "address, time and size of a message; the report if it is not encrypted", "use TLS"],
        ["the collector", "randomized reports with random identifiers", "no true values"],
        [
            "the analyst",
            "sums over all reports (the tally) and estimates from them",
            "needs no individual reports",
        ],
        ["the public", "estimates with intervals", "post-processing: no further privacy loss"],
    ]
    return section("Annex: who sees what", Table(["who", "sees", "note"], rows))


def _retention(survey: Survey) -> list[Block]:
    return section(
        "Annex: retention",
        "The collector of this project (`hdr4me serve`) stores the report, its random identifier and the hour. It "
        "does not store addresses, user agents, exact times or the order of arrival. It keeps individual reports while "
        "a round is open and for a grace period (7 days by default), so that they can be deleted by identifier. "
        "Then only the tally remains. The operator of another collector must declare its own retention.",
        "In many jurisdictions a randomized report is still personal data, because anyone who receives it with a "
        "network address can link it to a person. The bound of the proof holds in that case too.",
    )


def _limits(survey: Survey) -> list[Block]:
    return section(
        "Annex: what is not covered",
        f"**Repetition.** The privacy loss of T reports with fresh noise is up to {survey.epsilon:g}·T. The ledger on "
        "the device enforces a limit; deleting the ledger removes the limit.",
        "**Groups.** The bound applies to one person. For k people with the same values it is k·ε.",
        "**Conclusions about the population.** Estimates can reveal something about a person who resembles the others. "
        "This does not depend on that person's report.",
        "**Poisoning.** Anyone can send poisoned reports. They bias the estimates but do not affect anyone's privacy.",
        "**A modified client.** The proof covers the survey document and this client. A device that runs another "
        "program can send anything.",
    )
