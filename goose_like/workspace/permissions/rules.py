"""Permission rules: commands, tools, paths and domains that a person allows, denies, or wants to be asked about.

Rules about commands are advisory: a program can do anything, whatever its name. The sandbox is the boundary.
"""

import os
import re
from collections.abc import Callable, Sequence
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
        return f"`{self.verdict}: {self.text}`" + (f" of {self.source}" if self.source else "")

    def allows_command(self, command: SimpleCommand) -> bool:
        """Check whether a command begins with exactly the words of the rule."""
        wanted = self.pattern.split()
        return len(command.words) >= len(wanted) and all(
            word is not None and fnmatchcase(word, want) for word, want in zip(command.words, wanted, strict=False)
        )

    def matches_command(self, command: SimpleCommand) -> bool | None:
        """Check whether the rule is about a command; None if nobody can tell before it runs.

        Options of the rule may stand anywhere in the command. Folders before the program do not count.
        """
        first, *wanted = self.pattern.split()
        name = command.words[0]
        if name is None:
            return None
        if not fnmatchcase(name if "/" in first else command.name, first):
            return False
        arguments = command.words[1:]
        if command.name == "git":
            options, arguments = split_git_options(arguments)
            arguments = arguments if None not in options else (None, *arguments)  # `git -C $x`: it may be two words
        words = [None if word is None or "{" in word else word for word in arguments]
        found = [_match_places(words, [want for want in wanted if not want.startswith("-")])]
        found += [_has_option(words, want) for want in wanted if want.startswith("-")]
        return False if False in found else None if None in found else True


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
        after = {count: False for count in reached if is_after_option}
        for count, is_certain in reached.items():
            if fnmatchcase(word, places[count]):
                after[count + 1] = is_certain
            elif re.search(r"[*?\[]", word) and fnmatchcase(places[count], word):  # a pattern that the shell expands
                after[count + 1] = False
        reached, is_after_option = after, False
    certain = reached.get(len(places))
    return False if certain is None else certain or None


def _has_option(words: Sequence[str | None], option: str) -> bool | None:
    """Check for an option, also among joined letters (`-xdf`); None if it may be there in another form."""
    given = [word for word in words if word is not None and word.startswith("-")]
    if any(fnmatchcase(word, option) or fnmatchcase(word.partition("=")[0], option) for word in given):
        return True
    joined = [word[1:] for word in given if re.fullmatch(r"-\w+", word)]
    if re.fullmatch(r"-\w{1,3}", option):
        if set("".join(word for word in joined if len(word) <= 4)).issuperset(option[1:]):
            return True
        long_forms = [word[2] for word in given if re.match(r"--\w", word)]  # rm -R --force
        is_possible = set("".join([*joined, *long_forms]).lower()).issuperset(option[1:].lower())
    else:
        names = [word.partition("=")[0] for word in given]
        is_short = option.startswith("--") and any(option[2:3] in word for word in joined)
        is_possible = is_short or any(len(name) > 3 and option.startswith(name) for name in names)  # --forc
    return None if is_possible or None in words else False


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
        topics = [
            topic for topic in TOPICS.values() if kind in topic.judged and (topic is not COMMAND or line is not None)
        ]
        found = self.judge_text(topics[0], subject if line is None else line) if topics else Judgement()
        if found.verdict is None and tool and kind in TOPICS["tool"].allowed:
            by_tool = self.judge("tool", tool)
            found = by_tool if by_tool.verdict == "allow" else found
        if found.verdict == "allow" and not any(kind in topic.allowed for topic in TOPICS.values()):
            return Judgement()
        return found

    def judge_text(self, topic: RuleTopic, text: str) -> Judgement:
        """Judge a command, the call of a tool, a file or a host."""
        judges: dict[str, Callable[[], Judgement]] = {
            "command": lambda: self.judge_line(text),
            "tool": lambda: self.judge("tool", text.partition(" ")[0]),
            "path": lambda: self.judge_path(Path(text)),
            "domain": lambda: self.judge_host(text),
        }
        return judges[topic.name]()

    def list_rules(self, topic: str, *verdicts: Verdict) -> list[PermissionRule]:
        """List the rules about a topic, those of the first verdict first."""
        return [
            rule for verdict in verdicts for rule in self.rules if (rule.verdict, rule.topic.name) == (verdict, topic)
        ]

    def judge_line(self, line: str) -> Judgement:
        """Judge a shell line by each simple command in it.

        A line is allowed only if each of its commands is allowed and no file is written by a redirect.
        """
        limiting, allowing = self.list_rules("command", "deny", "ask"), self.list_rules("command", "allow")
        if not limiting and not allowing:
            return Judgement()
        commands = parse_line(line)
        written = line.strip() if len(commands) == 1 and "\n" not in line.strip() else ""
        doubt = ""
        for rule in limiting:
            for command in commands:
                match rule.matches_command(command):
                    case True:
                        return Judgement(rule.verdict, f"`{format_command(command)}` matches {rule}")
                    case None if command.words[0] is not None:
                        doubt = doubt or f"`{written or format_command(command)}` may match {rule}"
        if any(command.words[0] is None for command in commands):
            doubt = doubt or "no rule can judge a part of this line before it runs"
        if doubt:
            return Judgement("ask", doubt)
        found = _find_allowing(commands, allowing)
        return Judgement("allow", " and ".join(map(str, found))) if found else Judgement()

    def judge(self, topic: str, *names: str) -> Judgement:
        """Judge a tool, path or domain by its names, any of which may match."""
        for rule in self.list_rules(topic, "deny", "ask", "allow"):
            pattern = os.path.expanduser(rule.pattern) if topic == "path" else rule.pattern
            pattern = normalize_host(pattern) if topic == "domain" else pattern
            if any(fnmatchcase(name, pattern) for name in names):
                return Judgement(rule.verdict, f"`{names[0]}` matches {rule}")
        return Judgement()

    def judge_path(self, path: Path) -> Judgement:
        """Judge a file by its whole path, its path in the workspace, and its name."""
        inside = [str(path.relative_to(self._root)), path.name] if path.is_relative_to(self._root) else [path.name]
        return self.judge("path", str(path), *inside)

    def judge_host(self, host: str) -> Judgement:
        """Judge a host. A rule without a port denies all ports of the host, but allows only the common ones."""
        host = normalize_host(host)
        bare, _, port = host.rpartition(":")
        any_port = self.judge("domain", bare) if bare and port.isdecimal() else Judgement()
        return any_port if any_port.verdict in ("deny", "ask") else self.judge("domain", host)


