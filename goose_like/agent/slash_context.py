"""What a slash command works with: the conversation, the screen, the person, and what is to happen next."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from goose_like.config.profile import Profile
from goose_like.core.message import ToolCall, ToolResult
from goose_like.sessions.session import Session

from .exchange import Exchange
from .slash_command import Command


@dataclass(frozen=True, slots=True)
class Reopen:
    """Leave this exchange, and go on with another profile, or in another session."""

    profile: Profile
    session: Session


@dataclass(slots=True)
class Desk:
    """Given to every command. `show` takes text or a Rich renderable; `ask` gives a line that the person types.

    `put` puts words into the input, `copy` into the clipboard. `finished` are the calls that are shown by number.
    """

    exchange: Exchange
    profile: Profile
    commands: dict[str, Command]
    show: Callable[[object], None]
    ask: Callable[[str], Awaitable[str]]
    put: Callable[[str], None]
    copy: Callable[[str], None]
    finished: Sequence[tuple[ToolCall, ToolResult]]
    next: Reopen | None = None
    is_over: bool = field(default=False)

    def leave(self) -> None:
        """Ends the session after this command."""
        self.is_over = True

    def reopen(self, profile: Profile | None = None, session: Session | None = None) -> None:
        """Goes on, after this command, with another profile or in another session; what runs on is ended."""
        self.next = Reopen(profile or self.profile, session or self.exchange.session)
