"""All events of a session, and their JSON form.

Durable events are saved in the session file. Some of them change the state (see `History.apply`), the others are only
shown to people. Ephemeral events are shown and not saved. The JSON of an event is flat and starts with its `type`.
"""

import operator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from .format_version import SESSION_FORMAT
from .message import FrozenModel, JsonData, Message, SavedToolSpec, ToolCall, ToolResult, Usage, Utf8Text, Verbatim

PermissionKind = Literal[
    "command", "change", "deletion", "network", "domain", "outside", "repository", "sandbox", "install", "tool"
]
"""A kind of action that may need permission.

`command`: a command in the sandbox. `change`: a file in the workspace. `network`: a command with network access.
`domain`: a host that commands reach through the proxy, as `example.org` or `example.org:8443`.
`outside`: a file outside the workspace. `repository`: hooks or settings that a command left in a git repository.
`sandbox`: a command without a sandbox. `install`: packages that a component of somebody else needs.
`tool`: a tool call that a rule of the person asks about, or in approval mode `ask` a call of a server's tool.
`deletion`: a command that loses what undo cannot keep.
"""

ToolKind = Literal["read", "edit", "execute", "search", "fetch", "think", "other"]
"""What the calls of a tool do, for front-ends that show an icon for each kind.

`read`: looks at something here. `edit`: changes files. `execute`: runs a command or code. `search`: looks for something
in many places. `fetch`: gets something from elsewhere. `think`: plans, reasons or hands work to a subagent.
"""

CallDisplay = Literal["whole", "name", "nothing"]
"""How much of a call a screen shows: all of it, its name without its arguments, or nothing.

The rest is shown in another way: the arguments as a question, or the whole call as the plan.
"""

AnswerChoice = Literal["allow", "allow_prefix", "allow_always", "deny"]
"""An answer to a question. `Answer` explains each."""

# --- values that events carry


class Task(FrozenModel):
    """One line of the plan."""

    description: Utf8Text
    status: Literal["planned", "in-progress", "complete", "failed"] = "planned"

    @property
    def is_open(self) -> bool:
        """True while there is work left to do."""
        return self.status in ("planned", "in-progress")

    @property
    def mark(self) -> str:
        """One character that shows the status."""
        return {"planned": "☐", "in-progress": "▶", "complete": "☑", "failed": "☒"}[self.status]


class AnswerOption(FrozenModel):
    """One possible answer to a question. `label` is a word or two for people."""

    choice: AnswerChoice
    label: str


class Question(FrozenModel):
    """A question that only the user may answer.

    `kind` is a permission, `trust` (trust a project folder) or `text` (a free-text question). `subject` is the thing in
    question, `text` the question in one sentence, and `detail` the complete content when `text` does not hold it, for
    example the diff of a file. `prefix` says what the answer `allow_prefix` would allow until the session ends, such as
    `git push`; if it is empty, there is no such answer. `allowed_by` names the rule or mode that would allow the action
    without a question. `call_id` is the tool call that asks; the journal sets it, and
    it is empty if no call asks. `form` is a JSON schema of several values, for a front-end that `shows_forms`: the text
    of the answer is then their JSON object. It is not saved.
    """

    kind: PermissionKind | Literal["trust", "text"]
    subject: Utf8Text
    text: Utf8Text
    detail: Utf8Text = ""
    prefix: Utf8Text = Field(default="", exclude_if=operator.not_)
    allowed_by: Utf8Text = Field(default="", exclude_if=operator.not_)
    call_id: Utf8Text = Field(default="", exclude_if=operator.not_)
    form: dict[str, JsonData] | None = Field(default=None, exclude=True)

    @property
    def can_be_remembered(self) -> bool:
        """True when the answer may hold in later sessions: the subject names everything that would be allowed."""
        return self.kind not in ("repository", "sandbox", "text")

    @property
    def options(self) -> tuple[AnswerOption, ...]:
        """The possible answers, the narrowest first and `deny` last. A free-text question has none: it wants a text."""
        if self.kind == "text":
            return ()
        once = "this time" if self.kind == "trust" else "once"
        options = [AnswerOption(choice="allow", label=once)]
        if self.prefix:
            options.append(AnswerOption(choice="allow_prefix", label=f"session: {self.prefix}"))
        if self.can_be_remembered:
            options.append(AnswerOption(choice="allow_always", label="always"))
        options.append(AnswerOption(choice="deny", label="no"))
        return tuple(options)


