"""The service over a store in memory: uploads in three forms, idempotency, rounds, answers, access, limits."""

from __future__ import annotations

import gzip
import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from collector_memory import MemoryStore, memory_store
from collector_service import Service, serving

from hdr4me.cli.collector import start
from hdr4me.client import Client
from hdr4me.collector.access import digest
from hdr4me.collector.answers import Answers, Asked, as_csv
from hdr4me.collector.batch import Batch
from hdr4me.collector.config import Limits, Settings
from hdr4me.collector.errors import StoreFull, StoreUnavailable
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.engines import Local
from hdr4me.errors import FormatError
from hdr4me.io.arrow import dumps
from hdr4me.io.report import pack
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps as tally_bytes

ARROW, LINES, ONE = "application/vnd.apache.arrow.stream", "application/x-ndjson", "application/json"
PATH = "/v1/rounds/1/reports"


def made_survey(name: str = "", sampled: int = 1) -> Survey:
    schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes", "never"])])
    return Survey(schema, epsilon=2.0, mechanism="duchi", sampled=sampled, name=name)


SURVEY = made_survey()


def a_report(survey: Survey = SURVEY) -> Any:
    return Client(survey).report({"age": 31, "smoker": "no"})


def json_headers(id: str | None = None, **more: str) -> dict[str, str]:
    return {"content-type": ONE, "idempotency-key": id or secrets.token_hex(16), **more}


def a_line(id: str | None = None, survey: Survey = SURVEY) -> bytes:
    report = json.loads(a_report(survey).to_json())
    return json.dumps({"id": id or secrets.token_hex(16), "report": report}, separators=(",", ":")).encode()


def a_stream(n: int, survey: Survey = SURVEY, ids: bytes | None = None) -> bytes:
    rows = np.frombuffer(b"".join(pack(a_report(survey).answers, survey) for _ in range(n)), np.uint8)
    found = np.frombuffer(ids or secrets.token_bytes(16 * n), np.uint8)
    return dumps(found.reshape(n, 16), rows.reshape(n, -1), survey)


def with_tokens(store: MemoryStore) -> dict[str, dict[str, str]]:
    """A token of each scope; the headers that carry it."""
    for scope in ("send", "read", "admin"):
        store.add_token(digest(f"a token with the scope {scope} only"), scope)
    return {
        scope: {"authorization": f"Bearer a token with the scope {scope} only"}
        for scope in ("send", "read", "admin")
    }


def check(work: Any, store: MemoryStore | None = None, **settings: Any) -> MemoryStore:
    store = store or memory_store(SURVEY)
    serving(store, work, **settings)
    return store


# -- uploads ---------------------------------------------------------------------------------------------------


def test_one_report_is_stored_once_however_often_it_is_sent() -> None:
    id, report = secrets.token_hex(16), a_report()

    async def work(service: Service) -> None:
        for expected in ([1, 0], [0, 1], [0, 1]):
            answer = await service.call("POST", PATH, report.to_json().encode(), json_headers(id))
            assert answer.status == 200
            found = answer.json()
            assert [found["stored"], found["duplicates"]] == expected
            assert found["rejected"] == []

    store = check(work)
    assert store.reports[1][bytes.fromhex(id)].payload == report.to_bytes(SURVEY)


def test_a_report_in_other_words_is_the_same_report() -> None:
    """Blanks and another order of keys: still JSON, still a report."""
    report = a_report()
    document = dict(reversed(json.loads(report.to_json()).items()))

    async def work(service: Service) -> None:
        body = json.dumps(document, indent=1).encode()
        assert (await service.call("POST", PATH, body, json_headers())).json()["stored"] == 1

    (arrival,) = check(work).reports[1].values()
    assert arrival.payload == report.to_bytes(SURVEY)


@pytest.mark.parametrize("survey", [SURVEY, made_survey(sampled=2)], ids=["one answer", "two answers"])
def test_lines_with_bad_ones_among_them(survey: Survey) -> None:
    repeated = secrets.token_hex(16)
    lines = [
        a_line(survey=survey),
        b"not JSON",
        a_line(repeated, survey),
        b"",
        a_line(repeated, survey),
        a_line("12", survey),
        a_line(survey=made_survey("another")),
        b'{"id": "'
        + secrets.token_hex(16).encode()
        + b'", "report": '
        + a_report(survey).to_json().encode()
        + b"}\r",
        b"[" * 2000,
    ]

    async def work(service: Service) -> None:
        answer = await service.call("POST", PATH, b"\n".join(lines), {"content-type": LINES})
        assert answer.status == 200
        assert answer.json() == {
            "stored": 3,
            "duplicates": 1,
            "rejected": [
                {"line": 2, "reason": "not a report"},
                {"line": 6, "reason": "not an id of 32 hexadecimal digits"},
                {"line": 7, "reason": "another survey"},
                {"line": 9, "reason": "not a report"},
            ],
        }

    store = memory_store(survey)
    check(work, store)
    assert {r.reason: r.count for r in store.rejections(1)} == {
        "not a report": 2,
        "not an id of 32 hexadecimal digits": 1,
        "another survey": 1,
    }


