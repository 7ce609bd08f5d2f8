"""Text files: their encodings, as far as bytes tell them, and changes that touch no other byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.text_file import TextFile, normalize_newlines, split_lines
from goose_like.core.tool import ToolError


def test_many_carriage_returns_take_linear_time():
    text = "\r" * 1_000_000
    assert normalize_newlines(f"{text}a{text}\n") == f"{text}a\n"


@given(st.text())
def test_lines_are_counted_as_by_editors(text):
    assert len(split_lines(text)) == text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def test_half_a_character_is_no_text():
    with pytest.raises(ToolError, match="half a character"):
        TextFile("\udc80").encode()


JAPANESE = "設定ファイルを読みます。\nエラー: ありません\n"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (b"plain\n", ""),
        ("é€→\n".encode(), ""),
        ("é\n".encode("utf-16"), "utf-16-le"),
        (JAPANESE.encode("cp932"), "Shift-JIS"),
        (JAPANESE.encode("euc_jp"), "unknown 8-bit encoding, shown as Windows-1252"),
        ("東京都".encode("cp932"), "unknown 8-bit encoding, shown as Windows-1252"),
        (b"caf\xe9 \x81\n", "unknown 8-bit encoding, shown as Latin-1"),
        ("déjà vu, Bär, âme\n".encode("latin-1"), "unknown 8-bit encoding, shown as Windows-1252"),
        ("5 € für Müller\n".encode("cp1252"), "unknown 8-bit encoding, shown as Windows-1252"),
        ("Привет, мир\n".encode("cp1251"), "unknown 8-bit encoding, shown as Windows-1252"),
        ("Привет, Вам\n".encode("cp866"), "unknown 8-bit encoding, shown as "),
        ("âme, été, à\n".encode("cp850"), "unknown 8-bit encoding, shown as "),
        ("你好世界\n".encode("gbk"), "unknown 8-bit encoding, shown as "),
        ("안녕하세요\n".encode("euc_kr"), "unknown 8-bit encoding, shown as "),
    ],
)
def test_an_encoding_is_told_only_if_the_bytes_tell_it(data, note):
    text = TextFile.decode(data)
    assert text is not None
    assert text.encoding_note.startswith(note)
    assert bool(text.encoding_note) == bool(note)
    assert text.encode() == data


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("é", "latin-1"),
        ("é€", "cp1252"),
        ("é", "UTF8"),
        ("é", "utf-16-le"),
        ("日本①", "cp932"),
        ("日本", "shift_jis"),
        ("日本", "euc-jp"),
        ("日本", "gb18030"),
        ("Я", "cp1251"),
    ],
)
def test_a_named_encoding_is_taken(text, encoding):
    data = f"{text}\n".encode(encoding)
    decoded = TextFile.decode(data, encoding)
    assert decoded is not None
    assert (decoded.shown, decoded.is_guess, decoded.encode()) == (f"{text}\n", False, data)


@pytest.mark.parametrize(
    ("data", "encoding", "words"),
    [
        (b"x", "klingon", "there is no encoding 'klingon'"),
        (b"x", "hex", "there is no encoding 'hex'"),
        ("é".encode(), "latin-1", "the text is utf-8, not latin-1; leave `encoding` out"),
        (b"a\n\xe9", "utf-8", "the text is not utf-8: its line 2 has other bytes"),
        (b"a\n\x81\x81", "cp1252", "the text is not cp1252: its line 2"),
    ],
)
def test_a_wrong_encoding_is_refused(data, encoding, words):
    with pytest.raises(ToolError, match=words):
        TextFile.decode(data, encoding)


@given(st.binary(max_size=60))
def test_any_text_stays_the_same(data):
    text = TextFile.decode(data)
    assert text is None or text.encode() == data


def test_letters_are_foreign_where_the_encoding_is_a_guess():
    guess = TextFile.decode("5 €\n".encode("cp1252"))
    known = TextFile.decode("5 €\n".encode("cp1252"), "cp1252")
    assert guess is not None
    assert known is not None
    assert (guess.find_foreign_letter("6 €"), guess.find_foreign_letter("6 €é")) == ("", "é")
    assert known.find_foreign_letter("é") == ""
    with pytest.raises(ToolError, match="the file is Windows-1252, which has no '→'; use another character"):
        known.with_all("→").encode()
