"""The explanation of a survey, as Markdown and as HTML."""

from __future__ import annotations

from dataclasses import dataclass

from hdr4me.errors import InvalidInput
from hdr4me.explanation import officer, person
from hdr4me.pages.document import Block, to_html, to_markdown
from hdr4me.survey import Survey

__all__ = ["AUDIENCES", "Explanation", "explain"]

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

    Returns
    -------
    Explanation

    Raises
    ------
    InvalidInput
        For another audience.

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
    annex = officer.blocks(survey) if audience == "dpo" else []
    title = survey.name or f"Survey {survey.fingerprint[:12]}"
    lead = "What this survey asks, what your device sends, and what can be learnt from it. Written from its document."
    return Explanation(title, lead, (*person.blocks(survey), *annex))
