"""Answers to requests of the worker: models, the person, and what is printed."""

from collections.abc import Mapping
from typing import Any, Literal

from goose_like.core.events import Question
from goose_like.core.spelling import did_you_mean
from goose_like.toolkit import ToolError

from ..bridges.cerebrum import Cerebrum
from ..bridges.llm import infer
from ..bridges.plugin_calls import PluginTools
from ..definition.grammar import CommandReader
from ..definition.validation import check_parameter, is_wrapped
from .runtime import Surroundings

_MAX_QUESTION_CHARACTERS = 2_000


class RequestHandler:
    """Answers requests. They come from foreign code, so anything unknown is refused."""

    def __init__(self, around: Surroundings, model: Literal["processor", "accelerator"]) -> None:
        """Answer for a session; `model` is what a cerebrum asks."""
        self._around = around
        self._cerebrum = Cerebrum(around.view, around.notifier, around.session, around.workspace, around.limits, model)

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer one request. Raise GooseLikeError, whose text goes to the component."""
        around = self._around
        match method, params:
            case "llm", {"model": "processor" | "accelerator" as model, "param": dict(asked)}:
                return await infer(around.view, asked, model, limits=around.limits, history=around.session.history)
            case "interact", {"param": dict(asked), "plugins": list(plugins)}:
                return await self._cerebrum.interact(asked, [_read_plugin(dict(plugin)) for plugin in plugins])
            case "ask", {"text": str(text)}:
                return await self._ask(text)
            case "tell", {"text": str(text)}:
                return around.show(f"{text}\n")
            case _:
                raise ToolError(f"nothing is known of {method!r} with {', '.join(params) or 'nothing'}")

    async def _ask(self, text: str) -> str | None:
        """Ask the person; return None if nobody is there."""
        about = text[:_MAX_QUESTION_CHARACTERS]
        answer = await self._around.notifier.ask(Question(kind="text", subject="a component", text=about, detail=about))
        return answer.text if answer.is_allowed else None


def _read_plugin(plugin: Mapping[str, Any]) -> PluginTools:
    """Read a plugin of a copilot with its commands. Leave out what is wrong."""
    name = str(plugin.get("name"))
    reader = CommandReader(lambda *_, **__: None, lambda _, value: str(value))
    commands = {command.name: command for command in reader.read(plugin.get("commands"))}

    def check(command: str, param: Any) -> tuple[str, ...]:
        if command not in commands:
            return (f"{name} has no command {command!r}; {did_you_mean(command, commands)}",)
        found = commands[command]
        return check_parameter(found.parameter, found.is_required, param).problems

    every = tuple(commands.values())
    wrapped = {each.name for each in every if each.parameter and is_wrapped(each.parameter, each.is_required)}
    return PluginTools(name, str(plugin.get("prompt") or ""), every, wrapped, check)
