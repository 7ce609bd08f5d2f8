"""The session that components work for."""

from collections.abc import Callable
from dataclasses import dataclass

from goose_like.agent.budget import Budget
from goose_like.agent.view import ExchangeView
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of a session that components use. `show` takes what they print."""

    workspace: Workspace
    session: Session
    view: ExchangeView
    budget: Budget
    notifier: Notifier
    show: Callable[[str], None]
