"""The topics of permission rules: what a rule can be about, and which questions it answers."""

import re

from goose_like.core.dataclass import dataclass
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
    match = re.match(r"([a-z]+):", text)
    if not match:
        command = text.strip()
        if not command:
            raise ValueError(_describe_rules())
        return COMMAND, command
    name = match[1]
    topic = TOPICS.get(name)
    if topic is None:
        raise ValueError(f"{_describe_rules()}; {did_you_mean(name, TOPICS)}")
    rest = text[match.end() :].strip()
    if not rest or topic is COMMAND:  # a command stands without a name before it
        raise ValueError(_describe_rules())
    return topic, rest


def _describe_rules() -> str:
    *first, last = [f"`{name}:`" for name in TOPICS if name != COMMAND.name]
    return f"a command, or {', '.join(first)} or {last} and what it is about"
