"""TaskWeaver's import names for plugins. The real package is used where it is installed."""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .artifact import ArtifactType
from .plugin_context import LogErrorLevel, Plugin, PluginContext, TestPluginContext, temp_context

_PACKAGES = ("taskweaver", "taskweaver.plugin")
_MODULES = ("base", "context", "register", "utils")


class TaskWeaverFinder(MetaPathFinder, Loader):
    """A finder for `taskweaver.plugin` and its modules. Append it to `sys.meta_path`, after the real package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of TaskWeaver that plugins import."""
        package, _, name = fullname.rpartition(".")
        is_package = fullname in _PACKAGES
        if not is_package and (package != _PACKAGES[-1] or name not in _MODULES):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Define the names of a module."""
        names = vars(module)
        match module.__name__.rpartition(".")[2]:
            case "plugin":
                base = import_module("taskweaver.plugin.base")
                register = import_module("taskweaver.plugin.register")
                names["__all__"] = ["Plugin", "register_plugin", "test_plugin"]
                names["Plugin"] = base.Plugin
                names.update(register_plugin=register.register_plugin, test_plugin=register.test_plugin)
            case "base":
                names["Plugin"] = Plugin
            case "context":
                names.update(PluginContext=PluginContext, TestPluginContext=TestPluginContext)
                names.update(ArtifactType=ArtifactType, LogErrorLevel=LogErrorLevel, temp_context=temp_context)
            case "register":
                _define_decorators(names)
            case "utils":
                names["make_api_call"] = import_module(".api_call", __package__).make_api_call


def _define_decorators(names: dict[str, Any]) -> None:
    """Define the decorators, and the two hooks through which a loader receives the registered objects."""

    def register_plugin(func: Any) -> Any:
        hook = names["register_plugin_inner"]
        if hook is None:
            print("no registry for loading plugin")
        elif isinstance(func, type) and issubclass(func, Plugin):
            hook(func)
        elif callable(func):
            hook(_wrap_function(func))
        else:
            raise TypeError(f"@register_plugin is for a class of plugins or a function, not {func!r}")
        return func

    def test_plugin(name: str | None = None, description: str | None = None) -> Callable[[Any], Any]:
        def register(func: Any) -> Any:
            hook = names["register_plugin_test_inner"]
            if hook is None:
                print("no registry for loading plugin")
                return func
            text = description
            if text is None:
                text = func.__doc__ or ""
            hook(name or func.__name__, text, func)
            return func

        return register

    names.update(register_plugin_inner=None, register_plugin_test_inner=None)
    names.update(register_plugin=register_plugin, test_plugin=test_plugin)


def _wrap_function(function: Callable[..., Any]) -> type[Plugin]:
    """Return a plugin class with this function as its `__call__`."""
    name = getattr(function, "__name__", type(function).__name__)
    call = staticmethod(function)
    namespace = {
        "__call__": call,
        "__wrapped__": call,  # makes `inspect.signature` show the function's signature
        "__doc__": function.__doc__,
        "__module__": function.__module__,
    }
    return type(f"FuncPlugin_{name}", (Plugin,), namespace)
