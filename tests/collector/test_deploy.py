"""The shipped files with the real programs: reports over TLS, and no address, time or id on the disk.

The proxies of Debian 12 are found in the path, or in the folder HDR4ME_PROXIES (`apt-get download nginx caddy`, then
`dpkg -x` of each). The unit is started by a systemd that is booted in namespaces of its own, with a journal
on the disk; this needs root.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from collector_memory import memory_store
from collector_service import live

from hdr4me.client import Client
from hdr4me.collector import open_store
from hdr4me.survey import Survey

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
FOUND = os.pathsep.join(
    [*(f"{os.environ.get('HDR4ME_PROXIES', '')}/usr/{b}" for b in ("bin", "sbin")), os.environ["PATH"]]
)

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


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


def certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for localhost in a folder that the proxies may read, and a context that trusts it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", "privkey.pem", "-out", "fullchain.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "logs").mkdir()
    (folder / "logs").chmod(0o777)
    folder.chmod(0o755)
    return ssl.create_default_context(cafile=str(folder / "fullchain.pem"))


def upload(client: httpx.Client, survey: Survey) -> str:
    """Send a report, and return its id."""
    id = secrets.token_hex(16)
    headers = {"content-type": "application/json", "idempotency-key": id}
    body = Client(survey).report({"age": 31, "pet": "cat"}).to_json()
    client.post("/v1/rounds/1/reports", content=body, headers=headers)
    return id


def misbehave(tls: int, plain: int, trust: ssl.SSLContext, id: str) -> None:
    """Requests that a proxy refuses itself, or that never end: they are what its log of errors is for."""
    path = f"/v1/rounds/1/reports/{id}".encode()
    head = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n"
    wrong = [b"\x16\x03\x01\x02\x00garbage", b"GET " + path + b" HTTP/1.0\r\n\r\n", b"\0" * 100]
    inside = [
        head + b"X: " + b"x" * 70_000 + b"\r\n\r\n",
        head + b"Content-Length: 100\r\n\r\nhalf",
        head + b"Content-Length: 90000000\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"BAD " + path + b" HTTP/1.1\r\n\r\n",
    ]
    for port, secure, messages in ((tls, False, wrong), (plain, False, wrong), (tls, True, inside)):
        for message in messages:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as plain_socket:
                talk = (
                    trust.wrap_socket(plain_socket, server_hostname="localhost") if secure else plain_socket
                )
                with talk:
                    talk.sendall(message)
                    talk.settimeout(0.3)
                    talk.recv(100)


def assert_nothing_is_logged(folder: Path, ids: list[str], own: str = "") -> None:
    """Neither ids nor paths nor addresses; `own` is the address of the collector, which it may log."""
    logged = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    logged = logged.replace(own.encode(), b"") if own else logged
    assert not [id for id in ids if id.encode() in logged or bytes.fromhex(id) in logged]
    for word in (b"/v1/rounds", b"remote", b"client", b"127.0.0.1"):
        assert word not in logged, logged[-2000:]


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_reports_arrive_over_tls_and_nothing_about_them_is_logged(
    proxy: Any, tmp_path: Path, small_survey: Survey
) -> None:
    if shutil.which(proxy.__name__, path=FOUND) is None or shutil.which("openssl") is None:
        pytest.skip(f"needs {proxy.__name__} and openssl")
    trust = certificate(tmp_path)
    tls, plain = free_port(), free_port()
    store = memory_store(small_survey)
    with live(store) as (url, _):
        command, host = proxy(tmp_path, int(url.rpartition(":")[2]), tls, plain)
        with running(command, tmp_path, tls):
            with httpx.Client(base_url=f"https://{host}:{tls}", verify=trust, timeout=30) as client:
                ids = [upload(client, small_survey) for _ in range(150)]  # more than the burst of the limit
                stored = len(store.reports[1])
                assert stored >= 100
                first = next(iter(store.reports[1])).hex()
                time.sleep(0.3)
                answer = client.request("DELETE", "/v1/rounds/1/reports", json={"id": first})
                assert answer.status_code == 204
                assert client.post("/v1/rounds/9/reports", content=b"x").status_code in (404, 503)
            misbehave(tls, plain, trust, ids[0])
            if proxy is nginx:
                httpx.get(f"http://{host}:{plain}/v1/rounds/1/reports/{ids[1]}")
    assert_nothing_is_logged(tmp_path / "logs", ids)


def test_open_requests_of_one_address_do_not_fill_nginx(tmp_path: Path, small_survey: Survey) -> None:
    """Of forty uploads that do not end, those beyond the limit are refused; another address is served."""
    if shutil.which("nginx", path=FOUND) is None or shutil.which("openssl") is None:
        pytest.skip("needs nginx and openssl")
    trust = certificate(tmp_path)
    tls, plain = free_port(), free_port()
    head = b"POST /v1/rounds/1/reports HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"
    with live(memory_store(small_survey)) as (url, _):
        command, _ = nginx(tmp_path, int(url.rpartition(":")[2]), tls, plain)
        with running(command, tmp_path, tls), ExitStack() as stack:
            held = []
            for _ in range(40):
                sock = socket.create_connection(("127.0.0.1", tls), 10)
                held.append(stack.enter_context(trust.wrap_socket(sock, server_hostname="localhost")))
                held[-1].sendall(head)
            refused = 0
            for talk in held:
                talk.settimeout(0.1)
                with suppress(TimeoutError):
                    refused += talk.recv(100).startswith(b"HTTP/1.1 503")
            assert refused == 8
            other = httpx.HTTPTransport(verify=trust, local_address="127.0.0.2")
            with httpx.Client(base_url=f"https://localhost:{tls}", transport=other) as client:
                assert client.get("/healthz").status_code == 200
    assert_nothing_is_logged(tmp_path / "logs", [])


BOOT = """
set -eu
work=$1 prefix=$2 package=$3 version=$4
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /sys/fs/cgroup
for kind in systemd memory pids devices; do
    mkdir /sys/fs/cgroup/$kind
    mount -t cgroup -o $([ $kind = systemd ] && echo none,name=systemd || echo $kind) cgroup /sys/fs/cgroup/$kind
