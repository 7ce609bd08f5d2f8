"""Compatibility with toolkit packages for goose 0.9.

A package with the entry-point group `goose.toolkit` imports `goose` and `exchange`. Before such a package is loaded,
replacements for these modules enter `sys.modules`. Where the real packages are installed, they are imported instead.
"""

import asyncio
import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, Self, cast

from pydantic import model_validator
from typing_extensions import override

from goose_like.config.entry_points import GOOSE09_GROUPS, find_entry_point, load_entry_point
from goose_like.config.profile import Profile
from goose_like.core import message
from goose_like.core.errors import GooseLikeError, describe_foreign_error
from goose_like.core.events import Event, Logged, Status
from goose_like.core.images import MAX_IMAGE_BYTES
from goose_like.core.notifier import Notifier
from goose_like.core.threads import is_running
from goose_like.core.tool import ImageResult, Tool, make_tool, tool
from goose_like.providers.base import ModelPair
from goose_like.terminal.plain_text import RichNotifier, strip_markup
from goose_like.workspace.workspace import Workspace

from .tool_call import invoke
from .toolkit import Requirements, Toolkit
from .view import ExchangeView, ModelView

_PACKAGES = ("goose", "exchange")
_IMAGE = "image:"


def load_toolkit(name: str) -> type[Toolkit]:
    """Import the toolkit class of an entry point, written for goose_like or for goose 0.9.

    Raises:
        ProfileError: there is no such name.
        GooseLikeError: the package cannot be imported or names no toolkit.
    """
    point = find_entry_point("goose_like.toolkit", name)
    is_goose09 = point is not None and point.group in GOOSE09_GROUPS.values()
    if is_goose09:
        _add_modules()
    try:
        kind = load_entry_point("goose_like.toolkit", name)
    except GooseLikeError as error:
        cause = error.__cause__
        if point and is_goose09 and cause and _is_about_goose(cause):
            place = describe_foreign_error(cause, point.module)
            raise GooseLikeError(
                f"the toolkit {name!r} of the package {point.package!r} needs a part of goose 0.9 that goose_like does "
                f"not have: {place}; change this line: `goose-like help toolkits` lists the parts"
            ) from error
        raise
    if isinstance(kind, type) and issubclass(kind, Toolkit):
        return kind
    hint = "name a subclass of Toolkit (from goose_like.toolkit import Toolkit)"
    if is_goose09:
        hint = "it belongs to the goose 0.9 that is installed here; install its package where goose-ai is not"
    raise GooseLikeError(f"the entry point of toolkit {name!r} names {kind!r}, which is no toolkit; {hint}")


def _is_about_goose(error: BaseException) -> bool:
    """Check for the failed import of a module of goose 0.9."""
    if not isinstance(error, ImportError) or error.name is None:
        return False
    package, _, _ = error.name.partition(".")
    return package in _PACKAGES


def _add_modules() -> None:
    """Add the replacements to `sys.modules`, except those of a package that is installed or already there."""
    absent = [package for package in _PACKAGES if _is_absent(package)]
    for name, values in _list_modules().items():
        package, _, _ = name.partition(".")
        if package not in absent:
            continue
        module = ModuleType(name)
        vars(module).update(values, __path__=[], __file__=__file__)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


def _is_absent(package: str) -> bool:
    if package in sys.modules:
        return False
    spec = find_spec(package)
    # A plain folder of that name counts as a package too, but has no origin.
    return spec is None or not spec.origin


