"""Tests of masking: formats of keys, known values, streams in any pieces, and texts that stay as they are."""

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core import masking
from goose_like.core.events import Asked, MessageCompleted, Question, StateSaved
from goose_like.core.masking import MaskedBytes, MaskedText, add_secret, find_mask, mask_text, mask_value
from goose_like.core.message import Message, Text, Thinking, ToolCall, Verbatim

PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA/+xy\n" * 12 + "-----END RSA PRIVATE KEY-----"
SECRETS = {  # assembled here, so that no scanner takes this file for a leak
    "api-key": ["sk-" + "proj-aB3" * 6, "sk-ant-" + "api03-" + "x" * 40, "AI" + "za" + "Sy0" * 11 + "ab"],
    "github-token": ["gh" + "p_" + "a1B2" * 9, "github" + "_pat_" + "1A" * 30],
    "gitlab-token": ["glp" + "at-" + "a1B2" * 5],
    "aws-key": ["AK" + "IAIOSFODNN7EXAMPLE"],
    "slack-token": ["xo" + "xb-123456789012-abcdef"],
    "registry-token": ["np" + "m_" + "a1B2" * 9, "dckr" + "_pat_" + "a1B2" * 7],
    "service-token": [
        "SG" + "." + "aB3_" * 5 + "aB" + "." + "xY9-" * 10 + "xyz",
        "dop" + "_v1_" + "0a1b" * 16,
        "hv" + "s." + "CAESI" * 6,
        "shp" + "at_" + "0a1b" * 8,
        "lin" + "_api_" + "a1B2" * 10,
        "fig" + "d_" + "a1B2" * 10,
        "PM" + "AK-" + "0a1b" * 6 + "-" + "0a1b" * 9,
        "ts" + "key-auth-" + "k1B2" * 8,
        "da" + "pi" + "0a1b" * 8,
    ],
    "web-token": ["ey" + "J" + "a" * 20 + ".eyJ" + "b" * 30 + "." + "c" * 43],
    "private-key": [PRIVATE_KEY, PRIVATE_KEY.replace("\n", "\\n"), "+" + PRIVATE_KEY.replace("\n", "\n+")],
}
PLACED_KEYS = {
    "indented": "key: |\n  " + PRIVATE_KEY.replace("\n", "\n  "),
    "deeply indented": PRIVATE_KEY.replace("\n", "\n" + " " * 12),
    "indented by tabs": PRIVATE_KEY.replace("\n", "\n\t\t"),
    "numbered by cat": "\n".join(f"{number:6}\t{line}" for number, line in enumerate(PRIVATE_KEY.split("\n"), 1)),
    "numbered by grep": "\n".join(f"{number}:{line}" for number, line in enumerate(PRIVATE_KEY.split("\n"), 1)),
    "named by grep": "\n".join(
        f"keys/a_b-c.pem:{number}:{line}" for number, line in enumerate(PRIVATE_KEY.split("\n"))
    ),
    "named and indented": "\n".join(f"a.yaml:  {line}" for line in PRIVATE_KEY.split("\n")),
    "on one line": PRIVATE_KEY.replace("\n", " "),
    "without line ends": PRIVATE_KEY.replace("\n", ""),
    "escaped": PRIVATE_KEY.replace("\n", "\\n"),
    "escaped twice": PRIVATE_KEY.replace("\n", "\\\\n"),
    "carriage returns": PRIVATE_KEY.replace("\n", "\r\n"),
    "empty lines": PRIVATE_KEY.replace("\n", "\n\n"),
    "quoted": "> " + PRIVATE_KEY.replace("\n", "\n> "),
    "strings of a program": '"' + PRIVATE_KEY.replace("\n", '\\n"\n    "') + '"',
    "joined strings": '"' + PRIVATE_KEY.replace("\n", '\\n" +\n    "') + '"',
    "a list": '["' + PRIVATE_KEY.replace("\n", '",\n  "') + '"]',
    "a removed line": "-" + PRIVATE_KEY.replace("\n", "\n-"),
    "encrypted": PRIVATE_KEY.replace(
        "KEY-----\nM", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B2C\n\nM", 1
    ),
    "pgp": PRIVATE_KEY.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK").replace(
        "KEY-----\n", "KEY-----\nVersion: x\n\n", 1
    ),
    "without its end": PRIVATE_KEY.rpartition("-----END")[0],
    "indented, without its end": PRIVATE_KEY.rpartition("\n-----END")[0].replace("\n", "\n    "),
    "numbered, without its end": "\n".join(
        f"{number}:{line}" for number, line in enumerate(PRIVATE_KEY.split("\n")[:9])
    ),
    "on one line, without its end": PRIVATE_KEY.rpartition("\n-----END")[0].replace("\n", " "),
}
URLS = {
    "https://ann:hunter2@example.org/x": "https://ann:[masked:url-password]@example.org/x",
    "postgres://app:s3cr3t!@db:5432/x": "postgres://app:[masked:url-password]@db:5432/x",
    "redis://:p4ss-word@cache": "redis://:[masked:url-password]@cache",
    "mongodb+srv://a.b:c%40d@host": "mongodb+srv://a.b:[masked:url-password]@host",
    "git remote add x https://x-oauth:abc123@h/r.git": "git remote add x https://x-oauth:[masked:url-password]@h/r.git",
    "http://u:aa11@proxy:3128": "http://u:[masked:url-password]@proxy:3128",
}
OPEN_URLS = [
    "https://example.org:8080/a@b", "http://$USER:$PASSWORD@h", "https://user:${TOKEN}@h", "https://<user>:<password>@h",
    "postgres://postgres:postgres@localhost/db", "https://user:password@example.org", "https://user:***@h", "https://ann@h/a:b@c",
    "ssh://git@example.org:22/x", "https://h/a:b", "amqp://guest:guest@h", "mysql://root:root@db", "https://user:[masked:X]@h",
]  # fmt: skip
KNOWN = {"DB_PASSWORD": 'hunter2 says\n"hi"', "MY_KEY": "abcdef-12345", "UMLAUT": "pässwörd-1234"}
ORDINARY = [
    "a task-list of 20 items, and sk-learn",
    "class='sk-circle-fade-dot-animation'",
    "if '-----BEGIN RSA PRIVATE KEY-----' in text: return key",
    "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA\n",
    "postgres://localhost, risk-free-and-well-known-1-names, EYJAFJALLAJOKULL",
    "d41d8cd98f00b204e9800998ecf8427e 9cd9dfd2a0ac7b8ab2b4cf7a3aa2cf0e2d0c1c5f",
]


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(masking, "_known", {})
    for name, value in KNOWN.items():
        add_secret(name, value)


