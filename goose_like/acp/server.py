"""The agent's side of the protocol: its methods, and the sessions of one editor."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from acp import schema
from acp.connection import Connection
from acp.exceptions import RequestError
from pydantic import BaseModel, ValidationError

from goose_like import __version__
from goose_like.config.profile import Profile, ToolkitChoice
from goose_like.core.errors import GooseLikeError, SessionError, UsageError
from goose_like.core.gc_pause import end_gc_delay
from goose_like.core.threads import run_in_thread
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.start import SessionRequest, add_folders
from goose_like.providers.catalog import ModelOffer, list_offers
from goose_like.sessions.index import SessionInfo, find_session, iterate_sessions
from goose_like.sessions.session import delete_session
from goose_like.workspace.more_folders import WRITABLE

from .content import Json, format_prompt
from .lines import REQUEST_ID, Lines
from .session import EditorSession, make_error

PROTOCOL_VERSION = 1
_SETUP = "setup"
_VARIABLE = "variable"
_CANCELLED = RequestError(-32800, "the request was cancelled")
_PAGE_SESSIONS = 50
_SERVER_TOOLKIT = "mcp"
"""The profile's key for servers, which an editor may bring."""

Opening = schema.NewSessionRequest | schema.LoadSessionRequest | schema.ResumeSessionRequest
McpServer = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
Handler = Callable[[Any], Awaitable[Json | None]]


async def serve_editor(options: ProfileOptions) -> int:
    """Serve an editor on standard input and output until it closes the pipe."""
    server = EditorServer(options, await Lines.open())
    await server.run()
    return 0


