"""The answer page in Chromium, with a real collector."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import hdr4me as hd
from hdr4me.collector import open_store
from hdr4me.collector.access import digest
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey
from hdr4me.survey.times import Time

pytest.importorskip("hdr4me.collector.serve", exc_type=ImportError)
pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")

TOKEN = "r" * 43


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The collector's address."""
    folder = tmp_path_factory.mktemp("collector")
    schema = Schema(
        [
            Numeric("age", 18, 98),
            Numeric("sleep_hours", 0, 16, optional=True, unit="h"),
            Categorical("smoker", ["never", "former", "current"], default="never"),
            Selection("languages", ["German", "English", "French", "Turkish"], at_most=2),
            *(Numeric(f"steps_{hour:02d}", 0, 4000, default=0, curve="steps") for hour in range(3)),
        ]
    )
    Survey(schema, epsilon=2.0, sampled=2, name="household").save(folder / "survey.json")
    with closing(open_store(folder / "c.db")) as store:
        store.add_token(digest(TOKEN), "read")
    command = [sys.executable, "-m", "hdr4me", "serve", "survey.json", "--database", "c.db", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--open-uploads", "--link", "--min-reports", "1"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"},
    )  # fmt: skip
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            yield found[0]
            break
    else:
        pytest.fail("".join(lines))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.fixture
