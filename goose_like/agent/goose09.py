"""The import names of goose 0.9, for the toolkit packages that were written for it and for nobody else.

A package of the entry-point group `goose.toolkit` imports `goose` and `exchange`. Its modules, and only they, are run
with an `__import__` of their own, which answers with what stands below `_served`; nothing enters `sys.modules`. Where
the real packages are installed, they are what is imported.
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

from goose_like.core import message
from goose_like.core.entry_points import GOOSE09_GROUPS, did_you_mean, list_entry_points, load_entry_point
from goose_like.core.errors import GooseLikeError
from goose_like.core.events import Answer, Event, Question
from goose_like.core.notifier import Notifier, strip_markup
from goose_like.core.tool import make_tool, tool

from .toolkit import Requirements, Toolkit
from .view import ExchangeView, ModelView

_TOPS = ("goose", "exchange")


def load_toolkit(name: str) -> type[Toolkit]:
    """The class that a toolkit's entry point names, whether it was written for us or for goose 0.9.

    Raises:
        ProfileError: when there is no such name.
        GooseLikeError: when its package can't be imported, runs on a goose 0.9 that is installed, or names no toolkit.
    """
    point = list_entry_points("goose_like.toolkit").get(name)
    is_former = point is not None and point.group in GOOSE09_GROUPS.values()
    if point and is_former and (finder := _Finder(point.module.partition(".")[0])) not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    kind = load_entry_point("goose_like.toolkit", name)
    if isinstance(kind, type) and issubclass(kind, Toolkit):
        return kind
    if isinstance(kind, type) and is_former:
        raise GooseLikeError(
            f"the toolkit {name!r} is one of the goose 0.9 that is installed here, not of goose_like; "
            "to use it, install its package where goose-ai is not"
        )
    raise GooseLikeError(
        f"the entry point of toolkit {name!r} names {kind!r}, which is no toolkit; name a subclass of Toolkit "
        "(from goose_like.toolkit import Toolkit)"
    )


# --- who is served


@dataclass(frozen=True)
class _Finder:
    """Finds the modules of one package as the other finders do, and has them run by `_Loader`."""

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
        # An import statement asks the builtins of the module that it stands in, at its top or in a function.
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
    top = name.partition(".")[0]
    if level or top not in _TOPS or _is_installed(top):
        return builtins.__import__(name, globals, locals, fromlist, level)
    modules = _served()
    if name not in modules:
        raise ModuleNotFoundError(f"{name!r} of goose 0.9 is not there; {did_you_mean(name, modules)}", name=name)
    return modules[name if fromlist else top]


def _is_installed(top: str) -> bool:
    spec = find_spec(top)
    return bool(spec and spec.origin)  # a mere folder of that name is a package too, but without origin


@cache
def _served() -> dict[str, ModuleType]:
    """Every module of goose 0.9 that there is here, by its name."""
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
    modules = {name: ModuleType(name, "goose 0.9's, as far as goose_like has it.") for name in names}
    for name, module in modules.items():
        vars(module).update(names[name], __path__=[], __getattr__=_missing(module))
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(modules[parent], last, module)
    return modules


def _missing(module: ModuleType) -> Callable[[str], object]:
    def missing(name: str) -> object:
        there = [known for known in vars(module) if not known.startswith("__")]
        text = f"{name!r} of goose 0.9's {module.__name__!r} is not there; {did_you_mean(name, there)}"
        raise (AttributeError if name.startswith("__") else ImportError)(text)

    return missing


# --- what is served


class _Called(ABCMeta):
    """goose 0.9 called a toolkit with a notifier and what it requires, and gave it the rest afterwards."""

    def __call__(cls, notifier: Notifier, requires: Requirements, **rest: Any) -> Any:
        made = super().__call__(Goose09Notifier(notifier), requires)
        if view := rest.pop("exchange_view", None):
            made.exchange_view = Goose09View(view)
        for name, value in rest.items():
            setattr(made, name, value)
        return made


class Goose09Toolkit(Toolkit, metaclass=_Called):
    """`goose.toolkit.base.Toolkit`."""

    def __init__(self, notifier: Notifier, requires: Requirements | None = None) -> None:
        super().__init__(notifier, requires or Requirements(type(self).__name__, {}), exchange_view=None)


class Goose09Tool:
    """`exchange.Tool`, for toolkits that list their tools themselves."""

    from_function = staticmethod(make_tool)


class Goose09Notifier(Notifier):
    """Strings that are logged may hold Rich's markup; people are shown them without."""

    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def notify(self, event: Event) -> None:
        self._notifier.notify(event)

    async def ask(self, question: Question) -> Answer:
        return await self._notifier.ask(question)

    def log(self, renderable: object) -> None:
        self._notifier.log(strip_markup(renderable) if isinstance(renderable, str) else renderable)

    def status(self, text: str) -> None:
        self._notifier.status(strip_markup(text))

    def start(self) -> None:
        """Nothing: what is shown of a status makes way by itself."""

    stop = start


