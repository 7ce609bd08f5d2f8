"""Answers of a person at the terminal: keys and words."""

import asyncio

import pytest

from goose_like.core.events import Answer, Question
from goose_like.terminal.interaction import ask_person

PUSH = Question(kind="network", subject="git push", text="May I?", prefix="git push")


def answer(choice: str, text: str = "") -> Answer:
    return Answer(choice=choice, by="person", text=text)  # type: ignore[arg-type]


async def ask(question: Question, *lines: str) -> tuple[Answer, list[str], list[str]]:
    """Return the answer, the labels that were shown, and the words that went to the model."""
    typed, labels, sent = list(lines), list[str](), list[str]()

    async def read_line(label: str) -> str:
        labels.append(label)
        return typed.pop(0)

    return await ask_person(question, read_line, lambda _: None, labels.append, sent.append), labels, sent


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y\n", answer("allow")),
        ("p\n", answer("allow_prefix")),
        ("a\n", answer("allow_always")),
        ("n\n", answer("deny")),
        ("NO\n", answer("deny")),
        ("\n", answer("deny")),
        ("", answer("deny")),
        ("n too large\n", answer("deny", "too large")),
        ("No, use the file\n", answer("deny", "use the file")),
        ("no: why?\n", answer("deny", "why?")),
        ("don't do that\n", answer("deny", "don't do that")),
        ("stop\n", answer("deny", "stop")),
    ],
)
async def test_each_key_and_a_no_with_a_reason(line: str, expected: Answer) -> None:
    assert (await ask(PUSH, line))[0] == expected


async def test_other_words_go_to_the_model_and_the_question_stays_open() -> None:
    got, labels, sent = await ask(PUSH, "so\n", "nothing yet\n", "yes\n")
    assert (got, sent) == (answer("allow"), ["so", "nothing yet"])
    assert labels == ["  [y] once  [p] session: git push  [a] always  [N] no: "] * 3


async def test_only_the_answers_that_a_question_has_count() -> None:
    removal = Question(kind="sandbox", subject="rm", text="May I?")
    got, labels, sent = await ask(removal, "p\n", "A\n", "t\n", "\x1b\n", "n\n")
    assert (got, labels[0], sent) == (answer("deny"), "  [y] once  [N] no: ", [])
    hints = [label for label in labels if "is no answer" in label]
    assert hints == [f"  '{key}' is no answer; type y or n" for key in ("p", "A", "t", "\\x1b")]


async def test_a_long_prefix_is_not_beside_the_keys() -> None:
    long = PUSH.model_copy(update={"prefix": "cd /home/me/project/app, git push"})
    assert (await ask(long, "n\n"))[1] == ["  [y] once  [p] session  [a] always  [N] no: "]


async def test_a_cancelled_question_is_shown_as_not_answered() -> None:
    shown: list[str] = []
    question = Question(kind="domain", subject="x.org", text="connect to x.org for: curl x.org")

    async def read_line(_: str) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await ask_person(question, read_line, lambda _: None, shown.append)
    assert shown == ["  not answered: connect to x.org for: curl x.org"]
