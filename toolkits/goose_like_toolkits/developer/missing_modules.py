"""Advice on a module that Python did not find: models try the same import again and again."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from goose_like.core.pattern import compile_later

from .project_facts import VENVS

_NO_MODULE = compile_later(r"\bNo module named '?(\w+)\b(?!\.)")
_SOURCES = ("src", "lib")
_MAX_WORDS = 200


def explain_missing_module(
    command: str, text: str, folder: Path, root: Path, *, has_network: bool, wants_other_way: bool
) -> Iterator[str]:
    """Say where the module is that a command in this folder missed, or that it is not installed.

    With `wants_other_way` the model is told to do without a module that is nowhere.
    """
    found = _NO_MODULE.search(text)
    if found is None:
        return
    name = found[1]
    if _holds(folder, name):
        yield f"{name} is in {folder}: run this there with `python -m`, tests with `python -m pytest`"
        return
    for place in _list_folders(command, folder, root):
        if _holds(place, name):
            yield f"{name} is in {place}: run this with PYTHONPATH={shlex.quote(str(place))}"
            return
    for venv in VENVS:
        python = root / venv / "bin/python"
        packages = root.glob(f"{venv}/lib/python3*/site-packages")
        if python.exists() and any(_holds(place, name) for place in packages):
            yield f"{name} is in the project's {venv}: run this with {shlex.quote(str(python))}"
            return
    if not wants_other_way:
        yield f"{name} is not installed"
        return
    why = "is not installed"
    if not has_network:
        why += ", and pip has no network"
    yield f"{name} {why}: write it without {name}, with what Python itself has"


def _list_folders(command: str, folder: Path, root: Path) -> Iterator[Path]:
    """List the folders in which the project may have modules: its sources, and the folders of scripts."""
    for place in dict.fromkeys((folder, root)):
        yield from (place / source for source in _SOURCES)
    yield root
    for word in command.split()[:_MAX_WORDS]:
        if word.endswith(".py"):
            yield folder / Path(word).parent


def _holds(folder: Path, module: str) -> bool:
    return any((folder / name).exists() for name in (module, f"{module}.py"))
