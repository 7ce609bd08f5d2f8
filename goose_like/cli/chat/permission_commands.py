"""The slash command `/permissions`: the rules and answers that hold in a session, and ways to change them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import get_args

from goose_like.agent.slash_command import command
from goose_like.agent.slash_context import SlashContext
from goose_like.config.profile import PermissionLists
from goose_like.config.rule_topics import COMMAND, split_rule
from goose_like.config.trust import load_folder_trust, revoke, store_rule
from goose_like.core.errors import UsageError
from goose_like.core.events import Answered, Refused, SavedEvent
from goose_like.terminal.escape import escape_invisible, to_one_line
from goose_like.workspace.permissions.policy import Verdict

from .slash_commands import show_rows
from .startup import has_prompt

_VERDICTS = get_args(Verdict)[::-1]
_EFFECTS = {"allow": "allowed", "ask": "asked about", "deny": "refused"}
_SHOWN_CHARS = 100
_REFUSERS = {"person": "you", "profile": "a hook", "nobody": "nobody's answer"}
"""Who refused an action that a question was about, by `Answer.by`."""


@dataclass(frozen=True, slots=True)
class _Permission:
    """A rule, or an answer to a question. Without `remove` it belongs to the profile."""

    verdict: str
    text: str
    place: str
    detail: str = ""
    remove: Callable[[], None] | None = None

    def __str__(self) -> str:
        text = to_one_line(escape_invisible(self.text), _SHOWN_CHARS)
        return f"{self.verdict} {text}"

    def describe(self) -> str:
        """Return the whole text, the details, and how to remove it."""
        lines = [self.text, self.detail]
        if self.remove:
            lines.append("Enter removes it")
        return "\n".join(escape_invisible(line) for line in lines if line)


def _list_permissions(context: SlashContext) -> list[_Permission]:
    """List the answers of this session, what holds in this folder for good, and the rules of the profile."""
    return [*_iterate_answers(context), *_iterate_stored(context), *_iterate_profile_rules(context)]


def _iterate_answers(context: SlashContext) -> Iterator[_Permission]:
    grants = context.exchange.session.grants
    for grant in sorted(grants):
        mode = f"until the session ends, in mode {grant.approval} · {grant.sandbox}\n{grant.state}"
        remove = partial(grants.discard, grant)
        yield _Permission("allow", grant.scope, f"session, {grant.kind}", mode.rstrip(), remove)


def _iterate_stored(context: SlashContext) -> Iterator[_Permission]:
    root = context.exchange.workspace.root
    stored = load_folder_trust(root)
    for answer in stored.approvals:
        text, _, state = answer.subject.partition("\n")
        detail = f"exactly this\n{state}".rstrip()
        yield _Permission("allow", text, f"folder, {answer.kind}", detail, partial(revoke, root, answer))
    for verdict, rule in _iterate_rules(stored.permissions):
        remove = partial(_store_rule, context, rule, None)
        yield _Permission(verdict, rule, "folder, rule", "a rule for this folder", remove)


def _iterate_profile_rules(context: SlashContext) -> Iterator[_Permission]:
    hint = f"change it with: goose-like profile edit {context.profile.name}"
    for verdict, rule in _iterate_rules(context.profile.permissions):
        yield _Permission(verdict, rule, "profile, rule", hint)
    for name in context.profile.paths.deny_write:
        yield _Permission("deny", f"write {name}", "profile, deny_write", hint)


def _iterate_rules(lists: PermissionLists) -> Iterator[tuple[str, str]]:
    for verdict in _VERDICTS:
        for rule in getattr(lists, verdict):
            yield verdict, rule


def _list_choices(context: SlashContext) -> Iterable[tuple[str, str]]:
    for verdict in _VERDICTS:
        yield verdict, f"add a rule: such commands are {_EFFECTS[verdict]}"
    yield "log", "what was refused in this session, and what would allow it"
    for number, permission in enumerate(_list_permissions(context), 1):
        if permission.remove:
            yield f"remove {number}", str(permission)


@command(usage="[allow|ask|deny RULE | remove NUMBER | log]", anytime=True, choices=_list_choices)
async def permissions(context: SlashContext, words: str) -> None:
    """Show and change what is allowed, asked about and denied in this folder. `log`: what was refused here."""
    action, _, rest = words.partition(" ")
    rest = rest.strip()
    if action in _VERDICTS:
        _add_rule(context, action, rest)
    elif action == "remove":
        _remove(context, _find_permission(context, rest))
    elif words == "log":
        _show_refusals(context)
    elif words:
        raise UsageError(f"unknown: {action!r}; write /permissions allow, ask or deny RULE, remove NUMBER, or log")
    elif has_prompt() and not context.is_in_turn():
        await _choose_changes(context)
    else:
        context.show(f"mode: {_describe_mode(context)}")
        _show_permissions(context)


def _show_permissions(context: SlashContext) -> None:
    rows = []
    for number, permission in enumerate(_list_permissions(context), 1):
        rows.append((str(number), permission.place, str(permission)))
    show_rows(context, rows, "no rules and no answers")


def _show_refusals(context: SlashContext) -> None:
    """Show what was refused in this session, the newest last: the action, who refused it, and what would allow it."""
    refusals = Counter(_iterate_refusals(context.exchange.session.read_events()))
    for (action, who, allowed_by), count in refusals.items():
        times = f" ({count} times)" if count > 1 else ""
        context.show(f"✗ {to_one_line(escape_invisible(action), _SHOWN_CHARS)}{times}")
        context.show(f"    refused by {escape_invisible(who)}")
        if allowed_by:
            context.show(f"    allowed by {escape_invisible(allowed_by)}")
    if not refusals:
        context.show("nothing was refused in this session")


def _iterate_refusals(saved: Iterable[SavedEvent]) -> Iterator[tuple[str, str, str]]:
    """Yield each refused action with who refused it and what would allow it."""
    for event in saved:
        match event:
            case Refused(kind=kind, subject=subject, by=by, reason=reason, allowed_by=allowed_by):
                who = f"the {by}: {reason}" if reason else f"the {by}"
                yield f"{kind}: {subject}", who, allowed_by
            case Answered(question=question, answer=answer) if not answer.is_allowed and question.kind != "text":
                who = _REFUSERS[answer.by]
                if answer.text:
                    who += f": {answer.text}"
                yield f"{question.kind}: {question.subject}", who, question.allowed_by


def _describe_mode(context: SlashContext) -> str:
    workspace = context.exchange.workspace
    return f"{workspace.approval} · {workspace.mode}"


async def _choose_changes(context: SlashContext) -> None:
    """Show everything in a list, and change what the person chooses, until they leave the list."""
    from goose_like.terminal.picker import Choice, pick  # imported here, like all lists: few sessions use them

    async def describe(chosen: _Permission | str) -> str:
        if isinstance(chosen, _Permission):
            return chosen.describe()
        effect = f"from now on, such commands, files or hosts are {_EFFECTS[chosen]} in this folder"
        return f"{effect}\nthe same: /permissions {chosen} RULE"

    while True:
        choices: list[Choice[_Permission | str]] = []
        for permission in _list_permissions(context):
            choices.append(Choice(permission, str(permission), (permission.place,)))
        for verdict in _VERDICTS:
            choices.append(Choice(verdict, f"{verdict} …", ("add a rule",)))
        title = f"Permissions · {_describe_mode(context)} (/mode changes it)"
        chosen = await pick(title, choices, preview=describe)
        if chosen is None:
            return
        try:
            await _change(context, chosen)
        except UsageError as error:
            context.show(str(error))


async def _change(context: SlashContext, chosen: _Permission | str) -> None:
    if isinstance(chosen, str):
        rule = await context.ask(f"  {chosen}, such as git push, path:docs/* or domain:example.org: ")
        if rule.strip():
            _add_rule(context, chosen, rule.strip())
        return
    if chosen.remove and not await _confirm(context, f"remove {chosen}?"):
        return
    _remove(context, chosen)


async def _confirm(context: SlashContext, question: str) -> bool:
    typed = await context.ask(f"  {question} [y]es  [N]o: ")
    return typed.strip().lower() in ("y", "yes")


def _add_rule(context: SlashContext, verdict: str, rule: str) -> None:
    is_quoted = rule.startswith(("'", '"')) and rule.endswith(rule[0])
    if is_quoted:
        rule = rule[1:-1].strip()
    if not rule:
        raise UsageError(f"which rule? /permissions {verdict} git push, or tool:NAME, path:GLOB, domain:GLOB")
    _store_rule(context, rule, verdict)
    effect = _EFFECTS[verdict]
    topic, _ = split_rule(rule)
    if verdict == "allow" and topic is COMMAND:
        effect += ", inside the sandbox"
    context.show(f"from now on in this folder, {effect}: {escape_invisible(rule)}")


def _store_rule(context: SlashContext, rule: str, verdict: str | None) -> None:
    exchange = context.exchange
    before = set(exchange.hosted_problems)
    store_rule(exchange.workspace.root, rule, verdict)
    exchange.workspace.reload_rules()
    after = set(exchange.hosted_problems)
    for problem in sorted(after - before):
        exchange.journal.log(problem)
    if before - after:
        exchange.journal.log("the vendor's tools (`hosted` in the profile) are on again")


def _find_permission(context: SlashContext, which: str) -> _Permission:
    """Find a permission by its number or its text. Among several of one text, those that can be removed come first."""
    permissions = _list_permissions(context)
    if which.isdecimal() and 0 < int(which) <= len(permissions):
        return permissions[int(which) - 1]
    texts = (which, which.strip("\"'"))
    found = []
    for permission in permissions:
        if permission.text in texts or f"{permission.verdict} {permission.text}" in texts:
            found.append(permission)
    found = [permission for permission in found if permission.remove] or found
    if len(found) != 1:
        raise UsageError(f"{len(found) or 'no'} permissions are {which!r}; /permissions lists them with numbers")
    return found[0]


def _remove(context: SlashContext, permission: _Permission) -> None:
    if permission.remove is None:
        raise UsageError(f"`{permission}` is a rule of the profile; {permission.detail}")
    permission.remove()
    context.show(f"removed: {permission}")
