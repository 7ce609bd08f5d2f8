"""Tests of limited output: the model reads head and tail, the file has everything, memory stays small."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.sessions.output_limit import LimitedOutput, limit_text


def test_short_output_is_whole_and_leaves_no_file(tmp_path):
    path = tmp_path / "outputs" / "c1.txt"
    assert limit_text("a\nü", path, 400) == "a\nü"
    assert not path.parent.exists()


def test_long_output_in_one_piece(tmp_path):
    path, text = tmp_path / "outputs" / "c1.txt", "".join(f"line {n}\n" for n in range(1000))
    read = limit_text(text, path, 400)
    assert path.read_text() == text
    assert read.startswith("line 0\nline 1\n")
    assert read.endswith("line 998\nline 999\n")
    assert f"{len(text) - 400:,} of {len(text):,} bytes (1,000 lines) left out here; all of it is in {path}" in read


@given(st.lists(st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"0"))), st.integers(10, 80))
def test_any_pieces(tmp_path_factory, pieces, limit):
    path = tmp_path_factory.mktemp("o") / "c1.txt"
    output, data = LimitedOutput(path, limit), b"".join(pieces)
    for piece in pieces:
        output.write(piece)
    output.close()
    if len(data) <= limit:
        assert output.format_for_model() == data.decode(errors="replace")
        assert not path.exists()
    else:
        assert path.read_bytes() == data
        assert len(output._head) + len(output._tail) == limit // 2 * 2
        assert data.startswith(output._head)
        assert data.endswith(output._tail)


def test_it_is_cut_between_characters(tmp_path):
    read = limit_text("ü" * 1000, tmp_path / "o", 402)
    assert "\ufffd" not in read
    assert read.startswith("ü" * 100 + "\n")
    assert read.endswith("\n" + "ü" * 100)


def test_memory_stays_small(tmp_path):
    output = LimitedOutput(tmp_path / "o", 400)
    for _ in range(300):
        output.write(b"x" * 10_000)
        assert len(output._head) + len(output._tail) <= 400
    output.close()
    assert (tmp_path / "o").stat().st_size == 3_000_000


@pytest.mark.parametrize("size", [10, 5000])
def test_binary_output_is_saved(tmp_path, size):
    path = tmp_path / "outputs" / "c1.txt"
    output = LimitedOutput(path, 400)
    output.write(b"\0" * size)
    output.close()
    assert output.format_for_model() == f"[binary output, {size:,} bytes, saved as {path}]"
    assert path.read_bytes() == b"\0" * size


def test_undecodable_bytes_and_half_surrogates(tmp_path):
    output = LimitedOutput(tmp_path / "o", 400)
    output.write(b"caf\xe9")
    assert output.format_for_model() == "caf\ufffd"
    assert limit_text("a\udcff", tmp_path / "o", 400) == "a?"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_stops_nothing():
    read = limit_text("x" * 100_000, Path("/dev/full"), 400)
    assert read.startswith("x" * 200 + "\n[... 99,600 of 100,000 bytes")
    assert "it could not be saved: [Errno 28]" in read


def test_take_new_returns_output_once(tmp_path: Path) -> None:
    output = LimitedOutput(tmp_path / "out.txt", 100)
    output.save_all()
    output.write(b"one\n")
    assert output.take_new() == "one\n"
    assert output.take_new() == ""
    output.write(b"two\n")
    output.write(b"x" * 300)
    assert f"[... 204 of 304 bytes (1 lines) left out here; all of it is in {tmp_path}" in output.take_new()
    output.write(b"a\0b")
    assert output.take_new().startswith("[binary output, 3 bytes, saved as ")
    output.write(b"end\n")
    output.close()
    assert output.take_new() == "end\n"
    assert (output.size_bytes, output.new_bytes) == (315, 0)
    assert (tmp_path / "out.txt").read_bytes() == b"one\ntwo\n" + b"x" * 300 + b"a\0bend\n"


@given(data=st.text(alphabet="aé€😀\n", max_size=80), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_all_parts_together_equal_the_output(data: str, cuts: list[int]) -> None:
    """However the bytes of a character were torn apart."""
    with TemporaryDirectory() as folder:
        output = LimitedOutput(Path(folder, "out.txt"), 1000)
        output.save_all()
        sent, places = data.encode(), sorted({0, *(min(cut, len(data.encode())) for cut in cuts)})
        taken = ""
        for start, end in zip(places, [*places[1:], len(sent)], strict=True):
            output.write(sent[start:end])
            taken += output.take_new()
        assert taken == data


def test_half_a_character_at_the_end(tmp_path: Path) -> None:
    output = LimitedOutput(tmp_path / "out.txt", 100)
    output.save_all()
    output.write(b"a\xc3")
    assert output.take_new() == "a"
    output.close()
    assert output.take_new() == "\ufffd"


@pytest.mark.parametrize("size_bytes", [0, 5, 999, 2_001])
def test_tail(tmp_path, size_bytes):
    output = LimitedOutput(tmp_path / "out", 1_000)
    output.write(b"x" * size_bytes)
    output.write(b"the end")
    assert output.get_tail(7) == "the end"
    assert output.get_tail(10) == "xxxthe end"[-7 - min(3, size_bytes) :]
    assert not (size_bytes < 900 and output.path.exists())