class Answer(FrozenModel):
    """The answer to a question.

    `allow_prefix` allows the question's `prefix` until the session ends, `allow_always` exactly the same action in
    later sessions. `by` says who answered: `nobody` means that no user was there. `text` answers a free-text question,
    or is the reason for a denial; it may be empty.
    """

    choice: AnswerChoice = "deny"
    by: Literal["person", "profile", "nobody"] = "nobody"
    text: Utf8Text = Field(default="", exclude_if=operator.not_)

    @property
    def is_allowed(self) -> bool:
        """True for every choice except `deny`."""
        return self.choice != "deny"


class Chart(FrozenModel):
    """A way to draw rows: `x` and `y` are keys of the rows. A pie or donut takes labels from `x` and sizes from `y`."""

    kind: Literal["line", "bar", "scatter", "pie", "donut"]
    x: Utf8Text
    y: tuple[Utf8Text, ...] = Field(min_length=1)


Row = dict[Utf8Text, JsonData]
"""A row of a table: its values by the name of the column."""


class Artifact(FrozenModel):
    """Something for people to look at: a table, a chart, an HTML page or text."""

    kind: Literal["table", "chart", "html", "text"]
    name: Utf8Text
    description: Utf8Text = ""
    rows: tuple[Row, ...] = Field(default=(), exclude_if=operator.not_)
    text: Utf8Text = Field(default="", exclude_if=operator.not_)
    chart: Chart | None = Field(default=None, exclude_if=operator.not_)


# --- durable events


class SessionStarted(FrozenModel):
    """A process opened the session. A resumed session has one such event for each process.

    `is_resumed`: the process continues a turn that a killed process left, and the open calls stay open. `sandbox` and
    `approval` are the modes of the profile; they are empty in old files. `format` is the version of the file format.
    `displays` has the tools whose calls are not shown as a whole, by name. `folders` are those beside `cwd` that can be
    changed, each with `:rw` at its end. `instructions` are the profile's, at the end of the system prompt.
    """

    type: Literal["session_started"] = "session_started"
    version: str
    name: Utf8Text
    cwd: Utf8Text
    profile: str
    models: dict[str, str]
    tools: tuple[str, ...]
    is_resumed: bool = Field(default=False, exclude_if=operator.not_)
    sandbox: str = Field(default="", exclude_if=operator.not_)
    approval: str = Field(default="", exclude_if=operator.not_)
    displays: dict[str, CallDisplay] = Field(default={}, exclude_if=operator.not_)
    folders: tuple[Utf8Text, ...] = Field(default=(), exclude_if=operator.not_)
    instructions: Utf8Text = Field(default="", exclude_if=operator.not_)
    format: int = SESSION_FORMAT

    @property
    def mode(self) -> str:
        """The approval and the sandbox in effect, for people. Empty if they are unknown."""
        # Nothing is written while a plan is made.
        sandbox = "read-only" if self.approval == "plan" else self.sandbox
        known = filter(None, (self.approval, sandbox))
        return " · ".join(known)


class ModeRestricted(FrozenModel):
    """The person chose stricter modes than those of the last SessionStarted. An empty text keeps a mode."""

    type: Literal["mode_restricted"] = "mode_restricted"
    sandbox: str
    approval: str


