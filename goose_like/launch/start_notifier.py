"""The notifier of a command that starts at a terminal: warnings and questions before its own screen exists."""

import sys
from collections.abc import Callable

from typing_extensions import override

from goose_like.core.events import Answer, Answered, Asked, Question
from goose_like.core.notifier import Notifier
from goose_like.terminal.escape import escape_invisible
from goose_like.terminal.interaction import has_person, open_screen


def print_warning(text: str) -> None:
    """Show a warning on standard error."""
    print(f"goose-like: {text}", file=sys.stderr)


class StartNotifier(Notifier):
    """A notifier that hands warnings to a function, and asks the person at the terminal if there is one."""

    def __init__(self, warn: Callable[[str], None] = print_warning) -> None:
        self._warn = warn

    @override
    def log(self, renderable: object) -> None:
        self._warn(escape_invisible(str(renderable)))

    @override
    async def ask(self, question: Question) -> Answer:
        if not has_person():
            return Answer(choice="deny", by="nobody")
        screen = open_screen(shows_answer=False)
        screen.notify(Asked(question=question))
        answer = await screen.ask(question)
        screen.notify(Answered(question=question, answer=answer))
        return answer


class AbsentPerson(Notifier):
    """A notifier that passes on texts, and questions only while somebody may be asked."""

    def __init__(self, notifier: Notifier, is_unattended: Callable[[], bool]) -> None:
        self._notifier = notifier
        self._is_unattended = is_unattended

    @override
    def log(self, content: object) -> None:
        self._notifier.log(content)

    @override
    async def ask(self, question: Question) -> Answer:
        if self._is_unattended():
            return Answer()
        return await self._notifier.ask(question)
