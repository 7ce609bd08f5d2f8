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
from collections.abc import Sequence
from typing import Any

from goose_like.core.message import Message, ToolCall, ToolResult
from goose_like.core.tool import ToolSpec

from .json_tool_calls import FINISH, ParsedCall, build_argument_schema

_RULES = """\
Each reply is one of these; then you get its result and reply again.{more}

{tools}"""
_READ_ONLY_RULE = " Answer a question without changing a file."

_NAME = re.compile(r"\s*<([\w-]+)(?=[ >])")
_ATTRIBUTE = re.compile(r" ([\w-]+)=")
_TASK_CHARACTERS = 500
_JSON = json.JSONDecoder()


def _build_step(name: str, output: str, **arguments: str) -> tuple[Message, Message]:
    call = ToolCall(id=name, name=name, arguments=json.dumps(arguments))
    return Message.assistant("", (call,)), Message(role="tool", parts=(ToolResult(call_id=name, output=output),))


# The smallest models follow examples better than rules: look at things, change them, check, answer. They also copy
# examples into their work, so two of these three are questions, which change nothing. Each word counts: with a question
# at the end and all marked as examples, the model wrote worse programs.
_EXAMPLES = (
    Message.user("What does lamp.py do?"),
    *_build_step("shell", "import sys\n\nif 'on' in sys.argv:\n    print('bright')", command="cat lamp.py"),
    Message.assistant("lamp.py prints `bright` if one of its arguments is `on`, and else nothing."),
    Message.user("bill.py prints a wrong total. Fix it."),
    *_build_step("shell", "prices = [3, 4]\nprint(sum(prices) + 1)\n8", command="cat bill.py && python bill.py"),
    *_build_step(
        "write_file", "saved bill.py (+1 -1 lines)", path="bill.py", content="prices = [3, 4]\nprint(sum(prices))\n"
    ),
    *_build_step("shell", "7", command="python bill.py"),
    Message.assistant("bill.py added 1 to the sum. I took it out; now it prints 7."),
    Message.user("What is the highest price in menu.csv?"),
    *_build_step("shell", "dish,price\nsoup,4\nfish,11\nrice,3", command="cat menu.csv"),
    *_build_step("shell", "11", command="tail -n +2 menu.csv | cut -d, -f2 | sort -n | tail -n 1"),
    Message.assistant("The highest price in menu.csv is 11."),
)
_PYTHON_EXAMPLES = (
    Message.user("How many dishes has menu.csv? Draw the prices per kind."),
    *_build_step(
        "run_python",
        "3\n   dish  kind        day  price\n0  soup  warm 2024-05-01      4",
        code="import pandas as pd\nmenu = pd.read_csv('menu.csv')\nprint(len(menu))\nprint(menu.head(1))\n",
    ),
    *_build_step(
        "run_python",
        "KeyError: 'Column not found: cost'\nuse one of these columns: 'dish', 'kind', 'day', 'price'",
        code="costs = menu.groupby('kind')['cost'].sum()\nprint(costs)\ncosts.plot.bar()\n",
    ),
    *_build_step(
        "run_python",
        "kind\ncold     3\nwarm    15\n[figure: outputs/1.png]",
        code="prices = menu.groupby('kind')['price'].sum()\nprint(prices)\nprices.plot.bar()\n",
    ),
    Message.assistant("menu.csv has 3 dishes. The prices are 15 for warm and 3 for cold dishes; see the figure."),
)

_DASHBOARD_EXAMPLES = (
    Message.user(
        "Which day had the most visitors?\n\n[Widgets that the person picked]\n- 41 Visitors: Visitors per day\n\n"
        "[Widgets on the dashboard]\n- 57 Ticket Sales: Tickets and prices"
    ),
    *_build_step("get_widget_data", '[{"day": "Mon", "count": 80}, {"day": "Tue", "count": 120}]', widget_uuid="41"),
    Message.assistant("Tuesday had the most visitors: 120 (Visitors)."),
    Message.user(
        "How much was a ticket?\n\n"
        "[Widgets on the dashboard]\n- 41 Visitors: Visitors per day\n- 57 Ticket Sales: Tickets and prices"
    ),
    *_build_step("get_widget_data", '[{"ticket": "adult", "price": 9.5, "sold": 300}]', widget_uuid="57"),
    Message.assistant("A ticket for an adult was 9.5 (Ticket Sales)."),
    Message.user(
        "Who sold the tickets?\n\n[Widgets that the person picked]\n- 57 Ticket Sales: Tickets and prices\n\n"
        "[Widgets on the dashboard]\n- 41 Visitors: Visitors per day"
    ),
    *_build_step("get_widget_data", '[{"ticket": "adult", "price": 9.5, "sold": 300}]', widget_uuid="57"),
    Message.assistant("No widget says who sold the tickets."),
)


def select_examples(tools: Sequence[ToolSpec]) -> tuple[Message, ...]:
    """Return worked examples whose tools the request has."""
    names = {tool.name for tool in tools}
    for examples in (_EXAMPLES, _PYTHON_EXAMPLES, _DASHBOARD_EXAMPLES):
        if {call.name for message in examples for call in message.tool_calls} <= names:
            return examples
    return ()


