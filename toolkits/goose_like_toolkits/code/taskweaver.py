"""The project file of TaskWeaver: the settings in `taskweaver_config.json` that apply here."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.message import FrozenModel
from goose_like.sdk.diagnostics import Diagnostic, ParseResult
from goose_like.sdk.strict_yaml import build_failure

CONFIG_NAME = "taskweaver_config.json"

# TaskWeaver's own lists, for a configuration that only turns verification on.
DEFAULT_MODULES = ("pandas", "matplotlib", "numpy", "sklearn", "scipy", "seaborn", "datetime", "typing")
DEFAULT_BLOCKED_FUNCTIONS = ("eval", "exec", "compile", "open", "input", "breakpoint")


class Settings(FrozenModel):
    """The settings that apply here; all others concern only TaskWeaver."""

    base_path: str | None = Field(default=None, alias="plugin.base_path")
    has_selection: bool = Field(default=False, alias="code_generator.enable_auto_plugin_selection")
    top_k: int = Field(default=3, gt=0, alias="code_generator.auto_plugin_selection_topk")
    has_verification: bool = Field(default=False, alias="code_interpreter.code_verification_on")
    allowed_modules: tuple[str, ...] | None = Field(default=None, alias="code_interpreter.allowed_modules")
    blocked_functions: tuple[str, ...] | None = Field(default=None, alias="code_interpreter.blocked_functions")

    @property
    def select_top_k(self) -> int | None:
        """Number of plugins to select for the model; None for all."""
        return self.top_k if self.has_selection else None

    def get_plugins_folder(self, project: Path) -> Path:
        """Return the folder of the project's plugins."""
        base_path = self.base_path or "plugins"
        base_path = base_path.replace("${AppBaseDir}", str(project))
        return project / os.path.expanduser(base_path)


_KEYS = {field.alias for field in Settings.model_fields.values()}


def read_settings(project: Path) -> ParseResult[Settings]:
    """Read the settings of a project; an unreadable value leaves TaskWeaver's default."""
    file = project / CONFIG_NAME
    try:
        text = file.read_text(encoding="utf-8-sig")
        data = json.loads(text)
    except FileNotFoundError:
        return ParseResult(value=Settings())
    except json.JSONDecodeError as error:
        return build_failure(file, f"this is not valid JSON: {error.msg}", error.lineno)
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        return build_failure(file, f"can't be read: {reason}")
    if not isinstance(data, Mapping):
        return build_failure(file, 'the settings are one object, e.g. {"plugin.base_path": "plugins"}', 1)
    known = {key: value for key, value in data.items() if key in _KEYS}
    try:
        return ParseResult(value=Settings.model_validate(known))
    except ValidationError as error:
        errors = error.errors()
    diagnostics = []
    for each in errors:
        key = str(each["loc"][0])
        known.pop(key, None)
        reason = describe_field_error(each, "the settings")
        diagnostics.append(Diagnostic(file=file, line=_find_line(text, key), text=reason))
    return ParseResult(value=Settings.model_validate(known), diagnostics=tuple(diagnostics))


def _find_line(text: str, key: str) -> int:
    before, _, _ = text.partition(json.dumps(key))
    return before.count("\n") + 1
