"""The form of calls for the smallest models: a tag, and between it and its end the last argument as it is.

    <write_file path="hello.py">
    print("hello")
    </write_file>

Code between JSON's quotes is full of `\\n` and `\\"`; models of a billion parameters have hardly read such, and make
more mistakes in it (figures: ARCHITECTURE.md). A grammar holds the engine to the tag, and the tag's end stops it; what
stands between them is free.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.core.tool import ToolSpec

from .json_tool_calls import FINISH, ParsedCall, simplify_schema

_RULES = """\
Each reply is one of these; then you get its result and reply again.

{tools}"""

_NAME = re.compile(r"\s*<([\w-]+)(?=[ >])")
_ATTRIBUTE = re.compile(r" ([\w-]+)=")
_TASK_CHARACTERS = 500
_JSON = json.JSONDecoder()


def _told(name: str, output: str, **arguments: str) -> tuple[Message, Message]:
    call = ToolCall(id=name, name=name, arguments=json.dumps(arguments))
    return Message.assistant("", (call,)), Message(role="tool", parts=(ToolResult(call_id=name, output=output),))


# What the smallest models follow more than any rule: how work goes from a look at things to an answer.
_EXAMPLES = (
    Message.user("bill.py prints a wrong total. Fix it."),
    *_told("shell", "prices = [3, 4]\nprint(sum(prices) + 1)\n8", command="cat bill.py && python bill.py"),
    *_told(
        "write_file", "saved bill.py (+1 -1 lines)", path="bill.py", content="prices = [3, 4]\nprint(sum(prices))\n"
    ),
    *_told("shell", "7", command="python bill.py"),
    Message.assistant("bill.py added 1 to the sum. I took it out; now it prints 7."),
    Message.user("What is the highest price in menu.csv?"),
    *_told("shell", "dish,price\nsoup,4\nfish,11\nrice,3", command="cat menu.csv"),
    *_told("shell", "11", command="tail -n +2 menu.csv | cut -d, -f2 | sort -n | tail -n 1"),
    Message.assistant("The highest price in menu.csv is 11."),
)


def select_examples(tools: Sequence[ToolSpec]) -> tuple[Message, ...]:
    """Two small tasks as they are done, if these tools are there to do them."""
    names = {call.name for message in _EXAMPLES for call in message.tool_calls}
    return _EXAMPLES if names <= {tool.name for tool in tools} else ()


def repeat_task(messages: Sequence[Message]) -> list[Message]:
    """The messages, and at the end of a tool's result what the person asked for: the smallest models forget it.

    Only in the newest result, so that the engine has read all of the former request but this line.
    """
    asked = [message.first_text for message in messages if message.role == "user"]
    *former, last = messages
    if not asked or not last.tool_results:
        return [*messages]
    *others, newest = last.tool_results
    task = " ".join(asked[-1].split())[:_TASK_CHARACTERS]
    told = newest.model_copy(update={"output": f"{newest.output}\n\n(The task: {task})"})
    return [*former, last.model_copy(update={"parts": (*others, told)})]


def build_grammar(tools: Sequence[ToolSpec]) -> str:
    """What the engine may write, in llguidance's kind of Lark: the tag of a tool or of `finish`, then anything."""
    bodied, bare_ = [], []
    for tool in (*tools, FINISH):
        properties = _arguments(tool)
        fields = [name for name in properties if name != _body(tool)]
        tag = [json.dumps(f"<{tool.name}")]
        tag += [f"{json.dumps(f' {name}=')} %json {json.dumps(properties[name])}" for name in fields]
        if _body(tool):
            bodied.append(" ".join([*tag, r'">\n"', "ANYTHING"]))
        else:
            bare_.append(" ".join([*tag, json.dumps(f"></{tool.name}>")]))
    return "\n".join(["%llguidance {}", f"start: {' | '.join(bodied + bare_)}", r"ANYTHING: /(.|\n)*/"])


def list_stop_texts(tools: Sequence[ToolSpec]) -> list[str]:
    """What ends a reply; the engine leaves it out."""
    return [f"</{tool.name}>" for tool in (*tools, FINISH)]


def _body(tool: ToolSpec) -> str:
    """The argument that stands between the tags: the last one, if it is a text."""
    name, schema = next(reversed(_arguments(tool).items()), ("", {}))
    return name if schema.get("type") == "string" else ""


def _arguments(tool: ToolSpec) -> dict[str, dict[str, Any]]:
    arguments: dict[str, dict[str, Any]] = simplify_schema(tool).get("properties", {})
    return arguments


@dataclass(frozen=True, slots=True)
class XmlCallFormat:
    """Calls as tags; a text of one line between them is that line, and of several each has its end."""

    bodies: tuple[tuple[str, str], ...]

    @classmethod
    def for_tools(cls, tools: Sequence[ToolSpec]) -> "XmlCallFormat":
        """The form for these tools, with all their arguments required (see `brief`)."""
        return cls(tuple((tool.name, _body(tool)) for tool in (*tools, FINISH)))

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        return _RULES.format(tools="\n\n".join(map(_described, tools)))

    def format_call(self, name: str, arguments: str) -> str:
        try:
            values: Any = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):  # cut or broken: as it came
            return f"<{name}{arguments}"
        bodies = dict(self.bodies)
        body = values.pop(bodies.get(name, ""), None)
        attributes = "".join(f" {field}={json.dumps(value, ensure_ascii=False)}" for field, value in values.items())
        if body is None:
            return f"<{name}{attributes}></{name}>"
        text = body if isinstance(body, str) else json.dumps(body)
        return f"<{name}{attributes}>\n{text}{'' if text.endswith(_LINE_END) else _LINE_END}</{name}>"

    def may_be_call(self, text: str) -> bool:
        return re.match(r"\s*(<[\w-]|<?$)", text) is not None

    def parse_call(self, text: str) -> ParsedCall | None:
        found = _NAME.match(text)
        if found is None:
            return None
        name, at = found[1], found.end()
        values: dict[str, Any] = {}
        while attribute := _ATTRIBUTE.match(text, at):
            try:
                values[attribute[1]], at = _JSON.raw_decode(text, attribute.end())
            except (ValueError, RecursionError):
                break
        if text[at : at + 1] != ">":
            return ParsedCall("", name, text[found.end() :], None, is_whole=False)
        body, end, _ = text[at + 1 :].removeprefix("\n").partition(f"</{name}>")
        if field := dict(self.bodies).get(name):
            values[field] = body[:-1] if body.find("\n") == len(body) - 1 else body
        return ParsedCall("", name, json.dumps(values, ensure_ascii=False), values, is_whole=bool(end))


_LINE_END = "\n"


def _described(tool: ToolSpec) -> str:
    body = _body(tool)
    attributes = "".join(f' {name}="..."' for name in _arguments(tool) if name != body)
    text = f"\nthe {body}\n" if body else ""
    return f"{tool.description}\n<{tool.name}{attributes}>{text}</{tool.name}>"
