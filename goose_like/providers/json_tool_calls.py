"""Tool calls as JSON text, for models without native tool calls.

The system prompt describes the tools. Each answer is one call, `{"tool": NAME, "arguments": {...}}`; a call of `finish`
holds the answer to the user. The server gets the schema of this JSON and constrains the model to it. Answers of servers
that ignore the schema are parsed leniently. `xml_tool_calls.py` has another format of calls.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic_core import from_json

from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.json_schema import inline_reference
from goose_like.core.message import Message, Part, Text, Thinking, ToolCall, Usage
from goose_like.core.tool import ToolSpec

from .base import Delta, Request
from .openai_wire import OpenAIStreamParser
from .wire import is_json_object

FINISH = ToolSpec(
    name="finish",
    description="Ends the work with your answer to the user. Only when everything they asked for is done.",
    schema={"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
)


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call found in an answer. `arguments` is JSON text, and `value` the part of it that can be read so far."""

    before: str
    name: str
    arguments: str
    value: Any
    is_whole: bool


class CallFormat(Protocol):
    """A way to write calls as text."""

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        """Format the instructions for the model: the syntax of a call, and the tools."""
        ...

    def format_call(self, name: str, arguments: str) -> str:
        """Format a call exactly as the model writes it, so that the server's prompt cache matches."""
        ...

    def may_be_call(self, text: str) -> bool:
        """Check whether an answer with this beginning may be a call."""
        ...

    def parse_call(self, text: str) -> ParsedCall | None:
        """Parse the call in an answer, which may be incomplete. Return None until the answer names a tool."""


_RULES = """\
You work by calling tools. Each reply is one JSON object, {{"tool": NAME, "arguments": {{...}}}}; then you get its \
result. The tools:
{tools}"""

_OPENINGS = ('{"tool":', '```json{"tool":', '```{"tool":')
_CALL = re.compile(
    r"(?:```(?:json)?\s*|<tool_call>\s*)?\{\s*"
    r'(?:"tool"\s*:\s*"(?P<name>[^"\\]+)"\s*(?:,\s*"arguments"\s*:\s*)?'
    # The form that many models were trained on, where the server does not enforce ours.
    r'|"name"\s*:\s*"(?P<trained_name>[^"\\]+)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{))'
)


class JsonCallFormat:
    """The format of a call as one JSON object."""

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        """Format the instructions for the model: the syntax of a call, and the tools."""
        return _RULES.format(tools="\n".join(map(_describe_tool, tools)))

    def format_call(self, name: str, arguments: str) -> str:
        """Format a call exactly as the model writes it."""
        return f'{{"tool": {json.dumps(name)}, "arguments": {arguments or "{}"}}}'

    def may_be_call(self, text: str) -> bool:
        """Check whether an answer with this beginning may be a call."""
        start = "".join(text[:80].split())
        return any(start.startswith(opening) or opening.startswith(start) for opening in _OPENINGS)

    def parse_call(self, text: str) -> ParsedCall | None:
        """Parse the call in an answer, which may be incomplete. Return None until the answer names a tool."""
        match = _CALL.search(text)
        if match is None:
            return None
        arguments, value, is_whole = _parse_arguments(text[match.end() :])
        name = match["name"] or match["trained_name"]
        return ParsedCall(text[: match.start()].strip(), name, arguments, value, is_whole)


JSON_FORMAT: CallFormat = JsonCallFormat()


# --- requests


def convert_request(request: Request, call_format: CallFormat = JSON_FORMAT) -> Request:
    """Convert a request to plain text: describe the tools in the system prompt, and write calls and results as text.

    A request without tools keeps its system prompt, because it asks for a plain answer.
    """
    names: dict[str, str] = {}
    messages = []
    for message in request.messages:
        if message.role == "system" and not message.text:
            continue
        names.update((call.id, call.name) for call in message.tool_calls)  # a later call may reuse an id
        messages.append(_convert_message(call_format, message, names))
    system = request.system
    tools = request.all_tools
    if tools:
        rules = call_format.format_rules((*tools, FINISH))
        system = "\n\n".join(filter(None, (system, rules)))
    return replace(request, system=system, messages=messages, tools=(), added_tools=())


