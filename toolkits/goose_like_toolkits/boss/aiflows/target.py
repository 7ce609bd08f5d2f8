"""What a `_target_` names, as the flow itself: a class, an object, a function, or a dotted path to one."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from goose_like.core.errors import ProfileError
from goose_like.core.frames import describe_foreign_error

from .catalog import words_of

_OURS = ("_target_", "input_interface", "output_interface")


def found(target: Any) -> Any:
    """What a dotted path stands for, imported; anything else is that already.

    Raises:
        ProfileError: there is no such thing, or its module can't be imported.
    """
    if not isinstance(target, str):
        return target
    path = words_of(target).split(".")
    if len(path) < 2 or not all(part.isidentifier() for part in path):
        raise ProfileError(f"`_target_` {target!r} is no dotted path to a class, e.g. `my_package.flows.Search`")
    for end in range(len(path) - 1, 0, -1):
        module = ".".join(path[:end])
        try:
            thing = import_module(module)
        except ModuleNotFoundError as error:
            if error.name and (module == error.name or module.startswith(f"{error.name}.")):
                continue  # a class that stands within another
            raise _broken(target, error, module) from error
        except Exception as error:  # somebody's own code: whatever its import raises is told
            raise _broken(target, error, module) from error
        return _within(thing, path[end:], target)
    raise ProfileError(f"`_target_` {target!r}: there is no module {path[0]!r} to import; correct the path")


def made(target: Any, config: Mapping[str, Any]) -> Any:
    """The flow of a `_target_`: a class is made by its `instantiate_from_config`, or by a call without arguments.

    Raises:
        ProfileError: it can't be made.
    """
    kind = found(target)
    if not isinstance(kind, type):
        return kind
    said = {key: value for key, value in config.items() if key not in _OURS}
    try:
        make = getattr(kind, "instantiate_from_config", None)
        return make(said) if make else kind()
    except ProfileError:
        raise
    except Exception as error:  # somebody's own code
        raise ProfileError(
            f"no flow can be made of {kind.__name__}: {describe_foreign_error(error, kind.__module__)}"
        ) from error


def _within(thing: Any, names: list[str], target: str) -> Any:
    for name in names:
        if not hasattr(thing, name):
            raise ProfileError(f"`_target_` {target!r}: {thing.__name__!r} has no {name!r}; correct the path")
        thing = getattr(thing, name)
    return thing


def _broken(target: str, error: Exception, module: str) -> ProfileError:
    return ProfileError(
        f"`_target_` {target!r} can't be imported: {describe_foreign_error(error, module)}; repair that module"
    )
