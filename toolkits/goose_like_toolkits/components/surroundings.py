"""Surroundings: whose components they are, and who hears of them."""

from collections.abc import Callable
from dataclasses import dataclass

from goose_like.agent.view import ExchangeView
from goose_like.config.profile import Limits
from goose_like.core.notifier import Notifier
from goose_like.sessions.session import Session
from goose_like.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Whose components they are. `show` takes what they print, while it comes."""

    workspace: Workspace
    session: Session
    view: ExchangeView
    limits: Limits
    notifier: Notifier
    show: Callable[[str], None]
