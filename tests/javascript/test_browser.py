"""The browser client in Chromium: one ledger for all tabs, an offline queue, each report delivered once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hdr4me.io.report import decode
from hdr4me.survey import Categorical, Numeric, Schema, Survey

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
MODULE = Path(__file__).parents[2] / "clients" / "javascript" / "hdr4me.js"
SURVEY = Survey(
    Schema([Numeric("age", 0, 120), Categorical("mood", ["low", "fair", "good"])]), 1.0, mechanism="duchi"
)
WORKER = b"""
import { Client } from "/client/hdr4me.js";
addEventListener("message", async ({ data, source }) => {
  const survey = await (await fetch("/survey.json")).text();
  const client = await Client.open(survey, { round: 1 });
  source.postMessage(await client.answer(data));
});
"""
PAGE = b"""<!doctype html><meta charset="utf-8"><title>test</title><script type="module" src="/page.js"></script>"""
SCRIPT = b"""
import { Client } from "/client/hdr4me.js";
const survey = await (await fetch("/survey.json")).text();
const options = Object.fromEntries(new URLSearchParams(location.search));
const reports = Number(options.reports ?? 1);
globalThis.client = await Client.open(survey, { round: 1, reports, memoized: "memoized" in options });
globalThis.attempt = async (times) => {
  const tries = Array.from({ length: times }, (_, i) => client.answer({ age: i, mood: "good" }));
  return (await Promise.allSettled(tries)).filter((one) => one.status == "fulfilled").length;
};
globalThis.ready = true;
"""


class Collector(ThreadingHTTPServer):
    """A collector that keeps each report once by its key, and a server of the test page."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.reports: dict[str, str] = {}
        self.requests = 0
        self.failures = 0
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Collector

    def do_GET(self) -> None:
        files = {
            "/": ("text/html", PAGE),
            "/page.js": ("text/javascript", SCRIPT),
            "/worker.js": ("text/javascript", WORKER),
            "/client/hdr4me.js": ("text/javascript", MODULE.read_bytes()),
            "/survey.json": ("application/json", SURVEY.to_json().encode()),
        }
        kind, body = files.get(self.path.partition("?")[0], ("text/plain", b""))
        self._answer(200 if body else 404, body, kind)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.requests += 1
            if self.server.failures:
                self.server.failures -= 1
                self._answer(503, b"{}", "application/json")
                return
            assert self.headers["Content-Type"] == "application/json"
            assert self.headers["Cookie"] is None
            self.server.reports.setdefault(self.headers["Idempotency-Key"], body.decode())
        self._answer(200, b'{"stored":1,"duplicates":0,"rejected":[]}', "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header(
            "Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'"
        )
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def browser(playwright: Any) -> Iterator[Any]:
    browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    context.set_default_timeout(30_000)
    yield context
    context.close()


def until(page: Any, expression: str) -> None:
    """Wait until the expression holds; `wait_for_function` would need a policy that allows eval."""
    end = time.monotonic() + 60
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def tab(context: Any, collector: Collector, query: str = "") -> Any:
    page = context.new_page()
    page.goto(f"{collector.url}/{query}")
    until(page, "globalThis.ready")
    return page


def all_valid(collector: Collector) -> bool:
    return all(decode(text, SURVEY) for text in collector.reports.values())


def test_two_tabs_share_one_ledger(context: Any, collector: Collector) -> None:
    """80 attempts on a budget of 10: exactly 10 reports."""
    tabs = [tab(context, collector, "?reports=10") for _ in range(2)]
    for page in tabs:
        page.evaluate("globalThis.tries = attempt(40); 0")
    found = [page.evaluate("tries") for page in tabs]
    assert sum(found) == 10
    assert tabs[1].evaluate("client.flush().then(() => client.status())")["waiting"] == 0
    assert len(collector.reports) == 10
    assert all_valid(collector)
    assert tab(context, collector, "?reports=10").evaluate("attempt(5)") == 0  # and after a reload none


