"""The work of the commands `permissions ...`."""

from pathlib import Path

from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import load_folder_trust
from goose_like.core.events import PermissionKind
from goose_like.core.notifier import Notifier
from goose_like.providers.registry import load_default_profile
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.report_table import print_table
from goose_like.workspace.permissions.permissions import Permissions
from goose_like.workspace.permissions.rules import build_rules

_DECISIONS = {"allow": "it is allowed", "ask": "you are asked", "refuse": "it is refused"}


def _load_profile(name: str | None) -> Profile:
    return (load_profile(name) if name else load_default_profile())[0]


def print_judgement(action: str, profile: str | None) -> None:
    """Print which rule decides about a command, or about `tool:NAME`, `path:FILE` or `domain:HOST`."""
    chosen, here = _load_profile(profile), Path.cwd().resolve()
    permissions = Permissions(here, chosen.sandbox, chosen.approval, Notifier(), lists=chosen.permissions)
    subject, _, rest = action.partition(":")
    kind: PermissionKind = "command"
    line: str | None = None
    match subject:
        case "tool" | "domain":
            kind, text = subject, rest.strip()
        case "path":
            place = (here / Path(rest.strip()).expanduser()).resolve()
            kind, text = "change" if place.is_relative_to(here) else "outside", str(place)
        case _:
            text = line = action
    verdict, reason = permissions.judge(kind, text, line)
    if verdict:
        print(escape_invisible(f"{verdict}: {reason}"))
    else:
        modes = f"approval {permissions.approval}, sandbox {permissions.mode}"
        print(f"no rule decides: {_DECISIONS[permissions.decide(kind)]} ({modes})")


def print_rules(profile: str | None) -> None:
    """Print all rules, the strictest of the profile first, then those of this folder in the trust file."""
    rules = build_rules(_load_profile(profile).permissions, "the profile")
    rules += build_rules(load_folder_trust(Path.cwd().resolve()).permissions, "trust.json")
    rows = [(rule.verdict, escape_invisible(rule.text), rule.source) for rule in rules]
    print_table(("verdict", "rule", "source"), rows, "there are no rules; write some: goose-like help safety")
