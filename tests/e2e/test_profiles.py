"""`profile new`, `edit`, `use` and `check` as a person meets them: a real editor process, a real terminal."""

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from goose_like.config.profile import ResourceLimits, SessionChoice
from tests.e2e.command import Place
from tests.e2e.test_terminal import Terminal

OLD = "# mine\nsmall: {processor: local}\n\nbig:\n  processor: openai:big\n"


@pytest.fixture
def file(place):
    """The person's profiles.yaml."""
    path = place.home / "config/profiles.yaml"
    path.parent.mkdir()
    path.write_text(OLD)
    return path


def editor(place: Place, body: str) -> dict[str, str]:
    """An editor that does this with `file` (a Path) and the `words` it was given, and notes the words."""
    program = place.home / "editor.py"
    program.write_text(
        f"import sys, os\nfrom pathlib import Path\nwords = sys.argv[1:]\nfile = Path(words[-1])\n"
        f"Path({str(place.home / 'words')!r}).write_text(' '.join(words))\n{body}\n"
    )
    return {"VISUAL": shlex.join([sys.executable, str(program)]), "EDITOR": "false"}


def copies(file: Path) -> list[Path]:
    return sorted(file.parent.glob(".edit-*"))


def test_from_nothing_to_a_profile_that_is_used(place):
    model = place.script("done")
    assert place.run("profile", "new", "mine").returncode == 0
    change = f"file.write_text(file.read_text() + '  processor: {model}\\n')"
    assert place.run("profile", "edit", "mine", env=editor(place, change)).returncode == 0
    used = place.run("profile", "use", "mine")
    assert (used.returncode, used.stdout.partition(":")[0]) == (0, "'mine' is now the default profile")
    ran = place.run("run", "a task")
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
    assert place.events()[0]["profile"] == "mine"
    listed = place.run("profile", "list").stdout
    assert "without --profile: mine, because " in listed
    assert "has `use: mine`" in listed


PROCESSOR_KEYS = (
    *("tools", "base_url", "wire", "effort", "service_tier", "speed"),
    *("cache", "max_output_tokens", "images", "server_fallback"),
)


def test_a_check_names_where_each_value_comes_from(place, file):
    file.write_text(
        f"base:\n  provider: scripted\n  processor: {place.script('x').removeprefix('scripted:')}\n"
        "  limits: {steps: 5, tokens: 7}\n  toolkits: [[developer, {}]]\n"
        "mine:\n  extends: base\n  processor: {window: 9}\n  limits:\n    steps: 6\n  moderator: passive\n"
    )
    done = place.run("profile", "check", "mine")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split(maxsplit=2)[2] for line in done.stdout.partition("\n\n")[0].splitlines()[1:]}
    assert {key: origin.removeprefix(f"{file}, ") for key, origin in rows.items()} == {
        "processor.model": "line 3",
        "processor.window": "line 8",
        **dict.fromkeys([f"processor.{key}" for key in PROCESSOR_KEYS], "default"),
        **dict.fromkeys(["processor.temperature", "processor.stall_s", "accelerator", "fallback", "hosted"], "default"),
        **dict.fromkeys(["instructions", "folders", "verify", "sandbox", "approval"], "default"),
        **dict.fromkeys([f"session.{key}" for key in SessionChoice.model_fields], "default"),
        **dict.fromkeys(
            ["paths.read", "paths.hide", "paths.deny_write", "variables.allow", "network.allow"], "default"
        ),
        **dict.fromkeys([f"permissions.{verdict}" for verdict in ("allow", "ask", "deny")], "default"),
        **dict.fromkeys([f"resources.{key}" for key in ResourceLimits.model_fields], "default"),
        "moderator.name": "line 11",
        "toolkits.0.name": "line 5",
        "limits.steps": "line 10",
        "limits.tokens": "line 4",
        **dict.fromkeys([f"limits.{key}" for key in ("cost_usd", "time_s", "output_bytes")], "default"),
    }


