"""Profiles: which models and toolkits the agent uses, and what it may do."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, LiteralString

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticCustomError

from goose_like.core.message import FrozenModel

from .entry_points import DEFAULT_TOOLKIT, list_names
from .rule_topics import COMMAND, split_rule

SandboxMode = Literal["read-only", "workspace", "workspace+network", "full"]
HostedTool = Literal["web_search", "web_fetch"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
ApprovalMode = Literal["auto", "ask", "plan", "unattended", "yolo"]


class ModelChoice(FrozenModel):
    """A model and its settings. In YAML: a text `provider:model`, or a mapping with these keys."""

    model: str = Field(description="provider:model, e.g. openai:gpt-5-mini or local")
    tools: Literal["auto", "native", "constrained", "tags"] = Field(
        default="auto",
        description="how the model calls tools; with auto, one request to an unknown server finds out; "
        "tags: as the embedded model does, behind llama-server",
    )
    base_url: str | None = None
    wire: Literal["chat", "responses"] | None = Field(
        default=None, description="the API of an OpenAI-like server: chat completions or responses"
    )
    effort: Effort | None = Field(default=None, description="how long the model reasons; each model knows some levels")
    cache: Literal["short", "long"] | None = Field(
        default=None, description="how long the server keeps the prompt: minutes, or hours at a higher price"
    )
    service_tier: Literal["auto", "default", "fast", "flex", "priority"] | None = Field(
        default=None, description="the processing tier of OpenAI's API and others like it, at a price of its own"
    )
    speed: Literal["fast"] | None = Field(
        default=None, description="let Anthropic's server answer faster, at a higher price"
    )
    server_fallback: bool = Field(
        default=False, description="let Anthropic's server answer with another model when this one declines"
    )
    window: int | None = Field(default=None, gt=0, description="context length in tokens")
    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    images: bool = Field(default=True, description="send images, if the provider supports them")
    stall_s: float | None = Field(default=None, gt=0, description="longest silence within a stream")

    @property
    def provider(self) -> str:
        """The name of the provider."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The provider's name of the model; empty for the provider's default model."""
        return self.model.partition(":")[2]

    @property
    def price_tier(self) -> str:
        """The name of the tier with a price of its own, or empty for the usual price."""
        if self.service_tier in ("auto", "default"):
            return ""
        return self.speed or self.service_tier or ""


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


class Limits(FrozenModel):
    """Limits of one turn. None means no limit."""

    steps: int = Field(default=256, gt=0, description="model requests in one turn")
    cost_usd: float | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0, description="input and output tokens of one turn")
    time_s: float | None = Field(default=None, gt=0)
    output_bytes: int = Field(default=16_000, ge=400, description="longer tool output is written to a file")


class VerifyChoice(FrozenModel):
    """The check of a turn: commands that must succeed. In YAML: a command, a list of them, or a mapping."""

    commands: tuple[str, ...]
    attempts: int = Field(default=3, ge=0, description="how often a failure goes back to the model in one turn")
    unchanged: bool = Field(default=False, description="check turns without changes, too")
    time_s: float = Field(default=1_800.0, gt=0, description="longest time of each command")
    on_failure: str = Field(default="", description="a command that runs before the model tries again")
    on_failure_s: float = Field(default=600.0, gt=0, description="longest time of that command")


class SessionChoice(FrozenModel):
    """Settings of the interactive session."""

    keys: Literal["emacs", "vi"] = Field(default="emacs", description="key bindings of the input line")
    notify: Literal["bell", "osc9", "off"] = Field(default="bell", description="signal at the end of a long turn")
    status: bool = Field(default=True, description="tell the terminal what goes on, by its title and OSC 7501")
    answer_s: float = Field(default=600.0, gt=0, description="seconds that a question waits for an answer in an editor")


def _check_path(text: str) -> str:
    """Refuse a pattern: a path can be mounted read-only before it exists, and a pattern cannot."""
    if not text.strip() or re.search(r"[*?\[]", text):
        raise _expect("path", "a path without wildcards; for patterns: permissions: {deny: ['path:*.pem']}")
    return text


_Path = Annotated[str, AfterValidator(_check_path)]


