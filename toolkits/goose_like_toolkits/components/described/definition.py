"""Definition: what a component's config.yaml says, checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from goose_like.config.yaml_reader import get_line
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.sdk.diagnostics import Diagnostic, ParseResult

from .coordinates import PARTS, Coordinates
from .document import Document, entries, read_document
from .grammar import Grammar
from .kinds import Parameter, Response
from .prompt import Prompt

_TOLD = {"title", "description", "description_for_model", "prompt", "prompt_file_name", "prompt_file_path"}


@dataclass(frozen=True, slots=True)
class Command:
    """`parameter` is None where it takes nothing, `response` where nothing is promised."""

    name: str
    description: str
    parameter: Parameter | None = None
    response: Response | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """One config.yaml. `type` and `resource_type` are in lower case; `description` is that for models if there is.

    `pip` are the arguments of one installation each. `data` is all that the file says, `config` what of it others may
    override: both hold what JSON can say, and are not to be changed.
    """

    document: Document = field(repr=False)
    coordinates: Coordinates
    type: str
    as_plugin: bool
    title: str
    description: str
    prompts: Prompt
    commands: tuple[Command, ...]
    pip: tuple[tuple[str, ...], ...]
    package: str
    resource_type: str
    config: Mapping[str, Any]

    @property
    def file(self) -> Path:
        return self.document.file

    @property
    def data(self) -> Mapping[str, Any]:
        return self.document.data

    def name(self, config: Mapping[str, Any] | None = None) -> str:
        """What its user calls it, by its effective configuration: `name` there, `name` beside it, or the title."""
        effective = self.config if config is None else config
        return next((str(name) for name in (effective.get("name"), self.data.get("name")) if name), self.title)

    def prompt(self, folder: Path, reach: Sequence[Path] = ()) -> str:
        """What it says to a model besides its description, as `Prompt.read`; errors name this file."""
        try:
            return self.prompts.read(folder, reach)
        except GooseLikeError as error:
            raise GooseLikeError(f"{self.file}: {error}") from error


def read_definition(file: Path) -> ParseResult[Definition]:
    """What a config.yaml says; never raises. There is no value if any fault is more than a remark."""
    reading = read_document(file)
    if reading.value is None:
        return ParseResult(diagnostics=reading.diagnostics)
    reader = _Reader(reading.value)
    definition = reader.definition()
    faults = tuple(sorted(reader.faults, key=lambda fault: fault.sort_key))
    return ParseResult(value=None if any(not fault.is_warning for fault in faults) else definition, diagnostics=faults)


def commands_of(file: Path) -> tuple[Command, ...]:
    """The commands of a config.yaml.

    Raises:
        GooseLikeError: it can't be read any more.
    """
    reading = read_definition(file)
    if reading.value is None:
        raise GooseLikeError("; ".join(str(fault) for fault in reading.diagnostics if not fault.is_warning))
    return reading.value.commands


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._data = document.data
        self._nodes = entries(document.node)
        self._grammar = Grammar(self._nodes.get("commands"))
        self._own_faults: list[Diagnostic] = []

    @property
    def faults(self) -> Iterator[Diagnostic]:
        yield from self._own_faults
        for line, text, is_remark in self._grammar.faults:
            yield Diagnostic(file=self._document.file, line=line, text=text, is_warning=is_remark)

    def definition(self) -> Definition | None:
        """None where there are no coordinates: without them there is nothing to speak of. Faults are to be heeded."""
        coordinates = self._coordinates()
        as_plugin = self._data.get("as_plugin")
        if not isinstance(as_plugin, bool):
            self._wrong("as_plugin", "expected true or false", as_plugin)
        info = self._mapping("info")
        told = entries(self._nodes["info"]) if info else {}
        described = {key: self._grammar.words(node, f"info.{key}") for key, node in told.items() if key in _TOLD}
        if as_plugin is True:
            self._require_info(described)
        setup = self._mapping("setup")
        definition = partial(
            Definition,
            document=self._document,
            type=self._text("type").lower(),
            as_plugin=as_plugin is True,
            title=described.get("title", ""),
            description=described.get("description_for_model") or described.get("description", ""),
            prompts=Prompt(
                text=described.get("prompt", ""),
                file_name=described.get("prompt_file_name", ""),
                file_path=described.get("prompt_file_path", ""),
            ),
            commands=self._commands(),
            pip=self._pip(setup),
            package=self._package(setup),
            resource_type=self._grammar.words(self._nodes.get("resource_type"), "resource_type").lower(),
            config=self._mapping("config"),
        )
        return definition(coordinates=coordinates) if coordinates else None

    def _coordinates(self) -> Coordinates | None:
        try:
            if missing := [part for part in PARTS if self._data.get(part) is None]:
                for part in missing:
                    self._wrong(part, "expected text", None)
                return None
            return Coordinates(*(self._data[part] for part in PARTS))
        except UsageError as error:
            part = str(error).partition(":")[0]
            self._own_faults.append(self._document.fault((part,), str(error)))
            return None

    def _text(self, key: str) -> str:
        value = self._data.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        self._wrong(key, "expected text", value)
        return ""

    def _mapping(self, key: str) -> dict[str, Any]:
        value = self._data.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(key, "expected a mapping", value)
            return {}
        return value

    def _require_info(self, described: Mapping[str, str]) -> None:
        for keys in (("title",), ("description", "description_for_model")):
            if not any(described.get(key) for key in keys):
                text = f"info.{keys[0]}: this is missing, and a plugin is known by it"
                self._own_faults.append(self._document.fault(("info", keys[0]), text))
        if not self._data.get("commands"):
            text = "commands: there are none, and as a plugin it has nothing else to offer"
            self._own_faults.append(self._document.fault(("as_plugin",), text, is_remark=True))

    def _commands(self) -> tuple[Command, ...]:
        node = self._nodes.get("commands")
        if node is None or not self._data["commands"]:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._wrong("commands", "expected a list", self._data["commands"])
            return ()
        lines: dict[str, int] = {}
        read = [self._command(at, item, lines) for at, item in enumerate(node.value)]
        return tuple(command for command in read if command)

    def _command(self, at: int, node: yaml.Node, lines: dict[str, int]) -> Command | None:
        said = entries(node)
        data = self._data["commands"][at]
        name = data.get("command_name") if isinstance(data, dict) else None
        if not isinstance(name, str) or not name.strip():
            text = f"commands[{at}].command_name: expected text, not {name!r}; put the command's name in quotes"
            self._own_faults.append(self._document.fault(("commands", at, "command_name"), text))
            return None
        if name in lines:
            text = f"commands.{name}: there are two commands of this name, the first in line {lines[name]}; rename one"
            self._own_faults.append(self._document.fault(("commands", at, "command_name"), text))
            return None
        lines[name] = get_line(node)
        where = f"commands.{name}"
        description = self._grammar.words(said.get("description"), f"{where}.description")
        if not description:
            text = f"{where}.description: there is none, and a model chooses by it"
            self._own_faults.append(self._document.fault(("commands", at), text, is_remark=True))
        parameter = self._grammar.parameter(said["parameter"], f"{where}.parameter") if "parameter" in said else None
        response = self._grammar.response(said["response"], f"{where}.response") if "response" in said else None
        return Command(name, description, parameter, response)

    def _pip(self, setup: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
        wanted = setup.get("pip")
        if wanted is None:
            return ()
        lines = [[line] if isinstance(line, str) else line for line in wanted] if isinstance(wanted, list) else [None]
        for at, line in enumerate(lines):
            if not isinstance(line, list) or not line or not all(isinstance(word, str) and word for word in line):
                text = "setup.pip: expected a list of requirements, each text or a list of pip's arguments"
                self._own_faults.append(self._document.fault(("setup", "pip", at), text))
                return ()
        return tuple(tuple(line) for line in lines if line)

    def _package(self, setup: Mapping[str, Any]) -> str:
        package = setup.get("package")
        if isinstance(package, str) and all(part.isidentifier() for part in package.split(".")):
            return package
        text = (
            "setup.package: expected the package's full name, such as example.plugins.disk; else nothing can be loaded"
        )
        self._own_faults.append(self._document.fault(("setup", "package"), text))
        return ""

    def _wrong(self, key: str, expected: str, value: Any) -> None:
        given = "and it is missing" if value is None else f"not {str(value)[:60]!r}"
        self._own_faults.append(self._document.fault((key,), f"{key}: {expected}, {given}"))
