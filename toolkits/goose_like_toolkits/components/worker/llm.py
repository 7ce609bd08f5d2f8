"""A model of the profile as ConCopilot's LLM resource."""

from collections.abc import Mapping
from typing import Any

from concopilot.framework.resource.category import LLM

from .connection import call
from .values import to_json


class ProfileLLM(LLM):
    """Sends each inference to goose_like; `model` in its `config` is `processor` (default) or `accelerator`."""

    def initialize(self) -> None:
        """Do nothing: there is nothing to open."""

    def finalize(self) -> None:
        """Do nothing: there is nothing to close."""

    def inference(self, param: Mapping[str, Any], **kwargs: Any) -> LLM.LLMResponse:
        """Ask the model; besides the fields of LLMParameter, `messages`, `functions` and others count."""
        given = {**param, **kwargs}
        asked = {key: value for key, value in given.items() if value is not None}
        model = self.config.config.model or "processor"
        answer = call("llm", model=model, param=to_json(asked, str))
        return LLM.LLMResponse(**answer)


def constructor(config: Mapping[str, Any]) -> ProfileLLM:
    """Construct the resource."""
    return ProfileLLM(config)
