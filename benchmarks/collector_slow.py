"""Six hundred connections that never finish a request: none is open after fifteen seconds, and others are served.

    python benchmarks/collector_slow.py --output benchmarks/results/collector_slow.json

A third says nothing, a third sends its headers byte by byte, a third its body; with the limits that are the default.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from collector_crash_service import Serving, the_survey

HEAD = b"POST /v1/rounds/1/reports HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"


def campaign(url: str, n: int, seconds: float) -> dict[str, Any]:
    """Open n slow connections and feed them byte by byte; how many are open in the end."""
    host, _, port = url.removeprefix("http://").partition(":")
    choose = selectors.DefaultSelector()
    opened: dict[socket.socket, int] = {}
    for i in range(n):
        sock = socket.create_connection((host, int(port)), 10)
        sock.setblocking(False)
        if i % 3 == 2:
            sock.send(HEAD)
        opened[sock] = i
        choose.register(sock, selectors.EVENT_READ)
    began, served, slowest, at = time.monotonic(), 0, 0.0, 0
    while (now := time.monotonic()) - began < seconds and opened:
        for sock, i in list(opened.items()):
            try:
                if i % 3 == 1:
                    sock.send(HEAD[at % 40 : at % 40 + 1])
                elif i % 3 == 2:
                    sock.send(b"x")
            except OSError:
                pass
        for key, _ in choose.select(0):
            ended: Any = key.fileobj
            try:
                if ended.recv(4096):
                    continue
            except OSError:
                pass
            choose.unregister(ended)
            ended.close()
            del opened[ended]
        at += 1
        asked = time.monotonic()
        served += httpx.get(url + "/healthz", timeout=5).status_code == 200
        slowest = max(slowest, time.monotonic() - asked)
        time.sleep(max(0.0, 0.25 - (time.monotonic() - now)))
    took = time.monotonic() - began
    left = len(opened)
    for sock in opened:
        sock.close()
    return {
        "connections": n,
        "open_in_the_end": left,
        "seconds": round(took, 1),
        "others_served": served,
        "slowest_other_ms": round(1e3 * slowest, 1),
    }


def main() -> None:
    """Run it against a collector of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        the_survey().save(Path(folder, "survey.json"))
        serving = Serving(Path(folder, "survey.json"), str(Path(folder, "c.db")), 1)
        serving.start()
        try:
            found = campaign(serving.url, given.connections, given.seconds)
        finally:
            serving.kill()
    text = json.dumps(found, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
