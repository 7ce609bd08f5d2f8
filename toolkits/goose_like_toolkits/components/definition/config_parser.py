"""The parser of config.yaml: required fields, commands, requirements, and a diagnostic for each problem."""

from collections.abc import Mapping
from typing import Any

import yaml

from goose_like.core.errors import UsageError
from goose_like.sdk.diagnostics import Diagnostic, ParseResult

from .config_file import Command, Definition
from .coordinates import PARTS, Coordinates
from .document import Document, get_entries
from .grammar import Grammar
from .prompt import Prompt
from .validation import build_arguments

_TEXTS = {"title", "description", "description_for_model", "prompt", "prompt_file_name", "prompt_file_path"}


def parse_definition(document: Document) -> ParseResult[Definition]:
    """Parse a config.yaml. With a diagnostic that is no warning there is no value."""
    parser = _Parser(document)
    definition = parser.parse()
    problems = tuple(sorted(parser.diagnostics, key=lambda each: each.sort_key))
    is_wrong = any(not each.is_warning for each in problems)
    return ParseResult[Definition](value=None if is_wrong else definition, diagnostics=problems)


def parse_commands(text: str) -> tuple[Command, ...]:
    """Parse the commands of a plugin, given as YAML. Leave out what is wrong."""
    node = yaml.compose(text, yaml.SafeLoader)
    return _parse_commands(node, Grammar(node))[0]


class _Parser:
    def __init__(self, document: Document) -> None:
        self._document = document
        self._data = document.data
        self._nodes = get_entries(document.node)
        self._grammar = Grammar(self._nodes.get("commands"))
        self._problems: list[Diagnostic] = []

    @property
    def diagnostics(self) -> list[Diagnostic]:
        grammar = self._grammar.problems
        others = [Diagnostic(file=self._document.file, line=line, text=text, is_warning=w) for line, text, w in grammar]
        return [*self._problems, *others]

    def parse(self) -> Definition | None:
        """Parse the file; the result counts only if there are no diagnostics but warnings."""
        coordinates = self._parse_coordinates()
        as_plugin = self._data.get("as_plugin")
        if not isinstance(as_plugin, bool):
            self._report("as_plugin", "expected true or false", as_plugin)
        info = get_entries(self._nodes["info"]) if self._get_mapping("info") else {}
        texts = {key: self._grammar.read_text(node, f"info.{key}") for key, node in info.items() if key in _TEXTS}
        if as_plugin is True:
            self._require_info(texts)
        setup = self._get_mapping("setup")
        self._get_mapping("config")
        commands = self._parse_commands()
        fields = {
            "type": self._get_text("type").lower(),
            "as_plugin": as_plugin is True,
            "title": texts.get("title", ""),
            "description": texts.get("description_for_model") or texts.get("description", ""),
            "prompt": Prompt(
                text=texts.get("prompt", ""),
                file_name=texts.get("prompt_file_name", ""),
                file_path=texts.get("prompt_file_path", ""),
            ),
            "commands": commands,
            "pip": self._parse_pip(setup),
            "package": self._parse_package(setup),
            "resource_type": self._grammar.read_text(self._nodes.get("resource_type"), "resource_type").lower(),
            "data": self._data,
        }
        return Definition(**{part: getattr(coordinates, part) for part in PARTS}, **fields) if coordinates else None

    def _parse_coordinates(self) -> Coordinates | None:
        missing = [part for part in PARTS if self._data.get(part) is None]
        for part in missing:
            self._report(part, "expected text", None)
        try:
            return None if missing else Coordinates(*(self._data[part] for part in PARTS))
        except UsageError as error:
            part = str(error).partition(":")[0]
            self._problems.append(self._document.diagnose((part,), str(error)))
            return None

    def _get_text(self, key: str) -> str:
        value = self._data.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        self._report(key, "expected text", value)
        return ""

    def _get_mapping(self, key: str) -> dict[str, Any]:
        value = self._data.get(key)
        if isinstance(value, dict):
            return value
        if value is not None:
            self._report(key, "expected a mapping", value)
        return {}

    def _require_info(self, texts: Mapping[str, str]) -> None:
        for keys in (("title",), ("description", "description_for_model")):
            if not any(texts.get(key) for key in keys):
                text = f"info.{keys[0]}: this is missing, and a plugin is known by it"
                self._problems.append(self._document.diagnose(("info", keys[0]), text))
        if not self._data.get("commands"):
            text = "commands: there are none, and as a plugin it has nothing else to offer"
            self._problems.append(self._document.diagnose(("as_plugin",), text, is_warning=True))

    def _parse_commands(self) -> tuple[Command, ...]:
        node = self._nodes.get("commands")
        if node is None or not self._data["commands"]:
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._report("commands", "expected a list", self._data["commands"])
            return ()
        commands, problems = _parse_commands(node, self._grammar)
        for path, text, is_warning in problems:
            self._problems.append(self._document.diagnose(("commands", *path), text, is_warning=is_warning))
        return commands

    def _parse_pip(self, setup: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
        wanted = setup.get("pip")
        if wanted is None:
            return ()
        lines = [[line] if isinstance(line, str) else line for line in wanted] if isinstance(wanted, list) else [None]
        for at, line in enumerate(lines):
            if not isinstance(line, list) or not line or not all(isinstance(word, str) and word for word in line):
                text = "setup.pip: expected a list of requirements, each text or a list of pip's arguments"
                self._problems.append(self._document.diagnose(("setup", "pip", at), text))
                return ()
        return tuple(tuple(line) for line in lines if line)

    def _parse_package(self, setup: Mapping[str, Any]) -> str:
        package = setup.get("package")
        if isinstance(package, str) and all(part.isidentifier() for part in package.split(".")):
            return package
        text = "setup.package: expected the full name of a package, such as example.plugins.disk; it holds the code"
        self._problems.append(self._document.diagnose(("setup", "package"), text))
        return ""

    def _report(self, key: str, expected: str, value: Any) -> None:
        given = "and it is missing" if value is None else f"not {str(value)[:60]!r}"
        self._problems.append(self._document.diagnose((key,), f"{key}: {expected}, {given}"))


def _parse_commands(
    node: yaml.Node, grammar: Grammar
) -> tuple[tuple[Command, ...], list[tuple[tuple[str | int, ...], str, bool]]]:
    """Parse a list of commands; return it with the path, text and severity of each problem."""
    commands: dict[str, Command] = {}
    problems: list[tuple[tuple[str | int, ...], str, bool]] = []
    for at, item in enumerate(node.value if isinstance(node, yaml.SequenceNode) else ()):
        entries = get_entries(item)
        named = entries.get("command_name")
        name = named.value.strip() if named is not None and named.tag == "tag:yaml.org,2002:str" else ""
        where = f"commands.{name}"
        if not name or name in commands:
            problem = "there are two commands of this name; rename one" if name else "it has no text as `command_name`"
            problems.append(((at, "command_name"), f"{where if name else f'commands[{at}]'}: {problem}", False))
            continue
        description = grammar.read_text(entries.get("description"), f"{where}.description")
        if not description:
            problems.append(((at,), f"{where}.description: there is none, and a model chooses by it", True))
        parameter, is_required = grammar.read(entries.get("parameter"), f"{where}.parameter")
        response, _ = grammar.read(entries.get("response"), f"{where}.response")
        commands[name] = Command(
            name=name,
            description=description,
            parameter=parameter,
            is_required=is_required,
            response=response,
            arguments=build_arguments(parameter, is_required),
        )
    return tuple(commands.values()), problems
