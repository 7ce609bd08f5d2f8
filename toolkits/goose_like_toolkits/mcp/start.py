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

from .offer import Offer, OfferedTool, name_tool
from .places import PROJECT_FILE, StoredFile, read_personal_text

if TYPE_CHECKING:
    from .definitions import Definitions
    from .server import ServerConfig

NOT_INSTALLED = "MCP servers need the package `mcp`, which is not installed: pip install 'goose-like[mcp]'"

_MAX_OFFERS = 10
_LAYOUT = 1
"""The number of the layout and the words of kept offers. Another one makes all offers anew."""


class Sources:
    """The texts that the servers of a session are made of. Each is read once."""

    def __init__(self, config: Mapping[str, Any], project: ProjectConfig | None) -> None:
        """Take the configuration of the toolkit and the trusted files. Files are read at their first use."""
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
    key = f"{_LAYOUT} {described} {defers}"
    if described and _is_installed():
        known = _read_entry(kept.get(key), sources)
        if known is not None:
            return known, ()
    offer = _plan(sources, patterns, budget, defers=defers)
    entry = _make_entry(offer, sources)
    if described and entry:
        kept.put(key, entry)
        kept.save()
    return offer, sources.problems


def _read_entry(entry: Any, sources: Sources) -> Offer | None:
    """Return the offer of an entry; None if there is none, or none that fits or that this version can read."""
    if entry is None:
        return None
    try:
        if sources.describe_stored(entry["fingerprints"]) == entry["state"]:
            return _decode(entry["offer"])
    except (TypeError, LookupError, ValueError, AttributeError):
        pass  # it is damaged, or of another layout: a new offer replaces it
    return None


def _plan(sources: Sources, patterns: Collection[str], budget: int, *, defers: bool) -> Offer:
    from .offer_plan import describe_server, plan_offer

    servers = [describe_server(server, definitions, patterns) for server, definitions in sources.servers]
    return plan_offer(servers, budget, defers=defers)


def _make_entry(offer: Offer, sources: Sources) -> dict[str, Any] | None:
    """Make the entry of an offer; None if a start has more to say than it holds, or could miss a change."""
    servers = [server for server, _ in sources.servers]
    depends_on_files = any(server.is_ambiguous for server in servers)
    if sources.problems or offer.has_unknown or depends_on_files:
        return None
    fingerprints = [server.fingerprint for server in servers]
    state = sources.describe_stored(fingerprints)
    if not state:
        return None
    return {"fingerprints": fingerprints, "state": state, "offer": _encode(offer)}


def _is_installed() -> bool:
    return find_spec("mcp") is not None


def _encode(offer: Offer) -> dict[str, Any]:
    """Return the values of an offer as JSON has them."""
    values = dict(vars(offer))
    values["sent"] = list(map(_encode_tool, offer.sent))
    values["deferred"] = list(map(_encode_tool, offer.deferred))
    return values


def _decode(values: Mapping[str, Any]) -> Offer:
    """Return the offer of such values.

    Raises:
        TypeError, LookupError, ValueError, AttributeError: these are other values.
    """
    fields = dict(values)
    if fields.keys() != vars(Offer()).keys():
        raise ValueError("this offer has other fields")
    fields["sent"] = list(map(_decode_tool, fields["sent"]))
    fields["deferred"] = list(map(_decode_tool, fields["deferred"]))
    return Offer(**fields)


def _encode_tool(tool: OfferedTool) -> dict[str, Any]:
    spec = tool.spec
    return {"server": tool.server, "name": tool.name, "description": spec.description, "schema": spec.schema}


def _decode_tool(values: Mapping[str, Any]) -> OfferedTool:
    server = values["server"]
    name = values["name"]
    # Rules hold for the name that the model uses: it is made of the one that is called, and never kept beside it.
    spec = ToolSpec(name_tool(server, name), values["description"], values["schema"])
    return OfferedTool(server, name, spec)