def build_rules(lists: PermissionLists, source: str) -> list[PermissionRule]:
    """Build the rules of a profile or of the trust file."""
    return [PermissionRule(verdict, text, source) for verdict in get_args(Verdict) for text in getattr(lists, verdict)]


def _find_allowing(commands: Sequence[SimpleCommand], rules: Sequence[PermissionRule]) -> list[PermissionRule]:
    """Find rules that allow all commands together; empty if one of them is not allowed."""
    if not all(map(is_plain, commands)):
        return []
    needed = list_essential(commands)
    found = [next((rule for rule in rules if rule.allows_command(command)), None) for command in needed]
    allowing = [rule for rule in found if rule]
    return list(dict.fromkeys(allowing)) if len(allowing) == len(needed) else []


def is_plain(command: SimpleCommand) -> bool:
    """Check that a command runs what it names, and writes no file by a redirect."""
    written = {*command.overwrites, *command.appends} - {"/dev/null"}
    if command.name in ("make", "gmake") and command.variables:
        return False  # make runs the commands in their values
    return command.words[0] is not None and not written and all(map(_HARMLESS_VARIABLE.fullmatch, command.variables))


def list_essential(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """List the commands of a line that need a rule to be allowed: not those such as `echo` or `env`, beside others."""
    essential = []
    for command in commands:
        first, *rest = command.words
        is_script = first in ("sh", "bash") and len(rest) == 2 and rest[0] in ("-c", "-lc")
        leaves_folder = first == "env" and any(word is None or _OTHER_FOLDER.match(word) for word in rest)
        is_wrapper = bool(first and rest and _TRANSPARENT.fullmatch(first)) and not leaves_folder
        is_starter = is_wrapper or is_script
        has_option = any(word is None or word.startswith("-v") for word in (rest[:1] if first == "printf" else rest))
        is_harmless = first and _HARMLESS.fullmatch(first) and not (first in ("printf", "test") and has_option)
        if not is_harmless and not is_starter and not command.is_started:
            essential.append(command)
    return essential or list(commands)