def _list_modules() -> dict[str, dict[str, object]]:
    """List the names that the modules of goose 0.9 offer, by module. A package comes before its modules."""
    tools: dict[str, object] = {"Tool": SimpleNamespace(from_function=make_tool)}
    parts: dict[str, object] = {"Text": message.Text, "ToolUse": ToolUse, "ToolResult": ToolResult}
    return {
        "goose": {},
        "goose.notifier": {"Notifier": Notifier},
        "goose.toolkit": {"Toolkit": Goose09Toolkit},
        "goose.toolkit.base": {"Toolkit": Goose09Toolkit, "Requirements": Requirements, "tool": tool},
        "goose.toolkit.utils": {
            "RULESTYLE": "bold",
            "RULEPREFIX": "[bold]--[/] ",
            "get_language": lambda path: Path(path).suffix.lstrip("."),
            "render_template": lambda path, context=None: _render(Path(path), context or {}),
        },
        "goose.utils": {},
        "goose.utils.ask": {"ask_an_ai": ask_an_ai},
        "goose.view": {"ExchangeView": SimpleNamespace},
        "exchange": {"Message": Message, **tools, **parts},
        "exchange.content": parts,
        "exchange.message": {"Message": Message},
        "exchange.providers": {},
        "exchange.providers.openai": {"OPENAI_HOST": "https://api.openai.com/"},
        "exchange.tool": tools,
    }


class Goose09Toolkit(Toolkit):
    """`goose.toolkit.base.Toolkit`, which is created with two arguments. All other attributes are set later."""

    _own_view: ExchangeView

    def __init__(self, notifier: Notifier, requires: Requirements | None = None) -> None:
        super().__init__(notifier, requires or Requirements(type(self).__name__, {}), exchange_view=None)

    @override
    @classmethod
    async def create(cls, notifier: Notifier, requires: Requirements, **kwargs: Any) -> Self:
        toolkit = cls(Goose09Notifier(notifier), requires)
        view = kwargs.pop("exchange_view")
        workspace = kwargs["workspace"]
        list_tools = toolkit.tools  # a toolkit may override it

        def list_tools_with_images() -> tuple[Tool, ...]:
            return tuple(_add_images(tool, workspace) for tool in list_tools())

        toolkit._own_view = view
        vars(toolkit).update(kwargs, exchange_view=_convert_view(view), tools=list_tools_with_images)
        return toolkit

    @override
    def use_profile(self, profile: Profile, models: ModelPair) -> None:
        self._own_view.use_models(models)
        vars(self).update(profile=profile, exchange_view=_convert_view(self._own_view))


def _convert_view(view: ExchangeView) -> SimpleNamespace:
    return SimpleNamespace(
        processor=Goose09Model(view.processor),
        accelerator=Goose09Model(view.accelerator),
    )


def _add_images(tool: Tool, workspace: Workspace) -> Tool:
    """Let a tool show an image by returning `image:PATH`."""

    @wraps(tool.function)
    async def run(**arguments: Any) -> Any:
        started_at = time.time()
        value = await invoke(tool.function, arguments)
        if not (isinstance(value, str) and value.startswith(_IMAGE)):
            return value
        path = value.removeprefix(_IMAGE)
        try:
            return ImageResult(_read_image(workspace, path, started_at), path)
        except (OSError, GooseLikeError) as error:
            return f"{value}\n[no image is shown: {error}]"

    return replace(tool, function=cast(Callable[..., Any], run))


def _read_image(workspace: Workspace, path: str, started_at: float) -> bytes:
    """Read an image that the session may read, or a temporary file that was written since `started_at`.

    The workspace has a /tmp of its own, but toolkits write into that of the machine.
    """
    place = Path(os.path.realpath(path))
    temporary = os.path.realpath(tempfile.gettempdir())
    if place.is_relative_to(temporary) and not place.is_relative_to(workspace.root):
        state = place.stat()
        is_file = stat.S_ISREG(state.st_mode)
        is_new = state.st_mtime >= started_at - 1
        if is_file and is_new and state.st_size <= MAX_IMAGE_BYTES:
            return place.read_bytes()
    return workspace.read_bytes(path, MAX_IMAGE_BYTES)


