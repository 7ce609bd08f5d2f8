"""What a start needs of MCP servers: the offer to the model. It is kept for the next start, which then parses nothing.

A kept offer counts while the texts that configure the servers are the same, and the files with what each of them listed
last have the same state. A start reads all of these, and parses none. The servers are made of what it has read at their
first use, so that a session knows what its prompt was made of, even if a file has changed since.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from goose_like.config.bundles import list_bundles
from goose_like.config.file_state import describe_state
from goose_like.config.kept_values import KeptValues
from goose_like.config.trust import ProjectConfig
from goose_like.core.message import ToolSpec

from .offer import Offer, OfferedTool
from .places import PROJECT_FILE, StoredFile, read_personal_text

if TYPE_CHECKING:
    from .definitions import Definitions
    from .server import ServerConfig

NOT_INSTALLED = "MCP servers need the package `mcp`, which is not installed: pip install 'goose-like[mcp]'"

_MAX_OFFERS = 10


class Sources:
    """The texts that the servers of a session are made of. Each is read once."""

    def __init__(self, config: Mapping[str, Any], project: ProjectConfig | None) -> None:
        """Read nothing. `config` is that of the toolkit, and `project` holds trusted files."""
        self._config = config
        self._project = project
        self._stored: dict[str, StoredFile] = {}

    def describe(self) -> str:
        """Return a hash of the texts that configure servers; empty if they are known in part only."""
        if list_bundles():
            return ""
        try:
            personal = self._personal
        except (OSError, ValueError):  # the person is told when the servers are loaded
            return ""
        project: tuple[str, ...] = ()
        if self._project and PROJECT_FILE in self._project.files:
            project = (str(self._project.root), self._project.files[PROJECT_FILE])
        texts = repr([self._config, personal, project])
        return sha256(texts.encode()).hexdigest()

    def describe_stored(self, fingerprints: Sequence[str]) -> str:
        """Return a hash of the state of the stored definitions; empty if some are missing, or changed a moment ago."""
        files = {}
        for fingerprint in fingerprints:
            status = self._read_stored(fingerprint).status
            if status is None:
                return ""
            files[fingerprint] = status
        return describe_state(files)

    @cached_property
    def servers(self) -> "list[tuple[ServerConfig, Definitions | None]]":
        """The servers, each with its stored definitions."""
        from .definitions import parse_definitions

        servers, _ = self._loaded
        return [(server, parse_definitions(self._read_stored(server.fingerprint).data)) for server in servers]

    @property
    def problems(self) -> list[str]:
        """A sentence for each server that is left out."""
        _, problems = self._loaded
        return problems

    @cached_property
    def _loaded(self) -> "tuple[list[ServerConfig], list[str]]":
        from .config import load_servers

        servers, problems = load_servers(self._config, self._project, lambda: self._personal)
        if servers and not _is_installed():
            return [], [NOT_INSTALLED]
        return servers, problems

    @cached_property
    def _personal(self) -> str | None:
        return read_personal_text()

    def _read_stored(self, fingerprint: str) -> StoredFile:
        if fingerprint not in self._stored:
            self._stored[fingerprint] = StoredFile(fingerprint)
        return self._stored[fingerprint]


def find_offer(
    sources: Sources, patterns: Collection[str], budget: int, *, defers: bool
) -> tuple[Offer, Sequence[str]]:
    """Return the offer, and the problems: what was kept while the sources are those of that time, else a new offer.

    `patterns` are explained at `list_tools`, `budget` and `defers` at `plan_offer`.
    """
    kept = KeptValues("mcp-offers", _MAX_OFFERS)
    described = sources.describe()
    key = f"{described} {defers}"
    entry = kept.get(key)
    if described and entry and _is_installed():
        fingerprints, state, values = entry
        if sources.describe_stored(fingerprints) == state:
            return _decode(values), ()
    from .offer_plan import describe_server, plan_offer

    servers = [describe_server(server, definitions, patterns) for server, definitions in sources.servers]
    offer = plan_offer(servers, budget, defers=defers)
    fingerprints = [server.fingerprint for server, _ in sources.servers]
    state = sources.describe_stored(fingerprints)
    depends_on_files = any(server.is_ambiguous for server, _ in sources.servers)
    if described and state and not sources.problems and not offer.has_unknown and not depends_on_files:
        kept.put(key, [fingerprints, state, _encode(offer)])
        kept.save()
    return offer, sources.problems


def _is_installed() -> bool:
    return find_spec("mcp") is not None


def _encode(offer: Offer) -> dict[str, Any]:
    """Return the values of an offer as JSON has them."""
    sent = list(map(_encode_tool, offer.sent))
    deferred = list(map(_encode_tool, offer.deferred))
    return {**vars(offer), "sent": sent, "deferred": deferred}


def _decode(values: Mapping[str, Any]) -> Offer:
    sent = list(map(_decode_tool, values["sent"]))
    deferred = list(map(_decode_tool, values["deferred"]))
    return Offer(**{**values, "sent": sent, "deferred": deferred})


def _encode_tool(tool: OfferedTool) -> list[Any]:
    return [tool.server, tool.name, tool.spec.name, tool.spec.description, tool.spec.schema]


def _decode_tool(values: Sequence[Any]) -> OfferedTool:
    server, name, *spec = values
    return OfferedTool(server, name, ToolSpec(*spec))
