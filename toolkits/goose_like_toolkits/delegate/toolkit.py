"""The class of the toolkit `delegate`: it runs a subagent and returns the last answer."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, ClassVar

from typing_extensions import override

from goose_like.agent.budget import narrow_limits
from goose_like.agent.build import ClientPart, build_exchange
from goose_like.config.paths import WORKTREES_FOLDER
from goose_like.config.profile import Limits, Profile, ToolkitChoice
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import load_trusted_project
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import GooseLikeError, ProfileError
from goose_like.core.events import TurnFinished
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, join_answers
from goose_like.core.spelling import did_you_mean
from goose_like.core.threads import run_in_thread
from goose_like.core.tool import Tool, current_call
from goose_like.providers.base import ModelPair
from goose_like.sessions.session import Session
from goose_like.terminal.escape import to_one_line
from goose_like.toolkit import Notifier, Requirements, RunningTask, ToolError, Toolkit, tool

from .config import SubRecipeConfig, parse_config
from .kinds import SubagentKind, load_kinds, open_kind_models
from .run import SubagentRun
from .worktree import SubagentWorktree, complete, list_left_worktrees, list_some

_NAME = "delegate"
_MAX_TITLE_CHARS = 100
_MAX_DESCRIPTION_CHARS = 300
_GRANTS = ("private_addresses",)
"""Permissions in a toolkit's config that the workspace does not control."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A subagent to run: its task, everything that limits it, and the worktree in which it writes beside others."""

    task: str
    kind: SubagentKind
    profile: Profile
    limits: Limits
    session: Session
    run: SubagentRun
    worktree: SubagentWorktree | None = None


