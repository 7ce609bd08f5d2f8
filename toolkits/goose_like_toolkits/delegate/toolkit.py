"""The class of the toolkit `delegate`: it runs a subagent and returns the last answer."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, ClassVar

from pydantic import Field, ValidationError
from typing_extensions import override

from goose_like.agent.build import ClientPart, build_exchange
from goose_like.agent.subagent import narrow_limits, remaining_limits
from goose_like.config.paths import WORKTREES_FOLDER
from goose_like.config.profile import Limits, Profile, ToolkitChoice
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.message import FrozenModel, Message, join_answers
from goose_like.core.spelling import did_you_mean
from goose_like.core.tool import Tool, current_call
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import list_changed_files
from goose_like.terminal.escape import to_one_line
from goose_like.toolkit import Notifier, Requirements, RunningTask, ToolError, Toolkit, tool

from .kinds import SubagentKind, load_kinds, open_kind_models
from .run import SubagentRun
from .worktree import SubagentWorktree, complete, list_left_worktrees, list_some

_NAME = "delegate"
_MAX_TITLE_CHARS = 100
_MAX_DESCRIPTION_CHARS = 300
_GRANTS = ("private_addresses",)
"""Permissions in a toolkit's config that the workspace does not control."""


class DelegateConfig(FrozenModel):
    """The checked config of the toolkit."""

    profiles: tuple[str, ...] = ()
    limits: Limits = Limits()
    depth: int = Field(default=1, ge=1)
    parallel: int = Field(default=4, ge=1)
    tools: list[str] | None = None


