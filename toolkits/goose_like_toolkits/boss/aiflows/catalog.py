"""The flows of aiflows' own that have their like here, and why the others have none."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from goose_like_toolkits.boss.spec import Action

MISSING = "???"
"""What stands for a value that is still to be given."""

_MADE = re.compile(r"\.?instantiate_from_(default_)?config$")
_THEIRS = re.compile(
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

_ABSENT = (
    ("LCTool|langchain", "LangChain tools are not run here; give a toolkit or a flow of your own"),
    ("(?i:wiki_?search)", "there is no search of Wikipedia here; give a toolkit or a flow of your own"),
    ("VectorStore|ChromaDB", "there is no store of vectors here; what is remembered stands in `memory_files`"),
    ("TestCode|CodeTest", "tests are an argument of `write_code` here"),
    ("IntermediateAns", "an answer on the way is what the controller says beside its calls"),
    ("Chat|OpenAI|Vision", "another model is not asked here; give a toolkit or a flow of your own"),
)

_CODING: tuple[Action, ...] = ("ask_user", "re_plan", "update_plan")

BOSSES: Mapping[str, tuple[str, ...]] = {
    "AbstractBossFlow": (),
    "JarvisFlow": ("Coder", *_CODING),
    "CoderFlow": ("extend_library", *_CODING, "run_code"),
    "ExtendLibraryFlow": ("write_code", *_CODING, "save_code"),
}
"""aiflows' bosses, with the branches that they have where a configuration names none."""

NESTED = {"Coder": "CoderFlow", "extend_library": "ExtendLibraryFlow"}
"""Which of those branches are bosses."""


def words_of(target: Any) -> str:
    """The dotted path of a `_target_` without the method that makes the flow; empty for what is no path."""
    return _MADE.sub("", target) if isinstance(target, str) else ""


def is_theirs(target: Any) -> bool:
    """Whether a `_target_` is one of aiflows' own flows, or none is given."""
    return target in (None, "", MISSING) or bool(_THEIRS.search(words_of(target)))


def boss_of(target: Any) -> str:
    """Which of aiflows' bosses that is; empty for none."""
    last = words_of(target).rpartition(".")[2]
    return last if last in BOSSES else ""


def action_of(target: Any) -> Action | None:
    """The action that does what this flow does."""
    for part in _parts(target):
        known = next((action for pattern, action in _ACTIONS if re.search(pattern, part)), None)
        if known or _why_absent([part]):
            return known
    return None


def absence_of(target: Any, name: str = "") -> str:
    """Why there is nothing here that does what this flow does; `name` is that of its branch."""
    path = words_of(target)
    told = f"its `_target_` {path!r} is not known here" if path else "it has no `_target_`"
    return _why_absent((*_parts(target), name)) or f"{told}; give a toolkit or, from Python, a flow of your own"


def is_absent(target: Any) -> bool:
    """Whether it is one of aiflows' flows that have no like here."""
    return not boss_of(target) and not action_of(target) and bool(_why_absent(_parts(target)))


def _why_absent(parts: Iterable[str]) -> str:
    return next((why for part in parts for pattern, why in _ABSENT if re.search(pattern, part)), "")


def _parts(target: Any) -> Iterator[str]:
    """The class, then its module: a module has flows for several actions."""
    yield from reversed(words_of(target).split(".")[-2:])