def build_answer_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """Build the JSON schema of an answer: a call of one of the tools or of `finish`."""
    calls = []
    for tool in (*tools, FINISH):
        arguments = build_argument_schema(tool)
        fields = {"tool": {"const": tool.name}, "arguments": arguments}
        calls.append(_build_object_schema(fields))
    return {"anyOf": calls}


def keep_required_arguments(tool: ToolSpec) -> ToolSpec:
    """Remove the optional arguments of a tool: small models fill in every argument that they see."""
    required = tool.schema.get("required", [])
    fields = {}
    for name, schema in tool.schema.get("properties", {}).items():
        if name in required:
            fields[name] = {key: value for key, value in schema.items() if key != "description"}
    return replace(tool, schema={**tool.schema, "properties": fields})


def _convert_message(call_format: CallFormat, message: Message, names: Mapping[str, str]) -> Message:
    """Convert a message to text parts. `names` are the tools of the calls by their ids."""
    if message.role == "user":
        return message
    if message.role == "system":
        return Message.user(message.text)
    if message.role == "tool":
        return _convert_results(message, names)
    if not message.tool_calls:
        answer = json.dumps({"answer": message.text}, ensure_ascii=False)
        return Message.assistant(call_format.format_call(FINISH.name, answer))
    lines = []
    if message.text:
        lines.append(message.text)
    for call in message.tool_calls:
        lines.append(call_format.format_call(call.name, call.arguments))
    return Message.assistant("\n".join(lines))


def _convert_results(message: Message, names: Mapping[str, str]) -> Message:
    texts = []
    for result in message.tool_results:
        name = names.get(result.call_id, "?")
        if result.is_error:
            texts.append(f"Error of {name}: {result.output}")
        else:
            texts.append(f"Result of {name}:\n{result.output}")
    text = Text(text="\n\n".join(texts))
    return Message(role="user", parts=(text, *message.images))


def _describe_tool(tool: ToolSpec) -> str:
    fields = _format_fields(build_argument_schema(tool))
    lines = [f"{tool.name}({fields}): {tool.description}"]
    for name, schema in tool.schema.get("properties", {}).items():
        description = schema.get("description")
        if description:
            lines.append(f"  {name}: {description}")
    return "\n".join(lines)


def _format_fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    fields = []
    for name, value in schema.get("properties", {}).items():
        mark = "" if name in required else "?"
        fields.append(f"{name}{mark}: {format_type(value)}")
    return ", ".join(fields)


def format_type(schema: Mapping[str, Any]) -> str:
    """Format the type of a JSON schema in a few characters, such as `string|null` or `[integer]`."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return "|".join(map(json.dumps, values))
    if "anyOf" in schema:
        return "|".join(map(format_type, schema["anyOf"]))
    if "items" in schema:
        return f"[{format_type(schema['items'])}]"
    if "properties" in schema:
        return f"{{{_format_fields(schema)}}}"
    return str(schema.get("type", "any"))


def build_argument_schema(tool: ToolSpec) -> dict[str, Any]:
    """Reduce the schema of a tool's arguments to the keywords that all engines of constrained output support."""
    return _reduce(tool.schema, dict(tool.schema))


def _reduce(schema: Any, root: dict[str, Any], parents: Sequence[str] = ()) -> dict[str, Any]:
    # The tool itself checks the constraints that are lost here.
    if not isinstance(schema, Mapping):  # `true` allows anything
        return {}
    if "$ref" in schema:
        # A recursive type becomes "anything", because no engine supports an infinite schema.
        name = str(schema["$ref"])
        if name in parents:
            return {}
        inlined = inline_reference(dict(schema), root)
        return _reduce(inlined, root, (*parents, name))
    reduced = {key: schema[key] for key in ("type", "const", "enum") if key in schema}
    if "items" in schema:
        reduced["items"] = _reduce(schema["items"], root, parents)
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        reduced["anyOf"] = [_reduce(choice, root, parents) for choice in choices]
    if "properties" in schema:
        fields = {name: _reduce(value, root, parents) for name, value in schema["properties"].items()}
        reduced |= _build_object_schema(fields, schema.get("required", ()))
    elif isinstance(schema.get("additionalProperties"), Mapping):
        reduced["additionalProperties"] = _reduce(schema["additionalProperties"], root, parents)
    return reduced


