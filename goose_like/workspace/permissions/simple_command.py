"""A simple command: one program that a shell line runs, with its arguments."""

import shlex
from dataclasses import dataclass, field

_GIT_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source")

Words = tuple[str | None, ...]
"""The words of a command. None stands for a word that is only known while the line runs, such as `$name`."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program that a line runs. `words` begins with its name, as written but without quotes.

    Patterns such as `*.pyc` are not expanded. If the name is None, nobody can tell before the start what runs there.
    """

    words: Words
    variables: tuple[str, ...] = ()
    """Names of the variables that are set for this command alone, or for the rest of the line."""

    overwrites: Words = ()
    """Targets of redirects that truncate a file."""

    appends: Words = ()
    """Targets of redirects that extend a file."""

    input: str | None = field(default=None, compare=False)
    """The text of a here-document or here-string, if the line tells it."""

    is_started: bool = False
    """A package runner such as `npx` starts the command, so a rule that allows the whole allows it too."""

    @property
    def name(self) -> str:
        """The program without its folder, such as `git` for `/usr/bin/git`; empty if it is not known."""
        return (self.words[0] or "").rpartition("/")[2]


UNKNOWN = SimpleCommand((None,))
"""Stands for a part of a line that cannot be read."""

ARITHMETIC = SimpleCommand(("((",))
"""Stands for an expression. The shell runs the commands in the values of its variables, such as `a[$(ls)]`."""


def format_command(command: SimpleCommand) -> str:
    """Format a command as one line, with `$?` in place of unknown words."""
    return " ".join("$?" if word is None else shlex.quote(word) for word in command.words)


def split_git_options(words: Words) -> tuple[Words, Words]:
    """Split the arguments of git into the options before the subcommand, and the rest."""
    count = 0
    while count < len(words) and (words[count] or "").startswith("-"):
        count += 2 if words[count] in _GIT_OPTIONS_WITH_VALUE else 1
    return words[:count], words[count:]
