"""Tool calls for models that have none of their own: told in the system prompt, answered as text of a set form.

Each answer is one call; that of `finish` is the answer to the person. The form is JSON, `{"tool": NAME, "arguments":
{...}}`, whose schema is given to the server: it lets the model write nothing else. Where it does not, what comes is
read leniently. Another form is in `tagged.py`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from pydantic_core import from_json

from goose_like.core.errors import BrokenStreamError
from goose_like.core.events import MessageCompleted, TextDelta
from goose_like.core.message import Message, Part, Text, Thinking, ToolCall
from goose_like.core.tool import ToolSpec

from .base import Delta, Request
from .openai_wire import OpenAIStreamParser

FINISH = ToolSpec(
    name="finish",
    description="Ends the work with your answer to the user. Only when everything they asked for is done.",
    schema={
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
    },
)


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call as it was found in an answer: `arguments` as JSON text, and what of it could be read so far."""

    before: str
    name: str
    arguments: str
    value: Any
    is_whole: bool


class CallFormat(Protocol):
    """How calls are written as text."""

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        """What the model is told: how to write a call, and the tools."""

    def format_call(self, name: str, arguments: str) -> str:
        """A call as the model writes it: byte for byte, so that the server's prompt cache knows it again."""

    def __hash__(self) -> int:
        """What was written in a form is kept by it."""

    def may_be_call(self, text: str) -> bool:
        """Whether an answer that begins so may be a call."""

    def parse_call(self, text: str) -> ParsedCall | None:
        """The call in an answer, or in as much of it as came; None as long as no tool is named."""


_RULES = """\
You work by calling tools. Each reply is one JSON object, {{"tool": NAME, "arguments": {{...}}}}; then you get its \
result. The tools:
{tools}"""


# --- what we send


def convert_request(request: Request, form: CallFormat | None = None) -> Request:
    """The request in plain text: tools told in the system prompt, calls and results as words.

    A message gives the same object each time, so that what is cached by identity further on stays cached. Without
    tools the system prompt stays as it is: a plain answer is wanted.
    """
    form = form or JSON_FORMAT
    names: dict[str, str] = {}
    messages = []
    for message in request.messages:
        names.update((call.id, call.name) for call in message.tool_calls)
        messages.append(_plain(form, message, tuple(names.get(result.call_id, "?") for result in message.tool_results)))
    system = request.system
    if request.tools:
        rules = form.format_rules((*request.tools, FINISH))
        system = f"{system}\n\n{rules}" if system else rules
    return replace(request, system=system, messages=messages, tools=())


def build_answer_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of every answer: a call of one of the tools, or `finish`."""
    return {
        "anyOf": [
            _object({"tool": {"const": tool.name}, "arguments": simplify_schema(tool)}) for tool in (*tools, FINISH)
        ]
    }


def keep_required_arguments(tool: ToolSpec) -> ToolSpec:
    """The tool with nothing but the arguments it needs, for small models: what they are told of, they fill in."""
    required = tool.schema.get("required", [])
    fields = {
        name: {key: value for key, value in schema.items() if key != "description"}
        for name, schema in tool.schema.get("properties", {}).items()
        if name in required
    }
    return replace(tool, schema={**tool.schema, "properties": fields})


@lru_cache(maxsize=4096)
def _plain(form: CallFormat, message: Message, names: tuple[str, ...]) -> Message:
    """A message in text parts; `names` are the tools of its results."""
    if message.role == "user":
        return message
    if message.role == "tool":
        told = (
            f"Error of {name}: {result.output}" if result.is_error else f"Result of {name}:\n{result.output}"
            for name, result in zip(names, message.tool_results, strict=True)
        )
        return Message(role="user", parts=(Text(text="\n\n".join(told)), *message.images))
    calls = [form.format_call(call.name, call.arguments) for call in message.tool_calls]
    if not calls:
        return Message.assistant(
            form.format_call(FINISH.name, json.dumps({"answer": message.text}, ensure_ascii=False))
        )
    return Message.assistant("\n".join([message.text, *calls] if message.text else calls))


def _described(tool: ToolSpec) -> str:
    schema = simplify_schema(tool)
    lines = [f"{tool.name}({_fields(schema)}): {tool.description}"]
    for name, argument in tool.schema.get("properties", {}).items():
        if argument.get("description"):
            lines.append(f"  {name}: {argument['description']}")
    return "\n".join(lines)


def _fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {_type(value)}"
        for name, value in schema.get("properties", {}).items()
    )


def _type(schema: Mapping[str, Any]) -> str:
    if "const" in schema or "enum" in schema:
        return "|".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return "|".join(map(_type, schema["anyOf"]))
    if "items" in schema:
        return f"[{_type(schema['items'])}]"
    if "properties" in schema:
        return f"{{{_fields(schema)}}}"
    return str(schema.get("type", "any"))


def simplify_schema(tool: ToolSpec) -> dict[str, Any]:
    """The schema of a tool's arguments in the few words that every engine of constrained output knows."""
    return _bare(tool.schema, tool.schema.get("$defs", {}))


