"""Inputs of a batch: every form, and the sentence for each mistake."""

from pathlib import Path

import pytest

from goose_like.core.errors import UsageError
from goose_like.jobs.batch.inputs import InputReader, choose_place


@pytest.fixture
def reader(tmp_path: Path) -> InputReader:
    return InputReader(tmp_path, "copy")


def test_rows_of_a_table_and_lines_of_json(tmp_path: Path, reader: InputReader) -> None:
    (tmp_path / "a.csv").write_text('word,note\nx,"two\nlines"\ny,\n')
    (tmp_path / "a.jsonl").write_text('{"word": "x", "count": 2}\r\n\n{"word": "y\u2028"}')
    assert [each.parameters for each in reader.read("a.csv")] == [
        {"word": "x", "note": "two\nlines"},
        {"word": "y", "note": ""},
    ]
    assert [each.parameters for each in reader.read("a.jsonl")] == [{"word": "x", "count": 2}, {"word": "y\u2028"}]
    assert {(each.place, each.source) for each in reader.read("a.csv")} == {("copy", str(tmp_path))}


def test_the_entries_of_a_folder(tmp_path: Path, reader: InputReader) -> None:
    for name in ("all/b.txt", "all/sub/x", "all/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    file, folder = reader.read("all")
    assert (file.parameters, file.source) == ({"file": str(tmp_path / "all/b.txt")}, str(tmp_path))
    assert (folder.parameters, folder.place, folder.source) == ({}, "copy", str(tmp_path / "all/sub"))


def test_repositories(tmp_path: Path, reader: InputReader) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "all.txt").write_text("# ours\nmine\n\n https://example.org/x.git \n")
    (tmp_path / "all.jsonl").write_text('{"repository": "mine", "word": "x"}\n{"folder": "mine"}\n')
    found = reader.read("all.txt")
    assert [(each.place, each.source) for each in found] == [
        ("clone", str(tmp_path / "mine")),
        ("clone", "https://example.org/x.git"),
    ]
    first, second = reader.read("all.jsonl")
    assert (first.place, first.parameters, first.row) == ("clone", {"word": "x"}, {"repository": "mine", "word": "x"})
    assert (second.place, second.source) == ("copy", str(tmp_path / "mine"))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt"])
def test_the_mark_of_a_spreadsheet_is_no_part_of_a_name(tmp_path: Path, reader: InputReader, name: str) -> None:
    texts = {"a.csv": "word\r\nx\r\n", "a.jsonl": '{"word": "x"}\r\n', "a.txt": "https://example.org/x.git\r\n"}
    (tmp_path / name).write_text(texts[name], encoding="utf-8-sig", newline="")
    (found,) = reader.read(name)
    assert found.parameters == ({} if name == "a.txt" else {"word": "x"})
    assert name != "a.txt" or found.source == "https://example.org/x.git"


def test_empty_cells_name_no_place(tmp_path: Path, reader: InputReader) -> None:
    (tmp_path / "a.csv").write_text("folder,repository,word\n,,x\n")
    (found,) = reader.read("a.csv")
    assert (found.place, found.source, found.parameters) == ("copy", str(tmp_path), {"word": "x"})


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "word,note\nx,1\ny\n", "a.csv, line 3: this row does not have 2 cells"),
        ("a.csv", "word\nx,1\n", "a.csv, line 2: this row does not have 1 cells"),
        ("a.csv", 'word\n"x\n', "a.csv, after line 1: unexpected end of data"),
        ("a.csv", "word\n", "a.csv has no inputs"),
        ("a.csv", "word,note,word\nx,1,2\n", "a.csv, line 1: two columns have the name 'word'; rename one"),
        ("a.csv", "word,,\nx,1,2\n", "a.csv, line 1: two columns have no name; name or remove them"),
        ("a.jsonl", '{"word": 1}\n{word}\n', "a.jsonl, line 2: no JSON"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1: no JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl, line 1: each line is an object"),
        ("a.jsonl", '{"folder": "nowhere"}\n', "the folder 'nowhere', which does not exist"),
        ("a.txt", "# nothing\n", "a.txt has no inputs"),
        ("a.txt", b"\xff\xfe", "a.txt can't be read"),
        ("b.txt", None, "b.txt can't be read"),
    ],
)
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, reader: InputReader, name: str, content: str | bytes | None, reason: str
) -> None:
    if isinstance(content, str):
        content = content.encode()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as error:
        reader.read(name)
    assert reason in str(error.value)


def test_a_worktree_in_a_repository_and_a_copy_elsewhere(tmp_path: Path) -> None:
    assert choose_place(tmp_path) == "copy"
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    assert choose_place(tmp_path / "below") == "worktree"
