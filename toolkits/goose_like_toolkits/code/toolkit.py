"""The toolkit `code`: a stateful Python kernel, with TaskWeaver plugins as functions in it."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from textwrap import shorten
from typing import Any, ClassVar

from typing_extensions import override

from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import ProfileError
from goose_like.core.events import StateSaved
from goose_like.core.tool import Tool, ToolOptions, make_tool
from goose_like.terminal.report_table import make_table
from goose_like.toolkit import (
    Example,
    ImageResult,
    Notifier,
    Requirements,
    ToolError,
    Toolkit,
    TransientResult,
    command,
    tool,
)
from goose_like_toolkits.code.kernel.manager import format_names
from goose_like_toolkits.code.plugins.plugin_prompt import (
    check_arguments,
    format_call,
    format_description,
    format_signatures,
    make_arguments_model,
    make_tool_spec,
)
from goose_like_toolkits.code.plugins.project import explain_empty, list_rows
from goose_like_toolkits.code.plugins.registry import SHIPPED_PLUGINS, PluginRegistry
from goose_like_toolkits.code.plugins.selection import score_words
from goose_like_toolkits.code.plugins.spec import PluginSpec

from .config import MAX_TIMEOUT_S, Config
from .examples import EXAMPLES
from .kernel_session import CellResult, KernelSession, SavedState, SessionOutputs

_NAME = "code"
_NOTES_BYTES = 1_000
_DEFAULT_TOP_K = 10
_STATE_NAMES = 200
_SHOWN_ERRORS = 5
_DESCRIPTION_CHARACTERS = 100
_ERROR_LINES = 2
_SHOWN_FILES = 5
_FIRST_LINES_BYTES = 1_000
_LISTING_TOOLS = ("list_plugins", "describe_plugin")
_CALL_OPTIONS = ToolOptions(time_limit_s=None, kind="execute")

_KERNEL = "- The kernel runs {python}, with the packages of that environment; `shell` may find another Python."
_GUIDANCE = (
    "- Work on data with `run_python`: look first (shape, head, dtypes), then continue in small cells; variables, "
    "imports and functions stay.\n"
    "- The value of a cell's last line is shown; print no more than you need. Figures and long tables are "
    "saved as files, and you get their paths.\n"
    "- A missing package: `%pip install NAME` in a cell. It asks the person, and lasts for this session."
)


class CodeToolkit(Toolkit):
    """A Python kernel that keeps its variables, in the sandbox of the session, with plugins as functions."""

    examples: ClassVar[Sequence[Example]] = EXAMPLES

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._config = Config.parse(self.config)
        self._config.check_installed()
        self._saved = SavedState.parse(self.session.history.state.get(_NAME))
        self._registry = self._read_registry()
        project = self._registry.project
        self._top_k = self._config.select_top_k or project.settings.select_top_k or _DEFAULT_TOP_K
        self._initial_signatures = format_signatures(self._offered)
        self._is_listed_in_prompt = self._fits_prompt and len(self._offered) == len(project.specs)
        limit_bytes = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        outputs = SessionOutputs(self.session.name, self.session.outputs, notifier, self.report_progress, limit_bytes)
        self._kernel_session = KernelSession(self.workspace, self._registry, self._config, outputs, self._saved)
        self._log_handle: asyncio.Handle | None = None
        self._last_error = ""  # of the last cell in this turn
        self._first_lines = ""  # of data files

    def _read_registry(self) -> PluginRegistry:
        """Read the plugins of the config's project, or ours. Raise ProfileError with the path of the wrong key."""
        folder = SHIPPED_PLUGINS
        if self._config.project:
            folder = self.workspace.root / os.path.expanduser(self._config.project)
        try:
            registry = PluginRegistry(folder, self._config.plugins, self._saved.plugins)
        except ProfileError as error:
            raise ProfileError(str(error), ("config", "plugins")) from error
        if not os.path.isdir(registry.project.plugins):
            raise ProfileError(str(registry.project.diagnostics[-1]), ("config", "project"))
        return registry

    @override
    def prompt(self) -> str:
        self._log_handle = asyncio.get_running_loop().call_soon(self._log_errors)  # when the session has started
        sections = []
        if not self._is_plugin_only:
            sections.append(self._write_guidance())
        offered = self._offered
        if offered and self._fits_prompt:
            if not self._is_plugin_only:
                signatures = format_signatures(offered)
                sections.append(f"Functions in the kernel, which need no import:\n\n{signatures}")
        elif offered:
            sections.append(
                f"There are {len(offered)} plugins, which are functions in the kernel. You get those that fit the "
                "task, and `list_plugins` finds others."
            )
        if off := self._registry.project.describe_broken(_SHOWN_ERRORS):
            sections.append(f"Plugins that are off, because their files have errors:\n{off}")
        return "\n\n".join(sections)

    @override
    def tools(self) -> tuple[Tool, ...]:
        tools = {each.name: each for each in super().tools()}
        if not self._is_plugin_only:
            if self._is_listed_in_prompt:
                for name in _LISTING_TOOLS:
                    tools.pop(name, None)
            return tuple(tools.values())
        tools.pop("run_python", None)
        specs = [spec for spec in self._offered if spec.required or self._fits_prompt]
        names = {spec.name for spec in specs}
        if not names.issuperset(self._registry.possible_tools):
            tools["call_plugin"] = replace(make_tool(self.call_plugin), options=_CALL_OPTIONS)
        for spec in specs:
            if spec.name in tools:
                raise ProfileError(f"the plugin {spec.name!r} has the name of a tool; rename it")
        return (*tools.values(), *map(self._make_plugin_tool, specs))

    @override
    async def context_updates(self) -> Mapping[str, str]:
        if self._config.small_model:
            return {"first lines": f"\n{self._first_lines}"} if self._first_lines else {}
        if self._fits_prompt:
            signatures = format_signatures(self._offered)
            if signatures == self._initial_signatures:
                return {}
            return {"plugins": f"only these are on now:\n{signatures or 'none'}"}
        if not self.session.history.is_in_turn:  # the new message is not there yet
            return {}
        text = self.exchange_view.last_user_text
        selected = await self._registry.select(self._offered, text, self._top_k, self.exchange_view)
        if selected:
            return {"plugins that may fit": f"\n{format_signatures(selected)}"}
        none = "none by the words of the message"
        if not self._is_listed_in_prompt:
            none += "; `list_plugins` lists all"
        return {"plugins that may fit": none}

    @override
    def state_sections(self) -> list[tuple[str, str]]:
        names = self._kernel_session.names
        if not names:
            return []
        return [("Variables in the Python kernel", format_names(names, _STATE_NAMES))]

    @override
    async def on_turn_start(self) -> None:
        self._last_error = ""
        if self._config.small_model:
            await self._read_first_lines()

    async def _read_first_lines(self) -> None:
        """Read the first line of each CSV file in the root, which names its columns."""
        names = sorted(file.name for file in self.workspace.root.glob("*.csv"))
        if not names:
            return
        command = ["env", "-C", str(self.workspace.root), "head", "-v", "-n", "1", "--", *names[:_SHOWN_FILES]]
        code, output = await self.workspace.run_internal(command)
        self._first_lines = ""
        if code == 0:
            lines = output[:_FIRST_LINES_BYTES].decode(errors="replace")
            self._first_lines = lines.strip()

    @override
    def before_finish(self) -> str | None:
        if not (self._config.small_model and self._last_error):
            return None
        return f"Your last cell failed:\n{self._last_error}\nCorrect it and run it again, or say that it failed."

    @override
    async def close(self) -> None:
        if self._log_handle:
            self._log_handle.cancel()
        await self._kernel_session.close()

    @tool(time_limit_s=None, kind="execute", title="Run {code}")
    async def run_python(self, code: str, timeout_s: float | None = None) -> str | ImageResult | TransientResult:
        """Run Python in a kernel that keeps variables from call to call. Shows prints and the last line's value."""
        limit_s = self._config.timeout_s if timeout_s is None else timeout_s
        if not 0 < limit_s <= MAX_TIMEOUT_S:
            raise ToolError(f"timeout_s is in seconds, more than 0 and at most {MAX_TIMEOUT_S:g}")
        if not code.strip():
            raise ToolError("the code is empty")
        return await self._run(code, limit_s)

    async def call_plugin(self, name: str, arguments: dict[str, Any]) -> str | ImageResult | TransientResult:
        """Call a plugin with its arguments by name; describe_plugin lists them."""
        spec = self._registry.find(name)
        if reason := self._explain_off(name):
            raise ToolError(f"{name} can't be called: {reason}")
        if error := check_arguments(spec, arguments):
            raise ToolError(error)
        return await self._call(spec, **arguments)

    @tool(read_only=True, kind="search", title="List plugins {about}")
    async def list_plugins(self, about: str = "") -> str:
        """List the plugins, best matches first.

        Args:
            about: words of the task
        """
        specs = self._registry.project.specs
        if not specs:
            return f"there are no plugins in {self._registry.project.plugins}"
        if about:
            scores = score_words(specs, about)
            order = sorted(range(len(specs)), key=lambda at: -scores[at])
            specs = tuple(specs[at] for at in order)
        return "\n".join(map(self._format_line, specs))

    @tool(read_only=True, title="Describe the plugin {name}")
    async def describe_plugin(self, name: str) -> str:
        """Describe a plugin: purpose, parameters, return values, examples and configuration."""
        spec = self._registry.find(name)
        return format_description(spec, self._explain_off(name))

    @tool(kind="execute", title="Restart the kernel")
    async def kernel_reset(self) -> str:
        """End the Python kernel with all its variables; the next cell starts a new one."""
        names = await self._kernel_session.reset()
        self._save_state()
        return f"the kernel was ended; its variables are gone: {format_names(names) or 'none'}"

    @command(usage="[on|off NAME, or VARIABLE=VALUE]")
    def plugins(self, context: SlashContext, words: str) -> None:
        """Show the plugins, switch one for this session, or set a session variable."""
        verb, _, name = words.partition(" ")
        name = name.strip()
        key, is_setting, value = words.partition("=")
        key = key.strip()
        value = value.strip()
        if verb in ("on", "off") and name:
            self._registry.switch(name, is_on=verb == "on")
            context.show(f"{name} is {verb}")
        elif is_setting and key.isidentifier():
            self._kernel_session.variables[key] = value
            context.show(f"session variable {key} = {value}")
        elif words:
            raise ToolError("write `/plugins on NAME`, `/plugins off NAME` or `/plugins VARIABLE=VALUE`")
        else:
            self._show_plugins(context)
        self._save_state()

    def _show_plugins(self, context: SlashContext) -> None:
        project = self._registry.project
        rows = list_rows(project, self._explain_off)
        if rows:
            table = make_table("plugin", "state", "description")
            for name, state, description in rows:
                table.add_row(name, state, _shorten(description))
            context.show(table)
        else:
            context.show(explain_empty(project))
        for name, value in self._kernel_session.variables.items():
            context.show(f"{name} = {value}")

    async def _run(self, code: str, limit_s: float) -> str | ImageResult | TransientResult:
        try:
            result = await self._kernel_session.run(code, limit_s)
        finally:
            self._save_state()
        self._last_error = _find_last_lines(result)
        is_transient = result.text != result.replacement
        if result.image and self._config.figures:
            replacement = result.replacement if is_transient else None
            return ImageResult(result.image.data, result.image.source, result.text, replacement)
        if is_transient:
            return TransientResult(result.text, result.replacement)
        return result.text

    async def _call(self, spec: PluginSpec, /, **arguments: Any) -> str | ImageResult | TransientResult:
        if reason := self._registry.explain_off(spec.name):
            raise ToolError(f"{spec.name} can't be called: {reason}")
        return await self._run(format_call(spec, arguments), self._config.timeout_s)

    def _make_plugin_tool(self, spec: PluginSpec) -> Tool:
        make_parameters = cache(partial(make_arguments_model, spec))
        return Tool(make_tool_spec(spec), partial(self._call, spec), make_parameters, _CALL_OPTIONS)

    @property
    def _is_plugin_only(self) -> bool:
        return self._config.mode == "plugin_only"

    def _write_guidance(self) -> str:
        python = self._config.python
        if python == sys.executable:
            version = ".".join(map(str, sys.version_info[:2]))
            python = f"Python {version}"
        return f"{_GUIDANCE}\n{_KERNEL.format(python=python)}"

    @property
    def _fits_prompt(self) -> bool:
        return len(self._offered) <= self._top_k

    @property
    def _offered(self) -> tuple[PluginSpec, ...]:
        """The plugins that the model may call."""
        if self._is_plugin_only:
            return self._registry.offered_as_tools
        return self._registry.enabled

    def _explain_off(self, name: str) -> str | None:
        """Return why a plugin cannot be called in this mode, or None."""
        if reason := self._registry.explain_off(name):
            return reason
        is_offered = name in (spec.name for spec in self._offered)
        return None if is_offered else "no `plugin_only: true` in its YAML"

    def _format_line(self, spec: PluginSpec) -> str:
        description = _shorten(spec.description)
        reason = self._explain_off(spec.name)
        if reason:
            description = f"(off: {reason}) {description}"
        return f"{spec.name}: {description}"

    def _log_errors(self) -> None:
        """Show the first errors of the project's plugins to the user."""
        errors = self._registry.project.urgent_diagnostics
        for error in errors[:_SHOWN_ERRORS]:
            self.notifier.log(str(error))
        left_out = len(errors) - _SHOWN_ERRORS
        if left_out > 0:
            folder = self._registry.project.folder
            self.notifier.log(f"{left_out} more: goose-like plugin --project {folder} check")
        if self._offered and not self._config.project and not self._config.has_library("pandas"):
            self.notifier.log(
                "the plugins need pandas: pip install 'goose-like[analyst]', or turn them off with `plugins: []`"
            )

    def _save_state(self) -> None:
        """Save the names of variables, the switched plugins and the session variables, if they changed."""
        variables = dict(self._kernel_session.variables)
        for name, text in self._config.session_texts.items():
            if variables.get(name) == text:
                del variables[name]
        saved = SavedState(
            names=tuple(self._kernel_session.names),
            plugins=dict(self._registry.switched),
            variables=variables,
        )
        if saved != self._saved:
            self._saved = saved
            self.notifier.notify(StateSaved(toolkit=_NAME, value=saved.to_json()))


def _find_last_lines(result: CellResult) -> str:
    """Return the end of the output of a cell that failed, without notes; "" for any other cell."""
    if not result.error:
        return ""
    lines = [line for line in result.text.splitlines() if not line.startswith("[")]
    return "\n".join(lines[-_ERROR_LINES:])


def _shorten(description: str) -> str:
    return shorten(description, _DESCRIPTION_CHARACTERS, placeholder=" ...")
