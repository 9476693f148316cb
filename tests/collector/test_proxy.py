"""The shipped proxy files with the real programs: reports over TLS, and no address, time or id on the disk.

The programs of Debian 12 are found in the path, or in the folder HDR4ME_PROXIES (`apt-get download nginx caddy`, then
`dpkg -x` of each).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from collector_memory import memory_store
from collector_service import live

from hdr4me.client import Client
from hdr4me.survey import Survey

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
FOUND = os.pathsep.join(
    [*(f"{os.environ.get('HDR4ME_PROXIES', '')}/usr/{b}" for b in ("bin", "sbin")), os.environ["PATH"]]
)


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def nginx(folder: Path, upstream: int, tls: int, plain: int) -> tuple[list[str], str]:
    """The command and the site of nginx; only ports, paths and the name of the host differ from the shipped file."""
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}").replace("collector.example", "localhost")
    text = (
        text.replace("443 ssl", f"{tls} ssl")
        .replace(":80;", f":{plain};")
        .replace("listen 80;", f"listen {plain};")
    )
    text = re.sub(r"/etc/letsencrypt/live/localhost/", f"{folder}/", text)
    (folder / "site.conf").write_text(text)
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/logs/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(f"""
        pid {folder}/pid; daemon off; error_log {folder}/logs/error.log info; events {{}}
        http {{ access_log {folder}/logs/access.log; {temporary} include {folder}/site.conf; }}""")
    return [
        "nginx",
        "-p",
        str(folder),
        "-e",
        f"{folder}/logs/start.log",
        "-c",
        f"{folder}/nginx.conf",
    ], "localhost"


def caddy(folder: Path, upstream: int, tls: int, plain: int) -> tuple[list[str], str]:
    text = (DEPLOY / "Caddyfile").read_text()
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    text = text.replace(
        "collector.example {",
        f"https://localhost:{tls} {{\n\ttls {folder}/fullchain.pem {folder}/privkey.pem",
    )
    text = text.replace("\tlog {", f"\tadmin off\n\thttp_port {plain}\n\thttps_port {tls}\n\tlog {{", 1)
    (folder / "Caddyfile").write_text(text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile"], "localhost"


@contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    program = shutil.which(command[0], path=FOUND)
    assert program is not None
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "logs")}
    with (folder / "logs" / "output").open("wb") as output:
        process = subprocess.Popen([program, *command[1:]], stdout=output, stderr=output, env=environment)
        try:
            for _ in range(100):
                if process.poll() is not None:
                    pytest.fail((folder / "logs" / "output").read_text())
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_reports_arrive_over_tls_and_nothing_about_them_is_logged(
    proxy: Any, tmp_path: Path, small_survey: Survey
) -> None:
    if shutil.which(proxy.__name__, path=FOUND) is None or shutil.which("openssl") is None:
        pytest.skip(f"needs {proxy.__name__} and openssl")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o777)
    tmp_path.chmod(0o755)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", "privkey.pem", "-out", "fullchain.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    tls, plain = free_port(), free_port()
    store, ids = memory_store(small_survey), []
    with live(store) as (url, _):
        command, host = proxy(tmp_path, int(url.rpartition(":")[2]), tls, plain)
        with running(command, tmp_path, tls):
            trust = ssl.create_default_context(cafile=str(tmp_path / "fullchain.pem"))
            with httpx.Client(base_url=f"https://{host}:{tls}", verify=trust, timeout=30) as client:
                for _ in range(150):  # more than the burst of the limit
                    ids.append(secrets.token_hex(16))
                    headers = {"content-type": "application/json", "idempotency-key": ids[-1]}
                    body = Client(small_survey).report({"age": 31, "pet": "cat"}).to_json()
                    client.post("/v1/rounds/1/reports", content=body, headers=headers)
                stored = len(store.reports[1])
                assert stored >= 100
                first = next(iter(store.reports[1])).hex()
                time.sleep(0.3)
                answer = client.request("DELETE", "/v1/rounds/1/reports", json={"id": first})
                assert answer.status_code == 204
                assert client.post("/v1/rounds/9/reports", content=b"x").status_code in (404, 503)
            if proxy is nginx:
                httpx.get(f"http://{host}:{plain}/v1/rounds/1/reports/{ids[1]}")
    logged = b"".join(file.read_bytes() for file in (tmp_path / "logs").rglob("*") if file.is_file())
    assert not [id for id in ids if id.encode() in logged]
    for word in (b"/v1/rounds", b"remote_ip", b"client: ", b"127.0.0.1 - "):
        assert word not in logged, logged[-2000:]
