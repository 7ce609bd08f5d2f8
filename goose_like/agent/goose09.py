"""Compatibility with toolkit packages for goose 0.9.

A package with the entry-point group `goose.toolkit` imports `goose` and `exchange`. Only the modules of such a package
run with an `__import__` that serves the replacements in this module; nothing enters `sys.modules`. Where the real
packages are installed, they are imported instead.
"""

import asyncio
import builtins
import sys
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from typing_extensions import override

from goose_like.core import message
from goose_like.core.entry_points import GOOSE09_GROUPS, did_you_mean, find_entry_point, load_entry_point
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Answer, Event, Question
from goose_like.core.notifier import Notifier, strip_markup
from goose_like.core.tool import make_tool, tool

from .toolkit import Requirements, Toolkit
from .view import ExchangeView, ModelView

_PACKAGES = ("goose", "exchange")


def load_toolkit(name: str) -> type[Toolkit]:
    """Import the toolkit class of an entry point, written for goose_like or for goose 0.9.

    Raises:
        ProfileError: there is no such name.
        GooseLikeError: the package cannot be imported, belongs to an installed goose 0.9, or names no toolkit.
    """
    point = find_entry_point("goose_like.toolkit", name)
    is_goose09 = point is not None and point.group in GOOSE09_GROUPS.values()
    if point and is_goose09 and (finder := _Finder(point.module.partition(".")[0])) not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    kind = load_entry_point("goose_like.toolkit", name)
    if isinstance(kind, type) and issubclass(kind, Toolkit):
        return kind
    if isinstance(kind, type) and is_goose09:
        raise GooseLikeError(
            f"the toolkit {name!r} is one of the goose 0.9 that is installed here, not of goose_like; "
            "to use it, install its package where goose-ai is not"
        )
    raise GooseLikeError(
        f"the entry point of toolkit {name!r} names {kind!r}, which is no toolkit; name a subclass of Toolkit "
        "(from goose_like.toolkit import Toolkit)"
    )


# --- imports of the packages


@dataclass(frozen=True)
class _Finder:
    """A finder that finds the modules of one package like the other finders, but loads them with `_Loader`."""

    package: str

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != self.package:
            return None
        others = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        # An import statement uses the builtins of its own module.
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
    top = name.partition(".")[0]
    if level or top not in _PACKAGES or _is_installed(top):
        return builtins.__import__(name, globals, locals, fromlist, level)
    modules = _create_modules()
    if name not in modules:
        raise ModuleNotFoundError(f"{name!r} of goose 0.9 is not there; {did_you_mean(name, modules)}", name=name)
    return modules[name if fromlist else top]


def _is_installed(top: str) -> bool:
    spec = find_spec(top)
    return bool(spec and spec.origin)  # a plain folder of that name counts as a package too, but has no origin


@cache
def _create_modules() -> dict[str, ModuleType]:
    """Create the replacements for the modules of goose 0.9, by name."""
    parts: dict[str, object] = {"Text": Text, "ToolUse": ToolUse, "ToolResult": ToolResult}
    names: dict[str, dict[str, object]] = {
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
        "goose.view": {"ExchangeView": Goose09View},
        "exchange": {"Message": Message, "Tool": Goose09Tool, **parts},
        "exchange.content": parts,
        "exchange.message": {"Message": Message},
        "exchange.tool": {"Tool": Goose09Tool},
    }
    modules = {name: ModuleType(name, "A replacement for a module of goose 0.9.") for name in names}
    for name, module in modules.items():
        vars(module).update(names[name], __path__=[], __getattr__=_create_getattr(module))
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
    return modules


def _create_getattr(module: ModuleType) -> Callable[[str], object]:
    def raise_missing(name: str) -> object:
        available = [known for known in vars(module) if not known.startswith("__")]
        text = f"{name!r} of goose 0.9's {module.__name__!r} is not there; {did_you_mean(name, available)}"
        raise (AttributeError if name.startswith("__") else ImportError)(text)

    return raise_missing


# --- replacements for names of goose 0.9


class _Goose09Meta(ABCMeta):
    """A metaclass that creates toolkits like goose 0.9: with two arguments, and all other attributes set later."""

    def __call__(cls, notifier: Notifier, requires: Requirements, **rest: Any) -> Any:
        toolkit = super().__call__(Goose09Notifier(notifier), requires)
        view = rest.get("exchange_view")
        vars(toolkit).update(rest, exchange_view=view and Goose09View(view))
        return toolkit


class Goose09Toolkit(Toolkit, metaclass=_Goose09Meta):
    """`goose.toolkit.base.Toolkit`."""

    def __init__(self, notifier: Notifier, requires: Requirements | None = None) -> None:
        super().__init__(notifier, requires or Requirements(type(self).__name__, {}), exchange_view=None)


