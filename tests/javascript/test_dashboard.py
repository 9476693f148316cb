"""The dashboard in Chromium, against the real collector: what is shown, to whom, and how it behaves."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hdr4me.client import Client
from hdr4me.collector import open_store
from hdr4me.collector.access import digest
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey, Vector
from hdr4me.tally.file import loads

pytest.importorskip("hdr4me.collector.serve", exc_type=ImportError)
pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")

ADMIN, READ = "a" * 43, "r" * 43
LEAST = 20
LINES = "application/x-ndjson"
TOWNS = [f"town {k:02d}" for k in range(30)]
BATCH = Survey(Schema([Numeric("income", 0, 100, default=50)]), epsilon=4.0, name="batch")
RENEW = "document.dispatchEvent(new Event('visibilitychange'))"


def made_survey(name: str, extra: str = "") -> Survey:
    dimensions = [
        Numeric("age", 18, 98),
        Categorical("<b>smoker</b>", ["never", "former", "current"]),
        Categorical("town", TOWNS),
        *(Numeric(f"steps_{hour:02d}", 0, 4000, curve="steps") for hour in range(4)),
    ]
    return Survey(
        Schema([*dimensions, *([Numeric(extra, 0, 1)] if extra else [])]), epsilon=4.0, sampled=7, name=name
    )


def record_of(survey: Survey) -> dict[str, Any]:
    """A value for every dimension."""
    found: dict[str, Any] = {}
    for one in survey.schema:
        if isinstance(one, Vector):
            found[one.name] = [0.1] * 4
        else:
            found[one.name] = one.categories[0] if isinstance(one, Categorical | Selection) else 0.5
    return found


@dataclass
class Running:
    """A collector that runs: its address and the dashboard's link."""

    url: str
    link: str

    def call(
        self, path: str, body: bytes | None = None, kind: str = "application/json", token: str = ADMIN
    ) -> bytes:
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {})
        request = urllib.request.Request(self.url + path, data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def open(self, survey: Survey, n: int = 0) -> int:
        """A new round of the survey with n reports."""
        number = int(json.loads(self.call("/v1/rounds", survey.to_json().encode()))["round"])
        self.send(number, survey, n)
        return number

    def send(self, number: int, survey: Survey, n: int, answers: Any = None, *, token: str = ADMIN) -> None:
        client = Client(survey)
        record = record_of(survey)
        lines = []
        for _ in range(n):
            report = json.loads(client.report(record).to_json())
            if answers is not None:
                report["answers"] = answers
            lines.append(json.dumps({"id": secrets.token_hex(16), "report": report}))
        if lines:
            body = "\n".join(lines).encode()
            answer = json.loads(self.call(f"/v1/rounds/{number}/reports", body, LINES, token))
            assert answer["stored"] == n, answer


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("collector")
    made_survey("first round").save(folder / "survey.json")
    Local().perturb(
        pa.table({"income": [20.0, None] * 50}), BATCH, folder / "a.parquet", on_quality=lambda quality: None
    )
    with closing(open_store(folder / "c.db")) as store:
        store.add_token(digest(READ), "read")
        store.add_token(digest(ADMIN), "admin")
    command = [sys.executable, "-m", "hdr4me", "serve", "survey.json", "--database", "c.db", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--open-uploads", "--link", "--min-reports", str(LEAST),
         "--tolerance", "0.01", "--data-quality", "_a.parquet.quality.json"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "300"},
    )  # fmt: skip
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/#key=\S+", line):
            yield Running(found[1], found[0])
            break
    else:
        pytest.fail("".join(said))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.fixture
def opened(browser: Any, collector: Running) -> Iterator[Any]:
    """opened(round, token, …): the dashboard in a new browser; in the end, no message was on any console."""
    contexts: list[Any] = []
    problems: list[str] = []

    def open_one(number: int | None = None, token: str = ADMIN, address: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}} | options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.problems = problems
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        if token:
            page.add_init_script(f"sessionStorage.setItem('hdr4me-session', '{token}')")
        page.goto(address or f"{collector.url}/?round={number}")
        if token:
            page.locator("#answers-body > *").first.wait_for()
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


def until(page: Any, expression: str) -> None:
    """Renew what is shown until the expression holds; `wait_for_function` would need a policy that allows eval."""
    end = time.monotonic() + 30
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.evaluate(RENEW)
        page.wait_for_timeout(200)


def no_sideways(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="module")
def shown(collector: Running) -> int:
    """A round with answers that no test changes."""
    return collector.open(made_survey("shown"), 60)


