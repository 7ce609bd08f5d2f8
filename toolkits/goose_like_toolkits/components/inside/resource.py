"""Resource: what is acquired once and shared; and the manager that does so."""

import abc
from collections.abc import Mapping
from typing import Any

from .class_dict import ClassDict
from .context import Context
from .initializer import create_component
from .lifetimes import finalize_all, initialize_all
from .plugin import AbstractPlugin, add_to_maps, expect, told


class Resource(AbstractPlugin):
    """A connection, a model, a disk: what is acquired before it is used and released at the end."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "resource".
        """
        super().__init__(config)
        expect(self, "resource")
        self._resource_type = str(self.config.resource_type).lower()

    @property
    def resource_type(self) -> str:
        """What kind of resource it is, in lower case."""
        return self._resource_type

    def config_resources(self, resource_manager: Any) -> None:
        """Nothing: a resource has none."""

    @abc.abstractmethod
    def initialize(self) -> None:
        """Acquires it."""

    @abc.abstractmethod
    def finalize(self) -> None:
        """Releases it."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class ResourceManager(AbstractPlugin):
    """Holds resources, acquires and releases them."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the type is not "resource_manager".
        """
        super().__init__(config)
        expect(self, "resource_manager")

    @abc.abstractmethod
    def add_resource(self, resource: Resource) -> None:
        """Takes one more."""

    def config_resources(self, resource_manager: Any) -> None:
        """Nothing: it has its own."""

    def config_context(self, context: Context) -> None:
        super().config_context(context)
        for resource in self.resources:
            resource.config_context(context)

    @abc.abstractmethod
    def initialize(self) -> None:
        """Acquires all."""

    @abc.abstractmethod
    def finalize(self) -> None:
        """Releases all."""

    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        return {}


class BasicResourceManager(ResourceManager):
    """The resources that its configuration lists."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._acquired: list[Resource] = []
        for named in [*(self.config.resources or ()), *(self.config.config.resources or ())]:
            self.add_resource(create_component(named))

    def add_resource(self, resource: Resource) -> None:
        """
        Raises:
            ValueError: when there is one with its id or name.
        """
        add_to_maps(self, resource, "give one of them another id or name in its config")

    def initialize(self) -> None:
        """Acquires all, in their order. If one fails, it and those before it are released.

        Raises:
            Exception: what that one raised.
        """
        initialize_all(self.resources)
        self._acquired += self.resources

    def finalize(self) -> None:
        """Releases what was acquired here, the last first; one that fails stops no other."""
        acquired, self._acquired = self._acquired[::-1], []
        finalize_all(acquired)


class Model(Resource):
    """A model that infers."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when the resource type is not "model".
        """
        super().__init__(config)
        expect_kind(self, "model")

    @abc.abstractmethod
    def inference(self, param: Any, **kwargs: Any) -> Any:
        """What the model answers."""


class LLM(Model):
    """A language model. It works when only a `prompt` is given, and its answer has text as `content`."""

    class LLMParameter(ClassDict):
        """What it is asked. `max_tokens` bounds the answer; other keys are passed on."""

        def __init__(
            self,
            /,
            prompt: str | None = None,
            max_tokens: int | None = None,
            temperature: float | None = None,
            require_token_len: bool | None = None,
            require_cost: bool | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(**kwargs)
            self.prompt = prompt
            self.max_tokens = max_tokens
            self.temperature = temperature
            self.require_token_len = require_token_len
            self.require_cost = require_cost

    class LLMResponse(ClassDict):
        """What it answers. Lengths are in tokens, `cost` in the currency of its prices."""

        def __init__(
            self,
            /,
            content: str | None = None,
            calls: list[Any] | None = None,
            input_token_len: int | None = None,
            output_token_len: int | None = None,
            cost: float | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(**kwargs)
            self.content = content
            self.calls = ClassDict.convert(calls) if calls else None
            self.input_token_len = input_token_len
            self.output_token_len = output_token_len
            self.cost = cost

    @abc.abstractmethod
    def inference(self, param: Any, **kwargs: Any) -> Any:
        """The LLMResponse to an LLMParameter, or to a mapping with its keys."""


def expect_kind(resource: Resource, kind: str) -> None:
    """
    Raises:
        ValueError: when the resource is not of this type.
    """
    if resource.resource_type != kind:
        raise ValueError(f"{told(resource)}: resource_type must be {kind!r}, not {resource.resource_type!r}")
