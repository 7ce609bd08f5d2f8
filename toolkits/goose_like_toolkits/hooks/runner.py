"""Running one hook: a command in the sandbox or with the person's rights, or a request over HTTP."""

import asyncio
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goose_like.config.paths import create_private_folder
from goose_like.core.errors import GooseLikeError
from goose_like.workspace.processes.process import Process, create_file
from goose_like.workspace.programs import build_safe_path
from goose_like.workspace.sandbox.scope import SandboxScope
from goose_like.workspace.workspace import Workspace

from .reply import RawReply
from .settings import Handler

_MAX_BYTES = 1_000_000
_MAX_ERROR_BYTES = 64_000
_CHUNK_BYTES = 65_536
_MAY_NAME = re.compile(r"CLAUDE_PROJECT_DIR|\bPWD\b|\bpwd\b|[*?]")
"""Parts of a command that may stand for files of the workspace, whatever these are."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


async def run_hook(handler: Handler, fields: Mapping[str, Any], workspace: Workspace) -> RawReply:
    """Run a hook with these fields as its input. Its time limit ends all its processes."""
    text = json.dumps(fields, ensure_ascii=False)
    run = _request if handler.url else _run_command
    try:
        async with asyncio.timeout(handler.limit_s):
            return await run(handler, text, workspace)
    except TimeoutError:
        return RawReply(failure=f"did not end within {handler.limit_s:g} s")
    except GooseLikeError as error:
        return RawReply(failure=f"did not run: {error}")


def is_confined(handler: Handler, workspace: Workspace) -> bool:
    """Check whether a command runs in the sandbox.

    A command of the person does so too if it names a file of the workspace: the model may have written that.
    """
    return handler.is_confined or _names_workspace(handler, workspace.folders)


def _names_workspace(handler: Handler, folders: Sequence[Path]) -> bool:
    line = " ".join([handler.command, *(handler.arguments or ())])
    if _MAY_NAME.search(line) or any(str(folder) in line for folder in folders):
        return True
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    for word in words:
        name = os.path.expanduser(word.rstrip(";"))
        path = Path(folders[0], name)
        target = Path(os.path.realpath(path))
        if os.path.lexists(path) and any(map(target.is_relative_to, folders)):
            return True
    return False


async def _run_command(handler: Handler, text: str, workspace: Workspace) -> RawReply:
    variables = {"CLAUDE_PROJECT_DIR": str(workspace.root)}
    if handler.event == "SessionStart":
        variables["CLAUDE_ENV_FILE"] = "/dev/null"  # scripts write there, and fail without it
    has_sandbox = is_confined(handler, workspace)
    if not has_sandbox:
        variables["PATH"] = build_safe_path(*workspace.folders)
    variables |= handler.source.variables
    scope = None
    data = handler.source.data
    if data:
        scope = SandboxScope(writable=(create_private_folder(data),), is_wide=True)
    argv = ["bash", "-c", handler.command]
    if handler.arguments is not None:
        argv = [handler.command, *handler.arguments]
    stdin = create_file(text.encode(errors="replace"))
    errors, theirs = os.pipe()
    try:
        process = await workspace.spawn(
            argv,
            env=variables,
            access="workspace" if has_sandbox else "full",
            descriptors={0: stdin, 2: theirs},
            scope=scope,
            subject=f"hook {handler.event}: {handler.label}",
            is_own=True,  # the person trusts these hooks, so each run needs no question
        )
    except BaseException:
        os.close(errors)
        raise
    finally:
        os.close(stdin)
        os.close(theirs)
    return await _follow(process, errors)


async def _follow(process: Process, errors: int) -> RawReply:
    """Read all that a command prints, and wait for its end. Stop it if this is cancelled or if it prints too much."""
    stream = _ErrorStream(errors)
    output = bytearray()
    code = None
    try:
        if not await process.read_all(output.extend, _MAX_BYTES):
            return RawReply(failure=f"printed more than {_MAX_BYTES:,} bytes")
        code = await process.wait()
    finally:
        if code is None:
            await process.stop(0)
        stream.close()
    return RawReply(code, output.decode(errors="replace"), stream.text)


class _ErrorStream:
    """The end of a pipe that collects the first part of what a command writes, so that the command never waits."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._data = bytearray()
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    def _read(self) -> bool:
        """Read once. Return False if there is nothing more now."""
        try:
            chunk = os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if not chunk:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            return False
        room = _MAX_ERROR_BYTES - len(self._data)
        self._data += chunk[: max(0, room)]
        return True

    def close(self) -> None:
        """Read what is there, and close the pipe."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        while self._read() and len(self._data) < _MAX_ERROR_BYTES:
            pass
        os.close(self._descriptor)

    @property
    def text(self) -> str:
        """The text so far."""
        return self._data.decode(errors="replace")


async def _request(handler: Handler, text: str, workspace: Workspace) -> RawReply:
    """Post the input to the address of a hook. A project's hook needs the permission for its host."""
    import httpx2  # few sessions need it

    try:
        url = httpx2.URL(handler.url)
        if url.scheme not in ("http", "https"):
            raise httpx2.InvalidURL("it does not begin with http")
        if handler.is_confined:
            port = url.port or {"http": 80, "https": 443}[url.scheme]
            reason = f"hook {handler.event}: post to {url}"
            await workspace.hosts.require_for_tool(url.host, port, reason)
        headers = {"content-type": "application/json", **_fill_headers(handler)}
        content = text.encode(errors="replace")
        async with (
            httpx2.AsyncClient(timeout=handler.limit_s) as client,
            client.stream("POST", url, content=content, headers=headers) as response,
        ):
            if not response.is_success:
                return RawReply(failure=f"answered with status {response.status_code}")
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    return RawReply(failure=f"answered with more than {_MAX_BYTES:,} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return RawReply(failure=f"did not answer: {str(error) or type(error).__name__}")
    return RawReply(output=body.decode(errors="replace"))


def _fill_headers(handler: Handler) -> dict[str, str]:
    """Fill in the variables that the person's own hook names as allowed. Others, and those of a project, are empty."""
    allowed = () if handler.is_confined else handler.variables

    def fill(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return os.environ.get(name, "") if name in allowed else ""

    return {name: _VARIABLE.sub(fill, value).strip() for name, value in handler.headers.items()}
