"""OpenBBToolkit: the client's functions as remote tools, and tables, charts and pages to show."""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, JsonValue

from goose_like.core.events import Artifact, ArtifactShown, Chart, PromptsSuggested
from goose_like.core.tool import Tool, current_call
from goose_like.serve.openbb.client_tools import OPTIONS, WIDGET_DATA, arguments_of, check
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, tool

from .config import read_config
from .functions import further, tools_of_client
from .rows import Row, columns, drawable, read_rows

_PAGE_BYTES = 300_000
_PROMPTS, _PROMPT_CHARACTERS = 5, 200
_FENCE = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)
_KINDS = {"html": "page"}
_NO_NAME = re.compile(r"[^\w-]+")


def _set(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value}


def _texts(value: Any) -> Any:
    """A list of texts; a single one is a list of one."""
    return [value] if isinstance(value, str) else value


_Rows = Annotated[list[Row], BeforeValidator(read_rows)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Note = Annotated[str, Field(max_length=2_000)]


class OpenBBToolkit(Toolkit):
    """A dashboard's data, and tables, charts and pages to show.

    `config["query"]` is the request that is answered; without one there is no dashboard.
    """

    touches_machine: ClassVar[bool] = False

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._asked = read_config(self.config)

    def prompt(self) -> str:
        """How to use widgets well. The same bytes for every request: what is on a dashboard stands in its messages."""
        pages = ["widgets.md"] * (self._asked.query is not None) + ["showing.md"]
        return "\n".join(files(__package__).joinpath(page).read_text(encoding="utf-8") for page in pages)

    def tools(self) -> tuple[Tool, ...]:
        """Those that the client of this request can do something with; its own come with it, whatever is picked."""
        own = {made.name: made for made in super().tools() if made.name in set(self._useful())}
        query = self._asked.query
        if query is None or query.dialect == "copilot":
            return tuple(own.values())
        theirs = (*further(self._asked.functions, self._check), *tools_of_client(query, self._check))
        return tuple((own | {made.name: made for made in theirs}).values())

    def _useful(self) -> Iterator[str]:
        query = self._asked.query
        tiers = {widget.tier for widget in query.widgets} if query else set()
        if tiers - {"extra"}:
            yield "get_widget_data"
        if query and query.dialect == "copilot":
            yield from ("show_table", "show_chart")  # as Markdown; it draws no page and no buttons
            return
        if "extra" in tiers:
            yield "get_extra_widget_data"
        if query and any(param.has_options_endpoint for widget in query.widgets for param in widget.params):
            yield "get_params_options"
        yield from ("show_table", "show_chart", "show_html", "suggest_prompts")

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        if self._asked.query is None:
            raise ToolError("there is no dashboard here; answer without its data")
        check(name, arguments, self._asked.query)
        if name in (*WIDGET_DATA, OPTIONS) and self._has_given(name, arguments):
            raise ToolError(f"you have what {name} gives for this: it stands above; answer from it")

    def _has_given(self, name: str, arguments: dict[str, Any]) -> bool:
        """Whether the client gave this very data since the person spoke: small models ask for it again and again."""
        results: set[str] = set()
        for message in reversed(self.exchange_view.processor.messages):
            if message.role == "user":
                break
            results |= {result.call_id for result in message.tool_results if not result.is_error}
            for call in message.tool_calls:
                if call.id in results and call.name == name and _set(arguments_of(call)) == _set(arguments):
                    return True
        return False

    # --- what the client runs

    @tool(remote=True)
    async def get_widget_data(self, widget_uuid: str, arguments: dict[str, JsonValue] = {}) -> None:  # noqa: B006
        """Fetch the data of a widget on the dashboard; every figure of an answer comes from here.

        Args:
            widget_uuid: As it stands in the list of widgets.
            arguments: Parameters to change, by name; the others stay as they are set.
        """
        self._check("get_widget_data", {"widget_uuid": widget_uuid, "arguments": arguments})

    @tool(remote=True)
    async def get_extra_widget_data(self, widget_uuid: str, arguments: dict[str, JsonValue] = {}) -> None:  # noqa: B006
        """Fetch the data of a widget that is not on the dashboard (`extra`).

        Args:
            widget_uuid: As it stands in the list of widgets.
            arguments: Its parameters by name; defaults are used for the others.
        """
        self._check("get_extra_widget_data", {"widget_uuid": widget_uuid, "arguments": arguments})

    @tool(remote=True)
    async def get_params_options(
        self,
        widget_uuid: str,
        param: str,
        arguments: dict[str, JsonValue] = {},  # noqa: B006
    ) -> None:
        """List the values that a widget's parameter can take.

        Args:
            widget_uuid: As it stands in the list of widgets.
            param: The parameter's name.
            arguments: Other parameters that the list depends on, by name.
        """
        asked = {"widget_uuid": widget_uuid, "param": param, "arguments": arguments}
        self._check("get_params_options", asked)

    # --- what is shown

    @tool
    async def show_table(self, name: _Name, rows: _Rows, description: _Note = "") -> str:
        """Show the person a table.

        Args:
            name: Its title.
            rows: One object a row, all with the same keys, e.g. [{"day": "Mon", "price": 2.5}].
            description: What it shows, in a sentence.
        """
        return self._show(Artifact(kind="table", name=name, description=description, rows=tuple(rows)))

    @tool
    async def show_chart(
        self,
        name: _Name,
        kind: Literal["line", "bar", "scatter", "pie", "donut"],
        x: str,
        y: Annotated[list[str], BeforeValidator(_texts), Field(min_length=1, max_length=8)],
        rows: _Rows,
        description: _Note = "",
    ) -> str:
        """Show the person a chart of rows.

        Args:
            name: Its title.
            kind: line for a course over time, bar to compare, scatter for two numbers, pie and donut for shares.
            x: The key of what stands along the axis; of a pie or donut the names.
            y: The keys of the numbers.
            rows: One object a point, in order, e.g. [{"day": "Mon", "price": 2.5}].
            description: What it shows, in a sentence.
        """
        chart = Chart(kind=kind, x=x, y=tuple(y))
        drawn = tuple(drawable(rows, chart))
        return self._show(Artifact(kind="chart", name=name, description=description, rows=drawn, chart=chart))

    @tool
    async def show_html(self, name: _Name, html: str, description: _Note = "") -> str:
        """Show the person a page that you write; a table or chart is better where it does.

        Args:
            name: Its title.
            html: All of it, with its styles; nothing is loaded from elsewhere.
            description: What it shows, in a sentence.
        """
        text = fenced[1] if (fenced := _FENCE.fullmatch(html)) else html
        if "<" not in text:
            raise ToolError("this is no HTML; send the whole page, or answer in words")
        if (size := len(text.encode())) > _PAGE_BYTES:
            raise ToolError(f"the page has {size:,} bytes; send at most {_PAGE_BYTES:,}, or a table or chart")
        told = self._show(Artifact(kind="html", name=name, description=description, text=text))
        if self._asked.query is None and self.session.is_kept:  # no client draws it: a browser can
            self.session.outputs.mkdir(parents=True, exist_ok=True)
            file = self.session.outputs / f"{current_call.get('')}-{_NO_NAME.sub('-', name)[:40]}.html"
            file.write_text(text, encoding="utf-8")
            self.notifier.log(f"the page is in {file}")
        return told

    @tool
    async def suggest_prompts(self, prompts: Annotated[list[str], BeforeValidator(_texts)]) -> str:
        """Suggest what the person may want to ask next, at the end of an answer.

        Args:
            prompts: Two or three short questions, each as the person would say it.
        """
        said = tuple(dict.fromkeys(" ".join(prompt.split()) for prompt in prompts if prompt.strip()))
        if not 1 <= len(said) <= _PROMPTS:
            raise ToolError(f"{len(said)} prompts were sent; send 1 to {_PROMPTS}")
        if long := next((prompt for prompt in said if len(prompt) > _PROMPT_CHARACTERS), None):
            raise ToolError(f"a prompt has {len(long)} characters; at most {_PROMPT_CHARACTERS}, as a person would ask")
        self.notifier.notify(PromptsSuggested(prompts=said))
        return "suggested"

    def _show(self, artifact: Artifact) -> str:
        self.notifier.notify(ArtifactShown(call_id=current_call.get(""), artifact=artifact))
        rows = artifact.rows
        size = f", {len(rows)} row{'s' * (len(rows) != 1)} of {', '.join(columns(rows))}" if rows else ""
        return f"the person sees the {_KINDS.get(artifact.kind, artifact.kind)} {artifact.name!r}{size}"
