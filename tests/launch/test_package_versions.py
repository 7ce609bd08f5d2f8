"""Versions of packages: those who ask for nothing else do not wait for `importlib.metadata`."""

import subprocess
import sys
from importlib.metadata import version

SCRIPT = """
import sys
from goose_like.launch.package_versions import spare_metadata

spare_metadata()
import httpx2, httpcore2

print(httpx2.__version__, httpcore2.__version__)
print("zipfile" in sys.modules)
"""


def run_script(text: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT + text], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_packages_find_their_versions_without_the_module() -> None:
    assert run_script("") == [version("httpx2"), version("httpcore2"), "False"]


def test_other_parts_of_the_module_work() -> None:
    text = """
import importlib.metadata
from importlib import metadata
from importlib.metadata import PackageNotFoundError, version

try:
    version("no-such-package")
except PackageNotFoundError:
    print("missing")
print(metadata.distribution("httpx2").name, importlib.metadata.requires is metadata.requires)
print(type(importlib.metadata).__name__, importlib.metadata is sys.modules["importlib.metadata"])
import importlib.metadata._meta
print(importlib.metadata._meta.__name__)
"""
    expected = ["missing", "httpx2", "True", "module", "True", "importlib.metadata._meta"]
    assert run_script(text)[3:] == expected
