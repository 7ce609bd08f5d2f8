"""Facts that a model server on one's own machine tells of itself: its context window, and whether it sees images."""

from collections.abc import Mapping
from typing import Any, Literal

from .base import ServerFacts
from .wire import read_count, read_list, read_object

FactsKind = Literal["ollama", "llama-server"]

FACTS_PATHS: Mapping[FactsKind, str] = {"ollama": "/api/ps", "llama-server": "/props"}
"""The paths of the facts, from the root of the server."""

ADVICE: Mapping[FactsKind, str] = {
    "ollama": "it leaves out the rest silently; start it with OLLAMA_CONTEXT_LENGTH=64000",
    "llama-server": "start it with a larger `--ctx-size`",
}


UNKNOWN = ServerFacts()


def parse_facts(kind: FactsKind, body: object, model: str) -> ServerFacts:
    """Parse what the server answers. Ollama knows only a model that is loaded, which the first request does."""
    found = read_object(body)
    if kind == "llama-server":
        settings = read_object(found.get("default_generation_settings"))
        modalities = read_object(found.get("modalities"))
        window = read_count(settings.get("n_ctx"))
        sees = modalities.get("vision")
        return ServerFacts(window or None, sees if isinstance(sees, bool) else None)
    for entry in read_list(found.get("models")):
        if isinstance(entry, Mapping) and _is_model(entry, model):
            window = read_count(entry.get("context_length"))
            return ServerFacts(window or None)
    return UNKNOWN


def _is_model(entry: Mapping[str, Any], model: str) -> bool:
    names = (entry.get("name"), entry.get("model"))
    return model in names or f"{model}:latest" in names
