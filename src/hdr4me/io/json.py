"""Reports as JSON, one or one to a line; standard library only."""

from __future__ import annotations

import json
from typing import Any

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io.report import Reason, Report, fault
from hdr4me.survey import Survey
from hdr4me.survey.canonical import no_twins

__all__ = ["FORMAT", "VERSION", "decode", "encode", "inspect", "prefix_of", "survey_of", "understood"]

FORMAT, VERSION = "hdr4me-report", 1
_FIELDS = {"format", "version", "survey", "answers"}


def encode(report: Report) -> str:
    """A report on one line.

    >>> encode(Report("ab12", ((0, 7),)))
    '{"format":"hdr4me-report","version":1,"survey":"ab12","answers":[[0,7]]}'
    """
    document = {"format": FORMAT, "version": VERSION, "survey": report.survey, "answers": report.answers}
    return json.dumps(document, separators=(",", ":"))


def prefix_of(survey: str) -> str:
    """How every line that `encode` writes for this survey begins.

    >>> prefix_of("ab12")
    '{"format":"hdr4me-report","version":1,"survey":"ab12","answers":['
    """
    return encode(Report(survey, ())).removesuffix("]}")


def inspect(text: str | bytes, survey: Survey) -> Report | Reason:
    """The report in `text`, or why it is none; never raises because of what is in it."""
    try:
        document: Any = json.loads(text, object_pairs_hook=no_twins)
    except (ValueError, RecursionError):
        return Reason.MALFORMED
    return understood(document, survey)


def understood(document: Any, survey: Survey) -> Report | Reason:
    """The report in a parsed JSON document, or why it is none."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return Reason.MALFORMED
    if type(document.get("version")) is not int or document["version"] != VERSION:
        return Reason.VERSION
    if set(document) != _FIELDS:
        return Reason.MALFORMED
    if document["survey"] != survey.fingerprint:
        return Reason.FOREIGN
    reason = fault(document["answers"], survey)
    return reason or Report(survey.fingerprint, tuple(map(tuple, document["answers"])))


def decode(text: str | bytes, survey: Survey) -> Report:
    """The report in `text`; raises FormatError, or FingerprintMismatch for another survey's."""
    found = inspect(text, survey)
    if isinstance(found, Report):
        return found
    if found is Reason.FOREIGN:
        raise FingerprintMismatch("the report", survey.fingerprint, survey_of(text))
    raise FormatError(f"not a valid report: {found.text}")


def survey_of(text: str | bytes) -> str:
    """The fingerprint that a report names, as far as it can be one."""
    found = json.loads(text)["survey"]
    return found[:64] if isinstance(found, str) else f"of type {type(found).__name__}"
