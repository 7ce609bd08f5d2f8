"""The wheel and the sdist: their files, their version, and a run from the wheel."""

import os
import subprocess
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from goose_like import __version__
from tests import ROOT

PLACES = {
    "goose_like": "goose_like",
    "toolkits/goose_like_toolkits": "goose_like_toolkits",
    "profiles/goose_like_profiles": "goose_like_profiles",
}
"""The folders of a wheel's packages in the repository, and in the wheel."""
MADE = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git's list of files is the measure")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(path)


@pytest.fixture(scope="module")
def installed(wheel) -> Path:
    """The wheel in a folder of its own, which goes before the checkout in PYTHONPATH."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "installed")
    return wheel.parent / "installed"


def list_files() -> list[str]:
    words = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).exists()]


def find_place_in_wheel(name: str) -> str | None:
    for folder, package in PLACES.items():
        if name.startswith(f"{folder}/"):
            return package + name.removeprefix(folder)
    if PurePosixPath(name).match("docs/*.md") and name.count("/") == 1:
        return f"goose_like/{name}"
    return None


def test_the_wheel_has_the_files_of_the_packages_and_the_pages_and_no_others(wheel):
    expected = {place for place in map(find_place_in_wheel, list_files()) if place}
    expected |= {"goose_like/commit.txt"} | {f"goose_like-{__version__}.dist-info/{name}" for name in MADE}
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) == expected
        named = [name for name in archive.namelist() if os.fsencode(ROOT) in archive.read(name)]
    assert named == []


def test_the_sdist_has_the_files_of_the_repository_and_no_others(tmp_path):
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(each.uid, each.uname) for each in archive.getmembers()}
    assert names == {*list_files(), "PKG-INFO", "goose_like/commit.txt"}
    assert owners == {(0, "")}


def test_a_run_from_the_wheel_is_a_run_from_the_checkout(place, installed):
    model = place.script({"calls": [{"tool": "shell", "arguments": {"command": "echo hi > a"}}]}, "done")
    words = ("run", "--model", model, "--output-format", "stream-json", "--no-session", "go")
    here = place.run(*words)
    (place.work / "a").unlink()
    there = place.run(*words, env={"PYTHONPATH": str(installed)})
    assert (there.returncode, (place.work / "a").read_text()) == (0, "hi\n"), there.stderr
    assert there.stdout == here.stdout


def test_the_version_names_the_commit(place, installed):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    text = f"goose-like {__version__} ({commit[:7]})\n"
    assert (installed / "goose_like/commit.txt").read_text() == f"{commit[:7]}\n"
    for env in ({}, {"PYTHONPATH": str(installed)}):
        assert place.run("--version", env=env).stdout == text
    assert place.run("version").stdout.startswith(text)
