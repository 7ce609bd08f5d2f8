"""Plugin: what every component is; and AbstractPlugin, which components extend."""

import abc
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .class_dict import ClassDict
from .context import Context
from .message import Id, Identity, Message, called
from .settings import Settings


class Plugin(metaclass=abc.ABCMeta):
    """A component. Resources are not made here: they are had from a resource manager."""

    @abc.abstractmethod
    def __init__(self, config: Mapping[str, Any]) -> None:
        """Takes the effective configuration; nothing is acquired yet."""

    @abc.abstractmethod
    def config_resources(self, resource_manager: Any) -> None:
        """Takes the resources that the configuration names from the manager."""

    @abc.abstractmethod
    def config_context(self, context: Context) -> None:
        """Takes the context, for itself and for the components below it."""

    def initialize(self) -> None:  # noqa: B027 - most plugins have nothing to do here
        """Makes it ready, once it has its resources and context."""

    def finalize(self) -> None:  # noqa: B027
        """Gives back what `initialize` took."""

    @abc.abstractmethod
    def config_file_path(self, file_name: str | None = None) -> str:
        """The path of a file beside the component's configuration, or of that itself; it may not exist."""

    @property
    @abc.abstractmethod
    def config(self) -> ClassDict:
        """The effective configuration, in the form of `config.yaml`."""

    @property
    @abc.abstractmethod
    def group_id(self) -> str:
        """In lower case, as are `artifact_id`, `version` and `type`."""

    @property
    @abc.abstractmethod
    def artifact_id(self) -> str:
        """The name within the group."""

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """The version."""

    @property
    @abc.abstractmethod
    def id(self) -> Id:
        """What the configuration names it, or a UUID."""

    @property
    @abc.abstractmethod
    def name(self) -> Any:
        """What messages call it; None if it has no name."""

    @property
    @abc.abstractmethod
    def type(self) -> str:
        """`plugin`, or the role that it plays in a copilot."""

    @property
    @abc.abstractmethod
    def as_plugin(self) -> bool:
        """Whether its commands may be called."""

    @property
    @abc.abstractmethod
    def resources(self) -> list[Any]:
        """Its resources, as they were named."""

    @property
    @abc.abstractmethod
    def resource_id_map(self) -> dict[Id, Any]:
        """They by their ids."""

    @property
    @abc.abstractmethod
    def resource_name_map(self) -> dict[str, Any]:
        """They by their names."""

    @property
    @abc.abstractmethod
    def resource_type_map(self) -> dict[str, list[Any]]:
        """They by their resource types."""

    @abc.abstractmethod
    def get_resource(
        self, *, resource_id: Id | None = None, resource_name: str | None = None, resource_type: str | None = None
    ) -> Any:
        """The resource with all of these, None if there is none; the first one if only a type is given.

        The id "default" means no id.
        """

    @property
    @abc.abstractmethod
    def context(self) -> Any:
        """The context, None before there is one."""

    @abc.abstractmethod
    def command(self, command_name: str, param: Any, **kwargs: Any) -> Any:
        """What the command of this name answers."""

    @abc.abstractmethod
    def send_msg(self, msg: Message) -> None:
        """Takes a message that calls a command; its reply is lost."""

    @abc.abstractmethod
    def on_msg(self, msg: Message) -> Message:
        """The reply to a message that calls a command."""

    @abc.abstractmethod
    def has_msg(self) -> bool:
        """Whether it has a message for others."""

    @abc.abstractmethod
    def get_msg(self) -> Message | None:
        """That message, which it then has no more."""

    @property
    @abc.abstractmethod
    def prompt(self) -> Any:
        """What a model is told of it."""

    @prompt.setter
    @abc.abstractmethod
    def prompt(self, value: str) -> None: ...


