"""Hooks for tests, and an exchange with a scripted model that has them."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goose_like_toolkits.hooks.toolkit import HooksToolkit

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.events import Answer, Logged, Question
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Model, ModelPair
from goose_like.sdk.testing import trial
from goose_like.toolkit import (
    AfterCall,
    BeforeCall,
    CompactionEnd,
    CompactionStart,
    Notification,
    PermissionAsked,
    PermissionDenied,
    PromptSubmitted,
    SessionStart,
    SubagentStart,
    SubagentStop,
)
from tests.fakes import FakeProvider, call, calls

NO = Answer(choice="deny", by="person")
ONCE = Answer(choice="allow", by="person")
NOBODY = Answer()

SHELL = {"command": "ls"}


def hook(command: str, matcher: str = "", **more: Any) -> list[Any]:
    """Return the groups of an event with one command."""
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]


def show_input(file: Path) -> str:
    """Return a command that keeps its input as a line of a file, in one write: hooks run side by side."""
    return f"printf '%s\\n' \"$(cat)\" >> {file}"


def read_inputs(file: Path) -> list[dict[str, Any]]:
    """Return the inputs that `show_input` kept."""
    return [json.loads(line) for line in file.read_text().splitlines() if line]


async def fire(toolkit: HooksToolkit, event: str) -> Any:
    """Call the hook point of an event with sample values, and return its answer."""
    match event:
        case "SessionStart":
            return await toolkit.on_session_start(SessionStart(is_resumed=False))
        case "UserPromptSubmit":
            return await toolkit.on_prompt_submitted(PromptSubmitted("hello"))
        case "PreToolUse":
            return await toolkit.before_call(BeforeCall("c1", "shell", SHELL))
        case "PermissionRequest":
            question = Question(kind="command", subject="ls", text="run: ls")
            return await toolkit.on_permission_asked(PermissionAsked(question, call("shell", json.dumps(SHELL))))
        case "PermissionDenied":
            return await toolkit.on_permission_denied(PermissionDenied("c1", "shell", SHELL, "no"))
        case "PostToolUse":
            return await toolkit.after_call(AfterCall("c1", "shell", SHELL, "a file", is_error=False))
        case "PostToolUseFailure":
            return await toolkit.after_call(AfterCall("c1", "shell", SHELL, "an error", is_error=True))
        case "Stop":
            return await toolkit.before_finish()
        case "SubagentStart":
            return await toolkit.on_subagent_start(SubagentStart("delegate", "c1"))
        case "SubagentStop":
            return await toolkit.on_subagent_stop(SubagentStop("delegate", "c1", "done"))
        case "PreCompact":
            return await toolkit.before_compaction(CompactionStart(is_requested=True))
        case "PostCompact":
            return await toolkit.after_compaction(CompactionEnd("a summary"))
        case "Notification":
            return await toolkit.on_notification(Notification("question", "may it?"))
        case "SessionEnd":
            return await toolkit.on_session_end()
    raise KeyError(event)


@asynccontextmanager
async def open_toolkit(folder: Path, **events: Any) -> AsyncIterator[tuple[HooksToolkit, list[str]]]:
    """Open the toolkit with hooks of a profile, and give it with the lines that it logs."""
    async with trial(HooksToolkit, folder, config=events) as opened:
        logged: list[str] = []
        opened.toolkit.notifier.log = logged.append  # type: ignore[method-assign, assignment]
        opened.toolkit._engine._notifier = opened.toolkit.notifier
        yield opened.toolkit, logged


class Place:
    """An exchange with a scripted model, and what tests look at."""

    def __init__(self, exchange: Exchange, recorder: Recorder, provider: FakeProvider) -> None:
        self.exchange = exchange
        self.recorder = recorder
        self.provider = provider

    async def run(self, *wanted: Any, words: str = "go") -> list[str]:
        """Run a turn in which the model makes these calls, and return all outputs of the turn."""
        self.provider.script[:] = [calls(*wanted), "Done.", "Done again.", "And again."]
        start = len(self.exchange.history.messages)
        await self.exchange.reply(words)
        messages = self.exchange.history.messages[start:]
        return [result.output for message in messages for result in message.tool_results]

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.recorder.events if isinstance(event, Logged)]


@asynccontextmanager
async def open_place(
    hooks: Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    answer: Answer = NO,
    **profile: Any,
) -> AsyncIterator[Place]:
    """Open an exchange in the current folder, with hooks of the profile and trusted files of the project."""
    provider = FakeProvider()
    recorder = Recorder(answer)
    model = Model(provider, "x", "scripted:x")
    toolkits: list[Any] = [{"name": "developer", "config": {"news": False}}]
    if hooks is not None:
        toolkits.append({"name": "hooks", "config": dict(hooks)})
    chosen = Profile.model_validate({"name": "mine", "toolkits": toolkits, "sandbox": "full", **profile})
    project = ProjectConfig(Path.cwd(), dict(files or {}))
    models = ModelPair(model, model)
    async with build_exchange(chosen, recorder, models=models, project=project) as exchange:
        yield Place(exchange, recorder, provider)


def shell(command: str, id: str = "c1") -> Any:
    return call("shell", json.dumps({"command": command}), id)
