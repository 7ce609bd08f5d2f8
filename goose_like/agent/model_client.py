"""The requests to the model: its prompt and messages, and a second attempt when the server refuses the first."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goose_like.agent.compaction.moderators import Moderator
from goose_like.core import events
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import ContextLengthError, ProviderError
from goose_like.core.example import Example
from goose_like.core.history import PROMPT_STATE_KEY, History
from goose_like.core.masking import mask_value
from goose_like.core.message import Message, Usage
from goose_like.core.tool import Tool
from goose_like.providers.base import HostedTools, Model, Request, TellsFacts
from goose_like.providers.foreign_code import name_faults
from goose_like.providers.retry import RetryPolicy
from goose_like.providers.vendor_hosts import list_vendor_hosts

from .answer_stream import estimate_input_tokens, stream_answer
from .attached_files import find_excess, select_messages
from .budget import Budget
from .journal import Journal
from .prompt_changes import find_prompt_change
from .refused_content import find_refused_content
from .reminders import Reminders
from .toolkit_hooks import ToolkitHooks
from .view import ExchangeView

if TYPE_CHECKING:
    from goose_like.providers.json_answer import AnswerSchema

MAX_CORRECTIONS = 3
"""How often an answer goes back to the model that does not fit the schema of its turn."""


@dataclass(frozen=True, slots=True)
class ModelClient:
    """The client of an exchange for its processor, which answers with these tools and this system prompt.

    `reached_hosts` gets the hosts that the server reached with tools of its own.
    """

    model: Model
    view: ExchangeView
    system: str
    tools: Mapping[str, Tool]
    examples: Sequence[Sequence[Example]]
    journal: Journal
    moderator: Moderator
    reminders: Reminders
    hooks: ToolkitHooks
    retry_policy: RetryPolicy
    budget: Budget
    hosted: HostedTools
    reached_hosts: set[str]

    @property
    def _history(self) -> History:
        return self.journal.history

    async def ask(self) -> events.MessageCompleted:
        """Ask for the next message. If the server refuses content, or the length, ask once more without it.

        Raises:
            ProviderError: no complete answer came.
            BudgetError: the budget does not allow the request.
        """
        await self._fetch_facts()
        await self.reminders.add_before_request()
        await self._apply_moderator()
        self._leave_out_excess()
        try:
            return await self._send_request()
        except ProviderError as error:
            is_changed = self._leave_out_refused(error) or await self._shrink(error)
            if not is_changed:
                raise
        return await self._send_request()

    def update_prompt(self) -> None:
        """Record the prompt before the first request. Later, tell the model what is different now."""
        wanted = self._describe_prompt()
        prompt = self._history.context.prompt
        known = self._history.context.known_prompt
        if prompt is None or known is None or self.moderator.rewrites_each_step:
            if wanted != prompt:
                self._record_prompt(wanted)  # a moderator that rewrites keeps no cache, no thinking and no changes
            return
        tools = {tool.name: tool for tool in wanted.tools}
        # Each model has levels of its own, and the default of a server has no name.
        effort = None
        if self.model.effort and self.model.label == prompt.model:
            effort = self.model.effort
        change = find_prompt_change(known, wanted.system, tools, effort)
        if change is not None:
            self.journal.emit(change)

    def _describe_prompt(self) -> events.PromptRecorded:
        """Describe the prompt of now in the form in which the session file has it."""
        prompt = events.PromptRecorded(
            system=self.system,
            tools=tuple([tool.spec for tool in self.tools.values()]),
            model=self.model.label,
            effort=self.model.effort,
        )
        return mask_value(prompt)

    def _record_prompt(self, prompt: events.PromptRecorded) -> None:
        content = repr((prompt.system, prompt.tools))
        digest = hashlib.sha256(content.encode()).hexdigest()[:16]
        if digest != self._history.state.get(PROMPT_STATE_KEY):
            self.journal.emit(events.StateSaved(toolkit=PROMPT_STATE_KEY, value=digest))
        self.journal.emit(prompt)

    async def _fetch_facts(self) -> None:
        provider = self.model.provider
        if isinstance(provider, TellsFacts):
            with name_faults(type(provider), "fetch_facts"):
                await provider.fetch_facts(self.model.name)

    async def _apply_moderator(self) -> None:
        """Record what the moderator decides about the messages of the next request."""
        for event in await self.moderator.rewrite(self._history, self.view):
            self.journal.emit(event)
            if isinstance(event, events.Compacted) and not event.is_routine:
                await self._restore_context(event)

    async def correct_answer(self, wanted: "AnswerSchema", problems: Sequence[str]) -> None:
        """Ask again for an answer that does not fit a schema, at most three times, and record the one that does.

        Raises:
            ProviderError: no answer came, or it was still wrong.
        """
        from goose_like.providers.json_answer import answer_json  # few turns need it

        self.journal.emit(events.Reminded(text=wanted.explain(problems)))
        self.journal.emit(events.Status(text="the model corrects its answer"))

        def record(usage: Usage) -> None:
            recorded = events.UsageRecorded(model=self.model.price_label, usage=usage, purpose="corrected answer")
            self.journal.emit(recorded)

        # Without tools: their calls would be taken for the answer.
        request = replace(
            self._build_request(), tools=(), deferred_tools=(), added_tools=(), allowed_tools=None, examples=()
        )
        policy = self.retry_policy
        tokens = estimate_input_tokens(request, self._history)
        async with self.budget.reserve(self.model, tokens, is_step=False):
            value = await answer_json(self.model.provider, request, wanted, policy, record, attempts=MAX_CORRECTIONS)
        text = json.dumps(value, ensure_ascii=False)
        self.journal.emit(events.MessageCompleted(message=Message.assistant(text)))

    async def _send_request(self) -> events.MessageCompleted:
        request = self._build_request()
        async with self.budget.reserve(self.model, estimate_input_tokens(request, self._history)):
            answer = await stream_answer(self.model, request, self.retry_policy, self.journal, self.budget)
        self.reached_hosts.update(list_vendor_hosts(answer.message))
        return answer

    def _build_request(self) -> Request:
        prompt = self._history.context.prompt
        assert prompt is not None  # each turn begins with it
        first_effort = None
        if self.model.effort and self.model.label == prompt.model:
            first_effort = prompt.effort
        session = self.journal.session
        return Request(
            model=self.model.name,
            system=prompt.system,
            messages=tuple(select_messages(self._history, self.model)),
            tools=prompt.listed_tools,
            deferred_tools=prompt.deferred_tools,
            images=session.outputs,
            session=session.folder.name,
            max_tokens=self.model.max_tokens,
            temperature=self.model.temperature,
            added_tools=self._history.context.added_tools,
            allowed_tools=tuple(self.tools),
            examples=self.examples,
            first_effort=first_effort,
            hosted=self.hosted.narrow(quotes_model=self._history.context.quotes_model),
        )

    def _leave_out_excess(self) -> None:
        """Leave out the oldest images and PDF files that the server would refuse."""
        if self.model.file_limits is None or not self._history.has_images:
            return
        excess = find_excess(self._history, self.journal.session.outputs, self.model.file_limits)
        if excess is not None:
            event, note = excess
            self.journal.log(note)
            self.journal.emit(event)

    def _leave_out_refused(self, error: ProviderError) -> bool:
        """Leave out the content that a server refused. Return whether there is any."""
        refused = find_refused_content(error, self._history)
        if refused is None:
            return False
        event, note = refused
        self.journal.emit(events.Retrying(text=f"{error}; {note}", wait_s=0))
        self.journal.emit(event)
        return True

    async def _shrink(self, error: ProviderError) -> bool:
        """Shorten a context that is too long. Return whether that was possible."""
        if not isinstance(error, ContextLengthError):
            return False
        smaller = await self.moderator.shrink(self._history, self.view)
        is_broken_off = self._history.messages[-1].role == "assistant"
        if smaller is None or is_broken_off:
            return False
        if not smaller.is_routine:
            await self.hooks.before_compaction()
        self.journal.emit(smaller)
        await self._restore_context(smaller)
        return True

    async def _restore_context(self, compacted: events.Compacted) -> None:
        """Add what a summary left out: the prompt, which may have changed, and the facts of toolkits."""
        if not compacted.is_routine:
            await self.hooks.after_compaction(compacted.summary)
        self.update_prompt()
        await self.reminders.add_context_updates()
