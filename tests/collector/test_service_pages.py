"""What the dashboard requests besides numbers: its files, the survey in plain words, and the scope of a token."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from collector_memory import MemoryStore, memory_store
from collector_service import Service, serving

from hdr4me.collector.access import digest
from hdr4me.collector.app import PAGES
from hdr4me.survey import Numeric, Schema, Survey

SURVEY = Survey(Schema([Numeric("<i>age</i>", 0, 120)]), epsilon=1.0, name="Ages")


def check(work: Any, store: MemoryStore | None = None) -> None:
    serving(store or memory_store(SURVEY), work)


def test_the_survey_in_plain_words_is_open_to_everybody() -> None:
    path = f"/v1/surveys/{SURVEY.fingerprint}/explanation"

    async def work(service: Service) -> None:
        answer = await service.call("GET", path)
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        found = answer.json()
        assert found["title"] == "Ages"
        headings = [block["heading"] for block in found["blocks"] if "heading" in block]
        assert "What leaves your device" in headings
        assert {"columns", "rows"} in [set(block) for block in found["blocks"]]
        assert "<i>age</i>" in answer.body.decode()  # text: the page puts nothing in as HTML
        officer = (await service.call("GET", f"{path}?audience=dpo")).json()
        assert len(officer["blocks"]) > len(found["blocks"])
        assert (await service.call("GET", f"{path}?audience=x")).status == 400
        assert (await service.call("GET", f"/v1/surveys/{'0' * 64}/explanation")).status == 404

    check(work)


def test_a_token_holder_learns_its_scope() -> None:
    store = memory_store(SURVEY)
    store.add_token(digest("a token with the scope read only"), "read")

    async def work(service: Service) -> None:
        assert "scope" not in (await service.call("GET", "/v1/rounds")).json()
        headers = {"authorization": "Bearer a token with the scope read only"}
        assert (await service.call("GET", "/v1/rounds", headers=headers)).json()["scope"] == "read"

    check(work, store)


def test_every_file_that_the_dashboard_names_is_served() -> None:
    page = (PAGES / "dashboard.html").read_text("utf-8")
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    for script in PAGES.glob("*.js"):
        named += re.findall(r'from "(/[^"]+)"', script.read_text("utf-8"))
        for name in re.findall(r'from "\./([^"]+)"', script.read_text("utf-8")):
            named.append(f"/static/{name}")

    async def work(service: Service) -> None:
        answer = await service.call("GET", "/")
        assert answer.status == 200
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        for path in named:
            assert (await service.call("GET", path)).status == 200, path

    check(work)
    assert len(named) > 10
    assert not re.search(r"<script>|<style|\son\w+=|\sstyle=", page)


def test_files_of_others_are_unchanged_and_carry_their_licences() -> None:
    folder = PAGES / "vendor"
    said = (folder / "README.txt").read_text("utf-8")
    files = sorted(folder.glob("*.js"))
    assert [Path(file).name for file in files] == ["d3-7.9.0.min.js", "plot-0.6.17.umd.min.js"]
    for file in files:
        assert file.name in said
        assert hashlib.sha256(file.read_bytes()).hexdigest() in said
    for name in ("d3", "plot"):
        assert "Permission to use, copy, modify" in (folder / f"LICENSE-{name}.txt").read_text("utf-8")
