"""Prefixes of commands: what an answer for the session covers, and which commands only read.

A prefix covers a later command that begins with its words, and has no further option which might write, run or delete,
and no operand by which it takes code or settings from elsewhere. A prefix that ends with the address of a host covers
all pages of this host.
"""

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from .rules import is_plain, list_essential
from .shell_syntax import parse_line
from .simple_command import SimpleCommand

MAX_PREFIX_CHARS = 100

_INTERPRETERS = re.compile(
    r"(python|pypy|ruby|perl|node|lua|php)[\d.]*|deno|bun|(ba|da|z|k|a|fi)?sh|su|sudo|doas|eval|source|\.|ssh|[gmn]?awk"
    r"|g?sed|xargs|parallel|find|fd|watch|trap|alias|script|busybox|npx|pnpx|uvx|export|declare|Rscript|R|julia|tclsh"
    r"|expect|ipython[\d.]*|java|osascript|pwsh|n?vim?|emacs|gdb"
)
"""Programs that run any code which their arguments name."""

_UNCOVERED = re.compile("tee|dd|uniq|sqlite3|psql|mysql|ed|ex|m4|git config|git bisect|[gmn]?awk .*")
"""Programs whose other operands name a file to write, or code."""

_WITH_SUBCOMMANDS = re.compile(
    "git|hg|npm|pnpm|yarn|cargo|go|pip3?|kubectl|make|just|systemctl|apt|apt-get|dnf|brew|tar|cd"
)
"""Programs whose subcommand says what they do. For `cd` it is the folder."""

_WITH_TWO_SUBCOMMANDS = re.compile(
    "gh|glab|aws|gcloud|az|docker|podman|helm|terraform|conda|poetry|uv|pipx"
    "|git (stash|remote|worktree|submodule|notes|reflog|bundle|sparse-checkout|lfs|maintenance|replace|rerere)"
    "|(npm|pnpm|yarn|pip3?|kubectl) (config|cache|token|owner|access|dist-tag)"
)
"""Programs of which each further plain word says what they do."""

_LAUNCHERS = re.compile("run|exec|compose|tool|dlx|-m")
"""Words, as in `npm run build`, of which the next word says what runs."""

_READERS = re.compile(
    r"ls|cat|head|tail|wc|[ef]?grep|stat|du|df|cut|tr|nl|tac|rev|basename|dirname|realpath|readlink|pwd|which|type|diff"
    r"|cmp|comm|od|hexdump|strings|(md5|sha\d+|b2|ck)sum|id|whoami|uname|ps|free|uptime|echo|true|false|seq|sleep|jq"
)
"""Programs that only read, whatever their options are."""

_EVERYWHERE = r"-\d+|-q|-v+|--(quiet|verbose|silent|help|version|color|no-color|dry-run|json)"

_HARMLESS_OPTIONS = {
    r"find": r"-(i?name|i?path|i?regex|type|maxdepth|mindepth|size|m?time|mmin|newer|empty|not|or?|and?|print0?|prune)",
    r"sort": r"-[bdfghinruMRVcCmsz]+|-[kt][\w.,:;]*|--(reverse|unique|numeric-sort|key|field-separator|ignore-case)",
    r"rg": r"-[acegilnopstuvwxFHLNPSUABCT\d]+|--(glob|type|files|hidden|no-ignore|count|fixed-strings|ignore-case)",
    r"tree": r"-[adfhsACFILPD]+",
    r"curl": r"-[sSfiIv46]+|--(show-error|fail|head|include|compressed)",
    r"mkdir|touch": r"-[pmc]+",
    r"git (status|log|show|diff|blame|shortlog|rev-parse|rev-list|ls-files|ls-tree|describe|merge-base|show-ref)": (
        r"-[a-zA-Z].*|--(oneline|stat|graph|all|decorate|patch|name-only|name-status|cached|staged|since|until|after"
        r"|before|author|grep|format|pretty|max-count|shortstat|numstat|summary|word-diff|reverse|first-parent|merges"
        r"|no-merges|follow|abbrev-commit|abbrev-ref|short|date|check|porcelain|branch|show-toplevel|others|modified)"
    ),
    r"git add|git commit": r"-[amAus]+|--(all|message|amend|no-edit|signoff|update|allow-empty)",
    r"(python[\d.]* -m )?pytest": r"-[qvxslkm]+|-r\w+|-n|--(lf|ff|tb|maxfail|durations|last-failed|exitfirst)",
    r"make": r"-[jkB]\d*|--(jobs|keep-going|always-make)",
    r"cargo \w+": r"--(release|all|workspace|lib|tests|all-targets|all-features|package)",
    r"go (test|build|vet)": r"-(run|count|race|short|cover|timeout)",
}
"""Options by command that write, run and delete nothing, and do not lead elsewhere."""