def _bare(schema: Any, definitions: Mapping[str, Any], above: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is lost of it, the tool checks."""
    if not isinstance(schema, Mapping):  # `true`: anything
        return {}
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        # Within itself a type becomes "anything": no engine has an endless schema.
        return {} if name in above else _bare(definitions.get(name), definitions, (*above, name))
    bare = {key: schema[key] for key in ("type", "const", "enum") if key in schema}
    if "items" in schema:
        bare["items"] = _bare(schema["items"], definitions, above)
    if choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        bare["anyOf"] = [_bare(choice, definitions, above) for choice in choices]
    if "properties" in schema:
        fields = {name: _bare(value, definitions, above) for name, value in schema["properties"].items()}
        bare |= _object(fields, schema.get("required", ()))
    elif isinstance(schema.get("additionalProperties"), Mapping):
        bare["additionalProperties"] = _bare(schema["additionalProperties"], definitions, above)
    return bare


def _object(fields: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    names = list(fields if required is None else required)
    return {"type": "object", "properties": fields, "required": names, "additionalProperties": False}


# --- what we receive

_OPENINGS = ('{"tool":', '```json{"tool":', '```{"tool":')
_CALL = re.compile(r'(?:```(?:json)?\s*)?\{\s*"tool"\s*:\s*"(?P<name>[^"\\]+)"\s*(?:,\s*"arguments"\s*:\s*)?')


class JsonCallFormat:
    """A call as one JSON object."""

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        return _RULES.format(tools="\n".join(map(_described, tools)))

    def format_call(self, name: str, arguments: str) -> str:
        return f'{{"tool": {json.dumps(name)}, "arguments": {arguments or "{}"}}}'

    def may_be_call(self, text: str) -> bool:
        start = "".join(text[:80].split())
        return any(start.startswith(opening) or opening.startswith(start) for opening in _OPENINGS)

    def parse_call(self, text: str) -> ParsedCall | None:
        found = _CALL.search(text)
        if found is None:
            return None
        arguments, value, is_whole = _read_arguments(text[found.end() :])
        return ParsedCall(text[: found.start()].strip(), found["name"], arguments, value, is_whole)


JSON_FORMAT: CallFormat = JsonCallFormat()


@dataclass(slots=True)
class TextCallParser:
    """The chunks of one answer in a form, folded into deltas and then into the message."""

    _form: CallFormat = JSON_FORMAT
    _wire: OpenAIStreamParser = field(default_factory=OpenAIStreamParser)
    _text: str = ""
    _shown: str = ""

    def feed(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """What is new to show after this chunk: of a final answer its words, of a tool call nothing yet.

        Raises:
            ProviderError: as `Fold.feed`.
        """
        deltas: list[Delta] = []
        for delta in self._wire.feed(chunk):
            if isinstance(delta, TextDelta):
                self._text += delta.text
            else:
                deltas.append(delta)
        visible = self._visible()
        if new := visible[len(self._shown) :]:
            self._shown = visible
            deltas.append(TextDelta(text=new))
        return deltas

    def build_message(self) -> MessageCompleted:
        """The message, once the stream has ended: with one tool call, or with text.

        Arguments that broke off are given as they came, so that the model can be told.

        Raises:
            BrokenStreamError: the answer ended before it named a tool or said anything.
            ProviderError: as `Fold.result`.
        """
        done = self._wire.build_message()
        text = done.message.text
        found = self._form.parse_call(text)
        if found is None:
            if text and self._form.may_be_call(text):
                raise BrokenStreamError("the answer ended before it named a tool", is_retryable=not done.is_cut)
            return done
        parts: list[Part] = [part for part in done.message.parts if isinstance(part, Thinking)]
        if found.before:
            parts.append(Text(text=found.before))
        if found.name == FINISH.name:
            parts.append(Text(text=_answer(found.value)))
        else:
            # A cut call must not run, even if what came of it can be read.
            is_half = done.is_cut and not found.is_whole and is_json(found.arguments)
            arguments = found.arguments.rstrip()[:-1] if is_half else found.arguments
            parts.append(ToolCall(id="", name=found.name, arguments=arguments))
        message = Message(role="assistant", parts=tuple(parts))
        return done.model_copy(update={"message": message, "is_cut": done.is_cut and not found.is_whole})

    def _visible(self) -> str:
        """What of the answer so far is for a person."""
        if not self._form.may_be_call(self._text):
            return self._text
        found = self._form.parse_call(self._text)
        return _answer(found.value) if found and found.name == FINISH.name else ""


def is_json(text: str) -> bool:
    """Whether a tool could read it."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read_arguments(text: str) -> tuple[str, Any, bool]:
    """The text of the JSON value that `text` begins with, the value or as much as came of it, and whether all came."""
    if text.lstrip().startswith("}"):  # a call without any
        return "{}", {}, True
    if not text.strip():  # cut before them
        return "{", None, False
    try:
        value, end = json.JSONDecoder().raw_decode(text)
        return text[:end], value, True
    except (ValueError, RecursionError):
        pass
    try:
        return text, from_json(text, allow_partial="trailing-strings"), False
    except ValueError:
        return text, None, False


def _answer(arguments: Any) -> str:
    """The words of `finish`. A character of which only half came is replaced: it could not be written as UTF-8."""
    answer = arguments.get("answer", "") if isinstance(arguments, Mapping) else arguments or ""
    return str(answer).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