class Goose09Notifier(RichNotifier):
    """A notifier that removes Rich markup from logged texts."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    @override
    def notify(self, event: Event) -> None:
        if isinstance(event, Logged | Status):
            event = event.model_copy(update={"text": strip_markup(event.text)})
        self._notifier.notify(event)

    def start(self) -> None:
        """Do nothing: a status disappears without help."""

    stop = start


class ToolUse(message.ToolCall):
    """`exchange.content.ToolUse`, which has the arguments as a dict."""

    @model_validator(mode="before")
    @classmethod
    def _read_parameters(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "parameters" not in values:
            return values
        others = {name: value for name, value in values.items() if name != "parameters"}
        return {**others, "arguments": json.dumps(values["parameters"])}

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments by name."""
        return self.parse_arguments()


class ToolResult(message.ToolResult):
    """`exchange.content.ToolResult`, which names its call `tool_use_id`."""

    @model_validator(mode="before")
    @classmethod
    def _read_call_id(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "tool_use_id" not in values:
            return values
        others = {name: value for name, value in values.items() if name != "tool_use_id"}
        return {**others, "call_id": values["tool_use_id"]}

    @property
    def tool_use_id(self) -> str:
        """The id of the call."""
        return self.call_id


def _convert_part(part: message.Part) -> message.Part:
    if isinstance(part, message.ToolCall):
        return ToolUse(**dict(part))
    if isinstance(part, message.ToolResult):
        return ToolResult(**dict(part))
    return part


class Message(message.Message):
    """`exchange.Message`, with the parts of goose_like as its content."""

    @classmethod
    def load(cls, filename: str, role: Literal["user", "assistant"] = "user", **values: Any) -> Self:
        """Load a message from a file in the caller's folder and fill in a jinja template."""
        caller = Path(sys._getframe(1).f_globals["__file__"])
        text = _render(caller.parent / filename, values)
        return cls(role=role, parts=(message.Text(text=text),))

    @property
    def content(self) -> tuple[message.Part, ...]:
        """All parts."""
        return self.parts

    @property
    def tool_use(self) -> tuple[message.ToolCall, ...]:
        """All tool calls."""
        return self.tool_calls

    @property
    def tool_result(self) -> tuple[message.ToolResult, ...]:
        """All tool results."""
        return self.tool_results


def convert_messages(messages: Iterable[message.Message]) -> list[Message]:
    """Return the messages with the names of goose 0.9."""
    converted: list[Message] = []
    for source in messages:
        parts = tuple(map(_convert_part, source.parts))
        converted.append(Message(role=source.role, parts=parts))
    return converted


def _render(file: Path, values: Mapping[str, Any]) -> str:
    text = file.read_text(encoding="utf-8")
    if "{{" not in text and "{%" not in text:
        return text
    import jinja2  # slow to import

    loader = jinja2.FileSystemLoader(file.parent)
    template = jinja2.Environment(loader=loader).get_template(file.name)
    return template.render(values)


class Goose09Model:
    """One of the two exchanges of `goose.view.ExchangeView`, for reading and for `ask_an_ai`."""

    def __init__(self, view: ModelView) -> None:
        self.view = view
        self.loop = asyncio.get_running_loop()

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return convert_messages(self.view.messages)


def ask_an_ai(input: str, exchange: Goose09Model, prompt: str = "", no_history: bool = True, **_: Any) -> Message:
    """Ask a model without tools and wait for the answer in the tool's thread, like `goose.utils.ask.ask_an_ai`.

    Raises:
        GooseLikeError: the caller is not a tool, so waiting would block the event loop.
    """
    if is_running(exchange.loop):
        raise GooseLikeError("ask_an_ai works in tools only, not while a toolkit is built")
    parts: list[str] = []
    if not no_history:
        parts = [f"{entry.role}: {entry.text}" for entry in exchange.messages]
    question = "\n\n".join([*parts, input]).strip()
    answer = exchange.view.ask(question, system=prompt)
    text = asyncio.run_coroutine_threadsafe(answer, exchange.loop).result()
    return Message(role="assistant", parts=(message.Text(text=text),))