def test_arrow_with_bad_rows_among_them() -> None:
    n = 50
    rows = (
        np.frombuffer(b"".join(pack(a_report().answers, SURVEY) for _ in range(n)), np.uint8)
        .reshape(n, -1)
        .copy()
    )
    rows[7, 0] = 9  # no such question
    rows[9, 2] = 200  # no such code
    ids = np.frombuffer(secrets.token_bytes(16 * n), np.uint8).reshape(n, 16).copy()
    ids[20] = ids[21]

    async def work(service: Service) -> None:
        answer = await service.call("POST", PATH, dumps(ids, rows, SURVEY), {"content-type": ARROW})
        assert answer.json() == {
            "stored": 47,
            "duplicates": 1,
            "rejected": [
                {"line": 8, "reason": "unknown dimension"},
                {"line": 10, "reason": "code out of support"},
            ],
        }

    check(work)


@pytest.mark.parametrize("kind", [ONE, LINES, ARROW])
@pytest.mark.parametrize("chunks", [1, 5])
def test_gzip(kind: str, chunks: int) -> None:
    body = {ONE: a_report().to_json().encode(), LINES: a_line(), ARROW: a_stream(1)}[kind]
    headers = json_headers(**{"content-encoding": "gzip"}) | {"content-type": kind + "; charset=utf-8"}

    async def work(service: Service) -> None:
        answer = await service.call("POST", PATH, gzip.compress(body, mtime=0), headers, chunks=chunks)
        assert answer.json()["stored"] == 1

    check(work)


@pytest.mark.parametrize(
    ("body", "headers", "status", "sentence"),
    [
        (b"{}", json_headers(), 422, "not a report"),
        (b"", json_headers(), 422, "not a report"),
        (b"{}", {"content-type": ONE}, 400, "Idempotency-Key"),
        (b"{}", json_headers("zz" * 16), 400, "Idempotency-Key"),
        (b"{}", json_headers(" " * 32), 400, "Idempotency-Key"),
        (b"{}", {}, 415, "Content-Type"),
        (b"{}", {"content-type": "text/plain"}, 415, "Content-Type"),
        (b"\n\n", {"content-type": LINES}, 400, "no report"),
        (b"x", {"content-type": ARROW}, 422, "Arrow"),
        (b"x" * 17_000, json_headers(), 413, "16384"),
        (b"x" * 20, json_headers(**{"content-length": "99999999999999999999999"}), 413, "16384"),
        (b"x" * 20, json_headers(**{"content-length": "-4"}), 413, "16384"),
        (b"not gzip", json_headers(**{"content-encoding": "gzip"}), 400, "gzip"),
        (gzip.compress(b"x", mtime=0)[:-3], json_headers(**{"content-encoding": "gzip"}), 400, "truncated"),
        (
            gzip.compress(b"x", mtime=0) * 2,
            json_headers(**{"content-encoding": "gzip"}),
            400,
            "after its end",
        ),
        (b"x", json_headers(**{"content-encoding": "br"}), 415, "Content-Encoding"),
        (gzip.compress(bytes(1 << 20), mtime=0), json_headers(**{"content-encoding": "gzip"}), 413, "16384"),
        (
            gzip.compress(bytes(9 << 20), mtime=0),
            {"content-type": LINES, "content-encoding": "gzip"},
            413,
            "8388608",
        ),
        (
            gzip.compress(bytes(9 << 20), mtime=0),
            {"content-type": ARROW, "content-encoding": "gzip"},
            413,
            "8388608",
        ),
        (b"x\n" * 10_001, {"content-type": LINES}, 413, "10000"),
    ],
)
def test_bad_uploads_get_one_plain_sentence(
    body: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    async def work(service: Service) -> None:
        answer = await service.call("POST", PATH, body, headers)
        assert answer.status == status
        assert list(answer.json()) == ["error"]
        assert sentence in answer.json()["error"]
        assert service.collector.body_bytes.held == 0

    assert check(work).reports[1] == {}


def test_a_compressed_arrow_batch_is_refused_before_it_is_inflated() -> None:
    import io

    import pyarrow as pa

    from hdr4me.io.arrow import stream_schema

    schema = stream_schema(SURVEY)
    batch = pa.record_batch(
        [pa.array([bytes(16)] * 9, pa.binary(16)), pa.array([bytes(3)] * 9, pa.binary(3))], schema=schema
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)

    async def work(service: Service) -> None:
        answer = await service.call("POST", PATH, sink.getvalue(), {"content-type": ARROW})
        assert answer.status == 422
        assert "compressed" in answer.json()["error"]

    check(work)


def test_exactly_as_many_lines_as_allowed() -> None:
    body = b"\n".join(a_line() for _ in range(20))

    async def work(service: Service) -> None:
        assert (await service.call("POST", PATH, body + b"\n", {"content-type": LINES})).json()[
            "stored"
        ] == 20
        assert (await service.call("POST", PATH, body + b"\nx", {"content-type": LINES})).status == 413
        assert (await service.call("POST", PATH, a_stream(20), {"content-type": ARROW})).json()[
            "stored"
        ] == 20
        assert (await service.call("POST", PATH, a_stream(21), {"content-type": ARROW})).status == 413

    check(work, limits=Limits(reports=20))


# -- what a full or failing store answers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fail", "status"),
    [(StoreUnavailable("secret"), 503), (StoreFull("secret"), 507), (OSError("secret"), 503)],
)
def test_nothing_is_acknowledged_that_is_not_stored(fail: Exception, status: int) -> None:
    id, body = secrets.token_hex(16), a_report().to_json().encode()
    store = memory_store(SURVEY)

    async def work(service: Service) -> None:
        store.fail = fail
        answer = await service.call("POST", PATH, body, json_headers(id))
        assert answer.status == status
        assert int(answer.headers["retry-after"]) >= 1
        assert str(fail) not in answer.json()["error"]
        store.fail = None
        assert (await service.call("POST", PATH, body, json_headers(id))).json()["stored"] == 1

    check(work, store)


