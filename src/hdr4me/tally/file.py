"""The file format of a tally: one line of JSON, then the counts as little-endian 64-bit integers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import numpy as np

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io.report import Reason
from hdr4me.survey import Survey
from hdr4me.survey.canonical import canonical, parse
from hdr4me.tally.tally import Tally

FORMAT, VERSION = "hdr4me-tally", 1
_FIELDS = {"format", "version", "survey", "document", "n_reports", "rejected", "n_counts", "checksum"}


def dumps(tally: Tally) -> bytes:
    """The bytes of the file; equal tallies give equal bytes.

    The header contains the whole survey document, so a tally can be merged and estimated without other files.
    """
    data = tally.counts.astype("<i8").tobytes()
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "survey": tally.survey.fingerprint,
        "document": tally.survey.to_json(),
        "n_reports": tally.n_reports,
        "rejected": tally.rejected,
        "n_counts": len(tally.counts),
    }
    header["checksum"] = _checksum(header, data)
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode() + b"\n" + data


def loads(content: bytes, survey: Survey | None = None) -> Tally:
    """Parse the bytes that `dumps` wrote, with all checks."""
    first, newline, data = content.partition(b"\n")
    try:
        header: Any = parse(first)
    except ValueError as error:
        raise FormatError("not a tally, or damaged: its first line is not JSON") from error
    if not newline or not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FormatError("not a tally, which hdr4me tally makes from reports")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise FormatError(
            f"tally of version {header.get('version')!r}: this version of hdr4me supports version {VERSION}"
        )
    if set(header) != _FIELDS:
        raise FormatError("not a tally: fields are missing or unknown")
    if header["checksum"] != _checksum(header, data):
        raise FormatError("the tally's checksum does not match: the file was truncated or changed")
    if survey is None:
        if not isinstance(header["document"], str):
            raise FormatError("not a tally: the survey is missing from the header")
        survey = Survey.from_json(header["document"])
    if header["survey"] != survey.fingerprint:
        raise FingerprintMismatch("the tally", survey.fingerprint, str(header["survey"]))
    tally = Tally(survey)
    layout, n_reports, rejected = tally.layout, header["n_reports"], header["rejected"]
    if len(data) != 8 * layout.size or header["n_counts"] != layout.size:
        raise FormatError(f"a tally of {len(data)} bytes of counts: its survey needs {8 * layout.size}")
    if type(n_reports) is not int or not 0 <= n_reports <= 2**53 or not isinstance(rejected, dict):
        raise FormatError("not a tally: n_reports must be a non-negative integer and rejected an object")
    known = {reason.text for reason in Reason}
    if not all(key in known and type(value) is int and value > 0 for key, value in rejected.items()):
        raise FormatError("not a tally: rejected must map known reasons to positive integers")
    tally.counts[:] = np.frombuffer(data, "<i8")
    tally.n_reports, tally._rejected = n_reports, Counter(rejected)
    # The numbers of answers of all questions add up to m per report.
    pairs = enumerate(survey.questions)
    answers = [x.channel.n_answers(layout.of_question(tally.counts, q).tolist()) for q, x in pairs]
    valid = [n for n in answers if n is not None and n <= n_reports]
    if len(valid) < len(answers) or sum(valid) != n_reports * survey.sampled:
        raise FormatError("the tally's counts do not add up to its number of reports")
    return tally


def _checksum(header: dict[str, Any], data: bytes) -> str:
    try:
        text = canonical({key: value for key, value in header.items() if key != "checksum"})
        return hashlib.sha256(text.encode() + b"\n" + data).hexdigest()
    except (ValueError, RecursionError) as error:
        raise FormatError("not a tally: its header has no canonical form") from error