_SEARCHERS = re.compile(
    "(find|sort|rg|tree"
    "|git (status|log|show|diff|blame|shortlog|rev-parse|rev-list|ls-files|ls-tree|describe|merge-base|show-ref))"
    "( .*)?"
)
"""Commands that only read with their harmless options. Their operands are files and names, whatever these are."""

_GIT_LISTS = re.compile(
    "git (branch( -(a|r|v|vv|-all|-remotes|-verbose|-list|-show-current))*|remote( -v)?|stash list|tag( (-l|--list))?)"
)
"""Commands of git that only list names."""

_URL_PROGRAMS = re.compile("curl|wget|https?|xh")
"""Programs that reach the hosts of their operands. A prefix holds the address of one host."""

_WITHOUT_OPERANDS = re.compile(
    r"(pip[\d.]*|uv|pipx|npm|pnpm|yarn|bun|deno|poetry|pdm|conda|cargo|go|gem|bundle|brew|apt|apt-get|dnf|composer|docker"
    r"|podman|helm) (\w+ )?(install|i|ci|add|get|run|exec|x|dlx|create|init|update|upgrade|pull|build)( .*)?"
    r"|(npx|pnpx|bunx|uvx|make|just|rake|task|gradle|mvn|ant|ninja|bazel|tox|nox|invoke|inv|ping|host|dig|nslookup|nc|ncat|telnet|ftp|sftp|scp"
    r"|rsync|aria2c|lynx|w3m|openssl)( .*)?"
    r"|git (push|pull|fetch|clone|ls-remote)|git (clone|remote|submodule) .*"
)
"""Commands whose operands name what runs (targets, packages, images) or hosts. A prefix holds all of them."""

_LEADS_ELSEWHERE = re.compile(r".*[=@{]|.*:/|~|(.*/)?(\.\.(/|\Z)|\.[*?\[])", re.DOTALL)
"""Operands such as `A=x`, `@file`, URLs and paths outside: by them a program takes code or settings from elsewhere."""

_ORIGIN = re.compile(r"https?://[\w.-]+(:\d+)?(?=/|\Z)", re.ASCII)

_NO_OUTPUT = re.compile(r"(?<!\S)(\d?>|&>)\s?/dev/null(?=[\s;|)]|\Z)|(?<!\S)2>&1(?=[\s;|)]|\Z)")


def list_prefixes(line: str, root: Path | None = None) -> list[str]:
    """List the prefixes that would cover a line and others like it; empty if that would cover any code.

    Paths below `root` do not lead elsewhere.
    """
    commands = parse_line(line)
    if not all(map(is_plain, commands)):
        return []
    prefixes: list[str] = []
    for command in list_essential(commands):
        prefix = _make_prefix(command, root)
        if not prefix:
            return []
        if prefix not in prefixes:
            prefixes.append(prefix)
    is_readable = len(", ".join(prefixes)) <= MAX_PREFIX_CHARS
    return prefixes if is_readable else []


def is_covered(line: str, prefixes: Sequence[str], root: Path | None = None) -> bool:
    """Check whether prefixes together cover a line. Paths below `root` do not lead elsewhere."""
    commands = parse_line(line)
    if not all(map(is_plain, commands)):
        return False
    for command in list_essential(commands):
        if not any(_covers(prefix.split(), command, root) for prefix in prefixes):
            return False
    return True


