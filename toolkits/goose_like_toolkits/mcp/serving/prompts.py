"""Slash commands that send a message, as prompts of the protocol."""

import re
from collections.abc import Mapping

import mcp_types as types

from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import SlashCommand, match_choices, run_command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.core.message import Message
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_thread

from .content import convert_message

_ARGUMENTS = "arguments"
_NAME = re.compile(r"[A-Z][A-Z0-9_-]*")
_PLAIN_WORD = re.compile(r"[^\s'\"\\]+")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a server: what `/name` sends in a session.

    Their arguments come from another agent, so they name only files of the workspace. Texts that run commands are
    left out: these would run outside of a turn, so undo would take their changes for the person's own.
    """

    exchange: Exchange
    profile: Profile
    project: ProjectConfig | None

    def list_all(self) -> list[types.Prompt]:
        """List the commands, with the words behind them as arguments."""
        prompts = []
        for name, command in self._collect().items():
            if command.runs_commands:
                continue
            arguments = _list_arguments(command)
            prompts.append(types.Prompt(name=name, description=command.summary, arguments=arguments))
        return prompts

    async def get(self, name: str, given: Mapping[str, str]) -> types.GetPromptResult:
        """Return the message of a command.

        Raises:
            UsageError: there is no such prompt, or its command cannot read the arguments.
            GooseLikeError: the command failed.
        """
        commands = self._collect()
        command = commands.get(name)
        if command is None:
            offered = [prompt.name for prompt in self.list_all()]
            raise UsageError(f"there is no prompt {name!r}; {did_you_mean(name, offered)}")
        if command.runs_commands:
            raise UsageError(f"{name!r} is no prompt, because its text runs commands; run them with a tool")
        words = _join_words([argument.name for argument in _list_arguments(command)], given)
        context = self._make_context(commands)
        message = await run_command(command, context, words)
        if not message:
            raise UsageError(f"/{name} sends no message")
        if isinstance(message, TurnRequest):
            message = message.message
        if isinstance(message, str):
            message = Message.user(message)
        return types.GetPromptResult(messages=convert_message(message, self.exchange.session.outputs))

    async def complete(self, name: str, value: str) -> list[str]:
        """Return what a session completes behind a command with one argument.

        Raises:
            GooseLikeError: the command failed.
        """
        commands = self._collect()
        command = commands.get(name)
        if command is None or command.runs_commands or len(_list_arguments(command)) > 1:
            return []
        context = self._make_context(commands)
        try:
            choices = await run_in_thread(match_choices, command, context, value)
        except Exception as error:  # a command of a package
            raise GooseLikeError(f"no completion for /{name}: {type(error).__name__}: {error}") from error
        return [text for text, _ in choices]

    def _make_context(self, commands: dict[str, SlashCommand]) -> SlashContext:
        return SlashContext(self.exchange, self.profile, commands, self.exchange.journal.log, is_typed=False)

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
    if len(names) == 1:
        return given.get(names[0], "").strip()
    words = [_quote(name, given.get(name, "")) for name in names]
    while words and words[-1] == "''":
        words.pop()
    return " ".join(words)


def _quote(name: str, value: str) -> str:
    """Write the value of an argument as one word. Commands know no character that escapes a quotation mark."""
    if _PLAIN_WORD.fullmatch(value):
        return value
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    raise UsageError(
        f"the argument {name!r} has both ' and \", and the command can read only one of them; leave one out"
    )