def _build_object_schema(fields: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    names = fields if required is None else required
    return {
        "type": "object",
        "properties": fields,
        "required": list(names),
        "additionalProperties": False,
    }


# --- answers


@dataclass(slots=True)
class TextCallParser:
    """A parser of the chunks of one answer with a call written as text."""

    _call_format: CallFormat = JSON_FORMAT
    _wire: OpenAIStreamParser = field(default_factory=OpenAIStreamParser)
    _text: str = ""
    _shown: str = ""

    @property
    def has_ended(self) -> bool:
        """See `StreamParser.has_ended`."""
        return self._wire.has_ended

    @property
    def usage(self) -> Usage:
        """See `StreamParser.usage`."""
        return self._wire.usage

    @property
    def hidden_text(self) -> str:
        """The text of a call so far; empty once a part of the answer is shown."""
        return "" if self._shown else self._text

    def feed(self, chunk: Mapping[str, Any] | str) -> list[Delta]:
        """Take a chunk and return the deltas to show: the text of a final answer, nothing of a tool call.

        Raises:
            ProviderError: The same errors as `OpenAIStreamParser.feed`.
        """
        deltas: list[Delta] = []
        for delta in self._wire.feed(chunk):
            if isinstance(delta, TextDelta):
                self._text += delta.text
            else:
                deltas.append(delta)
        visible = self._get_visible_text()
        new = visible[len(self._shown) :]
        if new:
            self._shown = visible
            deltas.append(TextDelta(text=new))
        return deltas

    def build_message(self) -> MessageCompleted:
        """Build the message after the last chunk, with one tool call or with text.

        Incomplete arguments stay as they are, so that the model gets an error about them.

        Raises:
            BrokenStreamError: The answer ended before it named a tool or had any text.
            ProviderError: The same errors as `OpenAIStreamParser.build_message`.
        """
        done = self._wire.build_message()
        text = done.message.text
        call = self._call_format.parse_call(text)
        if call is None:
            if text and self._call_format.may_be_call(text):
                raise BrokenStreamError("the answer ended before it named a tool", is_retryable=not done.is_cut)
            return done
        is_cut = done.is_cut and not call.is_whole
        parts: list[Part] = [part for part in done.message.parts if isinstance(part, Thinking)]
        if call.before:
            parts.append(Text(text=call.before))
        if call.name == FINISH.name:
            parts.append(Text(text=_extract_answer(call.value)))
        else:
            # A cut call must not run, even if its arguments are valid JSON so far.
            arguments = call.arguments
            if is_cut and is_json_object(arguments):
                arguments = arguments.rstrip()[:-1]
            parts.append(ToolCall(id="", name=call.name, arguments=arguments))
        message = Message(role="assistant", parts=tuple(parts))
        return done.model_copy(update={"message": message, "is_cut": is_cut})

    def _get_visible_text(self) -> str:
        if not self._call_format.may_be_call(self._text):
            return self._text
        call = self._call_format.parse_call(self._text)
        if call is None or call.name != FINISH.name:
            return ""
        return _extract_answer(call.value)


def _parse_arguments(text: str) -> tuple[str, Any, bool]:
    """Return the JSON value at the start of a text: its text, the value as far as it goes, and if it is complete."""
    if text.lstrip().startswith("}"):  # a call without arguments
        return "{}", {}, True
    if not text.strip():  # cut before its arguments
        return "{", None, False
    with suppress(ValueError, RecursionError):
        value, end = json.JSONDecoder().raw_decode(text)
        return text[:end], value, True
    try:
        return text, from_json(text, allow_partial="trailing-strings"), False
    except ValueError:
        return text, None, False


def _extract_answer(arguments: Any) -> str:
    answer = arguments or ""
    if isinstance(arguments, Mapping):
        answer = arguments.get("answer", "")
    # Replace half a character at the end, which could not be written as UTF-8.
    encoded = str(answer).encode("utf-16-le", "surrogatepass")
    return encoded.decode("utf-16-le", "replace")
