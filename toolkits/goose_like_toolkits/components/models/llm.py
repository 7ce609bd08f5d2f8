"""The profile's models as a component's LLM: LLMParameter in, LLMResponse out, both as plain JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from goose_like.agent.subagent import narrow_limits, remaining_limits
from goose_like.agent.view import ExchangeView, ModelView
from goose_like.config.profile import Limits
from goose_like.core.errors import ProviderError
from goose_like.core.events import MessageCompleted
from goose_like.core.history import History
from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import ToolCall, Usage
from goose_like.core.tool import ToolError, ToolSpec
from goose_like.providers.prices import compute_cost_usd
from goose_like.providers.wire import clip, is_json_object

from .conversation import Conversation, wire_names
from .reading import Given, read_as
from .wishes import Wishes

_SETTINGS = {
    *("model", "stream", "stream_options", "n", "top_p", "top_k", "seed", "user", "suffix", "echo", "best_of"),
    *("logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("response_format", "parallel_tool_calls", "do_sample", "reasoning_effort", "max_length"),
}
"""Settings of a vendor's own. What they ask for the profile decides, so they are neither kept nor given back."""


def _words(value: Any) -> Any:
    """A message's content as text: vendors also take a list of parts."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        raise ValueError("a text, or a list of parts with `text`, is expected here")
    texts = [part.get("text") if isinstance(part, dict) else part for part in value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("only parts with a `text` can be read here")
    return "\n".join(map(str, texts))


class _Called(Given):
    """A call as vendors write it: `arguments` is JSON text, or the object itself."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class _ToolCall(Given):
    id: str | None = None
    function: _Called


class _Entry(Given):
    """One of `messages` or `history`."""

    role: str
    content: Annotated[str, BeforeValidator(_words)] = ""
    name: str | None = None
    function_call: _Called | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


class _Function(Given):
    name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(Given):
    function: _Function


