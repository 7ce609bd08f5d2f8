"""The profile's models as ConCopilot's LLM: LLMParameter in, LLMResponse out, both as JSON."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from goose_like.agent.subagent import narrow_limits, remaining_limits
from goose_like.agent.view import ExchangeView, ModelView
from goose_like.config.profile import Limits
from goose_like.core.errors import ProviderError
from goose_like.core.history import History
from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import ToolCall
from goose_like.core.tool import ToolError, ToolSpec
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.wire import clip, is_json_object

from .conversation import Conversation, wire_names
from .model_options import ComponentInput, ModelOptions, read_input

# Settings of vendors. The profile decides about them, so they are neither used nor returned.
_VENDOR_SETTINGS = {
    *("model", "stream", "stream_options", "n", "top_p", "top_k", "seed", "user", "suffix", "echo", "best_of"),
    *("logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("response_format", "parallel_tool_calls", "do_sample", "reasoning_effort", "max_length"),
}


def _to_text(value: Any) -> Any:
    """Convert the content of a message to text; vendors also take a list of parts."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        raise ValueError("a text, or a list of parts with `text`, is expected here")
    texts = [part.get("text") if isinstance(part, dict) else part for part in value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("only parts with a `text` can be read here")
    return "\n".join(map(str, texts))


class _FunctionCall(ComponentInput):
    name: str
    arguments: str | dict[str, Any] = "{}"


class _ToolCall(ComponentInput):
    id: str | None = None
    function: _FunctionCall


class _Entry(ComponentInput):
    """One of `messages` or `history`."""

    role: str
    content: Annotated[str, BeforeValidator(_to_text)] = ""
    name: str | None = None
    function_call: _FunctionCall | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


class _Function(ComponentInput):
    name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(ComponentInput):
    function: _Function


class LLMParameter(ModelOptions):
    """The fields of ConCopilot's LLMParameter and of vendors' chat requests. Others belong to the component."""

    model_config = ConfigDict(extra="allow")

    prompt: str | None = None
    require_token_len: bool | None = None
    require_cost: bool | None = None
    history: list[_Entry] | None = None
    messages: list[_Entry] | None = None
    functions: list[_Function] | None = None
    tools: list[_Tool] | None = None
    function_call: str | dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stop: str | list[str] | None = None

    @property
    def offered(self) -> list[_Function]:
        """The functions that the model may call: none, one by its name, or all."""
        wanted = self.tool_choice if self.function_call is None else self.function_call
        if wanted == "none":
            return []
        found: dict[str, _Function] = {}
        for function in [*(self.functions or ()), *(tool.function for tool in self.tools or ())]:
            found.setdefault(function.name, function)
        named = wanted.get("function", wanted) if isinstance(wanted, dict) else {}
        chosen = named.get("name") if isinstance(named, dict) else None
        return [function for function in found.values() if chosen in (None, function.name)]


async def infer(
    view: ExchangeView,
    asked: Mapping[str, Any],
    model: Literal["processor", "accelerator"] = "processor",
    *,
    limits: Limits | None = None,
    history: History | None = None,
) -> dict[str, Any]:
    """Return the fields of an LLMResponse. The session counts its tokens.

    The conversation is `history`, then `messages`, then `prompt`; any of them is enough. `calls` is None, or the calls
    of `functions` or `tools` in the forms of both. Fields that are unknown here are returned as they came.

    Raises:
        ToolError: a parameter is wrong, or a limit of the turn is used up.
        ProviderError: no answer came, or one with a call that cannot run.
    """
    param = read_input(LLMParameter, {k: v for k, v in asked.items() if k not in _VENDOR_SETTINGS}, "LLM parameter")
    if not (param.prompt or param.messages or param.history):
        raise ToolError("there is nothing to answer: give a `prompt`, or `messages`")
    if limits and history:
        narrow_limits(limits, remaining_limits(limits, history))
    functions = param.offered
    names = dict(zip(wire_names(function.name for function in functions), functions, strict=True))
    tools = [
        ToolSpec(name, function.description or function.name, sanitize_schema(function.parameters))
        for name, function in names.items()
    ]
    system, conversation = _build_conversation(param, {function.name: name for name, function in names.items()})
    asking: ModelView = getattr(view, model)
    asking = replace(asking, model=param.apply(asking.model))
    answer = await asking.answer(conversation.messages(), system=system, tools=tools, purpose="component")
    if answer.is_cut and param.max_tokens is None:
        raise ProviderError(f"the answer of {asking.model.label} was cut at its output limit (component)")
    content, calls = answer.message.text, answer.message.tool_calls
    stops = [param.stop] if isinstance(param.stop, str) else param.stop or []
    if ends := [at for text in stops if text and (at := content.find(text)) >= 0]:
        content, calls = content[: min(ends)], ()
    response = {**(param.model_extra or {}), "role": "assistant", "content": content}
    response["calls"] = [_build_call(call, names, param) for call in calls] or None
    if param.require_token_len:
        response["input_token_len"] = answer.usage.input_tokens
        response["output_token_len"] = answer.usage.output_tokens
    return response | ({"cost": compute_cost_usd({asking.model.label: answer.usage})} if param.require_cost else {})


def _build_conversation(param: LLMParameter, names: Mapping[str, str]) -> tuple[str, Conversation]:
    """Return the system text that comes first, and the conversation after it."""
    system: list[str] = []
    conversation = Conversation(has_tools=bool(names))
    for entry in [*(param.history or ()), *(param.messages or ())]:
        if entry.role in ("system", "developer") and conversation.is_empty:
            system.append(entry.content)
        else:
            _add_entry(entry, conversation, names)
    conversation.hear(param.prompt or "")
    if conversation.is_empty:  # vendors need text beside the system's
        conversation.hear("\n\n".join(system))
        system = []
    return "\n\n".join(filter(None, system)), conversation


def _add_entry(entry: _Entry, conversation: Conversation, names: Mapping[str, str]) -> None:
    match entry.role:
        case "user" | "human":
            conversation.hear(entry.content)
        case "assistant" | "ai" | "model" | "cerebrum":
            conversation.say(entry.content)
            calls = [(entry.function_call, "")] if entry.function_call else []
            calls += [(call.function, call.id or "") for call in entry.tool_calls or ()]
            for call, call_id in calls:
                arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
                conversation.call(names.get(call.name, call.name), arguments, call_id)
        case "function" | "tool" | "plugin" | "observation":
            called = [names.get(entry.name, entry.name)] if entry.name else []
            conversation.result(entry.content, names=called, call_id=entry.tool_call_id or "")
        case role:
            conversation.hear(f"[{role}]\n{entry.content}" if entry.content else "")


def _build_call(call: ToolCall, names: Mapping[str, _Function], param: LLMParameter) -> dict[str, Any]:
    if call.name not in names:
        offered = ", ".join(function.name for function in names.values()) or "none"
        raise ProviderError(f"the model called {call.name!r}, which is none of its functions ({offered}); ask again")
    name, arguments = names[call.name].name, call.arguments.strip() or "{}"
    if not is_json_object(arguments):
        hint = "raise `max_tokens`" if param.max_tokens else "ask again"
        raise ProviderError(f"the model called {name!r} with {clip(arguments, 80)!r}, which is no JSON object; {hint}")
    function = {"name": name, "arguments": arguments}
    return {**function, "id": call.id, "type": "function", "function": function}
