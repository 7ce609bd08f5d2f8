"""Permissions: apply the policy and the person's rules, ask the person, and remember the answers."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from goose_like.config.profile import ApprovalMode, PermissionLists, SandboxMode
from goose_like.config.trust import StoredApproval, load_folder_trust, store_approval
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, PermissionKind, Question, Refused
from goose_like.core.notifier import Notifier

from .policy import (
    APPROVALS,
    DECISIONS,
    MODES,
    ONLY_A_PERSON,
    Decision,
    Grant,
    Verdict,
    decide,
    describe_allowance,
    describe_looser_mode,
    effective_sandbox,
    format_change,
    format_refusal,
)
from .shell_state import shell_state

current_tool: ContextVar[str] = ContextVar("current_tool", default="")
"""The name of the running tool, if there are rules about tools."""

is_in_question: ContextVar[bool] = ContextVar("is_in_question", default=False)
"""True while a hook judges a question. Then nobody can be asked another one."""


Refuser = Literal["rule", "mode", "sandbox", "proxy"]
"""Who refuses an action without a question."""


@dataclass(frozen=True, slots=True)
class _Action:
    """An action that needs permission: a command with its line, or something else without one."""

    kind: PermissionKind
    subject: str
    line: str | None
    state: str
    """The state of the shell. An answer holds only for the state that its question showed."""

    version: str
    """The version of a tool. An answer holds only for the version that was asked about."""

    @property
    def condition(self) -> str:
        """The condition under which an answer holds: the state of the shell, or the version of a tool."""
        return self.state or self.version

    @property
    def scope(self) -> str:
        """The part of the subject that an answer for the session is about: the tool of a call, or all of it."""
        if self.kind == "tool":
            return self.subject.partition(" ")[0]
        return self.subject

    @property
    def approval(self) -> StoredApproval:
        """The answer that would allow exactly this action for good."""
        subject = self.subject
        if self.condition:
            subject += f"\n{self.condition}"
        return StoredApproval(kind=self.kind, subject=subject)


class Permissions:
    """The policy and the rules of one workspace, together with the answers that the person gave.

    With a `parent`, each action needs the permission of both policies, and the narrower modes of the two hold. The
    rules, the session grants and the question lock are shared with the parent.
    """

    def __init__(
        self,
        root: Path,
        mode: SandboxMode,
        approval: ApprovalMode,
        notifier: Notifier,
        *,
        grants: set[Grant] | None = None,
        parent: "Permissions | None" = None,
        lists: PermissionLists | None = None,
    ) -> None:
        self._mode: SandboxMode = mode
        self._approval: ApprovalMode = approval
        self._root = root
        self._notifier = notifier
        self._parent = parent
        self._lists = lists or PermissionLists()
        if parent is None:
            self._grants: set[Grant] = set() if grants is None else grants
            self._question_lock = asyncio.Lock()
        else:
            self._grants = parent._grants
            self._question_lock = parent._question_lock
        self._open_question: asyncio.Timeout | None = None
        self._turn_allow: tuple[str, ...] = ()
        self._turn_rules: Any = None
        self.is_turn_read_only = False

    @property
    def mode(self) -> SandboxMode:
        """The sandbox mode in effect."""
        mode = effective_sandbox(self._mode, self.approval)
        if self.is_turn_read_only:
            mode = "read-only"
        if self._parent is None:
            return mode
        return min(mode, self._parent.mode, key=MODES.index)

    @property
    def approval(self) -> ApprovalMode:
        """The approval mode in effect."""
        if self._parent is None:
            return self._approval
        return min(self._approval, self._parent.approval, key=APPROVALS.index)

    @property
    def is_unattended(self) -> bool:
        """True if nobody may be asked: each question is a no at once."""
        if self._approval == "unattended":
            return True
        return self._parent is not None and self._parent.is_unattended

    def leave_sandbox(self) -> None:
        """Continue in mode `full`, which the person allowed because there is no sandbox here."""
        self._mode = "full"

    def change_approval(self, approval: ApprovalMode) -> None:
        """Continue with another approval, which may allow more. The sandbox stays."""
        self._approval = approval

    def restrict(self, mode: SandboxMode, approval: ApprovalMode) -> None:
        """Narrow the modes at once. An open question is withdrawn, and its action is judged again."""
        self._mode = min(mode, self._mode, key=MODES.index)
        self._approval = min(approval, self._approval, key=APPROVALS.index)
        if self._open_question and not self._open_question.expired():
            self._open_question.reschedule(0)

    @contextmanager
    def limit_turn(self, allow: Sequence[str], *, is_read_only: bool) -> Iterator[None]:
        """Let rules allow more for one turn, or let it only read. The rules of the person win."""
        self.allow_in_turn(allow)
        self.is_turn_read_only = is_read_only
        try:
            yield
        finally:
            self.end_turn()
            self.is_turn_read_only = False

    def allow_in_turn(self, allow: Sequence[str]) -> None:
        """Let more rules allow actions until the turn ends."""
        if not allow:
            return
        from .rules import PermissionRules, build_rules  # few turns have rules

        self._turn_allow = (*self._turn_allow, *allow)
        rules = build_rules(PermissionLists(allow=self._turn_allow), "the slash command or skill")
        self._turn_rules = PermissionRules(rules, self._root)

    def end_turn(self) -> None:
        """Forget the rules of the turn."""
        self._turn_allow = ()
        self._turn_rules = None

    @property
    def _rules(self) -> Any:
        if self._parent is not None:
            return self._parent._rules
        return self._own_rules

    @cached_property
    def _own_rules(self) -> Any:
        """The `PermissionRules` of the profile and of the trust file, or None if there are none."""
        stored = load_folder_trust(self._root).permissions
        if stored == self._lists == PermissionLists():
            return None
        from .rules import PermissionRules, build_rules  # few sessions have rules

        rules = [*build_rules(self._lists, "the profile"), *build_rules(stored, "trust.json")]
        return PermissionRules(rules, self._root)

    def reload_rules(self) -> None:
        """Read the rules of the trust file again before the next action."""
        self.__dict__.pop("_own_rules", None)

    def decide(self, kind: PermissionKind) -> Decision:
        """Look up the decision of the policy for a kind of action, without regard to rules and earlier answers."""
        decision = decide(kind, self.mode, self.approval)
        if self._parent is None:
            return decision
        return min(decision, self._parent.decide(kind), key=DECISIONS.index)

    def judge(self, kind: PermissionKind, subject: str, line: str | None = None) -> tuple[Verdict | None, str]:
        """Judge an action by the rules: the verdict, if there is one, and its reason. `line` is a command's line."""
        tool = current_tool.get()
        if self._rules is not None:
            verdict, reason = self._rules.judge_action(kind, subject, line, tool)
            if verdict is not None:
                return verdict, reason
        turn_rules = self._find_turn_rules()
        if turn_rules is None:
            return None, ""
        verdict, reason = turn_rules.judge_action(kind, subject, line, tool)
        if verdict != "allow":  # doubts belong to the rules of the person
            return None, ""
        return verdict, reason

    @property
    def limits_hosts(self) -> bool:
        """True if a rule denies a host, or asks about one."""
        return self._rules is not None and bool(self._rules.list_rules("domain", "deny", "ask"))

    def _find_turn_rules(self) -> Any:
        if self._parent is not None:
            return self._parent._find_turn_rules()
        return self._turn_rules

    async def require(
        self,
        kind: PermissionKind,
        subject: str,
        text: str,
        detail: Callable[[], str] = str,
        line: str | None = None,
        *,
        is_at_root: bool = False,
        has_prefix: bool = True,
        doubt: str = "",
        version: str = "",
    ) -> bool:
        """Return once the action is allowed; see `Workspace.require_permission`.

        `line` is a command's line, `is_at_root` that the command starts in the root of the workspace. Without
        `has_prefix`, no answer for the session is offered. With a `doubt`, none is offered, and earlier ones do not
        count.
        """
        # A hook that judges a question may run commands while that question holds the lock.
        lock = nullcontext() if is_in_question.get() else self._question_lock
        async with lock:
            mode = self.mode
            while True:
                verdict, reason = self._judge_doubtful(kind, subject, line, doubt)
                self._check_not_refused(kind, subject, text, verdict, reason)
                if mode != self.mode:
                    raise DeniedError(format_change(text, self.mode))
                if verdict != "ask" and self.decide(kind) == "allow":
                    return False
                action = _Action(kind, subject, line, _read_shell_state(line), version)
                if self._needs_no_question(action, verdict, is_at_root=is_at_root):
                    return False
                if self._was_allowed(action, is_doubtful=bool(doubt)):
                    return True
                why = ""
                if verdict == "ask":
                    why = f"asked about because {reason}"
                shown = "\n".join(filter(None, (why, action.state, detail())))
                prefix = ""
                if has_prefix and not doubt:
                    prefix = self._describe_prefix(action)
                allowed_by = _describe_allowance(action, verdict, reason, prefix, doubt)
                question = Question(
                    kind=kind, subject=subject, text=text, detail=shown, prefix=prefix, allowed_by=allowed_by
                )
                answer = await self._ask(question)
                if answer is None:
                    continue  # the modes were narrowed meanwhile: judge again
                if not answer.is_allowed:
                    raise DeniedError(format_refusal(kind, text, answer.by, answer.text, allowed_by))
                self._remember(action, question, answer)
                return True

    def _judge_doubtful(
        self, kind: PermissionKind, subject: str, line: str | None, doubt: str
    ) -> tuple[Verdict | None, str]:
        """Judge an action by the rules. With a doubt, everything that no rule denies is asked about."""
        verdict, reason = self.judge(kind, subject, line)
        if not doubt or verdict == "deny":
            return verdict, reason
        if verdict == "ask" and reason:
            return "ask", f"{doubt}; {reason}"
        return "ask", doubt

    def _check_not_refused(
        self, kind: PermissionKind, subject: str, text: str, verdict: Verdict | None, reason: str
    ) -> None:
        """Check that neither a rule nor the modes refuse an action. Record a refusal.

        Raises:
            DeniedError: one does.
        """
        if verdict == "deny":
            self.record_refusal(kind, subject, "rule", "a change of the rule", reason)
            raise DeniedError(format_refusal(kind, text, "rule", reason))
        if self.decide(kind) == "refuse" or (verdict == "ask" and self.approval == "plan"):
            allowed_by = describe_looser_mode(self.mode, self.approval)
            self.record_refusal(kind, subject, "mode", allowed_by, f"{self.approval} · {self.mode}")
            raise DeniedError(format_refusal(kind, text, "profile"))

    def record_refusal(
        self, kind: PermissionKind, subject: str, by: Refuser, allowed_by: str, reason: str = ""
    ) -> None:
        """Record a refusal without a question, for `/permissions log`."""
        self._notifier.notify(Refused(kind=kind, subject=subject, by=by, reason=reason, allowed_by=allowed_by))

    def _needs_no_question(self, action: _Action, verdict: Verdict | None, *, is_at_root: bool) -> bool:
        """Check that a rule allows an action, or that it is a command that only reads, in an unchanged shell."""
        if action.state:
            return False
        if verdict is not None:
            return verdict == "allow"
        is_state_unknown = shell_state.get() is str
        if action.kind != "command" or action.line is None or is_state_unknown:
            return False
        return self.only_reads(action.line, is_at_root=is_at_root)

    def _was_allowed(self, action: _Action, *, is_doubtful: bool) -> bool:
        """Check whether the person allowed an action before: for the session, or for good."""
        if not is_doubtful and self._is_granted(action):
            return True
        return action.approval in load_folder_trust(self._root).approvals

    def _is_granted(self, action: _Action) -> bool:
        """Check whether an answer for the session allows an action, under the policy and the shell state of now.

        A grant of the parent counts here too. A grant given here does not count for the parent, which may do more.
        """
        granted = []
        for grant in self._grants:
            has_same_modes = grant.sandbox == self.mode and grant.approval == self.approval
            if has_same_modes and grant.kind == action.kind and grant.state == action.condition:
                granted.append(grant.scope)
        if action.line is not None and granted:
            from .prefixes import is_covered  # needed after an answer for the session

            is_granted_here = is_covered(action.line, granted, self._root)
        else:
            is_granted_here = action.scope in granted
        if is_granted_here:
            return True
        return self._parent is not None and self._parent._is_granted(action)

    def _remember(self, action: _Action, question: Question, answer: Answer) -> None:
        """Remember an answer that allows more than one action."""
        if answer.choice == "allow_prefix" and question.prefix:
            scopes = [action.scope]
            if action.line is not None:
                scopes = question.prefix.split(", ")
            for scope in scopes:
                grant = Grant(action.kind, self.mode, self.approval, scope, action.condition)
                self._grants.add(grant)
        elif answer.choice == "allow_always" and question.can_be_remembered:
            store_approval(self._root, action.approval)

    def only_reads(self, line: str, *, is_at_root: bool) -> bool:
        """Check that a command in an unchanged shell needs no question in mode `ask`. Without a sandbox each needs one.

        `is_at_root`: the command starts in the root of the workspace.
        """
        folders = os.environ.get("PATH", "").split(os.pathsep)
        chooses_programs_by_cd = not all(map(os.path.isabs, folders))
        if self.mode == "full" or chooses_programs_by_cd:
            return False
        from .prefixes import only_reads  # only mode `ask` needs the parser for each command

        has_git_files = (self._root / "HEAD").exists()  # a repository without a working tree, as a project brings it
        return only_reads(line, is_at_root=is_at_root and not has_git_files)

    async def _ask(self, question: Question) -> Answer | None:
        """Ask the person. Return None if the modes were narrowed meanwhile."""
        if is_in_question.get():
            return Answer()
        top = self
        while top._parent:
            top = top._parent
        top._open_question = withdrawal = asyncio.timeout(None)
        try:
            async with withdrawal:
                return await self._notifier.ask(question)
        except TimeoutError:
            if not withdrawal.expired():
                raise
            return None
        finally:
            top._open_question = None

    def _describe_prefix(self, action: _Action) -> str:
        """Describe what the answer for the session would allow; empty if there is no such answer."""
        if action.line is not None and action.kind not in ("sandbox", "deletion"):
            from .prefixes import list_prefixes  # a person reads the question meanwhile

            return ", ".join(list_prefixes(action.line, self._root))
        match action.kind:
            case "change" | "outside":
                return "this file"
            case "domain":
                return action.subject if " " in action.subject else "this host"
            case "tool":
                return "this tool"
            case _:
                return ""


def _describe_allowance(action: _Action, verdict: Verdict | None, reason: str, prefix: str, doubt: str) -> str:
    """Describe what would allow an action without a question: a rule or mode, or a change of the rule that asks."""
    if doubt or action.state:
        return ONLY_A_PERSON
    if verdict == "ask":
        return f"a change of the rule ({reason})"
    return describe_allowance(action.kind, action.scope, prefix)


def _read_shell_state(line: str | None) -> str:
    """Read what earlier commands changed for a command with this line; nothing for other actions."""
    if line is None:
        return ""
    describe_state = shell_state.get()
    return describe_state()
