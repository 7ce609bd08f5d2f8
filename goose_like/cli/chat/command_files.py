"""Slash commands from Markdown files, also from those written for other agents.

The command of a file sends the text of the file, with the arguments and the output of its commands filled in.
"""

import asyncio
import re
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from goose_like.agent.mentions import build_message
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.front_matter import split_front_matter
from goose_like.config.profile import PermissionLists
from goose_like.config.tool_list import ToolList, make_command_rule, make_path_rule, parse_tool
from goose_like.config.yaml_source import validate
from goose_like.core.errors import GooseLikeError
from goose_like.core.message import FrozenModel, Text
from goose_like.core.spelling import find_nearest_name
from goose_like.core.tool import Tool
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.terminal.escape import to_one_line
from goose_like.workspace.processes.process import MAX_OUTPUT_BYTES

_TIMEOUT_S = 120
_STOP_GRACE_S = 0.07

_ARGUMENT = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_PLACEHOLDER = re.compile(
    r"\$(?:(?P<all>ARGUMENTS)\b|(?P<bare>[1-9])(?!\d)|\{(?P<number>[1-9])(?::-(?P<default>[^}]*))?\})"
)
_SHELL = re.compile(r"(?<![\w`])!`([^`]+)`")
_MARK = "\x1a{}\x1a"


class _FrontMatter(FrozenModel):
    description: str = ""
    usage: str = ""
    argument_hint: str = Field(default="", alias="argument-hint")
    allowed_tools: ToolList = Field(default=(), alias="allowed-tools")
    model: str = ""


_KEYS = [field.alias or name for name, field in _FrontMatter.model_fields.items()]


def parse_command(name: str, file: Path, text: str, *, is_project: bool = False) -> tuple[SlashCommand, list[str]]:
    """Parse a Markdown file; return its command and sentences about keys that have no effect.

    The text of a project attaches only files of the workspace.

    Raises:
        GooseLikeError: the file cannot be a command.
    """
    front, unknown = _FrontMatter(), list[str]()
    source, body = split_front_matter(file, text, _KEYS)
    if source:
        data = source.data
        if isinstance(data, dict):
            unknown = [str(key) for key in data if key not in _KEYS]
            data = {key: value for key, value in data.items() if key in _KEYS and value is not None}
        front = validate(_FrontMatter, data, source, "the front matter")
    body = body.strip()
    if not body:
        raise GooseLikeError(f"{file} is empty; write the message for the model")
    summary = front.description or body.partition("\n")[0].lstrip("# ")
    usage = front.usage or front.argument_hint or ("[ARGUMENTS]" if _PLACEHOLDER.search(body) else "")
    prompt = _Prompt(name, body, front.model, front.allowed_tools, is_project)
    notes = [f"{file}: the key {key!r} has no effect{_suggest(key)}" for key in unknown]
    return SlashCommand(name, summary, prompt.build, usage, source=str(file), in_run=True), notes


