"""Live output: the newest output is always shown, and lines that are left out are counted."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.sdk.live_output import LiveOutput


def show(*chunks: bytes, pauses: tuple[bool, ...] = ()) -> list[tuple[str, int]]:
    """Return what is shown of chunks: texts, and how many lines are skipped before each. A pause shows what waits."""
    shown: list[tuple[str, int]] = []

    async def write() -> None:
        live = LiveOutput(lambda text, skipped_line_count: shown.append((text, skipped_line_count)))
        for number, chunk in enumerate(chunks):
            live.write(chunk)
            for _ in range(3 * any(pauses[number : number + 1])):
                await asyncio.sleep(0)
        live.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("goose_like.sdk.live_output.SHOW_INTERVAL_S", 0)
        asyncio.run(write())
    return shown


PIECES = st.sampled_from([b"\n", b"\r\n", b"\r50%", b"word ", b"a line\n", "é".encode(), "😀".encode(), b"\xff"])
CHUNKS = st.lists(st.tuples(PIECES, st.sampled_from([1, 2, 700, 3_000, 9_000]), st.booleans()), min_size=1, max_size=8)


@pytest.mark.hypothesis
@given(CHUNKS)
def test_the_newest_output_is_shown_and_all_lines_are_counted(chunks):
    pieces = [piece * count for piece, count, _ in chunks]
    shown = show(*pieces, pauses=tuple(has_pause for *_, has_pause in chunks))
    total, text = b"".join(pieces), "".join(text for text, _ in shown)
    last_line = total[:-1].rpartition(b"\n")[2] + total[-1:]
    assert min(count for _, count in shown) >= 0
    assert text.count("\n") + sum(count for _, count in shown) == total.count(b"\n")
    assert text.endswith(last_line[-100:].lstrip(bytes(range(0x80, 0xC0))).decode(errors="replace"))


STEPS = b"".join(b"\rstep %d of 3000, which goes on" % step for step in range(3_001))


@pytest.mark.parametrize(
    ("output", "start", "end"),
    [
        pytest.param(b"x" * 9_990 + b" the end", "xxx", "x the end", id="a line"),
        pytest.param(b"x" * 9_990 + b" the end\n", "xxx", "x the end\n", id="a whole line"),
        pytest.param(STEPS, "\rstep 0 of", "\rstep 3000 of 3000, which goes on", id="a progress bar"),
        pytest.param(("é" * 9_999).encode(), "éé", "éé", id="two bytes each"),
        pytest.param(b"a" + ("é" * 9_999).encode(), "aé", "éé", id="two bytes each, from an odd one on"),
    ],
)
def test_of_a_long_line_the_beginning_and_the_end_are_shown(output, start, end):
    shown = show(output)
    text = "".join(text for text, _ in shown)
    assert {count for _, count in shown} == {0}
    assert text.startswith(start)
    assert text.endswith(end)
    assert text.count("�") <= 1  # a character that the end of the first 2 KiB cuts


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_codes_of_a_terminal_are_removed_also_in_pieces(size):
    output = b"\x1b[1;31mred\x1b[0m \x1b]0;a title\x07\x1b[2Kplain\a\n10%\r50%\r\n\x1b"
    shown = show(*(output[at : at + size] for at in range(0, len(output), size)), pauses=(True,) * len(output))
    assert "".join(text for text, _ in shown) == "red plain\a\n10%\r50%\r\n\x1b"


def test_of_endless_ends_of_lines_few_wait():
    shown = show(*[b"\r" * 1_000] * 100, pauses=(True,) * 100)
    assert sum(len(text) for text, _ in shown[:-1]) > 50_000


def test_codes_within_a_secret_do_not_show_it():
    ((text, _),) = show(b"key sk-ant-api03-\x1b[31mabcdefghijklmnopqrstuvwxyz0123456789\x1b[0m\n")
    assert "klmnop" not in text


def test_many_lines_are_left_out_by_their_number():
    lines = [b"%d\n" % number for number in range(20_000)]
    (first, _), (middle, _), (last, count) = show(b"".join(lines))
    assert first.startswith("0\n1\n2\n")
    assert middle == "\n"  # it ends the line that the first 2 KiB cut
    assert last.endswith("\n19998\n19999\n")
    assert first.count("\n") + 1 + count + last.count("\n") == 20_000