done
for folder in /run /opt $work/tmpfs; do mount -t tmpfs tmpfs $folder; done
mkdir $work/tmpfs/etc $work/tmpfs/etc-work $work/tmpfs/lib $work/tmpfs/lib-work
mount -t overlay overlay -o lowerdir=/etc,upperdir=$work/tmpfs/etc,workdir=$work/tmpfs/etc-work /etc
mount --bind $work/var /var/lib
mount --bind $work/logs /var/log
rm -rf /etc/systemd/system
mkdir -p /etc/hdr4me /etc/systemd/system /var/log/journal /opt/hdr4me/bin /opt/hdr4me/lib
cp $work/survey.json $work/collector.toml /etc/hdr4me
echo "hdr4me:x:990:990::/var/lib/hdr4me:/usr/sbin/nologin" >> /etc/passwd
echo "hdr4me:x:990:" >> /etc/group
mount -t overlay overlay -o lowerdir=$prefix/lib,upperdir=$work/tmpfs/lib,workdir=$work/tmpfs/lib-work /opt/hdr4me/lib
rm -rf /opt/hdr4me/lib/python$version/site-packages/hdr4me
cp -r $package /opt/hdr4me/lib/python$version/site-packages/hdr4me
ln -s /usr/bin/python$version /opt/hdr4me/bin/python
echo "home = /usr/bin" > /opt/hdr4me/pyvenv.cfg
printf '[Journal]\nReadKMsg=no\nStorage=persistent\n' > /etc/systemd/journald.conf
sed '1s,.*,#!/opt/hdr4me/bin/python,' $prefix/bin/hdr4me > /opt/hdr4me/bin/hdr4me
chmod 755 /opt/hdr4me/bin/hdr4me
exec env -i container=test SYSTEMD_UNIT_PATH=$work/units PATH=/usr/sbin:/usr/bin \
    /lib/systemd/systemd --system --unit=boot.target --log-target=null --show-status=0
"""
"""Builds the machine of the unit in a mount namespace: the user, the folders and the options that its comments name."""


def own_groups() -> list[Path]:
    """A new group of processes for the test in each hierarchy that systemd uses."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, own = line.split(":", 2)
        kind = {"name=systemd": "systemd"}.get(kinds, kinds)
        if kind in ("systemd", "memory", "pids", "devices"):
            found.append(Path(f"/sys/fs/cgroup/{kind}{own}", "hdr4me-unit"))
    return found


