"""Sessions in git worktrees: the flag, `/worktree`, the question at the end, and the way back."""

import shlex
import subprocess

import pytest

from tests.e2e.command import shell

COMMIT = shell(
    "echo new > new.txt && git add new.txt && git -c user.name=n -c user.email=e commit -qm two && git log --format=%s"
)


@pytest.fixture
def repository(place):
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=place.work, check=True, capture_output=True, text=True).stdout

    git("init", "-qb", "main")
    (place.work / "a.txt").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "one")
    return git


def test_a_session_commits_in_its_worktree_which_is_kept_and_found_again(place, open_screen, repository):
    (place.work / "a.txt").write_text("changed\n")
    model = place.script({"calls": [COMMIT]}, "Committed.", "Here again.")
    terminal = open_screen("--worktree", "feature", "-m", model, columns=200)
    terminal.see("uncommitted changes stay in")
    terminal.see("0 tokens · worktree-feature")
    terminal.type("go\r")
    terminal.see("Committed.")
    terminal.idle()
    terminal.type("\x04")
    terminal.see("worktree feature has 1 commit")
    terminal.see("[K]eep it  [r]emove it with its branch:")
    terminal.type("\r")
    assert terminal.wait_exit() == 0
    assert "git branch -D worktree-feature" in terminal.text.replace("\n", "")
    assert repository("status", "--porcelain") == " M a.txt\n"
    top = place.work / ".goose-like/worktrees/feature"
    assert (top / "a.txt").read_text() == "one\n"
    assert str(top) in place.run("session", "list").stdout
    name = place.run("session", "list").stdout.splitlines()[1].split()[0]
    again = open_screen("session", "resume", name, "-m", model)
    again.see("Committed.")
    again.type("again\r")
    again.see("Here again.")
    again.idle()
    again.type("\x04")
    again.see("[K]eep it  [r]emove it with its branch:")
    again.type("r\r")
    assert again.wait_exit() == 0
    assert not top.exists()
    assert "resume with" not in again.text
    report = place.run("session", "resume", name)
    assert report.stderr.splitlines() == [
        f"goose-like: the worktree of session {name!r} was removed; to go on, make it again: "
        f"git -C {shlex.quote(str(place.work))} worktree add .goose-like/worktrees/feature"
    ]
    repository("worktree", "add", "-q", ".goose-like/worktrees/feature")
    assert place.run("run", "--resume", "--session", name, "more", "-m", place.script("", "", "", "x")).stdout == "x\n"


def test_one_without_changes_is_removed(place, open_screen, repository):
    terminal = open_screen("session", "start", "talk", "-w", "-m", place.script("hello"), columns=200)
    terminal.see("0 tokens · worktree-talk")
    assert terminal.leave() == 0
    terminal.see("removed worktree talk, which had no changes")
    assert "worktree-" not in repository("branch")


def test_one_whose_session_cannot_start_is_removed(place, repository):
    done = place.run("session", "start", "-w", "one", "-m", "scripted:missing.yaml")
    assert done.returncode != 0
    assert "removed worktree one, which had no changes" in done.stderr
    assert "worktree-" not in repository("branch")


def test_a_running_session_goes_to_a_worktree_and_back(place, session, repository):
    terminal = session("hello", {"calls": [COMMIT]}, "Committed.", columns=200)
    terminal.type("/worktree a/b\r")
    terminal.see("/worktree: 'a/b' is no name for a worktree")
    terminal.type("hi\r")
    terminal.see("hello")
    terminal.idle()
    terminal.type("/worktree feature\r")
    terminal.see("back to this session: /resume talk")
    terminal.see("0 tokens · worktree-feature")
    terminal.type("/resume talk\r")
    terminal.see("0 tokens · main")
    assert terminal.leave() == 0
    assert "removed worktree feature, which had no changes" in terminal.text
    assert "resume with: goose-like session resume talk" in terminal.text


def test_without_a_terminal_work_is_kept(place, repository):
    model = place.script({"calls": [COMMIT]}, "Committed.")
    done = place.run("-p", "-w", "feature", "commit it", "-m", model)
    assert (done.returncode, done.stdout) == (0, "Committed.\n")
    top = place.work / ".goose-like/worktrees/feature"
    assert f"goose-like: kept {top}; to remove it, in {place.work}: git worktree remove --force" in done.stderr
    assert (top / "new.txt").exists()
    taken = place.run("-w", "feature", "-m", model, input="")
    assert (taken.returncode, taken.stderr.partition(";")[0]) == (
        2,
        "goose-like: there is a worktree 'feature' already",
    )


@pytest.mark.parametrize(
    "words", [["-c", "-w"], ["-p", "-c", "-w", "x", "say"], ["-p", "--no-session", "-w", "x", "say"]]
)
def test_a_worktree_is_for_new_sessions(place, words):
    done = place.run(*words)
    assert done.returncode == 2
    assert "--worktree is for new sessions" in done.stderr