@pytest.mark.parametrize(
    ("name", "secret"), [(name, secret) for name, secrets in SECRETS.items() for secret in secrets]
)
def test_a_key_in_a_known_format_is_masked(name, secret):
    masked = mask_text(f"key={secret!s}\nnext")
    assert re.fullmatch(rf"key=\+?\[masked:{name}\]\n+next", masked), masked
    assert masked.count("\n") == f"{secret}\n".count("\n")
    assert find_mask(masked) == f"[masked:{name}]"


@pytest.mark.parametrize("place", PLACED_KEYS)
@pytest.mark.parametrize("size", [0, 1, 7, 40])
def test_a_private_key_is_masked_wherever_it_stands(place, size):
    text = f"{PLACED_KEYS[place]}\nthe next line"
    masked = mask_text(text)
    if size:
        stream = MaskedText()
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        masked = "".join(map(stream.write, pieces)) + stream.close()
    assert "MIIE" not in masked
    assert "AQEA" not in masked
    assert "[masked:private-key]" in masked
    assert masked.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", URLS)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_password_in_a_url_is_masked(text, size):
    assert mask_text(text) == URLS[text]
    masked = MaskedText()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join(map(masked.write, pieces)) + masked.close() == URLS[text]


@pytest.mark.parametrize("text", OPEN_URLS)
def test_a_url_without_a_secret_stays(text):
    assert mask_text(text) == text


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text):
    assert mask_text(text) is text


