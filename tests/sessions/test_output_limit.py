"""Tests of limited output: the model reads head and tail, the file has everything, memory stays small."""

import os
import re
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
    first, last = "".join(f"line {n}\n" for n in range(26)), "".join(f"line {n}\n" for n in range(978, 1000))
    note = f"[... 952 lines (8,494 bytes) left out here; all of it is in {path}: search it with rg or read a part of it"
    assert read == f"{first}{note} ...]\n{last}".removesuffix("\n")


@given(st.lists(st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"0"))), st.integers(10, 80))
def test_any_pieces(tmp_path_factory, pieces, limit):
    path = tmp_path_factory.mktemp("o") / "c1.txt"
    output, data = LimitedOutput(path, limit, keeps_codes=True), b"".join(pieces)
    for piece in pieces:
        output.write(piece)
        assert len(output._head) + len(output._tail) <= limit * 8
    output.close()
    if len(data) <= limit:
        assert output.format_for_model() == data.decode(errors="replace")
        assert not path.exists()
    else:
        assert path.read_bytes() == data
        assert "all of it is in" in output.format_for_model()


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(400, 2_000))
def test_lines_stay_whole_and_the_note_counts_those_that_are_missing(tmp_path_factory, sizes, limit):
    lines = [f"{number}:" + "é" * size for number, size in enumerate(sizes)]
    read = limit_text("".join(f"{line}\n" for line in lines), tmp_path_factory.mktemp("o") / "c1.txt", limit)
    left_out = re.search(r"^\[\.\.\. (\d+) lines \(", read, re.MULTILINE)
    shown = [line for line in read.splitlines() if re.match(r"\d+:", line)]
    assert len(shown) + int(left_out[1] if left_out else 0) == len(lines)
    assert all(line in lines or "bytes of this line left out" in line for line in shown)
    assert "\ufffd" not in read
    assert len(read.encode()) < limit + 300


def test_a_long_line_takes_only_a_part_of_the_limit(tmp_path):
    path = tmp_path / "o"
    read = limit_text("first\n" + "ü" * 10_000 + "\nlast\n", path, 4_000)
    long = "ü" * 187 + " [... 19,501 bytes of this line left out ...] " + "ü" * 62
    place = f"all of it is in {path}: search it with rg or read a part of it"
    assert read == f"first\n{long}\nlast\n[long lines are cut; {place}]"
    read = limit_text("first\n" + "x" * 400_000 + "\nlast\n", path, 4_000)
    note = f"[... 399,001 bytes left out here; {place} ...]"
    assert read == f"first\n{'x' * 500}\n{note}\n{'x' * 499}\nlast"


def test_memory_stays_small(tmp_path):
    output = LimitedOutput(tmp_path / "o", 400)
    for _ in range(300):
        output.write(b"x" * 10_000)
        assert len(output._head) + len(output._tail) <= 400 * 8
    output.close()
    assert (tmp_path / "o").stat().st_size == 3_000_000


def test_the_file_keeps_the_beginning_and_the_end_of_endless_output(tmp_path, monkeypatch):
    monkeypatch.setattr("goose_like.sessions.output_limit.MAX_HEAD_BYTES", 5_000_000)
    monkeypatch.setattr("goose_like.sessions.output_limit.MAX_TAIL_BYTES", 100_000)
    output = LimitedOutput(tmp_path / "o", 4_000)
    for number in range(1_000):
        output.write(f"{number:099}\n".encode() * 100)
    output.close()
    assert "its beginning and end are in" in output.format_for_model()
    saved = (tmp_path / "o").read_bytes()
    assert len(saved) < 5_101_000
    beginning, _, end = saved.partition(b"\n\n[... 4,900,000 bytes left out here ...]\n")
    assert (beginning[-1:], len(beginning), end[:100]) == (b"9", 4_999_999, b"0" * 96 + b"990\n")
    assert end.endswith(b"999\n")


