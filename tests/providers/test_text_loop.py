"""Text loops of small models."""

import pytest

from goose_like.providers.text_loop import LoopWatch, ends_in_loop

COUNTING = "".join(f"    assert room({n}, {n + 1}) == {2 * n}\n" for n in range(60))
PASSAGE = "def read(path):\n    with open(path) as file:\n        return file.read()\n\n\n"


@pytest.mark.parametrize("text", ["import pytest\n" + COUNTING, PASSAGE * 12, PASSAGE * 12 + PASSAGE[:20], "=" * 900])
def test_a_loop_is_found(text):
    assert ends_in_loop(text)


@pytest.mark.parametrize(
    "text", ["", COUNTING[:500], PASSAGE * 7, COUNTING + "\n\ndef test_ranges():\n", "\n".join(map(str, range(200)))]
)
def test_other_texts_are_no_loop(text):
    assert not ends_in_loop(text)


def test_the_watch_looks_while_the_text_grows():
    watch = LoopWatch()
    for size in range(0, len(COUNTING), 5):
        watch.look(COUNTING[:size])
        if watch.has_found:
            break
    assert watch.has_found
    assert size < 1_300