@pytest.mark.usefixtures("known")
def test_known_values_are_masked_as_text_json_and_bytes():
    for name, value in KNOWN.items():
        for spelling in (value, json.dumps(value), json.dumps(value, ensure_ascii=False), quote(value)):
            assert f"[masked:{name}]" in mask_text(f"x{spelling}y")
        masked = MaskedBytes()
        assert masked.write(f"x{value}y".encode()) + masked.close() == mask_text(f"x{value}y").encode()


@pytest.mark.parametrize("value", ["", "12345", "postgres", "true", "/run/user/1000/agent.1"])
def test_short_values_words_and_paths_are_no_secrets(monkeypatch, value):
    monkeypatch.setattr(masking, "_known", {})
    add_secret("DB_PASSWORD", value)
    assert masking._known == {}


words = st.sampled_from(
    [*ORDINARY, *KNOWN.values(), *(one for some in SECRETS.values() for one in some), "s", "-----B"]
)


@pytest.mark.usefixtures("known")
@given(parts=st.lists(words, max_size=6), sizes=st.lists(st.sampled_from([1, 2, 3, 5, 17, 200]), min_size=1))
def test_no_secret_passes_a_stream_in_pieces(parts, sizes):
    text = "".join(f"{part}\n" for part in parts)
    masked, shown, rest, number = MaskedText(), "", text, 0
    while rest:
        size = sizes[number % len(sizes)]
        shown, rest, number = shown + masked.write(rest[:size]), rest[size:], number + 1
    shown += masked.close()
    # Up to two characters of a secret may have passed before it was recognized.
    assert re.sub(r"[^\s=\]]*(?=\[masked:)", "", shown) == re.sub(r"[^\s=\]]*(?=\[masked:)", "", mask_text(text))
    assert mask_text(shown) == shown


@pytest.mark.usefixtures("known")
def test_ordinary_pieces_are_not_delayed():
    masked = MaskedText()
    pieces = ["The ", "tests ", "pass", ", a", "ll 20 ", "of them: ", "has", "\n", "bytes"]
    assert [masked.write(piece) for piece in pieces] == pieces


@pytest.mark.usefixtures("known")
def test_a_large_part_of_a_known_value_is_masked_at_the_end():
    masked = MaskedText()
    assert masked.write("key abcdef-123") + masked.close() == "key [masked:MY_KEY]"


@pytest.mark.usefixtures("known")
def test_all_texts_of_an_event_are_masked():
    call = ToolCall(id="sk-" + "1" * 30, name="shell", arguments=json.dumps({"command": KNOWN["DB_PASSWORD"]}))
    thinking = Thinking(text=f"I use {KNOWN['MY_KEY']}")
    parts = (*Message.assistant(KNOWN["MY_KEY"]).parts, thinking, call)
    event = MessageCompleted(message=Message(role="assistant", parts=parts))
    masked = mask_value(event)
    assert [getattr(part, "text", "") for part in masked.message.parts] == [
        "[masked:MY_KEY]",
        "I use [masked:MY_KEY]",
        "",
    ]
    assert masked.message.tool_calls[0].id == call.id
    assert masked.message.tool_calls[0].parse_arguments() == {"command": "[masked:DB_PASSWORD]"}
    assert mask_value(masked) is masked
    assert MessageCompleted.model_validate_json(masked.model_dump_json()) == masked


