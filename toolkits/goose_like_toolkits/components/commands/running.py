"""Building and running a component by hand: a copilot at the terminal, or whether something can be constructed."""

import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from goose_like.agent.journal import Journal
from goose_like.agent.view import ExchangeView
from goose_like.cli.launch import run_and_close, settle_profile
from goose_like.cli.options import ProfileOptions, SandboxOption
from goose_like.cli.run import StdoutWriter, run_until_stopped
from goose_like.config.profile import Profile
from goose_like.core.errors import CredentialError, UsageError
from goose_like.core.events import Answer, Event, Question
from goose_like.core.notifier import Notifier
from goose_like.core.threads import run_in_daemon_thread
from goose_like.providers.null_provider import build_null_models
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like.terminal.escape import escape_controls
from goose_like.terminal.interaction import LineReader, is_terminal, open_screen
from goose_like.workspace.workspace import Workspace
from goose_like_toolkits.components.assets.assets import Assets
from goose_like_toolkits.components.config import Config
from goose_like_toolkits.components.described.coordinates import Coordinates
from goose_like_toolkits.components.ensemble import Ensemble
from goose_like_toolkits.components.repositories.repository import Repositories
from goose_like_toolkits.components.roster import open_roster
from goose_like_toolkits.components.sharing import Sharing
from goose_like_toolkits.components.surroundings import Surroundings

_COPILOTS = ("copilot", "agent")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which component, by its coordinates or by its config file, and with what.

    `roots` are folders to import from before all others; `arguments` go to the component's constructor as they are.
    `profile` and `sandbox` are as for a session.
    """

    repositories: Repositories
    component: Coordinates | Path
    working_directory: Path = Path()
    is_setup_skipped: bool = False
    pip_parameters: tuple[str, ...] = ()
    roots: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    profile: str | None = None
    sandbox: SandboxOption = None


def build(wanted: Wanted) -> int:
    """Places its configuration in `.runtime`, installs what it needs, and constructs it; gives the exit code."""
    return _done(wanted, "construct")


def run(wanted: Wanted) -> int:
    """Builds a copilot and lets it work; gives the exit code."""
    return _done(wanted, "run")


def _done(wanted: Wanted, method: Literal["construct", "run"]) -> int:
    if not wanted.working_directory.is_dir():
        raise UsageError(f"there is no folder {wanted.working_directory}; make it, or name another working directory")
    chosen = settle_profile(ProfileOptions(wanted.profile, sandbox=wanted.sandbox))
    return run_and_close(_perform(wanted, method, chosen.profile), chosen)


async def _perform(wanted: Wanted, method: Literal["construct", "run"], profile: Profile) -> int:
    out, front = StdoutWriter("text"), AtTerminal()
    async with AsyncExitStack() as stack:
        session = Session.temporary()
        stack.callback(session.close)
        journal = Journal(session, front)
        try:
            models = open_models(profile)
        except CredentialError as error:  # it may do without; who asks for one is told
            models = build_null_models(error)
        for provider in models.providers:
            stack.push_async_callback(provider.close)
        workspace = await stack.enter_async_context(
            Workspace(
                wanted.working_directory,
                mode=profile.sandbox,
                approval=profile.approval,
                notifier=journal,
                session_folder=session.folder,
            )
        )
        await workspace.prepare_sandbox()
        around = Surroundings(
            workspace,
            session,
            ExchangeView(session, models, journal),
            profile.limits,
            journal,
            front.print,
        )
        return await _worked(wanted, method, around, front, out)


async def _worked(
    wanted: Wanted, method: Literal["construct", "run"], around: Surroundings, front: "AtTerminal", out: StdoutWriter
) -> int:
    """One component at work until it ends or the person stops it; gives the exit code."""
    config = Config(
        path=tuple(map(str, wanted.roots)), pip_params=wanted.pip_parameters, setup=not wanted.is_setup_skipped
    )
    roster = await run_in_daemon_thread(
        partial(open_roster, config, around.workspace, around.notifier, wanted.repositories)
    )
    member = await run_in_daemon_thread(partial(roster.with_more, wanted.component))
    if method == "run" and member.entry.type not in _COPILOTS:
        raise UsageError(
            f"{member.name} is a {member.entry.type}; only a copilot can be run; `component build` tries others"
        )
    ensemble = Ensemble(config, around, roster, Sharing(Assets(around.session)))
    try:
        _, code = await run_until_stopped(ensemble.perform(method, member, wanted.arguments), front, out)
        if method == "construct" and code == 0:
            front.print(f"{member.name} can be made; its configuration is {roster.finder.own_file(member)}\n")
    finally:
        for fault in await ensemble.close():
            front.log(fault)
        front.pause()
    return code


class AtTerminal(Notifier):
    """The person: what components print is on stdout, their questions are answered by lines of standard input."""

    def __init__(self) -> None:
        self._screen = open_screen(shows_answer=False)
        self._lines = LineReader()
        self._is_at_prompt = False

    def notify(self, event: Event) -> None:
        self._leave_prompt()
        self._screen.notify(event)

    async def ask(self, question: Question) -> Answer:
        if question.kind != "text":
            return await self._screen.ask(question)
        self.print(question.text)
        if is_terminal(sys.stdin):
            self.print("> ")
            self._is_at_prompt = True
        line = await self._lines.read_line()
        if line:
            self._is_at_prompt = False  # the terminal has shown its end
        self._leave_prompt()
        return Answer(choice="allow", by="person", text=line.rstrip("\r\n")) if line else Answer()

    def _leave_prompt(self) -> None:
        """What comes after Ctrl-D or Ctrl-C begins a line."""
        if self._is_at_prompt:
            self._is_at_prompt = False
            self.print("\n")

    def pause(self) -> None:
        """Takes away what tells that something is going on."""
        self._screen.pause()

    def print(self, text: str) -> None:
        """Shows what a component says, at once."""
        self.pause()
        sys.stdout.write(escape_controls(text) if is_terminal(sys.stdout) else text)
        sys.stdout.flush()
