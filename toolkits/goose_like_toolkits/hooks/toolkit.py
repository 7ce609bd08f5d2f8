"""The toolkit `hooks`: it turns each hook point into an event, and replies into verdicts."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from goose_like.config.bundles import list_roots
from goose_like.config.trust import ProjectConfig
from goose_like.terminal.escape import escape_invisible
from goose_like.toolkit import (
    AfterCall,
    BeforeCall,
    CallVerdict,
    CompactionEnd,
    CompactionStart,
    FollowUp,
    Notification,
    Notifier,
    PermissionAsked,
    PermissionDenied,
    PermissionVerdict,
    PromptSubmitted,
    PromptVerdict,
    Requirements,
    ResultChange,
    SessionStart,
    SubagentStart,
    SubagentStop,
    Toolkit,
)

from .settings import Handler
from .sources import read_bundle_hooks, read_copied_hooks, read_profile_hooks, read_project_hooks

if TYPE_CHECKING:
    from .engine import HookEngine, Result, Run
    from .events import HookInput

_MAX_DESCRIBED = 20
"""How many hooks the question about trust names. The answer `t` shows all."""

_MAX_STOPS = 8
"""How often hooks may keep the model from finishing a turn."""

_NOTIFICATIONS = {"question": "permission_prompt", "turn_finished": "idle_prompt"}


class HooksToolkit(Toolkit):
    """Runs the hooks of the profile, of trusted project files, of bundles, and of files that the person took over.

    A start imports what runs hooks only if one of its events has any.
    """

    @classmethod
    @override
    def is_present(cls, folder: Path, project: ProjectConfig | None) -> bool:
        found = read_project_hooks(project) + read_copied_hooks() + read_bundle_hooks()
        return bool(found.handlers or found.problems)

    @classmethod
    @override
    def describe_files(cls, project: ProjectConfig) -> Sequence[str]:
        handlers = read_project_hooks(project).handlers
        lines = [describe_hook(handler) for handler in handlers[:_MAX_DESCRIBED]]
        more_count = len(handlers) - len(lines)
        if more_count:
            lines.append(f"{more_count:,} more hooks")
        return lines

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        found = read_profile_hooks(self.config) + read_copied_hooks() + read_bundle_hooks()
        found += read_project_hooks(self.project)
        self.workspace.open_folders(list_roots())
        self._problems = found.problems
        self._handlers = found.handlers
        self._events = frozenset(handler.event for handler in found.handlers)
        self._stop_reason: str | None = None
        self._stop_count = 0

    @cached_property
    def _engine(self) -> "HookEngine":
        from .engine import HookEngine

        return HookEngine(self._handlers, self.workspace, self.notifier)

    @cached_property
    def _input(self) -> "HookInput":
        from .events import HookInput

        return HookInput(self._engine, self.workspace, self.session, self.profile)

    @override
    async def close(self) -> None:
        if "_engine" in vars(self):
            await self._engine.close()

    async def _run(self, event: str, name: str = "", **fields: Any) -> "list[Result]":
        """Run the hooks of an event that is no tool call."""
        if event not in self._events:
            return []
        return await self._engine.run(self._input.make_runs(event, name, fields))

    def _find_tool_runs(
        self,
        event: str,
        tool: str,
        arguments: Mapping[str, Any],
        fields: Mapping[str, Any],
        output: str | None = None,
    ) -> "list[Run]":
        """Find the runs of the hooks that a tool call concerns."""
        if event not in self._events:
            return []
        return self._input.make_tool_runs(event, tool, arguments, fields, output=output)

    def _log_reasons(self, results: "Sequence[Result]") -> None:
        """Log the reasons of hooks that block where nothing can be blocked."""
        for result in results:
            if result.reply.decision == "deny":
                self.notifier.log(f"{result.label}: {result.reply.reason}")

    def _note_stop(self, results: "Sequence[Result]") -> str | None:
        """Keep a hook's wish to end the turn, and return its reason."""
        for result in results:
            if result.reply.stop is not None:
                self._stop_reason = result.reply.stop
                self.notifier.log(f"{result.label} ends the turn: {result.reply.stop}")
                return result.reply.stop
        return None

    # --- the session and its messages

    @override
    async def on_session_start(self, start: SessionStart) -> str | None:
        for problem in self._problems:
            self.notifier.log(problem)
        source = "resume" if start.is_resumed else "startup"
        results = await self._run("SessionStart", source, source=source)
        self._log_reasons(results)
        return _join_contexts(results)

    @override
    async def on_session_end(self) -> None:
        self._log_reasons(await self._run("SessionEnd", "other", reason="other"))

    @override
    async def on_prompt_submitted(self, prompt: PromptSubmitted) -> PromptVerdict | None:
        self._stop_reason = None
        self._stop_count = 0
        results = await self._run("UserPromptSubmit", prompt=prompt.text)
        stop = self._note_stop(results)
        if stop is not None:
            return PromptVerdict("block", stop)
        blocking = _find_deciding(results, "deny")
        if blocking:
            return PromptVerdict("block", _join_reasons(blocking))
        context = _join_contexts(results)
        return PromptVerdict(context=context)

    @override
    async def before_finish(self) -> FollowUp | None:
        if self._stop_reason is not None or "Stop" not in self._events:
            return None
        messages = self.session.history.messages
        answer = ""
        if messages and messages[-1].role == "assistant":
            answer = messages[-1].text
        results = await self._run("Stop", stop_hook_active=self._stop_count > 0, last_assistant_message=answer)
        if self._note_stop(results) is not None:
            return None
        blocking = _find_deciding(results, "deny")
        if not blocking:
            return None
        self._stop_count += 1
        if self._stop_count > _MAX_STOPS:
            self.notifier.log(f"the turn ends although a hook objects: it did so {_MAX_STOPS} times")
            return None
        return FollowUp(_join_reasons(blocking), is_repeated=True)

    @override
    async def on_notification(self, notification: Notification) -> None:
        kind = _NOTIFICATIONS[notification.kind]
        results = await self._run("Notification", kind, message=notification.text, notification_type=kind)
        self._log_reasons(results)

    # --- tool calls

    @override
    async def before_call(self, call: BeforeCall) -> CallVerdict | None:
        if self._stop_reason is not None:
            return CallVerdict("deny", f"a hook ended this turn: {self._stop_reason}; answer now, without calls")
        fields = {"tool_use_id": call.call_id}
        runs = self._find_tool_runs("PreToolUse", call.tool, call.arguments, fields)
        if not runs:
            return None
        results = await self._engine.run(runs)
        updating = [result for result in results if result.reply.updated is not None]
        arguments: Mapping[str, Any] | None = None
        if updating and not _find_deciding(results, "deny"):
            from .foreign import UntranslatableError

            try:
                arguments = self._restore(call, updating)
            except UntranslatableError as error:
                return CallVerdict("ask", f"a hook wants other arguments, which can't be used: {error}")
            results = [*results, *await self._check_again(call, arguments, updating)]
        return self._make_verdict(results, arguments)

    def _restore(self, call: BeforeCall, updating: "Sequence[Result]") -> Mapping[str, Any]:
        """Return the arguments after the changes of all hooks. Where two change the same one, the last wins."""
        from .foreign import restore_arguments

        arguments = call.arguments
        for result in updating:
            updated = result.reply.updated or {}
            form = result.run.handler.source.format
            arguments = restore_arguments(form, call.tool, arguments, result.run.part, updated, self.workspace.root)
        return arguments

    async def _check_again(
        self, call: BeforeCall, arguments: Mapping[str, Any], updating: "Sequence[Result]"
    ) -> "list[Result]":
        """Let the other hooks judge the changed arguments: a change must not lead around them.

        Where several hooks changed something, each judges the result. Further changes are ignored.
        """
        updaters = {result.run.handler for result in updating}
        if len(updaters) > 1:
            updaters = set()
        fields = {"tool_use_id": call.call_id}
        runs = self._input.make_tool_runs("PreToolUse", call.tool, arguments, fields, left_out=updaters)
        return await self._engine.run(runs)

    def _make_verdict(self, results: "Sequence[Result]", arguments: Mapping[str, Any] | None) -> CallVerdict:
        stop = self._note_stop(results)
        if stop is not None:
            return CallVerdict("deny", stop)
        context = _join_contexts(results)
        denying = _find_deciding(results, "deny")
        if denying:
            return CallVerdict("deny", _join_reasons(denying))
        asking = _find_deciding(results, "ask")
        if asking:
            return CallVerdict("ask", _join_reasons(asking), arguments, context)
        return CallVerdict("pass", "", arguments, context)

    @override
    async def after_call(self, call: AfterCall) -> ResultChange | None:
        event = "PostToolUse"
        fields: dict[str, Any] = {"tool_use_id": call.call_id}
        output: str | None = call.output
        if call.is_error:
            event = "PostToolUseFailure"
            fields |= {"error": call.output, "is_interrupt": False}
            output = None
        runs = self._find_tool_runs(event, call.tool, call.arguments, fields, output)
        if not runs:
            return None
        results = await self._engine.run(runs)
        self._note_stop(results)
        texts = [*_list_reasons(_find_deciding(results, "deny")), _join_contexts(results)]
        context = "\n".join(filter(None, texts))
        replaced = None
        for result in results:
            if result.reply.output is not None:
                replaced = result.reply.output
        return ResultChange(replaced, context)

    @override
    async def on_permission_asked(self, permission: PermissionAsked) -> PermissionVerdict | None:
        question = permission.question
        call = permission.call
        tool = call.name if call else question.kind
        arguments = call.parse_arguments() if call else {"subject": question.subject}
        fields = {"permission_kind": question.kind, "permission_subject": question.subject}
        runs = self._find_tool_runs("PermissionRequest", tool, arguments, fields)
        if not runs:
            return None
        results = await self._engine.run(runs)
        stop = self._note_stop(results)
        denying = _find_deciding(results, "deny")
        if denying or stop is not None:
            return PermissionVerdict("deny", stop or _join_reasons(denying))
        return None

    @override
    async def on_permission_denied(self, denial: PermissionDenied) -> None:
        fields = {"tool_use_id": denial.call_id, "reason": denial.text}
        runs = self._find_tool_runs("PermissionDenied", denial.tool, denial.arguments, fields)
        if runs:
            self._log_reasons(await self._engine.run(runs))

    # --- compaction and subagents

    @override
    async def before_compaction(self, compaction: CompactionStart) -> str | None:
        trigger = "manual" if compaction.is_requested else "auto"
        results = await self._run("PreCompact", trigger, trigger=trigger, custom_instructions=compaction.focus)
        self._log_reasons(results)
        return _join_contexts(results)

    @override
    async def after_compaction(self, compaction: CompactionEnd) -> None:
        self._log_reasons(await self._run("PostCompact", "auto", trigger="auto", compact_summary=compaction.summary))

    @override
    async def on_subagent_start(self, subagent: SubagentStart) -> str | None:
        fields = {"agent_id": subagent.call_id, "agent_type": subagent.name}
        results = await self._run("SubagentStart", subagent.name, **fields)
        self._log_reasons(results)
        return _join_contexts(results)

    @override
    async def on_subagent_stop(self, subagent: SubagentStop) -> None:
        fields = {"agent_id": subagent.call_id, "agent_type": subagent.name, "stop_hook_active": False}
        results = await self._run("SubagentStop", subagent.name, **fields, last_assistant_message=subagent.answer)
        self._log_reasons(results)


def describe_hook(handler: Handler) -> str:
    """Describe a hook of a project or a bundle for the person who decides about it."""
    event = handler.event
    if handler.matcher:
        event = f"{event} ({handler.matcher})"
    return escape_invisible(f"hook {event}: {handler.line}")


def _find_deciding(results: "Sequence[Result]", decision: str) -> "list[Result]":
    return [result for result in results if result.reply.decision == decision]


def _list_reasons(results: "Sequence[Result]") -> list[str]:
    reasons: list[str] = []
    for result in results:
        reason = result.reply.reason or f"the {result.label} gives no reason"
        if reason not in reasons:
            reasons.append(reason)
    return reasons


def _join_reasons(results: "Sequence[Result]") -> str:
    return "; ".join(_list_reasons(results))


def _join_contexts(results: "Sequence[Result]") -> str:
    texts = dict.fromkeys(result.reply.context for result in results if result.reply.context)
    return "\n".join(texts)
