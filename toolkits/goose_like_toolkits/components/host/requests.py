"""Answers to requests of the worker: models, the person, and what is printed."""

from collections.abc import Mapping
from typing import Any, Literal

from goose_like.core.events import Question
from goose_like.toolkit import ToolError

from ..bridges.cerebrum import interact
from ..bridges.llm import infer
from ..bridges.plugin_calls import Plugin
from ..surroundings import Surroundings

_MAX_QUESTION_CHARACTERS = 2_000


class RequestHandler:
    """Answers requests. They come from foreign code, so anything unknown is refused."""

    def __init__(self, around: Surroundings, model: Literal["processor", "accelerator"]) -> None:
        """Answer for a session; `model` is what a cerebrum asks."""
        self._around = around
        self._model = model

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """Answer one request. Raise GooseLikeError, whose text goes to the component."""
        match method, params:
            case "llm", {"model": "processor" | "accelerator" as model, "param": dict(asked)}:
                return await infer(self._around, asked, model)
            case "interact", {"param": dict(asked), "plugins": list(plugins)}:
                known = [Plugin.read(each) for each in plugins]
                return await interact(self._around, asked, known, self._model)
            case "ask", {"text": str(text)}:
                return await self._ask(text)
            case "tell", {"text": str(text)}:
                return self._around.show(f"{text}\n")
            case _:
                raise ToolError(f"nothing is known of {method!r} with {', '.join(params) or 'nothing'}")

    async def _ask(self, text: str) -> str | None:
        """Ask the person; return None if nobody is there."""
        question = Question(kind="text", subject="a component", text=text[:_MAX_QUESTION_CHARACTERS])
        answer = await self._around.notifier.ask(question)
        return answer.text if answer.is_allowed else None
