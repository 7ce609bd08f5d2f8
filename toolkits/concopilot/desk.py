"""Desk: what the components' process may ask of this one."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from goose_like.events import Question
from goose_like.toolkit import ExchangeView, Notifier, ToolError

from .cerebrum import Brain
from .llm import infer
from .roster import Finder, Member
from .sharing import Sharing

_PROMPT_CHARACTERS = 2_000


class Desk:
    """Answers a stage. What it sends is a stranger's word: of anything else than these questions nothing is known."""

    def __init__(
        self,
        finder: Finder,
        sharing: Sharing,
        install: Callable[[Member], Awaitable[None]],
        view: ExchangeView,
        brain: Brain,
        notifier: Notifier,
        show: Callable[[str], None],
    ) -> None:
        self._finder = finder
        self._sharing = sharing
        self._install = install
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
                return await self._whole(self._finder.member(named, "the component that names it"))
            case "resolve_file", {"config_file": str(file)}:
                return await self._whole(self._finder.read(self._finder.folder / file, {}))
            case "llm", {"model": "processor" | "accelerator" as model, "param": dict(asked)}:
                return await infer(self._view, asked, model)
            case "interact", {"param": dict(asked), "plugins": list(plugins)}:
                return await self._brain.interact(asked, plugins)
            case "asset", {"op": "get", "id": str(name)}:
                return self._sharing.fields(name)
            case "ask", {"text": str(text)}:
                return await self._asked(text)
            case "tell", {"text": str(text)}:
                return self._show(f"{text}\n")
            case _:
                raise ToolError(f"nothing is known of {method!r} with {', '.join(params) or 'nothing'}")

    async def _whole(self, member: Member) -> dict[str, Any]:
        """All of a component's configuration, once what it needs is installed."""
        await self._install(member)
        return member.whole

    async def _asked(self, text: str) -> str | None:
        """What the person types; None where nobody is there."""
        about = text[:_PROMPT_CHARACTERS]
        answer = await self._notifier.ask(Question(kind="words", subject="a component", text=about, detail=about))
        return answer.words if answer.is_allowed else None
