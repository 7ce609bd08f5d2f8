"""DeveloperToolkit: what a model needs to work on a project as a developer does."""

import asyncio
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from goose_like.errors import ProfileError
from goose_like.events import PlanUpdated, StateSaved, Task
from goose_like.output import Output
from goose_like.plugins import did_you_mean
from goose_like.tool import current_call
from goose_like.toolkit import Notifier, Picture, Requirements, Toolkit, tool

from .files import Files, Patch
from .hints import hints
from .shell import Shell

_NAME = "developer"
_NOTES_BYTES = 1_000
_CONFIG = frozenset({"tools", "hints", "guidance"})


class DeveloperToolkit(Toolkit):
    """Shell, files and plan. Relative paths start where the shell is, for files too: there is one "here"."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        if unknown := sorted(set(self.config) - _CONFIG):
            text = f"toolkit 'developer' has no {unknown[0]!r}; {did_you_mean(unknown[0], _CONFIG)}"
            raise ProfileError(text, ("config", unknown[0]))
        # With room for our notes: what is longer the exchange would cut again, without knowing what matters in it.
        self._room = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        self._telling: asyncio.Handle | None = None
        saved = self.session.history.state.get(_NAME)
        cwd = str(saved.get("cwd")) if isinstance(saved, dict) else ""
        # Resumed elsewhere, it starts there: the folder of the session's former workspace is none of this one's.
        is_here = cwd and Path(cwd).is_relative_to(self.workspace.root)
        self._shell = Shell(self.workspace, self.progress, cwd if is_here else None)
        self._files = Files(self.workspace, notifier, lambda: self._shell.state.cwd, self._room)

    def prompt(self) -> str:
        """What commands may do, guidance on the tools that were picked, and the hints of the project and its people."""
        picked = self.config.get("tools")
        guidance = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").splitlines()
        kept = [line for line in guidance if picked is None or set(re.findall(r"`(\w+)`", line)) <= set(picked)]
        told = [self.workspace.rules, "\n".join(kept)] if self.config.get("guidance", True) else []
        found = hints(self.workspace.root) if self.config.get("hints", True) else []
        if found:
            # Asked for while the exchange is built; told when the session has started, which is then the next thing.
            text = "hints from " + ", ".join(f"{hint.file}{' (cut)' * hint.is_cut}" for hint in found)
            self._telling = asyncio.get_running_loop().call_soon(self.notifier.log, text)
        return "\n\n".join([*told, *(f"Hints from {hint.file}:\n{hint.text}" for hint in found)])

    async def close(self) -> None:
        if self._telling:
            self._telling.cancel()

    @tool(time_limit_s=None)
    async def shell(
        self, command: str, timeout_s: float = 120, access: Literal["workspace", "network"] = "workspace"
    ) -> str:
        """Run a bash command. cd and export last from call to call. No terminal, no input.

        Args:
            command: `... > log 2>&1 &` runs it in the background
            access: "network" asks for the internet
        """
        # Not the exchange's own name for it, which would write over it what was cut already.
        name = re.sub(r"[^\w-]", "_", current_call.get(_NAME))
        output = Output(self.session.outputs / f"{name}-shell.txt", self._room)
        cwd = self._shell.state.cwd
        try:
            answer = await self._shell.run(command, timeout_s, access, output)
            self._files.saw(command, answer)
            return answer
        finally:
            # A resumed session goes on there; variables may be secrets and do not last.
            if self._shell.state.cwd != cwd:
                text = os.fsencode(self._shell.state.cwd).decode(errors="replace")
                self.notifier.notify(StateSaved(toolkit=_NAME, value={"cwd": text}))

    @tool
    def read_file(self, path: str, start_line: int = 1, end_line: int | None = None) -> str | Picture:
        """Read a text file, or some of its lines."""
        return self._files.read(path, start_line, end_line)

    @tool
    async def write_file(self, path: str, content: str) -> str:
        """Create a file, or replace all of one that you have read."""
        return await self._files.write(path, content)

    @tool
    async def patch_file(self, path: str, patches: list[Patch]) -> str:
        """Replace parts of a file, one after the other, all or none."""
        return await self._files.patch(path, patches)

    @tool
    async def update_plan(self, tasks: list[Task]) -> str:
        """Show your plan to the person: always all tasks, each with its status."""
        self.notifier.notify(PlanUpdated(tasks=tuple(tasks)))
        done = sum(task.status == "complete" for task in tasks)
        return f"the plan is shown: {done} of {len(tasks)} tasks complete"
