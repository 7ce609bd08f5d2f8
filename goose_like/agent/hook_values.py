"""The values of hooks: the facts that a toolkit is told at each hook point, and the answers that it may give."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from goose_like.core.dataclass import dataclass
from goose_like.core.events import Question
from goose_like.core.message import ToolCall

CallDecision = Literal["pass", "ask", "deny"]
PermissionDecision = Literal["pass", "deny"]
PromptDecision = Literal["pass", "block"]


def _check_decision(decision: object, known: object) -> None:
    """Refuse a misspelt decision, which would pass for no objection."""
    names = get_args(known)
    if decision not in names:
        raise ValueError(f"no decision {decision!r}; use one of {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The first message of a process is about to be sent. `is_resumed`: the session has earlier turns."""

    is_resumed: bool


@dataclass(frozen=True, slots=True)
class PromptSubmitted:
    """A message of the person, before the model receives it. `is_interjected`: a turn runs meanwhile."""

    text: str
    is_interjected: bool = False


@dataclass(frozen=True, slots=True)
class PromptVerdict:
    """An answer to `PromptSubmitted`: block the message with a reason for the person, or add context for the model."""

    decision: PromptDecision = "pass"
    reason: str = ""
    context: str = ""

    def __post_init__(self) -> None:
        _check_decision(self.decision, PromptDecision)


@dataclass(frozen=True, slots=True)
class BeforeCall:
    """A tool call with valid arguments, before it runs. `subagent` is the name of the subagent that makes it."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    subagent: str = ""


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """An answer to `BeforeCall`.

    `reason` is for the model after `deny`, and for the person after `ask`. `arguments` replace those of the call.
    `context` is for the model, which reads it with the result.
    """

    decision: CallDecision = "pass"
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    context: str = ""

    def __post_init__(self) -> None:
        _check_decision(self.decision, CallDecision)


@dataclass(frozen=True, slots=True)
class AfterCall:
    """A tool call that ran. If it failed, `is_error` is true, and `output` is the error for the model."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    output: str
    is_error: bool
    subagent: str = ""


@dataclass(frozen=True, slots=True)
class ResultChange:
    """An answer to `AfterCall`: another output instead of the result, and context that follows it."""

    output: str | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """A permission that the person is about to be asked for. `call` is the tool call that needs it, if there is one."""

    question: Question
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class PermissionVerdict:
    """An answer to `PermissionAsked`: deny it with a reason for the model, or leave the question to the person."""

    decision: PermissionDecision = "pass"
    reason: str = ""

    def __post_init__(self) -> None:
        _check_decision(self.decision, PermissionDecision)


@dataclass(frozen=True, slots=True)
class PermissionDenied:
    """A tool call that failed because a rule, a hook or the person denied it a permission, or nobody was there to ask.

    `text` is the error for the model.
    """

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    text: str
    subagent: str = ""


@dataclass(frozen=True, slots=True)
class Notification:
    """Something that the person is told: a question waits for an answer, or the turn ended."""

    kind: Literal["question", "turn_finished"]
    text: str


@dataclass(frozen=True, slots=True)
class CompactionStart:
    """The conversation is about to be shortened. `is_requested`: the person asked for it, perhaps with a `focus`."""

    is_requested: bool = False
    focus: str = ""


@dataclass(frozen=True, slots=True)
class CompactionEnd:
    """The conversation was shortened. `summary` stands for the part that the model no longer receives."""

    summary: str


@dataclass(frozen=True, slots=True)
class SubagentStart:
    """A subagent starts, for the tool call `call_id`."""

    name: str
    call_id: str


@dataclass(frozen=True, slots=True)
class SubagentStop:
    """A subagent ended. `answer` is its last text, and `reason` that of its `TurnFinished` event, if it has one."""

    name: str
    call_id: str
    answer: str = ""
    reason: str = ""
