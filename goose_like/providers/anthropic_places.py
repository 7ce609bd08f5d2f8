"""Places among the encoded messages of a request to Anthropic: the marks of its cache, and messages of goose_like."""

from collections.abc import Sequence

from goose_like.core.message import Message

END = b"}]}"
"""The end of an entry: of its last block, its content and itself."""

_USER_START = b'{"role":"user","content":['


def find_cache_ends(messages: Sequence[Message], entries: Sequence[bytes]) -> set[int]:
    """Find the ends of this request and of the previous one: their last messages that are not the model's."""
    ends: set[int] = set()
    newest = _find_last_of_ours(messages, entries, len(entries))
    if newest is not None:
        ends.add(newest)
    answer = _find_last_answer(messages, entries)
    before_answer = _find_last_of_ours(messages, entries, answer)
    if before_answer is not None:
        ends.add(before_answer)
    return ends


def _find_last_answer(messages: Sequence[Message], entries: Sequence[bytes]) -> int:
    """Find the index of the newest message of the model, or 0 if there is none."""
    for at in reversed(range(len(entries))):
        if entries[at] and messages[at].role == "assistant":
            return at
    return 0


def _find_last_of_ours(messages: Sequence[Message], entries: Sequence[bytes], end: int) -> int | None:
    """Find the index of the newest message before `end` that is not the model's."""
    for at in reversed(range(end)):
        if entries[at] and messages[at].role != "assistant":
            return at
    return None


def place_system_messages(messages: Sequence[Message], entries: Sequence[bytes]) -> list[bytes]:
    """Give messages of goose_like the role `system` where the API takes it: after the user, and before an answer.

    Neighbours become one entry.
    """
    placed = list(entries)
    role_before = ""
    start = 0
    while start < len(messages):
        end = start + 1
        if messages[start].role == "system":
            while end < len(messages) and messages[end].role == "system":
                end += 1
            is_before_answer = end == len(messages) or messages[end].role == "assistant"
            if role_before in ("user", "tool") and is_before_answer:
                placed[start:end] = _join_system_messages(entries[start:end])
        role_before = messages[start].role
        if messages[start].verbatim:
            role_before = "assistant"  # also a summary of the server
        start = end
    return placed


def _join_system_messages(entries: Sequence[bytes]) -> list[bytes]:
    """Join entries of the role `user` to one of the role `system`. The others become empty."""
    blocks = [entry.removeprefix(_USER_START).removesuffix(b"]}") for entry in entries if entry]
    if not blocks:
        return list(entries)
    joined = b'{"role":"system","content":[%s]}' % b",".join(blocks)
    return [joined, *[b""] * (len(entries) - 1)]
