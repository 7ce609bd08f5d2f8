"""Build and run a component by hand, with the person at the terminal as its user."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from goose_like.agent.budget import Budget
from goose_like.agent.build import describe_start
from goose_like.agent.journal import Journal
from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits, Profile
from goose_like.core.errors import (
    CredentialError,
    ModelUnavailableError,
    ProfileError,
    TimeLimitError,
    UsageError,
    prefix_error_path,
)
from goose_like.core.events import Answer, Answered, Asked, Event, Question, SessionStarted, TurnStarted
from goose_like.core.message import Message
from goose_like.core.notifier import EventNotifier
from goose_like.core.threads import run_in_daemon_thread
from goose_like.launch.command_line import ProfileOptions
from goose_like.launch.exit import run_async
from goose_like.launch.output import StdoutWriter, run_until_stopped
from goose_like.launch.start import settle_profile
from goose_like.launch.start_notifier import StartNotifier
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import LineReader, is_terminal, open_screen
from goose_like.workspace.workspace import Workspace

from ..bridges.exchange import SpentError
from ..config import Config
from ..host.assets import AssetStore
from ..host.registry import Member, Registry
from ..host.requests import RequestHandler
from ..host.runtime import SessionRuntime
from ..host.sources import parse_component, require_config_file
from ..host.worker_process import TimeLimit
from ..surroundings import Surroundings
from ..toolkit import open_registry
from .cli import ComponentOptions


@dataclass(frozen=True, slots=True)
class _Task:
    """The component to build or run, as a command line names it. `roots` are folders with packages."""

    method: Literal["build", "run"]
    component: str
    options: ComponentOptions
    arguments: Sequence[str]
    roots: Sequence[Path]


def perform(
    method: Literal["build", "run"],
    component: str,
    options: ComponentOptions,
    arguments: Sequence[str] = (),
    roots: Sequence[Path] = (),
) -> int:
    """Build or run a component and return the exit code; `roots` are folders with packages."""
    if not options.working_directory.is_dir():
        raise UsageError(f"there is no folder {options.working_directory}; name another with --working-directory")
    profile_options = ProfileOptions(
        profile=options.profile,
        model=options.model,
        sandbox=options.sandbox,
        approval=options.approval,
    )
    task = _Task(method, component, options, arguments, roots)
    return run_async(_choose_and_perform(task, profile_options))


async def _choose_and_perform(task: _Task, profile_options: ProfileOptions) -> int:
    choice = await settle_profile(profile_options, StartNotifier(), Path.cwd())
    try:
        return await _perform(task, choice.profile)
    except ProfileError as error:
        raise choice.locate_error(error) from None


async def _perform(task: _Task, profile: Profile) -> int:
    out = StdoutWriter("text")
    front = TerminalNotifier(shows_start=task.method == "run")
    async with AsyncExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        journal = Journal(session, front)
        try:
            models = open_models(profile)
        except (CredentialError, ModelUnavailableError) as error:  # a component may need no model
            models = build_null_models(error)
            front.shows_start = False
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        workspace = Workspace(
            task.options.working_directory,
            mode=profile.sandbox,
            approval=profile.approval,
            notifier=journal,
            session_folder=session.folder,
            settings=profile,
        )
        await stack.enter_async_context(workspace)
        await workspace.prepare_sandbox()
        # Events wait for the first one, and limits count within a turn.
        start = describe_start(profile, session, workspace, models, {})
        journal.emit(start.model_copy(update={"name": ""}))
        message = Message.user(f"component {task.method} {task.component}")
        journal.emit(TurnStarted(message=message))
        budget = Budget(profile.limits, session)
        view = ExchangeView(session, models, journal, budget)
        around = Surroundings(workspace, session, view, budget, journal, front.print)
        config = _read_config(profile, task.options, task.roots)
        registry = await run_in_daemon_thread(partial(open_registry, config, workspace.root, task.options.settings))
        member = await _add_component(task, registry)
        answer = RequestHandler(around, config.llm).answer
        runtime = SessionRuntime(config, around, registry, AssetStore(session), answer)
        try:
            work = _work(runtime.perform(task.method, member, task.arguments), profile.limits, front)
            result, code = await run_until_stopped(work, front, out)
            if task.method == "build" and code == 0:
                front.print(f"{member.name} can be constructed; its configuration is {result}\n")
        finally:
            for problem in await runtime.close():
                front.log(problem)
            for note in await workspace.inspect_changes():
                front.log(note)
            front.pause()
        return code


async def _add_component(task: _Task, registry: Registry) -> Member:
    """Add the component to the registry. Raise GooseLikeError if it cannot be used, or cannot run."""
    named = parse_component(task.component)
    if isinstance(named, Path):
        named = require_config_file(named)
    member = await run_in_daemon_thread(partial(registry.add, named))
    kind = member.definition.kind
    if task.method == "run" and kind not in ("copilot", "agent"):
        raise UsageError(f"{member.name} is a {kind}; only a copilot can be run; `component build` tries others")
    return member


def _read_config(profile: Profile, options: ComponentOptions, roots: Sequence[Path]) -> Config:
    """Read the settings of the profile's toolkit `components`, and add the options to them.

    Components in `use` are for sessions.
    """
    config = Config()
    for index, toolkit in enumerate(profile.toolkits):
        if toolkit.name == "components":
            with prefix_error_path("toolkits", index):
                config = Config.read(toolkit.config)
    changes = {
        "use": (),
        "path": (*config.path, *map(str, roots)),
        "pip_params": (*config.pip_params, *options.pip_params.split()),
        "setup": config.setup and not options.skip_setup,
    }
    return config.model_copy(update=changes)


async def _work(work: Coroutine[Any, Any, Any], limits: Limits, front: "TerminalNotifier") -> Any:
    """Run work within the profile's limits of one turn. The time in which a person is asked does not count."""
    try:
        async with asyncio.timeout(limits.time_s) as timeout:
            front.limit = TimeLimit(timeout)
            return await work
    except TimeoutError:
        if not timeout.expired():
            raise
        text = f"stopped at the profile's limit of {limits.time_s:g} s; raise `limits: {{time_s: ...}}` in the profile"
        raise TimeLimitError(text) from None
    except SpentError as error:
        error.args = (f"stopped: {error.end.detail}; raise `limits` in the profile",)
        raise


