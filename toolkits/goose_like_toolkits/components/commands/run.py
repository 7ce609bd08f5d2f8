"""Build and run a component by hand, with the person at the terminal as its user."""

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Literal

from goose_like.agent.journal import Journal
from goose_like.agent.view import ExchangeView
from goose_like.cli.launch import run_and_close, settle_profile
from goose_like.cli.options import ProfileOptions
from goose_like.cli.run import StdoutWriter, run_until_stopped
from goose_like.config.profile import Profile
from goose_like.core.errors import CredentialError, ModelUnavailableError, UsageError
from goose_like.core.events import Answer, Event, Question
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import LineReader, is_terminal, open_screen
from goose_like.workspace.workspace import Workspace

from ..config import Config
from ..host.assets import AssetStore
from ..host.registry import Registry
from ..host.repository import Repositories, read_settings
from ..host.requests import RequestHandler
from ..host.runtime import SessionRuntime
from ..host.sources import parse_component, require_config_file
from ..surroundings import Surroundings
from .cli import ComponentOptions


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
    chosen = settle_profile(ProfileOptions(options.profile, sandbox=options.sandbox, approval=options.approval))
    work = _perform(method, component, options, arguments, roots, chosen.profile)
    return run_and_close(work, chosen)


async def _perform(
    method: Literal["build", "run"],
    component: str,
    options: ComponentOptions,
    arguments: Sequence[str],
    roots: Sequence[Path],
    profile: Profile,
) -> int:
    out, front = StdoutWriter("text"), TerminalNotifier()
    async with AsyncExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        journal = Journal(session, front)
        try:
            models = open_models(profile)
        except (CredentialError, ModelUnavailableError) as error:  # a component may need no model
            models = build_null_models(error)
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        workspace = Workspace(
            options.working_directory,
            mode=profile.sandbox,
            approval=profile.approval,
            notifier=journal,
            session_folder=session.folder,
        )
        await stack.enter_async_context(workspace)
        await workspace.prepare_sandbox()
        view = ExchangeView(session, models, journal)
        around = Surroundings(workspace, session, view, profile.limits, journal, front.print)
        config = Config(
            path=tuple(map(str, roots)), pip_params=tuple(options.pip_params.split()), setup=not options.skip_setup
        )
        repositories = Repositories.of(read_settings(options.settings))
        registry = await run_in_daemon_thread(partial(Registry, config, workspace.root, repositories))
        named = parse_component(component)
        file = require_config_file(named) if isinstance(named, Path) else named
        member = await run_in_daemon_thread(partial(registry.add, file))
        if method == "run" and member.definition.kind not in ("copilot", "agent"):
            kind = member.definition.kind
            raise UsageError(f"{member.name} is a {kind}; only a copilot can be run; `component build` tries others")
        answer = RequestHandler(around, config.llm).answer
        runtime = SessionRuntime(config, around, registry, AssetStore(session), answer)
        try:
            result, code = await run_until_stopped(runtime.perform(method, member, arguments), front, out)
            if method == "build" and code == 0:
                front.print(f"{member.name} can be constructed; its configuration is {result}\n")
        finally:
            for problem in await runtime.close():
                front.log(problem)
            front.pause()
        return code


class TerminalNotifier(Notifier):
    """The person at the terminal: components print to stdout, and lines of stdin answer their questions."""

    def __init__(self) -> None:
        self._screen = open_screen(shows_answer=False)
        self._lines = LineReader()
        self._is_at_prompt = False

    def notify(self, event: Event) -> None:
        """Show an event."""
        self._leave_prompt()
        self._screen.notify(event)

    async def ask(self, question: Question) -> Answer:
        """Ask the person; questions of components are answered by a line."""
        if question.kind != "text":
            return await self._screen.ask(question)
        line = await self.ask_line(question.text)
        return Answer() if line is None else Answer(choice="allow", by="person", text=line)

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
        sys.stdout.write(escape_controls(text) if is_terminal(sys.stdout) else text)
        sys.stdout.flush()

    def _leave_prompt(self) -> None:
        """Begin a new line after Ctrl-D or Ctrl-C at a prompt."""
        if self._is_at_prompt:
            self._is_at_prompt = False
            self.print("\n")
