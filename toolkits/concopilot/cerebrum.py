"""The profile's models as a component's Cerebrum: InteractParameter in, InteractResponse out, both as plain JSON."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BeforeValidator

from goose_like import __version__
from goose_like.events import SessionStarted, TurnFinished
from goose_like.exchange import Exchange
from goose_like.history import History
from goose_like.journal import Journal
from goose_like.message import Message, Text, ToolCall, Usage
from goose_like.moderator import Truncate
from goose_like.nested import Relay, left_of, narrowed_limits
from goose_like.notifier import Notifier
from goose_like.prices import cost_usd
from goose_like.profile import Limits
from goose_like.provider import Models, Patience
from goose_like.session import Session
from goose_like.tool import AnyArguments, Marks, Tool, ToolError, ToolSpec, current_call
from goose_like.view import ExchangeView
from goose_like.workspace import Workspace

from .asset_words import as_text, shape
from .conversation import wire_names
from .message_history import Said, conversation_of
from .reading import Given, read_as

_FAULTS_TOLD = 5
_ASSETS_TOLD = 50
_CONTENT_CHARACTERS = 2_000
_ASSETS = "The assets that there are; their contents are at asset://ID/content, asset://ID/content/KEY and so on:"


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command as a model is told of it. `schema` is that of its arguments, an object; one that `is_wrapped` has the
    command's parameter under `param` there.
    """

    command_name: str
    description: str
    schema: dict[str, Any]
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class PluginTools:
    """A plugin as a model is told of it. `check` gives what is wrong with a command's parameter; it must not raise."""

    name: str
    prompt: str
    commands: Sequence[PluginCommand]
    check: Callable[[str, Any], Sequence[str]]


def _several(value: Any) -> Any:
    """One text is a list of it, and assets may come by their ids."""
    if value is None or isinstance(value, str):
        return [value] if value else []
    return [*value.values()] if isinstance(value, dict) else value


class _Asked(Given):
    """An InteractParameter."""

    instructions: Annotated[list[str], BeforeValidator(_several)] = []
    command: str | None = None
    message_history: list[Said] | None = None
    assets: Annotated[list[dict[str, Any]], BeforeValidator(_several)] = []
    content: str | None = None
    require_token_len: bool | None = None
    require_cost: bool | None = None


class Brain:
    """What a cerebrum is to its copilot. Each interaction is an exchange of its own, which `notifier` hears within.

    Its tokens count in the session for this `purpose`, and what is left of the turn's `limits` holds.
    """

    def __init__(
        self,
        view: ExchangeView,
        notifier: Notifier,
        *,
        session: Session,
        workspace: Workspace,
        limits: Limits,
        model: Literal["processor", "accelerator"] = "processor",
        purpose: str = "component",
        patience: Patience = Patience(),
    ) -> None:
        asked = view.processor.model if model == "processor" else view.accelerator.model
        self._models = Models(asked, view.accelerator.model)
        self._notifier = notifier
        self._session = session
        self._workspace = workspace
        self._limits = limits
        self._purpose = purpose
        self._patience = patience

    async def interact(self, asked: Mapping[str, Any], plugins: Sequence[PluginTools] = ()) -> dict[str, Any]:
        """The answer to an InteractParameter, as an InteractResponse.

        `content` is always a text, `plugin_calls` None or what the model calls, each {plugin_name, command, param, id},
        and `plugin_call` the first of them. A wrong call goes back to the model in the same turn, with what was called
        beside it. Nothing tells which model it was: the ids are ours. Tokens are those of all its requests.

        Raises:
            ToolError: the parameter is wrong (the text names the field), nothing is left of a limit, or there was no
                answer (the text says why).
        """
        read = read_as(_Asked, asked, "interact parameter")
        limits = narrowed_limits(self._limits, left_of(self._limits, self._session.history))
        calls = _Calls(plugins)
        conversation = conversation_of(read.message_history or (), calls.tool_names)
        message = _with_assets(conversation.end([read.content or "", read.command or ""]), read)
        relay = Relay(self._notifier, current_call.get(""), who="a component", purpose=self._purpose)
        exchange = self._exchange(_system(read, plugins), calls, conversation.history, relay, limits)
        # In a context of its own: there it is no longer the call of a tool that speaks.
        end = await asyncio.create_task(exchange.reply(message), context=Context())
        return self._response(read, exchange, calls, end)

    def _exchange(self, system: str, calls: "_Calls", history: History, relay: Relay, limits: Limits) -> Exchange:
        journal = Journal(history, None, relay)
        calls.history = history
        tools = calls.tools()
        journal.emit(
            SessionStarted(
                version=__version__,
                name=self._session.name,
                cwd=str(self._workspace.root),
                profile="",
                models={"processor": self._models.processor.label, "accelerator": self._models.accelerator.label},
                tools=tuple(tools),
            )
        )
        return Exchange(
            models=self._models,
            moderator=Truncate({}),
            system=system,
            tools=tools,
            journal=journal,
            session=self._session,
            limits=limits,
            patience=self._patience,
            workspace=self._workspace,
        )

    def _response(self, read: _Asked, exchange: Exchange, calls: "_Calls", end: TurnFinished) -> dict[str, Any]:
        if end.reason not in ("stop", "handed_off"):
            raise ToolError(f"the cerebrum gave no answer ({end.reason.replace('_', ' ')}): {end.detail}")
        history = exchange.history
        answer = next(message for message in reversed(history.messages) if message.role == "assistant")
        made = [calls.made(call) for call in answer.tool_calls] if end.reason == "handed_off" else []
        response: dict[str, Any] = {
            "content": answer.text,
            "plugin_calls": made or None,
            "plugin_call": made[0] if made else None,
        }
        spent = history.turn_usage
        if read.require_token_len:
            total = sum(spent.values(), Usage())
            response |= {"input_token_len": total.input_tokens, "output_token_len": total.output_tokens}
        if read.require_cost:
            response["cost"] = cost_usd(spent)
        return response


