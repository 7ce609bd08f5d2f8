"""Files that git settings lead to: more settings, hooks, and programs such as filters, drivers and aliases."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from goose_like.core.pattern import compile_later
from goose_like.workspace.sandbox.path_rules import resolve_path

from .git import is_harmless_key, read_text

# Settings that name a file or folder with more settings, or with programs that git runs.
_REFERENCES = compile_later(
    r'^[ \t]*(?:\[[^]\n]*\][ \t]*)?(?:path|hookspath|fsmonitor)[ \t]*=[ \t]*"?([^"\n]+)', re.M | re.I
)

_SECTION = compile_later(r"\s*+\[\s*+([\w.-]++)\s*+(?:\"((?:[^\"\\]|\\.)*+)\"\s*+)?\](.*)", re.DOTALL)
_ENTRY = compile_later(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)", re.DOTALL)
_WORD = compile_later(r"[^\s\"'`;&|()<>{}$=\\!]+")
_PROGRAM = compile_later(r"(?:^|[;&|({!`\"'])\s*([^\s\"'`;&|()<>{}$=\\!]+)")
_INTERPRETER = compile_later(
    r"\b(?:\w*sh|python[\d.]*|perl|ruby|node|deno|bun|php|lua|g?awk|sed|make|source)\b|(?:^|[\s;&|(])\.\s"
)
_TEMPLATES = "init.templatedir"
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4096

# Settings whose values name files or addresses, but no program.
_NO_PROGRAMS = (
    *("branch.*", "remote.*.url", "remote.*.pushurl", "remote.*.fetch", "url.*", "user.*", "author.*", "committer.*"),
    *("core.excludesfile", "core.attributesfile", "core.worktree", "blame.*", "commit.*", "mailmap.*", "http.*"),
    *("includeif.*", "include.*", "submodule.*.url", "safe.*", "gpg.ssh.allowedsignersfile", "format.*", "color.*"),
)


class References(NamedTuple):
    """Real paths that settings lead to, existing or not: settings and hooks, and programs in the workspace."""

    paths: set[Path]
    programs: set[Path]


def find_references(configs: Iterable[Path], tops: Iterable[Path], roots: Collection[Path]) -> References:
    """Find the hooks, settings and programs that settings files lead to, directly or indirectly.

    A relative path is resolved against the folder of the settings and against each of `tops`, the folders that hold a
    `.git`. Programs count below `roots`. The result may contain too many paths.
    """
    found = References(set(), set())
    pending = list(configs)
    tops = list(tops)
    while pending:
        config = pending.pop()
        text = ""
        with suppress(OSError):
            text = read_text(config)
        folders = [config.parent, *tops]
        found.programs.update(find_git_programs(text, folders, roots))
        for value in _REFERENCES.findall(text):
            name = re.split(r"\s[#;]", value)[0].strip()
            for path in _resolve(name, folders):
                # husky names `.husky/_`, and the scripts there run those in `.husky`.
                path = path.parent if path.name == "_" else path
                if path in found.paths or name.lower() in ("true", "false"):
                    continue
                found.paths.add(path)
                if os.path.isfile(path):
                    pending.append(path)
    return found


def find_git_programs(text: str, folders: Collection[Path], roots: Collection[Path]) -> set[Path]:
    """Find the files below `roots` that git runs because of these settings, existing or not.

    Git resolves a relative path against one of `folders`. A file that is only an argument counts if it is executable,
    or if the setting names an interpreter too.
    """
    found: set[Path] = set()
    for key, value in _read_entries(text):
        if is_harmless_key(key) or any(fnmatchcase(key, pattern) for pattern in _NO_PROGRAMS):
            continue
        programs = set(_PROGRAM.findall(value))
        has_interpreter = _INTERPRETER.search(value) is not None
        for word in dict.fromkeys([*programs, *_WORD.findall(value)]):
            for path in _resolve(word, folders):
                if not any(root in path.parents for root in roots):
                    continue
                is_run = word in programs or has_interpreter or os.access(path, os.X_OK)
                is_absent_path = "/" in word and not os.path.lexists(path)
                is_program = is_run and (is_absent_path or os.path.isfile(path))
                is_template = key == _TEMPLATES and path.is_dir()
                if is_program or is_template:
                    found.add(path)
    return found


def _resolve(name: str, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the paths that a name can stand for, except those too long for any file."""
    path_below = os.path.expanduser(name)
    paths = [resolve_path(folder / path_below) for folder in folders]
    for path in dict.fromkeys(paths):
        is_name_short = all(len(os.fsencode(part)) <= _MAX_NAME_BYTES for part in path.parts)
        if is_name_short and len(os.fsencode(path)) < _MAX_PATH_BYTES:
            yield path


def _read_entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys (lower case) and values of settings, more tolerant than git."""
    section = ""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        header = _SECTION.fullmatch(line)
        if header:
            section = ".".join(filter(None, header.groups()[:2]))
            line = header[3]
        if entry := _ENTRY.fullmatch(line):
            value = entry[2].replace('\\"', '"').replace("\\\\", "\\").strip()
            yield f"{section}.{entry[1]}".lower(), value
