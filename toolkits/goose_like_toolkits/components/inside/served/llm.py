"""A model of the profile as a resource."""

from collections.abc import Mapping
from typing import Any

from concopilot.framework.resource.category import LLM

from ..plain import plain
from ..wire import call


class ProfileLLM(LLM):
    """Its `config.model` is `processor` (the strong one, the default) or `accelerator`."""

    def initialize(self) -> None:
        """Nothing is held here."""

    def finalize(self) -> None:
        """Nothing is held here."""

    def inference(self, param: Mapping[str, Any], **kwargs: Any) -> LLM.LLMResponse:
        """Asks the model; the fields are those of LLMParameter, beside `messages`, `functions` and others."""
        asked = {key: value for key, value in {**param, **kwargs}.items() if value is not None}
        model = self.config.config.model or "processor"
        return LLM.LLMResponse(**call("llm", model=model, param=plain(asked, str)))


def constructor(config: Mapping[str, Any]) -> ProfileLLM:
    """What `setup.package` is asked for."""
    return ProfileLLM(config)
