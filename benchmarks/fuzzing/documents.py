"""Surveys, tallies, ledgers and records, changed: refused, or as good as what they claim."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.mutate import change_bytes, change_document, flip, to_text
from fuzzing.reports import SURVEY, Wrong, answers_counted, some_rows
from hdr4me.channels import Channel, KSubset
from hdr4me.client import Ledger
from hdr4me.engines import Local
from hdr4me.errors import HDR4MEError
from hdr4me.explanation.explain import example_report
from hdr4me.io.report import decode
from hdr4me.survey import Survey
from hdr4me.survey.canonical import fingerprint
from hdr4me.tally import Tally
from hdr4me.tally.file import _checksum

__all__ = ["fuzz_csv", "fuzz_ledger", "fuzz_survey", "fuzz_tally"]

DOCUMENT = json.loads(SURVEY.to_json())


def _with_checksum(document: Any, field: str, compute: Any) -> Any:
    """The document with a checksum that fits, where one can be computed: deeper checks are reached."""
    with suppress(HDR4MEError, ValueError, TypeError, KeyError, RecursionError, AttributeError):
        document[field] = compute(document)
    return document


def fuzz_survey(random: Random, folder: Path) -> int:
    """A changed survey with a fingerprint that fits: refused, or private by fractions and with reports of its size."""
    document = change_document(DOCUMENT, random)
    for _ in range(random.randrange(2)):
        document = change_document(document, random)
    if random.random() < 0.8 and isinstance(document, dict):
        document = _with_checksum(document, "fingerprint", fingerprint)
    text = to_text(document, random).encode("utf-8", errors="surrogatepass")
    if random.random() < 0.2:
        text = change_bytes(text, random)
    try:
        survey = Survey.from_json(text)
    except HDR4MEError:
        return 1
    _prove(survey)
    report = decode(example_report(survey), survey)
    if len(report.to_bytes(survey)) > survey.report_size:
        raise Wrong("a report of another size than the survey's")
    if Tally(survey).add([report]).n_reports != 1:
        raise Wrong("a survey that was accepted rejects its own report")
    return 1


def _prove(survey: Survey) -> None:
    """By exact fractions and nothing of ours: no row tells more than the survey's ε, all answers together."""
    ratios = sorted((_channel_ratio(question.channel) for question in survey.questions), reverse=True)
    total = Fraction(1)
    for ratio in ratios[: survey.sampled]:
        total *= ratio
    with localcontext() as context:
        context.prec = 60
        limit = Decimal(survey.epsilon).exp()
    if Decimal(total.numerator) / Decimal(total.denominator) > limit * (1 + Decimal("1e-40")):
        raise Wrong(f"a survey of epsilon {survey.epsilon} was accepted with ratio {float(total)}")


def _channel_ratio(channel: Channel) -> Fraction:
    """The ratio of a channel, from its numbers alone."""
    if isinstance(channel, KSubset):
        n, k, heavy = channel.family.n_outputs, channel.family.n_heavy, Fraction(channel.weight, 2**32)
        return (heavy / k) / ((1 - heavy) / (n - k))
    return _ratio(channel.rows, channel.kind)


def _ratio(rows: Any, kind: str) -> Fraction:
    worst = Fraction(1)
    for row in rows:
        if sum(row) != 2**32 or min(row) < 0:
            raise Wrong("a row that is no distribution was accepted")
    for column in zip(*rows, strict=True):
        if max(column) > 0:
            if min(column) == 0:
                raise Wrong("a survey was accepted in which a cell excludes a value")
            worst = max(worst, Fraction(max(column), min(column)))
    if kind != "entries":
        return worst
    # One entry turns on and another off: both their ratios count.
    off, on = rows
    up = max(Fraction(b, a) for a, b in zip(off, on, strict=True) if a or b)
    down = max(Fraction(a, b) for a, b in zip(off, on, strict=True) if a or b)
    return up * down


def fuzz_tally(random: Random, folder: Path) -> int:
    """A changed tally, mostly with a checksum that fits: refused, or with counts that add up."""
    block = np.stack([np.frombuffer(row, np.uint8) for row in some_rows(random, 20)])
    whole = Tally(SURVEY).add_block(block)
    path = folder / "t.tally"
    whole.save(path)
    content = path.read_bytes()
    for _ in range(20):
        once = random.random() < 0.4
        if once:
            changed = flip(content, random)
        else:
            first, _, data = content.partition(b"\n")
            header = change_document(json.loads(first), random)
            data = change_bytes(data, random) if random.random() < 0.5 else data
            if isinstance(header, dict):
                header = _with_checksum(header, "checksum", lambda h, d=data: _checksum(h, d))
            changed = to_text(header, random).encode("utf-8", errors="surrogatepass") + b"\n" + data
        path.write_bytes(changed)
        try:
            found = Tally.load(path)
        except HDR4MEError:
            continue
        if once and found != whole:
            raise Wrong("one flipped bit of a tally gave another tally")
        if answers_counted(found) != found.survey.sampled * found.n_reports:
            raise Wrong("a tally was accepted whose counts do not add up")
        if found.n_reports:
            found.estimate()
    return 20


def fuzz_ledger(random: Random, folder: Path) -> int:
    """The changed ledger of a device that has answered: in doubt the answer is no."""
    strict = find_spec("hdr4me.client.ledger_file") is not None  # the ledger with a checksum
    for left in folder.glob("ledger.json*"):
        left.unlink()
    path = folder / "ledger.json"
    Ledger(path, limit=100.0).spend(SURVEY)
    content = path.read_bytes()
    for _ in range(10):
        if random.random() < 0.6:
            changed = flip(content, random)
        else:
            changed = to_text(change_document(json.loads(content), random), random).encode(
                "utf-8", errors="surrogatepass"
            )
        path.write_bytes(changed)
        try:
            Ledger(path, limit=100.0).spend(SURVEY)
        except HDR4MEError:
            continue
        if strict and changed != content:
            raise Wrong("a changed ledger released a second report")
        path.write_bytes(content)
    return 10


def fuzz_csv(random: Random, folder: Path) -> int:
    """Changed records: one report for each record that is read, or an error that holds no value of a record."""
    path = folder / "r.csv"
    rows = [f"{i % 90},{random.choice(('none', 'cat', 'bird'))},SECRET-{i}" for i in range(30)]
    content = ("age,pet,tool\n" + "\n".join(rows) + "\n").encode()
    for _ in range(10):
        changed = change_bytes(content, random)
        for _ in range(random.randrange(3)):
            changed = change_bytes(changed, random)
        path.write_bytes(changed)
        try:
            blocks = list(Local(threads=1).reports(path, SURVEY))
        except HDR4MEError as error:
            if "SECRET-" in str(error) and b"SECRET-" not in changed.partition(b"\n")[0]:
                raise Wrong("a message holds a value of a record") from None
            continue
        for block in blocks:
            tally = Tally(SURVEY).add_block(block)
            if tally.rejected or tally.n_reports != len(block):
                raise Wrong("a record became a report that is not valid")
    return 10
