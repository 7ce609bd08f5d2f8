"""The workspace of an exchange within another: the same folder, and never more than the other one may do."""

import asyncio
from functools import cached_property
from pathlib import Path

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.notifier import Notifier

from .policy import Decision, Kind, narrower, stricter
from .workspace import Workspace


class Narrowed(Workspace):
    """Whatever `mode` and `approval` say, each step needs what it would need in `parent` too.

    Shared with it are /tmp, the answers for this session, who listens to changes, and what is to be looked at
    afterwards. Its processes are its own, and end when it is closed.
    """

    def __init__(
        self, parent: Workspace, *, mode: SandboxMode, approval: ApprovalMode, notifier: Notifier, session_folder: Path
    ) -> None:
        mode, approval = narrower((mode, approval), (parent.mode, parent.approval))
        super().__init__(
            parent.root,
            mode=mode,
            approval=approval,
            notifier=notifier,
            session_folder=session_folder,
            grants=parent._grants,
        )
        self._parent = parent
        self._asking = parent._asking
        self.before_change(parent.tell_change)

    def is_granted(self, kind: Kind) -> bool:
        """What was allowed to its parent is allowed to it; not the other way, as it may do less with that."""
        return super().is_granted(kind) or self._parent.is_granted(kind)

    def decision(self, kind: Kind) -> Decision:
        """What both policies let through: in a sandbox that is narrower, what the wider one asks about is asked."""
        return stricter(super().decision(kind), self._parent.decision(kind))

    @cached_property
    def tmp(self) -> Path:
        """Its parent's, so that files can be handed over."""
        return self._parent.tmp

    async def _remove_tmp(self) -> None:
        """It is not ours."""

    @cached_property
    def _probe(self) -> asyncio.Future[str | None]:
        return self._parent._probe

    async def _take_stock(self) -> None:
        """What is there before a delegate's first command may be its parent's work: that is judged with the rest."""
        await self._parent._take_stock()
        await super()._take_stock()
        if self._parent._inspection is not None and not self._parent._may_leave_anything:
            self._inspection = self._parent._inspection

    async def close(self) -> None:
        """Ends everything that was started. What it left is looked at by who looks at its parent's."""
        if self._inspection is self._parent._inspection:
            self._inspection = None
        await super().close()
