"""Permission rules: commands, tools, paths and domains that a person allows, denies, or wants to be asked about.

Rules about commands are advisory: a program can do anything, whatever its name. The sandbox is the boundary.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, get_args

from goose_like.config.profile import PermissionLists
from goose_like.config.rule_topics import COMMAND, TOPICS, RuleTopic, split_rule
from goose_like.core.events import PermissionKind
from goose_like.workspace.network.address_filter import normalize_host

from .policy import Verdict
from .shell_syntax import parse_line
from .simple_command import SimpleCommand, format_command, split_git_options

_HARMLESS_VARIABLE = re.compile(
    r"(?!npm_|.*proxy)[a-z]\w*|[A-Z]|CI|DEBUG|VERBOSE|LANG|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR"
    r"|(NODE|RAILS|RACK|APP|FLASK)_ENV|RUST_(LOG|BACKTRACE)|PYTHON(UNBUFFERED|HASHSEED|DONTWRITEBYTECODE)"
)
"""Variables by which no command runs something else than its name says."""

_TRANSPARENT = re.compile("env|time|timeout|nice|ionice|taskset|stdbuf|nohup|setsid|command|builtin|exec|unbuffer")
"""Programs that only start their arguments, which `parse_line` lists too."""

_OTHER_FOLDER = re.compile(r"-\w*C|--c")
"""Options by which `env` starts its arguments in another folder."""

_EXPANDED = re.compile(r"[*?\[]")
"""A sign of a pattern that the shell expands to names of files."""

_FEW_LETTERS = re.compile(r"-\w{1,3}")
_LETTERS = re.compile(r"-\w+")
_LONG = re.compile(r"--\w")
"""The forms of options: one letter or few, any number of joined letters, and a name."""

_HARMLESS = re.compile(r":|true|false|pwd|echo|printf|test")
"""Commands of the shell that need no rule to be allowed, if they write no file and have no option `-v`."""


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One rule: a command by its first words, or a tool, path or domain by a glob."""

    verdict: Verdict
    text: str
    source: str = ""
    """The place of the rule, for people."""

    @property
    def topic(self) -> RuleTopic:
        """The kind of thing that the rule is about."""
        return split_rule(self.text)[0]

    @property
    def pattern(self) -> str:
        """The rule without the name of its topic."""
        return split_rule(self.text)[1]

    def __str__(self) -> str:
        text = f"`{self.verdict}: {self.text}`"
        if self.source:
            text += f" of {self.source}"
        return text

    def allows_command(self, command: SimpleCommand) -> bool:
        """Check whether a command begins with exactly the words of the rule."""
        wanted = self.pattern.split()
        if len(command.words) < len(wanted):
            return False
        for word, pattern in zip(command.words, wanted, strict=False):
            if word is None or not fnmatchcase(word, pattern):
                return False
        return True

    def matches_command(self, command: SimpleCommand) -> bool | None:
        """Check whether the rule is about a command; None if nobody can tell before it runs.

        Options of the rule may stand anywhere in the command. Folders before the program do not count.
        """
        first, *wanted = self.pattern.split()
        name = command.words[0]
        if name is None:
            return None
        if "/" not in first:
            name = command.name
        if not fnmatchcase(name, first):
            return False
        words = _list_arguments(command)
        places = [word for word in wanted if not word.startswith("-")]
        options = [word for word in wanted if word.startswith("-")]
        found = [_match_places(words, places)]
        found += [_has_option(words, option) for option in options]
        if False in found:
            return False
        if None in found:
            return None
        return True


def _list_arguments(command: SimpleCommand) -> list[str | None]:
    """List the arguments of a command, without the options of git before its subcommand."""
    arguments = command.words[1:]
    if command.name == "git":
        options, arguments = split_git_options(arguments)
        if None in options:  # `git -C $x`: it may be two words
            arguments = (None, *arguments)
    words: list[str | None] = []
    for word in arguments:
        if word is not None and "{" in word:  # the shell may replace it by several words
            word = None
        words.append(word)
    return words


def _match_places(words: Sequence[str | None], places: Sequence[str]) -> bool | None:
    """Check whether arguments begin with certain words, apart from options, whose next word may be their value."""
    reached = {0: True}  # count of matched places -> certain or not
    is_after_option = False
    for word in words:
        if len(places) in reached or not reached:
            break
        if word is None:
            return None
        if word.startswith("-") and len(word) > 1:
            is_after_option = "=" not in word
            continue
        after = dict.fromkeys(reached, False) if is_after_option else {}
        for count, is_certain in reached.items():
            if fnmatchcase(word, places[count]):
                after[count + 1] = is_certain
            elif _EXPANDED.search(word) and fnmatchcase(places[count], word):
                after[count + 1] = False
        reached = after
        is_after_option = False
    if len(places) not in reached:
        return False
    return reached[len(places)] or None


