"""The search for repositories."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from goose_like.workspace.repositories.scanner import RepositoryScanner


def scan_twice(root: Path) -> RepositoryScanner:
    """Scan when the newest changes are old enough to have marks."""
    for folder in (root, *root.rglob("*/")):
        os.utime(folder)
    time.sleep(0.1)
    scanner = RepositoryScanner([root])
    scanner.scan()
    return scanner


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "sub/.git").mkdir(),
        lambda root: (root / "sub/.git").symlink_to("/nowhere"),
        lambda root: (root / "sub/inner").mkdir(),
        lambda root: (root / "sub").chmod(0),
        lambda root: (root / "sub").rename(root / "other"),
        lambda root: (root / "sub").rmdir(),
    ],
)
def test_every_change_shows(tmp_path: Path, change: Callable[[Path], None]) -> None:
    (tmp_path / "sub").mkdir()
    scanner = scan_twice(tmp_path)
    assert scanner.is_unchanged
    change(tmp_path)
    assert not scanner.is_unchanged


def test_a_large_tree_is_scanned_each_time(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / str(number)).mkdir()
    scanner = scan_twice(tmp_path)
    assert not scanner.is_unchanged
