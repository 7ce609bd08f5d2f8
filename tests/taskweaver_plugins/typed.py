from typing import Generic, Optional, Protocol, TypeVar

from taskweaver.plugin.base import Plugin
from taskweaver.plugin.context import ArtifactType, LogErrorLevel, PluginContext
from taskweaver.plugin.register import register_plugin

T = TypeVar("T")


class Named(Protocol):
    name: str


class Remembers(Generic[T]):
    def __init__(self) -> None:
        self.last: Optional[T] = None  # noqa: UP045


class Mixed:
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.is_mixed = True


@register_plugin
class Typed(Plugin, Mixed, Remembers[int]):
    kind: ArtifactType = "txt"
    level: LogErrorLevel = "info"

    def __init__(self, name: str, ctx: PluginContext, config: dict):
        Remembers.__init__(self)
        Plugin.__init__(self, name, ctx, config)

    def __call__(self, value: int) -> Optional[int]:  # noqa: UP045
        self.last, before = value, self.last
        return before