class DelegateToolkit(Toolkit):
    """Subagents that know nothing but their task, and that have no more permissions than their parent."""

    is_confined: ClassVar[bool] = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._config = parse_config(self.config)
        # Profiles are loaded now, so that later changes of their files have no effect on this session.
        kinds = {}
        for index, name in enumerate(self._config.profiles):
            kinds[name] = SubagentKind(_load_profile(name, index))
        if not kinds:
            kinds[self.profile.name] = SubagentKind(self.profile)
        project = self.project or load_trusted_project(self.workspace.root)
        agents, self._problems = load_kinds(project, self.profile)
        self._kinds = {**agents, **kinds}
        self._default = next(iter(kinds))
        self._runs: dict[str, SubagentRun] = {}
        self._numbers = count(1)
        self._logged: set[str] = set()
        self._has_looked = False
        self._slots = asyncio.Semaphore(self._config.parallel)
        self._writing = asyncio.Semaphore()
        self._merging = asyncio.Lock()

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
        text = (
            "Work with many steps and a short result (find, compare, review, try) is for `delegate`: only the result "
            "takes room here. Adjacent calls of one message run side by side."
        )
        if self.workspace.mode != "read-only":
            text += (
                " Each that may write works in a copy of this folder, and its changes are taken over at its end "
                "(without git they run in order): give them different parts to write."
            )
        others = self._list_other_kinds()
        if others:
            text += f" Its `profile` is {self._default}, or one of: {', '.join(others)}."
        lines = [text]
        for name, kind in self._kinds.items():
            if kind.description:
                description = to_one_line(kind.description, _MAX_DESCRIPTION_CHARS)
                lines.append(f"- {name}: {description}")
        return "\n".join(lines)

    @override
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of sub recipes, too."""
        if not self._config.recipes:
            return self._list_own_tools()
        from .recipes import make_recipe_tool  # imported here: few sessions run a recipe

        recipes = []
        for config in self._config.recipes:
            recipes.append(make_recipe_tool(config, partial(self._run_recipe, config)))
        return (*self._list_own_tools(), *recipes)

    def _list_own_tools(self) -> tuple[Tool, ...]:
        """Name the kinds of helpers in the tool's description, where models look for them."""
        offered = super().tools()
        if len(self._kinds) == 1:
            return tuple(tool.without("profile") for tool in offered)
        names = [self._default, *self._list_other_kinds()]
        helpers = f" Helpers, by `profile`: {', '.join(names)}."
        tools = []
        for each in offered:
            spec = replace(each.spec, description=each.spec.description + helpers)
            tools.append(replace(each, spec=spec))
        return tuple(tools)

    def _list_other_kinds(self) -> list[str]:
        return [name for name in self._kinds if name != self._default]

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
        tasks = []
        for name, run in list(self._runs.items()):
            tasks += run.list_tasks(name)
        return tasks

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
        who = f"delegate {profile}" if kind.prompt else "a delegate"
        return await self._work_on(task, kind, who, read_only=read_only)

    async def _run_recipe(self, config: SubRecipeConfig, arguments: Mapping[str, Any]) -> str:
        """Have a helper run a sub recipe, and return its last answer."""
        from .recipes import fill_sub_recipe, make_recipe_kind

        filled = await run_in_thread(fill_sub_recipe, config, arguments, self.workspace)
        kind = make_recipe_kind(filled, self.profile, config.without)
        return await self._work_on(filled.message, kind, f"recipe {config.name}", read_only=False)

    async def _work_on(self, task: str, kind: SubagentKind, who: str, *, read_only: bool) -> str:
        """Have a helper of a kind do a task, and return its last answer."""
        narrowed = self._narrow_profile(kind.profile, read_only)
        self.budget.check_rest()
        limits = self._compute_limits(narrowed.limits)
        may_write = "read-only" not in (narrowed.sandbox, self.workspace.mode)
        has_company = may_write and self._count_writers() > 1
        call_id = current_call.get("")
        session = self.session.open_subagent_session(call_id)
        title = to_one_line(task, _MAX_TITLE_CHARS)
        run = SubagentRun(self.notifier, call_id, who=who, purpose=_NAME, title=title)
        name = f"d{next(self._numbers)}"
        self._runs[name] = run
        job = _Job(task, kind, narrowed, limits, session, run)
        try:
            if has_company:
                return await self._work_beside_others(job)
            return await self._follow(job, [self._slots])
        finally:
            del self._runs[name]
            session.close()

    async def _follow(self, job: _Job, slots: Sequence[asyncio.Semaphore]) -> str:
        return await job.run.follow(partial(self._run, job), slots)

    async def _run(self, job: _Job) -> str:
        """Run a subagent to its end, and return its answer with notes.

        Raises:
            ToolError: the subagent did not finish.
        """
        end = await self._reply(job)
        notes = await self.workspace.inspect_changes()
        if end.detail:
            notes.append(end.detail)
        notes.append(f"took {_describe_work(job)}")
        answer = end.answer or _find_answer(job.session.history)
        result = _append_notes(answer, notes)
        if end.reason == "stop":
            return result
        reason = end.reason.replace("_", " ")
        raise ToolError(
            f"the delegate did not finish ({reason}); its changes until then remain. Its last answer:\n{result}"
        )

    async def _reply(self, job: _Job) -> TurnFinished:
        """Build the subagent's exchange, and have it work on the task."""
        view = self.exchange_view
        own_models = ModelPair(view.processor.model, view.accelerator.model)
        shared_models = None  # the profile of the delegate has models of its own
        if job.profile.processor in (None, self.profile.processor):
            shared_models = own_models
        prompts = [job.kind.prompt]
        folder = None
        if job.worktree:
            prompts.append(job.worktree.prompt)
            folder = job.worktree.root
        async with (
            open_kind_models(job.kind, own_models, self.profile, self._log_once) as kind_models,
            build_exchange(
                job.profile,
                job.run,
                session=job.session,
                project=self.project,
                parent_workspace=self.workspace,
                folder=folder,
                limits=job.limits,
                parent_budget=self.budget,
                models=kind_models or shared_models,
                client=ClientPart("\n\n".join(filter(None, prompts))),
            ) as exchange,
        ):
            job.run.exchange = exchange
            answering = replace(exchange, answer_schema=job.kind.answer_schema)
            return await answering.reply(Message.user(job.task))

    # --- side by side

    def _list_open_calls(self) -> list[ToolCall]:
        """List the open delegates of this message."""
        history = self.session.history
        names = {_NAME, *(config.tool_name for config in self._config.recipes)}
        return [call for call in history.open_calls.values() if call.name in names and history.is_open(call.id)]

    def _count_writers(self) -> int:
        """Count the open delegates of this message that may write."""
        count = 0
        for call in self._list_open_calls():
            if call.name != _NAME:  # a recipe
                count += 1
                continue
            arguments = call.parse_arguments()
            kind = self._kinds.get(str(arguments.get("profile") or self._default))
            is_reader = kind is not None and kind.profile.sandbox == "read-only"
            if not is_reader and arguments.get("read_only") is not True:
                count += 1
        return count

    async def _work_beside_others(self, job: _Job) -> str:
        """Work in a worktree. Where there can be none, wait until no other delegate writes."""
        worktree = await self._create_worktree()
        if worktree is None:
            return await self._follow(job, [self._writing, self._slots])
        work = self._follow(replace(job, worktree=worktree), [self._slots])
        return await self._merge_after(worktree, work)

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
            failure = error
            result = str(error)
        except BaseException:  # nobody reads a result
            await complete(worktree.merge(self._merging))
            for note in worktree.notes:
                self.notifier.log(note)
            raise
        await complete(worktree.merge(self._merging))
        notes = [*worktree.notes, *await self.workspace.inspect_changes()]
        if worktree.changed:
            notes.append(f"taken over: {list_some(worktree.changed)}")
        result = _append_notes(result, notes)
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
        toolkits = tuple(filter(None, map(self._narrow_toolkit, profile.toolkits)))
        sandbox = profile.sandbox
        if read_only:
            sandbox = "read-only"
        elif profile.sandbox == self.profile.sandbox:
            # The user has answered already if this machine has no sandbox.
            sandbox = self.workspace.mode
        return profile.model_copy(update={"toolkits": toolkits, "sandbox": sandbox})

    def _narrow_toolkit(self, choice: ToolkitChoice) -> ToolkitChoice | None:
        """Return the toolkit as a delegate may have it. Return None for `delegate` at the last depth."""
        changes: dict[str, Any] = {}
        if choice.name == _NAME:
            depth = min(parse_config(choice.config).depth, self._config.depth - 1)
            if not depth:
                return None
            changes["depth"] = depth
            changes["recipes"] = ()
        else:
            own_config = self._find_config(choice.name)
            for key in _GRANTS:
                if choice.config.get(key) and not own_config.get(key):
                    changes[key] = False
        return choice.model_copy(update={"config": {**choice.config, **changes}})

    def _find_config(self, name: str) -> Mapping[str, Any]:
        """Return the config of a toolkit in our own profile; empty if the profile has no such toolkit."""
        for choice in self.profile.toolkits:
            if choice.name == name:
                return choice.config
        return {}

    def _compute_limits(self, limits: Limits) -> Limits:
        """Return the lower one of each limit of the profile and of our config."""
        configured = self._config.limits
        own = configured.model_dump(include=configured.model_fields_set - {"output_bytes"})
        return narrow_limits(limits, own)


def _describe_work(job: _Job) -> str:
    """Describe the steps and tokens of a subagent, and the files that it wrote here."""
    text = job.run.format_usage()
    if job.worktree:  # its files are taken over later
        return text
    from goose_like.sessions.transcript import list_changed_files  # imported here: few sessions delegate

    changed_files = list_changed_files(list(job.session.read_events()))
    if changed_files:
        text += f"; wrote {list_some(changed_files)}"
    return text


def _find_answer(history: History) -> str:
    """Return what a subagent said last, if its turn has no answer."""
    messages = [message for message in history.messages if message.role == "assistant"]
    answer = join_answers(messages)
    if answer:
        return answer
    for message in reversed(messages):
        if message.text.strip():
            return message.text
    return "(it said nothing)"


def _append_notes(text: str, notes: Sequence[str]) -> str:
    lines = [text]
    for note in notes:
        lines.append(f"[{note}]")
    return "\n".join(lines)


def _load_profile(name: str, index: int) -> Profile:
    try:
        profile, _ = load_profile(name)
    except ProfileError as error:
        error.path = ("config", "profiles", index)
        raise
    return profile