def test_a_disk_that_runs_low_is_507_and_not_ready() -> None:
    store = memory_store(SURVEY)
    store.free = 10

    async def work(service: Service) -> None:
        assert (await service.call("POST", PATH, b"{}", json_headers())).status == 507
        assert (await service.call("GET", "/readyz")).status == 503
        assert (await service.call("GET", "/healthz")).status == 200

    check(work, store)


def test_too_much_that_waits_is_503() -> None:
    import asyncio

    store = memory_store(SURVEY)
    store.delay = 0.3

    async def work(service: Service) -> None:
        bodies = [b"\n".join(a_line() for _ in range(8)) for _ in range(4)]
        answers = await asyncio.gather(
            *(service.call("POST", PATH, body, {"content-type": LINES}) for body in bodies)
        )
        refused = [answer for answer in answers if answer.status == 503]
        assert len(refused) == 3
        assert all("retry-after" in answer.headers for answer in refused)

    check(work, store, limits=Limits(waiting_reports=10))


def test_too_many_bytes_at_once_are_503() -> None:
    async def work(service: Service) -> None:
        assert service.collector.body_bytes.take("another", 5000)
        answer = await service.call("POST", PATH, a_report().to_json().encode(), json_headers())
        assert answer.status == 503
        assert service.collector.body_bytes.held == 5000

    check(work, limits=Limits(waiting_bytes=5010))


def test_requests_that_wait_together_are_one_transaction() -> None:
    import asyncio

    store = memory_store(SURVEY)
    store.delay = 0.2

    async def work(service: Service) -> None:
        calls = (service.call("POST", PATH, a_report().to_json().encode(), json_headers()) for _ in range(50))
        assert {answer.status for answer in await asyncio.gather(*calls)} == {200}

    check(work, store)
    assert len(store.batches) <= 3
    assert sum(store.batches) == 50


def test_one_request_cannot_sink_the_others_of_its_group() -> None:
    """Should the store refuse the reports of one request, those beside it are stored all the same."""
    import asyncio

    bad = secrets.token_bytes(16)

    class Picky(MemoryStore):
        def write(self, batches: Any) -> None:
            if any(batch.ids == bad for batch in batches):
                raise ValueError("these reports")
            super().write(batches)

    store = Picky()
    store.add_token(ANYONE, "send")
    store.open_round(SURVEY, now=datetime.now(UTC))
    store.delay = 0.05

    async def work(service: Service) -> None:
        ids = [bad.hex(), *(secrets.token_hex(16) for _ in range(5))]
        calls = (service.call("POST", PATH, a_report().to_json().encode(), json_headers(id)) for id in ids)
        assert [answer.status for answer in await asyncio.gather(*calls)] == [503, 200, 200, 200, 200, 200]

    check(work, store)
    assert len(store.reports[1]) == 5


