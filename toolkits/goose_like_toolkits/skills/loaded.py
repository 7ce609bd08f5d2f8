"""The skills that a conversation has loaded: found in its history, and repeated after the history was shortened."""

from collections.abc import Iterator

from goose_like.core.dataclass import dataclass
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.pattern import compile_later

TOOL = "use_skill"
"""The name of the tool whose results are skills."""

_HEADER_START = "[skill "
_HEADER = compile_later(r"\[skill ([\w-]+), in [^\n]+\]\n")
_CHARS_PER_TOKEN = 4
_MAX_TOKENS = 20_000
_MAX_SHARE = 8
"""Of a window with a known size, repeated skills take at most this part: one eighth."""


def write_header(name: str, folder: str) -> str:
    """Write the first line of a skill's text, by which it is found again."""
    return f"{_HEADER_START}{name}, in {folder}]"


def _find_name(text: str) -> str:
    """Return the name of the skill that a text is, empty if it is none. Most texts need no pattern for that."""
    header = None
    if text.startswith(_HEADER_START):
        header = _HEADER.match(text)
    return header[1] if header else ""


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill in a message of the history. `call_id` is empty if the person loaded it."""

    name: str
    text: str
    index: int
    call_id: str = ""


class LoadedSkills:
    """The loaded skills of a history, the newest version of each. Only new messages are looked at."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._found: dict[str, LoadedSkill] = {}
        self._calls: set[str] = set()
        self._seen: list[Message] = []

    def list_all(self) -> list[LoadedSkill]:
        """List the loaded skills, the last one last."""
        self._update()
        return list(self._found.values())

    def list_lost(self) -> list[LoadedSkill]:
        """List those whose text the model no longer receives where it was loaded, because a summary stands for it."""
        loaded = self.list_all()
        if not loaded:
            return []
        context = self._history.context
        start = len(self._history.messages) - len(context.kept_messages)
        lost: list[LoadedSkill] = []
        for skill in loaded:
            if skill.index < start or skill.call_id in context.replacements:
                lost.append(skill)
        return lost

    def _update(self) -> None:
        messages = self._history.messages
        is_continued = len(messages) >= len(self._seen)
        if is_continued and self._seen:
            is_continued = messages[len(self._seen) - 1] is self._seen[-1]
        if not is_continued:  # rewound: what was loaded since is not loaded any more
            self._found = {}
            self._calls = set()
            self._seen = []
        for index in range(len(self._seen), len(messages)):
            self._seen.append(messages[index])
            for skill in self._find_in_message(index):
                self._found.pop(skill.name, None)
                self._found[skill.name] = skill

    def _find_in_message(self, index: int) -> Iterator[LoadedSkill]:
        message = self._history.messages[index]
        for call in message.tool_calls:
            if call.name == TOOL:
                self._calls.add(call.id)
        for result in message.tool_results:
            name = _find_name(result.output)
            if name and result.call_id in self._calls and not result.is_error:
                yield LoadedSkill(name, result.output, index, result.call_id)
        if message.role == "user" and index in self._history.user_message_indexes:
            name = _find_name(message.text)
            if name:
                yield LoadedSkill(name, message.text, index)


def choose_texts(skills: list[LoadedSkill], window_tokens: int | None) -> dict[str, str]:
    """Return the texts to repeat by name: the newest ones that fit, and for others the advice to load them again."""
    room = _MAX_TOKENS
    if window_tokens:
        room = min(room, window_tokens // _MAX_SHARE)
    room_chars = room * _CHARS_PER_TOKEN
    texts: dict[str, str] = {}
    for skill in reversed(skills):
        text = skill.text
        if len(text) > room_chars:
            text = "loaded before; to go on with it, call `use_skill` again"
        room_chars -= len(text)
        texts[skill.name] = text
    return dict(reversed(texts.items()))
