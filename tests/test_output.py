"""However long the output: a model reads head and tail, the file has all of it, memory stays small."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.output import Output, readable


def test_short_output_is_whole_and_leaves_no_file(tmp_path):
    path = tmp_path / "outputs" / "c1.txt"
    assert readable("a\nü", path, 400) == "a\nü"
    assert not path.parent.exists()


def test_long_output_in_one_piece(tmp_path):
    path, text = tmp_path / "outputs" / "c1.txt", "".join(f"line {n}\n" for n in range(1000))
    read = readable(text, path, 400)
    assert path.read_text() == text
    assert read.startswith("line 0\nline 1\n")
    assert read.endswith("line 998\nline 999\n")
    assert f"{len(text) - 400:,} of {len(text):,} bytes (1,000 lines) left out here; all of it is in {path}" in read


@given(st.lists(st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"0"))), st.integers(10, 80))
def test_any_pieces(tmp_path_factory, pieces, limit):
    path = tmp_path_factory.mktemp("o") / "c1.txt"
    output, data = Output(path, limit), b"".join(pieces)
    for piece in pieces:
        output.write(piece)
    output.close()
    if len(data) <= limit:
        assert output.for_model() == data.decode(errors="replace")
        assert not path.exists()
    else:
        assert path.read_bytes() == data
        assert len(output._head) + len(output._tail) == limit // 2 * 2
        assert data.startswith(output._head)
        assert data.endswith(output._tail)


def test_it_is_cut_between_characters(tmp_path):
    read = readable("ü" * 1000, tmp_path / "o", 402)
    assert "\ufffd" not in read
    assert read.startswith("ü" * 100 + "\n")
    assert read.endswith("\n" + "ü" * 100)


def test_memory_stays_small(tmp_path):
    output = Output(tmp_path / "o", 400)
    for _ in range(300):
        output.write(b"x" * 10_000)
        assert len(output._head) + len(output._tail) <= 400
    output.close()
    assert (tmp_path / "o").stat().st_size == 3_000_000


@pytest.mark.parametrize("size", [10, 5000])
def test_binary_is_told_and_saved(tmp_path, size):
    path = tmp_path / "outputs" / "c1.txt"
    output = Output(path, 400)
    output.write(b"\0" * size)
    output.close()
    assert output.for_model() == f"[binary output, {size:,} bytes, saved as {path}]"
    assert path.read_bytes() == b"\0" * size


def test_undecodable_bytes_and_half_surrogates(tmp_path):
    output = Output(tmp_path / "o", 400)
    output.write(b"caf\xe9")
    assert output.for_model() == "caf\ufffd"
    assert readable("a\udcff", tmp_path / "o", 400) == "a?"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_ends_nothing():
    read = readable("x" * 100_000, Path("/dev/full"), 400)
    assert read.startswith("x" * 200 + "\n[... 99,600 of 100,000 bytes")
    assert "it could not be saved: [Errno 28]" in read