class AbstractPlugin(Plugin):
    """A plugin that has only its `command` to be written."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """
        Raises:
            ValueError: when it is called as a plugin and has no name, or its prompt's file can't be read.
        """
        if not isinstance(config, Mapping):
            raise TypeError(f"a component takes its configuration as a mapping, not {config!r}")
        self._config = ClassDict.convert(config)
        if self._config.config is None:
            self._config.config = ClassDict()
        self._group_id, self._artifact_id, self._version, self._type = (
            str(self._config.get(key)).lower() for key in ("group_id", "artifact_id", "version", "type")
        )
        info = self._config.info or ClassDict()
        own_id = self._config.config.id
        self._id: Id = uuid.uuid4() if own_id in (None, "", "default") else own_id
        self._name = self._config.config.name or self._config.name or info.title or None
        self._as_plugin = self._config.as_plugin = _is_true(self._config.as_plugin)
        self._forget_resources()
        self._context: Any = None
        self._prompt = ""
        if self._as_plugin:
            if not self._name:
                raise ValueError(f"{told(self)} is called as a plugin and has no name: give info.title or config.name")
            self._prompt = self._own_prompt(info)

    def _own_prompt(self, info: Mapping[str, Any]) -> str:
        if isinstance(given := info.get("prompt"), str):
            return given
        if isinstance(name := info.get("prompt_file_name"), str):
            return _read(self, self.config_file_path(name))
        path = info.get("prompt_file_path")
        return _read(self, path) if isinstance(path, str) else ""

    def _forget_resources(self) -> None:
        self._resources: list[Any] = []
        self._resource_id_map: dict[Id, Any] = {}
        self._resource_name_map: dict[str, Any] = {}
        self._resource_type_map: dict[str, list[Any]] = {}

    def config_resources(self, resource_manager: Any) -> None:
        """
        Raises:
            ValueError: when the manager has not what is named, or it is named twice.
        """
        if resource_manager is None:
            raise ValueError(f"{told(self)} was given no resource manager")
        self._forget_resources()
        for wanted in [*(self.config.resources or ()), *(self.config.config.resources or ())]:
            self._take(ClassDict.convert(wanted), resource_manager)

    def _take(self, wanted: Any, resource_manager: Any) -> None:
        if not isinstance(wanted, Mapping):
            raise ValueError(f"{told(self)}: a resource is named by type, id or name in a mapping, not {wanted!r}")
        asked = {key: wanted.get(key) for key in ("id", "name", "type")}
        found = resource_manager.get_resource(**{f"resource_{key}": value for key, value in asked.items()})
        if found is None:
            there = ", ".join(f"{each.resource_type} {told(each)}" for each in resource_manager.resources)
            shown = ", ".join(f"{key} {value!r}" for key, value in asked.items() if value is not None)
            raise ValueError(f"{told(self)} needs the resource with {shown or 'a type'}; there are {there or 'none'}")
        add_to_maps(self, found, "name it once in its resources")

    def config_context(self, context: Context) -> None:
        self._context = context

    def config_file_path(self, file_name: str | None = None) -> str:
        """
        Raises:
            ValueError: when the component was made without a file.
        """
        place = self.config._config_info
        if not place:
            raise ValueError(f"{told(self)} was made without a configuration file, so no file lies beside it")
        return os.path.join(place["config_folder"], file_name or place["config_file"])

    @property
    def config(self) -> ClassDict:
        made: ClassDict = self._config
        return made

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def artifact_id(self) -> str:
        return self._artifact_id

    @property
    def version(self) -> str:
        return self._version

    @property
    def id(self) -> Id:
        return self._id

    @property
    def name(self) -> Any:
        return self._name

    @property
    def type(self) -> str:
        return self._type

    @property
    def as_plugin(self) -> bool:
        return self._as_plugin

    @property
    def resources(self) -> list[Any]:
        return self._resources

    @property
    def resource_id_map(self) -> dict[Id, Any]:
        return self._resource_id_map

    @property
    def resource_name_map(self) -> dict[str, Any]:
        return self._resource_name_map

    @property
    def resource_type_map(self) -> dict[str, list[Any]]:
        return self._resource_type_map

    def get_resource(
        self, *, resource_id: Id | None = None, resource_name: str | None = None, resource_type: str | None = None
    ) -> Any:
        kind = None if resource_type is None else str(resource_type).lower()
        if resource_id not in (None, "") and str(resource_id).lower() != "default":
            by_text = {str(key): resource for key, resource in self.resource_id_map.items()}
            found = by_text.get(str(resource_id))
        elif resource_name:
            found = self.resource_name_map.get(resource_name)
        else:
            return next(iter(self.resource_type_map.get(kind, ())), None) if kind else None
        is_other = found is not None and (
            (resource_name and found.name != resource_name) or (kind and found.resource_type != kind)
        )
        return None if is_other else found

    @property
    def context(self) -> Any:
        return self._context

    def send_msg(self, msg: Message) -> None:
        self.on_msg(msg)

    def on_msg(self, msg: Message) -> Message:
        """
        Raises:
            ValueError: naming the field of the message that is amiss.
        """
        asked = called(msg, {"id": self.id, "name": self.name, "type": self.type})
        content = Message.Command(**{key: value for key, value in asked.content.items() if key != "param"})
        content.response = self.command(asked.content["command"], asked.content.get("param"))
        return Message(
            sender=Identity(role=asked.receiver["role"], id=self.id, name=self.name),
            receiver=asked.sender,
            content_type="command",
            content=content,
            time=Settings().current_time(),
            thrd_id=asked.thrd_id,
        )

    def has_msg(self) -> bool:
        return False

    def get_msg(self) -> Message | None:
        return None

    @property
    def prompt(self) -> Any:
        return self._prompt

    @prompt.setter
    def prompt(self, value: str) -> None:
        self._prompt = value


def told(component: Any) -> str:
    """A component in words, for errors."""
    place = f"{component.group_id}:{component.artifact_id}:{component.version}"
    return f"{component.name!r} ({place})" if component.name else place


def expect(component: Any, *types: str) -> None:
    """
    Raises:
        ValueError: when the component's type is none of these.
    """
    if component.type not in types:
        wanted = " or ".join(map(repr, types))
        raise ValueError(f"{told(component)}: type must be {wanted}, not {component.type!r}")


def add_to_maps(owner: AbstractPlugin, resource: Any, advice: str) -> None:
    """Puts a resource into a component's list and maps.

    Raises:
        ValueError: when its id or its name is there already.
    """
    for key, known in (("id", owner.resource_id_map), ("name", owner.resource_name_map)):
        value = getattr(resource, key)
        if value in known:
            other = known[value]
            raise ValueError(
                f"{told(owner)} has two resources with {key} {str(value)!r}, {told(other)} and "
                f"{told(resource)}: {advice}"
            )
    owner.resources.append(resource)
    owner.resource_id_map[resource.id] = resource
    if resource.name:
        owner.resource_name_map[resource.name] = resource
    owner.resource_type_map.setdefault(resource.resource_type, []).append(resource)


def _is_true(value: Any) -> bool:
    return value != 0 if isinstance(value, int) else str(value).lower() == "true"


def _read(component: Any, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf8")
    except (OSError, ValueError) as error:
        raise ValueError(f"{told(component)}: its prompt can't be read from {path}: {error}") from error