def test_stopping_writes_what_waits() -> None:
    import asyncio

    store = memory_store(SURVEY)
    store.delay = 0.2
    sent: list[Any] = []

    async def work(service: Service) -> None:
        sent.append(
            asyncio.ensure_future(service.call("POST", PATH, a_report().to_json().encode(), json_headers()))
        )
        await asyncio.sleep(0.05)

    check(work, store)
    assert len(store.reports[1]) == 1
    assert store.closed


# -- rounds and surveys ----------------------------------------------------------------------------------------------


def test_rounds_open_and_close() -> None:
    store = memory_store(SURVEY)
    admin = with_tokens(store)["admin"]
    second = made_survey("second")

    async def work(service: Service) -> None:
        assert (await service.call("POST", "/v1/rounds", second.to_json().encode(), admin)).json()[
            "round"
        ] == 2
        listed = (await service.call("GET", "/v1/rounds")).json()["rounds"]
        assert [row["survey"] for row in listed] == [SURVEY.fingerprint, second.fingerprint]
        assert set(listed[0]) == {"round", "survey", "series", "state"}
        assert listed[0]["series"] == listed[1]["series"]
        assert "stored" in (await service.call("GET", "/v1/rounds", headers=admin)).json()["rounds"][0]
        assert (await service.call("POST", "/v1/rounds/1/close", b"", admin)).json()["state"] == "closed"
        answer = await service.call("POST", PATH, a_report().to_json().encode(), json_headers())
        assert answer.status == 409
        assert "closed" in answer.json()["error"]
        bad = await service.call("POST", "/v1/rounds", b"{}", admin)
        assert bad.status == 400
        for path in (
            "/v1/rounds/9/reports",
            "/v1/rounds/0/reports",
            "/v1/rounds/01/reports",
            "/v1/rounds/x/reports",
        ):
            assert (await service.call("POST", path, b"{}", json_headers())).status == 404

    check(work, store)


def test_a_round_that_another_worker_closed_accepts_nothing() -> None:
    store = memory_store(SURVEY)

    async def work(service: Service) -> None:
        store.close_round(1, now=datetime.now(UTC))
        answer = await service.call("POST", PATH, a_report().to_json().encode(), json_headers())
        assert answer.status == 409

    check(work, store)
    assert store.reports[1] == {}


