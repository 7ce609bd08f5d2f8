"""Paths in options, for processes that work in another folder than the person."""

from dataclasses import replace
from pathlib import Path

from goose_like.config.paths import expand_home
from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.providers.registry import find_provider_class
from goose_like.workspace.more_folders import WRITABLE, resolve_folder

from .command_line import ProfileOptions


def anchor_options(options: ProfileOptions, start: Path) -> ProfileOptions:
    """Return the options with absolute paths of folders and files. Relative ones begin at `start`.

    Raises:
        UsageError: there is no such folder or file.
    """
    folders = options.add_dirs
    if folders is not None:
        folders = [_anchor_folder(word, start) for word in folders]
    prompt = options.appended_prompt
    if prompt is not None:
        prompt = _anchor_text(prompt, start)
    return replace(options, add_dirs=folders, appended_prompt=prompt)


def anchor_model(label: str, start: Path) -> str:
    """Return the label of a model. If its provider takes the name of a file, that has an absolute path."""
    provider, _, name = label.partition(":")
    try:
        info = find_provider_class(provider).info
    except GooseLikeError:  # whoever opens the model says so
        return label
    if not info.takes_file or not name:
        return label
    return f"{provider}:{start / expand_home(name)}"


def _anchor_folder(word: str, start: Path) -> str:
    try:
        place = resolve_folder(word, start)
    except UsageError as error:
        raise UsageError(f"--add-dir {error}") from error
    if word.endswith(WRITABLE):
        return f"{place}{WRITABLE}"
    return str(place)


def _anchor_text(text: str, start: Path) -> str:
    """Return a text, or `@FILE` with an absolute path."""
    name = text.removeprefix("@")
    if name == text:
        return text
    file = start / expand_home(name)
    if not file.exists():
        raise UsageError(f"--append-system-prompt {text}: there is no such file")
    return f"@{file}"
