"""Resolve the `_target_` of a flow: a class, an object, a function, or a dotted path to one."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from goose_like.core.errors import ProfileError, describe_foreign_error

from .catalog import get_path

_OUR_KEYS = ("_target_", "input_interface", "output_interface")


def import_target(target: Any) -> Any:
    """Import a dotted path. Return anything else unchanged.

    Raises:
        ProfileError: the path leads nowhere, or its module can't be imported.
    """
    if not isinstance(target, str):
        return target
    path = get_path(target).split(".")
    if len(path) < 2 or not all(part.isidentifier() for part in path):
        raise ProfileError(f"`_target_` {target!r} is no dotted path to a class, e.g. `my_package.flows.Search`")
    for end in range(len(path) - 1, 0, -1):
        module = ".".join(path[:end])
        try:
            found: Any = import_module(module)
        except Exception as error:  # a user's module can raise anything
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing and (module == missing or module.startswith(f"{missing}.")):
                continue  # the path may name a class inside a class
            problem = describe_foreign_error(error, module)
            raise ProfileError(f"`_target_` {target!r} can't be imported: {problem}; repair that module") from error
        for name in path[end:]:
            if not hasattr(found, name):
                parent = getattr(found, "__name__", found)
                raise ProfileError(f"`_target_` {target!r}: {parent!r} has no {name!r}; correct the path")
            found = getattr(found, name)
        return found
    raise ProfileError(f"`_target_` {target!r}: there is no module {path[0]!r} to import; correct the path")


def build_flow(target: Any, config: Mapping[str, Any]) -> Any:
    """Build the flow of a `_target_`: call `instantiate_from_config` of a class, or the class without arguments.

    Raises:
        ProfileError: the flow can't be built.
    """
    found = import_target(target)
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