def answer(*items, text="hi"):
    verbatim = Verbatim(wire="messages", origin="x", items=items)
    return Message(role="assistant", parts=(Text(text=text),), verbatim=verbatim)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "item",
    [
        {"type": "thinking", "thinking": "hm", "signature": KNOWN["MY_KEY"]},
        {"type": "redacted_thinking", "data": KNOWN["MY_KEY"]},
        {"type": "web_search_tool_result", "content": [{"encrypted_content": KNOWN["MY_KEY"]}]},
        {"type": "server_tool_use", "input": {"query": "x"}},
    ],
)
def test_encrypted_data_of_an_answer_is_never_changed(item):
    message = answer(item)
    assert mask_value(message) is message


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "item",
    [
        {"type": "thinking", "thinking": KNOWN["MY_KEY"], "signature": "S"},
        {"type": "server_tool_use", "input": {"data": KNOWN["MY_KEY"]}},
        {"type": "server_tool_use", "input": {"list": [{"signature": KNOWN["MY_KEY"]}]}},
        {"type": "new", "note": [KNOWN["MY_KEY"]]},
    ],
)
def test_an_answer_with_a_secret_loses_its_verbatim_form(item):
    assert mask_value(answer(item)) == Message.assistant("hi")


@pytest.mark.usefixtures("known")
def test_a_changed_part_removes_the_verbatim_form():
    """Thinking after the masked text would be bound to the old one."""
    message = answer({"type": "thinking", "thinking": "", "signature": "S"}, text=KNOWN["MY_KEY"])
    assert mask_value(message) == Message.assistant("[masked:MY_KEY]")


@pytest.mark.usefixtures("known")
def test_all_texts_of_a_json_value_are_masked():
    value = {"data": KNOWN["MY_KEY"], "id": [KNOWN["MY_KEY"]], KNOWN["MY_KEY"]: 1, "ordinary": {"type": "x"}}
    event = StateSaved(toolkit="t", value=value)
    masked = {"data": "[masked:MY_KEY]", "id": ["[masked:MY_KEY]"], "[masked:MY_KEY]": 1, "ordinary": {"type": "x"}}
    assert mask_value(event).value == masked
    assert mask_value(ordinary := StateSaved(toolkit="t", value={"data": "x", "rows": [1, None]})) is ordinary


@pytest.mark.parametrize(
    "start",
    [
        "-----BEGIN PRIVATE KEY-----\n1:\n",
        "-----BEGIN PRIVATE KEY-----\n  a.b:1: ",
        "-----BEGIN PRIVATE KEY-----" + "\n1:" * 38 + " !",
        "://a:",
        "://a:b ",
        "SG.",
        '-----BEGIN PRIVATE KEY-----\n"\n"',
    ],
)
def test_no_place_of_a_key_takes_quadratic_time(start):
    text, masked = start * 4_000, MaskedText()
    assert mask_text(text) == text
    pieces = [text[index : index + 1000] for index in range(0, len(text), 1000)]
    assert "".join(map(masked.write, pieces)) + masked.close() == text


@pytest.mark.parametrize("start", ["sk-", "xoxa-", "-eyJ-", "eyJaaaaaaaaaa.", "-----BEGIN PRIVATE KEY-----\n", "sk-a"])
def test_no_text_takes_quadratic_time(start):
    text, masked = start * 50_000, MaskedText()
    assert mask_text(text) == text
    pieces = [text[index : index + 1000] for index in range(0, len(text), 1000)]
    assert "".join(map(masked.write, pieces)) + masked.close() == text


def test_a_text_that_is_too_long_for_a_secret_does_not_wait():
    masked = MaskedText()
    assert masked.write("sk-" + "a" * 200_000).startswith("sk-aaa")


def test_a_question_hides_no_line_of_a_command():
    command = "true -----BEGIN PRIVATE KEY-----\n" + "/tmp/aaaaaaaaaaaaaaaa\n" * 3 + "-----END PRIVATE KEY-----"
    question = Question(kind="command", subject=command, text="run it with sk-" + "a1" * 20)
    masked = mask_value(question, keeps_lines=True)
    assert (masked.subject, masked.text) == (command, "run it with [masked:api-key]")
    assert "/tmp/aaa" not in mask_value(Asked(question=question)).question.subject