def _suggest(key: str) -> str:
    return f"; did you mean {near!r}?" if (near := find_nearest_name(key, _KEYS)) else ""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The text of a command and what holds for its turn."""

    name: str
    body: str
    model: str
    allowed_tools: tuple[str, ...]
    is_project: bool

    def build(self, context: Any, words: str) -> str | Awaitable[TurnRequest]:
        """Return the message, or start the commands in it."""
        if not (self.model or self.allowed_tools or self.is_project or _SHELL.search(self.body)):
            return fill_arguments(self.body, words)
        return self._build_request(context, words)

    async def _build_request(self, context: SlashContext, words: str) -> TurnRequest:
        exchange, workspace = context.exchange, context.exchange.workspace
        allow, notes = _list_rules(self.allowed_tools, exchange.tools.values(), workspace.root)
        commands = list[str]()

        def take(match: re.Match[str]) -> str:
            commands.append(match[1])
            return _MARK.format(len(commands) - 1)

        has_placeholder = _PLACEHOLDER.search(self.body) is not None
        body = _SHELL.sub(take, self.body)
        text = _fill(body, words) if has_placeholder else fill_arguments(body, words)
        # Files are attached before the output comes in: only the person and the file name files.
        typed = words if self.is_project else None
        message, more = build_message(text, workspace, exchange.session.outputs, exchange.models.processor, typed=typed)
        for note in (*notes, *more):
            context.show(note)
        first, *others = message.parts
        async with workspace.limit_turn(allow):
            for index, command in enumerate(commands):
                output = await _run_shell(context, command, words, f"{self.name.replace(':', '-')}-{index + 1}")
                text = text.replace(_MARK.format(index), output, 1)
        assert isinstance(first, Text)
        parts = (Text(text=text), *others)
        return TurnRequest(message.model_copy(update={"parts": parts}), self.model, allow)


async def _run_shell(context: SlashContext, command: str, words: str, name: str) -> str:
    """Run a command in the sandbox, asked about like one of the model, and return its output for the model.

    The arguments reach it as those of a shell script, so that no argument can become a command.
    """
    exchange = context.exchange
    shown = f"{command}  # {to_one_line(words, 500)}" if words and _PLACEHOLDER.search(command) else command
    context.show(f"! {shown}")
    file = exchange.session.outputs / f"command-{len(exchange.history.messages)}-{name}.txt"
    output, notes = LimitedOutput(file, exchange.limits.values.output_bytes), list[str]()
    argv = ["bash", "-c", command, "bash", *_split_words(words)]
    process = await exchange.workspace.spawn(argv, env={"ARGUMENTS": words}, subject=shown)
    try:
        async with asyncio.timeout(_TIMEOUT_S) as limit:
            with exchange.workspace.pause_for_questions(limit):
                if not await process.read_all(output.write, MAX_OUTPUT_BYTES):
                    notes.append(f"[stopped after {MAX_OUTPUT_BYTES:,} bytes]")
                elif code := await process.wait():
                    notes.append(f"[exit code {code}]")
    except TimeoutError:
        notes.append(f"[stopped after {_TIMEOUT_S} s]")
    finally:
        await asyncio.shield(process.stop(_STOP_GRACE_S))
        output.close()
    notes += [f"[{note}]" for note in await exchange.workspace.inspect_changes()]
    for note in notes:
        context.show(note)
    return "\n".join([output.format_for_model().rstrip("\n"), *notes])


def _list_rules(entries: Sequence[str], tools: Collection[Tool], root: Path) -> tuple[tuple[str, ...], list[str]]:
    """Translate the `allowed-tools` of other agents into permission rules, and note the entries that give none.

    Tools that only read, and those that nobody here has, need no rule.
    """
    rules, notes = list[str](), list[str]()
    for entry in entries:
        try:
            rules += _make_rule(entry, tools, root)
        except ValueError:
            hint = "write Bash(COMMAND:*), or Edit(PATH) with a path of the workspace"
            notes.append(f"allowed-tools: {entry} allows nothing; {hint}")
    return tuple(rules), notes


def _make_rule(entry: str, tools: Collection[Tool], root: Path) -> list[str]:
    """Return the rule of an entry, if it needs one. Raise ValueError if it cannot be a rule."""
    if not (parsed := parse_tool(entry)):
        raise ValueError
    name, pattern = parsed
    tool = next((tool for tool in tools if tool.name == name or tool.options.has_alias(name)), None)
    if tool is None or tool.options.is_read_only(name):
        return []
    if tool.name == "shell":
        return list(PermissionLists(allow=(make_command_rule(pattern),)).allow)
    return [make_path_rule(pattern, root)] if tool.name in ("patch_file", "write_file") else []


def _split_words(words: str) -> list[str]:
    return [next(filter(None, match.groups()), "") for match in _ARGUMENT.finditer(words)]


def fill_arguments(body: str, words: str) -> str:
    """Replace `$ARGUMENTS`, `$1` to `$9` and `${1:-default}` in a text; without any of these, append the words."""
    if _PLACEHOLDER.search(body):
        return _fill(body, words)
    return f"{body}\n\n{words}" if words else body


def _fill(body: str, words: str) -> str:
    arguments = _split_words(words)

    def fill(placeholder: re.Match[str]) -> str:
        if placeholder["all"]:
            return words
        number = int(placeholder["bare"] or placeholder["number"])
        argument = arguments[number - 1] if number <= len(arguments) else ""
        return argument or placeholder["default"] or ""

    return _PLACEHOLDER.sub(fill, body)
