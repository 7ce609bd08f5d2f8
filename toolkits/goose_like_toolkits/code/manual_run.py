"""By hand: one plugin called, or its tests run, in a kernel of its own and without a model."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from goose_like.config.profile import SandboxMode
from goose_like.core.errors import UsageError
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import open_screen
from goose_like.toolkit import ToolError, Workspace
from goose_like_toolkits.code.plugins.plugin_prompt import call_of, faults_in, takes_of
from goose_like_toolkits.code.plugins.project import Project
from goose_like_toolkits.code.plugins.registry import Catalogue
from goose_like_toolkits.code.plugins.spec import Definition

from .config import MAX_TIMEOUT_S, Config
from .kernel_session import Surroundings, Workbench
from .saved_state import Saved

_ROOM_BYTES = 1 << 20


def call(project: Project, name: str, words: Sequence[str], outputs: Path, sandbox: SandboxMode) -> int:
    """Prints what a call of the plugin gives, and where its artifacts lie; the exit code.

    Raises:
        UsageError: no such plugin, it is off, or the arguments are none of its.
    """
    code = call_of(definition := _named(project, name), _arguments(definition, words))
    return asyncio.run(_called(project, code, outputs, sandbox))


def test(project: Project, name: str, outputs: Path, sandbox: SandboxMode) -> int:
    """Prints what came of each of the plugin's tests; the exit code is 1 if one failed or there is none.

    Raises:
        UsageError: no such plugin, or it is off.
    """
    return asyncio.run(_tested(project, _named(project, name), outputs, sandbox))


async def _called(project: Project, code: str, outputs: Path, sandbox: SandboxMode) -> int:
    async with _workbench(project, outputs, sandbox) as workbench:
        try:
            ran = await workbench.run(code, MAX_TIMEOUT_S)
        except ToolError as error:
            print(escape_controls(str(error)), file=sys.stderr)
            return 1
        print(escape_controls(ran.text.removesuffix("\n")), file=sys.stderr if ran.error else sys.stdout)
        return int(bool(ran.error))


async def _tested(project: Project, definition: Definition, outputs: Path, sandbox: SandboxMode) -> int:
    async with _workbench(project, outputs, sandbox) as workbench:
        await workbench.run("None", MAX_TIMEOUT_S)  # from now on there is a desk that can be told something
        said = await workbench.ask({"type": "test", "plugin": definition.name}, MAX_TIMEOUT_S)
    if said["type"] == "failed":
        print(escape_controls(f"{definition.name} can't be loaded:\n{said['error']}"), file=sys.stderr)
        return 1
    tests = said["tests"]
    for each in tests:
        about = f": {each['description']}" if each["description"] else ""
        print(escape_controls(f"{'✗' if each['error'] else '✓'} {each['name']}{about}"))
        if each["error"]:
            print(escape_controls(each["error"]))
    if not tests:
        print(f"{definition.code} has no tests; write a function with @test_plugin() that takes the plugin")
    failed = sum(bool(each["error"]) for each in tests)
    if tests:
        print(f"\n{len(tests) - failed} passed, {failed} failed")
    return int(failed > 0 or not tests)


@asynccontextmanager
async def _workbench(project: Project, outputs: Path, sandbox: SandboxMode) -> AsyncIterator[Workbench]:
    """What is typed here is the person's own wish: nothing within the sandbox is asked about."""
    front = open_screen(shows_answer=False)
    async with Workspace(Path.cwd(), mode=sandbox, approval="auto", notifier=front) as workspace:
        around = Surroundings("by hand", outputs, front, lambda text: None, _ROOM_BYTES)
        workbench = Workbench(workspace, Catalogue(project.folder, None, {}), Config(), around, Saved())
        try:
            yield workbench
        finally:
            await workbench.close()


def _named(project: Project, name: str) -> Definition:
    there = {each.name: each for each in project.definitions}
    if name not in there:
        raise UsageError(project.missing(name))
    if why := project.off.get(name):
        raise UsageError(f"the plugin {name!r} is off: {why}")
    return there[name]


def _arguments(definition: Definition, words: Sequence[str]) -> dict[str, object]:
    """The arguments by name, as the types in the YAML want them: what is no text is written as JSON."""
    given: dict[str, object] = {}
    kinds = {each.name: each.type for each in definition.parameters}
    for word in words:
        name, is_pair, text = word.partition("=")
        if not is_pair:
            raise UsageError(f"write arguments as NAME=VALUE, not {word!r}; {takes_of(definition)}")
        if name in given:
            raise UsageError(f"{name!r} is given twice; say it once")
        given[name] = text
        with suppress(ValueError):  # a text, for a parameter of any type
            given[name] = text if kinds.get(name) == "str" else json.loads(text)
    if fault := faults_in(definition, given):
        raise UsageError(fault)
    return given
