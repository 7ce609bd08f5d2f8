"""Tool calls as XML tags for the smallest models: the last argument stands unescaped between the tags.

    <write_file path="hello.py">
    print("hello")
    </write_file>

Code in a JSON string is full of escapes. Models of a billion parameters have seen little of that and make more
mistakes in it (figures: docs/decisions/0017). A grammar constrains the engine to the opening tag, and the closing tag
stops the engine; the text between them is free.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from pydantic_core import from_json

from goose_like.core.example import Example
from goose_like.core.message import Message, Text, ToolCall, ToolResult
from goose_like.core.tool import ToolSpec

from .json_tool_calls import FINISH, ParsedCall, build_argument_schema

_RULES = """\
Each reply is one of these; then you get its result and reply again.{more}

{tools}"""
_READ_ONLY_RULE = " Answer a question without changing a file."

_KINDS = ("string", "number", "integer", "boolean", "null", "array", "object")
_RULES_OF_VALUES = r"""
anything ::= .*
value ::= string | number | boolean | null | array | object
array ::= "[" (value ("," " "? value)*)? "]"
object ::= "{" (member ("," " "? member)*)? "}"
member ::= string ":" " "? value
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= integer ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
integer ::= "-"? ("0" | [1-9] [0-9]*)
boolean ::= "true" | "false"
null ::= "null"
""".strip()

_NAME = re.compile(r"\s*<([\w-]+)(?=[ >])")
_ATTRIBUTE = re.compile(r" ([\w-]+)=")
_TASK_CHARACTERS = 500
_JSON = json.JSONDecoder()


def select_examples(candidates: Sequence[Sequence[Example]], tools: Sequence[ToolSpec]) -> tuple[Message, ...]:
    """Return the first examples that call only tools of the request, as a conversation."""
    names = {tool.name for tool in tools}
    for examples in candidates:
        if not all(_calls_only(example, names) for example in examples):
            continue
        conversation: list[Message] = []
        for example in examples:
            conversation += _build_conversation(example)
        return tuple(conversation)
    return ()


def _calls_only(example: Example, names: Set[str]) -> bool:
    """Return whether an example calls only tools with these names."""
    return all(call.tool in names for call in example.calls)


def _build_conversation(example: Example) -> Iterator[Message]:
    yield Message.user(example.task)
    for done in example.calls:
        arguments = json.dumps(dict(done.arguments))
        call = ToolCall(id=done.tool, name=done.tool, arguments=arguments)
        yield Message.assistant("", (call,))
        result = ToolResult(call_id=done.tool, output=done.output)
        yield Message(role="tool", parts=(result,))
    yield Message.assistant(example.answer)


def repeat_task(messages: Sequence[Message], *, has_examples: bool) -> list[Message]:
    """Repeat the user's task at the end of the newest tool result or reminder: the smallest models forget it.

    Only the newest text has the line, so that the engine's cache covers all of the previous request but this line.
    Without examples, which end with an answer, the model would obey a task that names a tool again and again.
    """
    tasks = [message.first_text for message in messages if message.role == "user"]
    *earlier, last = messages
    if not tasks:
        return [*messages]
    task = " ".join(tasks[-1].split())[:_TASK_CHARACTERS]
    line = f"\n\n(The task: {task})"
    if last.role == "system":
        return [*earlier, Message(role="system", parts=(Text(text=last.text + line),))]
    if not last.tool_results:
        return [*messages]
    *others, newest = last.tool_results
    output = newest.output + line
    if not has_examples:
        output += "\n(If this result has the answer, reply with finish.)"
    extended = newest.model_copy(update={"output": output})
    results = (*others, extended)
    return [*earlier, last.model_copy(update={"parts": results})]


def build_grammar(tools: Sequence[ToolSpec]) -> str:
    """Build llama.cpp's grammar (GBNF): the tag of a tool or of `finish`, then any text.

    A tool with an argument that has no possible value stays in the prompt, and the model cannot call it.
    """
    with_body = []
    without_body = []
    for tool in (*tools, FINISH):
        properties = build_argument_schema(tool).get("properties", {})
        if any(schema.get("enum") == [] for schema in properties.values()):
            continue
        body_argument = _find_body_argument(tool)
        tag = [json.dumps(f"<{tool.name}")]
        for name, schema in properties.items():
            if name != body_argument:
                tag += [json.dumps(f" {name}="), _format_rule(schema)]
        if body_argument:
            tag += [r'">\n"', "anything"]
            with_body.append(" ".join(tag))
        else:
            tag.append(json.dumps(f"></{tool.name}>"))
            without_body.append(" ".join(tag))
    calls = " | ".join(with_body + without_body)
    return f"root ::= {calls}\n{_RULES_OF_VALUES}"


def _format_rule(schema: Mapping[str, Any]) -> str:
    """Format the rule of a value in JSON. Its parts may be anything: the tool itself checks them."""
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        texts = [json.dumps(value, ensure_ascii=False) for value in values]
        return f"({' | '.join(json.dumps(text, ensure_ascii=False) for text in texts)})"
    if "anyOf" in schema:
        return f"({' | '.join(map(_format_rule, schema['anyOf']))})"
    kind = schema.get("type")
    return kind if kind in _KINDS else "value"


def build_answer_grammar(schema: Mapping[str, Any]) -> str:
    """Build the engine's grammar of an answer in JSON. This dialect knows limits and patterns; GBNF ignores most."""
    # Lenient: it ignores what it does not know. Otherwise the engine would silently drop the whole grammar.
    options = {"lenient": True, "whitespace_flexible": False}
    text = json.dumps({"x-guidance": options, **schema})
    return f"%llguidance {{}}\nstart: %json {text}"


