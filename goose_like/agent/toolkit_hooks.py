"""The hooks of toolkits, and the boundary that turns errors of foreign code into one sentence."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from goose_like.core.errors import GooseLikeError, PromptBlockedError, prefix_error_path
from goose_like.core.events import Answer, Event, Question
from goose_like.core.masking import mask_text
from goose_like.core.message import ToolCall
from goose_like.core.notifier import Notifier

from .call_hooks import CallHooks
from .hook_runner import Hook, HookRunner, describe_error, get_configs, list_hooks
from .hook_values import (
    CompactionEnd,
    CompactionStart,
    Notification,
    PermissionAsked,
    PermissionVerdict,
    PromptSubmitted,
    PromptVerdict,
    SessionStart,
    SubagentStart,
    SubagentStop,
)
from .slash_command import SlashCommand
from .toolkit import FollowUp, RunningTask, Toolkit

_END_LIMIT_S = 10.0
"""The time for hooks after the end of a session: a hook that hangs must not keep the process."""


@contextmanager
def toolkit_errors(name: str, *path: str | int) -> Iterator[None]:
    """Turn any error of a toolkit's code into one sentence with its name. `path` is its place in the profile."""
    try:
        with prefix_error_path(*path):
            yield
    except GooseLikeError:
        raise
    except Exception as error:
        reason = describe_error(name, error)
        raise GooseLikeError(
            f"toolkit {name!r} can't be used: {reason}; repair it or leave it out of the profile"
        ) from error


async def close_toolkit(name: str, toolkit: Toolkit, notifier: Notifier) -> None:
    """Close a toolkit. A second Ctrl-C does not interrupt this, and a failure is only logged."""
    closing = asyncio.ensure_future(toolkit.close())
    try:
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await closing
            raise
    except Exception as error:
        notifier.log(f"toolkit {name!r} failed to close: {type(error).__name__}: {error}")