def test_a_survey_never_changes() -> None:
    async def work(service: Service) -> None:
        path = f"/v1/surveys/{SURVEY.fingerprint}"
        answer = await service.call("GET", path)
        assert Survey.from_json(answer.body) == SURVEY
        assert "immutable" in answer.headers["cache-control"]
        again = await service.call("GET", path, headers={"if-none-match": answer.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        assert (await service.call("GET", "/v1/surveys/" + "0" * 64)).status == 404

    check(work)


# -- answers ---------------------------------------------------------------------------------------------------------


def test_no_answer_below_min_reports_then_the_librarys_own() -> None:
    store = memory_store(SURVEY)
    read = with_tokens(store)["read"]

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_stream(99), {"content-type": ARROW})
        for path in ("estimate", "estimate.csv", "tally"):
            early = await service.call("GET", f"/v1/rounds/1/{path}", headers=read)
            assert early.status == 409
            assert "100" in early.json()["error"]
        await service.call("POST", PATH, a_stream(1), {"content-type": ARROW})
        tally = store.tally(1)
        answer = (await service.call("GET", "/v1/rounds/1/estimate?confidence=0.9", headers=read)).json()
        assert answer["reports"] == 100
        assert [row["estimate"] for row in answer["rows"]] == tally.estimate().value.tolist()
        better = (await service.call("GET", "/v1/rounds/1/estimate?recalibrate=auto", headers=read)).json()
        assert better["advice"] == list(tally.estimate().recalibrate("auto").advice)
        assert (await service.call("GET", "/v1/rounds/1/tally", headers=read)).body == tally_bytes(tally)
        csv = (await service.call("GET", "/v1/rounds/1/estimate.csv", headers=read)).body.decode()
        assert csv.startswith("dimension,category,estimate")
        assert csv.splitlines()[0].endswith(",survey,epsilon,confidence,version,date")
        assert all(f",{SURVEY.fingerprint},{SURVEY.epsilon},0.95," in line for line in csv.splitlines()[1:])
        assert (answer["survey"], answer["epsilon"], answer["confidence"]) == (
            SURVEY.fingerprint,
            SURVEY.epsilon,
            0.9,
        )

    check(work, store)


def test_answers_are_renewed_in_steps() -> None:
    """One report more changes nothing that a reader sees; a step of min_reports does."""
    store = memory_store(SURVEY)
    read = with_tokens(store)["read"]

    async def work(service: Service) -> None:
        seen = []
        for n in (100, 1, 98, 1):
            await service.call("POST", PATH, a_stream(n), {"content-type": ARROW})
            seen.append((await service.call("GET", "/v1/rounds/1/estimate", headers=read)).json()["reports"])
        assert seen == [100, 100, 100, 200]

    check(work, store)


def test_workers_and_restarts_show_the_same_moment(tmp_path: Path) -> None:
    """Otherwise the difference of two answers could be one report; a damaged file is no answer and no error."""
    store = memory_store(SURVEY)
    first, second = (Answers(store, 5, tmp_path / "shown") for _ in range(2))
    store.write([Batch(1, 0, secrets.token_bytes(16 * 5), a_report().to_bytes(SURVEY) * 5)])
    assert first.tally(1).n_reports == 5
    store.write([Batch(1, 0, secrets.token_bytes(16), a_report().to_bytes(SURVEY))])
    assert [answers.tally(1).n_reports for answers in (first, second)] == [5, 5]
    store.write([Batch(1, 0, secrets.token_bytes(16 * 4), a_report().to_bytes(SURVEY) * 4)])
    assert [answers.tally(1).n_reports for answers in (second, first)] == [10, 10]
    (file,) = (tmp_path / "shown").iterdir()
    for damage in (b"", file.read_bytes()[:-1], b"{}\n", b"[]", file.read_bytes().replace(b"every", b"very")):
        file.write_bytes(damage)
        assert Answers(store, 5, tmp_path / "shown").tally(1).n_reports == 10


def test_a_round_after_the_row_budget_has_no_intervals() -> None:
    """The collector counts the rounds of a series: with a row budget of 1, the second round may be stale."""
    surveys = [Survey(SURVEY.schema, SURVEY.epsilon, row_budget=1, name=name) for name in ("", "second")]
    store = memory_store(*surveys)
    answers = Answers(store, 5)
    for number, survey in enumerate(surveys, start=1):
        reports = a_report(survey).to_bytes(survey) * 20
        store.write([Batch(number, 0, secrets.token_bytes(16 * 20), reports)])
    first, second = ({row["status"] for row in answers.document(k, Asked())["rows"]} for k in (1, 2))
    assert first - {"no reports"} == {"ok"}
    assert second - {"no reports"} == {"may be stale: the row budget of 1 is spent before round 2"}
    both = answers.series(surveys[0].series, Asked(), memoized=True)
    assert "cannot be estimated" in both["advice"][-1]
    assert answers.tally(2).round_number is None  # the snapshot, which other threads use, is as it was


def test_a_data_quality_report_is_shown_beside_the_rows_it_concerns(tmp_path: Path) -> None:
    schema = Schema([Numeric("income", 0, 100, default=50), Numeric("age", 0, 100)])
    survey = Survey(schema, epsilon=1.0, sampled=2)
    records = pa.table({"income": [20.0, None, None, 40.0] * 25, "age": [30.0] * 100})
    Local().perturb(records, survey, tmp_path / "reports.arrow", on_quality=lambda quality: None)
    file = tmp_path / "_reports.arrow.quality.json"
    store = memory_store(survey, SURVEY)
    reports = (Client(survey).report({"income": 5, "age": 31}), a_report())
    for number, (own, report) in enumerate(zip((survey, SURVEY), reports, strict=True), start=1):
        store.write([Batch(number, 0, secrets.token_bytes(16 * 20), report.to_bytes(own) * 20)])
    answers = Answers(store, 5, None, [str(file)])
    found = answers.document(1, Asked())
    income, age = found["rows"]
    assert "50 of 100 values (50 %) are missing and count as 50" in income["note"]
    assert "values" not in age["note"]
    assert "(50 %) are missing" in as_csv(found)
    assert "(50 %) are missing" in answers.series(survey.series, Asked(), memoized=False)["rows"][0]["note"]
    other = answers.document(2, Asked())["rows"]  # of another survey
    assert not any("values" in row.get("note", "") for row in other)
    file.write_text("{}")
    with pytest.raises(FormatError, match=r"quality\.json is not a data-quality report"):
        start(Settings(str(tmp_path / "a.db"), data_quality=(str(file),)), survey, host="127.0.0.1", port=0)


def test_a_later_round_without_a_declared_row_budget_says_what_is_unknown() -> None:
    """Its devices may send fresh noise or memoized responses; asked for as memoized, it has no intervals."""
    surveys = [Survey(SURVEY.schema, SURVEY.epsilon, name=name) for name in ("", "second")]
    store = memory_store(*surveys)
    for number, n in ((1, 1), (2, 20)):
        reports = a_report(surveys[number - 1]).to_bytes(surveys[number - 1]) * n
        store.write([Batch(number, 0, secrets.token_bytes(16 * n), reports)])
    answers = Answers(store, 5)
    second = answers.document(2, Asked())
    assert {row["status"] for row in second["rows"]} - {"no reports"} == {"ok"}
    assert "may be stale" in second["advice"][-1]
    memoized = answers.series(
        surveys[0].series, Asked(), memoized=True
    )  # the first round has too few reports
    assert {row["status"] for row in memoized["rows"]} - {"no reports"} == {
        "may be stale: the row budget of 1 is spent before round 2"
    }


@pytest.mark.parametrize(
    "query",
    ["confidence=2", "confidence=x", "confidence=nan", "level=0.9", "recalibrate=magic", "without=all"],
)
def test_bad_questions(query: str) -> None:
    store = memory_store(SURVEY)
    read = with_tokens(store)["read"]

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_stream(5), {"content-type": ARROW})
        answer = await service.call("GET", f"/v1/rounds/1/estimate?{query}", headers=read)
        assert answer.status == 400
        assert list(answer.json()) == ["error"]

    check(work, store, min_reports=5)


