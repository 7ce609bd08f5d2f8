"""The work of the commands `permissions ...`."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from goose_like.config.paths import expand_home
from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.rule_topics import COMMAND, RuleTopic, split_rule
from goose_like.config.trust import load_folder_trust
from goose_like.core.errors import UsageError
from goose_like.core.events import PermissionKind
from goose_like.core.notifier import Notifier
from goose_like.providers.registry import load_default_profile
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.report_table import print_table
from goose_like.workspace.network.address_filter import is_address, normalize_host
from goose_like.workspace.network.host_access import HostAccess
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.permissions.policy import Decision
from goose_like.workspace.permissions.rules import build_rules
from goose_like.workspace.permissions.shell_syntax import parse_line
from goose_like.workspace.undo.backup import read_losses
from goose_like.workspace.undo.destruction import find_losses

_HOST = re.compile(r"\b[a-z][a-z+]*://(?:[^/\s@]*@)?([\w.-]+(?::\d+)?)", re.IGNORECASE)

_CLIENT = re.compile(
    r"(curl|wget|https?|xh|pip[\d.]*|uv|pipx|npm|npx|pnpm|yarn|bun|deno|poetry|conda|cargo|go|gem|brew|apt|apt-get|gh|glab|docker)\b"
    r"|git (push|pull|fetch|clone|ls-remote|submodule)\b"
)
"""Programs that usually reach hosts which their words do not name."""

_DECISIONS = {"allow": "it is allowed", "ask": "you are asked", "refuse": "it is refused"}


@dataclass(frozen=True, slots=True)
class _Action:
    """An action to judge: what rules about it name, its kind, and its subject. A command has a `line`."""

    topic: RuleTopic
    kind: PermissionKind
    subject: str
    line: str | None = None


def _load_profile(name: str | None) -> Profile:
    profile, _ = load_profile(name) if name else load_default_profile()
    return profile


def print_judgement(action: str, profile: str | None) -> None:
    """Print what decides about a command, or about `tool:NAME`, `path:FILE` or `domain:HOST`.

    Raises:
        UsageError: nobody knows such a topic.
    """
    chosen = _load_profile(profile)
    here = Path.cwd().resolve()
    permissions = Permissions(here, chosen.sandbox, chosen.approval, Notifier(), lists=chosen.permissions)
    judged = _read_action(action, here)
    answers = load_folder_trust(here).approvals
    kept = {answer.kind for answer in answers if answer.subject == judged.subject}
    verdict, reason = permissions.judge(judged.kind, judged.subject, judged.line)
    rule = escape_invisible(f"{verdict}: {reason}") if verdict else ""
    print(_describe_judgement(judged, permissions, rule, is_kept=judged.kind in kept))
    for other in sorted(kept):
        if other in judged.topic.judged and other != judged.kind:
            print(f"{other}: allowed for good in this folder")
    if judged.line is not None and verdict != "deny":
        _print_effects(judged.line, here, permissions, chosen, kept)


def _read_action(text: str, here: Path) -> _Action:
    """Read a command, or `tool:NAME`, `path:FILE` or `domain:HOST`. A path counts from the folder `here`."""
    try:
        topic, subject = split_rule(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is neither {error}") from error
    kind = topic.judged[0]
    if topic is COMMAND:
        return _Action(topic, kind, text, line=text)
    if topic.name != "path":
        return _Action(topic, kind, subject)
    place = (here / expand_home(subject)).resolve()
    if place.is_relative_to(here):
        return _Action(topic, "change", str(place))
    return _Action(topic, "outside", str(place))


def _describe_judgement(action: _Action, permissions: Permissions, rule: str, *, is_kept: bool) -> str:
    """Describe what decides about an action: the `rule` with its verdict, an answer for good, or the mode."""
    decision = permissions.decide(action.kind)
    modes = f"approval {permissions.approval}, sandbox {permissions.mode}"
    if rule.startswith("deny:"):
        return rule
    if rule and decision != "refuse" and not is_kept:
        return rule
    if not rule and decision == "ask" and action.line is not None:
        if permissions.only_reads(action.line, is_at_root=True):
            return f"it is allowed, since it only reads: you are asked if earlier commands changed programs ({modes})"
    if decision != "refuse" and is_kept:
        return "it is allowed: you allowed exactly this for good in this folder (goose-like trust list)"
    by = rule or "no rule decides"
    return f"{by}: {_DECISIONS[decision]} ({modes})"


def _print_effects(line: str, here: Path, permissions: Permissions, profile: Profile, kept: Collection[str]) -> None:
    """Print what decides about hosts and deletions of a command. The kinds `kept` are allowed for good."""
    if permissions.decide("domain") != "allow":
        _print_hosts(line, here, permissions, profile.network.allow)
    if "deletion" not in kept:
        _print_losses(line, here, permissions.decide("deletion"))


def _print_hosts(line: str, here: Path, permissions: Permissions, listed: Sequence[str]) -> None:
    """Print what decides about the hosts of a command, which are judged when it connects."""
    access = HostAccess(permissions, listed)
    answers = load_folder_trust(here).approvals
    kept = {answer.subject for answer in answers if answer.kind == "domain"}
    decision = permissions.decide("domain")
    hosts = _list_hosts(line)
    for host in hosts:
        verdict, reason = permissions.judge("domain", host)
        if verdict in ("deny", "ask"):
            text = f"{verdict}: {reason}"
        elif access.is_allowed(host) or verdict == "allow" or host in kept:
            text = "it is allowed"
        elif is_address(host):
            text = "it is refused: an address must be in network: {allow: [...]} of the profile"
        else:
            text = f"no rule decides: {_DECISIONS[decision]} when the command connects"
        print(escape_invisible(f"domain:{host}: {text}"))
    if not hosts and _has_client(line):
        print(f"hosts: {_DECISIONS[decision]} about each one that is not listed, when the command connects")


def _list_hosts(line: str) -> list[str]:
    """List the hosts of the URLs in a command, each once."""
    hosts: dict[str, None] = {}
    for command in parse_line(line):
        for word in filter(None, command.words):
            for match in _HOST.finditer(word):
                hosts[normalize_host(match[1])] = None
    return list(hosts)


def _has_client(line: str) -> bool:
    """Return whether a program of a command usually reaches hosts."""
    for command in parse_line(line):
        program = " ".join(filter(None, command.words[:2]))
        if _CLIENT.match(program):
            return True
    return False


def _print_losses(line: str, here: Path, decision: Decision) -> None:
    """Print that a command deletes or overwrites what undo cannot keep."""
    losses = find_losses(line, str(here))
    _, problem = read_losses(losses.paths, set(), lambda _: "")
    if problem:
        print(escape_invisible(f"deletion: {_DECISIONS[decision]}, since undo cannot keep everything ({problem})"))
    elif losses.needs_tree:
        print("deletion: undo stores what it deletes or overwrites; you are asked about what cannot be stored")


def print_rules(profile: str | None) -> None:
    """Print all rules, the strictest of the profile first, then those of this folder in the trust file."""
    rules = build_rules(_load_profile(profile).permissions, "the profile")
    stored = load_folder_trust(Path.cwd().resolve())
    rules += build_rules(stored.permissions, "trust.json")
    rows = [(rule.verdict, escape_invisible(rule.text), rule.source) for rule in rules]
    print_table(("verdict", "rule", "source"), rows, "there are no rules; write some: goose-like help safety")
