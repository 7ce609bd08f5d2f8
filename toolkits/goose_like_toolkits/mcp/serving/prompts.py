"""Slash commands that send a message, as prompts of the protocol."""

import re
import shlex
from collections.abc import Mapping

import mcp_types as types

from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import SlashCommand
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.message import Message

from .content import convert_message

_ARGUMENTS = "arguments"
_NAME = re.compile(r"[A-Z][A-Z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a server: what `/name` sends in a session."""

    exchange: Exchange
    profile: Profile
    project: ProjectConfig | None

    def list_all(self) -> list[types.Prompt]:
        """List the commands, with the words behind them as arguments."""
        prompts = []
        for name, command in self._collect().items():
            arguments = _list_arguments(command)
            prompts.append(types.Prompt(name=name, description=command.summary, arguments=arguments))
        return prompts

    async def get(self, name: str, given: Mapping[str, str]) -> types.GetPromptResult:
        """Return the message of a command. Commands inside of its text run, after the person is asked.

        Raises:
            GooseLikeError: there is no such command, or it failed.
        """
        from goose_like.launch.slash_message import expand_command

        words = ""
        command = self._collect().get(name)
        if command:
            words = _join_words([argument.name for argument in _list_arguments(command)], given)
        request = await expand_command(f"/{name} {words}", self.exchange, self.profile, self.project)
        message = request.message
        if isinstance(message, str):
            message = Message.user(message)
        return types.GetPromptResult(messages=convert_message(message, self.exchange.session.outputs))

    def _collect(self) -> dict[str, SlashCommand]:
        from goose_like.launch.slash_registry import collect_commands  # slow to import

        hooks = self.exchange.hooks
        commands, _ = collect_commands(hooks.commands, self.project, hooks.yielding_commands)
        return {name: command for name, command in commands.items() if command.in_run}


def _list_arguments(command: SlashCommand) -> list[types.PromptArgument]:
    """List the words of a usage such as `NAME [OTHER]`. Any other usage is one argument for all words."""
    arguments = []
    for word in command.usage.split():
        name = word.removeprefix("[").removesuffix("]")
        if not _NAME.fullmatch(name):
            return [types.PromptArgument(name=_ARGUMENTS, description=command.usage, required=False)]
        arguments.append(types.PromptArgument(name=name.lower(), required=name == word))
    return arguments


def _join_words(names: list[str], given: Mapping[str, str]) -> str:
    """Join arguments to the words behind a command, in the order of its usage."""
    values = [given.get(name, "") for name in names]
    while values and not values[-1]:
        values.pop()
    if len(values) == 1:
        return values[0]
    return shlex.join(values)