class TerminalNotifier(EventNotifier):
    """The person at the terminal: components print to stdout, and lines of stdin answer their questions."""

    def __init__(self, *, shows_start: bool = False) -> None:
        self.shows_start = shows_start
        self.limit: TimeLimit | None = None
        self._screen = open_screen(shows_answer=False)
        self._lines = LineReader()
        self._is_at_prompt = False

    def notify(self, event: Event) -> None:
        """Show an event, but none of the questions of components: these are shown as the component's own words."""
        match event:
            case TurnStarted():  # its spinner would spin while a copilot waits for the person
                return
            case SessionStarted() if not self.shows_start:
                return
            case Asked(question=question) | Answered(question=question) if question.kind == "text":
                return
        self._leave_prompt()
        self._screen.notify(event)

    async def ask(self, question: Question) -> Answer:
        """Ask the person; questions of components are answered by a line."""
        if self.limit:
            self.limit.pause()
        try:
            return await self._ask(question)
        finally:
            if self.limit:
                self.limit.resume()

    async def _ask(self, question: Question) -> Answer:
        if question.kind != "text":
            return await self._screen.ask(question)
        line = await self.ask_line(question.text)
        if line is None:
            return Answer()
        return Answer(choice="allow", by="person", text=line)

    async def ask_line(self, text: str) -> str | None:
        """Show a text and read a line; return None at the end of input."""
        self.print(text)
        if is_terminal(sys.stdin):
            self.print("> ")
            self._is_at_prompt = True
        line = await self._lines.read_line()
        if line:
            self._is_at_prompt = False  # the terminal has shown the end of the line
        self._leave_prompt()
        return line.rstrip("\r\n") if line else None

    def pause(self) -> None:
        """Hide the progress line."""
        self._screen.pause()

    def print(self, text: str) -> None:
        """Show what a component prints."""
        self.pause()
        if is_terminal(sys.stdout):
            text = escape_controls(text)
        sys.stdout.write(text)
        sys.stdout.flush()

    def _leave_prompt(self) -> None:
        """Begin a new line after Ctrl-D or Ctrl-C at a prompt."""
        if self._is_at_prompt:
            self._is_at_prompt = False
            self.print("\n")
