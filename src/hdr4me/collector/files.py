"""The pages: their files, and the explanation of a survey as plain text for them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from hdr4me.collector.errors import Refusal
from hdr4me.explanation import explain
from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.survey import Survey

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of the pages: nothing from other origins, no inline script or style."""

PAGES = Path(__file__).with_name("pages")
CLIENT = "hdr4me.js"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_PAGES = {"/": "dashboard.html", "/answer": "answer.html"}


def page_response(path: str) -> Response:
    """The file of a path; a table of names is made once, so that no name of a request ever becomes a path."""
    found = _table().get(path)
    if found is None:
        raise Refusal(404, "there is nothing here")
    file, kind = found
    headers = {"content-type": kind, "content-security-policy": PAGE_POLICY, "cache-control": "no-cache"}
    return Response(file.read_bytes(), media_type=None, headers=headers)


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[Path, str]]:
    """The file and the type of each path."""
    found: dict[str, tuple[Path, str]] = {}
    for file in sorted(PAGES.rglob("*")) if PAGES.is_dir() else []:
        kind = _KINDS.get(file.suffix.lower())
        if kind is not None and file.is_file():
            found[f"/static/{file.relative_to(PAGES).as_posix()}"] = (file, kind)
    for path, name in _PAGES.items():
        if f"/static/{name}" in found:
            found[path] = found[f"/static/{name}"]
    client = _client()
    if client is not None:
        found[f"/client/{CLIENT}"] = (client, _KINDS[".js"])
    return found


def _client() -> Path | None:
    """The browser client: packed with the pages, or in the checkout."""
    checkout = Path(__file__).parents[3] / "clients" / "javascript" / CLIENT
    for file in (PAGES / "client" / CLIENT, checkout):
        if file.is_file():
            return file
    return None


@lru_cache(maxsize=16)
def explained(survey: Survey, audience: str = "user") -> dict[str, Any]:
    """The explanation of a survey for an audience of `hdr4me.explain`: a title, a lead and blocks of plain text."""
    page = explain(survey, audience)
    return {"title": page.title, "lead": page.lead, "blocks": [_plain(block) for block in page.blocks]}


def _plain(block: Block) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"heading": block.text, "level": block.level}
    if isinstance(block, Text):
        return {"text": block.text}
    if isinstance(block, Table):
        return {"columns": list(block.columns), "rows": [[_cell(item) for item in row] for row in block.rows]}
    return {"text": block.caption}


def _cell(item: object) -> str:
    return "–" if item is None else f"{item:.6g}" if isinstance(item, float) else str(item)