def test_an_edit_is_saved_with_its_mode_and_the_editor_told_the_line(place, file):
    file.chmod(0o640)
    env = editor(place, "file.write_text(file.read_text().replace('openai:big', 'openai:bigger  # now'))")
    link = place.home / "vim"
    link.write_text(f'#!/bin/sh\nexec {env["VISUAL"]} "$@"\n')
    link.chmod(0o755)
    done = place.run("profile", "edit", "big", env={"VISUAL": "", "EDITOR": str(link)})
    assert (done.returncode, done.stdout) == (0, f"saved: {file}\n"), done.stderr
    assert file.read_text() == OLD.replace("openai:big", "openai:bigger  # now")
    assert file.stat().st_mode & 0o777 == 0o640
    words = (place.home / "words").read_text().split()
    assert words[0] == "+4"
    assert Path(words[1]).parent == file.parent
    assert copies(file) == []


def test_a_profile_of_a_file_of_its_own_is_edited_there(place, file):
    own = file.parent / "profiles/own.yaml"
    own.parent.mkdir()
    own.write_text("processor: local\n")
    done = place.run("profile", "edit", "own", env=editor(place, "file.write_text('processor: openai:x')"))
    assert done.returncode == 0, done.stderr
    assert (own.read_text(), file.read_text()) == ("processor: openai:x", OLD)


ENDS = {
    "nothing changed": ("pass", 0, "nothing was changed", None),
    "a bad edit": (
        "file.write_text('small: {}\\nbig: {procesor: x}')",
        2,
        "line 2: unknown key 'procesor'",
        "procesor",
    ),
    "no YAML": ("file.write_text('small: [')", 2, "line 1: this is not valid YAML", "small: ["),
    "no text": ("file.write_bytes(b'\\xff')", 2, "cannot be read", "\udcff"),
    "the editor fails": ("sys.exit(3)", 1, "the editor exited with code 3; ", None),
    "the editor fails late": ("file.write_text('x: {}'); sys.exit(3)", 1, "the editor exited with code 3", "x: {}"),
    "the editor is killed": ("os.kill(os.getpid(), 9)", 1, "the editor exited with code -9", None),
    "the file changes meanwhile": (
        "(file.parent / 'profiles.yaml').write_text('theirs: {}'); file.write_text('ours: {}')",
        1,
        "changed by another program",
        "ours: {}",
    ),
}


@pytest.mark.parametrize("kind", ENDS)
def test_no_edit_is_lost_and_no_bad_one_saved(place, file, kind):
    body, code, report, kept = ENDS[kind]
    done = place.run("profile", "edit", env=editor(place, body))
    assert done.returncode == code, done.stderr
    assert report in done.stdout + done.stderr
    assert file.read_text() == ("theirs: {}" if "meanwhile" in kind else OLD)
    assert len(copies(file)) == (kept is not None)
    for copy in copies(file):
        assert kept in copy.read_text(errors="surrogateescape")
        assert str(copy) in done.stderr


@pytest.mark.parametrize(
    ("words", "env", "report"),
    [
        (["bigg"], {}, "make it: goose-like profile new bigg"),
        (["default"], {}, "extend it with a profile of your own: goose-like profile new default"),
        ([], {"VISUAL": "/no/such/editor"}, "the editor '/no/such/editor' was not found; set VISUAL or EDITOR"),
        ([], {"VISUAL": "'"}, "was not found; set VISUAL or EDITOR"),
        ([], {"VISUAL": "", "EDITOR": "", "PATH": "/nowhere"}, "the editor 'vi' was not found; set VISUAL or EDITOR"),
    ],
)
def test_refused_edits(place, file, words, env, report):
    done = place.run("profile", "edit", *words, env={"VISUAL": "true", **env})
    assert done.returncode == 2
    assert report in done.stderr
    assert copies(file) == []


def test_a_broken_file_is_mended(place, file):
    file.write_text("small: [")
    done = place.run("profile", "edit", "small", env=editor(place, "file.write_text('small: {}')"))
    assert (done.returncode, file.read_text()) == (0, "small: {}"), done.stderr


