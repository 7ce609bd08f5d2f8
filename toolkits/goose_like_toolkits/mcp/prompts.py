"""Prompts of servers as slash commands: `/SERVER:PROMPT` with the arguments as words."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from goose_like.agent.mentions import build_message
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.core.errors import UsageError
from goose_like.core.event_text import escape_controls

from .prompts_and_resources import PromptDefinition
from .server_state import ServerState

_OTHER_CHARACTER = re.compile(r"[^\w-]+")


def build_command(state: ServerState, prompt: PromptDefinition) -> SlashCommand:
    """Build the slash command of a prompt, which sends the text that the server makes of it."""

    async def run(context: Any, words: str) -> TurnRequest:
        arguments = read_words(prompt, words)
        connection = await state.open()
        text = await connection.get_prompt(prompt.name, arguments)
        return await _build_request(context, text, words)

    name = f"{_clean(state.name)}:{_clean(prompt.name)}"
    about = " ".join(escape_controls(prompt.title or prompt.description).split())
    summary = about or f"Send the prompt {prompt.name!r} of {state.name}"
    return SlashCommand(name, summary, run, describe_arguments(prompt), in_run=True)


def _clean(name: str) -> str:
    return _OTHER_CHARACTER.sub("-", name).strip("-") or "prompt"


async def _build_request(context: SlashContext, text: str, words: str) -> TurnRequest:
    """Build the message. The text is the server's: only the words of the person name files elsewhere."""
    exchange = context.exchange
    outputs = exchange.session.outputs
    model = exchange.models.processor
    own_words = context.get_own_words(words)
    message, notes = await build_message(text, exchange.workspace, outputs, model, typed=own_words)
    for note in notes:
        context.show(note)
    return TurnRequest(message)


def describe_arguments(prompt: PromptDefinition) -> str:
    """Describe the arguments for `/help`: optional ones stand in brackets."""
    names = []
    for argument in prompt.arguments:
        name = escape_controls(argument.name).upper()
        names.append(name if argument.is_required else f"[{name}]")
    return " ".join(names)


def read_words(prompt: PromptDefinition, words: str) -> dict[str, str]:
    """Read the arguments of a prompt: words in order, or `name=value`. The last one takes all words that are left.

    Raises:
        UsageError: a required argument is missing, or there are too many words.
    """
    usage = f"/SERVER:{prompt.name} {describe_arguments(prompt)}".rstrip()
    given: dict[str, str] = {}
    names = [argument.name for argument in prompt.arguments]
    open_names = list(names)
    rest: list[str] = []
    for word in _split(words):
        name, equals, value = word.partition("=")
        if equals and name in names:
            given[name] = value
            open_names = [each for each in open_names if each != name]
        else:
            rest.append(word)
    if rest and not open_names:
        raise UsageError(f"too many words: {' '.join(rest)!r}; write: {usage}")
    for name in list(open_names):
        if not rest:
            break
        is_last = name == open_names[-1]
        given[name] = " ".join(rest) if is_last else rest[0]
        rest = [] if is_last else rest[1:]
    _check_required(prompt, given, usage)
    return given


def _split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError:  # an open quotation mark, as in "it's"
        return words.split()


def _check_required(prompt: PromptDefinition, given: Mapping[str, str], usage: str) -> None:
    for argument in prompt.arguments:
        if argument.is_required and argument.name not in given:
            about = f" ({argument.description})" if argument.description else ""
            raise UsageError(f"{argument.name} is missing{about}; write: {usage}")
