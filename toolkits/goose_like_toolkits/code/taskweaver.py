"""Settings: what a project's `taskweaver_config.json` says that has a meaning here."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from goose_like.config.yaml_source import describe_field_error
from goose_like.core.message import FrozenModel
from goose_like.sdk.diagnostics import Diagnostic, ParseResult

CONFIG = "taskweaver_config.json"


class Settings(FrozenModel):
    """The keys that are honoured; all others are left to TaskWeaver."""

    base_path: str | None = Field(default=None, alias="plugin.base_path")
    selects: bool = Field(default=False, alias="code_generator.enable_auto_plugin_selection")
    top_k: int = Field(default=3, gt=0, alias="code_generator.auto_plugin_selection_topk")
    verifies: bool = Field(default=False, alias="code_interpreter.code_verification_on")
    allowed_modules: tuple[str, ...] | None = Field(default=None, alias="code_interpreter.allowed_modules")
    blocked_functions: tuple[str, ...] | None = Field(default=None, alias="code_interpreter.blocked_functions")

    @property
    def select_top_k(self) -> int | None:
        """How many plugins a model is told of; None: all."""
        return self.top_k if self.selects else None

    def plugins_folder(self, project: Path) -> Path:
        """Where the project's plugins are."""
        written = (self.base_path or "plugins").replace("${AppBaseDir}", str(project))
        return project / os.path.expanduser(written)


_KEYS = {field.alias for field in Settings.model_fields.values()}


def read_settings(project: Path) -> ParseResult[Settings]:
    """A project's settings; without a readable file those that TaskWeaver would take."""
    file = project / CONFIG
    try:
        text = file.read_text(encoding="utf-8-sig")
        data = json.loads(text)
    except FileNotFoundError:
        return ParseResult(value=Settings())
    except json.JSONDecodeError as error:
        return _refused(file, f"this is no valid JSON: {error.msg}", error.lineno)
    except (OSError, ValueError, RecursionError) as error:
        return _refused(file, f"can't be read: {' '.join(str(error).split())}")
    if not isinstance(data, Mapping):
        return _refused(file, 'the settings are one object, e.g. {"plugin.base_path": "plugins"}', 1)
    known = {key: value for key, value in data.items() if key in _KEYS}
    try:
        return ParseResult(value=Settings.model_validate(known))
    except ValidationError as error:
        faults = error.errors()
        left = {key: value for key, value in known.items() if key not in {fault["loc"][0] for fault in faults}}
        found = tuple(
            Diagnostic(file=file, line=_line(text, fault), text=describe_field_error(fault, "the settings"))
            for fault in faults
        )
        return ParseResult(value=Settings.model_validate(left), diagnostics=found)


def _refused(file: Path, text: str, line: int | None = None) -> ParseResult[Settings]:
    return ParseResult(value=Settings(), diagnostics=(Diagnostic(file=file, line=line, text=text),))


def _line(text: str, fault: Mapping[str, Any]) -> int:
    before, _, _ = text.partition(json.dumps(fault["loc"][0]))
    return before.count("\n") + 1
