"""The transcript of a session in the format of Claude Code, written only for hooks that expect it."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goose_like import __version__
from goose_like.core.message import Message, Text, ToolCall
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .foreign import translate_call


class Transcript:
    """A file with one line for each message, in the private folder of the workspace. It grows with the conversation."""

    def __init__(self, session: Session, workspace: Workspace) -> None:
        self._session = session
        self._workspace = workspace
        self._written_count = 0
        self._parent: str | None = None

    def write(self) -> Path:
        """Add the new messages, and return the path."""
        file = self._workspace.tmp / "transcript.jsonl"
        messages = self._session.history.messages
        if self._written_count > len(messages):  # the person went back
            self._written_count = 0
            self._parent = None
        lines: list[str] = []
        for index in range(self._written_count, len(messages)):
            for entry in self._format_message(index, messages[index]):
                # Without blanks: scripts search for `"role":"assistant"`.
                line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
                lines.append(f"{line}\n")
        mode = "a" if self._written_count else "w"
        with file.open(mode, encoding="utf-8", errors="replace") as stream:
            stream.writelines(lines)
        self._written_count = len(messages)
        return file

    def _format_message(self, index: int, message: Message) -> Iterator[dict[str, Any]]:
        if message.role == "system":  # notes of ours for the model
            return
        is_answer = message.role == "assistant"
        content: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
            elif isinstance(part, ToolCall):
                content.append(self._format_call(part))
        for result in message.tool_results:
            entry = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.output}
            content.append({**entry, "is_error": result.is_error})
        role = "assistant" if is_answer else "user"
        body: dict[str, Any] = {"role": role, "content": content}
        if is_answer:
            body |= {"type": "message", "id": f"msg_{index}", "stop_reason": None}
        place = f"{self._session.folder.name}/{index}"
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, place))
        parent = self._parent
        self._parent = name
        yield {
            "type": role,
            "message": body,
            "uuid": name,
            "parentUuid": parent,
            "sessionId": self._session.folder.name,
            "cwd": str(self._workspace.root),
            "isSidechain": False,
            "userType": "external",
            "version": __version__,
            "timestamp": datetime.now(UTC).isoformat(),
        }

    def _format_call(self, call: ToolCall) -> dict[str, Any]:
        calls = translate_call("claude", call.name, call.parse_arguments(), self._workspace.root)
        first = calls[0]
        shown = first.input
        name = first.name
        if len(calls) > 1:
            name = "MultiEdit"
            shown = {"file_path": first.input["file_path"], "edits": [each.input for each in calls]}
        return {"type": "tool_use", "id": call.id, "name": name, "input": shown}
