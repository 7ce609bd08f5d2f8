"""ReasonerToolkit: a question to a model that has nothing to do but think about it."""

from typing import Any, ClassVar

from pydantic import ValidationError

from goose_like.agent.view import ModelView
from goose_like.config.profile import ModelChoice
from goose_like.core.errors import ProfileError
from goose_like.providers.registry import open_model
from goose_like.toolkit import Notifier, Requirements, Toolkit, tool

_SAID_CHARACTERS = 20_000
_THINK = "Think the problem through, step by step. Weigh several causes, then say which is likely and how to be sure."
_WRITE = "Write the code that is asked for, whole and with its imports. No talk but for what the caller must know."


class ReasonerToolkit(Toolkit):
    """A strong model that thinks about a problem or writes code, aside."""

    touches_machine: ClassVar[bool] = False

    def __init__(self, notifier: Notifier, requires: Requirements, **kwargs: Any) -> None:
        super().__init__(notifier, requires, **kwargs)
        self._named = open_model(_choice(self.config["model"])) if "model" in self.config else None

    def prompt(self) -> str:
        """When to ask."""
        return "Stuck on an error, or before a change that is hard to undo? Ask `deep_reason`, with all that you know."

    @tool
    async def deep_reason(self, problem: str) -> str:
        """Have a hard problem thought through; takes a while. It reads what was said, not what tools gave.

        Args:
            problem: With the errors and the code that matter, word for word.
        """
        return await self._ask(_THINK, problem, "deep_reason")

    @tool
    async def generate_code(self, instructions: str) -> str:
        """Have code written, without saving it: you check it and write it to files.

        Args:
            instructions: What it must do, with the code that it works with.
        """
        return await self._ask(_WRITE, instructions, "generate_code")

    async def close(self) -> None:
        if self._named:
            await self._named.provider.close()

    async def _ask(self, system: str, text: str, purpose: str) -> str:
        strong = self.exchange_view.processor
        thinker = ModelView(self._named, self.session.history, self.notifier) if self._named else strong
        said = "\n\n".join(f"{message.role}: {message.text}" for message in strong.messages if message.text)
        self.notifier.status(f"{thinker.model.label} is thinking")
        before = f"What was said so far:\n\n{said[-_SAID_CHARACTERS:]}\n\n---\n\n" if said else ""
        return await thinker.ask(before + text, system=system, purpose=purpose)


def _choice(value: object) -> ModelChoice:
    try:
        return ModelChoice.model_validate(value if isinstance(value, dict) else {"model": value})
    except ValidationError as error:
        raise ProfileError(f"`model` takes PROVIDER:MODEL, not {value!r}", ("config", "model")) from error
