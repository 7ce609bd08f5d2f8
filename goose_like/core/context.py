"""The context of a session: the messages that the model receives, and the prompt that it knows."""

from collections.abc import Mapping
from dataclasses import field

from goose_like.core.dataclass import dataclass

from . import events
from .message import Message, Text, ToolSpec, Usage, Verbatim

_IMAGE_TOKENS = 1_500


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: a quarter of its JSON bytes, plus a constant for each image."""
    # The verbatim form repeats the parts.
    text = message.model_dump_json(exclude={"verbatim"})
    return len(text.encode()) // 4 + _IMAGE_TOKENS * len(message.images)


@dataclass(frozen=True, slots=True)
class KnownPrompt:
    """The system prompt, the tools and the effort that the model knows: the recorded ones, and later changes."""

    system: str
    tools: Mapping[str, ToolSpec]
    unavailable: frozenset[str] = frozenset()
    effort: str = ""


@dataclass(slots=True)
class Context:
    """The selection from the messages of a history that the model receives. Only `History` changes it.

    `prompt` precedes the messages in each request. It is None before the first turn, and after a summary.
    `summary` stands for the messages before `kept_messages`. `replacements` are shorter results by id of the
    call. `facts` are those that reminders in the context tell, by name. `measured_tokens` is the size of the first
    `measured_count` messages of the history.
    """

    _history_messages: list[Message] = field(repr=False, compare=False)  # the list of the history, which grows
    prompt: events.PromptRecorded | None = None
    facts: dict[str, str] = field(default_factory=dict)
    summary: Message | None = None
    replacements: dict[str, str] = field(default_factory=dict)
    measured_count: int = 0
    measured_tokens: int = 0
    _kept_start: int = 0  # the summary stands for the messages before it
    _suffix: Message | None = None
    _suffix_index: int = 0
    _turn_replacements: dict[str, str] = field(default_factory=dict)
    _due_replacements: dict[str, str] = field(default_factory=dict)
    _prompt_changes: dict[int, events.PromptChanged] = field(default_factory=dict)  # by index of the message
    _past_changes: set[int] = field(default_factory=set)  # indexes of messages of changes that no longer hold
    _refused_end: int = 0  # a server refused the thinking before it
    _stripped_messages: list[Message] = field(default_factory=list)
    _stripped_end: int = 0
    _fresh_start: int | None = None  # the start of the newest turn, if the model sees nothing from before it
    _is_in_fresh_turn: bool = False

    @property
    def messages(self) -> list[Message]:
        """The messages for a model: all of them, or the newest summary and the messages after it.

        Vendors refuse thinking after a changed text, so thinking from before a summary or another prompt is left out.
        In a fresh turn, its messages alone. Changes of a prompt that is no longer sent are left out, too.
        """
        kept = [*self._stripped_messages, *self._history_messages[self._stripped_end :]]
        if self._is_in_fresh_turn and self._fresh_start is not None:
            skipped_count = self._fresh_start - self._kept_start
            if skipped_count >= 0:  # else a summary within the turn stands for its start
                return kept[skipped_count:]
        if self._suffix is not None:
            kept.insert(self._suffix_index - self._kept_start, self._suffix)
        if self.summary is not None:
            kept.insert(0, self.summary)
        if self._prompt_changes or self._past_changes:  # no other message can be without parts
            return _select_sent(kept)
        return kept

    @property
    def quotes_model(self) -> bool:
        """True if a message of the user holds text of a model: a summary, or the state of the work."""
        return self.summary is not None or self._suffix is not None

    @property
    def added_tools(self) -> list[ToolSpec]:
        """The tools that the messages for a model bring, without a look at each of them."""
        start = self._kept_start
        if self._is_in_fresh_turn and self._fresh_start is not None:
            start = max(start, self._fresh_start)
        added: list[ToolSpec] = []
        for index, change in self._prompt_changes.items():
            if index >= start:
                added += change.tools
        return added

    @property
    def kept_messages(self) -> list[Message]:
        """The messages after the newest summary, as the history has them."""
        return self._history_messages[self._kept_start :]

    @property
    def tokens(self) -> int:
        """The approximate size of the context: the count of the newest request plus an estimate of the rest."""
        if self.measured_count:
            newer = self._history_messages[self.measured_count :]
        else:
            newer = self.messages
        return self.measured_tokens + sum(map(estimate_tokens, newer))

    @property
    def known_prompt(self) -> KnownPrompt | None:
        """The prompt as the model knows it from the context, or None if no prompt is recorded."""
        if self.prompt is None:
            return None
        system = self.prompt.system
        effort = self.prompt.effort
        tools = {tool.name: tool for tool in self.prompt.tools}
        unavailable: frozenset[str] = frozenset()
        start = self._fresh_start or 0
        for index, change in self._prompt_changes.items():
            if index < start:
                continue
            system = change.system
            unavailable = frozenset(change.unavailable)
            for tool in (*change.tools, *change.changed_tools):
                tools[tool.name] = tool
            if change.effort is not None:
                effort = change.effort
        return KnownPrompt(system, tools, unavailable, effort)

    def preview(self, event: events.Compacted) -> list[Message]:
        """Return the messages for a model as they will be after this event."""
        messages = []
        if event.summary:
            messages.append(Message.user(event.summary))
        replacements = self._merge_replacements(event)
        messages += self._strip_messages(self._find_start(event.kept_count), replacements)
        if event.suffix:
            messages.append(Message.user(event.suffix))
        return _select_sent(messages)

    def count_older(self, kept_count: int) -> int:
        """Count the messages for a model that a summary replaces, if it keeps the history's last `kept_count`."""
        kept = self.preview(events.Compacted(summary="", kept_count=kept_count))
        return max(0, len(self.messages) - len(kept))

    def start_turn(self, *, is_fresh: bool) -> None:
        """Begin a turn. Its messages follow."""
        # They wait for the next summary: a change of what was sent costs the vendor's cache and the model's thinking.
        self._due_replacements |= self._turn_replacements
        self._turn_replacements = {}
        if self._fresh_start is not None:
            # They tell what differs from the recorded prompt.
            self._retire_changes(self._fresh_start)
        if self._fresh_start is not None or is_fresh:
            # Another context: its size and thinking are others.
            self._forget_size()
            self._strip_thinking()
        if is_fresh:
            self.facts = {}
        self._fresh_start = None
        if is_fresh:
            self._fresh_start = len(self._history_messages)
        self._is_in_fresh_turn = is_fresh

    def finish_turn(self) -> None:
        """Finish the turn. After a fresh one the older messages belong to the context again."""
        self._is_in_fresh_turn = False

    def measure(self, usage: Usage) -> None:
        """Record the size of the context up to the newest answer, which has this usage. Estimate it without one."""
        tokens = usage.total_tokens
        if not usage.input_tokens:
            tokens = self.tokens
        self.measured_count = len(self._history_messages)
        self.measured_tokens = tokens

    def replace_result(self, call_id: str, replacement: str) -> None:
        """Replace a result from the first summary on that a later turn makes."""
        self._turn_replacements[call_id] = replacement

    def record_prompt(self, event: events.PromptRecorded) -> None:
        """Record the prompt that precedes the messages. It includes all changes of the prompt before it."""
        self.prompt = event
        if self._prompt_changes:
            self._retire_changes()
            self._strip_thinking()

    def change_prompt(self, event: events.PromptChanged) -> None:
        """Change the prompt that the model knows. The message that tells the change follows."""
        self._prompt_changes[len(self._history_messages)] = event

    def expire_thinking(self, *, is_refused: bool) -> None:
        """Leave out the thinking so far that is bound to other text, and all of it if a server has refused it."""
        if is_refused:
            self._refused_end = len(self._history_messages)
            if self.summary is not None:
                self.summary = _write_message(self.summary.text)
        self._strip_thinking()

    def compact(self, event: events.Compacted) -> None:
        """Shorten the context."""
        self.summary = _write_message(event.summary, event.verbatim)
        self.replacements = self._merge_replacements(event)
        self._due_replacements = {}
        if not event.is_routine:
            self.facts = {}
            self.prompt = None  # it is recorded anew, as the thinking after it is gone
            self._retire_changes()
        self._kept_start = self._find_start(event.kept_count)
        self._suffix = _write_message(event.suffix)
        self._suffix_index = len(self._history_messages)
        self._forget_size()
        self._strip_thinking()

    def rewind(self, fresh_start: int | None) -> None:
        """Forget the messages that the history has removed.

        `fresh_start` is the start of the newest turn that is left, if that turn is fresh.
        """
        count = len(self._history_messages)
        self.facts = {}
        self._fresh_start = fresh_start
        self._is_in_fresh_turn = False
        if count < self._kept_start:
            self.summary = None
            self._kept_start = 0
        if count < self._suffix_index:
            self._suffix = None
        # The messages of these changes are gone, so nothing of them stays.
        self._retire_changes(count)
        self._past_changes = {index for index in self._past_changes if index < count}
        self._refused_end = min(self._refused_end, count)
        self._forget_size()
        if count < self._stripped_end:
            self._strip_thinking()

    def _forget_size(self) -> None:
        self.measured_count = 0
        self.measured_tokens = 0

    def _merge_replacements(self, event: events.Compacted) -> dict[str, str]:
        return self._due_replacements | self.replacements | event.replacements

    def _find_start(self, kept_count: int) -> int:
        """Find the first of the last `kept_count` messages. A result is never sent without its call."""
        messages = self._history_messages
        start = max(0, len(messages) - kept_count)
        while start < len(messages) and messages[start].role == "tool":
            start += 1
        return start

    def _retire_changes(self, start: int = 0) -> None:
        """Forget the changes of the prompt from the message `start` on. Strip the messages afterwards."""
        for index in list(self._prompt_changes):
            if index >= start:
                del self._prompt_changes[index]
                self._past_changes.add(index)

    def _strip_thinking(self) -> None:
        self._stripped_messages = self._strip_messages(self._kept_start, self.replacements)
        self._stripped_end = len(self._history_messages)

    def _strip_messages(self, start: int, replacements: Mapping[str, str]) -> list[Message]:
        stripped = []
        for index, message in enumerate(self._history_messages[start:], start):
            if index in self._past_changes:
                message = message.model_copy(update={"parts": ()})
            else:
                message = message.strip_thinking(replacements, is_refused=index < self._refused_end)
            stripped.append(message)
        return stripped


def _write_message(text: str, verbatim: Verbatim | None = None) -> Message | None:
    if not text:
        return None
    return Message(role="user", parts=(Text(text=text),), verbatim=verbatim)


def _select_sent(messages: list[Message]) -> list[Message]:
    """Select the messages that the model receives. One of goose_like that no longer holds has lost its parts."""
    return [message for message in messages if message.parts or message.role != "system"]