class EditorServer:
    """The methods of the protocol. Each session has its own folder; all have the same options."""

    def __init__(self, options: ProfileOptions, lines: Lines) -> None:
        self._options = options
        self._connection = Connection(self._handle, lines, listening=False)
        self._sessions: dict[str, EditorSession] = {}
        self._requests: dict[object, asyncio.Task[Json | None]] = {}
        self._prompts: dict[object, EditorSession] = {}
        self._capabilities: Json = {}
        self._offers: Sequence[ModelOffer] | None = None  # listed once, as that takes a second
        self._routes: Mapping[str, tuple[type[BaseModel], Handler]] = {
            "authenticate": (schema.AuthenticateRequest, self._authenticate),
            "session/new": (schema.NewSessionRequest, self._create_session),
            "session/load": (schema.LoadSessionRequest, self._load_session),
            "session/resume": (schema.ResumeSessionRequest, self._resume_session),
            "session/list": (schema.ListSessionsRequest, self._list_sessions),
            "session/delete": (schema.DeleteSessionRequest, self._delete_session),
            "session/close": (schema.CloseSessionRequest, self._close_session),
            "session/prompt": (schema.PromptRequest, self._prompt),
            "session/cancel": (schema.CancelNotification, self._cancel),
            "session/set_mode": (schema.SetSessionModeRequest, self._set_mode),
        }

    async def run(self) -> None:
        """Answer messages until the input ends. Then no session is left."""
        try:
            await self._connection.main_loop()
        finally:
            for session in list(self._sessions.values()):
                await session.close()
            await self._connection.close()

    # --- dispatch

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Json | None:
        """Answer one message. The SDK runs each in a task of its own."""
        values = dict(params) if isinstance(params, dict) else {}
        request_id = values.pop(REQUEST_ID, None)
        if method == "$/cancel_request":
            self._cancel_request(values.get("requestId"))
            return None
        task = asyncio.create_task(self._answer(method, values, request_id))
        if not is_notification:
            self._requests[request_id] = task
        try:
            answer = await task
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelling():
                raise _CANCELLED from None
            task.cancel()
            raise
        finally:
            self._requests.pop(request_id, None)
        self._start_updates(answer, values)
        return answer

    def _start_updates(self, answer: Json | None, params: Json) -> None:
        """Let a session that was opened send its updates behind the answer that names it."""
        name = (answer or {}).get("sessionId") or params.get("sessionId")
        session = self._sessions.get(str(name))
        if session:
            asyncio.get_running_loop().call_soon(session.start_updates)

    async def _answer(self, method: str, params: Json, request_id: object) -> Json | None:
        if method == "initialize":
            return self._initialize(params)
        if method == "session/set_config_option":
            return await self._set_option(params)
        if method not in self._routes:
            raise RequestError.method_not_found(method)
        model, handle = self._routes[method]
        try:
            request = model.model_validate(params)
            if isinstance(request, schema.PromptRequest):
                self._prompts[request_id] = self._find_session(request.session_id)
            return await handle(request)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise RequestError(-32602, f"{method}: {place}: {first['msg']}") from error
        except GooseLikeError as error:
            raise make_error(error) from error
        finally:
            self._prompts.pop(request_id, None)

    def _cancel_request(self, request_id: object) -> None:
        """Stop a request. A prompt ends as after `session/cancel`, so that the turn is complete."""
        prompt = self._prompts.get(request_id)
        task = self._requests.get(request_id)
        if prompt:
            prompt.cancel()
        elif task:
            task.cancel()

    # --- the editor

    def _initialize(self, params: Json) -> Json:
        capabilities = params.get("clientCapabilities")
        if not isinstance(capabilities, dict):
            capabilities = {}
        self._capabilities = {name: value for name, value in capabilities.items() if isinstance(value, dict)}
        auth = self._capabilities.get("auth") or {}
        methods: list[Json] = [
            {
                "id": _VARIABLE,
                "name": "API key in a variable",
                "description": "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or another key, and start the editor anew.",
            }
        ]
        if auth.get("terminal"):
            # The editor appends the arguments to the command with which it started this process.
            methods.insert(0, {"type": "terminal", "id": _SETUP, "name": "goose-like setup", "args": ["--setup"]})
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "goose-like", "title": "goose_like", "version": __version__},
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": {
                    "list": {},
                    "delete": {},
                    "resume": {},
                    "close": {},
                    "additionalDirectories": {},
                },
            },
            "authMethods": methods,
        }

    async def _authenticate(self, request: schema.AuthenticateRequest) -> Json:
        if request.method_id not in (_SETUP, _VARIABLE):
            raise UsageError(f"there is no method {request.method_id!r} to log in")
        return {}

    # --- sessions

    async def _create_session(self, request: schema.NewSessionRequest) -> Json:
        session = await self._open(SessionRequest(self._options), request)
        return {"sessionId": session.name, **session.describe()}

    async def _load_session(self, request: schema.LoadSessionRequest) -> Json:
        session = await self._resume(request)
        await session.replay()
        return session.describe()

    async def _resume_session(self, request: schema.ResumeSessionRequest) -> Json:
        session = await self._resume(request)
        return session.describe()

    async def _resume(self, request: schema.LoadSessionRequest | schema.ResumeSessionRequest) -> EditorSession:
        name = request.session_id
        if name in self._sessions:
            return self._sessions[name]
        return await self._open(SessionRequest(self._options, name, is_resumed=True), request)

    async def _open(self, wanted: SessionRequest, request: Opening) -> EditorSession:
        folder = Path(request.cwd)
        if not folder.is_absolute():
            raise UsageError(f"`cwd` must be an absolute path, not {request.cwd!r}")
        if self._offers is None:
            self._offers = await run_in_thread(list_offers)
        connection = self._connection
        session = EditorSession(connection.send_notification, connection.send_request, self._capabilities, self._offers)
        await session.open(wanted, folder, partial(_add_to_profile, request))
        self._sessions[session.name] = session
        end_gc_delay()
        return session

    async def _list_sessions(self, request: schema.ListSessionsRequest) -> Json:
        start = int(request.cursor) if request.cursor and request.cursor.isdecimal() else 0
        found = await run_in_thread(_read_sessions, request.cwd)
        page = found[start : start + _PAGE_SESSIONS]
        answer: Json = {"sessions": [_describe_session(info) for info in page]}
        if len(found) > start + _PAGE_SESSIONS:
            answer["nextCursor"] = str(start + _PAGE_SESSIONS)
        return answer

    async def _delete_session(self, request: schema.DeleteSessionRequest) -> Json:
        await self._end_session(request.session_id)
        info = await run_in_thread(find_session, request.session_id)
        if not await run_in_thread(delete_session, info):
            raise SessionError(f"session {info.name!r} is open in another process; end it there first")
        return {}

    async def _close_session(self, request: schema.CloseSessionRequest) -> Json:
        self._find_session(request.session_id)
        await self._end_session(request.session_id)
        return {}

    async def _end_session(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session:
            await session.close()

    def _find_session(self, name: str) -> EditorSession:
        if name not in self._sessions:
            raise RequestError(-32002, f"session {name!r} is not open; load it first")
        return self._sessions[name]

    # --- turns

    async def _prompt(self, request: schema.PromptRequest) -> Json:
        session = self._find_session(request.session_id)
        outputs = session.conversation.exchange.session.outputs
        text = format_prompt(request.prompt, outputs)
        reason = await session.prompt(text)
        return {"stopReason": reason, "usage": session.count_tokens()}

    async def _cancel(self, request: schema.CancelNotification) -> None:
        if request.session_id in self._sessions:
            self._sessions[request.session_id].cancel()

    async def _set_mode(self, request: schema.SetSessionModeRequest) -> Json:
        session = self._find_session(request.session_id)
        await session.set_option("mode", request.mode_id)
        session.tell_options()
        await session.send_updates()
        return {}

    async def _set_option(self, params: Json) -> Json:
        session = self._find_session(str(params.get("sessionId")))
        try:
            await session.set_option(str(params.get("configId")), params.get("value"))
        except GooseLikeError as error:
            raise make_error(error) from error
        return {"configOptions": session.list_options()}


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _read_sessions(cwd: str | None) -> list[SessionInfo]:
    return [info for info in iterate_sessions() if cwd is None or info.ran_in(cwd)]


def _describe_session(info: SessionInfo) -> Json:
    return {
        "sessionId": info.name,
        "cwd": info.cwd,
        "title": info.summary[:200],
        "updatedAt": info.changed_at.isoformat(),
    }


def _add_to_profile(request: Opening, profile: Profile) -> Profile:
    """Return the profile with the folders and MCP servers that the editor names for a session."""
    folders = [f"{folder}{WRITABLE}" for folder in request.additional_directories or ()]
    profile = add_folders(profile, Path(request.cwd), folders)
    return _add_servers(request.mcp_servers or (), profile)


def _add_servers(servers: Sequence[McpServer], profile: Profile) -> Profile:
    """Return the profile with the MCP servers of the editor. Its own servers win over those with the same name."""
    if not servers:
        return profile
    entries = {server.name: _make_entry(server) for server in servers}
    choices = {choice.name: choice for choice in profile.toolkits}
    before = choices.get(_SERVER_TOOLKIT, ToolkitChoice(name=_SERVER_TOOLKIT))
    choices[_SERVER_TOOLKIT] = before.model_copy(update={"config": entries | before.config})
    return profile.model_copy(update={"toolkits": tuple(choices.values())})


def _make_entry(server: McpServer) -> Json:
    """Write a server as profiles and files of other agents do."""
    if isinstance(server, schema.McpServerStdio):
        variables = {variable.name: variable.value for variable in server.env}
        return {"command": server.command, "args": list(server.args), "env": variables}
    if isinstance(server, schema.AcpMcpServer):
        raise UsageError(f"the MCP server {server.name!r} is one inside the editor, which goose-like cannot reach")
    headers = {header.name: header.value for header in server.headers}
    return {"type": server.type, "url": server.url, "headers": headers}