class DelegateToolkit(Toolkit):
    """Subagents that know nothing but their task, and that have no more permissions than their parent."""

    is_confined: ClassVar[bool] = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._config = _parse_config(self.config)
        # Profiles are loaded now, so that later changes of their files have no effect on this session.
        profiles = {name: _load_profile(name, index) for index, name in enumerate(self._config.profiles)}
        agents, self._problems = load_kinds(self.project or load_trusted_project(self.workspace.root), self.profile)
        kinds = {
            name: SubagentKind(profile) for name, profile in (profiles or {self.profile.name: self.profile}).items()
        }
        self._kinds = {**agents, **kinds}
        self._default = next(iter(kinds))
        self._runs: dict[str, SubagentRun] = {}
        self._numbers = count(1)
        self._logged: set[str] = set()
        self._has_looked = False
        self._slots = asyncio.Semaphore(self._config.parallel)
        self._writing, self._merging = asyncio.Semaphore(), asyncio.Lock()

    @override
    def use_profile(self, profile: Profile, models: ModelPair) -> None:
        own_name = self.profile.name
        super().use_profile(profile, models)
        changes = {"processor": profile.processor, "accelerator": profile.accelerator, "approval": profile.approval}
        for name, kind in self._kinds.items():
            if kind.profile.name == own_name:
                self._kinds[name] = replace(kind, profile=kind.profile.model_copy(update=changes))

    @override
    def prompt(self) -> str:
        others = [name for name in self._kinds if name != self._default]
        choice = f" Its `profile` is {self._default}, or one of: {', '.join(others)}." if others else ""
        lines = [
            f"- {name}: {to_one_line(kind.description, _MAX_DESCRIPTION_CHARS)}"
            for name, kind in self._kinds.items()
            if kind.description
        ]
        text = (
            "Work with many steps and a short result (find, compare, review, try) is for `delegate`: only the result "
            "takes room here. Adjacent calls of one message run side by side."
        )
        if self.workspace.mode != "read-only":
            text += (
                " Each that may write works in a copy of this folder, and its changes are taken over at its end "
                "(without git they run in order): give them different parts to write."
            )
        return "\n".join([text + choice, *lines])

    @override
    def tools(self) -> tuple[Tool, ...]:
        """Name the kinds of helpers in the tool's description, where models look for them."""
        offered = super().tools()
        if len(self._kinds) == 1:
            return tuple(tool.without("profile") for tool in offered)
        names = [self._default, *(name for name in self._kinds if name != self._default)]
        helpers = f" Helpers, by `profile`: {', '.join(names)}."
        return tuple(
            replace(tool, spec=replace(tool.spec, description=tool.spec.description + helpers)) for tool in offered
        )

    @override
    async def on_turn_start(self) -> None:
        for problem in self._problems:
            self._log_once(problem)
        if self._has_looked:
            return
        self._has_looked = True
        left = list_left_worktrees(self.workspace.root)
        if left:
            names = list_some([top.name for top in left])
            self._log_once(
                f"earlier delegates left their files in {WORKTREES_FOLDER}: {names}; take what you need, then remove "
                f"each: git worktree remove --force {WORKTREES_FOLDER}/{left[0].name}"
            )

    def _log_once(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            self.notifier.log(text)

    @override
    def running_tasks(self) -> Sequence[RunningTask]:
        return [task for name, run in [*self._runs.items()] for task in run.list_tasks(name)]

    @tool(
        parallel="same tool",
        time_limit_s=None,
        aliases=("task", "agent", "subagent", "spawn_agent"),
        kind="think",
        title="Delegate: {task}",
    )
    async def delegate(self, task: str, profile: str = "", read_only: bool = False) -> str:
        """Have a helper do a task in this folder. You read only its last answer.

        Args:
            task: all that it must know (it sees nothing of this conversation), and what to return
            profile: the kind of helper
            read_only: it can change no file
        """
        if not task.strip():
            raise ToolError("the task is empty; say what to do, and what to return")
        kind = self._find_kind(profile)
        chosen = self._narrow_profile(kind.profile, read_only)
        limits = self._compute_limits(chosen.limits)
        has_company = "read-only" not in (chosen.sandbox, self.workspace.mode) and self._count_writers() > 1
        call_id = current_call.get("")
        session = self.session.open_subagent_session(call_id)
        who = f"delegate {profile}" if kind.prompt else "a delegate"
        run = SubagentRun(self.notifier, call_id, who=who, purpose=_NAME, title=to_one_line(task, _MAX_TITLE_CHARS))
        name = f"d{next(self._numbers)}"
        self._runs[name] = run
        try:
            worktree = await self._create_worktree() if has_company else None
            slots = [self._writing, self._slots] if has_company and not worktree else [self._slots]
            work = run.follow(partial(self._run, task, chosen, kind, limits, session, run, worktree), slots)
            return await self._merge_after(worktree, work) if worktree else await work
        finally:
            del self._runs[name]
            session.close()

    async def _run(
        self,
        task: str,
        profile: Profile,
        kind: SubagentKind,
        limits: Limits,
        session: Session,
        relay: SubagentRun,
        worktree: SubagentWorktree | None,
    ) -> str:
        view = self.exchange_view
        is_same = profile.processor in (None, self.profile.processor)
        own = ModelPair(view.processor.model, view.accelerator.model)
        async with (
            open_kind_models(kind, own, self.profile, self._log_once) as models,
            build_exchange(
                profile,
                relay,
                session=session,
                project=self.project,
                parent_workspace=self.workspace,
                folder=worktree.root if worktree else None,
                limits=limits,
                models=models or (own if is_same else None),
                client=ClientPart("\n\n".join(filter(None, (kind.prompt, worktree.prompt if worktree else "")))),
            ) as exchange,
        ):
            relay.exchange = exchange
            end = await exchange.reply(Message.user(task))
        warnings = await self.workspace.inspect_changes()
        messages = [message for message in session.history.messages if message.role == "assistant"]
        last_text = next((message.text for message in reversed(messages) if message.text.strip()), "(it said nothing)")
        answer = end.answer or join_answers(messages) or last_text
        changed_files = [] if worktree else list_changed_files(list(session.read_events()))
        wrote = f"; wrote {list_some(changed_files)}" if changed_files else ""
        notes = [*warnings, end.detail, f"took {relay.format_usage()}{wrote}"]
        result = "\n".join([answer, *(f"[{note}]" for note in notes if note)])
        if end.reason != "stop":
            reason = end.reason.replace("_", " ")
            raise ToolError(
                f"the delegate did not finish ({reason}); its changes until then remain. Its last answer:\n{result}"
            )
        return result

    # --- side by side

    def _count_writers(self) -> int:
        """Count the open delegates of this message that may write."""
        history, count = self.session.history, 0
        for call in history.open_calls.values():
            if call.name == _NAME and history.is_open(call.id):
                arguments = call.parse_arguments()
                kind = self._kinds.get(str(arguments.get("profile") or self._default))
                is_reader = arguments.get("read_only") is True or (kind and kind.profile.sandbox == "read-only")
                count += not is_reader
        return count

    async def _create_worktree(self) -> SubagentWorktree | None:
        """Create a worktree of the folder as it is now; None where git cannot, or where each change is asked about."""
        if self.workspace.approval == "ask":
            return None
        worktree = SubagentWorktree(self.workspace)
        try:
            await complete(worktree.create(self._merging))
        except GooseLikeError:
            return None
        except asyncio.CancelledError:
            await worktree.merge(self._merging)  # there are no changes, so this removes it
            raise
        return worktree

    async def _merge_after(self, worktree: SubagentWorktree, work: Awaitable[str]) -> str:
        """Return the result of a delegate, and take over its changes however it ends."""
        failure: GooseLikeError | None = None
        try:
            result = await work
        except GooseLikeError as error:
            result, failure = str(error), error
        except BaseException:  # nobody reads a result
            await complete(worktree.merge(self._merging))
            for note in worktree.notes:
                self.notifier.log(note)
            raise
        await complete(worktree.merge(self._merging))
        notes = [*worktree.notes, *await self.workspace.inspect_changes()]
        notes += [f"taken over: {list_some(worktree.changed)}"] if worktree.changed else []
        result = "\n".join([result, *(f"[{note}]" for note in notes)])
        if failure:
            raise ToolError(result) from failure
        return result

    # --- no more permissions than the parent

    def _find_kind(self, name: str) -> SubagentKind:
        if name and name not in self._kinds:
            raise ToolError(f"no profile {name!r} to delegate to; {did_you_mean(name, self._kinds)}")
        return self._kinds[name or self._default]

    def _narrow_profile(self, profile: Profile, read_only: bool) -> Profile:
        """Remove permissions that the same toolkit does not have here; the workspace limits commands and files."""
        toolkits = tuple(choice for each in profile.toolkits if (choice := self._narrow_toolkit(each)))
        is_same = profile.sandbox == self.profile.sandbox  # then the user has answered if this machine has no sandbox
        sandbox = "read-only" if read_only else self.workspace.mode if is_same else profile.sandbox
        return profile.model_copy(update={"toolkits": toolkits, "sandbox": sandbox})

    def _narrow_toolkit(self, choice: ToolkitChoice) -> ToolkitChoice | None:
        config = choice.config
        if choice.name == _NAME:
            depth = min(_parse_config(config).depth, self._config.depth - 1)
            return choice.model_copy(update={"config": {**config, "depth": depth}}) if depth else None
        own_config = next((each.config for each in self.profile.toolkits if each.name == choice.name), {})
        refused = {key: False for key in _GRANTS if config.get(key) and not own_config.get(key)}
        return choice.model_copy(update={"config": {**config, **refused}})

    def _compute_limits(self, limits: Limits) -> Limits:
        """Return the lowest of each limit: of the profile, of our config, and of the rest of this turn.

        Delegates of one message share the rest of the turn.

        Raises:
            ToolError: nothing is left.
        """
        history, configured = self.session.history, self._config.limits
        open_calls = sum(call.name == _NAME and history.is_open(call.id) for call in history.open_calls.values())
        remaining = remaining_limits(self.limits, history, share_count=open_calls or 1)
        own = configured.model_dump(include=configured.model_fields_set - {"output_bytes"})
        return narrow_limits(limits, remaining, own)


def _parse_config(config: Mapping[str, Any]) -> DelegateConfig:
    try:
        return DelegateConfig.model_validate(config)
    except ValidationError as error:
        detail = error.errors()[0]
        if detail["type"] == "extra_forbidden":
            key, known = str(detail["loc"][-1]), DelegateConfig if len(detail["loc"]) == 1 else Limits
            text = f"toolkit 'delegate' has no {key!r}; {did_you_mean(key, known.model_fields)}"
        else:
            text = f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}, not {detail['input']!r}"
        raise ProfileError(text, ("config", *detail["loc"])) from error


def _load_profile(name: str, index: int) -> Profile:
    try:
        return load_profile(name)[0]
    except ProfileError as error:
        error.path = ("config", "profiles", index)
        raise
