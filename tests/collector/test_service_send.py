"""Sending a spool: again after a wait where that can help, never where it cannot, always under the same ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from hdr4me.collector.sending import NotAccepted, Sent, Spool, send
from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.arrow import loads
from hdr4me.survey import Numeric, Schema, Survey

SURVEY = Survey(Schema([Numeric("age", 0, 120), Numeric("height", 0, 250)]), epsilon=1.0, mechanism="duchi")
ROUNDS = {"rounds": [{"round": 4, "survey": SURVEY.fingerprint, "series": "", "state": "open"}]}


def a_spool(folder: Path, n: int) -> Spool:
    folder.mkdir(exist_ok=True)
    spool = Spool(folder, SURVEY)
    Local(threads=1).perturb(np.zeros((n, 2)), SURVEY, spool.reports)
    spool.assign_ids(n)
    return spool


class Collector:
    """Sends the given answers in turn; afterwards with success."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.bodies, self.waits = list(answers), [], []
        self.client = httpx.Client(base_url="http://collector", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/rounds":
            return httpx.Response(200, json=ROUNDS)
        assert request.url.path == "/v1/rounds/4/reports"
        self.bodies.append(request.content)
        given = self.answers.pop(0) if self.answers else None
        if isinstance(given, Exception):
            raise given
        if isinstance(given, httpx.Response):
            return given
        n = len(loads(request.content, SURVEY, 10_000).rows)
        return httpx.Response(200, json={"stored": n, "duplicates": 0, "rejected": []})

    def send(self, spool: Spool, **options: Any) -> Sent:
        with self.client:
            return send(spool, "http://collector", client=self.client, wait=self.waits.append, **options)


def test_every_report_is_sent_once_under_its_id(tmp_path: Path) -> None:
    spool, collector = a_spool(tmp_path / "spool", 12_345), Collector()
    progress: list[int] = []
    assert collector.send(spool, progress=progress.append) == Sent(12_345, 0, 0)
    assert sum(progress) == 12_345
    assert all(n <= 10_000 for n in progress)
    ids = (tmp_path / "spool" / "ids").read_bytes()
    assert b"".join(loads(body, SURVEY, 10_000).ids.tobytes() for body in collector.bodies) == ids
    assert len({ids[at : at + 16] for at in range(0, len(ids), 16)}) == 12_345


def test_wide_reports_are_sent_in_batches_by_bytes(tmp_path: Path) -> None:
    """3,000 reports of the paper's m = d = 750: more than 6 MB, which one request cannot carry."""
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(750)])
    survey = Survey(schema, epsilon=1.0, sampled=750, mechanism="duchi")
    spool = Spool(tmp_path, survey)
    Local(threads=1).perturb(np.zeros((3_000, 750)), survey, spool.reports)
    spool.assign_ids(3_000)
    sizes = []

    def collector(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/rounds":
            return httpx.Response(
                200, json={"rounds": [{**ROUNDS["rounds"][0], "survey": survey.fingerprint}]}
            )
        sizes.append(len(request.content))
        if len(request.content) > 1 << 20:  # an operator's smaller limit
            return httpx.Response(413, json={"error": "too large"})
        n = len(loads(request.content, survey, 10_000).rows)
        return httpx.Response(200, json={"stored": n, "duplicates": 0, "rejected": []})

    with httpx.Client(base_url="http://collector", transport=httpx.MockTransport(collector)) as client:
        assert send(spool, "http://collector", client=client) == Sent(3_000, 0, 0)
    assert max(sizes) <= 4 << 20


def test_one_report_that_is_too_large_is_an_error(tmp_path: Path) -> None:
    collector = Collector(httpx.Response(413), httpx.Response(413))
    with pytest.raises(NotAccepted, match="413"):
        collector.send(a_spool(tmp_path / "spool", 2))
    assert len(collector.bodies) == 2


def test_what_may_pass_is_tried_again_with_the_same_bytes(tmp_path: Path) -> None:
    busy = httpx.Response(503, json={"error": "busy"}, headers={"retry-after": "7"})
    collector = Collector(
        busy, httpx.ConnectError("gone"), httpx.ReadTimeout("late"), httpx.Response(429), None
    )
    assert collector.send(a_spool(tmp_path / "spool", 10)).stored == 10
    assert len(collector.bodies) == 5
    assert len(set(collector.bodies)) == 1
    assert len(collector.waits) == 4
    assert collector.waits[0] >= 7
    assert all(0 <= wait <= 60 for wait in collector.waits)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([httpx.ConnectError("gone")] * 8, "cannot be reached"),
        ([httpx.Response(503, json={"error": "it is full"})] * 8, "it is full"),
        ([httpx.Response(401, json={"error": "the token is not known"})], "the token is not known"),
        ([httpx.Response(409, json={"error": "round 4 is closed"})], "round 4 is closed"),
        ([httpx.Response(200, text="<html>")], "not from a collector"),
        ([httpx.Response(404, text="nothing")], "404"),
    ],
)
def test_what_cannot_pass_is_reported(tmp_path: Path, answers: list[Any], sentence: str) -> None:
    collector = Collector(*answers)
    with pytest.raises(NotAccepted, match=sentence):
        collector.send(a_spool(tmp_path / "spool", 10))
    assert len(collector.bodies) == len(answers)


def test_a_damaged_spool_is_an_error(tmp_path: Path) -> None:
    spool = a_spool(tmp_path / "spool", 10)
    ids = (tmp_path / "spool" / "ids").read_bytes()
    for wrong in (ids[:-16], ids + ids[:16]):
        (tmp_path / "spool" / "ids").write_bytes(wrong)
        with pytest.raises(FormatError, match="complete spool"):
            Collector().send(spool)


def test_other_surveys_and_rounds_are_refused(tmp_path: Path) -> None:
    spool = a_spool(tmp_path / "spool", 10)
    with pytest.raises(InvalidInput, match="round 9"):
        Collector().send(spool, round_number=9)
    other = Survey(
        Schema([Numeric("age", 0, 120), Numeric("height", 0, 250)]), epsilon=2.0, mechanism="duchi"
    )
    with pytest.raises(InvalidInput, match="no open round"):
        Collector().send(Spool(spool.folder, other))


def test_a_wrong_file_of_certificates_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(InvalidInput, match=r"\(SSL_CERT_FILE = .*none\.pem\): correct or unset the variable"):
        send(a_spool(tmp_path / "spool", 2), "https://127.0.0.1:9")
