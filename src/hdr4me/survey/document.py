"""The survey's JSON document, version 2; standard library only.

`channels` are listed once; `questions` name their dimensions and their channel by number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hdr4me.channels import Channel, channel_from_dict
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey.canonical import identities, parse
from hdr4me.survey.question import Question
from hdr4me.survey.schema import Schema

if TYPE_CHECKING:
    from hdr4me.survey.survey import Survey


FORMAT, VERSION = "hdr4me-survey", 2
_FIELDS = {
    *("format", "version", "name", "epsilon", "n_sampled"),
    *("dimensions", "questions", "channels", "fingerprint"),
}


def body_of(survey: Survey) -> dict[str, Any]:
    """The document without its fingerprint."""
    channels = survey.channels
    number = {id(channel): index for index, channel in enumerate(channels)}
    questions = [
        {"dimensions": list(question.dimensions), "channel": number[id(question.channel)]}
        | ({"weight": question.weight} if survey.weighted else {})
        for question in survey.questions
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": survey.name,
        "epsilon": survey.epsilon,
        "n_sampled": survey.n_sampled,
        "dimensions": [dimension.to_dict() for dimension in survey.schema],
        "questions": questions,
        "channels": [channel.to_dict() for channel in channels],
    }


def read(text: str | bytes) -> tuple[dict[str, Any], dict[str, Any], tuple[str, str]]:
    """The arguments of `Survey.from_questions`, the document without its fingerprint, its fingerprint and series."""
    try:
        document = parse(text)
    except ValueError as error:
        raise FormatError(f"not a survey: {error}".replace("\n", " ")) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FormatError(f"not a survey: its format is not {FORMAT!r}")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise FormatError(f"survey of version {version!r}: this program reads version {VERSION}")
    if set(document) != _FIELDS:
        odd = ", ".join(sorted(map(repr, set(document) ^ _FIELDS)))
        raise FormatError(f"not a survey: fields missing or unknown: {odd}")
    claimed = str(document.pop("fingerprint"))
    try:
        found = identities(document)
        arguments = _arguments(document)
    except InvalidInput as error:
        raise FormatError(f"not a valid survey: {error}") from error
    except UnicodeEncodeError:
        raise FormatError("not a survey: a text in it has no UTF-8 form") from None
    if found[0] != claimed:
        raise FingerprintMismatch("the survey document", claimed, found[0])
    return arguments, document, found


def _arguments(document: dict[str, Any]) -> dict[str, Any]:
    items, channels = document["questions"], document["channels"]
    if not isinstance(items, list) or not isinstance(channels, list):
        raise FormatError("a survey's questions and channels are lists")
    made = [channel_from_dict(channel) for channel in channels]
    questions = tuple(_question(item, made) for item in items)
    if {id(question.channel) for question in questions} != {id(channel) for channel in made}:
        raise FormatError("a survey's channel is used by no question")
    return {
        "schema": Schema.from_dict({"dimensions": document["dimensions"]}),
        "epsilon": document["epsilon"],
        "n_sampled": document["n_sampled"],
        "questions": questions,
        "name": document["name"],
    }


def _question(item: Any, channels: list[Channel]) -> Question:
    fields = {"dimensions", "channel"}
    if not isinstance(item, Mapping) or not fields <= set(item) <= fields | {"weight"}:
        raise FormatError("a question is an object with dimensions, channel and perhaps weight")
    dimensions, index = item["dimensions"], item["channel"]
    if not isinstance(dimensions, list) or not dimensions or not all(type(j) is int for j in dimensions):
        raise FormatError("a question's dimensions are a list of integers")
    if type(index) is not int or not 0 <= index < len(channels):
        raise FormatError(f"a question's channel = {index!r} does not exist")
    return Question(tuple(dimensions), channels[index], item.get("weight", 1))
