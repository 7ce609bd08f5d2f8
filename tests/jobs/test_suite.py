"""Suites: the tasks of bench/tasks are one, and the first mistakes have a sentence."""

import sys

import pytest

from goose_like.core.errors import GooseLikeError, UsageError
from goose_like.jobs.batch.scripts import run_setup
from goose_like.jobs.eval.actions import TaskChoice, list_columns, start_eval
from goose_like.jobs.eval.suite import choose_tasks, load_suite
from tests import ROOT


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "suite"
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
        (folder / name / "task.yaml").write_text("prompt: Say hello.\n")
        (folder / name / "check.py").write_text("")
    return folder


def start(suite, columns=({},), **names):
    choice = TaskChoice(names.get("names", ()), (), is_held_out=False)
    output = suite.parent / "r.jsonl"
    return start_eval(suite, choice, columns, 1, output, limits={}, totals={}, options={}, workers=1)


def test_the_tasks_of_the_repository_are_a_suite():
    tasks = load_suite(ROOT / "bench/tasks")
    assert len(tasks) == 36
    small = choose_tasks(tasks, [], ["file"], is_held_out=False)
    assert len(small) == 13
    assert {task.content.size for task in small} == {"file"}
    assert small[0].check == (sys.executable, "-P", str(small[0].folder / "check.py"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("task.yaml", "prompt: Go.\ntimout: 3\n", r"task.yaml, line 2: unknown key 'timout'; did you mean 'timeout'"),
        ("task.yaml", "prompt: ' '\n", r"task.yaml, line 1: prompt: "),
        ("task.yaml", "setup: ls\n", r"task.yaml, line 1: prompt: this key is missing"),
        ("task.yaml", "prompt: Go.\ntimeout: 0\n", r"task.yaml, line 2: timeout: expected greater than 0"),
        ("check.sh", "#!/bin/sh\n", r"check.sh is not executable; run: chmod \+x "),
        ("check.sh", "exit 0\n", r"check.sh does not begin with #!; write #!/bin/sh into its first line"),
        ("check", "", r"check does not begin with #!"),
        ("other.txt", "", r"first has no check; write check.py, or an executable check.sh"),
    ],
)
def test_a_mistake_in_a_task_is_told_before_anything_runs(suite, name, text, problem):
    if name != "task.yaml":
        (suite / "first/check.py").unlink()
    file = suite / "first" / name
    file.write_text(text)
    if "#!" in problem:
        file.chmod(0o755)
    with pytest.raises(UsageError, match=problem):
        start(suite)
    assert not list(suite.parent.glob("r.*"))


def test_a_folder_without_tasks(tmp_path):
    with pytest.raises(UsageError, match="there is no folder"):
        load_suite(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"has no tasks; a task is a folder in it with task.yaml and check.py"):
        load_suite(tmp_path)


def test_unknown_names_and_models(suite, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(suite.parent / "home"))
    with pytest.raises(UsageError, match="there is no task 'frist'; did you mean 'first'"):
        start(suite, names=["frist"])
    with pytest.raises(GooseLikeError, match=r"openai:gpt-6-sol: .*OPENAI_API_KEY"):
        start(suite, [{"model": "openai:gpt-6-sol"}])
    with pytest.raises(UsageError, match="wrong"):
        start(suite, [{"profile": "wrong"}])
    with pytest.raises(UsageError, match="no task has a size; leave out --size"):
        choose_tasks(load_suite(suite), [], ["small"], is_held_out=False)
    (suite / "first/task.yaml").write_text("prompt: Go.\nsize: large\n")
    with pytest.raises(UsageError, match=r"there is no size 'huge'; there are: large$"):
        choose_tasks(load_suite(suite), [], ["huge"], is_held_out=False)
    with pytest.raises(UsageError, match="a is there twice"):
        list_columns(["a", "b", "a"], [])


async def test_a_setup_does_not_use_the_persons_git_settings(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[commit]\ngpgsign = true\n[gpg]\nprogram = /nowhere/gpg\n")
    setup = "git init -q && git commit -q --allow-empty -m first && git log --format=%an,%ai,%cn,%ci > log.txt"
    (suite / "first/task.yaml").write_text(f"prompt: Go.\nsetup: {setup}\n")
    (tmp_path / "work").mkdir()
    await run_setup(load_suite(suite)[0].make_scripts(), tmp_path / "work", {"sandbox": "full"})
    who = "Kim Doe,2026-01-01 12:00:00 +0000"
    assert (tmp_path / "work/log.txt").read_text() == f"{who},{who}\n"


def test_only_tasks_that_are_held_out_run_on_request(suite):
    (suite / "first/task.yaml").write_text("prompt: Go.\nheld_out: true\nsize: large\n")
    tasks = load_suite(suite)
    assert [task.name for task in choose_tasks(tasks, [], [], is_held_out=False)] == ["second"]
    assert [task.name for task in choose_tasks(tasks, [], [], is_held_out=True)] == ["first"]
    with pytest.raises(UsageError, match="held out run with --held-out"):
        choose_tasks(tasks, ["first"], ["large"], is_held_out=False)


def test_columns_are_each_profile_with_each_model():
    assert list_columns([], []) == [{}]
    assert list_columns(["a"], ["m", "n"]) == [{"profile": "a", "model": "m"}, {"profile": "a", "model": "n"}]
