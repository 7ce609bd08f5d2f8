"""The plugins of one kernel: loaded when a cell first names them, and kept up to date with messages of the host."""

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .code_names import find_names
from .plugin_context import PluginContext, Send
from .plugin_loader import LoadedPlugin, PluginLoader, PluginSource, PluginTest, format_plugin_error


class FailedPlugin:
    """A stand-in for a plugin that could not be loaded: each use raises the reason."""

    _reason = ""  # a copy reads attributes before it has any

    def __init__(self, name: str, error: str, is_import_error: bool) -> None:
        retry = "install the missing package, and name the plugin again" if is_import_error else "change its file"
        self._reason = f"the plugin {name!r} is off because loading it failed; to load it again, {retry}\n{error}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise the reason as an undefined name would."""
        raise NameError(self._reason)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._reason)

    def __repr__(self) -> str:
        return f"<{self._reason}>"


@dataclass(frozen=True)
class _Placement:
    """An object that this manager put into the namespace under a plugin's name."""

    source: PluginSource
    value: Any
    plugin: LoadedPlugin | None = None
    error: str | None = None
    is_import_error: bool = False


class PluginManager:
    """The namespace of a kernel with its plugins. `send` takes messages for the host, from any thread.

    A `KeyboardInterrupt` while a plugin loads propagates, and the next cell that names the plugin loads it again. Any
    other error of a plugin's code turns the plugin off.
    """

    def __init__(self, namespace: dict[str, Any], send: Send) -> None:
        self._namespace = namespace
        self._send = send
        self._context = PluginContext(send)
        self._loader = PluginLoader(self._context)
        self._sources: dict[str, PluginSource] = {}
        self._placements: dict[str, _Placement] = {}
        self._initial = dict(namespace)
        self._user_names: list[str] = []

    def handle(self, message: dict[str, Any]) -> None:
        """Handle a message of the host."""
        match message["type"]:
            case "setup":
                self._context.begin_session(message["session"], message["artifacts"])
                self._context.set_variables(message["variables"])
                self._update_sources(message["plugins"], [])
            case "plugins":
                self._update_sources(message["plugins"], message["removed"])
            case "variables":
                self._context.set_variables(message["variables"])
            case "test":
                self._test(message["plugin"])

    def before_cell(self, code: str) -> None:
        """Load the plugins that the code names, and the changed ones, which functions of earlier cells may call."""
        self._context.begin_execution()
        names, _ = find_names(code, self._sources)
        for name, placed in self._placements.items():
            if placed.source is not self._sources[name]:
                names.add(name)
        for name in sorted(names):
            self._place(name)

    def after_cell(self) -> None:
        """Send the names of the user's variables if they changed."""
        names = sorted(name for name in list(self._namespace) if self._is_user_name(name))
        if names != self._user_names:
            self._user_names = names
            self._send({"type": "names", "names": names})

    def _update_sources(self, plugins: list[dict[str, Any]], removed: list[str]) -> None:
        for name in removed:
            if self._is_placed(name):
                del self._namespace[name]
                if name in self._initial:
                    self._namespace[name] = self._initial[name]
            self._placements.pop(name, None)
            self._sources.pop(name, None)
            self._loader.unload(name)
        for source in map(PluginSource.from_message, plugins):
            self._sources[source.name] = source
        env: dict[str, str] = {}
        for source in self._sources.values():
            env |= source.list_variables()
        self._context.set_env(env)

    def _place(self, name: str) -> None:
        initial = self._initial.get(name, self)  # IPython's own `open` may be replaced
        if self._namespace.get(name, initial) is not initial and not self._is_placed(name):
            return  # the user's code has a value of this name
        former = self._placements.get(name)
        source = self._sources[name]
        if former is None or former.source is not source or former.is_import_error:
            self._placements[name] = self._load(source, former)
        self._namespace[name] = self._placements[name].value

    def _load(self, source: PluginSource, former: _Placement | None) -> _Placement:
        try:
            plugin = self._loader.load(source)
            value = plugin.create(self._context)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # foreign code may even call `sys.exit`
            text = format_plugin_error(error, source.file)
            is_import_error = isinstance(error, ImportError)
            if former is None or former.error != text:
                self._send({"type": "failed", "plugin": source.name, "error": text})
            stand_in = FailedPlugin(source.name, text, is_import_error)
            return _Placement(source, stand_in, error=text, is_import_error=is_import_error)
        if former:
            self._send({"type": "reloaded", "plugin": source.name})
        return _Placement(source, value, plugin)

    def _is_placed(self, name: str) -> bool:
        placed = self._placements.get(name)
        return placed is not None and self._namespace.get(name) is placed.value

    def _is_user_name(self, name: str) -> bool:
        # `globals()[1] = 2` is possible
        is_name = isinstance(name, str) and name.isidentifier() and not name.startswith("_")
        return is_name and name not in self._initial and not self._is_placed(name)

    def _test(self, name: str) -> None:
        """Run the tests of a plugin and send their results."""
        source = self._sources[name]
        placed = self._placements.get(name)
        try:
            if placed and placed.plugin:
                plugin = placed.plugin
            else:
                plugin = self._loader.load(source)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._send({"type": "failed", "plugin": name, "error": format_plugin_error(error, source.file)})
            return
        results = []
        for test in plugin.tests:
            error_text = self._run_test(test, plugin)
            results.append({"name": test.name, "description": test.description, "error": error_text})
        self._send({"type": "tested", "plugin": name, "tests": results})

    def _run_test(self, test: PluginTest, plugin: LoadedPlugin) -> str | None:
        """Run a test with a new object and context; return its error."""
        try:
            with import_module("taskweaver.plugin.context").temp_context() as context:
                context._env.update(plugin.source.list_variables())
                context._session_var.update(self._context._session_var)
                result = test.run(plugin.create(context))
                if inspect.iscoroutine(result):  # in a thread, because the kernel's thread has a running loop
                    with ThreadPoolExecutor(1) as thread:
                        thread.submit(asyncio.run, result).result()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return format_plugin_error(error, plugin.source.file)
        return None