def only_reads(line: str, *, is_at_root: bool) -> bool:
    """Check that each command of a line is known to only read, whatever the files hold.

    Git runs programs that the settings of a repository name. Commands change those only after a question, but a
    project may come with a repository in a subfolder, so git counts only in the root of the workspace.
    """
    if re.search("[<>]", _NO_OUTPUT.sub(" ", line)):
        return False
    commands = parse_line(line)
    stays = is_at_root and all(command.words[0] != "cd" for command in commands)
    return bool(commands) and all(_only_reads(command, may_use_git=stays) for command in commands)


def _only_reads(command: SimpleCommand, *, may_use_git: bool) -> bool:
    words = [word for word in command.words if word is not None]
    if len(words) < len(command.words) or command.variables:
        return False
    prefix = words[:1]
    if words[0] == "git":
        if not may_use_git:
            return False
        prefix = words[:2]
    has_quoted_name = any(" " in word for word in prefix)  # `'git status'` is one name
    if has_quoted_name:
        return False
    if words[0] == "cd":
        return len(words) <= 2
    if _READERS.fullmatch(words[0]) or _GIT_LISTS.fullmatch(" ".join(words)):
        return True
    return _SEARCHERS.fullmatch(" ".join(prefix)) is not None and _covers(prefix, command, None)


def _covers(prefix: Sequence[str], command: SimpleCommand, root: Path | None) -> bool:
    """Check that a command begins with a prefix, and that the rest has only operands and harmless options."""
    if _URL_PROGRAMS.fullmatch(prefix[0]):
        return _reaches_only(prefix, command)
    if command.words[: len(prefix)] != tuple(prefix):
        return False
    if _READERS.fullmatch(prefix[0]):
        return True
    rest = command.words[len(prefix) :]
    start = " ".join(prefix)
    if _SEARCHERS.fullmatch(start):
        if "--" in rest:
            rest = rest[: rest.index("--")]  # other programs pass what follows on to a script
    elif any(_leads_elsewhere(start, word, root) for word in rest):
        return False
    return _has_only_harmless_options(prefix, rest)


def _has_only_harmless_options(prefix: Sequence[str], words: Sequence[str | None]) -> bool:
    harmless = _find_harmless_options(prefix)
    for before, word in pairwise((None, *words)):
        if prefix[0] == "find" and _is_name_pattern(before, word):
            continue
        if not _may_be_option(word):
            continue
        if word is None or not harmless.fullmatch(word.partition("=")[0]):
            return False
    return True


def _is_name_pattern(before: str | None, word: str | None) -> bool:
    """Check for the pattern after an option of `find`, which usually stands in quotes."""
    if not before or not word:
        return False
    is_after_name = re.fullmatch("-i?(name|path)", before) is not None
    return is_after_name and word.strip("*") != ""


def _may_be_option(word: str | None) -> bool:
    """Check whether a word may be an option. For git push, `+main` forces and `:main` deletes a branch."""
    if word is None or word == "*":  # the shell may turn a pattern into an option
        return True
    return len(word) > 1 and word[0] in "-+:*?[{"


def _find_harmless_options(prefix: Sequence[str]) -> re.Pattern[str]:
    start = " ".join(prefix)
    patterns = []
    for name, known in _HARMLESS_OPTIONS.items():
        if re.match(rf"(?:{name})(?: |\Z)", start):
            patterns.append(known)
    if not _is_deep(prefix):
        patterns.append(_EVERYWHERE)
    if not patterns:
        return re.compile(r"(?!)")
    return re.compile("|".join(patterns))


def _reaches_only(prefix: Sequence[str], command: SimpleCommand) -> bool:
    """Check that a program gets harmless options, and pages of one host only: the one in its prefix."""
    if len(prefix) != 2 or command.words[0] != prefix[0]:
        return False
    harmless = _find_harmless_options(prefix)
    for word in command.words[1:]:
        if word is None:
            return False
        origin = _ORIGIN.match(word)
        is_page = origin is not None and f"{origin[0]}/" == prefix[1]
        if not is_page and not harmless.fullmatch(word):
            return False
    return True


