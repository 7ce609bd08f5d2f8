"""The proxy: programs in a real sandbox reach the hosts that are allowed, and no others."""

import asyncio
import base64
import functools
import hashlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest

from goose_like.config.profile import ApprovalMode, NetworkChoice, SandboxMode, WorkspaceSettings
from goose_like.core.events import Answer, Question
from goose_like.core.notifier import Recorder
from goose_like.workspace.network import proxy
from goose_like.workspace.network.address_filter import Address
from goose_like.workspace.network.host_access import HostAccess
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.workspace import Workspace
from tests.workspace.workspace_harness import GIT, ONCE, needs_sandbox, run_script

pytestmark = [needs_sandbox, pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")]

NO = Answer(choice="deny", by="person")
TRUST = (
    "CURL_CA_BUNDLE",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "npm_config_cafile",
)
HOSTS = ("one.test", "two.test", "files.test", "private.test")


class Web:
    """The internet of a test: a folder, served over HTTP and TLS. `private.test` leads to 10.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "web"
        self.folder.mkdir()
        self.looked_up: list[str] = []
        self.connections: list[tuple[str, int]] = []
        self.requests: list[str] = []
        names = ",".join(f"DNS:{name}" for name in HOSTS)
        script = f"""openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out cert.pem -days 2 -subj /CN=ca
            openssl req -newkey rsa:2048 -nodes -keyout key -out request -subj /CN=x
            openssl x509 -req -in request -CA cert.pem -CAkey ca.key -CAcreateserial -out chain -days 2 \\
                -extfile <(echo subjectAltName={names})"""
        subprocess.run(["bash", "-ec", script], cwd=folder, check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "chain", folder / "key")
        self.ports = {80: self._serve(None), 443: self._serve(tls)}

    def _serve(self, tls: ssl.SSLContext | None) -> int:
        web = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                web.requests.append(f"{self.command} {self.headers['Host']}{self.path}")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body[::-1])

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=self.folder))
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]

    async def resolve_host(self, host: str, port: int) -> list[Address]:
        self.looked_up.append(host)
        return [ip_address("10.0.0.1" if host == "private.test" else "93.184.216.34")]

    async def open_connection(self, address: str, port: int) -> proxy.Stream:
        self.connections.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.ports[port])


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web(tmp_path)
    (web.folder / "hello").write_text("hello from the web")
    monkeypatch.setattr(proxy, "resolve_host", web.resolve_host)
    monkeypatch.setattr(proxy, "open_connection", web.open_connection)
    return web


@asynccontextmanager
async def open_workspace(
    root: Path,
    *allow: str,
    answer: Answer | Recorder = Answer(),
    mode: SandboxMode = "workspace",
    approval: ApprovalMode = "auto",
) -> AsyncIterator[tuple[Workspace, Recorder]]:
    shutil.copy(root.parent / "cert.pem", root)
    recorder = answer if isinstance(answer, Recorder) else Recorder(answer)
    settings = WorkspaceSettings(network=NetworkChoice(allow=allow))
    async with Workspace(root, mode=mode, approval=approval, notifier=recorder, settings=settings) as workspace:
        yield workspace, recorder


async def run(workspace: Workspace, script: str) -> tuple[int, str]:
    trust = dict.fromkeys(TRUST, str(workspace.root / "cert.pem"))
    return await run_script(workspace, script, subject=script, env=trust)


# --- listed hosts


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_listed_host_is_reached_unasked(root: Path, web: Web, scheme: str) -> None:
    async with open_workspace(root, "one.test") as (workspace, recorder):
        assert await run(workspace, f"curl -sS {scheme}://one.test/hello") == (0, "hello from the web")
        assert await run(workspace, f"curl -sS -d abc {scheme}://one.test/") == (0, "cba")
    assert web.requests == ["GET one.test/hello", "POST one.test/"]
    assert recorder.questions == []


async def test_a_pattern_lists_the_names_below_and_no_others(root: Path, web: Web) -> None:
    async with open_workspace(root, "*.One.test") as (workspace, _):
        assert (await run(workspace, "curl -sS http://a.b.one.test/hello"))[0] == 0
        for host in ("one.test", "aone.test", "one.test.evil", "two.test"):
            assert "not allowed" in (await run(workspace, f"curl -sS http://{host}/hello"))[1]
    assert web.looked_up == ["a.b.one.test"]


# --- no way around


@pytest.mark.parametrize(
    "script",
    [
        "curl -sS http://93.184.216.34/hello",
        "curl -sS --connect-to one.test:80:93.184.216.34:80 http://93.184.216.34/hello",
        "curl -sS http://0x5db8d822/hello",
        "curl -sS http://1572395042/hello",
        "curl -sS http://[2606:2800:220:1::1]/hello",
        "curl -sS -H 'Host: one.test' http://two.test/hello",
        "curl -sS --proxytunnel http://two.test/hello",
        "curl -sS --noproxy '*' http://one.test/hello",
        "curl -sS --noproxy '*' http://93.184.216.34/hello",
        "curl -sS http://one.test:8080/hello",
        "curl -sS --proxytunnel http://one.test:22/hello",
        "curl -sSk --proxytunnel --connect-to two.test:443:two.test:443 https://two.test/hello",
    ],
)
async def test_nothing_else_is_reached(root: Path, web: Web, script: str) -> None:
    async with open_workspace(root, "one.test") as (workspace, _):
        assert "hello from" not in (await run(workspace, script))[1]
    assert (web.looked_up, web.connections, web.requests) == ([], [], [])


async def test_a_refused_name_is_not_looked_up(root: Path, web: Web) -> None:
    async with open_workspace(root, answer=NO) as (workspace, _):
        await run(workspace, "curl -sS http://secret.one.test/; curl -sS https://secret.one.test/")
    assert web.looked_up == []


async def test_a_tunnel_carries_tls_for_its_own_host_only(root: Path, web: Web) -> None:
    async with open_workspace(root, "one.test") as (workspace, _):
        plain = r"""exec 3<>/dev/tcp/127.0.0.1/3128
            printf "CONNECT one.test:443 HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\nHost: two.test\r\n\r\n" >&3; cat <&3"""
        for script in (
            plain,
            "curl -sSk --connect-to two.test:443:one.test:443 https://two.test/hello",
            "curl -sSk --connect-to 10.2.3.4:443:one.test:443 https://10.2.3.4/hello",
        ):
            assert "hello from" not in (await run(workspace, script))[1]
        refusals = workspace.hosts.take_refusals()
    assert [text.rpartition(" for ")[2] for text in refusals] == ["no host", "two.test"]
    assert web.requests == []


async def test_a_plain_request_names_the_host_that_was_allowed(root: Path, web: Web) -> None:
    async with open_workspace(root, "one.test") as (workspace, _):
        await run(workspace, "curl -sS -H 'Host: two.test' http://one.test/hello")
        await run(workspace, "curl -sS --proxytunnel -H 'Host: two.test' http://one.test/hello")
        script = r"""exec 3<>/dev/tcp/127.0.0.1/3128; r='GET http://%s.test/hello HTTP/1.1\r\nHost: two.test\r\n\r\n'
            printf "$r" one >&3; printf "$r" two >&3; cat <&3"""
        await run(workspace, script)
        await run(workspace, script.replace("Host: two.test", r"X: y\nHost: two.test"))
        for header in (
            r"Transfer-Encoding: chunked",
            r"Host : two.test",
            r"X Y: z",
            r"X",
            "Content-Length: " + "1" * 5000,
        ):
            await run(workspace, script.replace("Host: two.test", header))
    assert web.requests == ["GET one.test/hello"] * 3


async def test_private_addresses_need_the_host_in_the_list(root: Path, web: Web) -> None:
    for allow, answer, is_reached in (((), ONCE, False), (("*",), ONCE, False), (("private.test",), NO, True)):
        async with open_workspace(root, *allow, answer=answer) as (workspace, _):
            _, output = await run(workspace, "curl -sS http://private.test/hello")
            assert ("hello from" in output) == is_reached, (allow, output)
            assert is_reached or "network: {allow: [private.test]}" in output
    assert len(web.connections) == 1


@pytest.mark.parametrize(
    ("allow", "host", "address", "is_listed"),
    [
        ("*", "dev.test", "127.0.0.1", False),
        ("*:8080", "dev.test:8080", "127.0.0.1", False),
        ("*:*", "dev.test:8080", "127.0.0.1", False),
        ("*.test:8080", "dev.test:8080", "127.0.0.1", False),
        ("d?v.test:8080", "dev.test:8080", "::1", False),
        ("*.test", "dev.test", "0.0.0.0", False),
        ("*.test", "dev.test", "::ffff:127.0.0.1", False),
        ("*", "localhost", "127.0.0.1", False),
        ("local*", "localhost", "127.0.0.1", False),
        ("dev.test:8080", "dev.test:8080", "127.0.0.1", True),
        ("dev.test:*", "dev.test:8080", "127.0.0.1", True),
        ("127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", True),
        ("127.0.0.1:*", "127.0.0.1:8080", "127.0.0.1", True),
        ("[::1]:8080", "[::1]:8080", "::1", True),
        ("*:8080", "dev.test:8080", "10.0.0.1", False),
        ("*.*", "dev.test", "10.0.0.1", False),
        ("*.test:8080", "dev.test:8080", "10.0.0.1", True),
        ("dev.test", "dev.test", "192.168.1.1", True),
    ],
)
def test_patterns_list_no_name_of_this_machine(
    root: Path, allow: str, host: str, address: str, is_listed: bool
) -> None:
    hosts = HostAccess(Permissions(root, "workspace", "auto", Recorder()), [allow])
    assert hosts.is_listed_for(host, ip_address(address)) == is_listed


async def test_addresses_are_listed_literally_and_never_asked_about(root: Path, web: Web) -> None:
    addresses = ("93.184.216.34", "1572395042", "0x5db8d822", "93.184.55330", "[2606:2800:220:1::1]")
    for allow, reached in (("*", []), ("*.34", []), ("93.184.*", ["93.184.216.34", "93.184.55330"])):
        web.requests.clear()
        async with open_workspace(root, allow, answer=ONCE) as (workspace, recorder):
            for address in addresses:
                await run(workspace, f"curl -sSg http://{address}/hello; curl -sSg http://{address}.:80/hello")
        assert recorder.questions == []
        assert {line.split("/")[0] for line in web.requests} == {f"GET {address}" for address in reached}


async def test_tls_to_a_listed_address_names_no_host(root: Path, web: Web) -> None:
    async with open_workspace(root, "93.184.216.34") as (workspace, _):
        assert await run(workspace, "curl -sSk https://93.184.216.34/hello") == (0, "hello from the web")
        other = "curl -sSk --connect-to one.test:443:93.184.216.34:443 https://one.test/hello"
        assert "hello from" not in (await run(workspace, other))[1]


async def test_an_old_client_gets_an_old_response(root: Path, web: Web) -> None:
    async with open_workspace(root, "one.test") as (workspace, _):
        assert await run(workspace, "curl -sS0 http://one.test/hello") == (0, "hello from the web")


@pytest.mark.parametrize(("mode", "approval"), [("workspace", "plan"), ("read-only", "plan")])
async def test_plan_reaches_nothing(root: Path, web: Web, mode: SandboxMode, approval: ApprovalMode) -> None:
    async with open_workspace(root, "one.test", mode=mode, approval=approval) as (workspace, recorder):
        assert "this session forbids it" in (await run(workspace, "curl -sS http://one.test/hello"))[1]
    assert (recorder.questions, web.looked_up) == ([], [])


async def test_many_connections_leave_us_our_descriptors(root: Path, web: Web) -> None:
    flood = (
        "import socket, time; s = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(150)]; time.sleep(9)"
    )
    async with open_workspace(root, "one.test") as (workspace, _):
        before = len(os.listdir("/proc/self/fd"))
        process = await workspace.spawn([sys.executable, "-c", flood])
        await asyncio.sleep(1)
        assert len(os.listdir("/proc/self/fd")) < before + 140
        await process.stop(0)
        assert (await run(workspace, "curl -sS http://one.test/hello"))[0] == 0


# --- questions


async def test_a_new_host_is_asked_about_once_for_each_command(root: Path, web: Web) -> None:
    async with open_workspace(root, answer=ONCE) as (workspace, recorder):
        script = "curl -sSZ http://one.test/hello https://one.test/hello http://one.test/hello"
        script += "; curl -sS http://two.test/hello"
        assert (await run(workspace, script))[0] == 0
        assert [(q.kind, q.subject) for q in recorder.questions] == [("domain", "one.test"), ("domain", "two.test")]
        assert recorder.questions[0].text == f"connect to one.test for: {script}"
        assert (await run(workspace, "curl -sS http://one.test/hello"))[0] == 0
        assert len(recorder.questions) == 3
    assert len(web.requests) == 5


async def test_a_refusal_holds_for_the_command_and_is_told(root: Path, web: Web) -> None:
    async with open_workspace(root, answer=NO) as (workspace, recorder):
        code, output = await run(workspace, "for i in 1 2 3; do curl -sS https://one.test/hello; done")
        assert (code, len(recorder.questions)) == (56, 1)
        assert "403" in output
        (told,) = await workspace.inspect_changes()
        assert "not allowed: connect to one.test" in told
        assert "the person said no" in told
        assert await workspace.inspect_changes() == []


async def test_the_command_waits_for_the_answer(root: Path, web: Web) -> None:
    is_asked, is_answered = asyncio.Event(), asyncio.Event()

    class Slow(Recorder):
        async def ask(self, question: Question) -> Answer:
            is_asked.set()
            await is_answered.wait()
            return ONCE

    async with open_workspace(root, "two.test", answer=Slow()) as (workspace, _):
        script = "curl -sS http://one.test/hello & curl -sS -o two http://two.test/hello; wait $!"
        waiting = asyncio.create_task(run(workspace, script))
        await is_asked.wait()
        async with asyncio.timeout(60):
            while "GET two.test/hello" not in web.requests:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert not waiting.done()
        is_answered.set()
        assert await waiting == (0, "hello from the web")


async def test_a_question_ends_with_its_command(root: Path, web: Web) -> None:
    class Forever(Recorder):
        is_cancelled = False

        async def ask(self, question: Question) -> Answer:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                self.is_cancelled = True
                raise
            return ONCE

    recorder = Forever()
    async with open_workspace(root, answer=recorder) as (workspace, _):
        assert (await run(workspace, "timeout 0.5 curl -sS http://one.test/hello"))[0] == 124
        await asyncio.sleep(0.1)
        assert recorder.is_cancelled
        assert web.connections == []


async def test_what_a_command_left_in_the_background_asks_nothing(root: Path, web: Web) -> None:
    async with open_workspace(root, "two.test", answer=ONCE) as (workspace, recorder):
        assert (await run(workspace, "curl -sS http://one.test/hello"))[0] == 0
        (root / "log").touch()
        left = "curl -sS http://one.test/hello http://two.test/hello"
        await run(workspace, f"(sleep 0.2; {left} >>log 2>&1) >/dev/null 2>&1 &")
        async with asyncio.timeout(60):
            while "hello from" not in workspace.read_bytes("log").decode():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert "has ended" in workspace.read_bytes("log").decode()
    assert len(recorder.questions) == 1


# --- the programs that people use


def build_wheel(folder: Path) -> None:
    """Build a package index with one package."""
    folder.mkdir(parents=True)
    name = "tiny_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("tiny_thing.py", "")
        wheel.writestr("tiny_thing-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        wheel.writestr(
            "tiny_thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_thing-1.0.dist-info/RECORD", "")
    (folder / "index.html").write_text(f'<a href="https://files.test/simple/tiny-thing/{name}">{name}</a>')


def pip_install(*options: str) -> str:
    line = [sys.executable, "-m pip install --isolated --target lib -i https://one.test/simple", *options]
    return " ".join([*line, "tiny-thing"])


async def test_pip_installs_after_one_question_for_each_host(root: Path, web: Web) -> None:
    build_wheel(web.folder / "simple/tiny-thing")
    async with open_workspace(root, answer=ONCE) as (workspace, recorder):
        code, output = await run(workspace, pip_install())
        assert code == 0, output
    assert (root / "lib/tiny_thing.py").exists()
    assert [question.subject for question in recorder.questions] == ["one.test", "files.test"]


async def test_pip_names_the_host_that_was_refused(root: Path, web: Web) -> None:
    async with open_workspace(root) as (workspace, _):
        assert "not allowed: connect to one.test" in (await run(workspace, pip_install("--retries 1")))[1]


async def test_git_clones_and_fetches(root: Path, web: Web) -> None:
    script = f"""git init -q -b main --bare repo.git; git clone -q repo.git c
        {GIT} -C c commit -q --allow-empty -m one
        git -C c push -q origin HEAD:main
        git -C repo.git update-server-info"""
    subprocess.run(["bash", "-ec", script], cwd=web.folder, check=True, capture_output=True)  # noqa: ASYNC221
    async with open_workspace(root, "one.test") as (workspace, _):
        code, output = await run(workspace, "git clone -q https://one.test/repo.git && cd repo && git fetch && git log")
        assert code == 0, output
        assert "one" in output


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
async def test_npm_installs(root: Path, web: Web) -> None:
    package = web.folder / "package"
    package.mkdir()
    (package / "package.json").write_text('{"name": "tiny-thing", "version": "1.0.0"}')
    with tarfile.open(web.folder / "tiny.tgz", "w:gz") as archive:
        archive.add(package, "package")
    digest = base64.b64encode(hashlib.sha512((web.folder / "tiny.tgz").read_bytes()).digest()).decode()
    dist = {"tarball": "https://files.test/tiny.tgz", "integrity": f"sha512-{digest}"}
    version = {"name": "tiny-thing", "version": "1.0.0", "dist": dist}
    document = {"name": "tiny-thing", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (web.folder / "tiny-thing").write_text(json.dumps(document))
    line = "npm install --no-audit --no-fund --fetch-retries 0 --replace-registry-host never tiny-thing"
    line += " --registry https://one.test/"
    async with open_workspace(root, answer=ONCE) as (workspace, recorder):
        code, output = await run(workspace, line)
        assert code == 0, output
    assert (root / "node_modules/tiny-thing/package.json").exists()
    assert [question.subject for question in recorder.questions] == ["one.test", "files.test"]
