"""CodeToolkit: a stateful Python kernel, and TaskWeaver plugins as functions in it."""

import asyncio
import os
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from textwrap import shorten
from typing import Any

from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import ProfileError
from goose_like.core.events import StateSaved
from goose_like.core.tool import Tool, make_tool
from goose_like.terminal.report_table import make_table
from goose_like.toolkit import ImageResult, Notifier, Requirements, ToolError, Toolkit, TransientResult, command, tool
from goose_like_toolkits.code.kernel.manager import listed
from goose_like_toolkits.code.plugins.plugin_prompt import call_of, faults_in, parameters_of, prompt_form, tool_spec
from goose_like_toolkits.code.plugins.registry import OWN, Catalogue, forms
from goose_like_toolkits.code.plugins.report import nothing_there, rows
from goose_like_toolkits.code.plugins.selection import bm25, text_of
from goose_like_toolkits.code.plugins.spec import Definition

from .config import MAX_TIMEOUT_S, Config
from .kernel_session import Surroundings, Workbench
from .saved_state import Saved

_NAME = "code"
_NOTES_BYTES = 1_000
_FEW = 10
_LIVE_NAMES = 200
_FAULTS = 5
_LISTED_CHARACTERS = 100


class CodeToolkit(Toolkit):
    """Python that remembers from call to call, run in the session's sandbox, with plugins as functions."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._config = config = Config.read(self.config)
        _check_installed(config.python)
        self._saved = saved = Saved.of(self.session.history.state.get(_NAME))
        folder = config.folder(self.workspace.root)
        try:
            self._catalogue = Catalogue(folder or OWN, config.plugins, saved.plugins)
        except ProfileError as error:
            raise ProfileError(str(error), ("config", "plugins")) from error
        if folder and not os.path.isdir(self._catalogue.project.plugins):
            raise ProfileError(str(self._catalogue.project.faults[-1]), ("config", "project"))
        self._top_k = config.select_top_k or self._catalogue.project.settings.select_top_k or _FEW
        self._at_start = forms(self._offered)
        room_bytes = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        around = Surroundings(self.session.name, self.session.outputs, notifier, self.report_progress, room_bytes)
        self._workbench = Workbench(self.workspace, self._catalogue, config, around, saved)
        self._telling: asyncio.Handle | None = None

    def prompt(self) -> str:
        """How cells are best used, and which plugins there are, where they are few."""
        self._telling = asyncio.get_running_loop().call_soon(self._tell_faults)  # when the session has started
        told = [] if self._is_plugin_only else [_GUIDANCE]
        on = self._offered
        if on and self._is_few:
            if not self._is_plugin_only:
                told.append(f"Functions that are there in the kernel, without an import:\n\n{forms(on)}")
        elif on:
            told.append(
                f"There are {len(on)} plugins, functions in the kernel; you are told of those that fit the task, and "
                "`list_plugins` finds others."
            )
        return "\n\n".join(told)

    def tools(self) -> tuple[Tool, ...]:
        """With `mode: plugin_only` a tool for each plugin in place of free code, or one for all where they are many."""
        tools = {made.name: made for made in super().tools()}
        if not self._is_plugin_only:
            tools.pop("call_plugin", None)
            return tuple(tools.values())
        tools.pop("run_python", None)
        offered = [each for each in self._offered if each.required or self._is_few]
        if set(self._catalogue.offerable) <= {each.name for each in offered}:
            tools.pop("call_plugin", None)  # there is none that could be switched on later
        made = [self._tool_of(each) for each in offered]
        if taken := [each.name for each in made if each.name in tools]:
            raise ProfileError(f"the plugin {taken[0]!r} has the name of a tool; rename it")
        return (*tools.values(), *made)

    async def news(self) -> Mapping[str, str]:
        """Where there are many, those that fit what the person said last; else when others are on than at first."""
        on = self._offered
        if self._is_few:
            now = forms(on)
            return {} if now == self._at_start else {"plugins": f"these are on now, and no others:\n{now or 'none'}"}
        fitting = await self._catalogue.fitting(on, self.exchange_view.last_user_text, self._top_k, self.exchange_view)
        return {"plugins that may fit": f"\n{forms(fitting)}"}

    def live(self) -> list[tuple[str, str]]:
        """Which variables there are."""
        names = self._workbench.names
        return [("Variables in the Python kernel", listed(names, _LIVE_NAMES))] if names else []

    async def close(self) -> None:
        if self._telling:
            self._telling.cancel()
        await self._workbench.close()

    @tool(time_limit_s=None)
    async def run_python(self, code: str, timeout_s: float | None = None) -> str | ImageResult | TransientResult:
        """Run Python in a kernel that remembers variables from call to call. Shows prints and the last line's value."""
        limit_s = self._config.timeout_s if timeout_s is None else timeout_s
        if not 0 < limit_s <= MAX_TIMEOUT_S:
            raise ToolError(f"timeout_s is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}")
        if not code.strip():
            raise ToolError("the code is empty")
        return await self._run(code, limit_s)

    @tool(time_limit_s=None)
    async def call_plugin(self, name: str, arguments: dict[str, Any]) -> str | ImageResult | TransientResult:
        """Call a plugin with its arguments by name; describe_plugin tells which it takes."""
        definition = self._catalogue.find(name)
        if why := self._why_off(name):
            raise ToolError(f"{name} can't be called: {why}")
        if fault := faults_in(definition, arguments):
            raise ToolError(fault)
        return await self._call(definition, **arguments)

    @tool
    async def list_plugins(self, about: str = "") -> str:
        """The plugins by name, those first that fit.

        Args:
            about: words of the task
        """
        there = self._catalogue.project.definitions
        if about:
            scores = bm25([text_of(each) for each in there], about)
            there = tuple(each for _, each in sorted(zip(scores, there, strict=True), key=lambda pair: -pair[0]))
        return "\n".join(map(self._listed, there)) or f"there are no plugins in {self._catalogue.project.plugins}"

    @tool
    async def describe_plugin(self, name: str) -> str:
        """All that is known of a plugin: what it does, takes and gives, examples, configuration."""
        definition = self._catalogue.find(name)
        why = self._why_off(name)
        configured = [f"# configured: {key} = {value!r}" for key, value in definition.configurations.items()]
        return "\n".join([prompt_form(definition).rstrip("\n"), *configured, *([f"# off: {why}"] if why else [])])

    @tool
    async def kernel_reset(self) -> str:
        """End the Python kernel with all its variables; the next cell starts a new one."""
        names = await self._workbench.reset()
        self._save()
        return f"the kernel was ended; gone: {listed(names) or 'no variables'}"

    @command(usage="[on|off NAME, or VARIABLE=VALUE]")
    def plugins(self, desk: SlashContext, words: str) -> None:
        """Show the plugins, switch one for this session, or set a variable that plugins see"""
        verb, _, name = words.partition(" ")
        key, is_setting, value = words.partition("=")
        if verb in ("on", "off") and name.strip():
            self._catalogue.switch(name.strip(), is_on=verb == "on")
            desk.show(f"{name.strip()} is {verb}")
        elif is_setting and key.strip().isidentifier():
            self._workbench.variables[key.strip()] = value.strip()
            desk.show(f"plugins see {key.strip()} = {value.strip()}")
        elif words:
            raise ToolError("say `/plugins on NAME`, `/plugins off NAME` or `/plugins VARIABLE=VALUE`")
        else:
            shown, project = make_table("plugin", "state", "what it does"), self._catalogue.project
            for name, state, what in (listed := rows(project, self._why_off)):
                shown.add_row(name, state, _short(what))
            desk.show(shown if listed else nothing_there(project))
            for name, value in self._workbench.variables.items():
                desk.show(f"{name} = {value}")
        self._save()

    async def _run(self, code: str, limit_s: float) -> str | ImageResult | TransientResult:
        try:
            ran = await self._workbench.run(code, limit_s)
        finally:
            self._save()
        if ran.picture and self._config.figures:
            later = None if ran.text == ran.later else ran.later
            return ImageResult(ran.picture.data, ran.picture.source, ran.text, later)
        return ran.text if ran.text == ran.later else TransientResult(ran.text, ran.later)

    async def _call(self, definition: Definition, /, **arguments: Any) -> str | ImageResult | TransientResult:
        if why := self._catalogue.why_off(definition.name):
            raise ToolError(f"{definition.name} can't be called: {why}")
        return await self._run(call_of(definition, arguments), self._config.timeout_s)

    def _tool_of(self, definition: Definition) -> Tool:
        marks = make_tool(self.call_plugin).options
        return Tool(tool_spec(definition), partial(self._call, definition), parameters_of(definition), marks)

    @property
    def _is_plugin_only(self) -> bool:
        return self._config.mode == "plugin_only"

    @property
    def _is_few(self) -> bool:
        return len(self._offered) <= self._top_k

    @property
    def _offered(self) -> tuple[Definition, ...]:
        """What a model may call."""
        return self._catalogue.offered if self._is_plugin_only else self._catalogue.on

    def _why_off(self, name: str) -> str | None:
        """Why a plugin can't be called in this mode; None: it can."""
        if why := self._catalogue.why_off(name):
            return why
        is_offered = name in (each.name for each in self._offered)
        return None if is_offered else "no `plugin_only: true` in its YAML"

    def _listed(self, definition: Definition) -> str:
        why = self._why_off(definition.name)
        return f"{definition.name}: {f'(off: {why}) ' if why else ''}{_short(definition.description)}"

    def _tell_faults(self) -> None:
        """To the person: what keeps plugins of the project from being used."""
        pressing = self._catalogue.project.pressing
        for fault in pressing[:_FAULTS]:
            self.notifier.log(str(fault))
        if len(pressing) > _FAULTS:
            rest = len(pressing) - _FAULTS
            folder = self._catalogue.project.folder
            self.notifier.log(f"{rest} more such: goose-like plugin --project {folder} check")

    def _save(self) -> None:
        """For a resumed session: which names there were, what was switched and set."""
        variables = {
            name: value
            for name, value in self._workbench.variables.items()
            if str(self._config.session_vars.get(name)) != value
        }
        names, switched = tuple(self._workbench.names), dict(self._catalogue.switched)
        saved = Saved(names=names, plugins=switched, variables=variables)
        if saved != self._saved:
            self._saved = saved
            self.notifier.notify(StateSaved(toolkit=_NAME, value=saved.state))


_GUIDANCE = (
    "- Work on data with `run_python`: look first (shape, head, dtypes), then go on in small cells; variables, "
    "imports and functions stay.\n"
    "- The value of a cell's last line is shown; print no more than you need. Figures and long tables are "
    "saved as files, and their paths told."
)


def _short(description: str) -> str:
    return shorten(description, _LISTED_CHARACTERS, placeholder=" ...")


def _check_installed(python: str) -> None:
    needed = ("jupyter_client", *(("ipykernel",) if python == sys.executable else ()))
    if missing := [name for name in needed if find_spec(name) is None]:
        raise ProfileError(f"toolkit {_NAME!r} needs {missing[0]}: pip install 'goose-like[kernel]'")
