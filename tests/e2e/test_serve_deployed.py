"""Tests of the files in docs/serve: balancers before two real servers, and the systemd unit."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests import ROOT
from tests.e2e.serving import build_body, serving, wait_until

pytest.importorskip("uvicorn")
FILES = ROOT / "docs/serve"
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
NEVER = {"text": "late", "delay_s": 600}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def with_ports(text: str, listening: int, *servers: int) -> str:
    for former, port in (("8080", listening), *zip(("7777", "7778"), servers, strict=True)):
        text = re.sub(rf"(?<![\d.]){former}\b", str(port), text)
    return text


def command(name: str, text: str, folder: Path) -> list[str]:
    """Return the command that starts a balancer in the foreground."""
    program = shutil.which(name, path=PATH)
    assert program
    file = folder / {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[name]
    if name == "nginx":
        kinds = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        around = f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off; {kinds}\n"
        file.write_text(f"{around}{text}}}\n")
        return [program, "-p", str(folder), "-c", str(file)]
    file.write_text(text)
    return {"haproxy": [program, "-db", "-f", str(file)], "caddy": [program, "run", "--config", str(file)]}[name]


@contextmanager
def balanced(name: str, folder: Path, *ports: int) -> Iterator[str]:
    listening = free_port()
    file = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}[name]
    text = with_ports((FILES / file).read_text(), listening, *ports)
    if name == "caddy":
        text = "{\n\tadmin off\n}\n" + text
    env = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    log = folder / "log"
    with log.open("w") as report:
        process = subprocess.Popen(command(name, text, folder), cwd=folder, env=env, stdout=report, stderr=report)
    url = f"http://127.0.0.1:{listening}"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return httpx2.get(f"{url}/healthz", trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False

    try:
        wait_until(answers)
        yield url
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("name", ["nginx", "haproxy", "caddy"])
def test_streams_pass_a_balancer_as_they_come_and_both_servers_are_used(place, tmp_path, name):
    if shutil.which(name, path=PATH) is None:
        pytest.skip(f"there is no {name} here")
    folder = tmp_path / name
    folder.mkdir()
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(place, "--model", place.script(NEVER))) for _ in range(2)]
        url = stack.enter_context(balanced(name, folder, *(server.port for server in servers)))
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=60, trust_env=False))
        found = client.get("/agents.json").json()["openbb"]["endpoints"]["query"]
        assert found == f"{url}/v1/query"  # the balancer's address, as the client reached it
        assert client.get("/metrics").status_code == 404
        open_bytes = []  # an iterator that is let go closes its response
        with ExitStack() as streams:
            for count in (1, 2):
                response = streams.enter_context(client.stream("POST", found, json=build_body("x")))
                open_bytes.append(response.iter_raw())
                assert (response.status_code, next(open_bytes[-1])) == (200, b"e")
                wait_until(
                    lambda count=count: sum(server.sum_metric("goose_like_running") for server in servers) == count
                )
            assert [server.sum_metric("goose_like_running") for server in servers] == [1, 1]
        wait_until(lambda: [server.sum_metric("goose_like_running") for server in servers] == [0, 0])


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd here")
    text = (FILES / "goose-like.service").read_text()
    assert "/opt/goose-like/bin/goose-like" in text
    unit = tmp_path / "goose-like.service"
    unit.write_text(text.replace("/opt/goose-like/bin/goose-like", sys.executable))
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, check=False)
    about_it = [line for line in (done.stdout + done.stderr).splitlines() if "goose-like" in line]
    assert (about_it, done.returncode) == ([], 0)


def test_the_unit_and_the_container_start_a_command_that_there_is(place):
    (line,) = re.findall(r"^ExecStart=\S+/goose-like (.*)$", (FILES / "goose-like.service").read_text(), re.MULTILINE)
    begun, more = re.findall(r'^(?:ENTRYPOINT|CMD) \["(.*)"\]$', (FILES / "Containerfile").read_text(), re.MULTILINE)
    container = [*begun.split('", "')[1:], *more.split('", "')]
    for words in (shlex.split(line), container):
        options = words[1:]
        port = options.index("--port")
        del options[port : port + 2]
        if "--profile" in options:
            assert options[options.index("--profile") + 1] == "openbb"
        with serving(place, *options, "--model", place.script("hello"), "--token", "t0ken") as server:
            assert server.get("/healthz").json() == {"status": "ok"}
