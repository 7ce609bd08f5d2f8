"""Discovery: the JSON files in which clients learn who answers here and at which URLs."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from goose_like.config.profile import Profile
from goose_like.config.yaml_source import describe_field_error
from goose_like.core.errors import ProfileError
from goose_like.core.message import FrozenModel, Utf8Text
from goose_like.serve.service import CLIENT_TOOLKIT


class Choice(FrozenModel):
    """One value of a feature."""

    label: Utf8Text
    value: Utf8Text


class Feature(FrozenModel):
    """A switch, text field or selection that the client shows beside the conversation and sends with each request."""

    label: Utf8Text
    type: Literal["toggle", "text", "select"] = "toggle"
    default: bool | Utf8Text | None = None
    description: Utf8Text | None = None
    placeholder: Utf8Text | None = None
    options: tuple[Choice, ...] | None = None


class AgentInfo(FrozenModel):
    """The presentation of a profile to clients. An empty `image` means the server's own logo."""

    id: str
    name: Utf8Text
    description: Utf8Text = ""
    image: str = ""
    features: dict[str, bool | Feature] = {}

    @classmethod
    def from_profile(cls, profile: Profile) -> "AgentInfo":
        """Read the presentation from the config of the profile's toolkit `openbb`, with defaults from its name.

        Raises:
            ProfileError: a value is invalid; the error's path leads to the value.
        """
        index = 0
        config: Mapping[str, Any] = {}
        names = [choice.name for choice in profile.toolkits]
        if CLIENT_TOOLKIT in names:
            index = names.index(CLIENT_TOOLKIT)
            config = profile.toolkits[index].config
        values: dict[str, Any] = {
            "id": profile.name,
            "name": f"goose_like: {profile.name}",
            "description": f"Answers with goose_like's profile {profile.name!r}.",
        }
        for key in ("name", "description", "image", "features"):
            if key in config:
                values[key] = config[key]
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            detail = error.errors()[-1]  # a feature may be a bool or an object; the last error is the object's
            path = tuple(key for key in detail["loc"] if key not in ("bool", "Feature"))
            text = describe_field_error({**detail, "loc": path}, f"the config of {CLIENT_TOOLKIT!r}")
            raise ProfileError(text, ("toolkits", index, "config", *path)) from error


def build_copilots_json(info: AgentInfo, base_url: str) -> dict[str, Any]:
    """Build `/copilots.json` of 2024; `base_url` is where the client reached the server, with a slash at the end."""
    return {
        info.id: {
            **_describe_agent(info, base_url),
            "hasStreaming": True,
            "hasFunctionCalling": True,
            "endpoints": {"query": f"{base_url}v1/query"},
        }
    }


def build_agents_json(info: AgentInfo, base_url: str) -> dict[str, Any]:
    """Build `/agents.json` of openbb-ai 2; the profile's features are added to the server's and may switch one off."""
    features = {
        "streaming": True,
        "widget-dashboard-select": True,
        "widget-dashboard-search": True,
        "mcp-tools": True,
        "feedback": True,
    }
    return {
        info.id: {
            **_describe_agent(info, base_url),
            "endpoints": {"query": f"{base_url}v1/query", "feedback": f"{base_url}v1/feedback"},
            "features": features | info.model_dump(exclude_none=True)["features"],
        }
    }


def _describe_agent(info: AgentInfo, base_url: str) -> dict[str, str]:
    image = info.image or f"{base_url}logo.svg"
    return {"name": info.name, "description": info.description, "image": image}
