"""Facts about a project that a model needs first: the folder, the system, Python, tests and changed files."""

import json
import os
import platform
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from goose_like.config.paths import read_user_file
from goose_like.core.threads import run_in_thread
from goose_like.toolkit import Workspace
from goose_like.workspace.sandbox.environment import build_environment

from .git_facts import collect_git_facts, is_cache, join_names

_MAX_NAMES = 30
_MAX_FILE_BYTES = 200_000
VENVS = (".venv", "venv", "env")
_VENV_VERSION = r"^version(?:_info)? *= *([\d.]+)"
_SHOWN_CACHES = (".venv/", "venv/", "node_modules/")
_NPM = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun"}
_TEST_COMMANDS = {
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "pom.xml": "mvn test",
    "gradlew": "./gradlew test",
    "mix.exs": "mix test",
    "manage.py": "{python} manage.py test",
    "pytest.ini": "{python} -m pytest",
    "conftest.py": "{python} -m pytest",
    "tox.ini": "{python} -m pytest",
    "tests": "{python} -m pytest",
}


class ProjectFacts:
    """The facts, which the model reads once: they are collected anew only when they are told again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._facts: dict[str, str] | None = None

    async def collect(self, told: Mapping[str, str]) -> Mapping[str, str]:
        """Return the facts by subject. `told` are those that the model knows, by `toolkit.subject`.

        This takes milliseconds: it draws no sandbox.
        """
        is_told = any(name.partition(".")[2] == "folder" for name in told)
        if self._facts is None or not is_told:
            self._facts = await run_in_thread(lambda: dict(self._iterate_facts()))
        return self._facts

    async def find_test_command(self) -> str:
        """Find the command of the project's tests; empty if it seems to have none."""
        return await run_in_thread(self._guess_test_command)

    def _guess_test_command(self) -> str:
        names = self._list_names()
        python, _ = self._find_python(names)
        return self._find_test_command(names, python or "python3")

    def _iterate_facts(self) -> Iterator[tuple[str, str]]:
        names = self._list_names()
        yield "folder", f"{self._workspace.root} on {platform.system()} {platform.machine()}"
        shown = [name for name in names if name in _SHOWN_CACHES or not is_cache(name)]
        yield "top level", join_names(shown, _MAX_NAMES) or "empty"
        python, version = self._find_python(names)
        yield "Python", ", ".join(filter(None, [python, version])) or "none"
        command = self._find_test_command(names, python or "python3")
        if command:
            yield "tests, as it seems", command
        yield from collect_git_facts(self._workspace).items()

    def _list_names(self) -> list[str]:
        """List the names at the top level. Those of folders end with `/`."""
        names: list[str] = []
        try:
            with os.scandir(self._workspace.root) as entries:
                for entry in entries:
                    suffix = "/" if entry.is_dir(follow_symlinks=False) else ""
                    names.append(entry.name + suffix)
        except OSError:
            return []
        names.sort()
        return [name for name in names if name.rstrip("/") != ".git" and not self._workspace.is_ignored(name)]

    def _find_python(self, names: list[str]) -> tuple[str, str]:
        """Return the path and version of the project's interpreter, else of the one on the PATH of commands."""
        for name in VENVS:
            if f"{name}/" not in names:
                continue
            settings = self._read(f"{name}/pyvenv.cfg")
            found = re.search(_VENV_VERSION, settings, re.MULTILINE)
            if found:
                return f"{name}/bin/python", found[1].rstrip(".")
        path = build_environment(is_confined=self._workspace.mode != "full").get("PATH")
        python = shutil.which("python3", path=path)
        if not python:
            return "", ""
        found = re.fullmatch(r"python(\d+\.\d+)", Path(python).resolve().name)
        version = found[1] if found else ""
        return python, version

    def _find_test_command(self, names: list[str], python: str) -> str:
        if re.search(r"^test *:", self._read("Makefile"), re.MULTILINE):
            return "make test"
        with suppress(ValueError, RecursionError, AttributeError):
            package = json.loads(self._read("package.json") or "{}")
            if package.get("scripts", {}).get("test"):
                manager = _find_first(_NPM, names) or "npm"
                return f"{manager} test"
        if "pytest" in self._read("pyproject.toml") + self._read("setup.cfg"):
            return f"{python} -m pytest"
        bare = {name.rstrip("/") for name in names}
        return _find_first(_TEST_COMMANDS, bare).format(python=python)

    def _read(self, name: str) -> str:
        with suppress(OSError, ValueError):
            if not self._workspace.is_ignored(name):
                return read_user_file(self._workspace.root / name, _MAX_FILE_BYTES)
        return ""


def _find_first(values: Mapping[str, str], names: Collection[str]) -> str:
    """Return the value of the first name that is there; "" for none."""
    for name, value in values.items():
        if name in names:
            return value
    return ""
