"""The developer toolkit: shell, background processes, files, web pages and the plan."""

import asyncio
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from typing_extensions import override

from goose_like.config.personal_files import list_personal_files
from goose_like.config.profile import HostedTool
from goose_like.core.errors import ProfileError
from goose_like.core.events import PlanUpdated, StateSaved, Task
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import F, Tool, current_call
from goose_like.sessions.output_limit import LimitedOutput
from goose_like.toolkit import (
    Example,
    FollowUp,
    ImageResult,
    Notifier,
    Requirements,
    RunningTask,
    ToolError,
    Toolkit,
    tool,
)

from .agents_md import HintFile, describe_hints, load_hints
from .checkers import Checkers, split_checks
from .command_changes import only_looks
from .examples import EXAMPLES
from .failing_command import find_failing
from .files import FileTools
from .found_tests import FoundTests
from .linters import Linters, choose_linters
from .patching import Patch
from .processes import BackgroundProcesses
from .project_facts import ProjectFacts
from .question import ask_person
from .seen_files import SeenFiles
from .shell import Shell
from .state_changes import StateChanges
from .stuck_check import StuckCheck, read_first_check_s
from .v4a import read_v4a
from .web import WebFetcher
from .web_search import NEEDS, WebSearch

_NAME = "developer"
_NOTES_BYTES = 1_000
_DELETE_S = 120
MAX_OBJECTIONS = 6
"""How often in a turn `asks_back` objects to its end."""
MAX_EQUAL_OBJECTIONS = 3
"""How often it objects with the same text."""
_CONFIG = frozenset(
    {
        "tools",
        "hints",
        "guidance",
        "asks_back",
        "private_addresses",
        "news",
        "checks",
        "asks_when_silent",
        "runs_tests",
    }
)

READ_ALIASES = ("read", "view", "view_file", "open_file", "cat")
_WRITERS = ("write", "create_file", "write_to_file", "save_file")
_STRING_EDITORS = ("str_replace", "str_replace_editor", "str_replace_based_edit_tool")
_LINE_EDITORS = ("edit", "edit_file", "multi_edit", "replace_in_file", "search_replace")
_EDITORS = (*_LINE_EDITORS, *_STRING_EDITORS, "text_editor", "apply_patch", "notebook_edit")
_SEARCHES = ("grep", "glob", "ls", "find", "search", "search_files", "list_files", "list_dir", "list_directory")
_PROCESS_VIEWS = ("view_process_output", "list_processes", "bash_output", "get_terminal_output")
_PROCESS_ENDS = ("cancel_process", "kill_bash", "kill_shell", "kill_process")
_PROCESSES = ("start_process", "write_to_process", *_PROCESS_ENDS, *_PROCESS_VIEWS)
_QUESTIONS = ("ask_user_question", "ask_followup_question", "ask_question", "request_user_input", "question")
_SHELLS = ("bash", "terminal", "execute", "execute_command", "run_command", "run_shell_command", "run_terminal_cmd")


def _is_reading_command(arguments: Mapping[str, Any]) -> bool:
    from goose_like.workspace.permissions.prefixes import only_reads  # its patterns slow down a start

    return only_reads(str(arguments.get("command", "")), is_at_root=True)


def _is_there(place: Path) -> bool:
    """Check for a file or link, also one that leads nowhere."""
    return os.path.lexists(place)