def test_an_answered_page_arrives_and_is_shown_after_min_reports(opened: Any, collector: Running) -> None:
    """The link of the command line opens a session, once; one report is missing; a person gives it."""
    collector.send(1, made_survey("first round"), LEAST - 1)
    page = opened(address=collector.link, token="")
    page.get_by_text("19 reports are stored: 1 more is needed.").first.wait_for()
    assert page.locator("#answers figure").count() == 0
    assert page.get_by_role("heading", name="first round").count() == 1
    assert "key" not in page.url
    person = page.context.new_page()
    person.goto(f"{collector.url}/answer?round=1")
    person.get_by_role("button", name="Fill in an example").click()
    person.get_by_label("age").fill("31")
    person.get_by_role("button", name="Send this report").click()
    person.get_by_text("Delivered.").wait_for()
    page.evaluate(RENEW)
    page.locator("#answers figure").first.wait_for()
    page.get_by_text("20 reports, with").wait_for()
    page.reload()  # the session is kept by the tab
    page.locator("#answers figure").first.wait_for()


def test_the_contents(opened: Any, shown: int) -> None:
    page = opened(shown)
    page.locator("#answers figure").first.wait_for()
    titles = page.locator("#answers figcaption strong").all_inner_texts()
    assert titles == ["steps", "Means", "<b>smoker</b>", "town"]
    assert "the 12 largest of 30" in page.locator("#answers").inner_text()
    assert page.locator("#state").get_by_text("60 reports").count() >= 1
    assert "The planned tolerance of ±0.010" in page.locator("#progress").inner_text()
    assert page.locator("#progress meter").count() == 1
    assert "at most 0.1" in page.locator("#alarms").inner_text()
    assert "The largest change of each estimate" in page.locator("#poisoning").inner_text()
    assert "steps (each point)" in page.locator("#poisoning").inner_text()
    assert "verified by this browser" in page.locator("#survey").inner_text()
    assert page.locator("#arrivals svg[role=img]").count() == 1
    page.get_by_text("Explanation in plain words").click()
    page.get_by_role("heading", name="What leaves your device").wait_for()
    assert page.locator("#explanation b").count() == 0  # names are text, never HTML
    page.locator("#answers-numbers summary").click()
    assert page.locator("#numbers tbody tr").count() == 1 + 3 + 30 + 4
    page.get_by_label("Show re-calibrated estimates").check()
    page.locator(".keys").get_by_text("re-calibrated").wait_for()
    assert page.locator("#numbers thead th").count() == 11  # with notes on small samples
    assert page.locator("svg:not([aria-label])").count() == 0


def test_in_the_dark_and_in_the_light(opened: Any, shown: int) -> None:
    lights = {}
    colors = """[document.body, document.querySelector("#answers svg text"), document.querySelector(".card")].map(
        (element, k) => getComputedStyle(element)[k == 1 ? "fill" : "backgroundColor"].match(/\\d+/g).map(Number))"""
    for scheme in ("light", "dark"):
        page = opened(shown, color_scheme=scheme)
        page.locator("#answers figure").first.wait_for()
        lights[scheme] = [sum(color[:3]) / 3 for color in page.evaluate(colors)]
    paper, ink, card = lights["light"]
    assert paper > 200 > 100 > ink
    assert card > 200
    paper, ink, card = lights["dark"]
    assert paper < 60 < 180 < ink
    assert card < 60


def test_by_keyboard_and_a_renewal_keeps_the_focus(opened: Any, collector: Running) -> None:
    survey = made_survey("keyboard")
    number = collector.open(survey, 40)
    page = opened(number)
    page.locator("#answers figure").first.wait_for()
    unnamed = """[...document.querySelectorAll("input, select, button")].filter((control) =>
        !control.labels?.length && !control.textContent.trim() && !control.ariaLabel).length"""
    assert page.evaluate(unnamed) == 0
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert page.evaluate("""document.activeElement === document.body
            || getComputedStyle(document.activeElement).outlineStyle != "none" """)
    order = ["skip", "choice", "recalibrated", "close", "leave-out-what", "export-csv", "export-parquet"]
    assert [name for name in reached if name in order][: len(order)] == order
    page.locator("#recalibrated").focus()
    page.keyboard.press("Space")
    page.locator(".keys").wait_for()
    page.get_by_role("button", name="Quarantine").press("Enter")
    back = page.get_by_role("button", name="Include again")
    back.wait_for()
    back.focus()
    page.locator("#answers-numbers summary").press("Enter")
    back.focus()
    collector.send(number, survey, 40)
    collector.call(f"/v1/rounds/{number}/quarantine", b'{"source": 9}')  # so that its list is made again
    page.evaluate(RENEW)
    page.locator("#quarantine").get_by_text("token 9").wait_for()
    page.locator("#state").get_by_text("80 reports").first.wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Include again"
    assert page.locator("#answers-numbers").evaluate("(details) => details.open")


