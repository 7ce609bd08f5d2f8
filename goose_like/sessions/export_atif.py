"""Export of a session as a trajectory: ATIF, the Agent Trajectory Interchange Format of harbor, version 1.8.

A step is what one side said: the system, the person or the model. The results of tools belong to the model's step.
"""

import json
from typing import Any

from goose_like import __version__
from goose_like.core.events import (
    Compacted,
    DurableEvent,
    Interjected,
    MessageCompleted,
    PromptChanged,
    PromptRecorded,
    Reminded,
    Rewound,
    SessionStarted,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from goose_like.core.message import Image, Message, Thinking, ToolResult, ToolSpec, Usage
from goose_like.providers.prices import compute_cost_usd

from .index import SUBAGENTS_FOLDER, SessionInfo, iterate_sessions
from .session import make_file_name
from .transcript import Transcript

_VERSION = "ATIF-v1.8"

Fields = dict[str, Any]


def export_atif(transcript: Transcript) -> str:
    """Render the trajectory as JSON, with those of subagents in it."""
    return json.dumps(_build_trajectory(transcript), ensure_ascii=False, indent=2) + "\n"


def _build_trajectory(transcript: Transcript) -> Fields:
    info = transcript.info
    steps = _StepBuilder(info)
    for event, at in zip(transcript.events, transcript.times, strict=True):
        steps.at = at
        steps.add_event(event)
    subagents = []
    for child in iterate_sessions(info.folder / SUBAGENTS_FOLDER):
        subagents.append(_build_trajectory(Transcript.read(child)))
        steps.refer_to(child.folder.name)
    total = transcript.history.usage.total
    agent = {
        "name": "goose-like",
        "version": __version__,
        "model_name": steps.first_model,
        "tool_definitions": list(map(_describe_tool, steps.tools.values())),
    }
    trajectory = {
        "schema_version": _VERSION,
        "session_id": info.name,
        "trajectory_id": info.folder.name,
        "agent": _drop_empty(agent),
        "steps": steps.steps,
        "final_metrics": {
            **_describe_usage(total, compute_cost_usd(transcript.usage), "total_"),
            "total_steps": len(steps.steps),
        },
        "subagent_trajectories": subagents,
    }
    return _drop_empty(trajectory)


class _StepBuilder:
    """The steps of a session so far, and what the steps after them need. `at` is the time of the next event."""

    def __init__(self, info: SessionInfo) -> None:
        self.steps: list[Fields] = []
        self.tools: dict[str, ToolSpec] = {}
        self.first_model = ""
        self.at = ""
        self._info = info
        self._model = ""
        self._results: dict[str, Fields] = {}
        """The newest result of each call, by the name of the call's files."""
        self._callers: dict[str, Fields] = {}
        """The newest step with each call."""

    def add_event(self, event: DurableEvent) -> None:
        """Add the step that an event makes, if it makes one. Events for people only make none."""
        match event:
            case SessionStarted(models=models):
                self._model = models.get("processor", "")
                self.first_model = self.first_model or self._model
            case PromptRecorded(system=system, tools=tools):
                self._add_tools(tools)
                self._add("system", system)
            case PromptChanged(text=text, tools=tools, changed_tools=changed_tools):
                self._add_tools(tools + changed_tools)
                if text:
                    self._add("system", text)
            case TurnStarted(message=message) | Interjected(message=message):
                self._add("user", self._render_content(message.text, message.images))
            case MessageCompleted():
                self._add_answer(event)
            case ToolFinished(result=result):
                self._add_result(result)
            case _:
                self._add_note(event)

    def _add_note(self, event: DurableEvent) -> None:
        """Add the step of an event that no side of the conversation makes, if the model or a reader needs it."""
        match event:
            case Reminded(text=text):
                self._add("system", text)
            case Compacted(summary=summary, kept_count=count) if summary:
                extra = {"replaced": "all messages before", "kept_messages": count}
                self._add("system", summary, extra=extra)
            case Rewound(message_count=count):
                self._add("system", f"The conversation went back to its first {count} messages.")
            case TurnFinished(reason=reason, detail=detail) if reason != "stop":
                words = reason.replace("_", " ")
                self._add("system", f"The turn ended: {words}. {detail}".strip())

    def refer_to(self, folder: str) -> None:
        """Add to the result of a call that a subagent worked for it, in the folder of this name."""
        if folder in self._results:
            self._results[folder]["subagent_trajectory_ref"] = [{"trajectory_id": folder}]

    def _add(self, source: str, message: str | list[Fields], **more: Any) -> Fields:
        head: Fields = {"step_id": len(self.steps) + 1, "timestamp": self.at, "source": source}
        step = {**_drop_empty(head), "message": message, **_drop_empty(more)}
        self.steps.append(step)
        return step

    def _add_tools(self, tools: tuple[ToolSpec, ...]) -> None:
        for tool in tools:
            self.tools[tool.name] = tool

    def _add_answer(self, event: MessageCompleted) -> None:
        message = event.message
        model = event.model or self._model
        usage = event.usage
        metrics = {}
        if usage.total_tokens:
            metrics = _describe_usage(usage, compute_cost_usd({model: usage}))
        step = self._add(
            "agent",
            message.text,
            model_name=model,
            reasoning_content=_join_thinking(message),
            tool_calls=_describe_calls(message),
            metrics=metrics,
            llm_call_count=1,
            extra={"is_cut": True} if event.is_cut else {},
        )
        for call in message.tool_calls:
            self._callers[call.id] = step

    def _add_result(self, result: ToolResult) -> None:
        """Add a result to the step of its call. In a damaged file the call may be missing."""
        step = self._callers.get(result.call_id)
        if step is None:
            return
        described = {
            "source_call_id": result.call_id,
            "content": self._render_content(result.output, result.images),
            "extra": {"is_error": True} if result.is_error else {},
        }
        shown = _drop_empty(described)
        self._results[make_file_name(result.call_id)] = shown
        observation = step.setdefault("observation", {"results": []})
        observation["results"].append(shown)

    def _render_content(self, text: str, images: tuple[Image, ...]) -> str | list[Fields]:
        """Return the text, or parts if there are images. The format knows no documents."""
        if not images:
            return text
        parts: list[Fields] = [{"type": "text", "text": text}]
        for image in images:
            if image.is_document:
                parts.append({"type": "text", "text": f"[{image.kind} {image.source}]"})
                continue
            path = self._info.folder / "outputs" / image.name
            source = {"media_type": image.media_type, "path": str(path)}
            parts.append({"type": "image", "source": source})
        return parts


def _join_thinking(message: Message) -> str:
    texts = []
    for part in message.parts:
        if isinstance(part, Thinking) and part.text:
            texts.append(part.text)
    return "\n\n".join(texts)


def _describe_calls(message: Message) -> list[Fields]:
    calls = []
    for call in message.tool_calls:
        arguments = call.parse_arguments()
        calls.append({"tool_call_id": call.id, "function_name": call.name, "arguments": arguments})
    return calls


def _describe_tool(tool: ToolSpec) -> Fields:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _describe_usage(usage: Usage, cost_usd: float | None, prefix: str = "") -> Fields:
    """Return the tokens and the cost, which is left out if a price is unknown."""
    metrics: Fields = {
        f"{prefix}prompt_tokens": usage.input_tokens,
        f"{prefix}completion_tokens": usage.output_tokens,
        f"{prefix}cached_tokens": usage.cache_read_tokens,
    }
    if cost_usd is not None:
        metrics[f"{prefix}cost_usd"] = cost_usd
    return metrics


def _drop_empty(fields: Fields) -> Fields:
    """Return the fields that say something. An empty list or text says nothing, a zero does."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}
