"""The session that components work for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace

from .bridges.budget import Budget


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a session that components use. `show` takes what they print."""

    workspace: Workspace
    session: Session
    view: ExchangeView
    limits: Limits
    notifier: Notifier
    show: Callable[[str], None]
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", Budget(self.limits, self.session))