# --- terminals


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"\x1b[1;31merror\x1b[0m: no\x1b[K\n", "error: no\n"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "alink\n"),
        (b"\x1b(B\x1b[?25l\x1b=x\x1b7\n", "x\n"),
        (b"".join(b"\r%d%%" % number for number in range(101)) + b"\ndone\n", "100%\ndone\n"),
        (b"10%\r20%\r", "20%"),
        (b"20%\r\x1b[2K\r", "20%"),
        (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
        (b"\r\n\n", "\n\n"),
        (b"a\x1b", "a\x1b"),
    ],
)
def test_codes_and_overwritten_lines_are_removed(tmp_path, data, kept):
    for size in (1, 3, 1_000):
        output = LimitedOutput(tmp_path / "o", 400)
        for start in range(0, len(data), size):
            output.write(data[start : start + size])
        output.close()
        assert output.format_for_model() == kept


def test_what_was_shown_of_a_line_is_not_taken_back(tmp_path):
    output = LimitedOutput(tmp_path / "o", 400)
    output.save_all()
    taken = []
    for data in (b"10%", b"\r20%\x1b[", b"0m\r", b"\n", b"30%\r", b"\nend\r", b"\n"):
        output.write(data)
        taken.append(output.take_new())
    output.close()
    assert taken == ["10%", "\n20%", "", "\n", "30%", "\nend", "\n"]
    assert (tmp_path / "o").read_text() == "10%\n20%\n30%\nend\n"


@pytest.mark.parametrize("line", [b"x", b"\x1b[31mx", b"\x1b]0;", b"\r", b"1%\r"])
def test_an_endless_line_takes_little_memory(tmp_path, line):
    output = LimitedOutput(tmp_path / "o", 400)
    for _ in range(300):
        output.write(line * 1_000)
        assert len(output._plain.waiting) < 20_000
    output.close()
    assert len(output.format_for_model()) < 800


def test_a_secret_with_colors_is_masked(tmp_path):
    key = "sk-" + "a1" * 20
    output = LimitedOutput(tmp_path / "o", 400)
    output.write(f"{key[:10]}\x1b[31m{key[10:]}\x1b[0m\n".encode())
    output.close()
    assert output.format_for_model() == "[masked:api-key]\n"


def test_binary_output_is_saved_as_it_came(tmp_path):
    data = b"\x89PNG\r\n\x1a\n1%\r2%\x1b[0m\0" + bytes(range(256)) * 10
    output = LimitedOutput(tmp_path / "o", 400)
    for start in range(0, len(data), 7):
        output.write(data[start : start + 7])
    output.close()
    assert "binary output" in output.format_for_model()
    assert (tmp_path / "o").read_bytes() == data


# --- failures


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
    output.close()
    assert output.format_for_model() == "caf\ufffd"
    assert limit_text("a\udcff", tmp_path / "o", 400) == "a?"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_stops_nothing():
    read = limit_text("x\n" * 50_000, Path("/dev/full"), 400)
    assert read.startswith("x\n" * 100 + "[... 49,800 lines (99,600 bytes)")
    assert "left out here; not saved: No space left on device ...]" in read


def test_room_is_left_on_a_disk_that_is_nearly_full(tmp_path, monkeypatch):
    output = LimitedOutput(tmp_path / "o", 400)
    output.write(b"line\n" * 100)
    disk = os.statvfs(tmp_path)
    monkeypatch.setattr("goose_like.sessions.output_limit.MAX_RESERVE_BYTES", disk.f_blocks * disk.f_frsize)
    monkeypatch.setattr("goose_like.sessions.output_limit._RESERVED_SHARE", 1)
    output.write(b"line\n" * 100)
    output.close()
    assert (tmp_path / "o").stat().st_size == 500
    text = f"only its first 500 bytes are in {tmp_path}/o: the disk is nearly full; free some space ...]"
    assert text in output.format_for_model()


def test_take_new_returns_output_once(tmp_path: Path) -> None:
    output = LimitedOutput(tmp_path / "out.txt", 100)
    output.save_all()
    output.write(b"one\n")
    assert output.take_new() == "one\n"
    assert output.take_new() == ""
    output.write(b"two\n")
    output.write(b"x" * 300)
    assert f"[long lines are cut; all of it is in {tmp_path}" in output.take_new()
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


def test_many_carriage_returns_take_linear_time(tmp_path):
    output = LimitedOutput(tmp_path / "o", 400)
    output.write(b"a" + b"\r" * 1_000_000 + b"end\n")
    output.close()
    assert output.format_for_model() == "end\n"