def _leads_elsewhere(start: str, word: str | None, root: Path | None) -> bool:
    """Check whether a word after the start of a command may bring code or settings from elsewhere."""
    if word is None or word.startswith("-"):
        return False  # options are judged by their names
    if _WITHOUT_OPERANDS.fullmatch(start) or _LEADS_ELSEWHERE.match(word):
        return True
    if start.startswith("git ") and ":" in word:  # a host, or another branch
        return True
    is_inside = root is not None and Path(os.path.normpath(word)).is_relative_to(root)
    return word.startswith("/") and not is_inside


def _is_deep(words: Sequence[str]) -> bool:
    return any(_WITH_TWO_SUBCOMMANDS.fullmatch(" ".join(words[:count])) for count in (1, 2))


def _make_prefix(command: SimpleCommand, root: Path | None) -> str:
    """Return the shortest prefix that covers a command, and nothing for programs that run any code."""
    words = [_get_plain_word(word) for word in command.words]
    if _URL_PROGRAMS.fullmatch(words[0]):
        return _make_host_prefix(words[0], command)
    count = _count_words(words)
    if not count or _may_run_any_code(words):
        return ""
    if words[0] in ("cd", "pushd"):
        for word in words[1:]:
            if _leads_elsewhere("cd", word, root):
                return ""  # whatever else is allowed would run in that folder too
    chosen = words[: _count_covering_words(words, count, command, root)]
    is_whole = all(chosen) and not re.match("[a-z]+:", chosen[0])
    if is_whole and _covers(chosen, command, root):
        return " ".join(chosen)
    return ""


def _may_run_any_code(words: Sequence[str]) -> bool:
    """Check for programs whose other operands are code, or a file to write."""
    if words[0] == "env" and words[1:]:
        return True  # it leads to another folder, else it is no command of its own
    return any(_UNCOVERED.fullmatch(" ".join(words[:count])) for count in (1, 2))


def _count_covering_words(words: Sequence[str], count: int, command: SimpleCommand, root: Path | None) -> int:
    """Count the words after which a command has only operands and harmless options; all of them if none are."""
    while count < len(words) and not _covers(words[:count], command, root):
        if count > MAX_PREFIX_CHARS:  # too long to be offered; going on takes quadratic time
            break
        is_option = words[count].startswith("-") and "=" not in words[count]
        count += 1
        if is_option and count < len(words):  # the next word may be its value
            count += 1
    return count


def _make_host_prefix(program: str, command: SimpleCommand) -> str:
    """Return the program and the address of the one host that a command reaches; empty if there are others."""
    origins = [_ORIGIN.match(word or "") for word in command.words]
    for origin in filter(None, origins):
        prefix = (program, f"{origin[0]}/")
        if _reaches_only(prefix, command):
            return " ".join(prefix)
    return ""


def _count_words(words: Sequence[str]) -> int:
    """Count the words that say what runs: the program and its subcommands. Return 0 if one is missing."""
    count = _choose_word_count(words)
    chosen = words[:count]
    is_missing = len(chosen) < count or not all(chosen) or chosen[-1].startswith("-")
    return 0 if is_missing else count


def _choose_word_count(words: Sequence[str]) -> int:
    program = words[0].rpartition("/")[2]
    has_launcher = len(words) > 1 and _LAUNCHERS.fullmatch(words[1])
    if has_launcher:
        return 3
    if _is_deep([program, *words[1:2]]):
        return max(_count_plain_words(words), 3)
    if _INTERPRETERS.fullmatch(program) or _WITH_SUBCOMMANDS.fullmatch(program):
        return 2
    may_have_subcommand = len(words) > 1 and re.fullmatch(r"[a-z][a-z0-9-]*", words[1])
    return 2 if may_have_subcommand else 1


def _count_plain_words(words: Sequence[str]) -> int:
    """Count the words at the start that may be subcommands."""
    for count, word in enumerate(words):
        if not re.fullmatch(r"[a-z][\w.-]*", word):
            return count
    return len(words)


def _get_plain_word(word: str | None) -> str:
    if word and re.fullmatch(r"[\w@%+=./-][\w@%+=:./-]*", word, re.ASCII):
        return word
    return ""