class PromptRecorded(FrozenModel):
    """The system prompt and the tools, which precede the conversation in each request.

    Both stay as they are, so that vendors keep their caches and accept earlier thinking. `model` is the label
    `provider:name` of the first model, and `effort` its effort; an empty one is the default of the server.
    """

    type: Literal["prompt_recorded"] = "prompt_recorded"
    system: Utf8Text
    tools: tuple[SavedToolSpec, ...]
    model: str = ""
    effort: str = Field(default="", exclude_if=operator.not_)

    @property
    def listed_tools(self) -> tuple[SavedToolSpec, ...]:
        """The tools that the model sees."""
        return tuple([tool for tool in self.tools if not tool.deferred_group])

    @property
    def deferred_tools(self) -> tuple[SavedToolSpec, ...]:
        """The tools that the server of the model searches."""
        return tuple([tool for tool in self.tools if tool.deferred_group])


class PromptChanged(FrozenModel):
    """A change of the prompt. A message tells the model, and the recorded prompt stays.

    `text` is for the model. `system` is the whole system prompt as it should be, `tools` are new tools, `changed_tools`
    are known ones whose description is another one, and `unavailable` names all tools that cannot be used now. An
    `effort` of None is that of before.
    """

    type: Literal["prompt_changed"] = "prompt_changed"
    text: Utf8Text = ""
    system: Utf8Text
    tools: tuple[SavedToolSpec, ...] = Field(default=(), exclude_if=operator.not_)
    changed_tools: tuple[SavedToolSpec, ...] = Field(default=(), exclude_if=operator.not_)
    unavailable: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    effort: str | None = Field(default=None, exclude_if=lambda value: value is None)


class TurnStarted(FrozenModel):
    """The user sent a message. `is_read_only`: nothing may be changed in this turn.

    `is_fresh`: in this turn the model does not see what came before.
    """

    type: Literal["turn_started"] = "turn_started"
    message: Message
    is_read_only: bool = Field(default=False, exclude_if=operator.not_)
    is_fresh: bool = Field(default=False, exclude_if=operator.not_)


class MessageCompleted(FrozenModel):
    """The model finished a message. `is_cut`: it was cancelled, broke off or reached its length limit.

    `lacks_call`: the server announced a tool call, and none came. `withheld` names the reasons for which the server
    kept earlier reasoning from the model. `model` is the label `provider:name` of another model than the session's
    processor.
    """

    type: Literal["message_completed"] = "message_completed"
    message: Message
    usage: Usage = Usage()
    is_cut: bool = False
    lacks_call: bool = Field(default=False, exclude_if=operator.not_)
    withheld: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    model: str = Field(default="", exclude_if=operator.not_)


class ToolFinished(FrozenModel):
    """A tool call has its result."""

    type: Literal["tool_finished"] = "tool_finished"
    result: ToolResult


class PlanUpdated(FrozenModel):
    """The plan was replaced."""

    type: Literal["plan_updated"] = "plan_updated"
    tasks: tuple[Task, ...]


class Logged(FrozenModel):
    """A line of text for people, from a toolkit or from goose_like. The session file keeps it."""

    type: Literal["logged"] = "logged"
    text: Utf8Text


class FileChanged(FrozenModel):
    """A tool call changed a file. `path` is absolute.

    `diff` is a unified diff, which may be cut. It is empty if there is none to show, as for a binary file.
    """

    type: Literal["file_changed"] = "file_changed"
    call_id: Utf8Text
    path: Utf8Text
    diff: Utf8Text = Field(default="", exclude_if=operator.not_)


class Refused(FrozenModel):
    """An action was refused without a question: by a rule or a mode, by the sandbox, or by the proxy of commands.

    `subject` is the command, file or host. `allowed_by` names the rule or mode that would allow the action.
    """

    type: Literal["refused"] = "refused"
    kind: PermissionKind
    subject: Utf8Text
    by: Literal["rule", "mode", "sandbox", "proxy"]
    reason: Utf8Text = Field(default="", exclude_if=operator.not_)
    allowed_by: Utf8Text = Field(default="", exclude_if=operator.not_)