def test_the_rounds_of_a_series_together() -> None:
    store = memory_store(SURVEY, made_survey("second"))
    read = with_tokens(store)["read"]

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_stream(30), {"content-type": ARROW})
        path = f"/v1/series/{SURVEY.series}/estimate"
        await service.call(
            "POST", "/v1/rounds/2/reports", a_stream(40, made_survey("second")), {"content-type": ARROW}
        )
        fresh = (await service.call("GET", path + "?noise=fresh", headers=read)).json()
        assert (fresh["reports"], fresh["rounds"]) == (70, [1, 2])
        both = Tally(SURVEY)
        both.counts[:] = store.tally(1).counts + store.tally(2).counts
        both.n_reports = 70
        assert [row["estimate"] for row in fresh["rows"]] == both.estimate().value.tolist()
        memoized = (await service.call("GET", path, headers=read)).json()
        errors = [t.estimate().standard_error for t in (store.tally(1), store.tally(2))]
        np.testing.assert_allclose(
            [row["standard_error"] for row in memoized["rows"]], np.mean(errors, axis=0)
        )
        assert (await service.call("GET", "/v1/series/none/estimate", headers=read)).status == 404

    check(work, store, min_reports=5)


def test_status_export_and_quarantine() -> None:
    store = memory_store(SURVEY)
    tokens = with_tokens(store)
    admin, read = tokens["admin"], tokens["read"]

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_stream(30), {"content-type": ARROW} | tokens["send"])
        await service.call("POST", PATH, a_stream(10), {"content-type": ARROW})
        await service.call("POST", PATH, b"x", json_headers())
        status = (await service.call("GET", "/v1/rounds/1/status", headers=read)).json()
        assert (status["stored"], status["shown_at"], status["min_reports"]) == (40, 40, 5)
        assert [n for _, n in status["by_source"]] == [10, 30]
        assert status["plan"]["half_width"] > 0
        assert {"manipulation_bounds", "alarms", "quarantines", "rejected", "by_hour"} <= set(status)
        answer = await service.call("POST", "/v1/rounds/1/quarantine", b'{"source": 1}', admin)
        assert answer.status == 200
        path = "/v1/rounds/1/estimate?without=quarantine"
        assert (await service.call("GET", path, headers=read)).json()["reports"] == 10
        assert (await service.call("GET", "/v1/rounds/1/estimate", headers=read)).json()["reports"] == 40
        for bad in (
            b"{}",
            b"[]",
            b'{"hour": "x"}',
            b'{"hour": -1}',
            b"x",
            b'{"source": 1, "on": 7}',
            b'{"b": 1}',
        ):
            assert (await service.call("POST", "/v1/rounds/1/quarantine", bad, admin)).status == 400

    check(work, store, min_reports=5)