@contextmanager
def booted(folder: Path) -> Iterator[list[str]]:
    """A systemd that runs the shipped unit in namespaces; gives the prefix of a command inside."""
    for name in ("var", "units", "tmpfs"):
        (folder / name).mkdir()
    shutil.copy(DEPLOY / "hdr4me-collector.service", folder / "units")
    for unit in ("systemd-journald.service", "systemd-journald.socket", "sysinit.target", "basic.target",
                 "shutdown.target", "network-online.target"):  # fmt: skip
        shutil.copy(f"/lib/systemd/system/{unit}", folder / "units")
    wants = "[Unit]\nWants=systemd-journald.service hdr4me-collector.service\n"
    (folder / "units" / "boot.target").write_text(wants)
    (folder / "boot.sh").write_text(BOOT)
    groups = own_groups()
    for group in groups:
        group.mkdir()
    join = "".join(f"echo $$ > {group}/cgroup.procs; " for group in groups)
    package = Path(__file__).parents[2] / "src" / "hdr4me"
    given = f"{folder} {sys.prefix} {package} {VERSION}"
    command = f"{join}exec unshare -m -p -u -i -C --fork --kill-child sh {folder}/boot.sh {given}"
    with (folder / "boot.log").open("wb") as output:
        process = subprocess.Popen(["sh", "-c", command], stdout=output, stderr=output)
    try:
        manager = ""
        for _ in range(100):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            manager = children.read_text().strip() if children.exists() else ""
            if manager and "systemd" in Path(f"/proc/{manager}/comm").read_text():
                break
            time.sleep(0.1)
        else:
            pytest.fail((folder / "boot.log").read_text())
        yield ["nsenter", "--target", manager, "--mount", "--pid", "--"]
    finally:
        process.kill()  # unshare kills the manager, and the kernel everything in its namespace
        process.wait(20)
        time.sleep(0.5)
        for group in groups:
            for inner in sorted(group.rglob("*/"), reverse=True):
                inner.rmdir()
            group.rmdir()


def bootable() -> bool:
    """Whether a systemd can be booted: by root, with version 1 of cgroups, and this version of Python in Debian."""
    programs = ("/lib/systemd/systemd", f"/usr/bin/python{VERSION}")
    return os.geteuid() == 0 and len(own_groups()) == 4 and all(Path(file).exists() for file in programs)


def test_the_unit_is_valid(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd")
    unit = tmp_path / "hdr4me-collector.service"
    unit.write_text((DEPLOY / unit.name).read_text().replace("/opt/hdr4me/bin/hdr4me", sys.executable))
    found = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert unit.name not in found.stderr


def test_the_unit_takes_reports_over_tls_and_restarts(tmp_path: Path, small_survey: Survey) -> None:
    if not bootable() or shutil.which("nginx", path=FOUND) is None:
        pytest.skip("needs root, systemd, Debian's Python and nginx")
    trust = certificate(tmp_path)
    port, tls, plain = free_port(), free_port(), free_port()
    small_survey.save(tmp_path / "survey.json")
    options = (DEPLOY / "collector.toml").read_text()
    (tmp_path / "collector.toml").write_text(f"{options}\nopen-uploads = true\nport = {port}\n")
    command, host = nginx(tmp_path, port, tls, plain)
    ids = []

    def ready() -> None:
        for _ in range(300):
            try:
                if httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200:
                    return
            except httpx.HTTPError:
                time.sleep(0.3)
        pytest.fail("the unit does not answer")

    with booted(tmp_path) as inside, running(command, tmp_path, tls):

        def systemctl(*words: str) -> str:
            found = subprocess.run([*inside, "systemctl", *words], capture_output=True, text=True, check=True)
            return found.stdout

        ready()
        shown = systemctl("show", "hdr4me-collector", "-p", "MemoryMax,User")
        assert "User=hdr4me" in shown
        assert f"MemoryMax={2 << 30}" in shown
        with httpx.Client(base_url=f"https://{host}:{tls}", verify=trust, timeout=30) as client:
            ids += [upload(client, small_survey) for _ in range(50)]
            systemctl("kill", "--signal=KILL", "hdr4me-collector")
            time.sleep(1)
            ready()
            ids += [upload(client, small_survey) for _ in range(10)]
        systemctl("stop", "hdr4me-collector")
        subprocess.run([*inside, "journalctl", "--flush"], check=True)
        assert "ActiveState=inactive" in systemctl("show", "hdr4me-collector", "-p", "ActiveState")
    assert (tmp_path / "var" / "hdr4me").stat().st_mode & 0o777 == 0o700
    with closing(open_store(str(tmp_path / "var" / "hdr4me" / "collector.db"))) as store:
        assert store.round(1).stored == len(ids)
    assert list((tmp_path / "logs" / "journal").rglob("*.journal"))
    assert_nothing_is_logged(tmp_path / "logs", ids, f"http://127.0.0.1:{port}")
