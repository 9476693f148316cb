"""The peer of the load benchmark: FastAPI and SQLite, one commit for each request, as it is usually written.

It runs in an environment of its own (`--peer`) and imports nothing of hdr4me. Single reports are JSON with an
Idempotency-Key, batches are lines of JSON; ids are unique by the table's primary key.
"""

from __future__ import annotations

import json
import sqlite3
import sys

from fastapi import FastAPI, Header, Request  # type: ignore[import-not-found, unused-ignore]
from pydantic import BaseModel  # type: ignore[import-not-found, unused-ignore]


class Report(BaseModel):  # type: ignore[misc, unused-ignore]
    """A report as JSON."""

    format: str
    version: int
    survey: str
    answers: list[list[int]]


app = FastAPI()
database = sqlite3.connect(sys.argv[1], check_same_thread=False, isolation_level=None)
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = full")
database.execute("create table if not exists reports (id blob primary key, report text) without rowid")


@app.post("/v1/rounds/1/reports")  # type: ignore[untyped-decorator, unused-ignore]
async def one(report: Report, idempotency_key: str = Header()) -> dict[str, int]:
    """Store one report."""
    database.execute("begin immediate")
    stored = database.execute(
        "insert or ignore into reports values (?, ?)",
        (bytes.fromhex(idempotency_key), json.dumps(report.answers)),
    ).rowcount
    database.execute("commit")
    return {"stored": stored, "duplicates": 1 - stored}


@app.post("/v1/rounds/1/lines")  # type: ignore[untyped-decorator, unused-ignore]
async def lines(request: Request) -> dict[str, int]:
    """Store a batch."""
    rows = []
    for line in (await request.body()).splitlines():
        document = json.loads(line)
        report = Report.model_validate(document["report"])
        rows.append((bytes.fromhex(document["id"]), json.dumps(report.answers)))
    database.execute("begin immediate")
    stored = database.executemany("insert or ignore into reports values (?, ?)", rows).rowcount
    database.execute("commit")
    return {"stored": stored, "duplicates": len(rows) - stored}


if __name__ == "__main__":
    import uvicorn  # type: ignore[import-not-found, unused-ignore]

    uvicorn.run(
        app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False, loop="uvloop"
    )
