"""Desk: what the components' process may ask of this one."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Literal

from goose_like.core.events import Question
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_daemon_thread
from goose_like.toolkit import ToolError
from goose_like_toolkits.components.described.arguments import check
from goose_like_toolkits.components.described.definition import commands_of
from goose_like_toolkits.components.described.kinds import schema
from goose_like_toolkits.components.models.cerebrum import Brain
from goose_like_toolkits.components.models.llm import infer
from goose_like_toolkits.components.models.plugin_calls import PluginCommand, PluginTools

from .finder import Finder
from .member import Member
from .sharing import Sharing
from .surroundings import Surroundings

_PROMPT_CHARACTERS = 2_000


class Desk:
    """Answers a stage. What it sends is a stranger's word: of anything else than these questions nothing is known."""

    def __init__(
        self,
        around: Surroundings,
        finder: Finder,
        sharing: Sharing,
        install: Callable[[Member], Awaitable[None]],
        model: Literal["processor", "accelerator"],
    ) -> None:
        """`install` has what a component needs from pip, by the person's leave; `model` is what a cerebrum asks."""
        self._around = around
        self._finder = finder
        self._sharing = sharing
        self._install = install
        self._brain = Brain(
            around.view,
            around.notifier,
            session=around.session,
            workspace=around.workspace,
            limits=around.limits,
            model=model,
        )

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer to one question.

        Raises:
            GooseLikeError: there is none; the words are for the component.
        """
        around = self._around
        match method, params:
            case "resolve", {"config": dict(named)}:
                return await self._whole(
                    await run_in_daemon_thread(partial(self._finder.member, named, "the component that names it"))
                )
            case "resolve_file", {"config_file": str(file)}:
                return await self._whole(self._finder.own(file))
            case "llm", {"model": "processor" | "accelerator" as model, "param": dict(asked)}:
                return await infer(around.view, asked, model, limits=around.limits, history=around.session.history)
            case "interact", {"param": dict(asked), "plugins": list(plugins)}:
                return await self._brain.interact(asked, [self._tools_of(dict(plugin)) for plugin in plugins])
            case "asset", {"op": "get", "id": str(name)}:
                return self._sharing.fields(name)
            case "ask", {"text": str(text)}:
                return await self._asked(text)
            case "tell", {"text": str(text)}:
                return around.show(f"{text}\n")
            case _:
                raise ToolError(f"nothing is known of {method!r} with {', '.join(params) or 'nothing'}")

    async def _whole(self, member: Member) -> dict[str, Any]:
        """All of a component's configuration, once what it needs is installed."""
        await self._install(member)
        return self._finder.given(member)

    def _tools_of(self, plugin: Mapping[str, Any]) -> PluginTools:
        """A plugin of a copilot, as a model is told of it."""
        name, member = str(plugin.get("name")), self._finder.given_as(str(plugin.get("file")))
        if member is None:
            raise ToolError(f"the plugin {name} was not made of a config.yaml that is known here")
        commands = {command.name: command for command in commands_of(member.file)}

        def faults(command: str, param: Any) -> tuple[str, ...]:
            if command not in commands:
                return (f"{name} has no command {command!r}; {did_you_mean(command, commands)}",)
            return check(commands[command].parameter, param).faults

        told = [
            PluginCommand(
                each.name, each.description, schema(each.parameter), bool(each.parameter and each.parameter.is_wrapped)
            )
            for each in commands.values()
        ]
        return PluginTools(name, str(plugin.get("prompt") or "") or member.entry.description, told, faults)

    async def _asked(self, text: str) -> str | None:
        """What the person types; None where nobody is there."""
        about = text[:_PROMPT_CHARACTERS]
        answer = await self._around.notifier.ask(Question(kind="text", subject="a component", text=about, detail=about))
        return answer.text if answer.is_allowed else None
