"""A component's message history, as the conversation that an exchange would hold."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from goose_like.providers.wire import sanitize_tool_name
from goose_like_toolkits.components.assets.words import as_text
from goose_like_toolkits.components.described.references import read_reference

from .conversation import Conversation
from .reading import Given


def _whose(value: Any) -> Any:
    """A sender or receiver may be its role alone, or missing."""
    return {"role": value} if isinstance(value, str) else {} if value is None else value


class Party(Given):
    """A sender or receiver."""

    role: str | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        return " ".join(filter(None, (self.role or "system", self.name)))


class Said(Given):
    """A Message, as far as a model needs it."""

    sender: Annotated[Party, BeforeValidator(_whose)] = Party()
    receiver: Annotated[Party, BeforeValidator(_whose)] = Party()
    content: Any = None


Tools = Mapping[tuple[str, str], str]
"""The tools' names by plugin and command."""


def conversation_of(messages: Iterable[Said], tools: Tools) -> Conversation:
    """What was said: by the user and others to the model, by the model, and between it and plugins."""
    conversation = Conversation(has_tools=bool(tools))
    for said in messages:
        match said.sender.role:
            case "cerebrum":
                _take_own(said, conversation, tools)
            case "user":
                conversation.hear(_text(said.content))
            case "plugin":
                _take_response(said, conversation, tools)
            case _:
                _take_other(said, conversation)
    return conversation


def _take_own(said: Said, conversation: Conversation, tools: Tools) -> None:
    content = said.content
    if said.receiver.role == "plugin" and isinstance(content, Mapping) and content.get("command"):
        param = content.get("param")
        arguments = {} if param is None else param if isinstance(param, Mapping) else {"param": param}
        name = _tool(said.receiver.name, content["command"], tools)
        conversation.call(name, as_text(arguments), _id(content))
    else:
        conversation.say(_text(content))


def _take_response(said: Said, conversation: Conversation, tools: Tools) -> None:
    content = said.content
    if isinstance(content, Mapping) and content.get("command"):
        response = _text(content["response"]) if "response" in content else "(it gave no response)"
        conversation.result(response, names=[_tool(said.sender.name, content["command"], tools)], call_id=_id(content))
        return
    own = [name for (plugin, _), name in tools.items() if plugin == said.sender.name]
    if own and conversation.is_waiting(own):  # what was too long was put into an asset, with the command's name
        conversation.result(_text(content), names=own)
    else:
        conversation.hear(f"[{said.sender.label}]\n{_text(content)}")


def _take_other(said: Said, conversation: Conversation) -> None:
    """What the system says; of an error it is taken that the call failed that is open."""
    content = said.content
    if isinstance(content, Mapping) and content.get("error") and conversation.is_waiting():
        conversation.result(_text(content), is_error=True)
    elif text := _text(content):
        conversation.hear(f"[{said.sender.label}]\n{text}")


def _tool(plugin: str | None, command: Any, tools: Tools) -> str:
    return tools.get((plugin or "", str(command))) or sanitize_tool_name(f"{plugin or 'plugin'}_{command}")


def _id(content: Mapping[str, Any]) -> str:
    given = content.get("id")
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, Mapping) and (reference := read_reference(content)):
        return f"[it is in the asset {reference}]"
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
