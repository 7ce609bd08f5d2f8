"""Commands that call a plugin, or run its tests, in a kernel without a model."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.profile import SandboxMode
from goose_like.core.errors import UsageError
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import open_screen
from goose_like.toolkit import ToolError, Workspace
from goose_like_toolkits.code.plugins.plugin_prompt import (
    check_arguments,
    describe_arguments,
    format_call,
    format_description,
)
from goose_like_toolkits.code.plugins.project import Project
from goose_like_toolkits.code.plugins.registry import PluginRegistry
from goose_like_toolkits.code.plugins.spec import PluginSpec

from .config import MAX_TIMEOUT_S, Config
from .kernel_session import KernelSession, SavedState, SessionOutputs

_OUTPUT_LIMIT_BYTES = 1 << 20

# Expressions for the kernel, whose interpreter may be another one than ours.
_READERS = {
    ".csv": "read_csv({!r})",
    ".tsv": "read_csv({!r}, sep='\\t')",
    ".json": "read_json({!r})",
    ".parquet": "read_parquet({!r})",
    ".xlsx": "read_excel({!r})",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The folder for artifacts, the sandbox mode, and the interpreter of a kernel; None for our own."""

    outputs: Path
    sandbox: SandboxMode
    python: str | None = None


class _FileArgument:
    """A data frame from a file, as an argument of a call in Python."""

    def __init__(self, path: str) -> None:
        """Check the file. Raise UsageError if it cannot be read as a data frame."""
        reader = _READERS.get(Path(path).suffix.lower())
        if reader is None:
            raise UsageError(f"@{path} is no data frame; use one of {', '.join(_READERS)}")
        if not Path(path).is_file():
            raise UsageError(f"there is no file {path!r}")
        self._code = f"__import__('pandas').{reader.format(path)}"

    def __repr__(self) -> str:
        return self._code


def print_plugin(project: Project, name: str) -> None:
    """Print everything about a plugin, which may be off. Raise UsageError if there is none."""
    spec = _find(project, name)
    description = format_description(spec, project.off.get(name))
    print(escape_controls(f"# {spec.file}\n{description}"))


def call_plugin(project: Project, name: str, words: Sequence[str], place: Place) -> int:
    """Call a plugin with `NAME=VALUE` words. Return the exit code. Raise UsageError if the plugin is off."""
    spec = _find_usable(project, name)
    code = format_call(spec, _parse_arguments(spec, words))
    return asyncio.run(_call(project, code, place))


def run_plugin_tests(project: Project, name: str, place: Place) -> int:
    """Run the tests of a plugin. Return the exit code, 1 without tests. Raise UsageError if the plugin is off."""
    spec = _find_usable(project, name)
    return asyncio.run(_run_tests(project, spec, place))


async def _call(project: Project, code: str, place: Place) -> int:
    async with _open_kernel(project, place) as kernel:
        try:
            result = await kernel.run(code, MAX_TIMEOUT_S)
        except ToolError as error:
            print(escape_controls(str(error)), file=sys.stderr)
            return 1
        stream = sys.stderr if result.error else sys.stdout
        print(escape_controls(result.text.removesuffix("\n")), file=stream)
        return 1 if result.error else 0


async def _run_tests(project: Project, spec: PluginSpec, place: Place) -> int:
    async with _open_kernel(project, place) as kernel:
        await kernel.run("None", MAX_TIMEOUT_S)  # starts the kernel with its plugin manager
        reply = await kernel.ask_manager({"type": "test", "plugin": spec.name}, MAX_TIMEOUT_S)
    if reply["type"] == "failed":
        error = f"{spec.name} can't be loaded:\n{reply['error']}"
        print(escape_controls(error), file=sys.stderr)
        return 1
    tests = reply["tests"]
    if not tests:
        print(f"{spec.code} has no tests; write a function with @test_plugin() that takes the plugin")
        return 1
    failed_count = 0
    for test in tests:
        _print_test(test)
        if test["error"]:
            failed_count += 1
    print(f"\n{len(tests) - failed_count} passed, {failed_count} failed")
    return 1 if failed_count else 0


def _print_test(test: Mapping[str, str]) -> None:
    mark = "✗" if test["error"] else "✓"
    line = f"{mark} {test['name']}"
    if test["description"]:
        line += f": {test['description']}"
    print(escape_controls(line))
    if test["error"]:
        print(escape_controls(test["error"]))


@asynccontextmanager
async def _open_kernel(project: Project, place: Place) -> AsyncIterator[KernelSession]:
    """Provide a kernel that never asks for permission, because the user typed the command."""
    config = Config()
    if place.python:
        config = Config(python=place.python)
    config.check_installed()
    screen = open_screen(shows_answer=False)
    async with Workspace(Path.cwd(), mode=place.sandbox, approval="auto", notifier=screen) as workspace:
        registry = PluginRegistry(project.folder, None, {})
        session_outputs = SessionOutputs("manual run", place.outputs, screen, lambda *_: None, _OUTPUT_LIMIT_BYTES)
        kernel = KernelSession(workspace, registry, config, session_outputs, SavedState())
        try:
            yield kernel
        finally:
            await kernel.close()


def _find(project: Project, name: str) -> PluginSpec:
    spec = project.by_name.get(name)
    if spec is None:
        raise UsageError(project.explain_missing(name))
    return spec


def _find_usable(project: Project, name: str) -> PluginSpec:
    spec = _find(project, name)
    reason = project.off.get(name)
    if reason:
        raise UsageError(f"the plugin {name!r} is off: {reason}")
    return spec


def _parse_arguments(spec: PluginSpec, words: Sequence[str]) -> dict[str, object]:
    """Parse `NAME=VALUE` words.

    A value is JSON, a data frame if it is `@FILE`, or else text. If the type in the YAML is `str`, it is always text.
    """
    arguments: dict[str, object] = {}
    types = {parameter.name: parameter.type for parameter in spec.parameters}
    for word in words:
        name, is_pair, text = word.partition("=")
        if not is_pair:
            raise UsageError(f"write arguments as NAME=VALUE, not {word!r}; {describe_arguments(spec)}")
        if name in arguments:
            raise UsageError(f"{name!r} is given twice; give it once")
        is_text = types.get(name) == "str"
        arguments[name] = text if is_text else _parse_value(text)
    if error := check_arguments(spec, arguments):
        raise UsageError(error)
    return arguments


def _parse_value(text: str) -> object:
    if text.startswith("@"):
        return _FileArgument(text[1:])
    try:
        return json.loads(text)
    except ValueError:
        return text
