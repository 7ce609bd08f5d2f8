"""The Python API with the names of aiflows: a boss as a class, with flows of the program as its parts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

from typing_extensions import override

from goose_like.config.profile import Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import UsageError
from goose_like.core.events import Logged
from goose_like.core.notifier import Notifier
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.setup import open_boss
from goose_like_toolkits.boss.spec import RoleSettings

from .configuration import Configuration, read_configuration

F = TypeVar("F", bound=Callable[..., Any])

_Input = Mapping[str, Any]
_Outputs = list[dict[str, str]]


class Flow:
    """A flow with its configuration, `flow_config`."""

    def __init__(self, flow_config: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.flow_config: dict[str, Any] = {**(flow_config or {}), **kwargs}

    @classmethod
    def instantiate_from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build a flow from its configuration. Raise ProfileError if a key or value is wrong."""
        return cls(flow_config=config)

    @property
    def name(self) -> str:
        """Name of the flow in error messages."""
        return str(self.flow_config.get("name") or type(self).__name__)


class AtomicFlow(Flow, ABC):
    """An executor, planner, controller or memory flow of a program."""

    @abstractmethod
    def run(self, input_data: dict[str, Any]) -> Any:
        """Return a dict, for an executor with `result` and `summary`. The method may be async."""


class SequentialFlow(Flow):
    """The base of a boss. The order is always MemoryReading, Planner, CtrlExMem."""


class CircularFlow(Flow):
    """The base of a boss's rounds. The order is always Controller, Executor, MemoryWriting, MemoryReading."""

    @staticmethod
    def output_msg_payload_processor(method: F) -> F:
        """Return the method unchanged. In aiflows, this decorator marks an output interface."""
        return method

    @staticmethod
    def input_msg_payload_builder(method: F) -> F:
        """Return the method unchanged. In aiflows, this decorator marks an input interface."""
        return method


class _GoalFlow(Flow):
    """A flow that works on a goal. The profile, or its name, gives models and permissions."""

    def __init__(
        self,
        memory_files: Mapping[str, str] | None = None,
        *,
        flow_config: Mapping[str, Any] | None = None,
        profile: Profile | str | None = None,
        notifier: Notifier | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(flow_config=flow_config, **kwargs)
        self.memory_files = dict(memory_files or {})
        self.profile = profile
        self.notifier = notifier or Notifier()

    @classmethod
    @override
    def instantiate_from_config(cls, config: Mapping[str, Any], **kwargs: Any) -> Self:
        given = config.get("memory_files")
        files = dict(given) if isinstance(given, Mapping) else {}
        # An argument of its own, since constructors of subclasses may require it.
        return cls(memory_files=files, flow_config=config, **kwargs)

    @cached_property
    def configuration(self) -> Configuration:
        """The boss that `flow_config` describes."""
        config = {key: value for key, value in self.flow_config.items() if key != "_target_"}
        owner = self if isinstance(self, CtrlExMemFlow) else None
        return read_configuration(config, imports=True, owner=owner)

    def run(self, input_data: Mapping[str, Any]) -> dict[str, str]:
        """Work on the `goal` in `input_data`. Return `result`, `summary` and `status`.

        `plan` is used instead of a new one, `logs` are those of earlier work, and `memory_files` are further files.
        Raise UsageError without a goal, or if an event loop is running; await `arun` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.arun(input_data))
        raise UsageError("`run` would block the running event loop; write `await flow.arun(input_data)`")

    async def arun(self, input_data: Mapping[str, Any]) -> dict[str, str]:
        """Work on the goal like `run`, inside a running event loop."""
        goal = input_data.get("goal")
        if not isinstance(goal, str) or not goal.strip():
            raise UsageError(f"the goal is missing; give `{{'goal': '...'}}`, not {dict(input_data)!r}")
        boss, notes = self.configuration
        boss = self._add_input(boss, input_data)
        profile = self.profile
        if not isinstance(profile, Profile):
            profile, _ = load_profile(profile)
        async with AsyncExitStack() as stack:
            session = Session.temporary()
            stack.callback(session.close)
            models = None
            if _needs_model(boss):
                models = open_models(profile)
                for provider in models.providers:
                    stack.push_async_callback(provider.close)
            for note in notes:
                self.notifier.notify(Logged(text=note))
            opened = open_boss(boss, profile, self.notifier, session=session, models=models)
            run = await stack.enter_async_context(opened)
            outcome = await run.work(goal)
            return outcome.model_dump()

    def _add_input(self, boss: Boss, input_data: Mapping[str, Any]) -> Boss:
        """Return the boss with the memory files, the plan and the log of its input."""
        files = {**boss.spec.memory_files, **self.memory_files, **(input_data.get("memory_files") or {})}
        spec = boss.spec.model_copy(update={"memory_files": files})
        parts = boss.parts
        plan = input_data.get("plan")
        if plan:
            spec = spec.model_copy(update={"planner": RoleSettings()})
            parts = {**parts, "Planner": lambda _: str(plan)}
        former_log = str(input_data.get("logs") or "")
        return replace(boss, spec=spec, parts=parts, former_log=former_log)


class CtrlExMemFlow(CircularFlow, _GoalFlow, ABC):
    """The rounds of a boss. A subclass decides on each answer of the controller."""

    @abstractmethod
    def detect_finish_or_continue(self, output_payload: dict[str, Any], src_flow: Any) -> dict[str, Any]:
        """Return `{"branch", "branch_input_data"}`, or `{early_exit_key: True, "result", "summary"}`."""


class AbstractBossFlow(SequentialFlow, _GoalFlow):
    """A boss: memory, planner, controller and executors as configured."""

    @classmethod
    @override
    def instantiate_from_config(cls, config: Mapping[str, Any], **kwargs: Any) -> Self:
        flow = super().instantiate_from_config(config, **kwargs)
        _ = flow.configuration  # report mistakes now
        return flow


class FlowLauncher:
    """Runs a flow over data."""

    @staticmethod
    def launch(
        flow_with_interfaces: Mapping[str, Any], data: _Input | list[_Input], **ignored: Any
    ) -> tuple[_Outputs, _Outputs]:
        """Return the outputs for all data twice. In aiflows, the first list is for programs, the second for people."""
        inputs = [data] if isinstance(data, Mapping) else data
        outputs = [flow_with_interfaces["flow"].run(each) for each in inputs]
        return outputs, [dict(output) for output in outputs]


def _needs_model(boss: Boss) -> bool:
    has_planner = boss.spec.planner is None or "Planner" in boss.parts
    if not has_planner or "Controller" not in boss.parts:
        return True
    return any(map(_needs_model, boss.bosses.values()))
