"""The service over real stores, with a survey whose reports differ in size: the complete life of a round."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from collector_service import Service, serving

from hdr4me.collector.access import digest
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.engines import Local
from hdr4me.io.arrow import dumps
from hdr4me.io.report import Report, unpack
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps as tally_bytes

PATH = "/v1/rounds/1/reports"
TOKEN = "a token with the scope admin only"
ADMIN = {"authorization": f"Bearer {TOKEN}"}


def test_the_life_of_a_round(
    where: Any, opened: Any, mixed: Survey, some_reports: Any, tmp_path: Path
) -> None:
    """Three forms, repeated; deletion; the export counted by the library; closing; finalization."""
    store, now = opened(where), datetime.now(UTC)
    store.open_round(mixed, now=now - timedelta(days=20))
    store.add_token(digest(TOKEN), "admin")
    store.add_token(ANYONE, "send")
    assert not mixed.fixed_size
    texts = [Report(mixed.fingerprint, unpack(row.tobytes(), mixed)).to_json() for row in some_reports[:60]]
    ids = [secrets.token_hex(16) for _ in some_reports]

    async def work(service: Service) -> None:
        for _ in range(2):
            for text, id in zip(texts[:10], ids, strict=False):
                headers = {"content-type": "application/json", "idempotency-key": id}
                assert (await service.call("POST", PATH, text.encode(), headers)).status == 200
            lines = [{"id": id, "report": json.loads(text)} for id, text in zip(ids, texts, strict=False)]
            body = "\n".join(map(json.dumps, lines[10:])).encode()
            await service.call("POST", PATH, body, {"content-type": "application/x-ndjson"})
            raw = np.frombuffer(bytes.fromhex("".join(ids[60:])), np.uint8).reshape(-1, 16)
            body = dumps(raw, some_reports[60:], mixed)
            answer = await service.call(
                "POST", PATH, body, {"content-type": "application/vnd.apache.arrow.stream"}
            )
            assert answer.status == 200
        assert answer.json() == {"stored": 0, "duplicates": len(ids) - 60, "rejected": []}
        tally = (await service.call("GET", "/v1/rounds/1/tally", headers=ADMIN)).body
        assert tally == tally_bytes(Tally(mixed).add_block(some_reports))
        assert (await service.call("DELETE", PATH, json.dumps({"id": ids[0]}).encode())).status == 204
        exported = await service.call("GET", "/v1/rounds/1/reports.parquet", headers=ADMIN)
        (tmp_path / "round.parquet").write_bytes(exported.body)
        rest = Tally(mixed).add_block(some_reports[1:])
        assert tally_bytes(Local().tally(tmp_path / "round.parquet", mixed)) == tally_bytes(rest)
        assert tally_bytes(store.tally(1)) == tally_bytes(rest)
        store.close_round(1, now=now - timedelta(days=10))
        await service.collector._finalize()
        assert store.round(1).state == "finalized"
        assert (await service.call("DELETE", PATH, json.dumps({"id": ids[1]}).encode())).status == 410
        assert (await service.call("GET", "/v1/rounds/1/reports.parquet", headers=ADMIN)).status == 410
        assert (await service.call("GET", "/v1/rounds/1/tally", headers=ADMIN)).body == tally_bytes(rest)
        status = (await service.call("GET", "/v1/rounds/1/status", headers=ADMIN)).json()
        assert (status["state"], status["shown_at"]) == ("finalized", len(some_reports) - 1)
        text = (await service.call("GET", "/metrics", headers=ADMIN)).body.decode()
        assert f'hdr4me_reports_stored{{round="1",state="finalized"}} {len(some_reports) - 1}.0' in text

    serving(store, work)


def test_a_survey_of_any_channel_is_accepted(
    opened: Any, tmp_path: Path, mixed: Survey, some_reports: Any
) -> None:
    """A second round of another survey beside the first; reports of one are foreign to the other."""
    from hdr4me.survey import Categorical, Schema

    other = Survey(Schema([Categorical("city", [f"c{i}" for i in range(300)])]), epsilon=3.0)
    store = opened(tmp_path / "c.db")
    store.add_token(ANYONE, "send")
    for survey in (mixed, other):
        store.open_round(survey, now=datetime.now(UTC))
    row = Report(mixed.fingerprint, unpack(some_reports[0].tobytes(), mixed)).to_json().encode()

    async def work(service: Service) -> None:
        headers = {"content-type": "application/json", "idempotency-key": secrets.token_hex(16)}
        assert (await service.call("POST", PATH, row, headers)).json()["stored"] == 1
        refused = await service.call("POST", "/v1/rounds/2/reports", row, headers)
        assert refused.status == 422
        assert "another survey" in refused.json()["error"]
        from hdr4me.client import Client

        text = Client(other).report({"city": "c7"}).to_json().encode()
        assert (await service.call("POST", "/v1/rounds/2/reports", text, headers)).json()["stored"] == 1

    serving(store, work)