@pytest.fixture
def edit_in_terminal(place, file):
    """`profile edit` before a person; the editor writes `bad` at first, and then `good`."""
    body = "file.write_text('good: {}' if 'bad' in file.read_text() else 'a: {}\\nb: {bad: x}')"
    env = [f"{name}={value}" for name, value in editor(place, body).items()]
    terminal = Terminal(place, ["env", *env, sys.executable, "-m", "goose_like", "profile", "edit"])
    yield terminal
    terminal.close()


def test_a_person_goes_on_with_a_bad_edit(edit_in_terminal, file):
    edit_in_terminal.see("line 2: unknown key 'bad'")
    edit_in_terminal.see("edit again?")
    edit_in_terminal.type("\r")
    edit_in_terminal.see("saved: ")
    assert edit_in_terminal.wait_exit() == 0
    assert (file.read_text(), copies(file)) == ("good: {}", [])


def test_a_person_drops_a_bad_edit(edit_in_terminal, file):
    edit_in_terminal.see("edit again?")
    edit_in_terminal.type("n\r")
    edit_in_terminal.see("nothing was changed")
    assert edit_in_terminal.wait_exit() == 0
    assert (file.read_text(), copies(file)) == (OLD, [])


def test_ctrl_c_at_the_question_keeps_what_was_written(edit_in_terminal, file):
    edit_in_terminal.see("edit again?")
    edit_in_terminal.interrupt()
    assert edit_in_terminal.wait_exit() == 1
    (copy,) = copies(file)
    assert "bad: x" in copy.read_text()
    assert str(copy) in edit_in_terminal.text.replace("\r\n", "")
    assert file.read_text() == OLD


def test_ctrl_c_belongs_to_the_editor(place, file):
    body = """import signal, time
signal.signal(signal.SIGINT, lambda *_: (file.write_text('x: {}'), sys.exit(0)))
print('rea' + 'dy', flush=True)
time.sleep(60)"""
    env = [f"{name}={value}" for name, value in editor(place, body).items()]
    terminal = Terminal(place, ["env", *env, sys.executable, "-m", "goose_like", "profile", "edit"])
    try:
        terminal.see("ready")
        terminal.type("\x03")
        terminal.see("saved: ")
        assert terminal.wait_exit() == 0
    finally:
        terminal.close()
    assert file.read_text() == "x: {}"


def test_a_kill_leaves_the_copy(place, file):
    body = "file.write_text('x: {}'); os.kill(os.getppid(), 9)"
    assert place.run("profile", "edit", env=editor(place, body)).returncode == -signal.SIGKILL
    assert file.read_text() == OLD
    assert [os.fspath(copy.parent) for copy in copies(file)] == [os.fspath(file.parent)]


def test_a_check_warns_of_models_with_a_name_like_a_known_one(place):
    (place.home / "config").mkdir(exist_ok=True)
    text = """
own: {processor: "openai:gpt-4o-mni", accelerator: "openai:gpt-4o-mini", fallback: "anthropic:claude-sonet-4-5"}
server: {processor: {model: "openai:gpt-4o-mni", base_url: "http://127.0.0.1:9/v1"}}
"""
    (place.home / "config" / "profiles.yaml").write_text(text)
    env = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    done = place.run("profile", "check", "own", env=env)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("warning")] == [
        "warning: processor: no known model has the name 'openai:gpt-4o-mni'; did you mean 'openai:gpt-4o-mini'?",
        "warning: fallback: no known model has the name 'anthropic:claude-sonet-4-5'; "
        "did you mean 'anthropic:claude-sonnet-4-5'?",
    ]
    assert "warning" not in place.run("profile", "check", "server", env=env).stdout


def test_doctor_in_a_session_names_the_model_of_the_session(place):
    model = place.script("ok")
    done = place.run("-m", model, input="/doctor\n")
    output = "".join((done.stdout + done.stderr).split())
    assert f"{model}(chosenforthissession)" in output


def test_no_help_names_a_range_in_the_words_of_a_program(place):
    for words in (["run"], ["boss"], ["serve"], ["session", "clear"]):
        assert " range>" not in place.run(*words, "--help").stdout, words
