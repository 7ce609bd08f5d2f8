"""What a client is told before it asks anything: who answers here, what it can do, and where."""

from typing import Any, Literal

from pydantic import ValidationError

from goose_like.config.profile import Profile
from goose_like.config.yaml_source import in_words
from goose_like.core.errors import ProfileError
from goose_like.core.message import Value, Words

TOOLKIT = "openbb"
"""The toolkit of whose config the profile says how it is called here."""


class Feature(Value):
    """A switch, a field or a choice that the client shows beside the conversation; its value comes with requests."""

    label: Words
    type: Literal["toggle", "text", "select"] = "toggle"
    default: bool | Words | None = None
    description: Words | None = None
    placeholder: Words | None = None
    options: tuple["Choice", ...] | None = None


class Choice(Value):
    """One of a feature's values."""

    label: Words
    value: Words


class About(Value):
    """Who answers. An empty `image` is the one that we serve; `features` are the profile's own, by their name."""

    id: str
    name: Words
    description: Words = ""
    image: str = ""
    features: dict[str, bool | Feature] = {}

    @classmethod
    def of(cls, profile: Profile) -> "About":
        """What the profile says of itself below its toolkit `openbb`, the rest from its name.

        Raises:
            ProfileError: a value that makes no sense; its path is the value's.
        """
        place, config = next(
            ((n, choice.config) for n, choice in enumerate(profile.toolkits) if choice.name == TOOLKIT), (0, {})
        )
        said = {key: config[key] for key in ("name", "description", "image", "features") if key in config}
        told = {
            "id": profile.name,
            "name": f"goose_like: {profile.name}",
            "description": f"Answers with goose_like's profile {profile.name!r}.",
        }
        try:
            return cls.model_validate(told | said)
        except ValidationError as error:
            fault = error.errors()[-1]  # of the two that a feature may be, the mapping's
            path = tuple(step for step in fault["loc"] if step not in ("bool", "Feature"))
            text = in_words({**fault, "loc": path}, f"the config of {TOOLKIT!r}")
            raise ProfileError(text, ("toolkits", place, "config", *path)) from error


def copilots(about: About, base_url: str) -> dict[str, Any]:
    """`/copilots.json`, as the protocol of 2024 has it. `base_url` is where the client reached us."""
    return {
        about.id: {
            **_told(about, base_url),
            "hasStreaming": True,
            "hasFunctionCalling": True,
            "endpoints": {"query": _at(base_url, "v1/query")},
        }
    }


def agents(about: About, base_url: str) -> dict[str, Any]:
    """`/agents.json`, as openbb-ai 2 has it. The profile's features stand beside ours and may switch one off."""
    ours = {
        "streaming": True,
        "widget-dashboard-select": True,
        "widget-dashboard-search": True,
        "mcp-tools": True,
        "feedback": True,
    }
    return {
        about.id: {
            **_told(about, base_url),
            "endpoints": {"query": _at(base_url, "v1/query"), "feedback": _at(base_url, "v1/feedback")},
            "features": ours | about.model_dump(exclude_none=True)["features"],
        }
    }


def _told(about: About, base_url: str) -> dict[str, str]:
    image = about.image or _at(base_url, "logo.svg")
    return {"name": about.name, "description": about.description, "image": image}


def _at(base_url: str, path: str) -> str:
    return f"{base_url.rstrip('/')}/{path}"
