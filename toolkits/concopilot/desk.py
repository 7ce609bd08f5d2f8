"""Desk: what the components' process may ask of this one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from goose_like.events import Question
from goose_like.toolkit import ExchangeView, Notifier, ToolError

from .assets import Assets
from .cerebrum import Brain
from .llm import infer
from .roster import Finder

_PROMPT_CHARACTERS = 2_000


class Desk:
    """Answers a stage. What it sends is a stranger's word: of anything else than these questions nothing is known."""

    def __init__(
        self,
        finder: Finder,
        assets: Assets,
        view: ExchangeView,
        brain: Brain,
        notifier: Notifier,
        show: Callable[[str], None],
    ) -> None:
        self._finder = finder
        self._assets = assets
        self._view = view
        self._brain = brain
        self._notifier = notifier
        self._show = show

    async def answer(self, method: str, params: Mapping[str, Any]) -> Any:
        """The answer to one question.

        Raises:
            GooseLikeError: there is none; the words are for the component.
        """
        match method, params:
            case "resolve", {"config": dict(named)}:
                return self._finder.member(named, "the component that names it").whole
            case "resolve_file", {"config_file": str(file)}:
                return self._finder.read(self._finder.folder / file, {}).whole
            case "llm", {"model": "processor" | "accelerator" as model, "param": dict(asked)}:
                return await infer(self._view, asked, model)
            case "interact", {"param": dict(asked), "plugins": list(plugins)}:
                return await self._brain.interact(asked, plugins)
            case "asset", {"op": "get", "id": str(name)}:
                return self._assets.fields(name)
            case "ask", {"text": str(text)}:
                return await self._asked(text)
            case "tell", {"text": str(text)}:
                return self._show(f"{text}\n")
            case _:
                raise ToolError(f"nothing is known of {method!r} with {', '.join(params) or 'nothing'}")

    async def _asked(self, text: str) -> str | None:
        """What the person types; None where nobody is there."""
        about = text[:_PROMPT_CHARACTERS]
        answer = await self._notifier.ask(Question(kind="words", subject="a component", text=about, detail=about))
        return answer.words if answer.is_allowed else None


def roots_in(folders: tuple[str, ...], folder: Path) -> list[str]:
    """Folders with components' packages, as real paths."""
    return [str((folder / Path(each).expanduser()).resolve()) for each in folders]
