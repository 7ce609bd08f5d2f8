"""The import names of TaskWeaver, for plugins: the real package is what is imported wherever it is installed."""

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


class Taskweaver(MetaPathFinder, Loader):
    """Finds `taskweaver.plugin` and what lies in it. Belongs at the end of `sys.meta_path`: nobody else had it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        is_package = fullname in _PACKAGES
        if not is_package and (package != _PACKAGES[-1] or name not in _MODULES):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        names = vars(module)
        match module.__name__.rpartition(".")[2]:
            case "plugin":
                base, _, register = (import_module(f"taskweaver.plugin.{name}") for name in _MODULES[:3])
                names["__all__"] = ["Plugin", "register_plugin", "test_plugin"]
                names["Plugin"] = base.Plugin
                names.update(register_plugin=register.register_plugin, test_plugin=register.test_plugin)
            case "base":
                names["Plugin"] = Plugin
            case "context":
                names.update(PluginContext=PluginContext, TestPluginContext=TestPluginContext)
                names.update(ArtifactType=ArtifactType, LogErrorLevel=LogErrorLevel, temp_context=temp_context)
            case "register":
                _fill_register(names)
            case "utils":
                names["make_api_call"] = import_module(".api_call", __package__).make_api_call


def _fill_register(names: dict[str, Any]) -> None:
    """The decorators, and beside them the two hooks by which whoever loads a plugin is given what it registers."""

    def register_plugin(func: Any) -> Any:
        hook = names["register_plugin_inner"]
        if hook is None:
            print("no registry for loading plugin")
        elif isinstance(func, type) and issubclass(func, Plugin):
            hook(func)
        elif callable(func):
            hook(_class_of(func))
        else:
            raise TypeError(f"@register_plugin is for a class of plugins or a function, not {func!r}")
        return func

    def test_plugin(name: str | None = None, description: str | None = None) -> Callable[[Any], Any]:
        def register(func: Any) -> Any:
            hook = names["register_plugin_test_inner"]
            if hook is None:
                print("no registry for loading plugin")
            else:
                hook(name or func.__name__, description if description is not None else func.__doc__ or "", func)
            return func

        return register

    names.update(register_plugin_inner=None, register_plugin_test_inner=None)
    names.update(register_plugin=register_plugin, test_plugin=test_plugin)


def _class_of(function: Callable[..., Any]) -> type[Plugin]:
    """A class whose objects, when called, are the function itself."""
    name = getattr(function, "__name__", type(function).__name__)
    called = dict.fromkeys(
        ("__call__", "__wrapped__"), staticmethod(function)
    )  # wrapped: its signature is the function's
    told = {"__doc__": function.__doc__, "__module__": function.__module__}
    return type(f"FuncPlugin_{name}", (Plugin,), {**called, **told})
