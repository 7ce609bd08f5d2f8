"""The spans of an agent, made from the events of its session."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, StatusCode, set_span_in_context

from goose_like.core import events
from goose_like.core.message import Message, Text, Thinking, ToolCall, ToolResult, Usage

from .telemetry import Telemetry

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Our names of providers that have other names in the conventions."""

_FAILED_ENDS = ("step_limit", "budget", "cancelled", "error")

_BEFORE_REQUEST = (
    events.TurnStarted
    | events.ToolFinished
    | events.Reminded
    | events.Interjected
    | events.Compacted
    | events.PromptRecorded
    | events.PromptChanged
)
"""The events after which a request may follow at once."""


class AgentSpans:
    """Follows an agent: its turns, its requests to the model, its calls, and the subagents that these start.

    `has_content`: the spans hold messages, arguments and results, too. A subagent has the `conversation` of its parent.
    """

    def __init__(
        self, telemetry: Telemetry, name: str, parent: Context, *, has_content: bool, conversation: str = ""
    ) -> None:
        self._telemetry = telemetry
        self._name = name
        self._parent = parent
        self._has_content = has_content
        self._conversation = conversation
        self._model = ""
        self._turn: Span = INVALID_SPAN
        self._calls: dict[str, Span] = {}
        self._subagents: dict[str, AgentSpans] = {}
        self._spent = Usage()
        self._request_at_ns = 0
        self._first_chunk_at_ns = 0
        self._is_asking = False

    def record(self, event: events.Event) -> None:
        """Follow one event."""
        match event:
            case events.SessionStarted():
                self._start_session(event)
            case events.TurnStarted(message=message):
                self._start_turn()
                self._add_content(self._turn, "gen_ai.input.messages", [_describe_message(message)])
            case events.ToolStarted(call=call):
                self._start_call(call)
            case events.ToolFinished(result=result):
                self._finish_call(result)
            case events.SubagentEvent(call_id=call_id, event=inner):
                self._record_subagent(call_id, inner)
            case events.TurnFinished():
                self._finish_turn(event)
            case _:
                self._record_request(event)
        if isinstance(event, _BEFORE_REQUEST):
            self._request_at_ns = time.time_ns()

    def _record_request(self, event: events.Event) -> None:
        match event:
            case events.TextDelta() | events.ThinkingDelta():
                self._note_chunk()
            case events.Retrying():
                self._first_chunk_at_ns = 0
            case events.MessageCompleted():
                self._finish_request(event)
            case events.Interjected():  # a message of the person may have ended a request
                self._fail_request("cancelled")

    def start_request(self) -> None:
        """Note that a request to the model follows now."""
        self._request_at_ns = time.time_ns()
        self._first_chunk_at_ns = 0
        self._is_asking = True

    def count_side_question(self, spent: events.UsageRecorded) -> None:
        """Count the tokens of a request outside the conversation, such as a summary."""
        self._telemetry.metrics.count_tokens(spent.usage, self._describe("chat", spent.model))

    def find_span(self, call_id: str) -> Span:
        """Find the span of a running call, also of a subagent, else that of the turn."""
        return self._find_call(call_id) or self._turn

    def _find_call(self, call_id: str) -> Span | None:
        for subagent in self._subagents.values():
            span = subagent._find_call(call_id)
            if span:
                return span
        return self._calls.get(call_id)

    def close(self) -> None:
        """End all spans: nothing more will be known about them."""
        self._end_calls("cancelled")
        _end(self._turn, "cancelled")

    def _describe(self, operation: str, model: str = "") -> dict[str, Any]:
        """Return the attributes that the spans and metrics of an operation have in common."""
        provider, _, name = (model or self._model).partition(":")
        return {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
            "gen_ai.request.model": name,
        }

    def _start_session(self, start: events.SessionStarted) -> None:
        self._model = start.models.get("processor", "")
        if not self._conversation:
            self._conversation = start.name
        if start.is_resumed and self._turn is INVALID_SPAN:  # the turn began in a process that was killed
            self._start_turn()

    def _note_chunk(self) -> None:
        if not self._first_chunk_at_ns:
            self._first_chunk_at_ns = time.time_ns()

    def _start_turn(self) -> None:
        self._is_asking = False
        self._spent = Usage()
        attributes = self._describe("invoke_agent")
        attributes["gen_ai.agent.name"] = self._name
        attributes["gen_ai.conversation.id"] = self._conversation
        self._turn = self._telemetry.tracer.start_span(
            f"invoke_agent {self._name}", self._parent, SpanKind.INTERNAL, attributes
        )

    def _finish_turn(self, end: events.TurnFinished) -> None:
        error = ""
        detail = ""
        if end.reason in _FAILED_ENDS:
            error = end.reason
            self._fail_request(error)
        if self._has_content:
            detail = end.detail  # it may quote the model or the server
        self._end_calls(error or "cancelled")
        self._turn.set_attributes(_describe_usage(self._spent))
        _end(self._turn, error, detail)
        self._turn = INVALID_SPAN

    def _finish_request(self, answer: events.MessageCompleted) -> None:
        """Make the span of a request, now that it has its answer."""
        if answer.is_cut and not answer.usage.total_tokens:
            self._is_asking = True  # it broke off; the next event says why
            return
        self._is_asking = False
        self._spent += answer.usage
        common = self._describe("chat", answer.model)
        span = self._start_request_span(common)
        reason = _find_finish_reason(answer)
        span.set_attributes(_describe_usage(answer.usage))
        span.set_attribute("gen_ai.response.finish_reasons", [reason])
        output = {**_describe_message(answer.message), "finish_reason": reason}
        self._add_content(span, "gen_ai.output.messages", [output])
        if not answer.message.tool_calls:
            self._add_content(self._turn, "gen_ai.output.messages", [output])
        if answer.usage.total_tokens:
            self._telemetry.metrics.count_tokens(answer.usage, common)
        self._end_request_span(span, common)

    def _fail_request(self, error: str) -> None:
        """Make the span of a request that has no answer, if there is one."""
        if not self._is_asking:
            return
        self._is_asking = False
        common = self._describe("chat")
        span = self._start_request_span(common)
        self._end_request_span(span, common, error)

    def _start_request_span(self, common: Mapping[str, Any]) -> Span:
        attributes = {**common, "gen_ai.conversation.id": self._conversation, "gen_ai.request.stream": True}
        if self._first_chunk_at_ns:
            waited_s = (self._first_chunk_at_ns - self._request_at_ns) / 1e9
            attributes["gen_ai.response.time_to_first_chunk"] = waited_s
        self._first_chunk_at_ns = 0
        return self._telemetry.tracer.start_span(
            f"chat {common['gen_ai.request.model']}",
            set_span_in_context(self._turn),
            SpanKind.CLIENT,
            attributes,
            start_time=self._request_at_ns,
        )

    def _end_request_span(self, span: Span, common: Mapping[str, Any], error: str = "") -> None:
        _end(span, error)
        if error:
            common = {**common, "error.type": error}
        now_ns = time.time_ns()
        self._telemetry.metrics.measure_request((now_ns - self._request_at_ns) / 1e9, common)
        self._request_at_ns = now_ns

    def _start_call(self, call: ToolCall) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self._conversation,
        }
        span = self._telemetry.tracer.start_span(
            f"execute_tool {call.name}", set_span_in_context(self._turn), SpanKind.INTERNAL, attributes
        )
        self._add_content(span, "gen_ai.tool.call.arguments", call.arguments)
        self._calls[call.id] = span

    def _finish_call(self, result: ToolResult) -> None:
        span = self._calls.pop(result.call_id, None)
        subagent = self._subagents.pop(result.call_id, None)
        if subagent:
            subagent.close()
        if span:
            self._add_content(span, "gen_ai.tool.call.result", result.output)
            error = "tool_error" if result.is_error else ""
            _end(span, error)

    def _end_calls(self, error: str) -> None:
        for subagent in self._subagents.values():
            subagent.close()
        for span in self._calls.values():
            _end(span, error)
        self._subagents.clear()
        self._calls.clear()

    def _record_subagent(self, call_id: str, event: events.Event) -> None:
        subagent = self._subagents.get(call_id)
        if isinstance(event, events.SessionStarted) and call_id in self._calls:
            context = set_span_in_context(self._calls[call_id])
            subagent = AgentSpans(
                self._telemetry,
                event.profile or self._name,
                context,
                has_content=self._has_content,
                conversation=self._conversation,
            )
            self._subagents[call_id] = subagent
        if subagent:
            subagent.record(event)

    def _add_content(self, span: Span, name: str, value: str | Sequence[Mapping[str, Any]]) -> None:
        """Add content to a span, as text or JSON, if the person wants it there."""
        if self._has_content:
            if not isinstance(value, str):
                value = json.dumps(value, ensure_ascii=False)
            span.set_attribute(name, value)


def _end(span: Span, error: str = "", detail: str = "") -> None:
    if error:
        span.set_attribute("error.type", error)
        span.set_status(StatusCode.ERROR, detail or None)
    span.end()


def _find_finish_reason(answer: events.MessageCompleted) -> str:
    if answer.is_cut:
        return "length"
    if answer.message.tool_calls:
        return "tool_call"
    return "stop"


def _describe_usage(usage: Usage) -> dict[str, int]:
    if not usage.total_tokens:
        return {}
    attributes = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    if usage.cache_read_tokens:
        attributes["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
    if usage.cache_write_tokens:
        attributes["gen_ai.usage.cache_write.input_tokens"] = usage.cache_write_tokens
    return attributes


def _describe_message(message: Message) -> dict[str, Any]:
    """Describe a message in the JSON of the conventions."""
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text=text):
                parts.append({"type": "text", "content": text})
            case Thinking(text=text):
                parts.append({"type": "reasoning", "content": text})
            case ToolCall():
                parts.append({"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments})
    return {"role": message.role, "parts": parts}