class _Calls:
    """The plugins' commands as tools that the component runs, and what the model calls of them as plugin calls."""

    def __init__(self, plugins: Sequence[PluginTools]) -> None:
        pairs = [(plugin, command) for plugin in plugins for command in plugin.commands]
        names = wire_names(f"{plugin.name}_{command.command_name}" for plugin, command in pairs)
        self._of = dict(zip(names, pairs, strict=True))
        self.history = History()

    @property
    def tool_names(self) -> dict[tuple[str, str], str]:
        """The tools' names by plugin and command."""
        return {(plugin.name, command.command_name): name for name, (plugin, command) in self._of.items()}

    def tools(self) -> dict[str, Tool]:
        """The tools by their names; what runs of them here is the check."""
        return {name: self._tool(name) for name in self._of}

    def made(self, call: ToolCall) -> dict[str, Any]:
        """A call that was checked, as a PluginCall."""
        plugin, command = self._of[call.name]
        param = _param(command, _arguments(call))
        return {"plugin_name": plugin.name, "command": command.command_name, "param": param, "id": str(uuid4())}

    def _tool(self, name: str) -> Tool:
        _, command = self._of[name]

        async def checked(**arguments: Any) -> None:
            if faults := self._faults(name, arguments):
                raise ToolError(f"wrong arguments for {name}: {'; '.join(faults[:_FAULTS_TOLD])}")
            for call in self.history.open_calls.values():
                if call.id != current_call.get("") and self._is_wrong(call):
                    raise ToolError(f"not run, as the call of {call.name} beside it is wrong; make both again")

        schema = {"properties": {}, **command.schema}
        return Tool(ToolSpec(name, command.description, schema), checked, AnyArguments, Marks(remote=True))

    def _is_wrong(self, call: ToolCall) -> bool:
        try:
            arguments = _arguments(call)
        except (ValueError, RecursionError):
            return True
        return call.name not in self._of or not isinstance(arguments, dict) or bool(self._faults(call.name, arguments))

    def _faults(self, name: str, arguments: dict[str, Any]) -> Sequence[str]:
        plugin, command = self._of[name]
        if command.is_wrapped and (others := arguments.keys() - {"param"}):
            return [f"there is no field {min(others)!r}, only 'param'"]
        return plugin.check(command.command_name, _param(command, arguments))


def _arguments(call: ToolCall) -> Any:
    return json.loads(call.arguments) if call.arguments.strip() else {}


def _param(command: PluginCommand, arguments: dict[str, Any]) -> Any:
    return arguments.get("param") if command.is_wrapped else arguments


def _system(read: _Asked, plugins: Sequence[PluginTools]) -> str:
    """The instructions, and the plugins' prompts where these don't have them already."""
    told = "\n\n".join(filter(str.strip, read.instructions))
    prompts = [plugin.prompt.strip() for plugin in plugins if plugin.prompt.strip() not in told]
    return "\n\n".join(filter(None, (told, *prompts)))


def _with_assets(message: Message, read: _Asked) -> Message:
    """The message with the assets at its end, where they may change without all before them being read again."""
    every = read.assets
    if not every:
        return message
    more = [f"(and {len(every) - _ASSETS_TOLD:,} older ones)"] if len(every) > _ASSETS_TOLD else []
    lines = [as_text(_listed(asset)) for asset in every[-_ASSETS_TOLD:]]
    gap = "\n\n" if message.text else ""
    return message.model_copy(update={"parts": (*message.parts, Text(text=gap + "\n".join([_ASSETS, *lines, *more])))})


def _listed(asset: Mapping[str, Any]) -> dict[str, Any]:
    """An asset's fields; a content that is long is told by its shape."""
    told = {key: value for key, value in asset.items() if key != "content" and value is not None}
    if (content := asset.get("content")) is None:
        return told
    is_short = not isinstance(content, bytes) and len(as_text(content)) <= _CONTENT_CHARACTERS
    return told | ({"content": content} if is_short else {"shape": shape(content)})