class Goose09Tool:
    """`exchange.Tool`, for toolkits that list their tools themselves."""

    from_function = staticmethod(make_tool)


class Goose09Notifier(Notifier):
    """A notifier that removes Rich markup from logged strings."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    @override
    def notify(self, event: Event) -> None:
        self._notifier.notify(event)

    @override
    async def ask(self, question: Question) -> Answer:
        return await self._notifier.ask(question)

    @override
    def log(self, renderable: object) -> None:
        self._notifier.log(strip_markup(renderable) if isinstance(renderable, str) else renderable)

    @override
    def status(self, text: str) -> None:
        self._notifier.status(strip_markup(text))

    def start(self) -> None:
        """Do nothing: a status disappears without help."""

    stop = start


@dataclass
class Text:
    """`exchange.Text`."""

    text: str


@dataclass
class ToolUse:
    """`exchange.ToolUse`. `parameters` is the JSON text from the model."""

    id: str
    name: str
    parameters: Any


@dataclass
class ToolResult:
    """`exchange.ToolResult`."""

    tool_use_id: str
    output: str
    is_error: bool = False


@dataclass
class Message:
    """`exchange.Message`. Tool results have the role `user`."""

    role: str
    content: list[Text | ToolUse | ToolResult] = field(default_factory=list)

    @classmethod
    def user(cls, text: str) -> "Message":
        """Create a user message."""
        return cls("user", [Text(text)])

    @classmethod
    def assistant(cls, text: str) -> "Message":
        """Create an assistant message."""
        return cls("assistant", [Text(text)])

    @classmethod
    def load(cls, path: str, role: str = "user", **values: Any) -> "Message":
        """Load a message from a file in the caller's folder and fill in a jinja template."""
        caller = Path(sys._getframe(1).f_globals["__file__"])
        return cls(role, [Text(_render(caller.parent / path, values))])

    @classmethod
    def convert(cls, source: message.Message) -> "Message":
        """Convert a message of goose_like."""
        content: list[Text | ToolUse | ToolResult] = []
        for part in source.parts:
            match part:
                case message.Text(text=text):
                    content.append(Text(text))
                case message.ToolCall(id=id, name=name, arguments=arguments):
                    content.append(ToolUse(id, name, arguments))
                case message.ToolResult(call_id=id, output=output, is_error=is_error):
                    content.append(ToolResult(id, output, is_error))
        return cls("assistant" if source.role == "assistant" else "user", content)

    @property
    def text(self) -> str:
        """All text parts, one per line."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def tool_use(self) -> list[ToolUse]:
        """All tool calls."""
        return [part for part in self.content if isinstance(part, ToolUse)]

    @property
    def tool_result(self) -> list[ToolResult]:
        """All tool results."""
        return [part for part in self.content if isinstance(part, ToolResult)]


def _render(file: Path, values: Mapping[str, Any]) -> str:
    text = file.read_text(encoding="utf-8")
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    try:
        jinja: Any = import_module("jinja2")
    except ImportError as error:
        raise GooseLikeError(f"{file.name} is a jinja template; pip install jinja2") from error
    return str(jinja.Environment(loader=jinja.FileSystemLoader(file.parent)).get_template(file.name).render(values))


@dataclass(frozen=True)
class Goose09Model:
    """One of the two exchanges of `goose.view.ExchangeView`, for reading and for `ask_an_ai`."""

    view: ModelView
    loop: asyncio.AbstractEventLoop

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        return [Message.convert(source) for source in self.view.messages]

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.view.model.name


class Goose09View:
    """`goose.view.ExchangeView`."""

    def __init__(self, view: ExchangeView) -> None:
        loop = asyncio.get_running_loop()
        self.processor = Goose09Model(view.processor, loop)
        self.accelerator = Goose09Model(view.accelerator, loop)


def ask_an_ai(input: str, exchange: Goose09Model, prompt: str = "", no_history: bool = True, **_: Any) -> Message:
    """Ask a model without tools and wait for the answer in the tool's thread, like `goose.utils.ask.ask_an_ai`.

    Raises:
        GooseLikeError: the caller is not a tool, so waiting would block the event loop.
    """
    if asyncio._get_running_loop() is exchange.loop:
        raise GooseLikeError("ask_an_ai works in tools only, not while a toolkit is built")
    history = "" if no_history else "\n\n".join(f"{entry.role}: {entry.text}" for entry in exchange.messages)
    answer = exchange.view.ask(f"{history}\n\n{input}".strip(), system=prompt)
    return Message.assistant(asyncio.run_coroutine_threadsafe(answer, exchange.loop).result())
