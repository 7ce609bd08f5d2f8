"""Message: what goes between the parts of a copilot, and between whom."""

import enum
import logging
import uuid
from collections.abc import Mapping
from typing import Any

from .class_dict import ClassDict

Id = uuid.UUID | str | int
_log = logging.getLogger("[ConCopilot]")


class Identity(ClassDict):
    """Who sends or receives. What is None is left out."""

    def __init__(
        self, /, *, role: str | None = None, id: Id | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        _set(self, role=role, id=id, name=name)


class Message(ClassDict):
    """A message. What is None is left out, so that reading it gives None."""

    class Command(ClassDict):
        """The content of a call of a plugin (`command`, `param`) or of its reply (`command`, `response`)."""

        def __init__(
            self,
            /,
            *,
            command: str | None = None,
            param: Any = None,
            response: Any = None,
            id: Id | None = None,
            **kwargs: Any,
        ) -> None:
            super().__init__(**kwargs)
            _set(self, command=command, param=_plain(param), response=_plain(response), id=id)

    class RetrievalMode(enum.IntEnum):
        """How much of a message is wanted."""

        ALL = 0
        NO_SENDER = 1
        CONTENT_INFO = 2
        CONTENT = 3

    def __init__(
        self,
        /,
        *,
        sender: Identity | Mapping[str, Any] | str | None = None,
        receiver: Identity | Mapping[str, Any] | str | None = None,
        content_type: str | None = None,
        content: Any = None,
        time: str | None = None,
        id: Id | None = None,
        thrd_id: Id | None = None,
        **kwargs: Any,
    ) -> None:
        """
        Args:
            sender, receiver: A role alone may be given as text.
            content_type: A MIME type, "command", "asset_ref", or the name of a Python type.
            content: A mapping with a `command` becomes a `Message.Command`, other mappings a ClassDict.
            time: As `Settings().current_time()` tells it.
            thrd_id: The thread of messages that this one belongs to.
        """
        super().__init__(**kwargs)
        content = _plain(content)
        if isinstance(content, ClassDict) and content.command:
            content = Message.Command(**content)
        _set(self, sender=_identity("sender", sender), receiver=_identity("receiver", receiver))
        _set(self, content_type=content_type, content=content, time=time, id=id, thrd_id=thrd_id)

    def retrieve(self, mode: RetrievalMode | None = RetrievalMode.ALL) -> Any:
        """The message, it without its sender, its content with the content's type, or the content alone."""
        if mode is None or mode == Message.RetrievalMode.ALL:
            return self
        if mode == Message.RetrievalMode.NO_SENDER:
            return Message(**{key: value for key, value in self.items() if key != "sender"})
        if mode == Message.RetrievalMode.CONTENT_INFO:
            return Message(content_type=self.content_type, content=self.content)
        if mode == Message.RetrievalMode.CONTENT:
            return self.content
        _log.warning("no retrieval mode %r: the whole message is given", mode)
        return self


def called(msg: Any, names: Mapping[str, Any]) -> Message:
    """The message, which is a well-formed call of a command of this plugin.

    Args:
        names: The plugin's `id`, `name` and `type`.

    Raises:
        ValueError: naming the field that is amiss.
    """
    if not isinstance(msg, Mapping):
        raise ValueError(f"a message is a mapping with receiver, content_type and content, not {msg!r}")
    made = msg if isinstance(msg, Message) else Message(**ClassDict.convert(msg))
    _check_receiver(made.receiver, **names)
    if made.content_type != "command":
        raise ValueError(f'content_type must be "command" for a plugin, not {made.content_type!r}')
    if not isinstance(made.content, Mapping):
        raise ValueError(f"content must be a mapping with command and param, not {made.content!r}")
    command = made.content.get("command")
    if not command or not isinstance(command, str):
        raise ValueError(f"content.command must be the name of one of the plugin's commands, not {command!r}")
    return made


def _check_receiver(receiver: Any, id: Any, name: Any, type: str) -> None:
    if not isinstance(receiver, Mapping) or not receiver:
        raise ValueError(f"receiver must be there, with role and id or name; it is {receiver!r}")
    roles = dict.fromkeys(("plugin", type))
    if receiver.get("role") not in roles:
        raise ValueError(f"receiver.role must be {' or '.join(map(repr, roles))}, not {receiver.get('role')!r}")
    wanted_id, wanted_name = receiver.get("id"), receiver.get("name")
    is_by_id = wanted_id is not None and str(wanted_id) == str(id)
    if not is_by_id and (wanted_name is None or wanted_name != name):
        raise ValueError(
            f"receiver.id or receiver.name must be this plugin's, which are {str(id)!r} and {name!r}; "
            f"they are {wanted_id and str(wanted_id)!r} and {wanted_name!r}"
        )


def _set(target: ClassDict, **values: Any) -> None:
    target.update({key: value for key, value in values.items() if value is not None})


def _plain(value: Any) -> Any:
    return ClassDict.convert(value) if isinstance(value, Mapping) else value


def _identity(field: str, given: Any) -> Identity | None:
    if given is None or isinstance(given, Identity):
        return given
    if isinstance(given, str):
        return Identity(role=given)
    if isinstance(given, Mapping):
        return Identity(**ClassDict.convert(given))
    raise ValueError(f"{field} must be a mapping with role, id and name, or a role, not {given!r}")
