"""DeveloperToolkit: what a model needs to work on a project as a developer does."""

import asyncio
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.events import PlanUpdated, StateSaved, Task
from goose_like.core.output_limit import Output
from goose_like.core.tool import current_call
from goose_like.toolkit import Notifier, Picture, Requirements, Toolkit, tool

from .checks import Checks, table
from .files import Files, Patch
from .hints import hints
from .news import News
from .processes import Processes
from .shell import Shell
from .silence import Watch, first_s
from .web import Web

_NAME = "developer"
_NOTES_BYTES = 1_000
_CONFIG = frozenset(
    {"tools", "hints", "guidance", "asks_back", "private_addresses", "news", "checks", "asks_when_silent"}
)


class DeveloperToolkit(Toolkit):
    """Shell, files and plan. Relative paths start where the shell is, for files too: there is one "here"."""

    own_config: frozenset[str] = frozenset()

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        known = _CONFIG | self.own_config
        if unknown := sorted(set(self.config) - known):
            text = f"toolkit 'developer' has no {unknown[0]!r}; {did_you_mean(unknown[0], known)}"
            raise ProfileError(text, ("config", unknown[0]))
        if not isinstance(is_open := self.config.get("private_addresses", False), bool):
            text = f"`private_addresses` is true or false, not {is_open!r}"
            raise ProfileError(text, ("config", "private_addresses"))
        # With room for our notes: what is longer the exchange would cut again, without knowing what matters in it.
        self._room = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        self._telling: asyncio.Handle | None = None
        saved = self.session.history.state.get(_NAME)
        cwd = str(saved.get("cwd")) if isinstance(saved, dict) else ""
        # Resumed elsewhere, it starts there: the folder of the session's former workspace is none of this one's.
        is_here = cwd and Path(cwd).is_relative_to(self.workspace.root)
        watch = Watch(self.exchange_view, notifier, first_s(self.config))
        self._shell = Shell(self.workspace, self.progress, watch, cwd if is_here else None)
        self._processes = Processes(self._shell, self.workspace, self.progress)
        self._web = Web(self.workspace, notifier, self.exchange_view, allows_private=is_open)
        checks = Checks(self.workspace, notifier, table(self.config.get("checks", True)))
        self._files = Files(self.workspace, notifier, lambda: self._shell.state.cwd, self._room, checks)
        self._news = News(self.workspace, self._files.known)

    def prompt(self) -> str:
        """What commands may do, guidance on the tools that were picked, and the hints of the project and its people."""
        guidance = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").splitlines()
        kept = [line for line in guidance if self._has(*re.findall(r"`(\w+)`", line))]
        told = [self.workspace.rules, "\n".join(kept)] if self.config.get("guidance", True) else []
        found = hints(self.workspace.root) if self.config.get("hints", True) else []
        if found:
            # Asked for while the exchange is built; told when the session has started, which is then the next thing.
            text = "hints from " + ", ".join(f"{hint.file}{' (cut)' * hint.is_cut}" for hint in found)
            self._telling = asyncio.get_running_loop().call_soon(self.notifier.log, text)
        return "\n\n".join([*told, *(f"Hints from {hint.file}:\n{hint.text}" for hint in found)])

    def news(self) -> Mapping[str, str]:
        """The day, the branch, and files that are no longer as the model saw them."""
        return self._news.facts() if self.config.get("news", True) else {}

    def doubt(self) -> str | None:
        """With `asks_back`, which weak models need: something was changed, and nothing was run since."""
        changed, self._files.unchecked = self._files.unchecked, ""
        if not (changed and self.config.get("asks_back", False)):
            return None
        return f"You changed {changed} and ran nothing since. Check it with the shell; if it is right, finish."

    async def close(self) -> None:
        if self._telling:
            self._telling.cancel()
        await self._processes.close()

    def _has(self, *names: str) -> bool:
        """Whether the profile picked these tools."""
        picked = self.config.get("tools")
        return picked is None or set(names) <= set(picked)

    def _file(self, ending: str) -> Path:
        """For the running call. Not the exchange's own name for it, which would write over what was cut already."""
        name = re.sub(r"[^\w-]", "_", current_call.get(_NAME))
        return self.session.outputs / f"{name}-{ending}"

    def _output(self, kind: str) -> Output:
        return Output(self._file(f"{kind}.txt"), self._room)

    @tool(time_limit_s=None)
    async def shell(
        self, command: str, timeout_s: float = 120, access: Literal["workspace", "network"] = "workspace"
    ) -> str:
        """Run a bash command. cd and export last from call to call. No terminal, no input.

        Args:
            command: `... > log 2>&1 &` runs it in the background
            access: "network" asks for the internet
        """
        keep = self._processes.keep if self._has("view_process_output", "cancel_process") else None
        cwd = self._shell.state.cwd
        self._files.unchecked = ""
        try:
            answer = await self._shell.run(command, timeout_s, access, self._output("shell"), keep)
            self._files.saw(command, answer)
            return answer
        finally:
            # A resumed session goes on there; variables may be secrets and do not last.
            if self._shell.state.cwd != cwd:
                text = os.fsencode(self._shell.state.cwd).decode(errors="replace")
                self.notifier.notify(StateSaved(toolkit=_NAME, value={"cwd": text}))

    @tool
    async def start_process(self, command: str) -> str:
        """Start a server, watcher or interactive program that runs on. Gives its id, and output of the first second."""
        return await self._processes.start(command, self._output("process"))

    @tool
    async def list_processes(self) -> str:
        """What runs on, and how it ended."""
        return self._processes.listed()

    @tool
    async def view_process_output(self, id: str) -> str:
        """What it printed since you last saw it."""
        return await self._processes.view(id)

    @tool
    async def cancel_process(self, id: str) -> str:
        """End it and all that it started."""
        return await self._processes.cancel(id)

    @tool
    async def write_to_process(self, id: str, text: str) -> str:
        """Type a line to it (empty text ends its input) and see the answer."""
        return await self._processes.write(id, text)

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

    @tool(time_limit_s=None)
    async def fetch_web_content(self, url: str, looking_for: str = "") -> str:
        """Save a web page as files, HTML and text, and show how it begins.

        Args:
            looking_for: shows the lines on that instead
        """
        return await self._web.fetch(url, self._file("page"), looking_for)

    @tool
    async def update_plan(self, tasks: list[Task]) -> str:
        """Show your plan to the person: always all tasks, each with its status."""
        self.notifier.notify(PlanUpdated(tasks=tuple(tasks)))
        done = sum(task.status == "complete" for task in tasks)
        return f"the plan is shown: {done} of {len(tasks)} tasks complete"
