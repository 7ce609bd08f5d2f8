"""Profiles: which models and toolkits the agent uses, and what it may do."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from goose_like.core.message import FrozenModel

SandboxMode = Literal["read-only", "workspace", "workspace+network", "full"]
ApprovalMode = Literal["auto", "ask", "plan", "yolo"]

SHORT_FORMS = {"processor": "model", "accelerator": "model", "moderator": "name"}
"""Keys whose value may be a text instead of a mapping, with the key inside the mapping that the text stands for."""


class ModelChoice(FrozenModel):
    """A model and its settings. In YAML: a text `provider:model`, or a mapping with these keys."""

    model: str = Field(description="provider:model, e.g. openai:gpt-5-mini or local")
    tools: Literal["native", "constrained"] = "native"
    base_url: str | None = None
    window: int | None = Field(default=None, gt=0, description="context length in tokens")
    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    images: bool = Field(default=True, description="send images, if the provider supports them")
    stall_s: float = Field(default=120.0, gt=0, description="longest silence within a stream")

    @property
    def provider(self) -> str:
        """The name of the provider."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The provider's name of the model; empty for the provider's default model."""
        return self.model.partition(":")[2]


class ModeratorChoice(FrozenModel):
    """A moderator and its configuration."""

    name: str = "summarize"
    config: dict[str, Any] = {}


class ToolkitChoice(FrozenModel):
    """A toolkit and its configuration.

    `requires` maps the toolkit's own name for a dependency to the name of a toolkit in this profile.
    """

    name: str
    requires: dict[str, str] = {}
    config: dict[str, Any] = {}

    @field_validator("requires", mode="before")
    @classmethod
    def _is_mapping(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value
        name = value if isinstance(value, str) else "calendar"
        raise PydanticCustomError(
            "user_message",
            "expected a mapping of its own name for what it needs to a toolkit of this profile, e.g. "
            f"`requires: {{{name}: {name}}}`",
        )


class Limits(FrozenModel):
    """Limits of one turn. None means no limit."""

    steps: int = Field(default=128, gt=0, description="model requests in one turn")
    cost_usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output tokens of one turn")
    time_s: float | None = Field(default=None, gt=0)
    output_bytes: int = Field(default=16_000, ge=400, description="longer tool output is written to a file")


class SessionChoice(FrozenModel):
    """Settings of the interactive session."""

    keys: Literal["emacs", "vi"] = Field(default="emacs", description="key bindings of the input line")
    notify: Literal["bell", "osc9", "off"] = Field(default="bell", description="signal at the end of a long turn")


class Profile(FrozenModel):
    """Models, toolkits, permissions and limits of an agent."""

    name: str = "default"
    processor: ModelChoice | None = Field(default=None, description="the main model")
    accelerator: ModelChoice | None = Field(default=None, description="the fast model, for side questions")
    moderator: ModeratorChoice = Field(
        default=ModeratorChoice(), description="shortens the conversation when the context window fills up"
    )
    toolkits: tuple[ToolkitChoice, ...] = Field(
        default=(ToolkitChoice(name="developer"),), description="the tools of the agent"
    )
    sandbox: SandboxMode = Field(default="workspace", description="files and networks that commands can reach")
    approval: ApprovalMode = Field(default="auto", description="when a person must approve an action")
    limits: Limits = Field(default=Limits(), description="limits of one turn")
    session: SessionChoice = Field(default=SessionChoice(), description="input line and screen of a session")

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        data = expand_provider(data)
        return {
            key: {SHORT_FORMS[key]: value} if isinstance(value, str) and key in SHORT_FORMS else value
            for key, value in data.items()
        }

    @field_validator("toolkits", mode="before")
    @classmethod
    def _expand_toolkits(cls, value: Any) -> Any:
        """Accept `name`, `{name, requires, config}` and the older `[name, requires]`."""
        if not isinstance(value, list | tuple):
            return value
        expanded: list[Any] = []
        for entry in value:
            if isinstance(entry, str):
                entry = {"name": entry}
            elif isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], Mapping):
                entry = {"name": entry[0], "requires": entry[1]}
            expanded.append(entry)
        return expanded


def expand_provider(data: Mapping[str, Any]) -> dict[str, Any]:
    """Replace `provider: x`, which Goose 0.9 wrote beside bare model names, by `x:model`."""
    data = dict(data)
    provider = data.pop("provider", None)
    if provider is not None:
        data.setdefault("processor", None)
        for role in ("processor", "accelerator"):
            if isinstance(name := data.get(role), str):
                data[role] = f"{provider}:{name}"
        data["processor"] = data["processor"] or str(provider)
    return data