class PathChoice(FrozenModel):
    """Paths that commands see or not, beyond the standard rules. `~` is the home folder; relative: to the workspace."""

    read: tuple[str, ...] = Field(default=(), description="more files and folders to show, e.g. of the home folder")
    hide: tuple[str, ...] = Field(default=(), description="files to hide, in the syntax of .gitignore, or below ~/")
    deny_write: tuple[_Path, ...] = Field(
        default=(), description="files and folders that nothing in the session may change, existing or not"
    )


class VariableChoice(FrozenModel):
    """Environment variables that commands get, beyond those of the system and of toolchains: names, or `DJANGO_*`."""

    allow: tuple[str, ...] = ()


WEB_SEARCH_HOST = "web search"
"""The name of all web searches in questions and lists. It is no host, so a yes lets no command reach a host."""


def _check_host(text: str) -> str:
    """Refuse what is no host, such as a URL: it could never match."""
    if text == WEB_SEARCH_HOST:
        return text
    if not text or re.search(r"[/@\s]", text):
        example = _find_host(text) or "example.org"
        raise _expect("host", f"the name of a host, such as {example}")
    match = re.fullmatch(r"(\[.*\]|[^:\[]*):([^*?\[]*)", text)
    if match and not _is_port(match[2]):
        raise _expect("host", "a port from 1 to 65535 after the colon")
    return text


def _find_host(url: str) -> str:
    """Return the host in a URL, or an empty text."""
    without_scheme_and_path = re.sub(r"^\w+://|[/\s].*$", "", url.strip())
    return without_scheme_and_path.rpartition("@")[2]


def _is_port(text: str) -> bool:
    return text.isdecimal() and 1 <= int(text) <= 65535


def _expect(kind: LiteralString, expected: str) -> PydanticCustomError:
    """Return the error that names what a value should be. The text goes in as a value: it may hold braces."""
    return PydanticCustomError(kind, "{expected}", {"expected": expected})


_Host = Annotated[str, AfterValidator(_check_host)]


class NetworkChoice(FrozenModel):
    """Hosts that commands reach through the proxy without a question: names, or `*.example.org`."""

    allow: tuple[_Host, ...] = ()


def _check_rule(text: str) -> str:
    """Refuse a rule that could never match."""
    try:
        topic, pattern = split_rule(text)
    except ValueError as error:
        raise _expect("rule", f"the start of {error}") from error
    if topic is COMMAND and re.search(r"[|&;<>()$`\"'\\]", pattern):
        raise _expect("rule", "the start of a command without quotes, pipes and variables")
    return text


_Rule = Annotated[str, AfterValidator(_check_rule)]


class PermissionLists(FrozenModel):
    """Permission rules. A rule is the start of a command (`git push`), or `tool:`, `path:` or `domain:` and a glob."""

    allow: tuple[_Rule, ...] = ()
    ask: tuple[_Rule, ...] = ()
    deny: tuple[_Rule, ...] = ()


class ResourceLimits(FrozenModel):
    """Limits of all commands in the sandbox together, or of each process. None means no limit."""

    processes: int | None = Field(default=4096, gt=0, description="processes at the same time, all commands together")
    memory_mb: int | None = Field(default=8192, gt=0, description="memory of each process (its writable private pages)")
    file_size_mb: int | None = Field(default=16_384, gt=0, description="size of each written file")
    open_files: int | None = Field(default=8192, gt=0, description="open files of each process")
    tmpfs_mb: int | None = Field(default=1024, gt=0, description="size of /dev/shm and of each other tmpfs")


class WorkspaceSettings(FrozenModel):
    """The part of a profile that confines commands and tools, next to the sandbox and approval modes."""

    paths: PathChoice = Field(
        default=PathChoice.make_unchecked(), description="files that commands see, and files to hide"
    )
    folders: tuple[str, ...] = Field(default=(), description="more folders: DIR to read, DIR:rw to change as well")
    variables: VariableChoice = Field(
        default=VariableChoice.make_unchecked(), description="environment variables of commands"
    )
    network: NetworkChoice = Field(
        default=NetworkChoice.make_unchecked(), description="hosts that commands reach unasked"
    )
    permissions: PermissionLists = Field(
        default=PermissionLists.make_unchecked(), description="rules that allow, ask or deny"
    )
    resources: ResourceLimits = Field(
        default=ResourceLimits.make_unchecked(), description="limits of commands in the sandbox"
    )


