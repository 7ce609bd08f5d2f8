"""One session of an editor: a conversation, its updates in their order, and its questions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from acp.exceptions import RequestError
from typing_extensions import override

from goose_like.agent.build import ClientPart
from goose_like.agent.call_start import start_call
from goose_like.config.profile import Profile
from goose_like.core import events
from goose_like.core.errors import CredentialError, GooseLikeError, UsageError
from goose_like.core.event_text import escape_controls
from goose_like.core.history import History
from goose_like.core.notifier import EventNotifier
from goose_like.launch.scheduler import TurnScheduler, open_conversation
from goose_like.launch.start import SessionRequest
from goose_like.providers.catalog import ModelOffer
from goose_like.providers.prices import compute_cost_usd, find_context_window
from goose_like.sessions.index import read_label

from .content import Json, Send, make_content, make_diffs
from .files import ClientFiles
from .options import list_commands, list_modes, list_options
from .updates import UpdateMaker, make_token_counts, make_usage, merge_updates

_FILE_LIMIT_S = 10.0
"""The longest time that an editor may take to read or write a file."""

_OPTION_KINDS = {
    "allow": "allow_once",
    "allow_prefix": "allow_always",
    "allow_always": "allow_always",
    "deny": "reject_once",
}
_OPTION_NAMES = {
    "allow": "Allow once",
    "allow_prefix": "Allow in this session: {prefix}",
    "allow_always": "Always allow",
    "deny": "Deny",
}
"""The names of buttons. The words of the terminal, such as `once`, need its question before them."""

_STOP_REASONS = {
    "stop": "end_turn",
    "handed_off": "end_turn",
    "step_limit": "max_turn_requests",
    "budget": "max_turn_requests",
    "cancelled": "cancelled",
}


class EditorSession(EventNotifier):
    """A conversation in an editor. Updates wait until `start_updates`, because they need the name of the session.

    `capabilities` are those of the editor, and `offers` the models that it may choose.
    """

    def __init__(self, notify_editor: Send, ask_editor: Send, capabilities: Json, offers: Sequence[ModelOffer]) -> None:
        self._notify_editor = notify_editor
        self._ask_editor = ask_editor
        self._capabilities = capabilities
        self._offers = offers
        self._maker = UpdateMaker(capabilities.get("session") or {})
        self._updates: list[Json] = []
        self._has_news = asyncio.Event()
        self._sending = asyncio.Lock()
        self._pump: asyncio.Task[None] | None = None
        self._life: asyncio.Task[None] | None = None
        self._end = asyncio.Event()
        self._conversation: TurnScheduler | None = None
        self._question_count = 0
        self._shown_options: list[Json] = []
        self._shown_commands: list[Json] = []
        self._shown_profile: Profile | None = None
        self._title = ""

    @property
    def conversation(self) -> TurnScheduler:
        """The scheduler of the turns. Call `open` first."""
        assert self._conversation is not None
        return self._conversation

    @property
    def name(self) -> str:
        """The name of the session, which is its id in the editor."""
        return self.conversation.exchange.session.name

    # --- life

    async def open(self, request: SessionRequest, folder: Path, change: Callable[[Profile], Profile]) -> None:
        """Open the session in a folder. `change` adds to the profile.

        Raises:
            GooseLikeError: it cannot be opened.
        """
        is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A task of its own: what toolkits opened in a task, only this task can close.
        self._life = asyncio.create_task(self._live(request, folder, change, is_open))
        try:
            await is_open
        except asyncio.CancelledError:
            await self.close()
            raise

    async def _live(
        self,
        request: SessionRequest,
        folder: Path,
        change: Callable[[Profile], Profile],
        is_open: "asyncio.Future[None]",
    ) -> None:
        try:
            files = ClientFiles(self._ask_for_file, self._capabilities.get("fs") or {}, folder, self.log)
            opening = open_conversation(
                request, self, folder, ask=self._ask_line, change=change, client=ClientPart(editor=files)
            )
            async with opening as conversation:
                self._conversation = conversation
                is_open.set_result(None)
                await self._end.wait()
        except Exception as error:
            if is_open.done():
                raise
            is_open.set_exception(error)

    async def close(self) -> None:
        """Stop the work and close the session. Nothing of it runs afterwards."""
        self._end.set()
        if self._life:
            if self._conversation is None:  # it is still starting
                self._life.cancel()
            await asyncio.wait([self._life])
        if self._pump:
            self._pump.cancel()
            await asyncio.wait([self._pump])

    # --- updates

    @override
    def notify(self, event: events.Event) -> None:
        self._queue(*self._maker.make_updates(event))
        if isinstance(event, events.MessageCompleted) and self._conversation:
            self._queue_usage()

    def _queue(self, *updates: Json) -> None:
        for update in updates:
            merged = merge_updates(self._updates[-1], update) if self._updates else None
            if merged:
                self._updates[-1] = merged
            else:
                self._updates.append(update)
        self._has_news.set()

    def start_updates(self) -> None:
        """Send the updates that wait and all later ones, the first time together with the slash commands."""
        if self._pump is None:
            self._tell_commands()
            self._pump = asyncio.create_task(self._send_all())

    def _tell_commands(self) -> None:
        """Tell the editor about the slash commands, if they are others than it knows."""
        commands = list_commands(self.conversation.context)
        if commands != self._shown_commands:
            self._shown_commands = commands
            self._queue({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    async def _send_all(self) -> None:
        while True:
            await self._has_news.wait()
            await self.send_updates()

    async def send_updates(self) -> None:
        """Send the updates that wait, in their order."""
        async with self._sending:
            self._has_news.clear()
            waiting = self._updates
            self._updates = []
            with suppress(ConnectionError):  # the editor is gone, which ends the process
                for update in waiting:
                    await self._notify_editor("session/update", {"sessionId": self.name, "update": update})

    async def replay(self) -> None:
        """Send the whole conversation of earlier processes."""
        exchange = self.conversation.exchange
        session = exchange.session
        describe = partial(start_call, tools=exchange.tools, history=exchange.history)
        maker = UpdateMaker(self._capabilities.get("session") or {}, describe)
        for event in History().restore(session.read_events()):
            self._queue(*maker.make_updates(event))
        self._queue_usage()
        await self.send_updates()

    def _queue_usage(self) -> None:
        """Tell how full the context is, if its size is known, and what the session has cost."""
        exchange = self.conversation.exchange
        model = exchange.models.processor
        window = model.window or find_context_window(model.label)
        if window:
            cost_usd = compute_cost_usd(exchange.history.usage.by_model)
            self._queue(make_usage(exchange.history, window, cost_usd))

    # --- prompts

    async def prompt(self, text: str) -> str:
        """Run a prompt to its end and return why it ended, in the words of the protocol.

        Raises:
            RequestError: the turn failed.
        """
        conversation = self.conversation
        self._maker.is_command = True
        try:
            await conversation.submit(text)
        except UsageError as error:
            self._queue(*self._maker.make_updates(events.Logged(text=str(error))))
            await self.send_updates()
            return "end_turn"
        end = await conversation.finish()
        self._maker.is_command = False
        self._tell_changes()
        await self.send_updates()
        if end is None:  # a command, or a message that a hook blocked
            return "end_turn"
        if end.reason == "error":
            raise make_error(GooseLikeError(end.detail), is_key_missing=end.exit_code == CredentialError.exit_code)
        return _STOP_REASONS[end.reason]

    def count_tokens(self) -> Json:
        """Count the tokens of the session, which answers to prompts have. The protocol calls this unstable."""
        return make_token_counts(self.conversation.exchange.history.usage.total)

    def cancel(self) -> None:
        """Stop the running turn. Its prompt then ends as cancelled."""
        self.conversation.stop()

    def _tell_changes(self) -> None:
        """Tell the editor about a new title, and about options and commands that a slash command changed."""
        exchange = self.conversation.exchange
        history = exchange.history
        title = read_label(exchange.session.folder, "title")
        if not title and history.turns:
            title = " ".join(history.messages[history.turns[0].start].first_text.split())[:60]
        if title and title != self._title:
            self._title = title
            self._queue({"sessionUpdate": "session_info_update", "title": title})
        self.tell_options()
        self._tell_commands()

    def tell_options(self) -> None:
        """Tell the editor about options that are others than it knows."""
        if self.conversation.current.profile is self._shown_profile:
            return
        before = self._shown_options
        options = self.list_options()
        if options != before:
            mode = self.conversation.current.profile.approval
            self._queue({"sessionUpdate": "config_option_update", "configOptions": options})
            self._queue({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    # --- options

    def describe(self) -> Json:
        """Return the modes and options, as answers to opened sessions have them."""
        return {"modes": list_modes(self.conversation), "configOptions": self.list_options()}

    def list_options(self) -> list[Json]:
        """List the options with their present values."""
        self._shown_profile = self.conversation.current.profile
        self._shown_options = list_options(self.conversation, self._offers)
        return self._shown_options

    async def set_option(self, name: str, value: object) -> None:
        """Change an option.

        Raises:
            GooseLikeError: there is no such option or value, or it has to wait for the end of the turn.
        """
        conversation = self.conversation
        setters: dict[str, Callable[[Any], Awaitable[object]]] = {
            "mode": lambda mode: conversation.set_mode(approval=mode),
            "model": conversation.set_model,
            "effort": conversation.set_effort,
        }
        if name not in setters or not isinstance(value, str):
            raise UsageError(f"there is no option {name!r} with the value {value!r}")
        await setters[name](value)
        if name == "mode" and conversation.current.profile.approval != value:
            raise UsageError(f"the mode {value!r} allows more, and nobody confirmed it")

    # --- questions

    @override
    async def ask(self, question: events.Question) -> events.Answer:
        if self._pump is None:  # the editor does not know the session yet
            return events.Answer()
        await self.send_updates()
        ask = self._ask_text if question.kind == "text" else self._ask_permission
        limit_s = self.conversation.current.profile.session.answer_s
        try:
            async with asyncio.timeout(limit_s):
                return await ask(question)
        except TimeoutError:
            self.log(f"denied: nobody answered within {limit_s:g} s")
        except ConnectionError:
            pass  # the editor is gone
        return events.Answer()

    async def _ask_permission(self, question: events.Question) -> events.Answer:
        self._question_count += 1
        call: Json = {
            "toolCallId": question.call_id or f"question-{self._question_count}",
            "title": escape_controls(question.text),
        }
        if question.detail:
            call["content"] = _format_detail(question)
        options = []
        for option in question.options:
            kind = _OPTION_KINDS[option.choice]
            name = _OPTION_NAMES[option.choice].format(prefix=question.prefix)
            options.append({"optionId": option.choice, "name": name, "kind": kind})
        asked = {"sessionId": self.name, "toolCall": call, "options": options}
        outcome = await self._ask("session/request_permission", asked, "outcome")
        chosen = [option.choice for option in question.options if option.choice == outcome.get("optionId")]
        if outcome.get("outcome") != "selected" or not chosen:
            return events.Answer(choice="deny", by="person")
        return events.Answer(choice=chosen[0], by="person")

    async def _ask_text(self, question: events.Question) -> events.Answer:
        """Ask in words. An editor without forms has nobody who can answer."""
        forms = self._capabilities.get("elicitation") or {}
        if forms.get("form") is None:
            return events.Answer()
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        message = f"{question.text}\n{question.detail}".strip()
        asked: Json = {"sessionId": self.name, "mode": "form", "message": message, "requestedSchema": schema}
        if question.call_id:
            asked["toolCallId"] = question.call_id
        content = await self._ask("elicitation/create", asked, "content")
        text = content.get("answer")
        if not isinstance(text, str):
            return events.Answer(choice="deny", by="person")
        return events.Answer(choice="allow", by="person", text=text)

    async def _ask_line(self, label: str) -> str:
        """Ask for the line that a slash command or a change of the mode wants."""
        question = events.Question(kind="text", subject="", text=label.strip())
        answer = await self.ask(question)
        return f"{answer.text}\n"

    async def _ask_for_file(self, method: str, asked: Json) -> Any:
        """Send a request about a file. Raise TimeoutError if the editor takes too long."""
        limit_s = min(_FILE_LIMIT_S, self.conversation.current.profile.session.answer_s)
        async with asyncio.timeout(limit_s):
            return await self._ask_editor(method, {"sessionId": self.name, **asked})

    async def _ask(self, method: str, asked: Json, key: str) -> Json:
        """Send a request and return an object of its answer. A wrong answer is an empty object."""
        try:
            answer = await self._ask_editor(method, asked)
        except RequestError as error:
            self.log(f"denied, as the editor failed to ask: {error}")
            return {}
        found = answer.get(key) if isinstance(answer, dict) else None
        return found if isinstance(found, dict) else {}


def _format_detail(question: events.Question) -> list[Json]:
    """Show the detail of a question: the diff of a file as one, anything else as text."""
    detail = escape_controls(question.detail)
    if question.kind in ("change", "outside"):
        diffs = make_diffs(question.subject, detail)
        if diffs:
            return diffs
    return [make_content(detail)]


def make_error(error: GooseLikeError, *, is_key_missing: bool = False) -> RequestError:
    """Make the error of the protocol: a missing key, a mistake of the caller, or a failure."""
    if is_key_missing or isinstance(error, CredentialError):
        return RequestError(-32000, str(error))
    if isinstance(error, UsageError):
        return RequestError(-32602, str(error))
    return RequestError(-32603, str(error))
