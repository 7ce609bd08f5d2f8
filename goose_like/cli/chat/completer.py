"""Completion in a session's input: slash commands, their arguments, and files after `@`."""

import re
from collections.abc import Iterable
from contextlib import suppress

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from goose_like.agent.mentions import format_mention
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext
from goose_like.core.errors import GooseLikeError
from goose_like.providers.catalog import list_offers, list_usable_providers
from goose_like.providers.registry import find_provider_class
from goose_like.sessions.index import list_sessions
from goose_like.terminal.escape import escape_controls, to_one_line

from .file_finder import FileFinder

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"(?P<quoted>[^"\n]*)|(?P<bare>[^\s"]*))\Z')


class SessionCompleter(Completer):
    """Completions for `/commands` with their arguments and for `@files` of a session."""

    def __init__(self, context: SlashContext) -> None:
        self._context = context
        self._files = FileFinder(context.exchange.workspace.root, context.exchange.workspace.run_internal)

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text, commands = document.text_before_cursor, self._context.commands
        if match := _MENTION.search(text):
            letters = match["bare"] or match["quoted"] or ""
            for path in self._files.find_paths(letters):
                yield Completion(_end_word(format_mention(path)), match.start() - len(text), path)
        elif text.startswith("/") and "\n" not in text:
            name, *rest = re.split("[: ]", text[1:], maxsplit=1)
            for command in commands.values():
                if command.name.startswith(text[1:]):  # a name may contain a colon
                    yield Completion(f"{command.name} ", 1 - len(text), f"/{command.name}", command.summary)
            if rest and name in commands:
                for choice, meta in self._list_choices(commands[name], rest[0]):
                    yield Completion(_end_word(choice), -len(rest[0]), choice, escape_controls(meta))

    def _list_choices(self, command: SlashCommand, words: str) -> Iterable[tuple[str, str]]:
        """Return choices and their descriptions: those that begin with the typed text, then those that contain it."""
        if command.choices == "files":
            return [(path, "") for path in self._files.find_paths(words)]
        choices = [(one, "") if isinstance(one, str) else one for one in command.choices(self._context)]
        matching = [each for each in choices if words.casefold() in " ".join(each).casefold()]
        return sorted(matching, key=lambda each: not each[0].startswith(words))


def _end_word(text: str) -> str:
    """Return a completion with a blank behind it, unless the word goes on: a folder, or a provider."""
    return text if text.endswith(("/", '/"', ":")) else f"{text} "


def list_session_choices(context: SlashContext) -> list[tuple[str, str]]:
    """Return the names and titles of the other sessions."""
    own = context.exchange.session.name
    return [(info.name, to_one_line(info.summary, 60)) for info in list_sessions() if info.name != own]


def list_model_choices(context: SlashContext) -> list[tuple[str, str]]:
    """Return the models that can be used, with window and price, and the providers of models by file."""
    with suppress(GooseLikeError):  # /model says what is wrong
        offers = [(offer.label, offer.describe()) for offer in list_offers()]
        listed = {label.partition(":")[0] for label, _ in offers}
        others = {*list_usable_providers(), "local", "scripted"} - listed | {"local"}
        return [*offers, *((f"{name}:", find_provider_class(name).info.summary) for name in sorted(others))]
    return []