def list_stop_texts(tools: Sequence[ToolSpec]) -> list[str]:
    """List the texts that end an answer. The engine removes them from the answer."""
    return [f"</{tool.name}>" for tool in (*tools, FINISH)]


def _find_body_argument(tool: ToolSpec) -> str:
    """Return the name of the argument between the tags: the last one if it is any text, else an empty name."""
    properties = build_argument_schema(tool).get("properties", {})
    if not properties:
        return ""
    last, schema = list(properties.items())[-1]
    is_any_text = schema.get("type") == "string" and "enum" not in schema
    return last if is_any_text else ""


class XmlCallFormat:
    """The format of a call as an XML tag.

    A text of one line between the tags has no line end; each of several lines has one.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Create the format for these tools, whose arguments are all required; see `keep_required_arguments`."""
        self._body_arguments = {tool.name: _find_body_argument(tool) for tool in (*tools, FINISH)}
        self._can_write_files = any(tool.has_long_arguments for tool in tools)

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        """Format the instructions for the model: the syntax of a call, and the tools."""
        more = _READ_ONLY_RULE if self._can_write_files else ""
        descriptions = "\n\n".join(map(_describe_tool, tools))
        return _RULES.format(more=more, tools=descriptions)

    def format_call(self, name: str, arguments: str) -> str:
        """Format a call exactly as the model writes it."""
        try:
            values: Any = from_json(arguments or "{}", allow_partial="trailing-strings")  # a cut call is incomplete
        except ValueError:
            values = None
        if not isinstance(values, dict):  # invalid: keep it as it is
            return f"<{name}{arguments}"
        body = values.pop(self._body_arguments.get(name, ""), None)
        tag = name
        for field, value in values.items():
            encoded = json.dumps(value, ensure_ascii=False)
            tag += f" {field}={encoded}"
        if body is None:
            return f"<{tag}></{name}>"
        text = body if isinstance(body, str) else json.dumps(body)
        line_end = "" if text.endswith("\n") else "\n"
        return f"<{tag}>\n{text}{line_end}</{name}>"

    def may_be_call(self, text: str) -> bool:
        """Check whether an answer with this beginning may be a call."""
        return re.match(r"\s*(<[\w-]|<?$)", text) is not None

    def parse_call(self, text: str) -> ParsedCall | None:
        """Parse the call in an answer, which may be incomplete. Return None until the answer names a tool."""
        match = _NAME.match(text)
        if match is None:
            return None
        name = match[1]
        values, at = _read_attributes(text, match.end())
        if not text.startswith(">", at):
            return ParsedCall("", name, text[match.end() :], None, is_whole=False)
        rest = text[at + 1 :].removeprefix("\n")
        body, end, _ = rest.partition(f"</{name}>")
        body_argument = self._body_arguments.get(name)
        if body_argument:
            is_one_line = body.find("\n") == len(body) - 1
            values[body_argument] = body[:-1] if is_one_line else body
        arguments = json.dumps(values, ensure_ascii=False)
        return ParsedCall("", name, arguments, values, is_whole=bool(end))


def _read_attributes(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Read the attributes of a tag at a place, and return the place behind those that can be read."""
    values: dict[str, Any] = {}
    while attribute := _ATTRIBUTE.match(text, at):
        try:
            values[attribute[1]], at = _JSON.raw_decode(text, attribute.end())
        except (ValueError, RecursionError):
            break
    return values, at


def _describe_tool(tool: ToolSpec) -> str:
    body_argument = _find_body_argument(tool)
    tag = tool.name
    for name in tool.schema.get("properties", {}):
        if name != body_argument:
            tag += f' {name}="..."'
    body = f"\nthe {body_argument}\n" if body_argument else ""
    return f"{tool.description}\n<{tag}>{body}</{tool.name}>"
