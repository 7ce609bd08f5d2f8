"""The topics of permission rules: what a rule can be about, and which questions it answers."""

import re
from dataclasses import dataclass

from goose_like.core.events import PermissionKind
from goose_like.core.spelling import did_you_mean


@dataclass(frozen=True, slots=True)
class RuleTopic:
    """A kind of thing that rules name, as `NAME:PATTERN`. A rule without a name is about a command."""

    name: str
    judged: tuple[PermissionKind, ...]
    """The kinds of action that such a rule judges."""

    allowed: tuple[PermissionKind, ...]
    """The kinds of action that such a rule can allow. The others go beyond the sandbox, or cannot be undone."""


COMMAND = RuleTopic("command", ("command", "network", "sandbox", "deletion"), ("command",))

TOPICS = {
    topic.name: topic
    for topic in (
        COMMAND,
        RuleTopic("tool", ("tool",), ("tool", "command", "change", "outside")),
        RuleTopic("path", ("change", "outside", "repository"), ("change", "outside")),
        RuleTopic("domain", ("domain",), ("domain",)),
    )
}
"""All topics by name. A new one also needs a line in `PermissionRules.judge_text` and a row in docs/safety.md."""


def split_rule(text: str) -> tuple[RuleTopic, str]:
    """Split a rule, or an action, into its topic and the rest.

    Raises:
        ValueError: nobody knows such a topic, or nothing follows it.
    """
    found = re.match(r"([a-z]+):", text)
    topic = TOPICS.get(found[1]) if found else COMMAND
    rest = (text[found.end() :] if found else text).strip()
    if topic is None or not rest or (found and topic is COMMAND):
        prefixes = [f"`{name}:`" for name in TOPICS if name != COMMAND.name]
        near = did_you_mean(found[1], TOPICS) if found else ""
        expected = f"a command, or {', '.join(prefixes[:-1])} or {prefixes[-1]} and what it is about"
        raise ValueError(f"{expected}; {near}" if topic is None and near else expected)
    return topic, rest
