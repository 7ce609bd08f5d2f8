"""The work of the commands `permissions ...`."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.rule_topics import COMMAND, split_rule
from goose_like.config.trust import load_folder_trust
from goose_like.core.errors import UsageError
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


def _load_profile(name: str | None) -> Profile:
    return (load_profile(name) if name else load_default_profile())[0]


def print_judgement(action: str, profile: str | None) -> None:
    """Print what decides about a command, or about `tool:NAME`, `path:FILE` or `domain:HOST`.

    Raises:
        UsageError: nobody knows such a topic.
    """
    chosen, here = _load_profile(profile), Path.cwd().resolve()
    permissions = Permissions(here, chosen.sandbox, chosen.approval, Notifier(), lists=chosen.permissions)
    try:
        topic, text = split_rule(action)
    except ValueError as error:
        raise UsageError(f"{action!r} is neither {error}") from error
    line = action if topic is COMMAND else None
    kind = topic.judged[0]
    if topic.name == "path":
        place = (here / Path(text).expanduser()).resolve()
        kind, text = "change" if place.is_relative_to(here) else "outside", str(place)
    elif line is not None:
        text = line
    kept = {one.kind for one in load_folder_trust(here).approvals if one.subject == text}
    verdict, reason = permissions.judge(kind, text, line)
    decision = permissions.decide(kind)
    modes = f"approval {permissions.approval}, sandbox {permissions.mode}"
    by = f"{verdict}: {reason}" if verdict else "no rule decides"
    only_reads = line is not None and decision == "ask" and permissions.only_reads(line, is_at_root=True)
    if verdict == "deny" or (verdict and decision != "refuse" and kind not in kept):
        print(escape_invisible(by))
    elif only_reads and not verdict:
        print(f"it is allowed, since it only reads: you are asked if earlier commands changed programs ({modes})")
    elif decision != "refuse" and kind in kept:
        print("it is allowed: you allowed exactly this for good in this folder (goose-like trust list)")
    else:
        print(f"{escape_invisible(by)}: {_DECISIONS[decision]} ({modes})")
    for other in sorted(kept & {*topic.judged} - {kind}):
        print(f"{other}: allowed for good in this folder")
    if line is not None and verdict != "deny":
        _print_effects(line, here, permissions, chosen, kept)


def _print_effects(line: str, here: Path, permissions: Permissions, profile: Profile, kept: Collection[str]) -> None:
    """Print what decides about hosts and deletions of a command. The kinds `kept` are allowed for good."""
    if permissions.decide("domain") != "allow":
        _print_hosts(line, here, permissions, profile.network.allow)
    if "deletion" not in kept:
        _print_losses(line, here, permissions.decide("deletion"))


def _print_hosts(line: str, here: Path, permissions: Permissions, listed: Sequence[str]) -> None:
    """Print what decides about the hosts of a command, which are judged when it connects."""
    access = HostAccess(permissions, listed)
    kept = {one.subject for one in load_folder_trust(here).approvals if one.kind == "domain"}
    decision = permissions.decide("domain")
    words = [word for command in parse_line(line) for word in command.words if word]
    hosts = [normalize_host(found[1]) for word in words for found in _HOST.finditer(word)]
    for host in dict.fromkeys(hosts):
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
    programs = {" ".join(filter(None, command.words[:2])) for command in parse_line(line)}
    if not hosts and any(map(_CLIENT.match, programs)):
        print(f"hosts: {_DECISIONS[decision]} about each one that is not listed, when the command connects")


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
    rules += build_rules(load_folder_trust(Path.cwd().resolve()).permissions, "trust.json")
    rows = [(rule.verdict, escape_invisible(rule.text), rule.source) for rule in rules]
    print_table(("verdict", "rule", "source"), rows, "there are no rules; write some: goose-like help safety")
