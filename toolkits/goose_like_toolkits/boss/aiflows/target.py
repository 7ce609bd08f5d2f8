"""The `_target_` of a flow: flows of aiflows with a counterpart here, and the user's own ones."""

import re
from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, cast

from goose_like.core.errors import ProfileError, describe_foreign_error
from goose_like_toolkits.boss.python_flow import Flow
from goose_like_toolkits.boss.spec import Action

MISSING = "???"
"""Placeholder of aiflows for a value that the caller must give."""

_FACTORY = re.compile(r"\.?instantiate_from_(default_)?config$")
_OUR_KEYS = ("_target_", "input_interface", "output_interface")
_PACKAGES = re.compile(r"(flow_modules|aiflows|flows)\.")

_ACTIONS: Mapping[str, Action] = {
    "AskUser|HumanStandardInput|HumanFeedback": "ask_user",
    "Replan": "re_plan",
    "UpdatePlan": "update_plan",
    "SaveCode": "save_code",
    "RunCode|Interpreter": "run_code",
    "CodeWriter|CodeGen": "write_code",
    "FinalAns": "finish",
}

_COMMON = ("ask_user", "re_plan", "update_plan")
_CODER = ("extend_library", *_COMMON, "run_code")
_EXTEND_LIBRARY = ("write_code", *_COMMON, "save_code")
_BOSSES: Mapping[str, tuple[str, ...]] = {
    "AbstractBossFlow": (),
    "JarvisFlow": ("Coder", *_COMMON),
    "CoderFlow": _CODER,
    "ExtendLibraryFlow": _EXTEND_LIBRARY,
    "Coder": _CODER,
    "extend_library": _EXTEND_LIBRARY,
    "AutoGPTFlow": ("ask_user",),
    "ControllerExecutorFlow": (),
}
"""Bosses of aiflows by class or branch, with their default branches."""


def get_path(target: Any) -> str:
    """Return the dotted path of a `_target_` without its factory method, or an empty string."""
    if not isinstance(target, str) or target == MISSING:
        return ""
    return _FACTORY.sub("", target)


def _get_class_name(target: Any) -> str:
    return get_path(target).rpartition(".")[2]


def is_from_aiflows(target: Any) -> bool:
    """Tell whether a `_target_` is empty or a flow of aiflows."""
    return target in (None, "", MISSING) or bool(_PACKAGES.match(get_path(target)))


def find_default_branches(target: Any, branch: str) -> tuple[str, ...] | None:
    """Return the default branches of the boss that a `_target_` or the name of a branch means, or None."""
    return _BOSSES.get(_get_class_name(target) or branch)


def is_bare_loop(target: Any) -> bool:
    """Tell whether a `_target_` is a boss of aiflows that has rounds, but no planner."""
    return _get_class_name(target) in ("AutoGPTFlow", "ControllerExecutorFlow")


def find_action(target: Any, branch: str) -> Action | None:
    """Return the action with the same purpose as a flow, or None. Without a `_target_`, the branch's name counts."""
    name = _get_class_name(target) or branch
    for pattern, action in _ACTIONS.items():
        if re.search(pattern, name):
            return action
    return None


def build_flow(target: Any, config: Mapping[str, Any]) -> Flow:
    """Build a flow: call `instantiate_from_config` of a class, or the class. Raise ProfileError if that fails."""
    found = target
    if isinstance(target, str):
        found = _import_target(target)
    if not isinstance(found, type):
        return cast(Flow, found)
    own_config = {key: value for key, value in config.items() if key not in _OUR_KEYS}
    try:
        factory = getattr(found, "instantiate_from_config", None)
        return cast(Flow, factory(own_config) if factory else found())
    except ProfileError:
        raise
    except Exception as error:  # a user's class can raise anything
        problem = describe_foreign_error(error, found.__module__)
        raise ProfileError(f"can't build a flow from {found.__name__}: {problem}") from error


def _import_target(target: str) -> Any:
    path = get_path(target)
    try:
        return resolve_name(path)
    except Exception as error:  # a user's module can raise anything
        problem = describe_foreign_error(error, path.rpartition(".")[0])
        raise ProfileError(f"`_target_` {target!r}: {problem}; correct the path, or repair the module") from error