def _has_option(words: Sequence[str | None], option: str) -> bool | None:
    """Check for an option, also among joined letters (`-xdf`); None if it may be there in another form."""
    given = [word for word in words if word is not None and word.startswith("-")]
    for word in given:
        name, _, _ = word.partition("=")
        if fnmatchcase(word, option) or fnmatchcase(name, option):
            return True
    if _FEW_LETTERS.fullmatch(option):
        usual = [word for word in given if len(word) <= 5]
        if set(option[1:]) <= _collect_letters(usual):
            return True
        is_possible = _may_hold_letters(given, option)
    else:
        is_possible = _may_be_shorter(given, option)
    if is_possible or None in words:
        return None
    return False


def _collect_letters(given: Sequence[str]) -> set[str]:
    """Collect the letters of short options."""
    letters: set[str] = set()
    for word in given:
        if _LETTERS.fullmatch(word):
            letters.update(word[1:])
    return letters


def _may_hold_letters(given: Sequence[str], option: str) -> bool:
    """Check whether options may mean the letters of another one, as `-R --force` may mean `-rf`."""
    letters = _collect_letters(given)
    letters.update(word[2] for word in given if _LONG.match(word))
    known = "".join(letters).lower()
    return set(known).issuperset(option[1:].lower())


def _may_be_shorter(given: Sequence[str], option: str) -> bool:
    """Check whether one of the options may be a shorter form of a long one: `--forc` or `-f` of `--force`."""
    for word in given:
        if option.startswith("--") and option[2:3] in word[1:] and _LETTERS.fullmatch(word):
            return True
        name, _, _ = word.partition("=")
        if len(name) > 3 and option.startswith(name):
            return True
    return False


class Judgement(NamedTuple):
    """The verdict about an action and its reason in words. Without a verdict, the mode decides."""

    verdict: Verdict | None = None
    reason: str = ""


class PermissionRules:
    """All rules of a session in a folder. Deny wins over ask, and ask over allow."""

    def __init__(self, rules: Sequence[PermissionRule], root: Path = Path("/")) -> None:
        self.rules = rules
        self._root = root

    def judge_action(self, kind: PermissionKind, subject: str, line: str | None, tool: str) -> Judgement:
        """Judge an action; `line` is a command. A rule about the running `tool` counts only if it allows."""
        found = Judgement()
        topic = _find_topic(kind, line)
        if topic is not None:
            found = self.judge_text(topic, subject if line is None else line)
        if found.verdict is None and tool and kind in TOPICS["tool"].allowed:
            by_tool = self.judge("tool", tool)
            if by_tool.verdict == "allow":
                found = by_tool
        can_be_allowed = any(kind in topic.allowed for topic in TOPICS.values())
        if found.verdict == "allow" and not can_be_allowed:
            return Judgement()
        return found

    def judge_text(self, topic: RuleTopic, text: str) -> Judgement:
        """Judge a command, the call of a tool, a file or a host."""
        match topic.name:
            case "command":
                return self.judge_line(text)
            case "tool":
                name, _, _ = text.partition(" ")
                return self.judge("tool", name)
            case "path":
                return self.judge_path(Path(text))
            case "domain":
                return self.judge_host(text)
            case name:
                raise KeyError(name)

    def list_rules(self, topic: str, *verdicts: Verdict) -> list[PermissionRule]:
        """List the rules about a topic, those of the first verdict first."""
        found = []
        for verdict in verdicts:
            for rule in self.rules:
                if rule.verdict == verdict and rule.topic.name == topic:
                    found.append(rule)
        return found

    def judge_line(self, line: str) -> Judgement:
        """Judge a shell line by each simple command in it.

        A line is allowed only if each of its commands is allowed and no file is written by a redirect.
        """
        limiting = self.list_rules("command", "deny", "ask")
        allowing = self.list_rules("command", "allow")
        if not limiting and not allowing:
            return Judgement()
        commands = parse_line(line)
        limited = _limit_commands(commands, limiting, line.strip())
        if limited.verdict is not None:
            return limited
        found = _find_allowing(commands, allowing)
        if not found:
            return Judgement()
        return Judgement("allow", " and ".join(map(str, found)))

    def judge(self, topic: str, *names: str) -> Judgement:
        """Judge a tool, path or domain by its names, any of which may match."""
        for rule in self.list_rules(topic, "deny", "ask", "allow"):
            pattern = rule.pattern
            if topic == "path":
                pattern = os.path.expanduser(pattern)
            elif topic == "domain":
                pattern = normalize_host(pattern)
            if any(fnmatchcase(name, pattern) for name in names):
                return Judgement(rule.verdict, f"`{names[0]}` matches {rule}")
        return Judgement()

    def judge_path(self, path: Path) -> Judgement:
        """Judge a file by its whole path, its path in the workspace, and its name."""
        names = [str(path)]
        if path.is_relative_to(self._root):
            names.append(str(path.relative_to(self._root)))
        names.append(path.name)
        return self.judge("path", *names)

    def judge_host(self, host: str) -> Judgement:
        """Judge a host. A rule without a port denies all ports of the host, but allows only the common ones."""
        host = normalize_host(host)
        bare, _, port = host.rpartition(":")
        if bare and port.isdecimal():
            any_port = self.judge("domain", bare)
            if any_port.verdict in ("deny", "ask"):
                return any_port
        return self.judge("domain", host)


