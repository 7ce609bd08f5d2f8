"""The Python API, with aiflows' names: a boss as a class, from a configuration with flows in it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar

from goose_like.config.profile import Profile, find_profile
from goose_like.core.errors import UsageError
from goose_like.core.notifier import Notifier
from goose_like.core.tool import ToolError
from goose_like.providers.base import Model
from goose_like.providers.registry import open_models
from goose_like.sessions.session import Session
from goose_like_toolkits.boss.flow.boss import Boss
from goose_like_toolkits.boss.flow.executor import Own
from goose_like_toolkits.boss.spec import Part

from .configuration import read_configuration
from .flow_memory import Recall, Writing
from .flow_provider import ControllerFlow, PlannerFlow
from .importer import Configuration, Role

_ROLES: tuple[Role, ...] = ("Planner", "Controller", "MemoryWriting")

F = TypeVar("F", bound=Callable[..., Any])


class Flow:
    """What has a configuration. `flow_config` is all of it."""

    def __init__(self, flow_config: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.flow_config: dict[str, Any] = {**(flow_config or {}), **kwargs}

    @classmethod
    def instantiate_from_config(cls, config: Mapping[str, Any]) -> Self:
        """A flow as the configuration says.

        Raises:
            ProfileError: a key or value is wrong; the text says which.
        """
        return cls(flow_config=config)

    @property
    def name(self) -> str:
        """What it is called in errors."""
        return str(self.flow_config.get("name") or type(self).__name__)


class AtomicFlow(Flow, ABC):
    """An executor, planner, controller or memory of one's own."""

    @abstractmethod
    def run(self, input_data: dict[str, Any]) -> Any:
        """A dict, for an executor with `result` and `summary`. May be `async`."""


class SequentialFlow(Flow):
    """The base of a boss: what it runs in sequence is always MemoryReading, Planner and CtrlExMem."""


class CircularFlow(Flow):
    """The base of a boss's rounds: Controller, Executor, MemoryWriting and MemoryReading."""

    @staticmethod
    def output_msg_payload_processor(method: F) -> F:
        """Marks what a topology may name as an output interface; it stays a plain method."""
        return method

    @staticmethod
    def input_msg_payload_builder(method: F) -> F:
        """Marks what a topology may name as an input interface; it stays a plain method."""
        return method


class _Working(Flow):
    """What is asked with a goal. `profile` (or its name) gives the models, and what may be done on this machine."""

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
    def instantiate_from_config(cls, config: Mapping[str, Any], **kwargs: Any) -> Self:
        """A flow as the configuration says; a subclass's constructor may ask for `memory_files`.

        Raises:
            ProfileError: a key or value is wrong; the text says which.
        """
        files = config.get("memory_files")
        return cls(memory_files=dict(files) if isinstance(files, Mapping) else {}, flow_config=config, **kwargs)

    @cached_property
    def configuration(self) -> Configuration:
        """What the flow was told, read."""
        return self._configuration()

    def run(self, input_data: Mapping[str, Any]) -> dict[str, str]:
        """`result`, `summary` and `status` of the `goal` in `input_data`. Waits; within a running loop await `arun`.

        Raises:
            UsageError: there is no goal, or a loop is running.
            GooseLikeError: there is no model to work with, or no sandbox.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.arun(input_data))
        raise UsageError("an event loop is running here, which `run` would block; write `await flow.arun(input_data)`")

    async def arun(self, input_data: Mapping[str, Any]) -> dict[str, str]:
        """As `run`, within a running loop."""
        goal = input_data.get("goal")
        if not isinstance(goal, str) or not goal.strip():
            raise UsageError(f"what is the goal? give `{{'goal': '...'}}`, not {dict(input_data)!r}")
        configuration = _with_files(self.configuration, self.memory_files | (input_data.get("memory_files") or {}))
        if input_data.get("plan"):
            configuration = _with_plan(configuration, str(input_data["plan"]))
        profile = self.profile if isinstance(self.profile, Profile) else find_profile(self.profile)[0]
        async with AsyncExitStack() as stack:
            session = Session.temporary()
            stack.callback(session.close)
            models = open_models(profile) if _asks_models(configuration) else None
            for provider in models.providers if models else ():
                stack.push_async_callback(provider.close)
            for sentence in configuration.unmapped:
                self.notifier.log(sentence)
            boss = _boss(configuration, models.processor if models else None, goal)
            opened = boss.opened(profile, self.notifier, session=session, models=models)
            run = await stack.enter_async_context(opened)
            return (await run.work(goal)).model_dump()

    def _configuration(self) -> Configuration:
        raise NotImplementedError


class CtrlExMemFlow(CircularFlow, _Working, ABC):
    """The rounds of a boss, whose subclass says what a controller's answer means."""

    @abstractmethod
    def detect_finish_or_continue(self, output_payload: dict[str, Any], src_flow: Any) -> dict[str, Any]:
        """`{"branch", "branch_input_data"}`, or `{early_exit_key: True, "result", "summary"}`."""

    def _configuration(self) -> Configuration:
        loop = {key: value for key, value in self.flow_config.items() if key != "_target_"}
        alone = {"subflows_config": {"CtrlExMem": loop}, "topology": [{"flow": "CtrlExMem"}]}
        return read_configuration(alone, imports=True, owner=self)


