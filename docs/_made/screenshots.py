"""The pictures of the dashboard and the answer page: `python docs/_made/screenshots.py` (needs Chromium).

The survey is the simulated panel of `hdr4me demo`, with 60,000 users and a planned tolerance of 4 % of each range.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from playwright.sync_api import Browser, sync_playwright

import hdr4me as hd
from hdr4me.demo import panel, panel_schema
from hdr4me.survey import Tolerance

FIGURES = Path(__file__).parents[1] / "figures"
COMMAND = [sys.executable, "-m", "hdr4me"]
SESSION = "sessionStorage.getItem('hdr4me-session')"


def picture(page: Any, name: str, top: float, height: float) -> None:
    """The part of a page from `top` on, in pixels."""
    width = page.viewport_size["width"]
    clip = {"x": 0, "y": top, "width": width, "height": height}
    page.screenshot(path=FIGURES / f"{name}.png", full_page=True, clip=clip)


def dashboard(browser: Browser, link: str) -> None:
    """The page in light and dark colors and on a phone; the link opens one session, which all of them use."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(link)
    page.locator("#answers-body > *").first.wait_for()
    page.wait_for_timeout(2000)
    picture(page, "dashboard-light", 0, 1560)
    token = page.evaluate(SESSION)
    for name, first, width, height, options in (
        ("dashboard-dark", "Reports over time", 1000, 1250, {"color_scheme": "dark"}),
        ("dashboard-phone", "Estimates", 360, 760, {"device_scale_factor": 2}),
    ):
        other = browser.new_page(viewport={"width": width, "height": 800}, **options)
        other.add_init_script(f"sessionStorage.setItem('hdr4me-session', '{token}')")
        other.goto(link.split("/#")[0])
        other.locator("#answers-body > *").first.wait_for()
        other.wait_for_timeout(2000)
        heading = other.get_by_role("heading", name=first, exact=True)
        picture(other, name, heading.bounding_box()["y"] - 32, height)


def answer_page(browser: Browser, address: str) -> None:
    """The page with an example filled in, on a screen and on a phone."""
    for name, width, height in (("answer-page", 1100, 980), ("answer-page-phone", 390, 1500)):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(f"{address}/answer")
        page.get_by_role("button", name="Fill in an example").click()
        page.wait_for_timeout(2000)
        picture(page, name, 0, height)


def main() -> None:
    """Collect, serve, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        schema = panel_schema()
        planned = Tolerance.of(0.08, schema)  # on the scale [-1, 1]
        survey = hd.Survey(schema, epsilon=2.0, name="fitness panel", tolerance=planned)
        survey.save(f"{folder}/survey.json")
        pq.write_table(panel(60_000, seed=1), f"{folder}/records.parquet")
        serving = subprocess.Popen(
            [
                *COMMAND,
                "serve",
                "survey.json",
                "--open-uploads",
                "--link",
                "--min-reports",
                "1000",
                "--port",
                "0",
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "300"},
        )
        assert serving.stdout is not None
        link = next(
            found[1] for line in serving.stdout if (found := re.search(r"(http://\S+/#key=\S+)", line))
        )
        address = link.split("/#")[0]
        send = ["send", "survey.json", "records.parquet", "--url", address, "--spool", "outbox"]
        subprocess.run([*COMMAND, *send], cwd=folder, check=True)
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        dashboard(browser, link)
        answer_page(browser, address)
        browser.close()
        serving.terminate()
        serving.wait()


if __name__ == "__main__":
    main()
