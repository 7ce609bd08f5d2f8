"""The whole vocabulary of what happens in a session, and its JSON.

Durable events make up the state (see `history`) and stand in the session file; ephemeral ones are only shown.
Each is flat JSON with `type` first. `turn_finished` closes everything that is open on a screen.
"""

import operator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from .message import Message, ToolCall, ToolResult, Usage, Value, Words

# --- values that events carry


class Task(Value):
    """One line of the plan."""

    description: Words
    status: Literal["planned", "in-progress", "complete", "failed"] = "planned"


class Question(Value):
    """Something only the person may decide. `kind` groups like questions, `subject` is what it is about.

    `text` asks in a sentence; `detail` is all that would happen, word for word (a file's diff), where the text is not.
    `words` asks for no permission but for an answer in the person's words, of which `detail` is what they are about.
    """

    kind: Literal["command", "change", "network", "outside", "repository", "sandbox", "install", "trust", "words"]
    subject: Words
    text: Words
    detail: Words = ""

    @property
    def may_last(self) -> bool:
        """Whether it can be answered for good: only where the subject says all that is allowed later."""
        return self.kind not in ("repository", "sandbox", "words")


class Answer(Value):
    """`allow_session` also answers later questions of the same kind, `allow_always` the same one in later sessions.

    `by` tells a refusal from an empty chair. `words` answer a question that asks for them, and may be empty.
    """

    choice: Literal["allow", "allow_session", "allow_always", "deny"] = "deny"
    by: Literal["person", "profile", "nobody"] = "nobody"
    words: Words = Field(default="", exclude_if=operator.not_)

    @property
    def is_allowed(self) -> bool:
        return self.choice != "deny"


class Chart(Value):
    """How rows are drawn: `x` and `y` are keys of theirs. A pie or donut has names at `x`, sizes at `y`."""

    kind: Literal["line", "bar", "scatter", "pie", "donut"]
    x: Words
    y: tuple[Words, ...] = Field(min_length=1)


class Artifact(Value):
    """Something made for people to look at: rows as a table or drawn as a chart, a page of HTML, or text."""

    kind: Literal["table", "chart", "html", "text"]
    name: Words
    description: Words = ""
    rows: tuple[dict[str, JsonValue], ...] = Field(default=(), exclude_if=operator.not_)
    text: Words = Field(default="", exclude_if=operator.not_)
    chart: Chart | None = Field(default=None, exclude_if=operator.not_)


# --- durable


class SessionStarted(Value):
    """A process opened the session; a resumed session has one for each process.

    One that `goes_on` takes up a turn that a killed process left: its open calls stay open.
    """

    type: Literal["session_started"] = "session_started"
    version: str
    name: Words
    cwd: Words
    profile: str
    models: dict[str, str]
    tools: tuple[str, ...]
    goes_on: bool = Field(default=False, exclude_if=operator.not_)


class TurnStarted(Value):
    type: Literal["turn_started"] = "turn_started"
    message: Message


class MessageCompleted(Value):
    """The model's message; `is_cut` when it was cancelled, broke off or hit its length limit."""

    type: Literal["message_completed"] = "message_completed"
    message: Message
    usage: Usage = Usage()
    is_cut: bool = False


class ToolFinished(Value):
    type: Literal["tool_finished"] = "tool_finished"
    result: ToolResult


class PlanUpdated(Value):
    type: Literal["plan_updated"] = "plan_updated"
    tasks: tuple[Task, ...]


class Logged(Value):
    """Something concrete that a toolkit or the house tells the person."""

    type: Literal["logged"] = "logged"
    text: Words


class Asked(Value):
    type: Literal["asked"] = "asked"
    question: Question


class Answered(Value):
    type: Literal["answered"] = "answered"
    question: Question
    answer: Answer


class Reminded(Value):
    """Text that we, not the person, add to the end of what the model reads; `about` says which of our reasons it was.

    `plan`: it has gone stale; `tasks`: the model says it is done while tasks are open; `sameness`: it runs in a circle;
    `news`: what changed meanwhile, with its `facts` by toolkit and name.
    """

    type: Literal["reminded"] = "reminded"
    text: Words
    about: Literal["", "plan", "tasks", "sameness", "news"] = Field(default="", exclude_if=operator.not_)
    facts: dict[str, Words] = Field(default={}, exclude_if=operator.not_)