class CommandFinished(FrozenModel):
    """A command of the model ended, or was left running: then `exit_code` is None.

    `pipe_codes` are those of the parts of its last pipe. `before` and `after` are hashes of the working tree, which are
    empty if they are unknown: one for the files, and after a colon one for git's index. `is_verification`: the
    profile or the project demands the command. `ran_no_test`: it seems to run tests, and ran none.
    """

    type: Literal["command_finished"] = "command_finished"
    command: Utf8Text
    folder: Utf8Text
    exit_code: int | None
    pipe_codes: tuple[int, ...] = Field(default=(), exclude_if=operator.not_)
    before: str = Field(default="", exclude_if=operator.not_)
    after: str = Field(default="", exclude_if=operator.not_)
    is_verification: bool = Field(default=False, exclude_if=operator.not_)
    ran_no_test: bool = Field(default=False, exclude_if=operator.not_)


class Asked(FrozenModel):
    """The user was asked a question."""

    type: Literal["asked"] = "asked"
    question: Question


class Answered(FrozenModel):
    """A question was answered."""

    type: Literal["answered"] = "answered"
    question: Question
    answer: Answer


ReminderReason = Literal["", "plan", "open_tasks", "repetition", "context", "shown"]


class Reminded(FrozenModel):
    """A text from goose_like, not from the user, at the end of the conversation.

    `reason` is `plan` (the plan is stale), `open_tasks` (in older sessions only), `repetition` (the model
    repeats itself), `context` (facts changed; `facts` holds them by toolkit and name), `shown` (the screen has shown it
    in other words) or empty.
    """

    type: Literal["reminded"] = "reminded"
    text: Utf8Text
    reason: ReminderReason = Field(default="", exclude_if=operator.not_)
    facts: dict[str, Utf8Text] = Field(default={}, exclude_if=operator.not_)


class Interjected(FrozenModel):
    """The user sent a message while a turn ran. The message follows the results of the current step."""

    type: Literal["interjected"] = "interjected"
    message: Message


class UsageRecorded(FrozenModel):
    """Tokens were spent outside the conversation: side questions, summaries, subagents.

    `steps` counts the steps of a subagent.
    """

    type: Literal["usage_recorded"] = "usage_recorded"
    model: str
    usage: Usage
    purpose: str
    steps: int = Field(default=0, exclude_if=operator.not_)


class Compacted(FrozenModel):
    """The context was shortened: the model now receives `summary`, the last `kept_count` messages, then `suffix`.

    `replacements` maps the ids of calls to short texts for their long results. `is_routine`: this happens at each
    step, and the summary also carries the facts of earlier reminders. The server that made `verbatim` reads this in
    place of `summary`.
    """

    type: Literal["compacted"] = "compacted"
    summary: Utf8Text
    kept_count: int
    suffix: Utf8Text = Field(default="", exclude_if=operator.not_)
    replacements: dict[str, Utf8Text] = Field(default={}, exclude_if=operator.not_)
    is_routine: bool = Field(default=False, exclude_if=operator.not_)
    verbatim: Verbatim | None = Field(default=None, exclude_if=operator.not_)


class Rewound(FrozenModel):
    """The conversation went back to its first `message_count` messages."""

    type: Literal["rewound"] = "rewound"
    message_count: int


class StateSaved(FrozenModel):
    """A toolkit saved its state as JSON. The newest value counts."""

    type: Literal["state_saved"] = "state_saved"
    toolkit: str
    value: JsonData


class ArtifactShown(FrozenModel):
    """A tool call shows an artifact. A front-end that cannot draw it prints its name."""

    type: Literal["artifact_shown"] = "artifact_shown"
    call_id: Utf8Text
    artifact: Artifact


class PromptsSuggested(FrozenModel):
    """A toolkit suggests next prompts to the user."""

    type: Literal["prompts_suggested"] = "prompts_suggested"
    prompts: tuple[Utf8Text, ...]


class TurnFinished(FrozenModel):
    """A turn ended, whatever the reason. A one-shot run ends with `exit_code`. Front-ends close all open output.

    `answer` is the text that the model sent together with its last calls, if that ended the turn.
    """

    type: Literal["turn_finished"] = "turn_finished"
    reason: Literal["stop", "step_limit", "budget", "handed_off", "cancelled", "error"]
    detail: Utf8Text = ""
    exit_code: int = 0
    answer: Utf8Text = Field(default="", exclude_if=operator.not_)


