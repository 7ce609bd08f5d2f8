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
from goose_like.config.profile import Effort, PermissionLists
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
SHELL_PART = re.compile(r"(?<![\w`])!`([^`]+)`")
"""A command in a text, whose output takes its place."""
_MARK = "\x1a{}\x1a"


class _FrontMatter(FrozenModel):
    description: str = ""
    usage: str = ""
    argument_hint: str = Field(default="", alias="argument-hint")
    allowed_tools: ToolList = Field(default=(), alias="allowed-tools")
    model: str = ""
    effort: Effort | None = None


_KEYS = [field.alias or name for name, field in _FrontMatter.model_fields.items()]


def parse_command(name: str, file: Path, text: str, *, is_project: bool = False) -> tuple[SlashCommand, list[str]]:
    """Parse a Markdown file; return its command and sentences about keys that have no effect.

    The text of a project attaches only files of the workspace.

    Raises:
        GooseLikeError: the file cannot be a command.
    """
    front = _FrontMatter()
    unknown: list[str] = []
    source, body = split_front_matter(file, text, _KEYS)
    if source:
        data = source.data
        if isinstance(data, dict):
            unknown = [str(key) for key in data if key not in _KEYS]
            data = {key: data[key] for key in _KEYS if data.get(key) is not None}
        front = validate(_FrontMatter, data, source, "the front matter")
    body = body.strip()
    if not body:
        raise GooseLikeError(f"{file} is empty; write the message for the model")
    summary = front.description or body.partition("\n")[0].lstrip("# ")
    usage = front.usage or front.argument_hint
    if not usage and _PLACEHOLDER.search(body):
        usage = "[ARGUMENTS]"
    prompt = _Prompt(name, body, front.model, front.effort, front.allowed_tools, is_project)
    notes = [f"{file}: the key {key!r} has no effect{_suggest(key)}" for key in unknown]
    command = SlashCommand(
        name,
        summary,
        prompt.build,
        usage,
        source=str(file),
        in_run=True,
        runs_commands=prompt.has_commands,
    )
    return command, notes


def _suggest(key: str) -> str:
    near = find_nearest_name(key, _KEYS)
    return f"; did you mean {near!r}?" if near else ""


@dataclass(frozen=True, slots=True)
class _Prompt:
    """The text of a command and what holds for its turn."""

    name: str
    body: str
    model: str
    effort: Effort | None
    allowed_tools: tuple[str, ...]
    is_project: bool

    @property
    def has_commands(self) -> bool:
        """True if the text has commands."""
        return SHELL_PART.search(self.body) is not None

    def build(self, context: Any, words: str) -> str | Awaitable[TurnRequest]:
        """Return the message, or start the commands in it."""
        is_plain = not (self.model or self.effort or self.allowed_tools or self.is_project)
        if is_plain and not self.has_commands:
            return fill_arguments(self.body, words)
        return self._build_request(context, words)

    async def _build_request(self, context: SlashContext, words: str) -> TurnRequest:
        exchange = context.exchange
        workspace = exchange.workspace
        allow, notes = _list_rules(self.allowed_tools, exchange.tools.values(), workspace.root)
        commands: list[str] = []

        def take(match: re.Match[str]) -> str:
            commands.append(match[1])
            return _MARK.format(len(commands) - 1)

        has_placeholder = _PLACEHOLDER.search(self.body) is not None
        body = SHELL_PART.sub(take, self.body)
        text = _fill(body, words) if has_placeholder else fill_arguments(body, words)
        # Files are attached before the output comes in: only the person and the file name files.
        typed = None
        if self.is_project or not context.is_typed:
            typed = context.get_own_words(words)
        outputs = exchange.session.outputs
        message, more = await build_message(text, workspace, outputs, exchange.models.processor, typed=typed)
        for note in (*notes, *more):
            context.show(note)
        first, *others = message.parts
        async with workspace.limit_turn(allow):
            for index, command in enumerate(commands):
                file_name = f"{self.name}-{index + 1}".replace(":", "-")
                output = await _run_shell(context, command, words, file_name)
                text = text.replace(_MARK.format(index), output, 1)
        assert isinstance(first, Text)
        parts = (Text(text=text), *others)
        filled = message.model_copy(update={"parts": parts})
        return TurnRequest(filled, self.model, allow, effort=self.effort)


async def _run_shell(context: SlashContext, command: str, words: str, name: str) -> str:
    """Run a command in the sandbox, asked about like one of the model, and return its output for the model.

    The arguments reach it as those of a shell script, so that no argument can become a command.
    """
    exchange = context.exchange
    shown = command
    if words and _PLACEHOLDER.search(command):
        shown = f"{command}  # {to_one_line(words, 500)}"
    context.show(f"! {shown}")
    message_count = len(exchange.history.messages)
    file = exchange.session.outputs / f"command-{message_count}-{name}.txt"
    output = LimitedOutput(file, exchange.budget.limits.output_bytes)
    notes: list[str] = []
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
    text = output.format_for_model().rstrip("\n")
    return "\n".join([text, *notes])


_Rules = tuple[str, ...]


def _list_rules(entries: Sequence[str], tools: Collection[Tool], root: Path) -> tuple[_Rules, list[str]]:
    """Translate the `allowed-tools` of other agents into permission rules, and note the entries that give none.

    Tools that only read, and those that nobody here has, need no rule.
    """
    rules: list[str] = []
    notes: list[str] = []
    for entry in entries:
        try:
            rules += _make_rule(entry, tools, root)
        except ValueError:
            hint = "write Bash(COMMAND:*), or Edit(PATH) with a path of the workspace"
            notes.append(f"allowed-tools: {entry} allows nothing; {hint}")
    return tuple(rules), notes


def _make_rule(entry: str, tools: Collection[Tool], root: Path) -> list[str]:
    """Return the rule of an entry, if it needs one. Raise ValueError if it cannot be a rule."""
    parsed = parse_tool(entry)
    if not parsed:
        raise ValueError
    name, pattern = parsed
    tool = _find_tool(name, tools)
    if tool is None or tool.options.is_read_only(name):
        return []
    if tool.options.rule_topic == "command":
        rule = make_command_rule(pattern)
        return list(PermissionLists(allow=(rule,)).allow)
    if tool.options.rule_topic == "path":
        return [make_path_rule(pattern, root)]
    return []


def _find_tool(name: str, tools: Collection[Tool]) -> Tool | None:
    """Find the tool of a name, also of one that other agents use for it."""
    for tool in tools:
        if tool.name == name or tool.options.has_alias(name):
            return tool
    return None


def _split_words(words: str) -> list[str]:
    split = []
    for match in _ARGUMENT.finditer(words):
        # Only the group of the quotes that the word has is filled; an empty word fills none.
        split.append(next(filter(None, match.groups()), ""))
    return split


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
        argument = ""
        if number <= len(arguments):
            argument = arguments[number - 1]
        return argument or placeholder["default"] or ""

    return _PLACEHOLDER.sub(fill, body)