def test_offline_then_online_delivers_each_once(context: Any, collector: Collector) -> None:
    page = tab(context, collector, "?reports=5")
    context.set_offline(True)
    assert page.evaluate("attempt(5)") == 5
    assert page.evaluate("client.status()")["waiting"] == 5
    assert collector.requests == 0
    context.set_offline(False)
    until(page, "client.status().then(({ waiting, sent }) => waiting == 0 && sent.length == 5)")
    assert len(collector.reports) == collector.requests == 5
    assert all_valid(collector)


def test_a_closed_tab_leaves_its_queue_to_the_next(context: Any, collector: Collector) -> None:
    page = tab(context, collector, "?reports=3")
    context.set_offline(True)
    assert page.evaluate("attempt(3)") == 3
    page.close()
    context.set_offline(False)
    assert tab(context, collector).evaluate("client.flush()")["sent"] == 3
    assert len(collector.reports) == 3
    assert all_valid(collector)


def test_a_busy_collector_gets_the_same_report_again(context: Any, collector: Collector) -> None:
    collector.failures = 1
    page = tab(context, collector)
    sent = page.evaluate("client.answer({ age: 31, mood: 'low' })")
    until(page, "client.status().then(({ waiting }) => waiting == 0)")
    assert collector.requests >= 2
    assert {key: json.loads(text) for key, text in collector.reports.items()} == {sent["id"]: sent["report"]}


def test_the_secret_survives_a_reload_and_cannot_be_read(context: Any, collector: Collector) -> None:
    reports = {
        json.dumps(
            tab(context, collector, "?memoized").evaluate("client.answer({ age: 31, mood: 'low' })")["report"]
        )
        for _ in range(3)
    }
    assert len(reports) == 1
    page = tab(context, collector, "?memoized")
    secret = """client.store.update(async (state) => [state.spent.length, state.secret.extractable,
        await crypto.subtle.exportKey("raw", state.secret).then(() => "read", () => "refused")])"""
    assert page.evaluate(secret) == [1, False, "refused"]


def test_a_service_worker_answers_with_the_same_ledger(context: Any, collector: Collector) -> None:
    page = tab(context, collector)
    sent = page.evaluate("""async () => {
        await navigator.serviceWorker.register("/worker.js", { type: "module" });
        const { active } = await navigator.serviceWorker.ready;
        const reply = new Promise((resolve) => (navigator.serviceWorker.onmessage = ({ data }) => resolve(data)));
        active.postMessage({ age: 31, mood: "low" });
        return reply;
    }""")
    assert list(collector.reports) == [sent["id"]]
    assert all_valid(collector)
    assert page.evaluate("attempt(3)") == 0  # the page and the worker share one budget


def test_a_ledger_of_a_newer_version_is_refused(context: Any, collector: Collector) -> None:
    page = tab(context, collector)
    newer = """new Promise((resolve) => {
        const opening = indexedDB.open("hdr4me", 2);
        opening.onsuccess = () => resolve(opening.result.close());
    })"""
    page.evaluate(newer)
    assert page.evaluate("attempt(3)") == 0
    assert collector.requests == 0


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_a_killed_browser_keeps_its_ledger_and_its_queue(
    tmp_path: Path, playwright: Any, collector: Collector
) -> None:
    collector.failures = 10**6
    with chromium(tmp_path, playwright) as context:
        assert tab(context, collector, "?reports=3").evaluate("attempt(3)") == 3
    collector.failures = 0  # nothing was delivered before the browser was killed
    assert collector.reports == {}
    with chromium(tmp_path, playwright) as context:
        page = tab(context, collector, "?reports=3")
        assert page.evaluate("attempt(5)") == 0
        until(page, "client.flush().then(({ waiting }) => waiting == 0)")
    assert len(collector.reports) == 3
    assert all_valid(collector)


@contextmanager
def chromium(folder: Path, playwright: Any) -> Iterator[Any]:
    """A browser with its data in `folder`, killed with signal 9 at the end."""
    port = folder / "DevToolsActivePort"
    port.unlink(missing_ok=True)
    options = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", *ARGUMENTS]
    process = subprocess.Popen(
        [str(CHROMIUM), *options, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not (port.exists() and port.read_text().strip()):
            assert time.monotonic() < end
            time.sleep(0.05)
        address = f"http://127.0.0.1:{port.read_text().split()[0]}"
        yield playwright.chromium.connect_over_cdp(address).contexts[0]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