class ToolkitHooks:
    """The hooks of all toolkits of an exchange, by name. A hook that fails is logged once and not called again.

    In a subagent, `parent` has the hooks of its parent. Those about calls and subagents hold here too. Questions reach
    the parent's hooks when they are passed on. A subagent has no hooks about a session, prompts and notifications.
    """

    def __init__(
        self,
        notifier: Notifier,
        toolkits: Mapping[str, Toolkit] = {},
        *,
        parent: "ToolkitHooks | None" = None,
        subagent: str = "",
        is_resumed: bool = False,
    ) -> None:
        self._toolkits = toolkits
        self._parent = parent
        self._configs = get_configs(toolkits)
        self._notifier = notifier
        self._runner = HookRunner(notifier)
        self._is_resumed = is_resumed
        self._is_started = False
        self._context: list[str] = []
        self._objected: set[str] = set()
        self._notifications: set[asyncio.Task[None]] = set()

        calls = None
        starts: Sequence[Hook] = ()
        stops: Sequence[Hook] = ()
        if parent:
            calls = parent.calls
            starts = parent._subagent_starts
            stops = parent._subagent_stops
        self.calls: CallHooks = CallHooks(self._runner, toolkits, calls, subagent)
        self._finishes = list_hooks(toolkits, "before_finish")
        self._states = list_hooks(toolkits, "state_sections")
        self._tasks = list_hooks(toolkits, "running_tasks")
        self._mentions = list_hooks(toolkits, "mention_choices")
        self._facts = list_hooks(toolkits, "context_updates")
        self._compaction_starts = list_hooks(toolkits, "before_compaction")
        self._compaction_ends = list_hooks(toolkits, "after_compaction")
        self._subagent_starts: list[Hook] = list_hooks(toolkits, "on_subagent_start", starts)
        self._subagent_stops: list[Hook] = list_hooks(toolkits, "on_subagent_stop", stops)
        of_person = {} if parent else toolkits
        self._session_starts = list_hooks(of_person, "on_session_start")
        self._session_ends = list_hooks(of_person, "on_session_end")
        self._prompts = list_hooks(of_person, "on_prompt_submitted")
        self._notified = list_hooks(of_person, "on_notification")
        self._listeners = list_hooks(of_person, "on_event")
        self._told: set[str] = set()
        judges = dict(toolkits)
        if parent:
            # The parent asks the same toolkit when it receives the question.
            judges = {name: toolkit for name, toolkit in toolkits.items() if not parent._has(name, toolkit)}
        self._permissions = list_hooks(judges, "on_permission_asked")

    @cached_property
    def _all_commands(self) -> list[SlashCommand]:
        """The slash commands of all toolkits. Few runs need them, and each of hundreds of skills has one."""
        commands: list[SlashCommand] = []
        for name, toolkit in self._toolkits.items():
            with toolkit_errors(name):
                commands += toolkit.commands()
        return commands

    @cached_property
    def commands(self) -> dict[str, SlashCommand]:
        """The slash commands by name, without those that give way to others."""
        return {command.name: command for command in self._all_commands if not command.gives_way}

    @cached_property
    def yielding_commands(self) -> list[SlashCommand]:
        """The slash commands that give way to others."""
        return [command for command in self._all_commands if command.gives_way]

    def _has(self, name: str, toolkit: Toolkit) -> bool:
        """Check whether a toolkit with this name and config is here or above."""
        config = get_configs({name: toolkit})[name]
        if self._configs.get(name) == config:
            return True
        return self._parent is not None and self._parent._has(name, toolkit)

    @property
    def toolkits(self) -> Mapping[str, Toolkit]:
        """The toolkits by name."""
        return self._toolkits

    def list_tools(self, names: Collection[str]) -> set[str]:
        """Return the names of the tools of some toolkits, and of those that only read."""
        tools: set[str] = set()
        for name, toolkit in self._toolkits.items():
            if name in names or toolkit.is_read_only:
                tools.update(tool.name for tool in toolkit.tools())
        return tools

    def list_missing_tools(self) -> dict[str, str]:
        """Return the tools that are left out because they need something, with what they need."""
        missing: dict[str, str] = {}
        for toolkit in self._toolkits.values():
            names = toolkit.tool_names()
            picked = toolkit.config.get("tools", names)
            needs: dict[str, str] = {}
            for name in names:
                need = getattr(toolkit, name).__tool__.needs
                if need and name in picked:
                    needs[name] = need
            if not needs:
                continue
            offered = {tool.name for tool in toolkit.tools()}
            missing |= {name: need for name, need in needs.items() if name not in offered}
        return missing

    # --- the session and its prompts

    async def start_session(self) -> None:
        """Tell the toolkits before the first message of this process. Their context waits for `take_context`."""
        if self._is_started:
            return
        self._is_started = True
        self._context += await self._runner.collect_texts(self._session_starts, SessionStart(self._is_resumed))

    async def submit(self, text: str, *, is_interjected: bool = False) -> None:
        """Ask the toolkits about a message of the person. Their context waits for `take_context`.

        Raises:
            PromptBlockedError: a toolkit blocks the message; the others are not asked.
        """
        await self.start_session()
        if not text.strip():  # results of calls have no text
            return
        prompt = PromptSubmitted(text, is_interjected)
        context: list[str] = []
        for hook in self._prompts:
            if hook.has_failed:
                continue
            verdict = None
            with self._runner.guard(hook):
                verdict = await hook.ask(prompt, PromptVerdict)
            if verdict and verdict.decision == "block":
                reason = verdict.reason or "it gives no reason"
                raise PromptBlockedError(f"the message was not sent: the toolkit {hook.toolkit!r} blocks it: {reason}")
            if verdict and verdict.context:
                context.append(verdict.context)
        self._context += context

    def add_context(self, texts: Collection[str]) -> None:
        """Keep context for the next message."""
        self._context += texts

    def take_context(self) -> list[str]:
        """Remove and return the context that waits for a message."""
        texts = self._context
        self._context = []
        return texts

    async def end_session(self) -> None:
        """Tell the toolkits that no turn follows, if there was one, and wait a while for them and for notifications."""
        tasks = set(self._notifications)
        if self._is_started and self._session_ends:
            tasks.add(asyncio.create_task(self._runner.tell(self._session_ends)))
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_END_LIMIT_S)
        if late:
            self._notifier.log(f"hooks were stopped that had not ended {_END_LIMIT_S:g} s after the session")
        for task in late:
            task.cancel()

    async def start_turn(self) -> None:
        """Let each toolkit prepare a turn.

        Raises:
            GooseLikeError: a toolkit failed; this ends the turn.
        """
        self._objected.clear()
        for name, toolkit in self._toolkits.items():
            with toolkit_errors(name):
                await toolkit.on_turn_start()

    async def find_follow_up(self, *, only_repeated: bool = False) -> str | None:
        """Return the first reason of a toolkit to continue the turn, when the model wants to finish."""
        for hook in self._finishes:
            if hook.has_failed or hook.toolkit in self._objected:
                continue
            with self._runner.guard(hook):
                follow_up = await hook.call()
                if not isinstance(follow_up, FollowUp):
                    follow_up = FollowUp(str(follow_up or ""))
                if not follow_up.text:
                    continue
                if follow_up.is_repeated:
                    return follow_up.text
                if not only_repeated:
                    self._objected.add(hook.toolkit)
                    return follow_up.text
        return None

    # --- the state

    def list_state_sections(self) -> list[tuple[str, str]]:
        """Return the state of all toolkits as titles and texts."""
        sections: list[tuple[str, str]] = []
        for hook in self._list_working(self._states):
            with self._runner.guard(hook):
                given = [(str(title), str(text)) for title, text in hook.function()]
                sections += given
        return sections

    def list_running_tasks(self) -> list[RunningTask]:
        """Return the running tasks of all toolkits."""
        tasks: list[RunningTask] = []
        for hook in self._list_working(self._tasks):
            with self._runner.guard(hook):
                tasks += hook.function()
        return tasks

    def list_mention_choices(self) -> list[tuple[str, str]]:
        """Return what all toolkits complete behind `@`."""
        choices: list[tuple[str, str]] = []
        for hook in self._list_working(self._mentions):
            with self._runner.guard(hook):
                choices += hook.function()
        return choices

    async def collect_facts(self) -> dict[str, str]:
        """Return the current facts of all toolkits by `toolkit.key`."""
        facts: dict[str, str] = {}
        for hook in self._list_working(self._facts):
            with self._runner.guard(hook):
                updates = await hook.call()
                given: dict[str, str] = {}
                for key, value in updates.items():
                    given[f"{hook.toolkit}.{key}"] = mask_text(str(value))
                facts |= given
        return facts

    # --- events, permissions and notifications

    def tell_event(self, event: Event) -> None:
        """Tell the toolkits an event of the journal. A toolkit is not told what it emits while it is told another."""
        for hook in self._list_working(self._listeners):
            if hook.toolkit in self._told:
                continue
            self._told.add(hook.toolkit)
            with self._runner.guard(hook):
                hook.function(event)
            self._told.discard(hook.toolkit)

    async def judge_question(self, question: Question, call: ToolCall | None) -> Answer | None:
        """Return the denial of a toolkit, or None if the person decides about a permission."""
        if question.kind in ("text", "trust"):
            return None
        for hook in self._permissions:
            try:
                verdict = await hook.ask(PermissionAsked(question, call), PermissionVerdict)
            except Exception as error:
                self._runner.report(hook, error, "so the person decides")
                continue
            if verdict and verdict.decision == "deny":
                reason = verdict.reason or "it gives no reason"
                text = f"the toolkit {hook.toolkit!r} denies it: {reason}"
                return Answer(choice="deny", by="profile", text=text)
        return None

    def notify(self, notification: Notification) -> None:
        """Tell the toolkits what the person is told. Nothing waits for them until the session ends."""
        if self._notified:
            task = asyncio.create_task(self._runner.tell(self._notified, notification))
            self._notifications.add(task)
            task.add_done_callback(self._notifications.discard)

    # --- compaction and subagents

    async def before_compaction(self, *, is_requested: bool = False, focus: str = "") -> str:
        """Return what a summary must keep, for all toolkits."""
        start = CompactionStart(is_requested, focus)
        texts = await self._runner.collect_texts(self._compaction_starts, start)
        return "\n".join(texts)

    async def after_compaction(self, summary: str) -> None:
        """Tell the toolkits that the conversation was shortened."""
        await self._runner.tell(self._compaction_ends, CompactionEnd(summary))

    async def start_subagent(self, subagent: SubagentStart) -> list[str]:
        """Tell the toolkits about a subagent, and return their context for it."""
        return await self._runner.collect_texts(self._subagent_starts, subagent)

    async def stop_subagent(self, subagent: SubagentStop) -> None:
        """Tell the toolkits that a subagent ended."""
        await self._runner.tell(self._subagent_stops, subagent)

    @staticmethod
    def _list_working(hooks: list[Hook]) -> list[Hook]:
        return [hook for hook in hooks if not hook.has_failed]
