"""The files of the pages: a table of names made once, so that no name of a request ever becomes a path."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from starlette.responses import Response

from hdr4me.collector.headers import PAGE_POLICY
from hdr4me.collector.refusals import Refusal

__all__ = ["page_response"]

PAGES = Path(__file__).with_name("pages")
CLIENT = "hdr4me.js"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_PAGES = {"/": "dashboard.html", "/answer": "answer.html"}


def page_response(path: str) -> Response:
    """The file that a path stands for."""
    found = _table().get(path)
    if found is None:
        raise Refusal(404, "there is nothing here")
    file, kind = found
    return Response(
        file.read_bytes(),
        media_type=None,
        headers={
            "content-type": kind,
            "content-security-policy": PAGE_POLICY.decode(),
            "cache-control": "no-cache",
        },
    )


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[Path, str]]:
    """Which file answers which path, and its type."""
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