def page(browser: Any, collector: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.problems = []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.goto(f"{collector}/answer")
    begin(page)
    yield page
    context.close()


def begin(page: Any) -> None:
    """Fill in the one number for which the survey declares no default."""
    page.get_by_text("To send a report, first answer: age.").wait_for()
    page.get_by_label("age").fill("31")
    page.locator("#preview").get_by_text("hdr4me-report").wait_for()


def stored(collector: str) -> int:
    request = urllib.request.Request(f"{collector}/v1/rounds", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(json.load(answer)["rounds"][0]["stored"])


def becomes(collector: str, n: int) -> None:
    """Wait until the collector's count, which may lag behind, is n."""
    end = time.monotonic() + 30
    while (found := stored(collector)) != n:
        assert time.monotonic() < end, f"{found} reports are stored, expected {n}"
        time.sleep(0.1)


def test_the_report_that_is_shown_arrives_and_can_be_deleted(page: Any, collector: str) -> None:
    before = stored(collector)
    page.get_by_label("age").fill("31")
    page.get_by_label("smoker").select_option("former")
    page.get_by_label("English").check()
    page.get_by_role("button", name="Send this report").click()
    page.get_by_text("Delivered.").wait_for()
    page.get_by_text("The privacy budget is spent").wait_for()
    becomes(collector, before + 1)
    assert page.get_by_role("button", name="Send this report").is_disabled()
    page.get_by_role("button", name="Delete at the collector").click()
    page.get_by_text("Deleted.").wait_for()
    becomes(collector, before)
    assert page.problems == []


def test_the_preview_does_not_change_when_the_page_is_loaded_again(page: Any) -> None:
    shown = page.locator("#preview").inner_text()
    for _ in range(3):
        page.reload()
        begin(page)
        assert page.locator("#preview").inner_text() == shown
    assert len(json.loads(shown)["answers"]) == 2
    assert page.locator(".mark:visible").count() >= 1


def test_a_blank_form_is_not_sent(page: Any, collector: str) -> None:
    assert "0 to 16 h; may be left blank" in page.inner_text("main")
    before = stored(collector)
    send = page.get_by_role("button", name="Send this report")
    assert send.is_enabled()
    page.get_by_label("age").fill("")
    page.get_by_text("To send a report, first answer: age.").wait_for()
    assert send.is_disabled()
    assert page.locator("#preview").is_hidden()
    assert page.evaluate("document.getElementById('send').click()") is None
    assert stored(collector) == before


def test_a_refusal_is_shown_and_stored(page: Any, collector: str) -> None:
    before = stored(collector)
    page.route("**/reports", lambda route: route.fulfill(status=409, json={"error": "the round is closed"}))
    page.get_by_role("button", name="Send this report").click()
    page.get_by_text("The collector refused the report (status 409).").wait_for()
    page.get_by_text("the collector refused it (409)").wait_for()
    page.reload()
    page.get_by_text("the collector refused it (409)").wait_for()
    assert stored(collector) == before


def test_opting_out_sends_nothing(page: Any, collector: str) -> None:
    before = stored(collector)
    page.get_by_role("button", name="Opt out").click()
    page.get_by_text("You have opted out. Nothing is sent.").wait_for()
    assert page.get_by_role("button", name="Send this report").is_disabled()
    page.reload()
    page.get_by_text("You have opted out. Nothing is sent.").wait_for()
    page.get_by_role("button", name="Opt in again").click()
    page.get_by_text("This browser may send 1 more report").wait_for()
    assert stored(collector) == before


def test_by_keyboard_with_names_for_every_control_and_no_sideways_scrolling(
    page: Any, collector: str
) -> None:
    before = stored(collector)
    unnamed = """[...document.querySelectorAll("input, select, button")].filter((control) =>
        !control.labels?.length && !control.textContent.trim() && !control.ariaHidden).length"""
    assert page.evaluate(unnamed) == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("age").focus()
    page.keyboard.type("44")
    for _ in range(60):
        if page.evaluate("document.activeElement.id") == "send":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("Delivered.").wait_for()
    becomes(collector, before + 1)


OPEN = """async () => {
    const { Client, browserStore } = await import("/client/hdr4me.js");
    const [{ round, survey }] = (await (await fetch("/v1/rounds")).json()).rounds;
    const document = await (await fetch(`/v1/surveys/${survey}`)).text();
    globalThis.client = await Client.open(document, { round, reports: 10, limit: 99, store: browserStore("many") });
}"""
ATTEMPTS = """() => {
    const tries = Array.from({ length: 40 }, (_, i) => client.answer({ age: i, languages: [] }));
    globalThis.taken = Promise.allSettled(tries).then((all) => all.filter((one) => one.status == "fulfilled").length);
}"""


def test_two_tabs_one_ledger_and_offline_then_online_at_the_real_collector(
    browser: Any, collector: str
) -> None:
    """80 attempts offline on a budget of 10: exactly 10 reports, each delivered once when the network returns."""
    before = stored(collector)
    context = browser.new_context()
    tabs = [context.new_page() for _ in range(2)]
    for tab in tabs:
        tab.goto(f"{collector}/answer")
        begin(tab)
        tab.evaluate(OPEN)
    context.set_offline(True)
    for tab in tabs:
        tab.evaluate(ATTEMPTS)
    assert sum(tab.evaluate("taken") for tab in tabs) == 10
    assert stored(collector) == before
    context.set_offline(False)
    end = time.monotonic() + 60
    while tabs[0].evaluate("client.status()")["waiting"]:
        assert time.monotonic() < end
        tabs[0].wait_for_timeout(100)
    becomes(collector, before + 10)
    context.close()


def test_a_survey_that_leaks_is_not_answered(browser: Any, collector: str) -> None:
    context = browser.new_context()
    page = context.new_page()

    def tampered(route: Any) -> None:
        document = route.fetch().json()
        document["channels"][0]["epsilon"] /= 2
        route.fulfill(json=document)

    page.route("**/v1/surveys/*", tampered)
    page.goto(f"{collector}/answer")
    page.get_by_role("alert").get_by_text("The privacy proof of this survey failed").wait_for()
    assert page.locator("#main").is_hidden()
    context.close()


def test_a_survey_with_dates_is_not_answered(browser: Any, collector: str) -> None:
    asked = Survey(Schema([Time("born", "1900-01-01", "2030-01-01")]), 1.0, mechanism="duchi")
    context = browser.new_context()
    page = context.new_page()
    page.route("**/v1/surveys/*", lambda route: route.fulfill(json=json.loads(asked.to_json())))
    page.goto(f"{collector}/answer")
    page.get_by_role("alert").get_by_text("does not support all questions").wait_for()
    assert page.locator("#main").is_hidden()
    context.close()


FORM = """async (given) => {
    const { fieldsOf, isSupported } = await import("/static/answer-fields.js");
    const { category } = await import("/static/answer-words.js");
    const { fresh, readSurvey } = await import("/client/hdr4me.js");
    const place = document.createElement("div");
    const fields = fieldsOf(given, place);
    for (const { fill } of fields) fill(0.5);
    const record = Object.fromEntries(fields.map(({ dimension, value }) => [dimension.name, value()]));
    const source = (n) => crypto.getRandomValues(new Uint8Array(n));
    return {
        supported: isSupported(given),
        record,
        notes: [...place.querySelectorAll(".range")].map((note) => note.textContent),
        categories: [...Array(8).keys()].map((k) => category(given.dimensions[0], k)),
        answers: await fresh(await readSurvey(given), record, source),
    };
}"""


def test_derived_inputs_have_a_control_for_each_column(page: Any) -> None:
    who = hd.Joint("who", [hd.Categorical("sex", ["f", "m"]), hd.Bucket("age", [0, 18.5, 65, 120, 130])])
    zip_ = hd.Categorical("zip", ["10", "12"], default="12")
    moments = hd.Outer("moments", [Numeric("x", 0, 4), Numeric("y", 0, 2)], [0, 0], [1, 1], 3)
    schema = Schema([who, hd.Hash("word", 8, default="?"), hd.Prefix("area", [zip_], 2), moments])
    survey = Survey(schema, epsilon=4.0, sampled=4)
    found = page.evaluate(FORM, json.loads(survey.to_json()))
    assert found["supported"]
    assert found["record"] == {"sex": "m", "age": 66, "word": "example", "zip": "10", "x": 2, "y": 1}
    assert found["notes"] == [
        "asked together with age",
        "0 to 130; asked together with sex",
        *["", ""],
        "0 to 4; asked together with y",
        "0 to 2; asked together with x",
    ]
    assert tuple(found["categories"]) == who.categories
    assert [q for q, *_ in found["answers"]] == [0, 1, 2, 3]
    assert page.problems == []
