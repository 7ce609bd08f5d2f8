"""The workspace of a subagent: the same folder as its parent, and never more rights."""

import asyncio
from functools import cached_property
from pathlib import Path

from typing_extensions import override

from goose_like.config.profile import ApprovalMode, SandboxMode
from goose_like.core.notifier import Notifier

from .permissions import Permissions
from .policy import pick_narrower
from .workspace import Workspace


class ChildWorkspace(Workspace):
    """A workspace inside a `parent`. Each action needs the permission of both, whatever `mode` and `approval` say.

    The child shares its parent's /tmp, session grants, change listeners and repository audit. The child has its
    own processes, which end when the child closes.
    """

    def __init__(
        self, parent: Workspace, *, mode: SandboxMode, approval: ApprovalMode, notifier: Notifier, session_folder: Path
    ) -> None:
        mode, approval = pick_narrower((mode, approval), (parent.mode, parent.approval))
        super().__init__(parent.root, mode=mode, approval=approval, notifier=notifier, session_folder=session_folder)
        self._permissions = Permissions(parent.root, mode, approval, notifier, parent=parent._permissions)
        self._parent = parent
        self.add_change_listener(parent.announce_change)

    @property
    @override
    def tmp(self) -> Path:
        return self._parent.tmp  # shared, so that files can be handed over

    @override
    async def _remove_tmp(self) -> None:
        pass  # the folder belongs to the parent

    @cached_property
    @override
    def _sandbox_problem(self) -> asyncio.Future[str | None]:
        return self._parent._sandbox_problem

    @override
    async def _freeze_rules(self) -> None:
        # The parent's rules come first: files that exist before the child's first command may be the parent's work,
        # and the parent's audit judges them together with the child's.
        await self._parent._freeze_rules()
        await super()._freeze_rules()
        self._audit = self._parent._active_audit or self._audit

    @override
    async def close(self) -> None:
        if self._audit is self._parent._audit:
            self._audit = None  # the parent inspects what the child left
        await super().close()
