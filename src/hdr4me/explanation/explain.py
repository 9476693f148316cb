"""The explanation of a survey, as Markdown and as HTML, with a technical annex for a data-protection officer."""

from __future__ import annotations

from dataclasses import dataclass

from hdr4me.channels.proof import log_upper
from hdr4me.errors import InvalidInput
from hdr4me.explanation.odds import whole_loss
from hdr4me.explanation.person import blocks, section
from hdr4me.pages.document import Block, Table, to_html, to_markdown
from hdr4me.survey import Survey

AUDIENCES = ("user", "dpo")


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
    annex = _annex(survey) if audience == "dpo" else []
    title = survey.name or f"Survey {survey.fingerprint[:12]}"
    lead = "What this survey asks, what your device sends, and what can be learnt from it. Written from its document."
    return Explanation(title, lead, (*blocks(survey), *annex))


def _annex(survey: Survey) -> list[Block]:
    return [*_identity(survey), *_losses(survey), *_roles(), *_kept(), *_limits(survey)]


def _identity(survey: Survey) -> list[Block]:
    rows: list[list[object]] = [
        ["fingerprint (SHA-256 of the canonical document)", survey.fingerprint],
        ["series (the same without the name; the ledger counts by it)", survey.series],
        ["budget of one report, ε", survey.epsilon],
        ["budget of all permanent answers to an unchanged record", survey.lasting_epsilon],
        ["questions; answered by each user", f"{len(survey.questions):,}; {survey.n_sampled:,}"],
        ["budget of one answer", survey.epsilon_per_answer],
        ["bytes of a report", survey.report_size],
    ]
    return section("Annex: the survey", Table(["property", "value"], rows))


def _losses(survey: Survey) -> list[Block]:
    rows: list[list[object]] = [
        [
            channel.mechanism,
            channel.kind,
            sum(question.channel is channel for question in survey.questions),
            _fraction(str(channel.loss)),
            f"{log_upper(channel.loss):.9g}",
            f"{channel.epsilon:.9g}",
        ]
        for channel in survey.channels
    ]
    loss = whole_loss(survey)
    return section(
        "Annex: the proof",
        "Local differential privacy: for any two records and any report, the probabilities of that report "
        "differ by a factor of at most e^ε. Each channel's probabilities are whole numbers over 2^32, so "
        "its largest ratio is an exact fraction. It is compared with a rational number that is provably "
        "below e^ε. No rounding enters.",
        Table(["design", "channel", "questions", "largest ratio", "ε proven", "ε declared"], rows),
        f"A whole report: ratio at most {float(loss):.12g}, ε ≤ {log_upper(loss):.9g} of "
        f"{survey.epsilon:g} declared. Which questions are drawn does not depend on the record. Randomness "
        "on the device is the operating system's. The number of random draws, the size of a report and "
        "the steps taken do not depend on the values.",
    )


def _fraction(text: str) -> str:
    return text if len(text) <= 44 else f"a fraction of {len(text):,} digits"


def _roles() -> list[Block]:
    rows: list[list[object]] = [
        ["the device", "true values, its ledger (what was spent, no values), its secret", "stay there"],
        ["the network", "address, time and size of a message; the report if it is not encrypted", "use TLS"],
        ["the collector", "randomised reports, each under a random identifier", "never a true value"],
        [
            "the analyst",
            "sums over all reports (the tally) and estimates from them",
            "no single report needed",
        ],
        ["the public", "estimates with intervals", "post-processing: no further loss"],
    ]
    return section("Annex: who sees what", Table(["who", "sees", "note"], rows))


def _kept() -> list[Block]:
    return section(
        "Annex: what is kept, and how long",
        "The collector of this project (`hdr4me serve`) stores the report, its random identifier and the "
        "hour. It does not store addresses, user agents or exact times, and forgets the order of arrival. "
        "Raw reports are kept while a round is open and for a grace period (7 days unless set otherwise), "
        "so that a report can be deleted by its identifier; then only the tally remains. Other "
        "collectors: as their operator declares.",
        "A report is still data about a person in many jurisdictions: it is randomised, and it can be "
        "linked to her by who receives it together with an address. The bound above holds in that case "
        "too.",
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
