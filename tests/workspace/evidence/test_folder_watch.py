"""Signs of changes in watched folders. That no change comes without a sign is tested with the hash of a tree."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from goose_like.workspace.evidence import folder_watch
from goose_like.workspace.evidence.folder_watch import FolderWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@pytest.fixture
def watch() -> Iterator[FolderWatch]:
    with closing(FolderWatch()) as watch:
        yield watch


def test_reading_leaves_no_sign(watch: FolderWatch, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_text("one")
    watch.watch([str(tmp_path), str(tmp_path / "sub")])
    subprocess.run(["bash", "-c", "cat sub/a; ls -R; test -x sub/a; stat sub/*"], cwd=tmp_path, check=True)
    assert watch.take_signs() == set()


@pytest.mark.parametrize(
    "command",
    [
        "echo two >> sub/a",
        ": > sub/a",
        "chmod +x sub/a",
        "touch sub/a",
        "rm sub/a",
        "mv sub/a other",
        "mv sub other",
        "rm -r sub",
        "ln -s nowhere sub/b",
        "mkdir new",
        "mkfifo sub/b",
    ],
)
def test_each_change_leaves_a_sign(watch: FolderWatch, tmp_path: Path, command: str):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_text("one")
    watch.watch([str(tmp_path), str(tmp_path / "sub")])
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert watch.take_signs() != set()
    assert watch.take_signs() == set(), "each sign is told once"


def test_a_map_of_a_process_that_has_ended_leaves_a_sign(watch: FolderWatch, tmp_path: Path):
    (tmp_path / "a").write_text("one")
    watch.watch([str(tmp_path)])
    lines = "import mmap, os; map = mmap.mmap(os.open('a', os.O_RDWR), 3); map[:] = b'two'"
    subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, check=True)
    assert (tmp_path / "a").read_text() == "two"
    assert watch.take_signs() == {str(tmp_path / "a")}


def test_a_folder_that_was_made_anew_is_watched_again(watch: FolderWatch, tmp_path: Path):
    sub = tmp_path / "sub"
    sub.mkdir()
    folders = [str(tmp_path), str(sub)]
    watch.watch(folders)
    sub.rmdir()
    sub.mkdir()
    assert watch.take_signs() is None
    watch.watch(folders)
    (sub / "a").touch()
    assert watch.take_signs() == {str(sub / "a")}


def test_a_folder_that_is_gone_or_a_link_is_left_out(watch: FolderWatch, tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("sub")
    watch.watch([str(tmp_path), str(tmp_path / "gone"), str(tmp_path / "link")])
    (tmp_path / "sub/a").touch()
    assert watch.take_signs() == set()


def test_without_a_watch_anything_may_have_changed(watch: FolderWatch, tmp_path: Path, monkeypatch):
    assert watch.take_signs() is None
    monkeypatch.setattr(folder_watch, "_MAX_FOLDERS", 1)
    watch.watch([str(tmp_path), "/"])
    assert watch.take_signs() is None
    watch.watch([str(tmp_path)])
    assert watch.take_signs() is None


def test_many_signs_tell_no_paths(watch: FolderWatch, tmp_path: Path):
    watch.watch([str(tmp_path)])
    for number in range(3_000):
        os.close(os.open(tmp_path / f"{number % 2}", os.O_WRONLY | os.O_CREAT))
    assert watch.take_signs() is None


def test_more_signs_than_the_kernel_keeps_are_signs(watch: FolderWatch, tmp_path: Path):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watch.watch([str(tmp_path)])
    if limit > 100_000:
        pytest.skip("this kernel keeps very many signs")
    for number in range(limit // 2 + 1):
        os.close(os.open(tmp_path / f"{number % 2}", os.O_WRONLY | os.O_CREAT))
    assert watch.take_signs() is None
    assert watch.take_signs() == set()
