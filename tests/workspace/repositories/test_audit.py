"""The repository audit: hooks and settings that commands leave."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from goose_like.core.events import Answer, Question
from goose_like.workspace.repositories import scanner
from goose_like.workspace.repositories.git import is_hook_name
from tests.workspace.workspace_harness import GIT, ONCE, create_confined, needs_sandbox, run_script


@pytest.fixture
def project(root: Path) -> Path:
    """A repository that exists before the session."""
    subprocess.run(["git", "init", "-q", str(root / "project")], check=True)
    return root / "project"


ATTACKS = {
    "hook": "git init -q r && echo evil > r/.git/hooks/pre-commit && chmod +x r/.git/hooks/pre-commit",
    "hooks link": "git init -q r && rm -r r/.git/hooks && mkdir b && echo evil >b/update && ln -s ../../b r/.git/hooks",
    "setting": "git init -q r && git -C r config core.fsmonitor evil",
    "include": "git init -q r && git -C r config include.path ../../evil",
    "alias": "git init -q r && git -C r config alias.st '!evil'",
    "broken": "git init -q r && echo '[evil' > r/.git/config",
    "bare": "git init -q --bare r && git -C r config core.sshCommand evil",
    "hidden deep": "git init -q node_modules/a/r && echo evil > node_modules/a/r/.git/hooks/post-checkout",
    "worktree setting": "git init -q r && cd r; git config extensions.worktreeConfig 1; git config --worktree a.b evil",
    "pointer": "git init -q /tmp/evil && mkdir r && echo 'gitdir: /tmp/evil/.git' > r/.git",
    "common": "git init -q r && git init -q /tmp/evil && echo /tmp/evil/.git > r/.git/commondir",
    "common and hook": "git init -q r; git init -q /tmp/e; echo /tmp/e/.git > r/.git/commondir; >r/.git/hooks/update",
    "replaced": "git clone -q project copy 2>/dev/null; cp -r project/.git other; echo evil > other/hooks/update",
}


def set_git(project: Path, key: str, value: str) -> None:
    subprocess.run(["git", "-C", str(project), "config", key, value], check=True)


def find_dangers(root: Path) -> list[str]:
    """List the effects of an attack that are still active."""
    found = []
    for folder, _, _ in os.walk(root):
        if Path(folder, "hooks").is_dir():
            found += list(filter(is_hook_name, os.listdir(Path(folder, "hooks"))))
    text = "".join(path.read_text() for path in root.rglob("config*") if path.is_file() and path.suffix != ".refused")
    links = [
        str(path) for path in root.rglob("*") if path.name in ("commondir",) or (path.name == ".git" and path.is_file())
    ]
    return found + ([text] if "evil" in text else []) + links


async def refuse_changes(root: Path, attack: str) -> Question:
    """Run an attack, answer the question about its changes with no, and return the question."""
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, attack)
        assert "disabled" in str(await workspace.inspect_changes(None))
        assert await workspace.inspect_changes(None) == []
    (question,) = recorder.questions
    assert question.kind == "repository"
    return question


@needs_sandbox
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_new_repositories_are_looked_at(root: Path, project: Path, attack: str) -> None:
    await refuse_changes(root, attack)
    assert find_dangers(root) == []


@needs_sandbox
async def test_what_a_person_allows_stays(root: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        await run_script(workspace, ATTACKS["hook"])
        assert await workspace.inspect_changes(None) == []
        assert await workspace.inspect_changes(None) == []
        assert len(recorder.questions) == 1
        assert "hook pre-commit" in recorder.questions[0].text
        await run_script(workspace, "echo worse > r/.git/hooks/pre-commit")
        await workspace.inspect_changes(None)
        assert len(recorder.questions) == 2


@needs_sandbox
async def test_ordinary_git_is_not_asked_about(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        code, output = await run_script(
            workspace,
            """set -e
            git init -q a; cd a; git config user.name n; git config user.email e
            git commit -q --allow-empty -m one; git checkout -q -b topic; git worktree add -q ../tree
            cd ..; git clone -q a b; git -C b branch --set-upstream-to=origin/topic
            git -C a -c protocol.file.allow=always submodule --quiet add ../b sub""",
        )
        assert code == 0, output
        assert await workspace.inspect_changes(None) == []
    assert recorder.questions == []


STUBBORN = {
    "a folder that is closed": "git init -q b && echo evil > b/.git/hooks/pre-commit && chmod 555 b/.git/hooks",
    "the name is taken": "git init -q b && cd b/.git/hooks && echo evil > update && mkdir -p update.refused/x",
    "the settings are locked": "git init -q b && cd b/.git && git config core.fsmonitor evil && mkdir -p config.lock "
    "config.refused/x",
}


@needs_sandbox
@pytest.mark.parametrize("attack", STUBBORN.values(), ids=STUBBORN)
async def test_what_resists_is_put_out_of_effect_too(root: Path, attack: str) -> None:
    await refuse_changes(root, attack)
    assert not (root / "b/.git/hooks/pre-commit").exists()
    assert not (root / "b/.git/hooks/update").exists()
    config = root / "b/.git/config"
    assert not config.exists() or "evil" not in config.read_text()


@needs_sandbox
async def test_the_last_look_is_at_the_end(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, ATTACKS["hook"])
    assert find_dangers(root) == []
    assert recorder.questions == []
    assert "disabled" in str(recorder.events)


@needs_sandbox
async def test_the_last_look_comes_when_only_files_were_written_too(root: Path) -> None:
    workspace, _ = create_confined(root)
    async with workspace:
        await workspace.write_bytes("r/config", b"[core]\nfsmonitor = evil\n")  # as yet a file like any other
        for name in ("HEAD", "objects/x", "refs/x"):
            await workspace.write_bytes(f"r/{name}", b"")
        assert find_dangers(root)
    assert find_dangers(root) == []


# --- settings and hooks of a repository that exists


def run_git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True, text=True).stdout


WORK = f"""set -e
git config user.email me@example.com; git config user.name me; git remote add origin /nowhere
{GIT} commit -q --allow-empty -m x
git checkout -q -b topic; git branch --quiet -D topic 2>/dev/null || true; git checkout -q -b other; git branch -D topic
git worktree add -q tree; git status --porcelain; git add -A; git rev-parse --verify -q HEAD"""


@needs_sandbox
async def test_harmless_settings_are_changed_without_a_question(root: Path, project: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        code, output = await run_script(workspace, WORK, cwd=project)
        assert code == 0, output
        assert await workspace.inspect_changes(None) == []
        assert run_git(project, "config", "remote.origin.url").strip() == "/nowhere"
        assert run_git(project, "config", "user.name").strip() == "me"
    assert recorder.questions == []


@needs_sandbox
async def test_hooks_and_settings_count_only_after_a_yes(root: Path, project: Path) -> None:
    attack = "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
    attack += "git config alias.st '!evil'"
    for answer in (Answer(), ONCE):
        workspace, recorder = create_confined(root, answer)
        async with workspace:
            await run_script(workspace, attack, cwd=project)
            assert not (project / ".git/hooks/pre-commit").exists()
            assert "evil" not in (project / ".git/config").read_text()
            report = await workspace.inspect_changes(None)
            (question,) = recorder.questions
            assert "setting alias.st, hook pre-commit" in question.text
            assert "+#!/bin/sh" in question.detail
            assert "+\tst = !evil" in question.detail
            _, seen = await run_script(workspace, "ls .git/hooks; git config -l", cwd=project)
            assert ("evil" in seen) == ("pre-commit" in seen) == answer.is_allowed
            assert bool(report) != answer.is_allowed
            assert await workspace.inspect_changes(None) == []
        assert os.access(project / ".git/hooks/pre-commit", os.X_OK) == answer.is_allowed
        assert ("evil" in (project / ".git/config").read_text()) == answer.is_allowed


@needs_sandbox
@pytest.mark.parametrize(
    "attack",
    [
        "ln -sf /etc/passwd .git/hooks/pre-commit",
        "mkfifo .git/hooks/pre-commit",
        "echo x > .git/hooks/pre-commit; chmod 0 .git/hooks/pre-commit",
        "mkdir -p .git/hooks/a; echo x > .git/hooks/a/b; chmod 311 .git/hooks/a",
        "for i in $(seq 600); do echo > .git/hooks/$i; done",
        "ln -sf /etc/passwd .git/hooks/config",
        "rm .git/hooks/config",
        "mkdir .git/hooks/config.worktree; mv .git/hooks/config.worktree .git/hooks/pre-commit",
        "printf '[core] fsmonitor = evil\\n' >> .git/config",
        "printf '[core]\\n\\tpager = a\\\\\\n\\tb\\n' >> .git/config",
    ],
)
async def test_odd_copies_are_refused(root: Path, project: Path, attack: str) -> None:
    before = (project / ".git/config").read_text()
    workspace, _ = create_confined(root)
    async with workspace:
        await run_script(workspace, attack, cwd=project)
        await workspace.inspect_changes(None)
        code, output = await run_script(workspace, "git config remote.a.url /x && git status", cwd=project)
        assert code == 0, output
        assert await workspace.inspect_changes(None) == []
        assert run_git(project, "config", "remote.a.url") == "/x\n"
    assert [name for name in os.listdir(project / ".git/hooks") if is_hook_name(name)] == []
    assert before in (project / ".git/config").read_text()


@needs_sandbox
async def test_a_change_by_the_person_is_neither_asked_about_nor_lost(root: Path, project: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "true", cwd=project)
        (project / ".git/hooks/pre-push").write_text("mine")
        assert await workspace.inspect_changes(None) == []
        assert "mine" in (await run_script(workspace, "cat .git/hooks/pre-push", cwd=project))[1]
        run_git(project, "config", "remote.mine.url", "/mine")  # replaces the file, and thereby its mount
        await run_script(workspace, "true", cwd=project)
        assert await workspace.inspect_changes(None) == []
        assert "/mine" in (await run_script(workspace, "git config -l", cwd=project))[1]
        await run_script(workspace, "git config core.fsmonitor evil", cwd=project)
        assert "evil" not in run_git(project, "config", "-l")
        assert await workspace.inspect_changes(None) != []
    assert len(recorder.questions) == 1
    assert (project / ".git/hooks/pre-push").read_text() == "mine"


@needs_sandbox
async def test_a_change_by_the_person_while_a_question_is_open_is_not_lost(root: Path, project: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)

    async def answer_late(question: Question) -> Answer:
        run_git(project, "config", "remote.mine.url", "/mine")
        return ONCE

    async with workspace:
        await run_script(workspace, "git config alias.st '!evil'", cwd=project)
        recorder.ask = answer_late  # type: ignore[method-assign]
        assert "changed outside" in str(await workspace.inspect_changes(None))
        assert await workspace.inspect_changes(None) == []
    assert run_git(project, "config", "remote.mine.url") == "/mine\n"
    assert "evil" not in (project / ".git/config").read_text()


@needs_sandbox
async def test_settings_that_lost_their_mount_are_undone(root: Path, project: Path) -> None:
    workspace, _ = create_confined(root)
    async with workspace:
        await run_script(workspace, "true", cwd=project)
        run_git(project, "config", "remote.mine.url", "/mine")
        await run_script(workspace, "git config core.fsmonitor evil", cwd=project)
        assert "disabled" in str(await workspace.inspect_changes(None))
        assert "evil" not in (project / ".git/config").read_text()


@needs_sandbox
async def test_steps_of_a_rebase_are_shown(root: Path, project: Path) -> None:
    workspace, recorder = create_confined(root)
    todo = ".git/rebase-merge/git-rebase-todo"
    async with workspace:
        await run_script(workspace, f"mkdir .git/rebase-merge; echo pick abc > {todo}", cwd=project)
        assert await workspace.inspect_changes(None) == []
        await run_script(workspace, f"echo exec evil > {todo}", cwd=project)
        assert await workspace.inspect_changes(None) != []
    assert "+exec evil" in recorder.questions[0].detail
    assert (project / todo).read_text() == "pick abc\n"


@needs_sandbox
async def test_targets_of_linked_hooks_are_protected_or_asked_about(root: Path, project: Path) -> None:
    (project / "check").write_text("mine")
    (project / ".git/hooks/pre-commit").symlink_to("../../check")
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        assert (await run_script(workspace, "echo evil > check", cwd=project))[0] != 0
        await run_script(workspace, "git init -q r; cd r; echo good > check; ln -s ../../check .git/hooks/update")
        assert await workspace.inspect_changes(None) == []
        recorder._answer = Answer()
        await run_script(workspace, "echo evil > r/check")
        assert "disabled" in str(await workspace.inspect_changes(None))
    assert "+evil" in recorder.questions[1].detail
    assert (project / "check").read_text() == "mine"
    assert (root / "r/check").read_text() == "good\n"


@needs_sandbox
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("filter.f.clean", "tools/run.sh"),
        ("diff.d.textconv", "python3 tools/run.sh"),
        ("merge.m.driver", "tools/run.sh %A"),
        ("gpg.program", "tools/run.sh"),
        ("alias.x", "!tools/run.sh"),
        ("init.templateDir", "tools"),
    ],
)
async def test_programs_that_git_settings_name_are_like_hooks(root: Path, project: Path, key: str, value: str) -> None:
    (project / "tools").mkdir()
    (project / "tools/run.sh").write_text("mine")
    set_git(project, key, value)
    workspace, _ = create_confined(root)
    async with workspace:
        await run_script(workspace, "echo evil > tools/run.sh; mv tools t; mkdir tools", cwd=project)
        await workspace.inspect_changes(None)
        await run_script(workspace, "echo evil > tools/run.sh", cwd=project)
        await workspace.inspect_changes(None)
    assert (project / "tools/run.sh").read_text() == "mine"


@needs_sandbox
async def test_programs_that_do_not_exist_yet_are_asked_about(root: Path, project: Path) -> None:
    set_git(project, "alias.x", "!tools/run.sh")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "mkdir tools; echo evil > tools/run.sh", cwd=project)
        assert "disabled" in str(await workspace.inspect_changes(None))
        assert not (project / "tools/run.sh").exists()
        recorder._answer = ONCE
        await run_script(workspace, "git config alias.y '!./y.sh'", cwd=project)
        assert await workspace.inspect_changes(None) == []
        recorder._answer = Answer()
        await run_script(workspace, "echo evil > y.sh", cwd=project)
        assert "disabled" in str(await workspace.inspect_changes(None))
    assert not (project / "y.sh").exists()


@needs_sandbox
async def test_links_to_the_private_folder_are_removed(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "git init -q /tmp/r; git -C /tmp/r config core.fsmonitor evil")
        await run_script(workspace, f"ln -s {workspace.tmp}/r direct; ln -s ..{workspace.tmp} above; ln -s /tmp/r own")
        assert "disabled" in str(await workspace.inspect_changes(None))
        assert os.listdir(root) == ["own"]
    assert "above (leads elsewhere)" in recorder.questions[0].text


@needs_sandbox
async def test_one_file_that_cannot_be_reverted_protects_no_other(root: Path) -> None:
    (root / ".vscode").mkdir()
    large = root / ".vscode/a"
    large.write_bytes(b"x" * 1_000_001)
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "echo evil > .vscode/tasks.json; echo >> .vscode/a; chmod 644 .vscode/a")
        assert "may be active" in str(await workspace.inspect_changes(None))
    assert not (root / ".vscode/tasks.json").exists()
    assert "may be active" in str(recorder.events)


# --- what cannot be listed


CLOSED = {
    "hooks": "git init -q r; echo evil > r/.git/hooks/pre-commit; chmod 311 r/.git/hooks",
    "repository": "git init -q r; git -C r config core.fsmonitor evil; chmod 311 r",
    "no rights": "git init -q r; echo evil > r/.git/hooks/update; chmod 0 r/.git/hooks/update r/.git/hooks r/.git r",
    "folder above": "mkdir a; git init -q a/r; git -C a/r config core.fsmonitor evil; chmod 311 a",
    "pointer": "mkdir a; git init -q a/r; git -C a/r config core.fsmonitor evil; mkdir s; "
    "echo 'gitdir: ../a/r/.git' > s/.git; chmod 111 a",
}


@needs_sandbox
@pytest.mark.parametrize("attack", CLOSED.values(), ids=CLOSED)
async def test_folders_that_cannot_be_listed_are_opened(root: Path, attack: str) -> None:
    await refuse_changes(root, attack)
    assert find_dangers(root) in ([], [str(root / "s/.git")])


@needs_sandbox
async def test_an_incomplete_survey_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a/b/c").mkdir(parents=True)
    monkeypatch.setattr(scanner, "_MAX_FOLDERS", 2)
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "true")
    assert "not searched everywhere" in str(recorder.events)


# --- start files


@needs_sandbox
@pytest.mark.parametrize(
    "name",
    [
        *(".vscode/tasks.json", ".claude/settings.json", ".envrc", ".husky/a/b", ".hg/hgrc"),
        *("sub/.vscode/tasks.json", "a/b/.claude/any/thing.md", ".agents/skills/x/SKILL.md", "s/.cargo/config.toml"),
    ],
)
@pytest.mark.parametrize("is_new", [True, False])
async def test_start_files_are_asked_about_once_and_reverted(root: Path, name: str, is_new: bool) -> None:
    file = root / name
    if not is_new:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, f"mkdir -p $(dirname {name}); echo evil > {name}; chmod 111 $(dirname {name})")
        assert "disabled" in str(await workspace.inspect_changes(None))
        assert await workspace.inspect_changes(None) == []
        (question,) = recorder.questions
        assert "+evil" in question.detail
        assert not file.exists() if is_new else file.read_text() == "mine"
        recorder._answer = ONCE
        await run_script(workspace, f"echo good > {name}")
        assert await workspace.inspect_changes(None) == []
    assert file.read_text() == "good\n"
    assert len(recorder.questions) == 2


@needs_sandbox
async def test_tools_ask_once_for_a_start_file(root: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        await workspace.write_bytes(".vscode/tasks.json", b"{}")
        assert await workspace.inspect_changes(None) == []
    (question,) = recorder.questions
    assert (question.kind, question.detail) == ("repository", "@@ -0,0 +1 @@\n+{}\n\\ no newline at the end")


@needs_sandbox
async def test_what_follows_the_write_of_a_tool_is_not_accepted_with_it(root: Path) -> None:
    workspace, recorder = create_confined(root, ONCE)
    async with workspace:
        await workspace.write_bytes(".envrc", b"mine")
        (root / ".envrc").write_text("evil")
        workspace._accept_change(root / ".envrc", b"mine")  # as if the other write had come in between
        recorder._answer = Answer()
        assert "disabled" in str(await workspace.inspect_changes(None))
    assert (root / ".envrc").read_text() == "mine"


@needs_sandbox
async def test_a_link_instead_of_a_start_folder_is_removed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/settings.json").write_text("mine")
    workspace, _ = create_confined(root)
    async with workspace:
        await run_script(workspace, f"ln -s {tmp_path}/mine .vscode; ln -s {tmp_path}/mine .claude")
        assert await workspace.inspect_changes(None) != []
    assert (tmp_path / "mine/settings.json").read_text() == "mine"
    assert not (root / ".vscode").is_symlink()


@needs_sandbox
async def test_a_copy_of_an_accepted_start_file_is_not_asked_about(root: Path) -> None:
    (root / ".vscode").mkdir()
    (root / ".vscode/tasks.json").write_text("mine")
    (root / "example").mkdir()
    (root / "example/.envrc").write_text("theirs")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "mkdir -p w/x && cp -r .vscode w/x")
        assert await workspace.inspect_changes(None) == []
        await run_script(workspace, "rm -rf w example")
        assert await workspace.inspect_changes(None) == []
        assert recorder.questions == []
    (root / "example").mkdir()
    (root / "example/.envrc").write_text("theirs")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "cp example/.envrc .")
        assert await workspace.inspect_changes(None) != []
        await run_script(workspace, "mv example/.envrc . ; rm .vscode/tasks.json")
        assert await workspace.inspect_changes(None) != []
    assert not (root / ".envrc").exists()
    assert (root / ".vscode/tasks.json").read_text() == "mine"


@needs_sandbox
async def test_files_of_a_ci_server_are_named_at_the_end_of_the_turn(root: Path) -> None:
    workspace, recorder = create_confined(root)

    def count_warnings() -> int:
        return str(recorder.events).count("a CI server will run")

    async with workspace:
        await run_script(
            workspace, "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo y > Jenkinsfile"
        )
        assert await workspace.inspect_changes() == []
        assert count_warnings() == 0
        assert await workspace.inspect_changes(None) == []
        assert count_warnings() == 1
        assert ".github/workflows/ci.yml" in str(recorder.events)
        (root / "Jenkinsfile").write_text("the person's")
        await run_script(workspace, "true")
        assert await workspace.inspect_changes(None) == []
        assert count_warnings() == 1
        await workspace.write_bytes(".gitlab-ci.yml", b"x")
        assert await workspace.inspect_changes(None) == []
        assert count_warnings() == 2
    assert recorder.questions == []


@needs_sandbox
async def test_start_files_of_packages_are_not_asked_about(root: Path) -> None:
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "mkdir -p node_modules/a/.vscode; echo x > node_modules/a/.vscode/tasks.json")
        assert await workspace.inspect_changes(None) == []
    assert recorder.questions == []


# --- a session that is killed

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from goose_like.core.notifier import Recorder
from goose_like.workspace.workspace import Workspace
async def main():
    workspace = Workspace(sys.argv[1], mode="workspace", approval="auto", notifier=Recorder())
    process = await workspace.spawn(["bash", "-c", sys.argv[2]])
    while await process.read(): pass
    await process.wait()
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""


def run_killed(root: Path, command: str) -> None:
    """Run a command in a session that is killed after it."""
    subprocess.run([sys.executable, "-c", KILLED, root, command], check=False)


@needs_sandbox
async def test_what_a_killed_session_left_is_not_the_persons(root: Path, project: Path) -> None:
    (root / ".envrc").write_text("mine")
    attack = f"{ATTACKS['hook']}; echo evil > .envrc; cd project; echo evil | tee .git/hooks/update > .git/commondir"
    run_killed(root, attack)
    (project / ".git/hooks/post-commit").write_text("mine")
    assert (root / "r/.git/hooks/pre-commit").exists()
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "true")
        assert "disabled" in str(await workspace.inspect_changes(None))
    (question,) = recorder.questions
    assert "post-commit" not in question.text
    assert not (root / "r/.git/hooks/pre-commit").exists()
    assert not (project / ".git/commondir").exists()
    assert (root / ".envrc").read_text() == "mine"
    assert is_hook_name("update")
    assert [name for name in os.listdir(project / ".git/hooks") if is_hook_name(name)] == ["post-commit"]
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "true")
        assert await workspace.inspect_changes(None) == []


def edit_as_person(root: Path, word: str) -> dict[Path, str]:
    """Change a setting and a hook of the project and an editor's settings, and return the new texts."""
    run_git(root / "project", "config", "alias.mine", f"!{word}")
    for path in (root / "project/.git/hooks/pre-commit", root / "project/.vscode/settings.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(word)
    paths = ("project/.git/config", "project/.git/hooks/pre-commit", "project/.vscode/settings.json")
    return {root / path: (root / path).read_text() for path in paths}


@needs_sandbox
async def test_what_the_person_changes_while_nothing_runs_stays(root: Path, project: Path) -> None:
    (project / ".vscode").mkdir()
    workspace, recorder = create_confined(root)
    async with workspace:
        await workspace._freeze_rules()
        for word in ("before the first command", "between two turns", "before the end"):
            edited = edit_as_person(root, word)
            if word != "before the end":
                await run_script(workspace, "true")
                assert await workspace.inspect_changes(None) == []
            assert {path: path.read_text() for path in edited} == edited
    assert {path: path.read_text() for path in edited} == edited
    assert recorder.questions == []
    assert recorder.events == []


@needs_sandbox
@pytest.mark.parametrize("way", ["(sleep 1; {}) &", "env -i setsid bash -c 'sleep 1; {}' >/dev/null 2>&1 &"])
async def test_what_a_background_process_changes_after_the_turn_is_not_the_persons(
    root: Path, project: Path, way: str
) -> None:
    (project / ".vscode").mkdir()
    line = way.format("echo evil > project/.vscode/settings.json; mkfifo done")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, f"{line} true" if line.endswith("&") else line)
        assert await workspace.inspect_changes(None) == []
        while not (root / "done").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert (project / ".vscode/settings.json").exists()
        await run_script(workspace, "true")
        assert "disabled" in str(await workspace.inspect_changes(None))
    assert not (project / ".vscode/settings.json").exists()
    assert len(recorder.questions) == 1


@needs_sandbox
async def test_a_link_of_the_person_stays_and_its_target_is_watched(root: Path) -> None:
    (root / "dotfiles").mkdir()
    (root / ".claude").symlink_to("dotfiles")
    workspace, recorder = create_confined(root)
    async with workspace:
        await run_script(workspace, "echo evil > dotfiles/settings.json")
        assert "disabled" in str(await workspace.inspect_changes(None))
        await run_script(workspace, "ln -sfn /tmp .claude")
        assert "disabled" in str(await workspace.inspect_changes(None))
    assert os.readlink(root / ".claude") == "dotfiles"
    assert list((root / "dotfiles").iterdir()) == []
    assert len(recorder.questions) == 2