class TextShown(FrozenModel):
    """Text that people saw of an unfinished answer, or of the unfinished call `call_id`. No front-end receives it.

    The finished message or result replaces it in the session file. An empty text voids the earlier ones.
    """

    type: Literal["text_shown"] = "text_shown"
    text: Utf8Text
    call_id: Utf8Text = Field(default="", exclude_if=operator.not_)


# --- ephemeral events


class Status(FrozenModel):
    """The current activity. An empty text clears it."""

    type: Literal["status"] = "status"
    text: Utf8Text


class TextDelta(FrozenModel):
    """A piece of the model's text."""

    type: Literal["text_delta"] = "text_delta"
    text: Utf8Text


class ThinkingDelta(FrozenModel):
    """A piece of the model's reasoning."""

    type: Literal["thinking_delta"] = "thinking_delta"
    text: Utf8Text


class Retrying(FrozenModel):
    """A request failed and will be sent again. All deltas since the last message are void.

    This is the retry number `retry` of at most `max_retries`.
    """

    type: Literal["retrying"] = "retrying"
    text: Utf8Text
    wait_s: float
    retry: int = Field(default=0, exclude_if=operator.not_)
    max_retries: int = Field(default=0, exclude_if=operator.not_)


class ToolStarted(FrozenModel):
    """A tool call starts to run.

    `title` says in one short line what the call does, for people. `paths` are the files and folders that its arguments
    name, absolute, with links not followed.
    """

    type: Literal["tool_started"] = "tool_started"
    call: ToolCall
    kind: ToolKind = Field(default="other", exclude_if=lambda value: value == "other")
    title: Utf8Text = Field(default="", exclude_if=operator.not_)
    paths: tuple[Utf8Text, ...] = Field(default=(), exclude_if=operator.not_)


class ToolProgress(FrozenModel):
    """A running tool call printed something. `skipped_line_count` lines before the text are not shown."""

    type: Literal["tool_progress"] = "tool_progress"
    call_id: Utf8Text
    text: Utf8Text
    skipped_line_count: int = Field(default=0, ge=0, exclude_if=operator.not_)


class SubagentEvent(FrozenModel):
    """An event of the subagent that the tool call `call_id` runs. The subagent has a session file of its own."""

    type: Literal["subagent"] = "subagent"
    call_id: Utf8Text
    event: "Event" = Field(discriminator="type")


class RunFinished(FrozenModel):
    """A one-shot run ended; its last event. `cost_usd` is null when the price is unknown.

    `detail` is the reason, in one sentence, unless the work was simply done.
    """

    type: Literal["run_finished"] = "run_finished"
    usage: Usage
    cost_usd: float | None
    reason: str
    exit_code: int
    detail: str = ""


_ContextEvent = (
    PromptRecorded
    | PromptChanged
    | TurnStarted
    | MessageCompleted
    | ToolFinished
    | Reminded
    | Interjected
    | Compacted
    | Rewound
    | TurnFinished
)
"""The events that change what the model receives."""

_StateEvent = SessionStarted | ModeRestricted | PlanUpdated | Answered | UsageRecorded | StateSaved | CommandFinished
"""The events that change other state."""

_ShownEvent = Logged | FileChanged | Refused | Asked | ArtifactShown | PromptsSuggested
"""The events that are only for people."""

DurableEvent = _ContextEvent | _StateEvent | _ShownEvent
EphemeralEvent = (
    Status | TextDelta | ThinkingDelta | Retrying | ToolStarted | ToolProgress | SubagentEvent | RunFinished
)
Event = DurableEvent | EphemeralEvent
SavedEvent = DurableEvent | TextShown

saved_event_adapter: TypeAdapter[SavedEvent] = TypeAdapter(
    Annotated[SavedEvent, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)
"""Reads one event of a session file from JSON. Each event writes itself with `model_dump_json`."""
