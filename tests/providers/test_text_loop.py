"""Text loops of small models."""

import pytest

from goose_like.providers.text_loop import LoopWatch, ends_in_loop

COUNTING = "".join(f"    assert room({n}, {n + 1}) == {2 * n}\n" for n in range(80))
PASSAGE = "def read(path):\n    with open(path) as file:\n        return file.read()\n\n\n"


SAME = "".join(f"    assert room({n % 3}, 1) == 0\n" for n in range(80))


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n" + COUNTING,
        "import pytest\n" + COUNTING[:-9],
        PASSAGE * 12,
        PASSAGE * 12 + PASSAGE[:20],
        SAME,
        "7,14\n" * 200,
        "=" * 900,
    ],
)
def test_a_loop_is_found(text):
    assert ends_in_loop(text)


VALUES = [(n * n % 97, n * 7919 % 1000) for n in range(400)]


@pytest.mark.parametrize("text", ["", COUNTING[:500], PASSAGE * 7, COUNTING + "\n\ndef test_ranges():\n"])
def test_other_texts_are_no_loop(text):
    assert not ends_in_loop(text)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(map(str, range(1_200))),
        "".join(f"{n},{2 * n}\n" for n in range(400)),
        "".join(f"{a},{b}\n" for a, b in VALUES),
        "".join(f"INSERT INTO t VALUES ({a}, {b});\n" for a, b in VALUES),
        "".join(f"INSERT INTO t VALUES ({n}, {2 * n});\n" for n in range(40)),
        "".join(f"{n}: 2026-11-{n % 28 + 1:02} was no good day\n" for n in range(200)),
    ],
)
def test_rows_of_data_are_no_loop_while_they_grow(text):
    assert len(text) > 1_200
    assert not any(ends_in_loop(text[:size]) for size in range(0, len(text), 50))


def test_the_watch_looks_while_the_text_grows():
    watch = LoopWatch()
    for size in range(0, len(COUNTING), 5):
        watch.look(COUNTING[:size])
        if watch.has_found:
            break
    assert watch.has_found
    assert size < 2_100
