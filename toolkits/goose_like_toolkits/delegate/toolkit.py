"""DelegateToolkit: part of the work, done by an exchange of its own, of which only the result is read."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any

from pydantic import Field, ValidationError

from goose_like.agent.build import build_exchange
from goose_like.agent.subagent import Relay, left_of, narrowed_limits
from goose_like.config.profile import Limits, Profile, ToolkitChoice, find_profile
from goose_like.core.entry_points import did_you_mean
from goose_like.core.errors import ProfileError
from goose_like.core.message import Message, Value
from goose_like.core.tool import current_call
from goose_like.providers.base import Models
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import changed_files
from goose_like.toolkit import Notifier, Requirements, ToolError, Toolkit, tool

_NAME = "delegate"
_SHOWN = 10
_GRANTS = ("private_addresses",)
"""What a toolkit's config may allow, beyond what the workspace decides."""


class Config(Value):
    """What the profile says below `config:`."""

    profiles: tuple[str, ...] = ()
    limits: Limits = Limits()
    depth: int = Field(default=1, ge=1)
    tools: list[str] | None = None


class DelegateToolkit(Toolkit):
    """Helpers that know a task and nothing else, and may do no more than who gave it to them."""

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._asked = _read(self.config)
        # Read now: what is written into profiles later has no say in this session.
        self._profiles = {name: _found(name, at) for at, name in enumerate(self._asked.profiles)}
        self._profiles = self._profiles or {self.profile.name: self.profile}

    def prompt(self) -> str:
        """When to delegate, and to whom."""
        first, *others = self._profiles
        whom = f" Its `profile` is {first}, or one of: {', '.join(others)}." if others else ""
        return (
            "Work that takes many steps and whose result is short (find, compare, review, try) is for `delegate`: only "
            f"the result takes room in this conversation. Tasks that don't touch each other can run side by side.{whom}"
        )

    @tool(time_limit_s=None)
    async def delegate(self, task: str, profile: str = "") -> str:
        """Have a task done by a helper in this folder, with tools of its own. You read its last answer.

        Args:
            task: All that it must know (it sees nothing of this conversation), and what to give back.
            profile: Which helper, where there are several.
        """
        if not task.strip():
            raise ToolError("the task is empty; say what to do, and what to give back")
        chosen = self._narrowed(self._named(profile))
        limits = self._left(chosen.limits)
        call_id = current_call.get("")
        session, relay = self.session.nested(call_id), Relay(self.notifier, call_id, who="a delegate", purpose=_NAME)
        try:
            # In a context of its own: there it is no longer this call that speaks.
            work = self._work(task, chosen, limits, session, relay)
            return await asyncio.create_task(work, context=Context())
        finally:
            session.close()
            if session.is_kept:
                self.notifier.log(f"what the delegate did is in {session.file}")

    async def _work(self, task: str, profile: Profile, limits: Limits, session: Session, relay: Relay) -> str:
        view = self.exchange_view
        is_same = profile.processor in (None, self.profile.processor)
        models = Models(view.processor.model, view.accelerator.model) if is_same else None
        async with build_exchange(
            profile, relay, session=session, within=self.workspace, limits=limits, models=models
        ) as exchange:
            end = await exchange.reply(Message.user(task))
        told = await self.workspace.inspect_changes()
        answers = [message.text for message in session.history.messages if message.role == "assistant"]
        said = next((text for text in reversed(answers) if text.strip()), "(it said nothing)")
        wrote = changed_files(list(session.read()))
        notes = [*told, end.detail, f"took {relay.took()}{_listed(wrote)}"]
        result = "\n".join([said, *(f"[{note}]" for note in notes if note)])
        if end.reason != "stop":
            why = end.reason.replace("_", " ")
            raise ToolError(
                f"the delegate did not finish ({why}); what it did until then stands. It said last:\n{result}"
            )
        return result

    # --- never more than its parent

    def _named(self, name: str) -> Profile:
        if name and name not in self._profiles:
            raise ToolError(f"no profile {name!r} to delegate to; {did_you_mean(name, self._profiles)}")
        return self._profiles[name or next(iter(self._profiles))]

    def _narrowed(self, profile: Profile) -> Profile:
        """With no toolkit that may more than its like here. What commands may, its workspace narrows (`Narrowed`)."""
        toolkits = tuple(choice for found in profile.toolkits if (choice := self._narrowed_toolkit(found)))
        is_same = profile.sandbox == self.profile.sandbox  # perhaps there is none on this machine: that is settled
        sandbox = self.workspace.mode if is_same else profile.sandbox
        return profile.model_copy(update={"toolkits": toolkits, "sandbox": sandbox})

    def _narrowed_toolkit(self, choice: ToolkitChoice) -> ToolkitChoice | None:
        config = choice.config
        if choice.name == _NAME:
            depth = min(_read(config).depth, self._asked.depth - 1)
            return choice.model_copy(update={"config": {**config, "depth": depth}}) if depth else None
        here = next((each.config for each in self.profile.toolkits if each.name == choice.name), {})
        refused = {key: False for key in _GRANTS if config.get(key) and not here.get(key)}
        return choice.model_copy(update={"config": {**config, **refused}})

    def _left(self, theirs: Limits) -> Limits:
        """The smallest of a profile's limits, those of our config, and what is left of this turn's.

        Delegates that were called side by side share that: together they spend no more than one.

        Raises:
            ToolError: nothing is left.
        """
        history, asked = self.session.history, self._asked.limits
        beside = sum(call.name == _NAME and history.is_open(call.id) for call in history.open_calls.values()) or 1
        left = left_of(self.limits, history, beside=beside)
        return narrowed_limits(theirs, left, asked.model_dump(include=asked.model_fields_set - {"output_bytes"}))


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"; wrote {', '.join(paths[:_SHOWN])}{more}" if paths else ""


def _read(config: Mapping[str, Any]) -> Config:
    try:
        return Config.model_validate(config)
    except ValidationError as error:
        fault = error.errors()[0]
        if fault["type"] == "extra_forbidden":
            key, known = str(fault["loc"][-1]), Config if len(fault["loc"]) == 1 else Limits
            text = f"toolkit 'delegate' has no {key!r}; {did_you_mean(key, known.model_fields)}"
        else:
            text = f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}, not {fault['input']!r}"
        raise ProfileError(text, ("config", *fault["loc"])) from error


def _found(name: str, at: int) -> Profile:
    try:
        return find_profile(name)[0]
    except ProfileError as error:
        error.path = ("config", "profiles", at)
        raise
