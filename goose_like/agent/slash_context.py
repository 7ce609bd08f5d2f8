"""The context of slash commands: the exchange, the screen, and the next session."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from goose_like.config.profile import ApprovalMode, Profile
from goose_like.core.dataclass import dataclass
from goose_like.core.message import ToolCall, ToolResult
from goose_like.sessions.session import Session

from .exchange import Exchange
from .slash_command import SlashCommand
from .turn_request import TurnRequest


@dataclass(frozen=True, slots=True)
class SwitchSession:
    """A request to close this exchange and continue with another profile or session, perhaps in another folder."""

    profile: Profile
    session: Session
    folder: Path


async def ask_nobody(label: str) -> str:
    """Answer a question with an empty line: nobody is there."""
    return "\n"


def ignore_text(text: str) -> None:
    """Ignore a text: there is no input line and no clipboard."""


@dataclass(slots=True)
class SlashContext:
    """The first argument of a slash command.

    `show` prints text or a Rich renderable. `ask` asks the user for one line. `set_input` fills the input line.
    `finished_calls` are the tool calls that the screen numbers. `is_in_turn` returns whether the model works.
    `wanted_approval` is the approval mode that holds from the next message, if a key has chosen one.
    `last_request` is what started the last turn, unless a former process ran that turn.
    If not `is_typed`, another program sends the command, and its words are not the person's.
    """

    exchange: Exchange
    profile: Profile
    commands: dict[str, SlashCommand]
    show: Callable[[object], object]
    ask: Callable[[str], Awaitable[str]] = ask_nobody
    set_input: Callable[[str], object] = ignore_text
    copy_to_clipboard: Callable[[str], object] = ignore_text
    finished_calls: Sequence[tuple[ToolCall, ToolResult]] = ()
    is_in_turn: Callable[[], bool] = lambda: False
    next_session: SwitchSession | None = None
    wanted_approval: ApprovalMode | None = None
    last_request: TurnRequest | None = None
    is_ending: bool = False
    is_typed: bool = True

    def get_own_words(self, words: str) -> str:
        """Return the words that name files anywhere: those that the person typed."""
        return words if self.is_typed else ""

    def end_session(self) -> None:
        """End the interactive session after this command."""
        self.is_ending = True

    def switch_session(
        self, profile: Profile | None = None, session: Session | None = None, folder: Path | None = None
    ) -> None:
        """Continue with another profile, session or folder after this command and a running turn.

        Processes go on if `can_keep_toolkits` allows it.
        """
        self.next_session = SwitchSession(
            profile or self.profile,
            session or self.exchange.session,
            folder or self.exchange.workspace.root,
        )
