"""Slash commands as the task of a one-shot run: those that send a message."""

import os

from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import run_command
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import UsageError
from goose_like.core.spelling import did_you_mean
from goose_like.launch.slash_registry import collect_commands, split_command_line


async def expand_command(text: str, exchange: Exchange, profile: Profile, project: ProjectConfig | None) -> TurnRequest:
    """Return the message of a slash command, or the text itself if it is none.

    Raises:
        UsageError: there is no such command, or it sends no message.
        GooseLikeError: the command failed.
    """
    hooks = exchange.hooks
    commands, problems = collect_commands(hooks.commands, project, hooks.yielding_commands)
    found = split_command_line(text, commands)
    if found is None:
        return TurnRequest(text)
    name, words = found
    if name not in commands and _is_path(text.split()[0]):
        return TurnRequest(text)
    source = "/commands/" + name.replace(":", "/") + ".md"
    if name in commands and commands[name].source:
        source = commands[name].source
    for problem in problems:
        if source in problem or f"the name /{name} is taken" in problem:  # others do not matter here
            exchange.journal.log(problem)
    usable = {each: command for each, command in commands.items() if command.in_run}
    if name not in usable:
        reason = f"/{name} works in a session only" if name in commands else f"no command /{name}"
        raise UsageError(f"{reason} (to send it as a message, put a space before the /); {did_you_mean(name, usable)}")
    context = SlashContext(exchange, profile, commands, exchange.journal.log)
    context.set_input = exchange.journal.log
    context.copy_to_clipboard = exchange.journal.log
    message = await run_command(usable[name], context, words)
    if not message:
        raise UsageError(f"/{name} sends no message")
    return message if isinstance(message, TurnRequest) else TurnRequest(message)


def _is_path(word: str) -> bool:
    return os.path.lexists(word)
