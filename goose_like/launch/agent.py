"""The agent as a library: a conversation whose turns a program starts, and whose events it reads."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from typing_extensions import override

from goose_like.agent.build import ClientPart
from goose_like.agent.channel import Channel
from goose_like.agent.turn_request import TurnRequest
from goose_like.config.profile import Limits, Profile
from goose_like.core.dataclass import dataclass
from goose_like.core.errors import PromptBlockedError, UsageError
from goose_like.core.events import Answer, Event, Question, TurnFinished
from goose_like.core.message import Message, Usage, join_answers
from goose_like.core.tool import make_tool
from goose_like.providers.json_answer import AnswerSchema

from .command_line import ProfileOptions
from .output import find_structured_answer, make_run_finished
from .scheduler import TurnScheduler, open_conversation
from .start import SessionRequest

Ask = Callable[[Question], Answer | Awaitable[Answer]]
"""A callback that answers questions of the agent."""

Schema = type[BaseModel] | Mapping[str, Any]
"""The schema of an answer: a pydantic model, or a JSON schema."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a turn.

    `result` is the answer as text, and `structured` its value if the turn had a schema: an instance, if that was a
    pydantic model. `usage` has the tokens of all models, and `cost_usd` is None when a price is unknown. `steps` are
    the requests to the model. `denied` are the questions that nobody could answer. `reason` says why the turn ended:
    `stop` means that the model finished; `detail` has a sentence on every other reason. `exit_code` is that of `run`.
    """

    result: str
    structured: Any
    usage: Usage
    cost_usd: float | None
    steps: int
    denied: tuple[Question, ...]
    reason: str
    detail: str
    exit_code: int
    session: str


class _Front(Channel):
    """The channel of the events, whose questions the program answers."""

    def __init__(self, ask: Ask | None) -> None:
        super().__init__()
        self._ask = ask

    @override
    async def ask(self, question: Question) -> Answer:
        if self._ask is None:
            return Answer()
        answer = self._ask(question)
        return await answer if inspect.isawaitable(answer) else answer


class Agent:
    """A conversation between a program and a model with its tools, in a folder.

    Open it with `async with`. `options` are those of `ProfileOptions`: `profile`, `model`, `effort`, `sandbox`,
    `approval`, `is_trusted`, `add_dirs` and `allowed_tools`. `session` names a new session, or with `is_resumed` a
    saved one (without a name: the newest of the folder); `is_forked` resumes a copy. `limits` holds for each turn:
    fields that are set replace those of the profile. `change` changes the profile, for example to that of a recipe.
    `tools` are functions with type hints and docstrings, which run in this process. `ask` answers questions; without
    it, each is denied, as in mode `unattended`.
    """

    def __init__(
        self,
        profile: str | None = None,
        *,
        cwd: str | Path | None = None,
        session: str | None = None,
        is_resumed: bool = False,
        is_forked: bool = False,
        is_saved: bool = True,
        limits: Limits | None = None,
        change: Callable[[Profile], Profile] | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        ask: Ask | None = None,
        **options: Any,
    ) -> None:
        try:
            chosen = ProfileOptions(profile, **options)
        except TypeError as error:
            raise UsageError(f"Agent: {error}; the options are those of ProfileOptions") from error
        self._request = SessionRequest(
            chosen, session, is_resumed=is_resumed or is_forked, is_forked=is_forked, is_saved=is_saved
        )
        self._folder = Path(cwd) if cwd is not None else None
        self._limits = limits
        self._change_more = change
        self._tools = tuple(tools)
        self._ask = ask
        self._front = _Front(ask)
        self._stack = AsyncExitStack()
        self._conversation: TurnScheduler | None = None

    async def __aenter__(self) -> Self:
        tools = {tool.name: tool for tool in map(make_tool, self._tools)}
        opening = open_conversation(
            self._request, self._front, self._folder, change=self._change, client=ClientPart(tools=tools)
        )
        self._conversation = await self._stack.enter_async_context(opening)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def conversation(self) -> TurnScheduler:
        """The scheduler of the turns, which also runs slash commands and changes the model or the mode."""
        if self._conversation is None:
            raise UsageError("the agent is not open; write: async with Agent() as agent")
        return self._conversation

    @property
    def session(self) -> str:
        """The name of the session."""
        return self.conversation.exchange.session.name

    async def run(self, message: str | Message, *, schema: Schema | None = None) -> RunResult:
        """Run one turn to its end. With a `schema` the answer is a value that fits it.

        Raises:
            UsageError: a turn runs already, or the schema is wrong.
            PromptBlockedError: a toolkit blocks the message.
        """
        wanted = read_schema(schema) if schema is not None else None
        async for _ in self._stream(TurnRequest(message, answer_schema=wanted)):
            pass
        return self._make_result(schema, wanted)

    def stream(self, message: str | Message) -> AsyncGenerator[Event]:
        """Run one turn, and yield its events as they happen. Leaving the stream early stops the turn.

        Raises:
            UsageError: a turn runs already.
            PromptBlockedError: a toolkit blocks the message.
        """
        return self._stream(TurnRequest(message))

    async def undo(self) -> list[str]:
        """Take back the last turn: its files and its part of the conversation. Return what could not be restored.

        Files that somebody else changed too stay as they are.

        Raises:
            UsageError: there is no turn, or the session records no changes because it is not saved.
        """
        exchange = self.conversation.exchange
        if not exchange.history.turns or exchange.undo is None:
            raise UsageError("there is nothing to undo; only sessions that are saved record their changes")
        turn = exchange.history.turns[-1]
        plan = await exchange.undo.plan_restore(turn.number)
        kept = [f"{change.path} was changed by somebody else" for change in plan.changes if change.is_edited]
        problems = await exchange.undo.restore(plan)
        exchange.rewind(turn.start)
        return kept + problems

    def fork(self) -> "Agent":
        """Return an agent that is still closed, for a copy of this session as it is when you open the agent."""
        fork = Agent(
            session=self.session,
            is_forked=True,
            limits=self._limits,
            change=self._change_more,
            tools=self._tools,
            ask=self._ask,
        )
        fork._request = replace(fork._request, options=self._request.options)
        fork._folder = self._folder
        return fork

    async def _stream(self, request: TurnRequest) -> AsyncGenerator[Event]:
        async with aclosing(self._front.stream(self._run_turn(request))) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def _run_turn(self, request: TurnRequest) -> TurnFinished:
        conversation = self.conversation
        await conversation.start_turn(request)
        try:
            end = await conversation.finish()
        except asyncio.CancelledError:
            conversation.stop()
            await conversation.finish()
            raise
        if end is None:
            raise PromptBlockedError("no turn started, as a toolkit blocked the message; its reason is in the events")
        return end

    def _make_result(self, schema: Schema | None, wanted: AnswerSchema | None) -> RunResult:
        history = self.conversation.exchange.history
        end = history.last_turn
        assert end is not None
        result = end.answer or join_answers(history.messages[history.turns[-1].start :])
        structured = None
        if wanted:
            result, structured = find_structured_answer(history, wanted)
        if result and isinstance(schema, type):
            structured = schema.model_validate(structured)
        finished = make_run_finished(history.usage.turn_by_model, end.reason, end.exit_code, end.detail)
        return RunResult(
            result=result,
            structured=structured,
            usage=finished.usage,
            cost_usd=finished.cost_usd,
            steps=history.turn_step_count,
            denied=tuple(history.unanswered_questions),
            reason=end.reason,
            detail=end.detail,
            exit_code=end.exit_code,
            session=self.session,
        )

    def _change(self, profile: Profile) -> Profile:
        """Return the profile with the limits that the program set. Without a callback it says that nobody is asked."""
        if self._change_more:
            profile = self._change_more(profile)
        changes: dict[str, Any] = {}
        if self._ask is None and profile.approval == "auto":
            changes["approval"] = "unattended"
        if self._limits is not None:
            changes["limits"] = profile.limits.model_copy(update=self._limits.model_dump(exclude_unset=True))
        return profile.model_copy(update=changes)


def run(message: str | Message, *, schema: Schema | None = None, **options: Any) -> RunResult:
    """Run one turn of a new agent to its end, without `async`. `options` are those of `Agent`.

    This works in a notebook, too: where an event loop runs, the turn gets a thread of its own.
    """
    turn = _run_once(message, schema, options)
    if _is_loop_running():
        return _run_in_thread(turn)
    return asyncio.run(turn)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(turn: Coroutine[Any, Any, RunResult]) -> RunResult:
    """Run a turn in a thread of its own. Ctrl-C, or the stop button of a notebook, ends the turn."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def run_turn() -> RunResult:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await turn

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(asyncio.run, run_turn())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            with suppress(RuntimeError):  # the turn has just ended
                loop.call_soon_threadsafe(task.cancel)
            raise


async def _run_once(message: str | Message, schema: Schema | None, options: Mapping[str, Any]) -> RunResult:
    async with Agent(**options) as agent:
        return await agent.run(message, schema=schema)


def read_schema(schema: Schema) -> AnswerSchema:
    """Read the schema of an answer. An error of a pydantic model goes back to the model, like one of the schema.

    Raises:
        UsageError: it is no JSON schema.
    """
    if isinstance(schema, Mapping):
        return AnswerSchema.read(schema)
    return AnswerSchema.read(schema.model_json_schema(), partial(_check_instance, schema))


def _check_instance(model: type[BaseModel], value: Any) -> list[str]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        problems = []
        for each in error.errors(include_url=False):
            place = ".".join(map(str, each["loc"]))
            problems.append(f"At `{place}`: {each['msg']}.")
        return problems
    return []
