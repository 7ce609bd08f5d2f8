"""The mechanism that confines commands on this machine: the full sandbox, Landlock, or none."""

import asyncio
import sys
from functools import cached_property

from goose_like.core.errors import DeniedError, SandboxError
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread
from goose_like.workspace.permissions.permissions import Permissions

from . import bubblewrap


class SandboxMechanism:
    """Finds out once what confines commands here, and asks the person if nothing does."""

    def __init__(self, permissions: Permissions, notifier: Notifier, parent: "SandboxMechanism | None") -> None:
        self.is_landlocked = False
        self._permissions = permissions
        self._notifier = notifier
        self._parent = parent

    @property
    def has_mounts(self) -> bool:
        """True if commands see other files than goose_like itself."""
        return not self.is_landlocked and sys.platform != "darwin"

    @cached_property
    def problem(self) -> asyncio.Task[str | None]:
        """The reason why there is no full sandbox here, if any. The check starts at once, in a thread."""
        if self._parent:
            return self._parent.problem
        return asyncio.create_task(run_in_daemon_thread(bubblewrap.find_sandbox_problem))

    async def confines(self) -> bool:
        """Check for a sandbox once. The person may decide to continue without one, in mode `full`.

        Raise SandboxError if there is none, and nobody allowed commands without one.
        """
        problem = await asyncio.shield(self.problem)
        if problem is None or self.is_landlocked:
            return True
        from .landlock import find_landlock_problem  # few systems need it

        if find_landlock_problem() is None:
            self.is_landlocked = True
            if not self._parent:
                notice = bubblewrap.LANDLOCK_NOTICE
                if self._permissions.mode == "read-only":
                    notice = bubblewrap.READ_ONLY_LANDLOCK_NOTICE
                self._notifier.log(f"{notice}, since {problem}{bubblewrap.suggest_remedy()}")
            return True
        try:
            text = f"run commands without a sandbox, since {problem}"
            await self._permissions.require("sandbox", "this session", text)
        except DeniedError as error:
            if self._permissions.mode == "read-only":
                raise SandboxError(f"{problem}; without a sandbox nothing can be made read-only") from error
            raise SandboxError(f"{problem}; or run without one: --sandbox full") from error
        self._permissions.leave_sandbox()
        self._notifier.log(f"commands run without a sandbox: {problem}")
        return False