@dataclass
class Text:
    """`exchange.Text`."""

    text: str


@dataclass
class ToolUse:
    """`exchange.ToolUse`; `parameters` is the JSON as the model wrote it."""

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
    """`exchange.Message`; what tools gave has the role `user`."""

    role: str
    content: list[Text | ToolUse | ToolResult] = field(default_factory=list)

    @classmethod
    def user(cls, text: str) -> "Message":
        return cls("user", [Text(text)])

    @classmethod
    def assistant(cls, text: str) -> "Message":
        return cls("assistant", [Text(text)])

    @classmethod
    def load(cls, path: str, role: str = "user", **values: Any) -> "Message":
        """A file beside the one that calls this; a jinja template is filled in with the values."""
        caller = Path(sys._getframe(1).f_globals["__file__"])
        return cls(role, [Text(_render(caller.parent / path, values))])

    @classmethod
    def of(cls, ours: message.Message) -> "Message":
        """One of our messages."""
        content: list[Text | ToolUse | ToolResult] = []
        for part in ours.parts:
            match part:
                case message.Text(text=text):
                    content.append(Text(text))
                case message.ToolCall(id=id, name=name, arguments=arguments):
                    content.append(ToolUse(id, name, arguments))
                case message.ToolResult(call_id=id, output=output, is_error=is_error):
                    content.append(ToolResult(id, output, is_error))
        return cls("assistant" if ours.role == "assistant" else "user", content)

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def tool_use(self) -> list[ToolUse]:
        return [part for part in self.content if isinstance(part, ToolUse)]

    @property
    def tool_result(self) -> list[ToolResult]:
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
    """One of the two exchanges of `ExchangeView`, to be read, and to be given to `ask_an_ai`."""

    view: ModelView
    loop: asyncio.AbstractEventLoop

    @property
    def messages(self) -> list[Message]:
        return [Message.of(ours) for ours in self.view.messages]

    @property
    def model(self) -> str:
        return self.view.model.name


class Goose09View:
    """`goose.view.ExchangeView`."""

    def __init__(self, view: ExchangeView) -> None:
        loop = asyncio.get_running_loop()
        self.processor = Goose09Model(view.processor, loop)
        self.accelerator = Goose09Model(view.accelerator, loop)


def ask_an_ai(input: str, exchange: Goose09Model, prompt: str = "", no_history: bool = True, **_: Any) -> Message:
    """`goose.utils.ask.ask_an_ai`: a model's answer, waited for in a tool's thread; no tools are offered to it.

    Raises:
        GooseLikeError: outside of a tool, where nobody can wait for a model.
    """
    if asyncio._get_running_loop() is exchange.loop:
        raise GooseLikeError("ask_an_ai works in tools only, not while a toolkit is built")
    said = "" if no_history else "\n\n".join(f"{said.role}: {said.text}" for said in exchange.messages)
    asked = exchange.view.ask(f"{said}\n\n{input}".strip(), system=prompt)
    return Message.assistant(asyncio.run_coroutine_threadsafe(asked, exchange.loop).result())
