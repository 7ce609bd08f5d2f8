"""The files of a batch: whole at any moment, and of one process."""

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.jobs.batch.jsonl_file import JsonlFile
from goose_like.jobs.batch.spending import Attempt


@given(cut=st.integers(0, 400), count=st.integers(0, 5))
def test_a_file_cut_anywhere_keeps_its_whole_records(tmp_path_factory: pytest.TempPathFactory, cut: int, count: int):
    path = tmp_path_factory.mktemp("cut") / "a.jsonl"
    records = [Attempt(number=number, attempt=1, tokens=number) for number in range(count)]
    with JsonlFile(path, Attempt) as file:
        for record in records:
            file.append(record)
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    with JsonlFile(path, Attempt) as file:
        assert file.records == records[: data.count(b"\n")]
        file.append(Attempt(number=99, attempt=1))
    assert path.read_bytes().count(b"\n") == data.count(b"\n") + 1
    with JsonlFile(path, Attempt) as file:
        assert file.records[-1].number == 99


def test_another_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"mine": 1}\nunfinished')
    with pytest.raises(UsageError, match=r"notes.jsonl, line 1: not written by a batch"), JsonlFile(path, Attempt):
        raise AssertionError
    assert path.read_text() == '{"mine": 1}\nunfinished'


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with (
        JsonlFile(path, Attempt) as file,
        pytest.raises(UsageError, match="another process"),
        JsonlFile(path, Attempt),
    ):
        raise AssertionError
    assert file.records == []


def test_a_full_disk_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with JsonlFile(tmp_path / "a.jsonl", Attempt) as file:
        file.append(Attempt(number=1, attempt=1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (70, hard))
        try:
            with pytest.raises(GooseLikeError, match="make room, then resume"):
                file.append(Attempt(number=2, attempt=1))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with JsonlFile(tmp_path / "a.jsonl", Attempt) as file:
        assert [record.number for record in file.records] == [1]


def test_a_device_is_refused() -> None:
    with pytest.raises(UsageError, match="no ordinary file"), JsonlFile(Path("/dev/full"), Attempt):
        raise AssertionError