def build_rules(lists: PermissionLists, source: str) -> list[PermissionRule]:
    """Build the rules of a profile or of the trust file."""
    rules = []
    for verdict in get_args(Verdict):
        for text in getattr(lists, verdict):
            rules.append(PermissionRule(verdict, text, source))
    return rules


def _find_topic(kind: PermissionKind, line: str | None) -> RuleTopic | None:
    """Find the topic whose rules are about a kind of action. Without a line, it is no command."""
    for topic in TOPICS.values():
        if topic is COMMAND and line is None:
            continue
        if kind in topic.judged:
            return topic
    return None


def _limit_commands(commands: Sequence[SimpleCommand], rules: Sequence[PermissionRule], line: str) -> Judgement:
    """Judge the commands of a line by the rules that deny or ask, and by doubts about the line."""
    whole_line = line if len(commands) == 1 and "\n" not in line else ""
    doubt = ""
    for rule in rules:
        for command in commands:
            is_matched = rule.matches_command(command)
            if is_matched:
                return Judgement(rule.verdict, f"`{format_command(command)}` matches {rule}")
            if is_matched is None and command.words[0] is not None and not doubt:
                shown = whole_line or format_command(command)
                doubt = f"`{shown}` may match {rule}"
    has_unknown_part = any(command.words[0] is None for command in commands)
    if has_unknown_part and not doubt:
        doubt = "no rule can judge a part of this line before it runs"
    if doubt:
        return Judgement("ask", doubt)
    return Judgement()


def _find_allowing(commands: Sequence[SimpleCommand], rules: Sequence[PermissionRule]) -> list[PermissionRule]:
    """Find rules that allow all commands together; empty if one of them is not allowed."""
    if not all(map(is_plain, commands)):
        return []
    found = []
    for command in list_essential(commands):
        rule = next((rule for rule in rules if rule.allows_command(command)), None)
        if rule is None:
            return []
        if rule not in found:
            found.append(rule)
    return found


def is_plain(command: SimpleCommand) -> bool:
    """Check that a command runs what it names, and writes no file by a redirect."""
    if command.words[0] is None:
        return False
    written = {*command.overwrites, *command.appends}
    if written - {"/dev/null"}:
        return False
    if command.name in ("make", "gmake") and command.variables:
        return False  # make runs the commands in their values
    return all(map(_HARMLESS_VARIABLE.fullmatch, command.variables))


def list_essential(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """List the commands of a line that need a rule to be allowed: not those such as `echo` or `env`, beside others."""
    essential = []
    for command in commands:
        if command.is_started or _only_starts_another(command) or _is_harmless(command):
            continue
        essential.append(command)
    return essential or list(commands)


def _only_starts_another(command: SimpleCommand) -> bool:
    """Check that a command does no more than start its arguments, or a line in them, in this folder."""
    first, *rest = command.words
    if first in ("sh", "bash"):
        return len(rest) == 2 and rest[0] in ("-c", "-lc")
    if first is None or not rest or not _TRANSPARENT.fullmatch(first):
        return False
    leaves_folder = first == "env" and any(word is None or _OTHER_FOLDER.match(word) for word in rest)
    return not leaves_folder


def _is_harmless(command: SimpleCommand) -> bool:
    """Check for a command of the shell that changes nothing. `printf -v` and `test -v` run the code in an index."""
    first, *rest = command.words
    if first is None or not _HARMLESS.fullmatch(first):
        return False
    options = []
    if first == "printf":
        options = rest[:1]
    elif first == "test":
        options = rest
    return not any(word is None or word.startswith("-v") for word in options)
