"""The workspace's files, found by some letters of their names."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.cli.chat.file_finder import MAX_PATHS, FileFinder, PathIndex
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace


def names(*paths: str) -> PathIndex:
    return PathIndex.from_listing("".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("letters", "best_first"),
    [
        # In the name: letters in a row by length, then scattered; then in folders.
        ("main", ["main/", "main.py", "src/main.py", "m_a_i_n.py", "main/x.py"]),
        ("MAIN.P", ["main.py", "src/main.py", "m_a_i_n.py", "main/x.py"]),
        ("src/ma", ["src/main.py"]),
        ("s/x", []),
        ("sx", []),
        ("n/x", ["main/x.py"]),
        ("sma", ["src/main.py"]),
        ("zz", []),
        ("", ["m_a_i_n.py", "main.py", "main/", "src/"]),
    ],
)
def test_the_best_come_first(letters, best_first):
    assert names("src/main.py", "m_a_i_n.py", "main.py", "main/x.py").find_paths(letters) == best_first


def test_no_more_are_offered_than_one_looks_at():
    assert len(names(*(f"{n}.py" for n in range(1000))).find_paths("py")) == MAX_PATHS


def test_every_folder_is_there_and_names_that_a_screen_or_utf8_can_not_hold_are_not():
    assert names("a/b/c/d.py").find_paths("/") == ["a/", "a/b/", "a/b/c/", "a/b/c/d.py"]
    assert names("a\nb", "c\x1bd", "e\udcfff", 'g"h').find_paths("") == []


PATHS = st.lists(st.text("abAB.-^]", min_size=1, max_size=9).map(lambda name: f"x/{name}"), max_size=30, unique=True)


@given(PATHS, st.text("abB.-^]x", min_size=1, max_size=4))
def test_exactly_those_with_the_letters_in_their_order_are_found(paths, letters):
    def has(path: str) -> bool:
        rest = iter(path.lower())
        return all(letter in rest for letter in letters.lower())

    every = names(*paths)
    for end in range(1, len(letters)):
        every.find_paths(letters[:end])
    found = every.find_paths(letters)
    assert found == names(*paths).find_paths(letters)
    assert sorted(found) == sorted(filter(has, {*paths, *(["x/"] if paths else [])}))


async def test_what_git_ignores_is_left_out_and_new_files_come(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    for name in ("seen.py", "built.o", ".hidden", "sub/below.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("*.o\n")
    async with Workspace(tmp_path, mode="full", approval="auto", notifier=Recorder()) as workspace:
        files = FileFinder(workspace.root, workspace.run_internal)
        found = await asyncio.to_thread(files.find_paths, "")
        assert found == [".gitignore", ".hidden", "seen.py", "sub/"]
        (tmp_path / "new.py").touch()
        async with asyncio.timeout(60):
            while "new.py" not in await asyncio.to_thread(files.find_paths, ""):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_where_nothing_can_be_listed_nothing_is_offered(tmp_path: Path):
    async with Workspace(tmp_path, mode="full", approval="auto", notifier=Recorder()) as workspace:
        files = FileFinder(tmp_path / "gone", workspace.run_internal)
        assert await asyncio.to_thread(files.find_paths, "a") == []