class AbstractBossFlow(SequentialFlow, _Working, ABC):
    """A boss: memory, planner, controller and executors, as its configuration says."""

    @classmethod
    def instantiate_from_config(cls, config: Mapping[str, Any], **kwargs: Any) -> Self:
        """As for any flow; all of it is read now, and its flows are made."""
        flow = super().instantiate_from_config(config, **kwargs)
        _ = flow.configuration
        return flow

    def _configuration(self) -> Configuration:
        config = {key: value for key, value in self.flow_config.items() if key != "_target_"}
        return read_configuration(config, imports=True)


class FlowLauncher:
    """Runs a flow over data."""

    @staticmethod
    def launch(
        flow_with_interfaces: Mapping[str, Any], data: Mapping[str, Any] | list[Mapping[str, Any]], **ignored: Any
    ) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """What the flow gives to each of the data, twice, as aiflows has it for machines and for people."""
        given = [data] if isinstance(data, Mapping) else data
        outputs = [flow_with_interfaces["flow"].run(each) for each in given]
        return outputs, [dict(output) for output in outputs]


def _boss(configuration: Configuration, model: Model | None, goal: str = "") -> Boss:
    """The boss with the flows in their places; `model` is asked where there is none."""
    parts, spec = configuration.parts, configuration.spec
    recall = Recall(parts.get("MemoryReading"), goal)
    planner, controller, writing = (parts.get(role) for role in _ROLES)
    flow = ControllerFlow(controller, recall, configuration.detect, spec.early_exit_key) if controller else None
    return Boss(
        spec,
        flows=configuration.flows,
        bosses={name: _boss(below, model) for name, below in configuration.bosses.items()},
        detect=None if flow else configuration.detect,
        planner=PlannerFlow(planner, recall).model() if planner else model,
        controller=flow.model() if flow else model,
        reading=recall,
        writing=Writing(writing) if writing else None,
    )


def _asks_models(configuration: Configuration) -> bool:
    is_planned = configuration.spec.planner is None or "Planner" in configuration.parts
    is_own = is_planned and "Controller" in configuration.parts
    return not is_own or any(map(_asks_models, configuration.bosses.values()))


def _with_files(configuration: Configuration, files: dict[str, str]) -> Configuration:
    return replace(
        configuration,
        spec=configuration.spec.model_copy(update={"memory_files": configuration.spec.memory_files | files}),
    )


class _GivenPlan(Flow):
    """The planner of rounds whose plan is the caller's."""

    def __init__(self, plan: str) -> None:
        super().__init__(name="Planner")
        self._plans = [plan]

    def run(self, input_data: Mapping[str, Any]) -> str:
        if not self._plans:
            raise ToolError("the plan is the caller's; change it with `update_plan`")
        return self._plans.pop()


def _with_plan(configuration: Configuration, plan: str) -> Configuration:
    spec = configuration.spec.model_copy(update={"planner": Part()})
    return replace(configuration, spec=spec, parts={**configuration.parts, "Planner": Own(_GivenPlan(plan))})