def _expand_model(value: Any) -> Any:
    return _expand(value, "model", "PROVIDER:MODEL or a mapping")


def _expand_name(value: Any) -> Any:
    match value:
        case [name, Mapping() as requires] if isinstance(value, list):  # goose 0.9
            return {"name": name, "requires": requires}
    return _expand(value, "name", "a name or a mapping")


def _expand_verify(value: Any) -> Any:
    """Return the mapping that a command or a list of commands stands for. An empty text stands for no command."""
    if isinstance(value, list | tuple):
        return {"commands": value}
    if isinstance(value, str):
        return {"commands": [value] if value else []}
    return value


def _expand(value: Any, key: str, expected: str) -> Any:
    """Return the mapping that a text stands for, and other values unchanged. Refuse values that are neither."""
    if isinstance(value, list | int | float):
        raise _expect("short_form", expected)
    if isinstance(value, str):
        return {key: value}
    return value


# The second argument of `BeforeValidator` is the type for the JSON schema.
_Model = Annotated[ModelChoice, BeforeValidator(_expand_model, str | ModelChoice)]
_Moderator = Annotated[ModeratorChoice, BeforeValidator(_expand_name, str | ModeratorChoice)]
_Verify = Annotated[VerifyChoice, BeforeValidator(_expand_verify, str | tuple[str, ...] | VerifyChoice)]
_ToolkitForms = str | ToolkitChoice | tuple[str, dict[str, str]]
_Toolkit = Annotated[ToolkitChoice, BeforeValidator(_expand_name, _ToolkitForms)]


class Profile(WorkspaceSettings):
    """Models, toolkits, permissions and limits of an agent."""

    name: str = "default"
    processor: _Model | None = Field(default=None, description="the main model")
    accelerator: _Model | None = Field(default=None, description="the fast model, for side questions")
    fallback: _Model | None = Field(
        default=None,
        description="the model that finishes a turn when the main model is overloaded, cannot be reached or declines",
    )
    moderator: _Moderator = Field(
        default=ModeratorChoice.make_unchecked(),
        description="shortens the conversation when the context window fills up",
    )
    toolkits: tuple[_Toolkit, ...] = Field(
        default=(ToolkitChoice.make_unchecked(name=DEFAULT_TOOLKIT),), description="the tools of the agent"
    )
    hosted: tuple[HostedTool, ...] = Field(
        default=(), description="tools that the vendor of the main model runs on its server, in place of ours"
    )
    instructions: str = Field(default="", description="text for the end of the system prompt")
    sandbox: SandboxMode = Field(default="workspace", description="files and networks that commands can reach")
    approval: ApprovalMode = Field(default="auto", description="when a person must approve an action")
    limits: Limits = Field(default=Limits.make_unchecked(), description="limits of one turn")
    verify: _Verify | None = Field(
        default=None, description="commands that must succeed after the last change of a turn"
    )
    session: SessionChoice = Field(
        default=SessionChoice.make_unchecked(), description="input line and screen of a session"
    )


def build_profiles_schema() -> dict[str, Any]:
    """Build the JSON schema of a file that maps names to profiles. `$defs/Profile` describes one profile."""
    profile = Profile.model_json_schema()
    definitions: dict[str, Any] = profile.pop("$defs")
    keys: dict[str, Any] = profile["properties"]
    del keys["name"]  # the key or the file name is the profile's name
    for name in list_names("goose_like.toolkit"):
        keys.setdefault(name, {"type": "object", "description": f"configuration of the toolkit {name}"})
    keys["extends"] = {"type": "string", "description": "another profile whose values this one inherits"}
    keys["provider"] = {"type": "string", "description": "older form: the provider of bare model names"}
    for name in definitions.keys() - {"ToolkitChoice"}:
        definitions[name].pop("required", None)  # a profile inherits keys that it leaves out
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "profiles of goose_like",
        "type": "object",
        "properties": {
            "use": {"type": "string", "description": "the default profile"},
            "version": {"const": 1, "description": "the format of this file; missing: the present one"},
        },
        "additionalProperties": {"$ref": "#/$defs/Profile"},
        "$defs": {**definitions, "Profile": profile},
    }
