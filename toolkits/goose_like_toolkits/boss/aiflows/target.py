"""Resolve the `_target_` of a flow: a class, an object, a function, or a dotted path to one."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from goose_like.core.errors import ProfileError, describe_foreign_error

from .catalog import get_path

_OUR_KEYS = ("_target_", "input_interface", "output_interface")


def build_flow(target: Any, config: Mapping[str, Any]) -> Any:
    """Build the flow of a `_target_`: call `instantiate_from_config` of a class, or the class without arguments.

    Raises:
        ProfileError: the path leads nowhere, or the flow can't be built.
    """
    found = _import_target(target) if isinstance(target, str) else target
    if not isinstance(found, type):
        return found
    own_config = {key: value for key, value in config.items() if key not in _OUR_KEYS}
    try:
        factory = getattr(found, "instantiate_from_config", None)
        return factory(own_config) if factory else found()
    except ProfileError:
        raise
    except Exception as error:  # a user's class can raise anything
        problem = describe_foreign_error(error, found.__module__)
        raise ProfileError(f"can't build a flow from {found.__name__}: {problem}") from error


def _import_target(target: str) -> Any:
    module_name, _, name = get_path(target).rpartition(".")
    if not all(part.isidentifier() for part in (name, *module_name.split("."))):
        raise ProfileError(f"`_target_` {target!r} is no dotted path to a class, e.g. `my_package.flows.Search`")
    try:
        module = import_module(module_name)
    except Exception as error:  # a user's module can raise anything
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            problem = f"there is no module {error.name!r} to import; correct the path"
        else:
            problem = f"{describe_foreign_error(error, module_name)}; repair that module"
        raise ProfileError(f"`_target_` {target!r}: {problem}") from error
    if not hasattr(module, name):
        raise ProfileError(f"`_target_` {target!r}: {module_name!r} has no {name!r}; correct the path")
    return getattr(module, name)
