"""The profile's models as ConCopilot's LLM: LLMParameter in, LLMResponse out, both as JSON."""

import json
from collections.abc import Mapping
from typing import Any

from goose_like.core.json_schema import sanitize_schema
from goose_like.core.message import ToolCall
from goose_like.core.tool import ToolError
from goose_like.providers.retry import RetryPolicy

from ..surroundings import Surroundings
from .conversation import Conversation, wire_names
from .exchange import AnswerOptions, ask_model, build_tool


class LLMParameter(AnswerOptions):
    """The fields of ConCopilot's LLMParameter and of vendors' chat requests; unknown ones come back in the response."""

    prompt: str | None = None
    history: list[dict[str, Any]] | None = None
    messages: list[dict[str, Any]] | None = None
    functions: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    stop: str | list[str] | None = None

    def list_functions(self) -> dict[str, dict[str, Any]]:
        """Return the functions that the model may call, by name: none, the chosen one, or all."""
        wanted = self.tool_choice if self.function_call is None else self.function_call
        if wanted == "none":
            return {}
        offered = list(self.functions or ())
        offered += [tool.get("function") or {} for tool in self.tools or ()]
        chosen = None
        if isinstance(wanted, dict):
            chosen = (wanted.get("function") or wanted).get("name")
        found: dict[str, dict[str, Any]] = {}
        for function in offered:
            name = str(function.get("name") or "")
            if name and chosen in (None, name):
                found.setdefault(name, function)
        return found


async def infer(
    around: Surroundings,
    asked: Mapping[str, Any],
    model: str = "processor",
    retry_policy: RetryPolicy = RetryPolicy(),
) -> dict[str, Any]:
    """Return the fields of an LLMResponse.

    The conversation is `history`, then `messages`, then `prompt`; any of them is enough. `calls` is None, or the calls
    of `functions` or `tools` in the forms of both.

    Raises:
        ToolError: a parameter is wrong, or there was no answer.
    """
    param = LLMParameter.read(asked)
    if not (param.prompt or param.messages or param.history):
        raise ToolError("there is nothing to answer: give a `prompt`, or `messages`")
    functions = param.list_functions()
    names = dict(zip(functions, wire_names(functions), strict=True))
    tools = {}
    for own, name in names.items():
        description = str(functions[own].get("description") or own)
        schema = sanitize_schema(functions[own].get("parameters"))
        tools[name] = build_tool(name, description, schema, lambda _: None)
    system, conversation = _build_conversation(param, names)
    message = conversation.end()
    answer = await ask_model(
        around,
        model,
        param,
        system=system,
        history=conversation.history,
        message=message,
        tools=tools,
        retry_policy=retry_policy,
    )
    content = _cut_at_stop(answer.text, param.stop)
    own_names = {name: own for own, name in names.items()}
    calls = []
    if content == answer.text:  # else the calls come after the end
        calls = [_encode_call(call, own_names) for call in answer.calls]
    return {
        **(param.model_extra or {}),
        "role": "assistant",
        "content": content,
        "calls": calls or None,
        **answer.figures,
    }


def _cut_at_stop(text: str, stop: str | list[str] | None) -> str:
    """Cut a text before the first of the stop texts in it."""
    stops = [stop] if isinstance(stop, str) else stop or []
    places = []
    for each in stops:
        place = text.find(each)
        if each and place >= 0:
            places.append(place)
    return text[: min(places)] if places else text


def _encode_call(call: ToolCall, own_names: Mapping[str, str]) -> dict[str, Any]:
    function = {"name": own_names[call.name], "arguments": call.arguments.strip() or "{}"}
    return {**function, "id": call.id, "type": "function", "function": function}


def _build_conversation(param: LLMParameter, names: Mapping[str, str]) -> tuple[str, Conversation]:
    """Return the system text that comes first, and the conversation after it."""
    system: list[str] = []
    conversation = Conversation(has_tools=bool(names))
    for entry in [*(param.history or ()), *(param.messages or ())]:
        if entry.get("role") in ("system", "developer") and conversation.is_empty:
            system.append(_to_text(entry.get("content")))
        else:
            _add_entry(entry, conversation, names)
    conversation.hear(param.prompt or "")
    if conversation.is_empty:  # vendors need text beside the system's
        conversation.hear("\n\n".join(system))
        system = []
    return "\n\n".join(filter(None, system)), conversation


def _add_entry(entry: Mapping[str, Any], conversation: Conversation, names: Mapping[str, str]) -> None:
    text = _to_text(entry.get("content"))
    match entry.get("role"):
        case "user" | "human":
            conversation.hear(text)
        case "assistant" | "ai" | "model" | "cerebrum":
            conversation.say(text)
            if entry.get("function_call"):
                _add_call({"function": entry["function_call"]}, conversation, names)
            for call in entry.get("tool_calls") or ():
                _add_call(call, conversation, names)
        case "function" | "tool" | "plugin" | "observation":
            called = []
            if entry.get("name"):
                called.append(names.get(entry["name"], entry["name"]))
            conversation.result(text, names=called, call_id=str(entry.get("tool_call_id") or ""))
        case role if text:
            conversation.hear(f"[{role}]\n{text}")


def _add_call(call: Mapping[str, Any], conversation: Conversation, names: Mapping[str, str]) -> None:
    function = call["function"]
    name = str(function["name"])
    arguments = function.get("arguments", "{}")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    conversation.call(names.get(name, name), arguments, str(call.get("id") or ""))


def _to_text(content: Any) -> str:
    """Convert the content of a message to text; vendors also take a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content if isinstance(content, list) else [None]:
        text = part.get("text") if isinstance(part, dict) else part
        if not isinstance(text, str):
            raise ToolError("the content of a message is text, or a list of parts with `text`")
        texts.append(text)
    return "\n".join(texts)