def test_on_a_phone_nothing_scrolls_sideways(opened: Any, shown: int) -> None:
    page = opened(shown, viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True)
    page.locator("#answers figure").first.wait_for()
    page.get_by_label("Show re-calibrated estimates").check()
    page.locator(".keys").wait_for()
    for summary in page.locator("details > summary:visible").all():
        summary.click()
    page.get_by_role("heading", name="What leaves your device").wait_for()
    assert no_sideways(page)
    page.set_viewport_size({"width": 640, "height": 320})
    page.wait_for_timeout(400)
    assert no_sideways(page)


def test_the_policy_holds_and_nothing_comes_from_elsewhere(
    browser: Any, collector: Running, shown: int
) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(f"sessionStorage.setItem('hdr4me-session', '{READ}')")
    answer = page.goto(f"{collector.url}/?round={shown}")
    page.locator("#answers figure").first.wait_for()
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "unsafe" not in policy
    assert all(url.startswith((collector.url, "data:,")) for url in asked)
    tried = """() => new Promise((resolve) => setTimeout(() => {
        const script = document.createElement("script");
        script.textContent = "globalThis.ran = true";
        document.body.append(script);
        let made = "refused";
        try { made = new Function("return 'ran'")(); } catch {}
        resolve([globalThis.ran ?? "refused", made]);
    }))"""  # later, since what a test evaluates itself may break the policy
    assert page.evaluate(tried) == ["refused", "refused"]
    context.close()


def test_an_administrator_quarantines_and_closes(opened: Any, collector: Running) -> None:
    number = collector.open(made_survey("closing"), 50)
    page = opened(number)
    page.get_by_role("button", name="Quarantine").click()
    page.get_by_role("button", name="Include again").wait_for()
    page.get_by_text("The reports are quarantined.").wait_for()
    assert page.get_by_label("Exclude quarantined reports").is_visible()
    assert "Gray: quarantined hours" in page.locator("#arrivals").inner_text()
    page.get_by_role("button", name="Include again").click()
    page.get_by_text("No reports are quarantined.").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Close this round").click()
    page.locator("#state").get_by_text("The round accepts no more reports.").wait_for()
    assert page.get_by_role("button", name="Close this round").is_hidden()


def test_rejected_uploads_are_shown_by_reason(opened: Any, collector: Running) -> None:
    number = collector.open(made_survey("rejecting"), 30)
    collector.call(f"/v1/rounds/{number}/reports", b"no report\nnor this", LINES)
    page = opened(number, READ)
    until(page, "document.querySelector('#reasons tbody')?.textContent == 'not a report2'")


def test_answers_with_and_without_a_quarantined_token(opened: Any, collector: Running) -> None:
    survey = made_survey("two sources")
    number = collector.open(survey, 30)
    collector.send(number, survey, 25, token="")
    page = opened(number)
    page.get_by_text("55 reports, with").wait_for()
    page.locator("#leave-out-what").select_option(label="no token (25 reports)")
    page.get_by_role("button", name="Quarantine").click()
    page.get_by_label("Exclude quarantined reports").check()
    page.get_by_text("Quarantined reports excluded: 30 reports").wait_for()
    page.get_by_label("Exclude quarantined reports").uncheck()
    page.get_by_text("55 reports, with").wait_for()


def test_every_kind_of_dimension_is_drawn(opened: Any, collector: Running) -> None:
    """An optional number, a selection and a vector are drawn; a proof that the browser cannot verify is marked."""
    dimensions = [Numeric("income", 0, 9, optional=True), Selection("pets", ["cat", "dog", "eel"], at_most=2)]
    survey = Survey(Schema([*dimensions, Vector("taste", 4, 1.0)]), epsilon=6.0, sampled=3, name="kinds")
    page = opened(collector.open(survey, 40))
    page.locator("#answers figure").first.wait_for()
    titles = page.locator("#answers figcaption strong").all_inner_texts()
    assert titles == ["taste", "Means", "income", "pets"]
    drawn = page.locator("#answers figure").nth(1).text_content()
    assert "pets: number chosen" in drawn
    assert "not verified: " in page.locator("#survey").inner_text()


