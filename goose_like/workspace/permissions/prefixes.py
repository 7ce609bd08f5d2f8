"""Prefixes of commands: what an answer for the session covers.

A prefix covers a later command that begins with its words and has no further option which might write, run or delete.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from .rules import is_plain, list_essential
from .shell_syntax import SimpleCommand, parse_line

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
    r"curl": r"-[sSfLiIv46]+|-m|--(show-error|fail|location|head|include|max-time|connect-timeout|compressed)",
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


def list_prefixes(line: str) -> list[str]:
    """List the prefixes that would cover a line and others like it; empty if that would cover any code."""
    commands = parse_line(line)
    prefixes = list(dict.fromkeys(map(_make_prefix, list_essential(commands))))
    if not all(map(is_plain, commands)) or not all(prefixes) or len(", ".join(prefixes)) > MAX_PREFIX_CHARS:
        return []
    return prefixes


def is_covered(line: str, prefixes: Sequence[str]) -> bool:
    """Check whether prefixes together cover a line."""
    commands = parse_line(line)
    needed = list_essential(commands)
    return all(map(is_plain, commands)) and all(
        any(_covers(prefix.split(), command) for prefix in prefixes) for command in needed
    )


def _covers(prefix: Sequence[str], command: SimpleCommand) -> bool:
    """Check that a command begins with a prefix, and that the rest has only operands and harmless options."""
    if command.words[: len(prefix)] != tuple(prefix):
        return False
    if _READERS.fullmatch(prefix[0]):
        return True
    start = " ".join(prefix)
    patterns = [known for name, known in _HARMLESS_OPTIONS.items() if re.match(rf"(?:{name})(?: |\Z)", start)]
    harmless = re.compile("|".join([*patterns, *([] if _is_deep(prefix) else [_EVERYWHERE])]) or r"(?!)")
    rest = command.words[len(prefix) :]
    for before, word in pairwise((None, *(rest[: rest.index("--")] if "--" in rest else rest))):
        if prefix[0] == "find" and before and word and re.fullmatch("-i?(name|path)", before) and word.strip("*"):
            continue  # a pattern, usually in quotes
        # The shell may turn a pattern into an option. For git push, `+main` forces and `:main` deletes a branch.
        may_be_option = word is None or (len(word) > 1 and word[0] in "-+:*?[{") or word == "*"
        if may_be_option and not (word and harmless.fullmatch(word.partition("=")[0])):
            return False
    return True


def _is_deep(words: Sequence[str]) -> bool:
    return any(_WITH_TWO_SUBCOMMANDS.fullmatch(" ".join(words[:count])) for count in (1, 2))


def _make_prefix(command: SimpleCommand) -> str:
    """Return the shortest prefix that covers a command, and nothing for programs that run any code."""
    words = [_get_plain_word(word) for word in command.words]
    count = _count_words(words)
    if not count or any(_UNCOVERED.fullmatch(" ".join(words[:size])) for size in (1, 2)):
        return ""
    while count < len(words) and not _covers(words[:count], command):
        if count > MAX_PREFIX_CHARS:  # too long to be offered; going on takes quadratic time
            return ""
        count += 1
        is_option = words[count - 1].startswith("-") and "=" not in words[count - 1]
        count += is_option and count < len(words)  # the next word may be its value
    chosen = words[:count]
    is_whole = all(chosen) and not re.match("[a-z]+:", chosen[0])
    return " ".join(chosen) if is_whole and _covers(chosen, command) else ""


def _count_words(words: Sequence[str]) -> int:
    """Count the words that say what runs: the program and its subcommands. Return 0 if one is missing."""
    program = words[0].rpartition("/")[2]
    count = 1
    if len(words) > 1 and _LAUNCHERS.fullmatch(words[1]):
        count = 3
    elif _is_deep([program, *words[1:2]]):
        count = next((at for at, word in enumerate(words) if not re.fullmatch(r"[a-z][\w.-]*", word)), len(words))
        count = max(count, 3)
    elif (
        _INTERPRETERS.fullmatch(program)
        or _WITH_SUBCOMMANDS.fullmatch(program)
        or (len(words) > 1 and re.fullmatch(r"[a-z][a-z0-9-]*", words[1]))
    ):
        count = 2
    chosen = words[:count]
    is_missing = len(chosen) < count or not all(chosen) or chosen[-1].startswith("-")
    return 0 if is_missing else count


def _get_plain_word(word: str | None) -> str:
    return word if word and re.fullmatch(r"[\w@%+=./-][\w@%+=:./-]*", word, re.ASCII) else ""
