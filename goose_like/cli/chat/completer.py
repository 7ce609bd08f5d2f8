"""Completion in a session's input: slash commands, their arguments, and files after `@`."""

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from typing_extensions import override

from goose_like.agent.mentions import format_mention
from goose_like.agent.slash_command import SlashCommand, match_choices
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
        text = document.text_before_cursor
        mention = _MENTION.search(text)
        if mention:
            yield from self._complete_mention(mention)
        elif text.startswith("/") and "\n" not in text:
            yield from self._complete_command(text[1:])

    def _complete_mention(self, mention: re.Match[str]) -> Iterator[Completion]:
        letters = mention["bare"] or mention["quoted"] or ""
        for choice, meta in self._context.exchange.hooks.list_mention_choices():
            if letters and letters.casefold() in choice.casefold():
                word = _end_word(format_mention(choice))
                yield Completion(word, -len(mention[0]), escape_controls(choice), escape_controls(meta))
        for path in self._files.find_paths(letters):
            word = _end_word(format_mention(path))
            yield Completion(word, -len(mention[0]), path)

    def _complete_command(self, line: str) -> Iterator[Completion]:
        """Yield completions of a line that follows the slash: commands, and arguments of the command in it."""
        for command in self._context.commands.values():
            if command.name.startswith(line):  # a name may contain a colon
                yield Completion(f"{command.name} ", -len(line), f"/{command.name}", command.summary)
        name, *arguments = re.split("[: ]", line, maxsplit=1)
        if not arguments or name not in self._context.commands:
            return
        words = arguments[0]
        for choice, meta in self._list_choices(self._context.commands[name], words):
            yield Completion(_end_word(choice), -len(words), choice, escape_controls(meta))

    def _list_choices(self, command: SlashCommand, words: str) -> Iterable[tuple[str, str]]:
        if command.choices == "files":
            return [(path, "") for path in self._files.find_paths(words)]
        return match_choices(command, self._context, words)


def _end_word(text: str) -> str:
    """Return a completion with a blank behind it, unless the word goes on: a folder, or a provider."""
    if text.endswith(("/", '/"', ":")):
        return text
    return f"{text} "


def list_session_choices(context: SlashContext) -> list[tuple[str, str]]:
    """Return the names and titles of the other sessions."""
    choices = []
    for info in list_sessions():
        if info.name != context.exchange.session.name:
            title = to_one_line(info.summary, 60)
            choices.append((info.name, title))
    return choices


def list_model_choices(context: SlashContext) -> list[tuple[str, str]]:
    """Return the models that can be used, with window and price, and the providers of models by file."""
    choices = []
    listed = set()
    try:
        for offer in list_offers():
            provider, _, _ = offer.label.partition(":")
            listed.add(provider)
            choices.append((offer.label, offer.describe()))
        others = {*list_usable_providers(), "scripted"} - listed
        for name in sorted({*others, "local"}):
            info = find_provider_class(name).info
            choices.append((f"{name}:", info.summary))
    except GooseLikeError:  # /model says what is wrong
        return []
    return choices
