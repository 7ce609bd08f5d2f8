"""The flows of aiflows: the ones with a counterpart here, and for the others the reason why there is none."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from goose_like_toolkits.boss.spec import Action

MISSING = "???"
"""Placeholder of aiflows for a value that the caller must give."""

_FACTORY = re.compile(r"\.?instantiate_from_(default_)?config$")
_FROM_AIFLOWS = re.compile(
    r"^(flow_modules|aiflows|flows)\.|(^|\.)(AbstractBoss|AutoGPT|Chat|ChatInteractive|CodeInterpreter|CodeWriter|Coder"
    r"|ControllerExecutor|CtrlExMem|ExtendLibrary|HumanStandardInput|Interpreter|Jarvis|LCTool|MemoryReading|MemoryWriting"
    r"|OpenAIChat|PlanWriter|PyFileInterpreter|Replanning|RunCode|VectorStore)FlowModule\."
)

_ACTIONS: tuple[tuple[str, Action], ...] = (
    ("AskUser|HumanStandardInput|HumanFeedback", "ask_user"),
    ("Replan", "re_plan"),
    ("UpdatePlan", "update_plan"),
    ("SaveCode", "save_code"),
    ("RunCode|Interpreter", "run_code"),
    ("CodeWriter|CodeGen", "write_code"),
    ("FinalAns", "finish"),
)

_UNSUPPORTED = (
    ("LCTool|langchain", "LangChain tools are not run here; give a toolkit or a flow of your own"),
    ("(?i:wiki_?search)", "Wikipedia search is not available here; give a toolkit or a flow of your own"),
    ("VectorStore|ChromaDB", "vector stores are not available here; use `memory_files`"),
    ("TestCode|CodeTest", "tests are an argument of `write_code` here"),
    ("IntermediateAns", "the controller gives an intermediate answer as text beside its calls"),
    ("Chat|OpenAI|Vision", "other models are not available here; give a toolkit or a flow of your own"),
)

_COMMON: tuple[Action, ...] = ("ask_user", "re_plan", "update_plan")

BOSSES: Mapping[str, tuple[str, ...]] = {
    "AbstractBossFlow": (),
    "JarvisFlow": ("Coder", *_COMMON),
    "CoderFlow": ("extend_library", *_COMMON, "run_code"),
    "ExtendLibraryFlow": ("write_code", *_COMMON, "save_code"),
}
"""Bosses of aiflows, with their default branches."""

BOSS_BRANCHES = {"Coder": "CoderFlow", "extend_library": "ExtendLibraryFlow"}
"""Default branches that are bosses."""


def get_path(target: Any) -> str:
    """Return the dotted path of a `_target_` without its factory method, or an empty string."""
    return _FACTORY.sub("", target) if isinstance(target, str) else ""


def is_from_aiflows(target: Any) -> bool:
    """Tell whether a `_target_` is empty or a flow of aiflows."""
    return target in (None, "", MISSING) or bool(_FROM_AIFLOWS.search(get_path(target)))


def find_boss(target: Any) -> str:
    """Return the name of the aiflows boss that a `_target_` means, or an empty string."""
    last = get_path(target).rpartition(".")[2]
    return last if last in BOSSES else ""


def find_action(target: Any) -> Action | None:
    """Return the action with the same purpose as a flow, or None."""
    for part in _split(target):
        action = next((action for pattern, action in _ACTIONS if re.search(pattern, part)), None)
        if action or _find_reason([part]):
            return action
    return None


def explain_absence(target: Any, name: str = "") -> str:
    """Explain why a flow has no counterpart here. `name` is the name of its branch."""
    path = get_path(target)
    problem = f"its `_target_` {path!r} is not known here" if path else "it has no `_target_`"
    return _find_reason((*_split(target), name)) or f"{problem}; give a toolkit or, from Python, a flow of your own"


def is_unsupported(target: Any) -> bool:
    """Tell whether a `_target_` is a known flow of aiflows without a counterpart here."""
    return not find_boss(target) and not find_action(target) and bool(_find_reason(_split(target)))


def _find_reason(parts: Iterable[str]) -> str:
    return next((reason for part in parts for pattern, reason in _UNSUPPORTED if re.search(pattern, part)), "")


def _split(target: Any) -> Iterator[str]:
    # The class first: one module has flows for several actions.
    yield from reversed(get_path(target).split(".")[-2:])
