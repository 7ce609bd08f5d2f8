"""The class of the toolkit `openbb`: remote tools that the client runs, and tools that show results to the user."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import takewhile
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, JsonValue
from typing_extensions import override

from goose_like.core.events import Artifact, ArtifactShown, Chart, PromptsSuggested
from goose_like.core.message import Message
from goose_like.core.spelling import format_count
from goose_like.core.tool import Tool, current_call
from goose_like.serve.openbb.client_tools import (
    OPTIONS_FUNCTION,
    SKILL_FUNCTION,
    WIDGET_DATA_FUNCTIONS,
    check_call,
    get_changes,
)
from goose_like.serve.openbb.query import Widget, WidgetTiers
from goose_like.toolkit import Example, Notifier, Requirements, ToolError, Toolkit, tool

from .config import parse_config
from .examples import EXAMPLES
from .functions import build_client_tools, build_function_tools
from .rows import Row, list_columns, parse_rows, prepare_chart_rows

_MAX_PAGE_BYTES = 300_000
_MAX_REPEATED_CHARACTERS = 2_000
_MAX_PROMPTS = 5
_MAX_PROMPT_CHARACTERS = 200
_CODE_FENCE = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)
_KIND_NAMES = {"html": "page"}
_NOT_IN_FILE_NAMES = re.compile(r"[^\w-]+")


def _to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Rows = Annotated[list[Row], BeforeValidator(parse_rows)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Note = Annotated[str, Field(max_length=2_000)]


class OpenBBToolkit(Toolkit):
    """Tools for a dashboard: to fetch its data, and to show tables, charts and pages.

    `config["query"]` is the current request; without it there is no dashboard.
    """

    has_local_access: ClassVar[bool] = False
    examples: ClassVar[Sequence[Example]] = EXAMPLES

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._config = parse_config(self.config)

    @override
    def prompt(self) -> str:
        # The prompt is the same for every request; the dashboard is described in the messages.
        pages = []
        if self._config.query is not None:
            pages.append(_read_page("widgets.md"))
        names = self._config.tools
        if names is None or "show_table" in names or "show_chart" in names:
            pages.append(_read_page("showing.md"))
        return "\n".join(pages)

    @override
    def tools(self) -> tuple[Tool, ...]:
        useful_names = set(self._list_useful_tools())
        tools = {}
        for each in super().tools():
            if each.name in useful_names:
                tools[each.name] = each
        query = self._config.query
        if query and self._config.small_model:
            for name in WIDGET_DATA_FUNCTIONS:
                if name in tools:
                    tools[name] = self._narrow(tools[name])
        if query is None or query.dialect == "copilot":
            return tuple(tools.values())
        functions = dict.fromkeys(self._config.functions)
        if query.offered_skills:
            functions[SKILL_FUNCTION] = None
        for each in build_function_tools(tuple(functions), self._check):
            tools[each.name] = each
        for each in build_client_tools(query, self._check):
            tools[each.name] = each
        return tuple(tools.values())

    def _list_useful_tools(self) -> Iterator[str]:
        """List the tools that make sense for the dashboard and the client of this request."""
        query = self._config.query
        if query:
            if query.widgets.primary or query.widgets.secondary:
                yield "get_widget_data"
            if query.dialect == "copilot":
                yield from ("show_table", "show_chart")  # as Markdown; this dialect has no pages and no suggestions
                return
            if query.widgets.extra:
                yield "get_extra_widget_data"
            if any(map(_has_options, query.all_widgets)):
                yield "get_params_options"
        yield from ("show_table", "show_chart", "show_html", "suggest_prompts")

    def _narrow(self, tool: Tool) -> Tool:
        """Limit a tool for data to the widgets without a call in this turn, because small models repeat their calls."""
        widgets = self._config.query.widgets if self._config.query else WidgetTiers()
        if tool.name == WIDGET_DATA_FUNCTIONS[1]:
            own = widgets.extra
        else:
            own = (*widgets.primary, *widgets.secondary)
        called: set[str] = set()
        for message in self._iterate_turn():
            for call in message.tool_calls:
                called.add(str(call.parse_arguments().get("widget_uuid")))
        left = [widget.uuid for widget in own if widget.uuid not in called]
        uuid = {"type": "string", "enum": left}
        schema = {"type": "object", "properties": {"widget_uuid": uuid}, "required": ["widget_uuid"]}
        return replace(tool, spec=replace(tool.spec, schema=schema))

    def _iterate_turn(self) -> Iterator[Message]:
        """Yield the messages after the newest one of the person, the last first."""
        messages = self.exchange_view.processor.messages
        return takewhile(lambda message: message.role != "user", reversed(messages))

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        if self._config.query is None:
            raise ToolError("there is no dashboard here; answer without its data")
        check_call(name, arguments, self._config.query)
        if name not in (*WIDGET_DATA_FUNCTIONS, OPTIONS_FUNCTION, SKILL_FUNCTION):
            return  # to repeat it can make sense
        earlier = self._find_result(name, arguments)
        if earlier is None:
            return
        text = earlier[:_MAX_REPEATED_CHARACTERS]
        if len(earlier) > _MAX_REPEATED_CHARACTERS:
            text += " [more above]"
        raise ToolError(f"{name} gave this already for these arguments; answer from it:\n{text}")

    def _find_result(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Return the result of the same call in this turn, if it succeeded: small models repeat calls."""
        wanted = self._complete(arguments)
        results: dict[str, str] = {}
        for message in self._iterate_turn():
            for result in message.tool_results:
                if not result.is_error:
                    results[result.call_id] = result.output
            for call in message.tool_calls:
                if call.id not in results or call.name != name:
                    continue
                if self._complete(call.parse_arguments()) == wanted:
                    return results[call.id]
        return None

    def _complete(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Add the current values of the widget, which a call may leave out, to the arguments of a call."""
        query = self._config.query
        uuid = str(arguments.get("widget_uuid", ""))
        widget = query.find_widget(uuid) if query else None
        values = widget.current_values if widget else {}
        completed = {**arguments, "arguments": {**values, **get_changes(arguments)}}
        return {name: value for name, value in completed.items() if value}

    # --- tools that the client runs

    @tool(remote=True, kind="fetch", title="Get the data of widget {widget_uuid}")
    async def get_widget_data(self, widget_uuid: str, arguments: dict[str, JsonValue] = {}) -> None:  # noqa: B006
        """Fetch the data of a widget on the dashboard; every figure of an answer comes from there.

        Args:
            widget_uuid: The uuid from the list of widgets.
            arguments: Parameters to change, by name; the others keep their values.
        """
        self._check("get_widget_data", {"widget_uuid": widget_uuid, "arguments": arguments})

    @tool(remote=True, kind="fetch", title="Get the data of widget {widget_uuid}")
    async def get_extra_widget_data(self, widget_uuid: str, arguments: dict[str, JsonValue] = {}) -> None:  # noqa: B006
        """Fetch the data of a widget that is not on the dashboard (`extra`).

        Args:
            widget_uuid: The uuid from the list of widgets.
            arguments: Parameters by name; the others have their defaults.
        """
        self._check("get_extra_widget_data", {"widget_uuid": widget_uuid, "arguments": arguments})

    @tool(remote=True, kind="fetch", title="List the values of {param} of widget {widget_uuid}")
    async def get_params_options(
        self,
        widget_uuid: str,
        param: str,
        arguments: dict[str, JsonValue] = {},  # noqa: B006
    ) -> None:
        """List the values that a widget's parameter can take.

        Args:
            widget_uuid: The uuid from the list of widgets.
            param: The parameter's name.
            arguments: Other parameters that the list depends on, by name.
        """
        self._check("get_params_options", {"widget_uuid": widget_uuid, "param": param, "arguments": arguments})

    # --- tools that show something

    @tool(title="Show the table {name}")
    async def show_table(self, name: _Name, rows: _Rows, description: _Note = "") -> str:
        """Show the person a table.

        Args:
            name: The title.
            rows: One object per row, all with the same keys, e.g. [{"day": "Mon", "price": 2.5}].
            description: One sentence about the content.
        """
        return self._show(Artifact(kind="table", name=name, description=description, rows=tuple(rows)))

    @tool(title="Show the chart {name}")
    async def show_chart(
        self,
        name: _Name,
        kind: Literal["line", "bar", "scatter", "pie", "donut"],
        x: str,
        y: Annotated[list[str], BeforeValidator(_to_list), Field(min_length=1, max_length=8)],
        rows: _Rows,
        description: _Note = "",
    ) -> str:
        """Show the person a chart of rows.

        Args:
            name: The title.
            kind: line for changes over time, bar to compare, scatter for two numbers, pie and donut for shares.
            x: The key of the x axis; for a pie or donut, the key of the names.
            y: The keys of the numbers.
            rows: One object per point, in order, e.g. [{"day": "Mon", "price": 2.5}].
            description: One sentence about the content.
        """
        chart = Chart(kind=kind, x=x, y=tuple(y))
        points = tuple(prepare_chart_rows(rows, chart))
        return self._show(Artifact(kind="chart", name=name, description=description, rows=points, chart=chart))

    @tool(title="Show the page {name}")
    async def show_html(self, name: _Name, html: str, description: _Note = "") -> str:
        """Show the person an HTML page that you write; prefer a table or chart if it is enough.

        Args:
            name: The title.
            html: The whole page with its styles; it cannot load anything from elsewhere.
            description: One sentence about the content.
        """
        fenced = _CODE_FENCE.fullmatch(html)
        text = fenced[1] if fenced else html
        if "<" not in text:
            raise ToolError("this is no HTML; send the whole page, or answer in words")
        size_bytes = len(text.encode())
        if size_bytes > _MAX_PAGE_BYTES:
            raise ToolError(f"the page has {size_bytes:,} bytes; send at most {_MAX_PAGE_BYTES:,}, or a table or chart")
        summary = self._show(Artifact(kind="html", name=name, description=description, text=text))
        if self._config.query is None and self.session.is_kept:  # no client shows the page, but a browser can
            self._save_page(name, text)
        return summary

    def _save_page(self, name: str, text: str) -> None:
        folder = self.session.outputs
        folder.mkdir(parents=True, exist_ok=True)
        file_name = _NOT_IN_FILE_NAMES.sub("-", name)[:40]
        file = folder / f"{current_call.get('')}-{file_name}.html"
        file.write_text(text, encoding="utf-8")
        self.notifier.log(f"saved the page as {file}")

    @tool(title="Suggest what to ask next")
    async def suggest_prompts(self, prompts: Annotated[list[str], BeforeValidator(_to_list)]) -> str:
        """Suggest what the person may want to ask next, at the end of an answer.

        Args:
            prompts: Two or three short questions, each as the person would say it.
        """
        texts = [" ".join(prompt.split()) for prompt in prompts if prompt.strip()]
        texts = list(dict.fromkeys(texts))
        if not 1 <= len(texts) <= _MAX_PROMPTS:
            raise ToolError(f"{len(texts)} prompts were sent; send 1 to {_MAX_PROMPTS}")
        for text in texts:
            if len(text) > _MAX_PROMPT_CHARACTERS:
                raise ToolError(
                    f"a prompt has {len(text)} characters; at most {_MAX_PROMPT_CHARACTERS}, as a person would ask"
                )
        self.notifier.notify(PromptsSuggested(prompts=tuple(texts)))
        return "suggested"

    def _show(self, artifact: Artifact) -> str:
        self.notifier.notify(ArtifactShown(call_id=current_call.get(""), artifact=artifact))
        kind = _KIND_NAMES.get(artifact.kind, artifact.kind)
        summary = f"the person sees the {kind} {artifact.name!r}"
        if artifact.rows:
            columns = ", ".join(list_columns(artifact.rows))
            summary += f", {format_count(len(artifact.rows), 'row')} of {columns}"
        return summary


def _read_page(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _has_options(widget: Widget) -> bool:
    return any(param.has_options_endpoint for param in widget.params)
