"""Permissions: apply the policy, ask the person, and remember the answers."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.config.trust import StoredApproval, load_folder_trust, store_approval
from goose_like.core.errors import DeniedError
from goose_like.core.events import PermissionKind, Question
from goose_like.core.notifier import Notifier

from .policy import Decision, Grant, decide, effective_sandbox, format_refusal, pick_stricter


class Permissions:
    """The policy of one workspace, together with the answers that the person gave.

    With a `parent`, each action needs the permission of both policies. The session grants and the question lock are
    shared with the parent.
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
    ) -> None:
        self.mode = effective_sandbox(mode, approval)
        self.approval: ApprovalMode = approval
        self._root = root
        self._notifier = notifier
        self._parent = parent
        self._grants: set[Grant] = parent._grants if parent else set() if grants is None else grants
        self._question_lock: asyncio.Lock = parent._question_lock if parent else asyncio.Lock()

    def decide(self, kind: PermissionKind) -> Decision:
        """Look up the decision of the policy for a kind of action, without regard to earlier answers."""
        decision = decide(kind, self.mode, self.approval)
        return pick_stricter(decision, self._parent.decide(kind)) if self._parent else decision

    def is_granted(self, kind: PermissionKind) -> bool:
        """Check whether the person allowed this kind of action for the session, under the policy that holds now.

        A grant of the parent counts here too. A grant given here does not count for the parent, which may do more.
        """
        if (kind, self.mode, self.approval) in self._grants:
            return True
        return self._parent is not None and self._parent.is_granted(kind)

    async def require(self, kind: PermissionKind, subject: str, text: str, detail: Callable[[], str] = str) -> bool:
        """Return once the action is allowed; see `Workspace.require_permission`."""
        async with self._question_lock:
            decision = self.decide(kind)
            if decision == "refuse":
                raise DeniedError(format_refusal(kind, text, "profile"))
            if decision == "allow" or self.is_granted(kind):
                return False
            question = Question(kind=kind, subject=subject, text=text, detail=detail())
            approval = StoredApproval(kind=kind, subject=question.subject)
            if question.can_be_remembered and approval in load_folder_trust(self._root).approvals:
                return True
            answer = await self._notifier.ask(question)
            if not answer.is_allowed:
                raise DeniedError(format_refusal(kind, text, answer.by))
            if answer.choice == "allow_session":
                self._grants.add((kind, self.mode, self.approval))
            elif answer.choice == "allow_always" and question.can_be_remembered:
                store_approval(self._root, approval)
            return True
