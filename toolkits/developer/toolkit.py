"""DeveloperToolkit: what a model needs to work on a project as a developer does."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from goose_like.events import PlanUpdated, StateSaved, Task
from goose_like.output import Output
from goose_like.tool import current_call
from goose_like.toolkit import Notifier, Requirements, Toolkit, tool

from .files import Files, Patch
from .hints import hints
from .shell import NOTES_BYTES, Shell

_NAME = "developer"


class DeveloperToolkit(Toolkit):
    """Shell, files and plan. Relative paths start where the shell is, for files too: there is one "here"."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        # What is longer would be cut once more by the exchange, which knows less of what matters in it.
        self._room = max(self.limits.output_bytes - NOTES_BYTES, self.limits.output_bytes // 2)
        saved = self.session.history.state.get(_NAME)
        cwd = saved.get("cwd") if isinstance(saved, dict) else None
        self._shell = Shell(self.workspace, self.progress, str(cwd) if cwd else None)
        self._files = Files(self.workspace, notifier, lambda: self._shell.state.cwd, self._room)

    def prompt(self) -> str:
        """Guidance for the tools that there are, and the hints of the project and its people."""
        picked = {tool.name for tool in self.tools()}
        guidance = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8")
        parts = ["\n".join(line for line in guidance.splitlines() if picked.issuperset(re.findall(r"`(\w+)`", line)))]
        if found := hints(self.workspace.root):
            self.notifier.log(f"hints from {', '.join(name for name, _ in found)}")
            parts += [f"Hints from {name}:\n{text}" for name, text in found]
        return "\n\n".join(parts)

    @tool(time_limit_s=None)
    async def shell(
        self, command: str, timeout_s: float = 120, access: Literal["workspace", "network"] = "workspace"
    ) -> str:
        """Run a bash command. cd and export last. No terminal, no input.

        Args:
            command: any length; end with `> log 2>&1 &` to run in the background
            access: network asks for the internet
        """
        call_id = re.sub(r"[^\w-]", "_", current_call.get(_NAME))
        output = Output(self.session.outputs / f"{call_id}.txt", self._room)
        cwd = self._shell.state.cwd
        try:
            return await self._shell.run(command, timeout_s, access, output)
        finally:
            if self._shell.state.cwd != cwd:
                self.notifier.notify(StateSaved(toolkit=_NAME, value={"cwd": self._shell.state.cwd}))

    @tool
    def read_file(self, path: str, start_line: int = 1, end_line: int | None = None) -> str:
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