def repeat_task(messages: Sequence[Message]) -> list[Message]:
    """Repeat the user's task at the end of the newest tool result, because the smallest models forget it.

    Only the newest result has the line, so that the engine's cache covers all of the previous request but this line.
    """
    tasks = [message.first_text for message in messages if message.role == "user"]
    *earlier, last = messages
    if not tasks or not last.tool_results:
        return [*messages]
    *others, newest = last.tool_results
    task = " ".join(tasks[-1].split())[:_TASK_CHARACTERS]
    extended = newest.model_copy(update={"output": f"{newest.output}\n\n(The task: {task})"})
    return [*earlier, last.model_copy(update={"parts": (*others, extended)})]


def build_grammar(tools: Sequence[ToolSpec]) -> str:
    """Build the engine's grammar, in llguidance's dialect of Lark: the tag of a tool or of `finish`, then any text.

    A tool with an argument that has no possible value stays in the prompt, and the model cannot call it.
    """
    with_body, without_body = [], []
    for tool in (*tools, FINISH):
        properties = build_argument_schema(tool).get("properties", {})
        if any(schema.get("enum") == [] for schema in properties.values()):
            continue
        fields = [name for name in properties if name != _find_body_argument(tool)]
        tag = [json.dumps(f"<{tool.name}")]
        tag += [f"{json.dumps(f' {name}=')} %json {json.dumps(properties[name])}" for name in fields]
        if _find_body_argument(tool):
            with_body.append(" ".join([*tag, r'">\n"', "ANYTHING"]))
        else:
            without_body.append(" ".join([*tag, json.dumps(f"></{tool.name}>")]))
    return "\n".join(["%llguidance {}", f"start: {' | '.join(with_body + without_body)}", r"ANYTHING: /(.|\n)*/"])


def list_stop_texts(tools: Sequence[ToolSpec]) -> list[str]:
    """List the texts that end an answer. The engine removes them from the answer."""
    return [f"</{tool.name}>" for tool in (*tools, FINISH)]


def _find_body_argument(tool: ToolSpec) -> str:
    """Return the name of the argument between the tags: the last one if it is any text, else an empty name."""
    properties = build_argument_schema(tool).get("properties", {})
    last = next(reversed(properties), "")
    return last if last and properties[last].get("type") == "string" and "enum" not in properties[last] else ""


class XmlCallFormat:
    """The format of a call as an XML tag.

    A text of one line between the tags has no line end; each of several lines has one.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Create the format for these tools, whose arguments are all required; see `keep_required_arguments`."""
        self._bodies = {tool.name: _find_body_argument(tool) for tool in (*tools, FINISH)}

    def format_rules(self, tools: Sequence[ToolSpec]) -> str:
        """Format the instructions for the model: the syntax of a call, and the tools."""
        more = _READ_ONLY_RULE if "write_file" in self._bodies else ""
        return _RULES.format(more=more, tools="\n\n".join(map(_describe_tool, tools)))

    def format_call(self, name: str, arguments: str) -> str:
        """Format a call exactly as the model writes it."""
        try:
            values: Any = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):  # incomplete or invalid: keep it as it is
            return f"<{name}{arguments}"
        body = values.pop(self._bodies.get(name, ""), None)
        attributes = "".join(f" {field}={json.dumps(value, ensure_ascii=False)}" for field, value in values.items())
        if body is None:
            return f"<{name}{attributes}></{name}>"
        text = body if isinstance(body, str) else json.dumps(body)
        line_end = "" if text.endswith("\n") else "\n"
        return f"<{name}{attributes}>\n{text}{line_end}</{name}>"

    def may_be_call(self, text: str) -> bool:
        """Check whether an answer with this beginning may be a call."""
        return re.match(r"\s*(<[\w-]|<?$)", text) is not None

    def parse_call(self, text: str) -> ParsedCall | None:
        """Parse the call in an answer, which may be incomplete. Return None until the answer names a tool."""
        match = _NAME.match(text)
        if match is None:
            return None
        name, at = match[1], match.end()
        values: dict[str, Any] = {}
        while attribute := _ATTRIBUTE.match(text, at):
            try:
                values[attribute[1]], at = _JSON.raw_decode(text, attribute.end())
            except (ValueError, RecursionError):
                break
        if text[at : at + 1] != ">":
            return ParsedCall("", name, text[match.end() :], None, is_whole=False)
        body, end, _ = text[at + 1 :].removeprefix("\n").partition(f"</{name}>")
        if field := self._bodies.get(name):
            values[field] = body[:-1] if body.find("\n") == len(body) - 1 else body
        return ParsedCall("", name, json.dumps(values, ensure_ascii=False), values, is_whole=bool(end))


def _describe_tool(tool: ToolSpec) -> str:
    body = _find_body_argument(tool)
    attributes = "".join(f' {name}="..."' for name in tool.schema.get("properties", {}) if name != body)
    text = f"\nthe {body}\n" if body else ""
    return f"{tool.description}\n<{tool.name}{attributes}>{text}</{tool.name}>"
