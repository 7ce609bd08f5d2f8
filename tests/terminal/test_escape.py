"""Escaping of text for terminals."""

import re

import pytest

from goose_like.terminal.escape import NON_TEXT, escape_controls, escape_invisible, to_one_line


def test_control_characters_are_written_out():
    assert escape_controls("a\x1b[31m\x9b\r\nb\tc") == "a\\x1b[31m\\x9b\nb\tc"


@pytest.mark.parametrize(
    "code",
    [
        *(0x00, 0x07, 0x0D, 0x1B, 0x7F, 0x9B, 0xA0, 0xAD, 0x034F, 0x061C, 0x115F, 0x1680, 0x180E, 0x2003, 0x200B),
        *(0x200D, 0x200F, 0x2028, 0x2029, 0x202E, 0x202F, 0x205F, 0x2060, 0x2066, 0x2800, 0x3000, 0x3164, 0xFE0F),
        *(0xFEFF, 0xFFA0, 0xFFF9, 0xE000, 0xE0001, 0xE0041, 0xE0100, 0xF0000, 0x1D173, 0x0378),
    ],
    ids=hex,
)
def test_what_one_does_not_see_is_written_out_where_it_is_asked_about(code):
    shown = escape_invisible(f"a{chr(code)}b")
    assert re.fullmatch(rf"a\\[xuU]0*{code:x}b", shown)


def test_words_of_any_script_are_shown_as_they_are():
    text = "grün 日本語 עברית हिन्दी é 🎉 ~!\tx\ny"
    assert escape_invisible(text) == text


def test_gaps_hide_nothing():
    assert escape_invisible(f"ls{' ' * 3000}; rm -rf ~") == "ls [3,000 blanks] ; rm -rf ~"
    assert escape_invisible("ls" + "\n" * 3000 + "rm -rf ~") == "ls\n[3,000 line ends]\nrm -rf ~"
    assert escape_invisible("if x:\n        y\n\n\nz") == "if x:\n        y\n\n\nz"


def test_wide_characters_count_twice():
    assert to_one_line("日本語日本語", 7) == "日本語…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pass\u00adword", "pass\\u00adword"),
        ("a\U000e0068\U000e0069\U000e007f", "a\\U000e0068\\U000e0069\\U000e007f"),
        ("a\U000e0100", "a\\U000e0100"),
        ("a\u2060b\u2063c\ufeff", "a\\u2060b\\u2063c\\ufeff"),
        ("a\u206ab\ufff9", "a\\u206ab\\ufff9"),
    ],
)
def test_characters_that_carry_a_hidden_text_are_written_out(text, shown):
    assert escape_controls(text) == shown
    assert not NON_TEXT & set(text)  # a text that has them is no binary


def test_emoji_and_joined_letters_stay():
    text = "\u2764\ufe0f \U0001f468\u200d\U0001f469 \u0646\u200c\u0627"
    assert escape_controls(text) == text
