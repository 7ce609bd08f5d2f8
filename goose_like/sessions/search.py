"""Search in sessions: the newest first, each with the line of its title or messages that matches."""

from collections.abc import Iterator, Sequence

from goose_like.core.dataclass import dataclass
from goose_like.core.events import Interjected, MessageCompleted, TurnStarted

from .index import SessionInfo, iterate_lines, iterate_sessions_in, try_parse


@dataclass(frozen=True, slots=True)
class SessionMatch:
    """A session with all words that were searched. `line` has most of them, and `author` wrote it."""

    info: SessionInfo
    author: str
    line: str


def search_messages(words: Sequence[str], cwd: str | None = None) -> Iterator[SessionMatch]:
    """Yield the sessions that have all words in their name, title and messages. `cwd` restricts the folder."""
    folded = [word.casefold() for word in words]
    for info in iterate_sessions_in(cwd):
        match = _find_match(info, folded)
        if match:
            yield match


def _find_match(info: SessionInfo, words: Sequence[str]) -> SessionMatch | None:
    missing = set(words)
    best = SessionMatch(info, "", "")
    best_count = 0
    for author, text in _iterate_texts(info, words):
        folded = text.casefold()
        if not any(word in folded for word in words):
            continue
        missing -= {word for word in missing if word in folded}
        for line in text.splitlines():
            count = sum(word in line.casefold() for word in words)
            if count > best_count:
                best = SessionMatch(info, author, line.strip())
                best_count = count
    return None if missing else best


def _iterate_texts(info: SessionInfo, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a session that may have one of the words, the title first, each after its author."""
    # Quotes and letters beyond ASCII may be written otherwise in the file.
    plain = [word.encode() for word in words if word.isascii() and word.isalnum()]
    needs_all = len(plain) < len(words)
    yield "name", info.name
    if info.summary != info.first_words:
        yield "title", info.summary
    for _, line in iterate_lines(info.file, "turn_started", "interjected", "message_completed"):
        folded = line.lower()
        if not needs_all and not any(word in folded for word in plain):
            continue  # parsing takes longer
        event = try_parse(line)
        if isinstance(event, TurnStarted | Interjected):
            yield "you", event.message.first_text
        elif isinstance(event, MessageCompleted):
            yield "model", event.message.text
