"""Tests of signed state: only unchanged text is accepted."""

import base64
import random

from hypothesis import given
from hypothesis import strategies as st

from goose_like.serve.state import StateSigner

SIGNER = StateSigner(b"k" * 32)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def message(*parts: dict) -> dict:
    return {"messages": [{"role": "assistant", "parts": list(parts)}]}


@given(json_values, st.text())
def test_it_comes_back(value, about):
    text = SIGNER.sign(value, about)
    assert text.isascii()
    assert SIGNER.verify(text, about) == value


def test_it_is_opened_by_the_same_key_about_the_same_words_only():
    text = SIGNER.sign({"a": 1}, "words")
    assert SIGNER.verify(text, "other words") is None
    assert StateSigner(b"l" * 32).verify(text, "words") is None
    assert StateSigner(b"k" * 32).verify(text, "words") == {"a": 1}


@given(st.data())
def test_one_that_was_changed_is_none(data):
    text = SIGNER.sign({"a": [1, 2, 3]}, "words")
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.text(max_size=2)) + text[place + 1 :]
    opened = SIGNER.verify(changed, "words")
    # The last character of base64 has unused bits.
    assert opened is None or _bytes(changed) == _bytes(text)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, altchars=b"-_", validate=True)


@given(json_values | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_anything_else_is_none(text):
    assert SIGNER.verify(text, "words") is None


def test_a_cut_one_is_none():
    text = SIGNER.sign({"a": 1}, "")
    assert all(SIGNER.verify(text[:end], "") is None for end in range(len(text)))


def test_one_that_is_too_long_goes_without_thinking_first():
    kept = message({"type": "text", "text": "words"}, {"type": "tool_result", "output": "short"})
    thoughts = "".join(map(chr, range(256, 3_000)))  # which compress badly
    heavy = message({"type": "thinking", "text": thoughts, "signature": "s"}, *kept["messages"][0]["parts"])
    small = StateSigner(b"k", max_bytes=1_000)
    assert StateSigner(b"k").verify(StateSigner(b"k").sign(heavy, ""), "") == heavy
    assert small.verify(small.sign(heavy, ""), "") == kept


def test_the_form_of_the_vendor_goes_with_the_thinking():
    thoughts = "".join(map(chr, range(256, 3_000)))
    item = {"type": "reasoning", "encrypted_content": thoughts}
    heavy = message({"type": "text", "text": "words"})
    kept = message({"type": "text", "text": "words"})
    heavy["messages"][0]["verbatim"] = {"wire": "responses", "origin": "x", "items": [item]}
    small = StateSigner(b"k", max_bytes=1_000)
    assert small.verify(small.sign(heavy, ""), "") == kept


def test_and_with_the_beginnings_of_outputs():
    output = random.Random(1).randbytes(20_000).hex()
    small = StateSigner(b"k", max_bytes=2_000)
    text = small.sign(message({"type": "tool_result", "output": output}), "")
    assert len(text) <= 2_000
    [part] = small.verify(text, "")["messages"][0]["parts"]
    assert part["output"] == f"{output[:1_000]}\n[39,000 more characters were left out since]"


def test_then_not_at_all():
    assert StateSigner(b"k", max_bytes=100).sign({"text": "".join(map(chr, range(256, 900)))}, "") == ""


def test_its_key_is_not_printed():
    assert "kkk" not in repr(SIGNER)
