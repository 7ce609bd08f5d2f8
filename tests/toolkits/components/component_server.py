"""A Maven repository's server on 127.0.0.1: GET and PUT below a folder, basic authentication, ConCopilot's POST.

with component_server(folder, user=("ada", "secret")) as server: server.url, server.asked, server.more[...]
"""

import base64
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote


@dataclass
class ComponentServer:
    """`more` answers single paths in its own way; `lists` says whether it takes ConCopilot's POST for a list."""

    folder: Path
    user: tuple[str, str] | None = None
    lists: bool = False
    port: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    more: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/maven"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        path = unquote(request.path)
        self.asked.append((request.command, path, request.headers.get("authorization", "")))
        if path in self.more:
            self.more[path](request)
        elif self.user and request.headers.get("authorization") != basic(*self.user):
            reply(request, 401, b"who are you?")
        else:
            self._give(request, self.folder / path.removeprefix("/maven/"), body)

    def _give(self, request: BaseHTTPRequestHandler, file: Path, body: bytes) -> None:
        match request.command:
            case "PUT":
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(body)
                reply(request, 201)
            case "GET" if file.is_file():
                reply(request, 200, file.read_bytes())
            case "POST" if self.lists and file.is_dir():
                names = sorted(str(each) for each in file.iterdir())
                reply(request, 200, "".join(f"- {name}\n" for name in names).encode())
            case "POST" if not self.lists:
                reply(request, 405)
            case _:
                reply(request, 404, b"no such file")


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def reply(request: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    request.send_response(status)
    for name, value in {"content-length": str(len(body)), **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)


@contextmanager
def component_server(
    folder: Path, user: tuple[str, str] | None = None, lists: bool = False
) -> Iterator[ComponentServer]:
    served = ComponentServer(folder, user, lists)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.answer(self)

        do_PUT = do_POST = do_GET

        def log_message(self, *words: object) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
