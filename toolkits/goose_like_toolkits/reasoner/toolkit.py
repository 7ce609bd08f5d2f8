"""The class of the toolkit `reasoner`."""

from typing import Any, ClassVar

from pydantic import ValidationError
from typing_extensions import override

from goose_like.agent.view import ModelView
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ProfileError
from goose_like.providers.base import Model
from goose_like.providers.registry import format_model_label, open_model
from goose_like.toolkit import Notifier, Requirements, Toolkit, tool

_MAX_CONTEXT_CHARACTERS = 20_000
_REASONING_PROMPT = (
    "Think the problem through, step by step. Weigh several causes, then say which is likely and how to be sure."
)
_CODE_PROMPT = "Write the requested code completely, with its imports. Add no text except what the caller must know."


class ReasonerToolkit(Toolkit):
    """A strong model that thinks about a problem or writes code outside the conversation."""

    has_local_access: ClassVar[bool] = False
    is_confined: ClassVar[bool] = True

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._own_model: Model | None = None
        if "model" in self.config:
            choice = _parse_model(self.config["model"])
            self.budget.check_prices([format_model_label(choice)], ("config", "model"))
            self._own_model = open_model(choice)

    @override
    def prompt(self) -> str:
        return "Stuck on an error, or before a change that is hard to undo? Ask `deep_reason`, with all that you know."

    @tool(parallel=True, kind="think", title="Reason about {problem}")
    async def deep_reason(self, problem: str) -> str:
        """Let a strong model think about a hard problem; slow. The model sees the conversation, but no tool results.

        Args:
            problem: The problem with the relevant errors and code, word for word.
        """
        return await self._ask(_REASONING_PROMPT, problem, "deep_reason")

    @tool(parallel=True, kind="think", title="Draft code: {instructions}")
    async def generate_code(self, instructions: str) -> str:
        """Let a strong model write code without saving it: check it and write it to files.

        Args:
            instructions: The purpose of the code, and the code that it works with.
        """
        return await self._ask(_CODE_PROMPT, instructions, "generate_code")

    @override
    async def close(self) -> None:
        if self._own_model:
            await self._own_model.provider.close()

    async def _ask(self, system: str, text: str, purpose: str) -> str:
        processor = self.exchange_view.processor
        thinker = processor
        if self._own_model:
            thinker = ModelView(self._own_model, self.session, self.notifier, self.budget)
        messages = [f"{message.role}: {message.text}" for message in processor.messages if message.text]
        conversation = "\n\n".join(messages)[-_MAX_CONTEXT_CHARACTERS:]
        self.notifier.status(f"{thinker.model.label} is thinking")
        if conversation:
            text = f"The conversation so far:\n\n{conversation}\n\n---\n\n{text}"
        return await thinker.ask(text, system=system, purpose=purpose)


def _parse_model(value: object) -> ModelChoice:
    fields = value
    if not isinstance(value, dict):
        fields = {"model": value}
    try:
        return ModelChoice.model_validate(fields)
    except ValidationError as error:
        raise ProfileError(f"`model` takes PROVIDER:MODEL, not {value!r}", ("config", "model")) from error
