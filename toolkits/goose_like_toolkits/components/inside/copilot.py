"""Copilot: the components that together do a task, and how they are started and ended."""

import abc
import argparse
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .class_dict import ClassDict
from .context import Context
from .initializer import create, create_component
from .lifetimes import after, finalize_all
from .plugin import AbstractPlugin, expect, told


class Copilot(AbstractPlugin):
    """A component that runs; it may be a plugin of another one too."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is neither "copilot" nor "agent".
        """
        super().__init__(config)
        expect(self, "copilot", "agent")

    @abc.abstractmethod
    def config_copilot_resources(self) -> None:
        """Gives its components their resources."""

    @abc.abstractmethod
    def config_copilot_context(self) -> None:
        """Gives its components their context."""

    @property
    @abc.abstractmethod
    def copilot_context(self) -> Any:
        """That context, None before there is one."""

    @abc.abstractmethod
    def initialize_copilot(self) -> None:
        """Makes its resources and components ready."""

    @abc.abstractmethod
    def finalize_copilot(self) -> None:
        """Gives them up again."""

    @abc.abstractmethod
    def run_interaction(self) -> None:
        """Does the task."""

    @abc.abstractmethod
    def run(self) -> None:
        """From making ready to giving up."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class BasicCopilot(Copilot):
    """The components that its configuration names; the task is the interactor's."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self.resource_manager = self._made("resource_manager")
        self.storage = self._made("storage")
        self.user_interface = self._made("user_interface")
        self.cerebrum = self._made("cerebrum")
        self.plugin_manager = self._made("plugin_manager")
        self.message_manager = self._made("message_manager")
        parts = (self.resource_manager, self.cerebrum, self.plugin_manager, self.message_manager)
        self.interactor = self._made("interactor", *parts)
        self._outer_resources: list[Any] | None = None
        self._copilot_context: Context | None = None
        self._running = threading.Event()
        self._running_thrd: threading.Thread | None = None
        self._error: BaseException | None = None
        self._ready: list[Any] | None = None  # None: initialize_copilot was not called, or is another class's

    def _made(self, role: str, *args: Any) -> Any:
        named = self.config.config.get(role)
        return create_component(named, *args) if named else None

    def _components(self) -> list[Any]:
        roles = (self.storage, self.user_interface, self.cerebrum, self.plugin_manager, self.message_manager)
        return [component for component in (*roles, self.interactor) if component is not None]

    def config_resources(self, resource_manager: Any) -> None:
        super().config_resources(resource_manager)
        if self.config.config.inherit_resources:
            self._outer_resources = resource_manager.resources

    def config_copilot_resources(self) -> None:
        for component in self._components():
            component.config_resources(self.resource_manager)

    def config_copilot_context(self) -> None:
        self._copilot_context = Context(storage=self.storage, user_interface=self.user_interface)
        manager = [] if self.resource_manager is None else [self.resource_manager]
        for component in [*manager, *self._components()]:
            component.config_context(self._copilot_context)

    @property
    def copilot_context(self) -> Any:
        return self._copilot_context

    def initialize_copilot(self) -> None:
        """Resources first, then what each component is given, then the plugins and the interactor's prompts."""
        self._ready = []
        if self.resource_manager is not None:
            self._ready.append(self.resource_manager)
            self.resource_manager.initialize()
            for resource in self._shared_resources():
                self.resource_manager.add_resource(resource)
            self.config_copilot_resources()
        self.config_copilot_context()
        for component in self._components():
            self._ready.append(component)
            component.initialize()
        if self.interactor is not None:
            self.interactor.setup_prompts()
            self.interactor.setup_plugins()

    def _shared_resources(self) -> list[Any]:
        if self.config.config.inherit_resources and self._outer_resources is not None:
            return self._outer_resources
        return self.resources if self.config.config.inherit_self_resources else []

    def finalize_copilot(self) -> None:
        """What was begun to be made ready, the last first; a component that fails stops no other."""
        manager = [] if self.resource_manager is None else [self.resource_manager]
        ready, self._ready = self._ready, []
        finalize_all([*manager, *self._components()][::-1] if ready is None else ready[::-1])

    def run_interaction(self) -> None:
        """
        Raises:
            ValueError: when there is no interactor.
        """
        self._running.set()
        if self.interactor is None:
            raise ValueError(f"{told(self)} has no interactor, which would do its task: name one in its config")
        self.interactor.start()
        self.interactor.interact_loop()

    def initialize(self) -> None:
        """Starts it beside whoever called, and returns once it runs.

        Raises:
            BaseException: what made it end before it ran.
        """
        super().initialize()
        self._running_thrd = threading.Thread(target=self._run_beside, daemon=True)
        self._running_thrd.start()
        self._running.wait()
        if self._error is not None:
            raise self._error

    def _run_beside(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self._error = error
        finally:
            self._running.set()

    def finalize(self) -> None:
        """Asks it to end, and waits until it has.

        Raises:
            BaseException: what it ended with.
        """
        if self._running_thrd is not None:
            if self.interactor is not None:
                self.interactor.stop()
            if self.user_interface is not None:
                self.user_interface.interrupt()
            self._running_thrd.join()
            if self._error is not None and not isinstance(self._error, InterruptedError):
                raise self._error
        super().finalize()

    def run(self) -> None:
        """Whatever happens, it is given up at the end; the error that counts is the first one."""
        try:
            self.initialize_copilot()
            self.run_interaction()
        except BaseException as error:
            after(error, self.finalize_copilot)
            raise
        self.finalize_copilot()


Agent = Copilot
BasicAgent = BasicCopilot


def get_args(args: Sequence[str] | None = None) -> tuple[ClassDict, list[str]]:
    """The options that name a component, and the arguments that are none."""
    parser = argparse.ArgumentParser()
    for option in ("--group-id", "--artifact-id", "--version", "--config-file"):
        parser.add_argument(option)
    known, others = parser.parse_known_args(args)
    return ClassDict(**vars(known)), others


def build(param: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
    """The component of these coordinates, or of a `config_file`.

    Raises:
        ValueError: when neither is given.
    """
    if all(param.get(key) for key in ("group_id", "artifact_id", "version")):
        return create_component(param, *args, **kwargs)
    if not param.get("config_file"):
        raise ValueError("a component is named by group_id, artifact_id and version, or by config_file: give either")
    return create(None, None, param["config_file"], *args, **kwargs)


def run(param: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
    """Makes a copilot and runs it.

    Raises:
        ValueError: when the component is none.
    """
    made = build(param, *args, **kwargs)
    if not isinstance(made, Copilot):
        raise ValueError(f"{told(made)} is no copilot, so there is nothing to run")
    made.run()