def test_an_alarm_is_part_of_the_status() -> None:
    """All reports are equal, which is not plausible for any population: the p-values are plain numbers in JSON."""
    store = memory_store(SURVEY)
    read = with_tokens(store)["read"]
    payload = a_report().to_bytes(SURVEY)
    store.write([Batch(1, 0, secrets.token_bytes(16 * 400), payload * 400)])

    async def work(service: Service) -> None:
        answer = await service.call("GET", "/v1/rounds/1/status", headers=read)
        assert answer.status == 200
        status = answer.json()
        assert status["alarms"]
        assert all(0 <= alarm["p_value"] < status["false_alarm_rate"] for alarm in status["alarms"])

    check(work, store, min_reports=5)


def test_deletion_by_id() -> None:
    id = secrets.token_hex(16)

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_report().to_json().encode(), json_headers(id))
        assert (await service.call("DELETE", PATH, json.dumps({"id": id}).encode())).status == 204
        assert (await service.call("DELETE", PATH, json.dumps({"id": id}).encode())).status == 404
        for bad in ("x", "zz" * 16, "00" * 17, "0" * 31 + " "):
            assert (await service.call("DELETE", PATH, json.dumps({"id": bad}).encode())).status == 400

    assert check(work).reports[1] == {}


# -- access ----------------------------------------------------------------------------------------------------------


def test_who_may_do_what() -> None:
    store = memory_store(SURVEY, open_uploads=False)
    tokens = with_tokens(store)
    needs = {
        ("POST", PATH): "send",
        ("GET", "/metrics"): "read",
        ("GET", "/v1/rounds/1/estimate"): "read",
        ("GET", "/v1/rounds/1/estimate.csv"): "read",
        ("GET", "/v1/rounds/1/tally"): "read",
        ("GET", "/v1/rounds/1/status"): "read",
        ("GET", f"/v1/series/{SURVEY.series}/estimate"): "read",
        ("GET", "/v1/rounds/1/reports.parquet"): "admin",
        ("POST", "/v1/rounds"): "admin",
        ("POST", "/v1/rounds/1/close"): "admin",
        ("POST", "/v1/rounds/1/quarantine"): "admin",
    }
    covers = {"send": {"send"}, "read": {"read"}, "admin": {"send", "read", "admin"}}

    async def work(service: Service) -> None:
        for (method, path), needed in needs.items():
            headers = {"content-type": LINES} if path == PATH else {}
            assert (await service.call(method, path, b"x", headers)).status == 401
            for wrong in (
                "Bearer wrong",
                "Basic a token with the scope admin only",
                "Bearer ",
                "x",
                "Bearer " + "x" * 600,
            ):
                answer = await service.call(method, path, b"x", headers | {"authorization": wrong})
                assert answer.status == 401
                assert answer.headers["www-authenticate"] == "Bearer"
            for scope, header in tokens.items():
                if path.endswith("close") and scope == "admin":
                    continue  # it would close the round
                status = (await service.call(method, path, b"x", headers | header)).status
                assert (status not in (401, 403)) == (needed in covers[scope]), (path, scope)

    check(work, store)


def test_a_token_has_a_rate() -> None:
    store = memory_store(SURVEY)
    upload = with_tokens(store)["send"] | {"content-type": ARROW}

    async def work(service: Service) -> None:
        assert (await service.call("POST", PATH, a_stream(60), upload)).status == 200
        answer = await service.call("POST", PATH, a_stream(30), upload)
        assert answer.status == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 31
        assert (await service.call("POST", PATH, a_stream(30), {"content-type": ARROW})).status == 200

    check(work, store, limits=Limits(rate=1.0))


def test_the_dashboards_link_works_once(tmp_path: Any) -> None:
    store = memory_store(SURVEY)

    async def work(service: Service) -> None:
        for wrong in (b"x", b"{}", b'{"key": 1}', b"[]"):
            assert (await service.call("POST", "/v1/session", wrong)).status == 400
        assert (await service.call("POST", "/v1/session", b'{"key": "wrong"}')).status == 401
        answer = await service.call("POST", "/v1/session", b'{"key": "the key"}')
        assert answer.status == 200
        token = answer.json()["token"]
        assert (await service.call("POST", "/v1/session", b'{"key": "the key"}')).status == 401
        headers = {"authorization": f"Bearer {token}"}
        assert (await service.call("GET", "/v1/rounds/1/status", headers=headers)).status == 200
        body, time, signature = token.split(".")
        later = f"{body}.{'B' + time[1:]}.{signature}"
        for changed in (token[:-4] + "xxxx", "x" + token, later, f"{body}.{time}", "...", "."):
            headers = {"authorization": f"Bearer {changed}"}
            assert (await service.call("GET", "/v1/rounds/1/status", headers=headers)).status == 401

    check(work, store, secret=b"s" * 32, link_key="the key", run_folder=str(tmp_path))


