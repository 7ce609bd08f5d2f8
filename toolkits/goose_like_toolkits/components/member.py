"""Member: a component that a session uses, as it is configured there."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from goose_like_toolkits.components.described.entry import Entry
from goose_like_toolkits.components.described.overriding import Effective
from goose_like_toolkits.components.repositories.runtime import Instance


@dataclass(frozen=True, slots=True)
class Need:
    """A resource that a component uses: the key of a member, and the type under which it asks for it."""

    key: str
    asked: str


@dataclass(frozen=True, slots=True)
class Member:
    """A component, configured. `key` is its own among all, `file` the config.yaml that was read.

    `instance` says where its own copy of a repository's files is or will be; None where it has none.
    """

    key: str
    entry: Entry
    effective: Effective
    file: Path
    instance: Instance | None = None
    needs: tuple[Need, ...] = ()

    @property
    def name(self) -> str:
        """What it is called: by its configuration, else by its title."""
        return self.entry.name(self.effective.value) or self.entry.artifact_id

    @property
    def is_resource(self) -> bool:
        return self.entry.type == "resource"

    def prompt(self, reach: Sequence[Path]) -> str:
        """Its words for a model; as `Prompt.read`."""
        return self.entry.prompts.read(self.file.parent, reach, self.entry.coordinates.prefix)
