"""Permissions: apply the policy and the person's rules, ask the person, and remember the answers."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

from goose_like.config.profile import ApprovalMode, PermissionLists, SandboxMode
from goose_like.config.trust import StoredApproval, load_folder_trust, store_approval
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer, PermissionKind, Question
from goose_like.core.notifier import Notifier

from .policy import (
    APPROVALS,
    DECISIONS,
    MODES,
    Decision,
    Grant,
    Verdict,
    decide,
    effective_sandbox,
    format_change,
    format_refusal,
)
from .shell_state import shell_state

current_tool: ContextVar[str] = ContextVar("current_tool", default="")
"""The name of the running tool, if there are rules about tools."""

is_in_question: ContextVar[bool] = ContextVar("is_in_question", default=False)
"""True while a hook judges a question. Then nobody can be asked another one."""


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
        self._grants: set[Grant] = parent._grants if parent else set() if grants is None else grants
        self._question_lock: asyncio.Lock = parent._question_lock if parent else asyncio.Lock()
        self._open_question: asyncio.Timeout | None = None
        self._turn_rules: Any = None
        self.is_turn_read_only = False

    @property
    def mode(self) -> SandboxMode:
        """The sandbox mode in effect."""
        mode = "read-only" if self.is_turn_read_only else effective_sandbox(self._mode, self.approval)
        return min(mode, self._parent.mode, key=MODES.index) if self._parent else mode

    @property
    def approval(self) -> ApprovalMode:
        """The approval mode in effect."""
        return min(self._approval, self._parent.approval, key=APPROVALS.index) if self._parent else self._approval

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
        if allow:
            from .rules import PermissionRules, build_rules  # few commands have rules

            rules = build_rules(PermissionLists(allow=tuple(allow)), "the slash command")
            self._turn_rules = PermissionRules(rules, self._root)
        self.is_turn_read_only = is_read_only
        try:
            yield
        finally:
            self._turn_rules, self.is_turn_read_only = None, False

    @property
    def _rules(self) -> Any:
        return self._parent._rules if self._parent else self._own_rules

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
        return min(decision, self._parent.decide(kind), key=DECISIONS.index) if self._parent else decision

    def judge(self, kind: PermissionKind, subject: str, line: str | None = None) -> tuple[Verdict | None, str]:
        """Judge an action by the rules: the verdict, if there is one, and its reason. `line` is a command's line."""
        verdict, reason = None, ""
        if self._rules is not None:
            verdict, reason = self._rules.judge_action(kind, subject, line, current_tool.get())
        if verdict is None and (rules := self._find_turn_rules()) is not None:
            verdict, reason = rules.judge_action(kind, subject, line, current_tool.get())
            if verdict != "allow":  # doubts belong to the rules of the person
                return None, ""
        return verdict, reason

    def _find_turn_rules(self) -> Any:
        return self._parent._find_turn_rules() if self._parent else self._turn_rules

    def is_granted(self, kind: PermissionKind, subject: str, line: str | None = None, state: str = "") -> bool:
        """Check whether an answer for the session allows an action, under the policy and the shell state of now.

        A grant of the parent counts here too. A grant given here does not count for the parent, which may do more.
        """
        modes = (kind, self.mode, self.approval)
        found = (grant[3].split("\0", 1) for grant in self._grants if grant[:3] == modes)
        granted = [text for text, *states in found if (states or [""])[0] == state]
        if granted and line is not None:
            from .prefixes import is_covered  # needed after an answer for the session

            is_granted_here = is_covered(line, granted, self._root)
        else:
            is_granted_here = _get_scope(kind, subject) in granted
        return is_granted_here or (self._parent is not None and self._parent.is_granted(kind, subject, line, state))

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
                decision = self.decide(kind)
                verdict, reason = self.judge(kind, subject, line)
                if verdict == "deny":
                    raise DeniedError(format_refusal(kind, text, "rule", reason))
                if doubt:
                    reason = "; ".join(filter(None, (doubt, reason if verdict == "ask" else "")))
                    verdict = "ask"
                if decision == "refuse" or (verdict == "ask" and self.approval == "plan"):
                    raise DeniedError(format_refusal(kind, text, "profile"))
                if mode != self.mode:
                    raise DeniedError(format_change(text, self.mode))
                if verdict != "ask" and decision == "allow":
                    return False
                state = "" if line is None else shell_state.get()()
                if not state and (verdict == "allow" or self._is_spared(kind, line, verdict, is_at_root)):
                    return False
                # An answer holds only for the state of the shell that its question showed.
                approval = StoredApproval(kind=kind, subject=f"{subject}\n{state}" if state else subject)
                is_granted = not doubt and self.is_granted(kind, subject, line, state)
                if is_granted or approval in load_folder_trust(self._root).approvals:
                    return True
                why = f"asked about because {reason}" if verdict == "ask" else ""
                shown = "\n".join(filter(None, (why, state, detail())))
                prefix = self._describe_prefix(kind, subject, line) if has_prefix and not doubt else ""
                question = Question(kind=kind, subject=subject, text=text, detail=shown, prefix=prefix)
                if answer := await self._ask(question):
                    break
            if not answer.is_allowed:
                raise DeniedError(format_refusal(kind, text, answer.by, answer.text))
            if answer.choice == "allow_prefix" and question.prefix:
                texts = question.prefix.split(", ") if line is not None else [_get_scope(kind, subject)]
                self._grants.update((kind, self.mode, self.approval, f"{one}\0{state}") for one in texts)
            elif answer.choice == "allow_always" and question.can_be_remembered:
                store_approval(self._root, approval)
            return True

    def _is_spared(self, kind: PermissionKind, line: str | None, verdict: Verdict | None, is_at_root: bool) -> bool:
        """Check that no rule decides about a command, that it only reads, and that the state of its shell is known."""
        is_unknown = line is None or kind != "command" or shell_state.get() is str
        return verdict is None and not is_unknown and self.only_reads(line or "", is_at_root=is_at_root)

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

    def _describe_prefix(self, kind: PermissionKind, subject: str, line: str | None) -> str:
        """Describe what the answer for the session would allow; empty if there is no such answer."""
        if line is not None and kind not in ("sandbox", "deletion"):
            from .prefixes import list_prefixes  # a person reads the question meanwhile

            return ", ".join(list_prefixes(line, self._root))
        host = subject if " " in subject else "this host"
        return {"change": "this file", "outside": "this file", "domain": host, "tool": "this tool"}.get(kind, "")


def _get_scope(kind: PermissionKind, subject: str) -> str:
    """Return the part of a subject that an answer for the session is about: the tool of a call, or all of it."""
    return subject.partition(" ")[0] if kind == "tool" else subject
