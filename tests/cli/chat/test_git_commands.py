"""`/review` and `/commit` in a real repository."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.receipt import make_receipt
from goose_like.agent.slash_context import SlashContext
from goose_like.cli.chat import git_commands
from goose_like.cli.chat.git_commands import commit, review
from goose_like.config.profile import ModelChoice, Profile
from goose_like.core.errors import UsageError
from goose_like.core.events import UsageRecorded
from goose_like.core.notifier import Recorder
from goose_like.launch.slash_registry import split_command_line
from goose_like.sessions.session import Session
from tests.workspace.workspace_harness import find_place, needs_sandbox

pytestmark = needs_sandbox


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(monkeypatch) -> Iterator[Path]:
    """A repository outside /tmp, of which the sandbox shows only the workspace."""
    with TemporaryDirectory(dir=find_place()) as name:
        folder = Path(name).resolve()
        monkeypatch.chdir(folder)
        git("init")
        (folder / "a.py").write_text("one\n")
        git("add", ".")
        git("commit", "-m", "Add a")
        yield folder


@asynccontextmanager
async def open_context(
    tmp_path,
    *answers: str,
    draft: str = "Say two in a\n\nOne was wrong.\n",
    turn: Sequence[object] = (),
    session: Session | None = None,
):
    """Open a session whose accelerator drafts a message and whose person gives these answers.

    The model plays `turn` first.
    """
    (tmp_path / "script").write_text(json.dumps([*turn, {"text": draft}]))
    shown: list[object] = []
    inputs: list[str] = []
    left = list(answers)

    async def ask(label: str) -> str:
        shown.append(label)
        return left.pop(0)

    profile = Profile(processor=ModelChoice(model=f"scripted:{tmp_path}/script"))
    async with build_exchange(profile, recorder := Recorder(), session=session) as exchange:
        yield SlashContext(exchange, profile, {}, shown.append, ask, inputs.append, print, ()), shown, inputs, recorder


def write_two(root: Path) -> None:
    (root / "a.py").write_text("two  # @a.py\n")
    (root / "new.py").write_text("new\n")


@pytest.mark.parametrize(
    ("words", "subject", "lines"),
    [
        ("", "the uncommitted changes of the working tree", ["new.py", "-one", "+two  # @a.py"]),
        ("HEAD", "commit HEAD", ["+three"]),
        ("main", "the changes of HEAD since it left main", ["+three"]),
        ("main..topic", "the changes of topic since it left main", ["+three"]),
        ("HEAD~1", "commit HEAD~1", ["Add a"]),
    ],
)
async def test_review_sends_the_diff_for_a_turn_that_only_reads(tmp_path, root, words, subject, lines):
    git("switch", "-c", "topic")
    (root / "b.py").write_text("three\n")
    git("add", ".")
    git("commit", "-m", "Add b")
    write_two(root)
    async with open_context(tmp_path) as (context, *_):
        request = await review(context, words)
    title, _, diff = request.message.parts
    assert request.is_read_only
    assert request.is_fresh
    assert title.text == f"Review {subject}."
    assert [line for line in lines if line not in diff.text] == []
    assert ("+two" in diff.text) == (words == "")


@pytest.mark.parametrize("words", ["nothing-such", "main..nothing-such", "--output=x", "main..--output=x"])
async def test_review_names_what_git_does_not_know(tmp_path, root, words):
    async with open_context(tmp_path) as (context, *_):
        with pytest.raises(UsageError, match="git knows no commit or branch"):
            await review(context, words)
    assert [file.name for file in root.iterdir() if file.name != ".git"] == ["a.py"]


async def test_review_and_commit_without_changes_or_repository(tmp_path, root, monkeypatch):
    async with open_context(tmp_path) as (context, *_):
        with pytest.raises(UsageError, match="nothing to review"):
            await review(context, "")
        with pytest.raises(UsageError, match="nothing to commit"):
            await commit(context, "")
    monkeypatch.chdir(tmp_path)
    async with open_context(tmp_path) as (context, *_):
        for each in (review, commit):
            with pytest.raises(UsageError, match="in no git repository"):
                await each(context, "")


async def test_commit_asks_drafts_and_runs_the_hooks(tmp_path, root):
    write_two(root)
    hook = root / ".git/hooks/commit-msg"
    hook.write_text('#!/bin/sh\necho "checked by a hook" >> "$1"; touch "$HOME/ran"\n')
    hook.chmod(0o755)
    async with open_context(tmp_path, "y", "y") as (context, shown, _, recorder):
        await commit(context, "")
        told = context.exchange.history.messages
        assert [event.purpose for event in recorder.events if isinstance(event, UsageRecorded)] == ["commit message"]
    assert git("log", "-1", "--format=%B").split("\n") == [
        "Say two in a",
        "",
        "One was wrong.",
        "checked by a hook",
        "",
        "",
    ]
    assert git("status", "--short") == ""
    assert "nothing is staged" in "".join(map(str, shown))
    assert "The person ran `git add --all && git commit -m" in told[-1].text


async def test_commit_takes_what_is_staged_and_a_message(tmp_path, root):
    write_two(root)
    git("add", "new.py")
    async with open_context(tmp_path) as (context, *_):
        await commit(context, "it's mine; $(touch evil)")
    assert git("log", "-1", "--format=%s") == "it's mine; $(touch evil)\n"
    assert git("status", "--short") == " M a.py\n"


@pytest.mark.parametrize(
    ("answers", "inputs"),
    [(["n"], []), (["y", ""], []), (["y", "e"], ["/commit --all Say two in a\n\nOne was wrong."])],
)
async def test_nothing_is_committed_without_a_yes(tmp_path, root, answers, inputs):
    write_two(root)
    async with open_context(tmp_path, *answers) as (context, _, given, _):
        await commit(context, "")
    assert given == inputs
    assert git("log", "--format=%s") == "Add a\n"
    assert git("diff", "--cached") == ""


@pytest.mark.parametrize(
    ("staged", "answers", "files"), [([], ["y", "e"], ["a.py", "new.py"]), (["a.py"], ["e"], ["a.py"])]
)
async def test_an_edited_message_is_committed_without_another_question(tmp_path, root, staged, answers, files):
    write_two(root)
    git("add", *staged)
    async with open_context(tmp_path, *answers) as (context, _, inputs, _):
        await commit(context, "")
        _, words = split_command_line(inputs[0].replace("two", "2"), {"commit": commit})
        await commit(context, words)
    assert git("log", "-1", "--format=%B") == "Say 2 in a\n\nOne was wrong.\n\n"
    assert git("show", "--name-only", "--format=").split() == files


TESTED = [{"calls": [{"tool": "shell", "arguments": {"command": "sh run_tests.sh"}}]}, "Done."]


@pytest.mark.parametrize("words", ["--receipt", "--all --receipt", "--receipt --all Say two in a"])
async def test_a_message_may_end_with_the_checks(tmp_path, root, home, words):
    (root / "run_tests.sh").write_text("echo 1 passed\n")
    with closing(Session.create()) as session:
        async with open_context(tmp_path, "y", "y", draft="Say two in a", turn=TESTED, session=session) as opened:
            context, *_ = opened
            with pytest.raises(UsageError, match="no turn has ended yet"):
                await commit(context, "--all --receipt Too early")
            await context.exchange.reply("test it")
            await commit(context, words)
            tree = (await make_receipt(context.exchange)).tree
    assert git("log", "-1", "--format=%B").splitlines() == [
        "Say two in a",
        "",
        "goose-like before this commit:",
        "",
        f"- tree: `{tree[:12]}`",
        "- check: `sh run_tests.sh`: passed, on the files as they are now",
        "",
    ]


async def test_a_receipt_says_if_the_commit_has_other_files_than_the_check(tmp_path, root, home):
    (root / "run_tests.sh").write_text("echo 1 passed\n")
    with closing(Session.create()) as session:
        async with open_context(tmp_path, "e", draft="Say two in a", turn=TESTED, session=session) as opened:
            context, _, inputs, _ = opened
            await context.exchange.reply("test it")
            write_two(root)
            git("add", "a.py")
            await commit(context, "--receipt")
            assert inputs == ["/commit --receipt Say two in a"]
            await commit(context, inputs[0].removeprefix("/commit "))
    assert git("log", "-1", "--format=%b").splitlines()[-3:-1] == [
        "- check: `sh run_tests.sh`: passed, on other files than those of now",
        "- this commit has only a part of the changes",
    ]


@pytest.mark.parametrize(
    ("draft", "subject"),
    [
        ('Revert "fix a"', 'Revert "fix a"'),
        ('"Say two"', "Say two"),
        ('"fix a" is back', '"fix a" is back'),
        ('```\n"Say two"\n```', "Say two"),
        ('Say "', 'Say "'),
    ],
)
async def test_quotes_around_a_draft_are_dropped_and_those_in_it_stay(tmp_path, root, draft, subject):
    write_two(root)
    async with open_context(tmp_path, "y", "y", draft=draft) as (context, *_):
        await commit(context, "")
    assert git("log", "-1", "--format=%s") == f"{subject}\n"


@pytest.fixture
def hidden(root) -> Path:
    """A repository whose `.gooseignore` hides tracked files, a tracked folder, and a file that git does not know."""
    (root / ".gooseignore").write_text("secret*.txt\nvault/\nlocal.env\n")
    (root / "sub/vault").mkdir(parents=True)
    for name in ("secret [1].txt", "sub/secret.txt", "sub/vault/key", "sub/b.py"):
        (root / name).write_text("hidden\n")
    git("add", ".")
    git("commit", "-m", "Add all")
    (root / "local.env").write_text("hidden\n")
    return root


NOTE = "Left out, since .gooseignore or the profile hides them: secret [1].txt, sub/secret.txt, sub/vault."


@pytest.mark.parametrize("folder", [".", "sub"])
async def test_hidden_files_are_no_changes(tmp_path, hidden, monkeypatch, folder):
    monkeypatch.chdir(folder)
    async with open_context(tmp_path) as (context, shown, *_):
        with pytest.raises(UsageError, match="nothing to review"):
            await review(context, "")
        with pytest.raises(UsageError, match="nothing to commit"):
            await commit(context, "")
        assert shown == [NOTE, NOTE]
        (hidden / "a.py").write_text("two\n")
        (hidden / "sub/secret.txt").write_text("new\n")
        for words in ("", "HEAD", "HEAD~1..HEAD"):
            diff = (await review(context, words)).message.parts[2].text
            assert diff.count(NOTE) == 1
            assert "hidden\n" not in diff.replace("b.py\n@@ -0,0 +1 @@\n+hidden\n", "")
            assert "secret" not in diff.replace(NOTE, "").replace("+secret*.txt", "")
            assert "local.env" not in diff.replace("+local.env", "")


async def test_all_is_committed_but_hidden_files(tmp_path, hidden):
    (hidden / "a.py").write_text("two\n")
    (hidden / "new.py").write_text("new\n")
    (hidden / "sub/secret.txt").write_text("new\n")
    async with open_context(tmp_path, "y", "y") as (context, *_):
        await commit(context, "")
    assert git("show", "--name-only", "--format=").split() == ["a.py", "new.py"]
    assert git("status", "--short") == " M sub/secret.txt\n?? local.env\n"


async def test_a_review_in_a_subfolder_is_about_the_whole_repository(tmp_path, root, monkeypatch):
    (root / "sub").mkdir()
    (root / "sub/new.py").write_text("new\n")
    write_two(root)
    monkeypatch.chdir(root / "sub")
    async with open_context(tmp_path) as (context, *_):
        text = (await review(context, "")).message.parts[2].text
    first, _, *rest = text.strip().splitlines()
    assert first == f"Paths start at {root}."
    assert rest[:2] == ["new.py", "sub/new.py"]
    assert "diff --git a/a.py b/a.py" in rest


@pytest.mark.parametrize("words", ["", "HEAD", "HEAD~1..HEAD"])
async def test_of_a_huge_diff_the_sizes_and_the_beginning_are_read(tmp_path, root, monkeypatch, words):
    monkeypatch.setattr(git_commands, "_MAX_DIFF_BYTES", 1_000_000)
    for name in "abc":
        (root / f"{name}.py").write_text("".join(f"{name} {number}\n" for number in range(300_000)))
    git("add", ".")
    if words:
        git("commit", "-m", "Add much")
    async with open_context(tmp_path) as (context, *_):
        text = (await review(context, words)).message.parts[2].text
        saved = next(context.exchange.session.outputs.glob("review-*.diff"))
        assert saved.stat().st_size < 2_000_000
    assert "This is longer than 1,000,000 bytes: the files, then the beginning." in text
    assert [f" {name}.py | 300" in text for name in "abc"] == [True] * 3
    assert "+a 100\n" in text
    assert len(text.encode()) < 70_000