def _is_process_view(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("action") in ("view", "list")


_WRITE_IN_PARTS = (
    "Write the first part of the text with this tool, and end the call there. Then add each further part in a message "
    "of its own: cat >> FILE <<'EOF'"
)
_EDIT_IN_PARTS = "Send fewer or smaller patches in one call, then the rest in further calls"


def _make_editing_tool(title: str, aliases: tuple[str, ...], when_cut: str, native: str = "") -> Callable[[F], F]:
    """Return the decorator for a method that changes the file `path`."""
    return tool(
        aliases=aliases,
        edits=True,
        has_long_arguments=True,
        native=native,
        when_cut=when_cut,
        rule_topic="path",
        title=title,
        paths=("path",),
    )


writing_tool = _make_editing_tool("Write {path}", _WRITERS, _WRITE_IN_PARTS)
patching_tool = _make_editing_tool("Edit {path}", _EDITORS, _EDIT_IN_PARTS, native="apply_patch")


class DeveloperToolkit(Toolkit):
    """The tools of a developer. Paths of file tools start at the root of the workspace, wherever the shell is."""

    is_confined: ClassVar[bool] = True
    examples: ClassVar[Sequence[Example]] = EXAMPLES
    own_config: frozenset[str] = frozenset()
    """Config keys of a subclass, in addition to `_CONFIG`."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        known = _CONFIG | self.own_config
        unknown = sorted(set(self.config) - known)
        if unknown:
            key = unknown[0]
            hint = did_you_mean(key, known)
            raise ProfileError(f"toolkit 'developer' has no {key!r}; {hint}", ("config", key))
        allows_private = self.config.get("private_addresses", False)
        if not isinstance(allows_private, bool):
            text = f"`private_addresses` is true or false, not {allows_private!r}"
            raise ProfileError(text, ("config", "private_addresses"))
        # Leave room for notes. The exchange cuts longer results again, without knowing the important parts.
        self._output_bytes = max(self.limits.output_bytes - _NOTES_BYTES, self.limits.output_bytes // 2)
        self._hint_log: asyncio.Handle | None = None
        self._hints = ""
        stuck_check = StuckCheck(self.exchange_view, notifier, read_first_check_s(self.config))
        self._shell = Shell(
            self.workspace,
            self.report_progress,
            stuck_check,
            self._find_saved_cwd(),
            wants_other_way=bool(self.config.get("asks_back", False)),
        )
        self._processes = BackgroundProcesses(self._shell, self.workspace, self.report_progress)
        self._web = WebFetcher(self.workspace, notifier, self.exchange_view, allows_private=allows_private)
        self._web_search = WebSearch(self.workspace, self.exchange_view)
        checks, checkers = split_checks(self.config.get("checks", True))
        self._checkers = Checkers(self.workspace, checkers)
        seen = SeenFiles(self.workspace.root, notifier, self.session.history.state)
        self._files = FileTools(
            self.workspace,
            notifier,
            get_cwd=lambda: self._shell.state.cwd,
            max_bytes=self._output_bytes,
            linters=Linters(self.workspace, notifier, choose_linters(checks)),
            checkers=self._checkers,
            seen=seen,
        )
        self._objections: list[str] = []
        self._state_changes = StateChanges(self.workspace, seen)
        self._project_facts = ProjectFacts(self.workspace)
        self._found_tests = FoundTests(self.workspace, self._shell, self._project_facts, self._open_output)

    def _find_saved_cwd(self) -> str | None:
        """Return the folder in which a resumed session left the shell. In another workspace it starts at the root."""
        saved = self.session.history.state.get(_NAME)
        cwd = str(saved.get("cwd")) if isinstance(saved, dict) else ""
        if cwd and Path(os.path.realpath(cwd)).is_relative_to(self.workspace.root):
            return cwd
        return None

    @override
    def prompt(self) -> str:
        sections: list[str] = []
        if self.config.get("guidance", True):
            sections += [self.workspace.rules_text, self._read_guidance()]
        found: list[HintFile] = []
        if self.config.get("hints", True):
            own = self.project.personal if self.project else ()
            personal = [file for _, file in list_personal_files(own, "instructions")]
            workspace = self.workspace
            found = load_hints(workspace.root, workspace.is_ignored, workspace.open_file, personal)
        if found:
            # The prompt is built before the session starts, so log this right after the start.
            text = describe_hints(found)
            self._hint_log = asyncio.get_running_loop().call_soon(self.notifier.log, text)
        self._hints = "\n\n".join(f"Hints from {hint.file}:\n{hint.text}" for hint in found)
        return "\n\n".join(filter(None, [*sections, self._hints]))

    @override
    def prompt_parts(self) -> Mapping[str, str]:
        return {"instruction files": self._hints}

    def _read_guidance(self) -> str:
        """Read the lines of guidance whose tools this session has."""
        text = Path(__file__).with_name("prompt.md").read_text(encoding="utf-8")
        fitting: list[str] = []
        for line in text.splitlines():
            names = re.findall(r"`(\w+)`", line)
            if self._has_tools(*names):
                fitting.append(line)
        return "\n".join(fitting)

    @override
    def tools(self) -> tuple[Tool, ...]:
        offered = [tool for tool in super().tools() if self._has_tools(tool.name)]
        if self.workspace.can_ask_for_network:
            return tuple(offered)
        return tuple(tool.without("access") for tool in offered)

    @override
    async def on_turn_start(self) -> None:
        self._files.edited.clear()
        self._files.failing = None
        self._objections.clear()

    @override
    async def context_updates(self) -> Mapping[str, str]:
        findings = {"checks": self._checkers.take_news().strip()}
        if not self.config.get("news", True):
            return findings
        facts = await self._project_facts.collect(self.session.history.context.facts)
        return {**facts, **self._state_changes.collect(), **findings}

    @override
    async def before_finish(self) -> str | FollowUp | None:
        text = await self._find_objection()
        if not text or not self.config.get("asks_back", False):
            return text or None
        self._objections.append(text)
        is_below_limits = self._objections.count(text) < MAX_EQUAL_OBJECTIONS and len(self._objections) < MAX_OBJECTIONS
        return FollowUp(text, is_repeated=is_below_limits)

    async def _find_objection(self) -> str:
        """Find reasons against the end of the turn; empty if there are none."""
        if self.config.get("runs_tests", False):
            failure = await self._found_tests.find_failure()
            if failure:
                return failure
            has_passed = failure == ""
            if has_passed:
                self._files.unchecked_path = ""
        found = list(self._files.find_broken())
        news = await self._checkers.finish()
        if news:
            found.append(news.strip())
        if found:
            found.append("Fix that, or say why it stays. Your answer is kept: add only what is new.")
        changed = self._files.unchecked_path
        self._files.unchecked_path = ""
        if self.config.get("asks_back", False):
            found += self._ask_back(changed)
        return "\n".join(found)

    def _ask_back(self, changed: str) -> Iterator[str]:
        """Ask what weak models forget: to run what they changed, and to repair what failed before they give up."""
        failing = self._files.failing
        if changed and failing:
            yield f"You changed {changed}. Now run this again: {failing.command}\nBefore, it failed:\n{failing.text}"
        elif changed:
            yield f"You changed {changed} and ran nothing since. Check it with the shell; if it is right, finish."
        elif failing:
            yield f"This failed: {failing.command}\n{failing.text}\nRepair that, and run it again; then finish."

    @override
    def running_tasks(self) -> Sequence[RunningTask]:
        return self._processes.list_tasks()

    @override
    async def close(self) -> None:
        if self._hint_log:
            self._hint_log.cancel()
        await self._checkers.close()
        await self._processes.close()
        self._shell.close()

    def _has_tools(self, *names: str) -> bool:
        wanted = set(names)
        picked = self.config.get("tools")
        if picked is not None and not wanted <= set(picked):
            return False
        return not any(map(self._is_refused, wanted))

    def _is_refused(self, name: str) -> bool:
        """Check for a tool that this session would always refuse. In approval mode `plan` the answer is the plan."""
        is_planning = self.workspace.approval == "plan"
        match name:
            case "write_file" | "patch_file":
                return self.workspace.mode == "read-only"
            case "ask_user":
                return self.workspace.is_child  # the person speaks with the parent
            case "web_search":
                is_missing = is_planning or not self._web_search.find_searcher()
                return is_missing and not self._is_hosted("web_search")
            case "update_plan":
                return is_planning
            case "fetch_web_content":
                is_offline = is_planning and not self.workspace.settings.network.allow
                return is_offline and not self._is_hosted("web_fetch")
        return False

    def _is_hosted(self, name: HostedTool) -> bool:
        """Check for a tool that the model's server runs, in each mode, in place of the one of ours."""
        return name in self.profile.hosted and self.exchange_view.processor.model.has_hosted(name)

    def _get_output_file(self, suffix: str) -> Path:
        """Return a file for the running call. The name differs from the exchange's file for cut results."""
        name = re.sub(r"[^\w-]", "_", current_call.get(_NAME))
        return self.session.outputs / f"{name}-{suffix}"

    def _open_output(self, kind: str) -> LimitedOutput:
        return LimitedOutput(self._get_output_file(f"{kind}.txt"), self._output_bytes)

    @tool(
        time_limit_s=None,
        aliases=(*_SHELLS, *_SEARCHES),
        read_only=_SEARCHES,
        reads_only_with=_is_reading_command,
        rule_topic="command",
        when_cut="Run the command in parts; write a long text into a file first, part by part",
        kind="execute",
        title="{command}",
    )
    async def shell(
        self,
        command: str,
        timeout_s: float = 120,
        access: Literal["workspace", "network"] = "workspace",
    ) -> str:
        """Run a bash command that ends by itself. cd and export last from call to call. No terminal, no input."""
        hand_over = self._processes.adopt if self._has_tools("process") else None
        cwd = self._shell.state.cwd
        is_run = not only_looks(command)
        if is_run:
            self._files.unchecked_path = ""
        try:
            with self._state_changes.follow_command():
                answer = await self._shell.run(command, timeout_s, access, self._open_output("shell"), hand_over)
            self._files.note_shown_files(command, answer)
            if is_run:
                self._files.failing = find_failing(self.workspace.ledger.last_command, answer)
            return answer
        finally:
            # A resumed session continues in this folder. Variables may be secrets and are not saved.
            if self._shell.state.cwd != cwd:
                text = os.fsencode(self._shell.state.cwd).decode(errors="replace")
                self.notifier.notify(StateSaved(toolkit=_NAME, value={"cwd": text}))

    @tool(
        aliases=_PROCESSES,
        read_only=(*_PROCESS_ENDS, *_PROCESS_VIEWS),
        reads_only_with=_is_process_view,
        kind="execute",
        title="Process {id}: {action} {command}",
    )
    async def process(
        self,
        action: Literal["start", "view", "write", "restart", "stop", "list"],
        id: str = "",
        command: str = "",
        text: Annotated[str, Field(description="line to write; empty ends the input")] = "",
    ) -> str:
        """Run a server, watcher or interactive program, which ends with the session. Gives its id and new output."""
        with self._state_changes.follow_command():
            match action:
                case "start":
                    return await self._processes.start(command, self._open_output("process"))
                case "view":
                    return await self._processes.view(id)
                case "write":
                    return await self._processes.write(id, text)
                case "restart":
                    return await self._processes.restart(id, command, self._open_output("process"))
                case "stop":
                    return await self._processes.cancel(id)
                case "list":
                    return self._processes.describe_all()

    @tool(parallel=True, aliases=READ_ALIASES, title="Read {path}", paths=("path",))
    async def read_file(
        self, path: str, start_line: int = 1, end_line: int | None = None, encoding: str = ""
    ) -> str | ImageResult:
        """Show a text file with line numbers, or an image or PDF. Paths start at the workspace root."""
        return await self._files.read(path, start_line, end_line, encoding)

    @writing_tool
    async def write_file(self, path: str, content: str, encoding: str = "") -> str:
        """Create a file, or replace all of one that you have read."""
        return await self._files.write(path, content, encoding)

    @patching_tool
    async def patch_file(
        self, path: str, patches: Annotated[list[Patch], BeforeValidator(read_v4a)], encoding: str = ""
    ) -> str:
        """Replace parts of a file, one after the other. Those that match are kept if another fails."""
        match patches:
            case [Patch(operation="create", after=content)]:
                return await self._files.write(path, content, encoding)
            case [Patch(operation="delete")]:
                return await self._delete(path)
        return await self._files.patch(path, patches, encoding)

    async def _delete(self, path: str) -> str:
        """Delete a file, or a link and not what it leads to, as a command: so that undo keeps it."""
        place = self._files.find_entry(path)
        name = str(place)
        if self.workspace.is_private(place.parent):
            name = self.workspace.path_in_sandbox(place)
        command = f"command rm -- {shlex.quote(name)}"  # the session may have a function `rm`
        with self._state_changes.follow_command():
            answer = await self._shell.run(command, _DELETE_S, "workspace", self._open_output("delete"))
        if _is_there(place):
            raise ToolError(f"{path} was not deleted: {answer}")
        self._files.unchecked_path = path
        return f"deleted {path}"

    @tool(time_limit_s=None, aliases=_QUESTIONS, read_only=True, kind="other", title="Ask: {question}", display="name")
    async def ask_user(
        self, question: str, choices: Annotated[Sequence[str], Field(description="at most 4")] = ()
    ) -> str:
        """Ask the person what only they can decide, not what you can find out."""
        return await ask_person(self.notifier, question, choices)

    @tool(
        parallel=True,
        time_limit_s=None,
        aliases=("web_fetch", "fetch", "fetch_url"),
        native="web_fetch",
        kind="fetch",
        title="Fetch {url}",
    )
    async def fetch_web_content(
        self, url: str, looking_for: Annotated[str, Field(description="show the lines on this instead")] = ""
    ) -> str:
        """Save a web page as HTML and text, and show how it begins."""
        return await self._web.fetch(url, self._get_output_file("page"), looking_for)

    @tool(
        parallel=True,
        time_limit_s=None,
        aliases=("google_search", "search_web", "brave_search"),
        needs=NEEDS,
        native="web_search",
        kind="search",
        title="Search the web for {query}",
    )
    async def web_search(self, query: str) -> str:
        """Search the web. Gives pages with their URLs."""
        return await self._web_search.search(query)

    @tool(
        aliases=("todo_write", "todo", "update_todo_list"),
        read_only=True,
        accompanies_answer=True,
        kind="think",
        title="Update the plan",
        display="nothing",
    )
    async def update_plan(self, tasks: list[Task]) -> str:
        """Show your plan to the person: always all tasks, each with its status."""
        self.notifier.notify(PlanUpdated(tasks=tuple(tasks)))
        done = sum(task.status == "complete" for task in tasks)
        return f"the plan is shown: {done} of {len(tasks)} tasks complete"