def test_a_session_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from itsdangerous import TimestampSigner

    from hdr4me.collector.access import SESSION_SECONDS, Access
    from hdr4me.collector.config import Settings
    from hdr4me.collector.errors import Refusal

    settings = Settings("x", secret=b"s" * 32, link_key="the key", run_folder=str(tmp_path))
    session = f"Bearer {Access(settings).open_session('the key')}".encode()
    another_worker, now = Access(settings), TimestampSigner.get_timestamp
    assert another_worker.require(session, "admin").scope == "admin"
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda self: now(self) + SESSION_SECONDS + 1)
    with pytest.raises(Refusal, match="unknown"):
        another_worker.require(session, "admin")


def test_a_collector_without_a_secret_accepts_no_session_of_an_empty_one() -> None:
    import hashlib

    from itsdangerous import TimestampSigner

    forged = TimestampSigner(b"", digest_method=hashlib.sha256).sign("x").decode()

    async def work(service: Service) -> None:
        headers = {"authorization": f"Bearer {forged}"}
        assert (await service.call("GET", "/v1/rounds/1/status", headers=headers)).status == 401

    check(work)


def test_cors_only_for_listed_origins() -> None:
    async def work(service: Service) -> None:
        asked = {"access-control-request-method": "POST"}
        for origin, listed in (("https://a.example", True), ("https://b.example", False), ("null", False)):
            for answer in (
                await service.call("OPTIONS", PATH, headers=asked | {"origin": origin}),
                await service.call("GET", "/v1/rounds", headers={"origin": origin}),
                await service.call("POST", PATH, b"", json_headers(origin=origin)),
            ):
                found = answer.headers.get("access-control-allow-origin")
                assert found == (origin if listed else None)
                assert "access-control-allow-credentials" not in answer.headers
                assert answer.headers["vary"] == "origin"

    check(work, allow_origins=("https://a.example",))


# -- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/answer",
        "/nothing",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/client/x",
        "/v1",
        "/v1/rounds/1",
        "/v1/rounds/1/reports/",
        "/static/",
        "/client/../app.py",
    ],
)
def test_no_path_leads_out(path: str) -> None:
    async def work(service: Service) -> None:
        answer = await service.call("GET", path)
        assert answer.status in (200, 404)
        assert b"import" not in answer.body or path in ("/", "/answer")
        assert answer.headers["x-content-type-options"] == "nosniff"
        if answer.headers["content-type"].startswith("text/html"):
            assert "default-src 'none'" in answer.headers["content-security-policy"]

    check(work)


def test_the_browser_client_is_served() -> None:
    async def work(service: Service) -> None:
        answer = await service.call("GET", "/client/hdr4me.js")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/javascript")
        assert answer.body == Path(__file__).parents[2].joinpath("clients/javascript/hdr4me.js").read_bytes()

    check(work)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE", "POST"])
def test_other_methods(method: str) -> None:
    async def work(service: Service) -> None:
        assert (await service.call(method, "/v1/rounds/1/status")).status in (401, 405)
        assert (await service.call(method, "/nothing")).status == 404

    check(work)


def test_metrics_come_from_the_store() -> None:
    store = memory_store(SURVEY)
    read = with_tokens(store)["read"]

    async def work(service: Service) -> None:
        await service.call("POST", PATH, a_stream(7), {"content-type": ARROW})
        text = (await service.call("GET", "/metrics", headers=read)).body.decode()
        assert 'hdr4me_reports_stored{round="1",state="open"} 7.0' in text
        assert "hdr4me_reports_waiting" in text

    check(work, store)


def test_no_secret_and_nothing_personal_is_in_the_log() -> None:
    import io

    from hdr4me.collector.errors import Log

    store = memory_store(SURVEY)
    store.fail = StoreUnavailable("the secret content of a report")
    file = io.StringIO()

    async def work(service: Service) -> None:
        service.collector.writer.log = Log(file)
        headers = json_headers() | {"user-agent": "an agent", "authorization": "Bearer the token"}
        await service.call("POST", PATH, a_report().to_json().encode(), json_headers())
        await service.call("POST", PATH, b"{}", headers)

    check(work, store)
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["write failed"]
    assert lines[0]["error"] == "StoreUnavailable"
    for secret in ("secret content", "127.0.0.1", "an agent", "the token"):
        assert secret not in file.getvalue()