class Interjected(Value):
    """What the person said while a turn ran; it stands after the results of the step before it."""

    type: Literal["interjected"] = "interjected"
    message: Message


class UsageRecorded(Value):
    """Tokens spent beside the conversation: side questions, summaries, nested work."""

    type: Literal["usage_recorded"] = "usage_recorded"
    model: str
    usage: Usage
    purpose: str


class Compacted(Value):
    """From here on the model is sent `summary` and the last `kept` messages of those that stood before, then `after`.

    `elided` has, by their call, the words that stand for results too long to be sent again. One that `is_routine` is
    made at each step, and says itself what of the news is to be known on.
    """

    type: Literal["compacted"] = "compacted"
    summary: Words
    kept: int
    after: Words = Field(default="", exclude_if=operator.not_)
    elided: dict[str, Words] = Field(default={}, exclude_if=operator.not_)
    is_routine: bool = Field(default=False, exclude_if=operator.not_)


class Rewound(Value):
    """The conversation went back to its first `to` messages."""

    type: Literal["rewound"] = "rewound"
    to: int


class ProfileChanged(Value):
    type: Literal["profile_changed"] = "profile_changed"
    profile: str
    models: dict[str, str]
    tools: tuple[str, ...]


class StateSaved(Value):
    """A toolkit's own state, as JSON; the newest one counts."""

    type: Literal["state_saved"] = "state_saved"
    toolkit: str
    value: JsonValue


class ArtifactShown(Value):
    """A tool call shows the person something beside the words; front-ends that can't draw it name it."""

    type: Literal["artifact_shown"] = "artifact_shown"
    call_id: Words
    artifact: Artifact


class PromptsSuggested(Value):
    """What the person may want to ask next."""

    type: Literal["prompts_suggested"] = "prompts_suggested"
    prompts: tuple[Words, ...]


class TurnFinished(Value):
    """The end of a turn, however it came; `exit_code` is what a one-shot run ends with for it."""

    type: Literal["turn_finished"] = "turn_finished"
    reason: Literal["stop", "step_limit", "budget", "handed_off", "cancelled", "error"]
    detail: Words = ""
    exit_code: int = 0


# --- ephemeral


class Status(Value):
    """What is going on now; an empty text means nothing worth a line."""

    type: Literal["status"] = "status"
    text: Words


class TextDelta(Value):
    type: Literal["text_delta"] = "text_delta"
    text: Words


class ThinkingDelta(Value):
    type: Literal["thinking_delta"] = "thinking_delta"
    text: Words


class Retrying(Value):
    """The request failed and is sent again; what was streamed since the last message is void."""

    type: Literal["retrying"] = "retrying"
    text: Words
    wait_s: float


class ToolStarted(Value):
    type: Literal["tool_started"] = "tool_started"
    call: ToolCall


class ToolProgress(Value):
    type: Literal["tool_progress"] = "tool_progress"
    call_id: Words
    text: Words


class Nested(Value):
    """An event of an exchange that the tool call `call_id` runs; its own durable events lie in its own file."""

    type: Literal["nested"] = "nested"
    call_id: Words
    event: dict[str, Any]


class RunFinished(Value):
    """The last line of a one-shot run. `cost_usd` is null where the price is not known."""

    type: Literal["run_finished"] = "run_finished"
    usage: Usage
    cost_usd: float | None
    reason: str
    exit_code: int


Durable = (
    SessionStarted
    | TurnStarted
    | MessageCompleted
    | ToolFinished
    | PlanUpdated
    | Logged
    | Asked
    | Answered
    | Reminded
    | Interjected
    | UsageRecorded
    | Compacted
    | Rewound
    | ProfileChanged
    | StateSaved
    | ArtifactShown
    | PromptsSuggested
    | TurnFinished
)
Ephemeral = Status | TextDelta | ThinkingDelta | Retrying | ToolStarted | ToolProgress | Nested | RunFinished
Event = Durable | Ephemeral

event_json: TypeAdapter[Event] = TypeAdapter(
    Annotated[Event, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
"""Reads any event in JSON form, as `Nested` carries one."""

durable_json: TypeAdapter[Durable] = TypeAdapter(
    Annotated[Durable, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
"""Reads one durable event from JSON; writing is each event's `model_dump_json`."""