class _Asked(Wishes):
    """An LLMParameter. What it has beyond these fields is the caller's."""

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
        every = [*(self.functions or ()), *(tool.function for tool in self.tools or ())]
        each: dict[str, _Function] = {}
        for function in every:
            each.setdefault(function.name, function)
        named = wanted.get("function", wanted) if isinstance(wanted, dict) else {}
        chosen = named.get("name") if isinstance(named, dict) else None
        return [function for function in each.values() if chosen in (None, function.name)]

    @property
    def stops(self) -> list[str]:
        """What ends an answer and does not belong to it."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [text for text in stop if text]


async def infer(
    view: ExchangeView,
    asked: Mapping[str, Any],
    model: Literal["processor", "accelerator"] = "processor",
    *,
    purpose: str = "component",
    limits: Limits | None = None,
    history: History | None = None,
) -> dict[str, Any]:
    """The answer to an LLMParameter, as an LLMResponse; its tokens are counted in the session.

    A conversation is `history`, then `messages`, then `prompt`; any of the three alone will do. `content` is always a
    text, and `calls` None or what the model calls of `functions` or `tools`, each with its `name` and `arguments` (the
    JSON text of an object) on top, and once more below `function` with `id` and `type` beside it. An answer that was
    cut at `max_tokens` is one. `stop` is kept; vendors' other settings are not, and the temperature is left out where
    the vendor refuses it. Fields that nobody here knows are in the answer as they came.

    Raises:
        ToolError: the parameters are wrong (the text names the field), there is no such model, or nothing is left of
            the turn's `limits`, where they are given with the session's `history`.
        ProviderError: no answer came, or one with a call that nobody could run.
    """
    if model not in ("processor", "accelerator"):
        raise ToolError(f"no model {model!r}; there are: accelerator, processor")
    read = _read(asked)
    if limits and history:
        narrow_limits(limits, remaining_limits(limits, history))
    functions = read.offered
    names = dict(zip(wire_names(function.name for function in functions), functions, strict=True))
    tools = [
        ToolSpec(name, function.description or function.name, sanitize_schema(function.parameters))
        for name, function in names.items()
    ]
    system, conversation = _conversation(read, {function.name: name for name, function in names.items()})
    asking: ModelView = getattr(view, model)
    answer = await _answered(asking, conversation, system, tools, read, purpose)
    content, calls = answer.message.text, answer.message.tool_calls
    if ends := [at for text in read.stops if (at := content.find(text)) >= 0]:
        content, calls = content[: min(ends)], ()
    made = [_made(call, names, read) for call in calls]
    return {
        **(read.model_extra or {}),
        "role": "assistant",
        "content": content,
        "calls": made or None,
        **_spent(read, asking.model.label, answer.usage),
    }


def _read(asked: Mapping[str, Any]) -> _Asked:
    kept = {name: value for name, value in asked.items() if name not in _SETTINGS}
    read = read_as(_Asked, kept, "LLM parameter")
    if not (read.prompt or read.messages or read.history):
        raise ToolError("there is nothing to answer: give a `prompt`, or `messages`")
    return read


def _conversation(read: _Asked, names: Mapping[str, str]) -> tuple[str, Conversation]:
    """The system words that come first, and what was said after them."""
    system: list[str] = []
    conversation = Conversation(has_tools=bool(names))
    for entry in [*(read.history or ()), *(read.messages or ())]:
        if entry.role in ("system", "developer") and conversation.is_empty:
            system.append(entry.content)
        else:
            _take(entry, conversation, names)
    conversation.hear(read.prompt or "")
    if conversation.is_empty:  # vendors want words that are not the system's
        conversation.hear("\n\n".join(system))
        system = []
    return "\n\n".join(filter(None, system)), conversation


def _take(entry: _Entry, conversation: Conversation, names: Mapping[str, str]) -> None:
    match entry.role:
        case "user" | "human":
            conversation.hear(entry.content)
        case "assistant" | "ai" | "model" | "cerebrum":
            conversation.say(entry.content)
            called = [(entry.function_call, "")] if entry.function_call else []
            called += [(call.function, call.id or "") for call in entry.tool_calls or ()]
            for call, call_id in called:
                conversation.call(names.get(call.name, call.name), _json(call.arguments), call_id)
        case "function" | "tool" | "plugin" | "observation":
            called_names = [names.get(entry.name, entry.name)] if entry.name else []
            conversation.result(entry.content, names=called_names, call_id=entry.tool_call_id or "")
        case role:
            conversation.hear(f"[{role}]\n{entry.content}" if entry.content else "")


async def _answered(
    asking: ModelView,
    conversation: Conversation,
    system: str,
    tools: Sequence[ToolSpec],
    read: _Asked,
    purpose: str,
) -> MessageCompleted:
    asking = replace(asking, model=read.of(asking.model))
    answer = await asking.answer(conversation.messages(), system=system, tools=tools, purpose=purpose)
    if answer.is_cut and read.max_tokens is None:
        raise ProviderError(f"the answer of {asking.model.label} was cut at its output limit ({purpose})")
    return answer


def _made(call: ToolCall, names: Mapping[str, _Function], read: _Asked) -> dict[str, Any]:
    """A call as both of the vendors' forms have it."""
    if call.name not in names:
        offered = ", ".join(function.name for function in names.values()) or "none"
        raise ProviderError(
            f"the model called {call.name!r}, which it was not offered (there are: {offered}); ask again"
        )
    name, arguments = names[call.name].name, call.arguments.strip() or "{}"
    if not is_json_object(arguments):
        cut = "; raise `max_tokens`" if read.max_tokens else "; ask again"
        raise ProviderError(f"the model called {name!r} with {clip(arguments, 80)!r}, which is no JSON object{cut}")
    function = {"name": name, "arguments": arguments}
    return {**function, "id": call.id, "type": "function", "function": function}


def _spent(read: _Asked, label: str, usage: Usage) -> dict[str, Any]:
    counts = {"input_token_len": usage.input_tokens, "output_token_len": usage.output_tokens}
    cost = {"cost": compute_cost_usd({label: usage})} if read.require_cost else {}
    return (counts if read.require_token_len else {}) | cost


def _json(arguments: str | dict[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