def test_notes_on_data_quality_are_beside_the_rows(opened: Any, collector: Running) -> None:
    page = opened(collector.open(BATCH, 40))
    note = "50 of 100 values (50 %) are missing and count as 50"
    assert note in page.locator("#answers-body").inner_text()
    page.locator("#answers-table summary, #answers-numbers summary").first.click()
    assert note in page.locator("#numbers tbody tr").first.inner_text()


def test_it_looks_again_by_itself_and_reports_when_the_collector_is_gone(
    opened: Any, collector: Running, shown: int
) -> None:
    page = opened(address="about:blank", token="")
    page.add_init_script(f"sessionStorage.setItem('hdr4me-session', '{READ}')")
    page.clock.install()
    page.goto(f"{collector.url}/?round={shown}")
    page.locator("#answers figure").first.wait_for()
    with page.expect_response(f"**/v1/rounds/{shown}/estimate"):
        page.clock.fast_forward(30_001)
    page.wait_for_timeout(200)
    page.context.set_offline(True)
    page.clock.fast_forward(30_001)
    page.get_by_text("The collector does not respond.").wait_for()
    assert page.locator("#answers figure").count() > 0
    page.context.set_offline(False)
    page.clock.fast_forward(30_001)
    page.locator("#problem").wait_for(state="hidden")
    assert all("ERR_INTERNET_DISCONNECTED" in text for text in page.problems)
    page.problems.clear()


def test_a_reader_has_no_controls_of_an_administrator(opened: Any, shown: int) -> None:
    page = opened(shown, READ)
    page.locator("#answers figure").first.wait_for()
    for name in ("Close this round", "Quarantine", "Parquet"):
        assert page.get_by_role("button", name=name).is_hidden()


def test_a_wrong_token_is_reported_and_another_is_accepted(
    opened: Any, collector: Running, shown: int
) -> None:
    page = opened(address=f"{collector.url}/#key=wrong", token="")
    page.get_by_text("This link is wrong or was used before").wait_for()
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Open the dashboard").click()
    page.get_by_text("The token is unknown, expired or revoked.").wait_for()
    page.get_by_label("Token").fill(READ)
    page.keyboard.press("Enter")
    page.locator("#answers-body > *").first.wait_for()
    page.locator("#problem").wait_for(state="hidden")
    assert all("401" in text for text in page.problems)
    page.problems.clear()


def test_export(opened: Any, collector: Running, shown: int) -> None:
    page = opened(shown)
    page.locator("#answers figure").first.wait_for()
    found = {}
    for name in ("CSV", "Tally", "Parquet"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name, exact=True).click()
        found[waiting.value.suggested_filename] = Path(waiting.value.path()).read_bytes()
    base = f"/v1/rounds/{shown}"
    assert found[f"round-{shown}.csv"] == collector.call(f"{base}/estimate.csv")
    assert loads(found[f"round-{shown}.tally"], made_survey("shown")).n_reports == 60
    assert found[f"round-{shown}.parquet"][:4] == b"PAR1"


def test_rounds_of_one_series_together(opened: Any, collector: Running) -> None:
    first, second = (made_survey(name, extra="more") for name in ("spring", "autumn"))
    numbers = collector.open(first, 30), collector.open(second, 40)
    page = opened(numbers[0])
    page.locator("#choice").select_option(label=f"Rounds {numbers[0]}, {numbers[1]} combined")
    page.get_by_text(f"Rounds {numbers[0]}, {numbers[1]} combined: 70 reports").wait_for()
    assert page.locator("#rounds tbody tr").count() == 2
    assert page.locator("#alarms").is_hidden()
    page.get_by_label("Reports have fresh noise in each round").check()
    page.get_by_label("Show re-calibrated estimates").check()
    page.locator(".keys").wait_for()


def test_poisoned_reports_raise_an_alarm_with_a_sentence(opened: Any, collector: Running) -> None:
    """All of 400 reports are equal: the cells' counts are not plausible for any population."""
    survey = made_survey("poisoned")
    answers = json.loads(Client(survey).report(record_of(survey)).to_json())["answers"]
    number = collector.open(survey)
    collector.send(number, survey, 400, answers)
    page = opened(number)
    page.locator("#alarms.alarmed").wait_for()
    shown = page.locator("#alarms").inner_text()
    assert "unlikely to produce these counts" in shown
    assert "at most 0.1" in shown
    assert page.locator("#alarms li").count() >= 1
