"""Environments that are not a person's own machine: containers, other users, homes and disks that cannot be used."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from goose_like.workspace.repositories.audit_record import AcceptedState, AuditRecord
from goose_like.workspace.sandbox.landlock import find_landlock_problem
from tests.e2e.command import Place, shell
from tests.workspace.workspace_harness import find_place

UNKNOWN_USER = 54321
"""A user whom the system does not know, as in a container that runs with any number of a user."""

WRITE = "echo new > new.txt && cat new.txt"

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can start programs as another user")


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A place below /tmp whose folders the unknown user owns. `tmp_path` is closed to other users."""
    with tempfile.TemporaryDirectory(prefix="environment-") as folder:
        place = Place(Path(folder, "home"), Path(folder, "work"))
        for path in (place.home, place.work):
            path.mkdir()
            os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
        Path(folder).chmod(0o755)
        yield place


def find_open_python(place: Place) -> str:
    """Find an interpreter of this version that the unknown user can start."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            run_as_unknown_user(place, "-c", "", python=python, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return pytest.skip("other users can start no Python of this version")


def run_as_unknown_user(place: Place, *words: str, python: str, env: dict[str, str] | None = None, **how: Any) -> Any:
    """Run Python with the packages of this process as the unknown user, without a HOME unless `env` has one."""
    variables = place.env(PYTHONPATH=os.pathsep.join(filter(None, sys.path)), PYTHONDONTWRITEBYTECODE="1")
    del variables["HOME"]
    how = {"user": UNKNOWN_USER, "group": UNKNOWN_USER, "extra_groups": []} | how
    line = [python, *words]
    return subprocess.run(
        line, cwd=place.work, env=variables | (env or {}), capture_output=True, text=True, timeout=120, **how
    )


def run_task(place: Place, *steps: Any, env: dict[str, str] | None = None) -> Any:
    """Run a turn as the unknown user."""
    model = place.script(*steps)
    for file in place.home.iterdir():
        file.chmod(0o644)
    python = find_open_python(place)
    return run_as_unknown_user(place, "-m", "goose_like", "run", "--model", model, "go", python=python, env=env)


@pytest.mark.parametrize("home", ["/", "//", "", "~", "nowhere", "/nonexistent", "/dev/null"])
def test_commands_run_with_any_home(place, home):
    done = place.run("run", "--model", place.script({"calls": [shell(WRITE)]}, "fine"), "go", env={"HOME": home})
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert (place.work / "new.txt").read_text() == "new\n"


@needs_root
@pytest.mark.parametrize("variables", [{}, {"HOME": "/"}, {"HOME": ""}], ids=["no home", "root folder", "empty"])
def test_a_user_whom_the_system_does_not_know_can_work(open_place, variables):
    done = run_task(open_place, {"calls": [shell(WRITE)]}, "fine", env=variables)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert (open_place.work / "new.txt").stat().st_uid == UNKNOWN_USER


@needs_root
@pytest.mark.parametrize("words", [("run", "-q", "go"), ("session", "list"), ("profile", "list"), ("doctor",)])
def test_a_home_of_somebody_else_is_named_with_the_next_step(open_place, words):
    closed = open_place.home / "closed"
    closed.mkdir(0o700)
    python = find_open_python(open_place)
    variables = {"HOME": str(closed), "GOOSE_LIKE_HOME": ""}
    done = run_as_unknown_user(open_place, "-m", "goose_like", *words, python=python, env=variables)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert str(closed) in done.stderr
    assert done.stderr.endswith("make that folder writable or point GOOSE_LIKE_HOME elsewhere\n")


def test_a_home_that_is_a_file_is_named_with_the_next_step(place):
    (place.work / "file").touch()
    done = place.run("run", "go", env={"HOME": str(place.work / "file"), "GOOSE_LIKE_HOME": ""})
    assert done.returncode == 1
    assert done.stderr.endswith("make that folder writable or point GOOSE_LIKE_HOME elsewhere\n")
    assert "Traceback" not in done.stderr


@pytest.fixture
def foreign_place(open_place: Place) -> Place:
    """A workspace of another user, in which git may work."""
    git = ("git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main")
    os.chown(open_place.work, 0, 0)
    (open_place.work / "sub").mkdir()
    (open_place.work / "sub/old.txt").write_text("old\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=open_place.work, check=True)
    for path in (open_place.work, *open_place.work.rglob("*")):
        os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
    return open_place


def read_output(place: Place) -> str:
    """Read what the model got from its only call."""
    return next(event["result"]["output"] for event in place.events() if event["type"] == "tool_finished")


@needs_root
def test_commands_of_root_change_the_files_of_others(foreign_place):
    command = f"{WRITE}; echo more >> sub/old.txt; chmod +x sub/old.txt; rm .git/HEAD.lock 2> /dev/null; ls -n sub"
    done = foreign_place.run("run", "--model", foreign_place.script({"calls": [shell(command)]}, "fine"), "go")
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert (foreign_place.work / "sub/old.txt").read_text() == "old\nmore\n"
    assert (foreign_place.work / "sub/old.txt").stat().st_mode & 0o777 == 0o755
    assert (foreign_place.work / "new.txt").read_text() == "new\n"
    assert foreign_place.run("doctor").stdout.count("cannot change the files") == 0


@needs_root
def test_commands_of_root_get_no_other_rights(foreign_place, request):
    third = Path(tempfile.mkdtemp(dir=find_place()))
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", str(third)], check=True))
    (third / "secret").write_text("TOPSECRET")
    for path in (third / "secret", third):
        os.chown(path, UNKNOWN_USER + 1, UNKNOWN_USER + 1)
        path.chmod(0o700)
    attempts = (
        *(f"cat {third}/secret", "cat /etc/shadow", "touch /etc/new", "mount -t tmpfs none /mnt"),
        *("echo x >> .git/config", "echo x >> .git/hooks/pre-commit", "chmod u+s sub/old.txt", "chown 1 /usr"),
        *("mknod device c 1 3", "kill -0 1", "nsenter -t 1 -m true"),
    )
    command = "; ".join(f"({attempt}) > /dev/null 2>&1 && echo 'done: {attempt}'" for attempt in attempts)
    call = shell(f"{command}; grep CapEff /proc/self/status")
    foreign_place.run("run", "--model", foreign_place.script({"calls": [call]}, "fine"), "go")
    output = read_output(foreign_place)
    assert "CapEff:\t000000000000000b" in output  # CAP_CHOWN, CAP_DAC_OVERRIDE and CAP_FOWNER
    # Changes in .git reach a copy and are judged afterwards.
    allowed = ("done: echo x >> .git", "done: kill -0 1")
    assert [line for line in output.splitlines() if line.startswith("done") and not line.startswith(allowed)] == []
    assert "x" not in (foreign_place.work / ".git/config").read_text().splitlines()
    assert not (foreign_place.work / ".git/hooks/pre-commit").exists()


@needs_root
def test_a_hidden_folder_of_others_is_not_taken_for_deleted(foreign_place):
    (foreign_place.work / ".gooseignore").write_text("sub/\n")
    call = shell("grep CapEff /proc/self/status; ls sub; touch new.txt")
    foreign_place.run("run", "--model", foreign_place.script({"calls": [call]}, "fine"), "go")
    output = read_output(foreign_place)
    assert "CapEff:\t0000000000000000" in output
    assert "commands cannot change the files of other users here" in output


@needs_root
def test_the_doctor_names_files_that_commands_cannot_change(foreign_place):
    """Let root be an ordinary user of the machine, as in a container without root."""
    line = ["unshare", "--user", "--map-root-user", sys.executable, "-m", "goose_like", "doctor"]
    done = subprocess.run(line, cwd=foreign_place.work, env=foreign_place.env(), capture_output=True, text=True)
    assert "but commands cannot change the files of other users in" in " ".join(done.stdout.split()), done.stderr


def test_a_renamed_project_keeps_its_newest_session(place):
    """Other folders in which the session ran keep it, too."""
    model = place.script(*["fine"] * 9)
    place.run("run", "--session", "mine", "--model", model, "first")
    first = place.work / "first"
    other = place.work / "other"
    for folder in (first, other):
        folder.mkdir()
    here = Place(place.home, first)
    assert here.run("run", "--session", "here", "--model", model, "second").returncode == 0
    first.rename(place.work / "renamed")
    renamed = Place(place.home, place.work / "renamed")
    assert renamed.run("run", "-c", "--model", model, "third").returncode == 0
    elsewhere = Place(place.home, other)
    assert elsewhere.run("run", "-c", "--model", model, "lost").returncode == 1
    assert elsewhere.run("run", "--resume", "here", "--model", model, "fourth").returncode == 0
    for folder in (elsewhere, renamed):
        assert folder.run("run", "-c", "--model", model, "again").returncode == 0
        assert folder.list_messages()[:2] == ["second", "third"]
    first.mkdir()
    assert here.run("run", "-c", "--model", model, "new folder of that name").returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "error: gpg failed to sign the data",
        "error: Couldn't load public key /home/ann/.ssh/id: No such file or directory?",
        "No private key found for public key",
    ],
)
def test_notes_about_a_kill_and_about_signing_name_the_cause(place, text):
    calls = [
        shell("kill -9 $$"),
        shell(f'echo "{text}" >&2; exit 128'),
        {"tool": "read_file", "arguments": {"path": ".."}},
        {"tool": "read_file", "arguments": {"path": "/tmp"}},
    ]
    place.run("run", "--model", place.script({"calls": calls}, "all failed"), "go")
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert "a `kill -9` or a lack of memory ended it" in outputs[0]
    assert "~/.gnupg" in outputs[1]
    assert "goose-like-tmp-" not in outputs[2] + outputs[3]


UNSHARE = ["unshare", "--mount"]
if os.getuid() != 0:
    UNSHARE = ["unshare", "--user", "--map-root-user", "--mount"]

TINY_TMP = """
exec 9< "$PLACE"
mount -t tmpfs -o size=64k,mode=1777 tmpfs "$TINY" && mkdir -p "$PLACE" && mount --bind /proc/self/fd/9 "$PLACE"
"""
"""Mounts a small /tmp, in which the folders of the test appear again."""

READ_ONLY = 'for folder in $FOLDERS; do mount --rbind "$folder" "$folder" && mount -o remount,ro,bind "$folder"; done'


def run_with_mounts(place: Place, mounts: str, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the command after a shell script that mounts something. Skip the test where that is not possible."""
    script = f'set -e; {mounts}\ncd "$PLACE/work"; echo mounted >&2; exec "$@"'
    line = [*UNSHARE, "bash", "-c", script, "bash", sys.executable, "-m", "goose_like", *words]
    variables = place.env(PLACE=str(place.work.parent), PYTHONPATH=os.pathsep.join(filter(None, sys.path)), **env)
    done = subprocess.run(
        line, cwd="/", env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    head, mounted, err = done.stderr.partition("mounted\n")
    if not mounted:
        pytest.skip(f"nothing can be mounted here: {head.strip()}")
    done.stderr = err
    return done


@pytest.mark.parametrize("fill", ["", 'head -c 65536 /dev/zero > "$TINY/fill" || true'], ids=["empty", "full"])
@pytest.mark.parametrize("is_default", [True, False], ids=["/tmp", "TMPDIR"])
def test_a_tiny_folder_for_temporary_files_loses_nothing(place, fill, is_default):
    command = f"{WRITE}; head -c 300000 /dev/zero > /tmp/big; seq 1 30000"
    model = place.script({"calls": [shell(command)]}, {"calls": [shell("rm /tmp/big; echo more > more.txt")]}, "fine")
    variables = {"TINY": "/tmp"}
    mounts = TINY_TMP
    if not is_default:
        tiny = place.work.parent / "tiny"
        tiny.mkdir()
        variables = {"TINY": str(tiny), "TMPDIR": str(tiny)}
        mounts = 'mount -t tmpfs -o size=64k,mode=1777 tmpfs "$TINY"'
    done = run_with_mounts(place, f"{mounts}\n{fill}", "run", "--model", model, "go", **variables)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert (place.work / "new.txt").read_text() == "new\n"
    assert (place.work / "more.txt").read_text() == "more\n"
    (output,) = (place.home / "state/sessions").glob("*/outputs/*")
    assert output.read_text().endswith("29999\n30000\n")
    # A full folder is not used at all.
    assert ("No space left on device" in output.read_text()) == (not fill)
    assert place.list_turn_ends() == ["stop"]


@pytest.mark.parametrize("words", [("run",), ("run", "--no-session"), ("run", "--sandbox", "full")])
def test_without_a_folder_for_temporary_files_the_next_step_is_named(place, words):
    model = place.script("fine")
    mounts = f'mount --bind "$PLACE/home" "$PLACE/home"; {READ_ONLY}'  # the home folder stays writable
    folders = f"/tmp /var/tmp {place.work}"
    done = run_with_mounts(place, mounts, *words, "-q", "--model", model, "go", FOLDERS=folders, TMPDIR="/tmp")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("make one of them writable, or set TMPDIR to a folder that is\n")


class ClosedHome:
    """A home folder in which nothing can be written: runs the command in it."""

    def __init__(self, place: Place, kind: str) -> None:
        self.place = place
        self._kind = kind
        self._python = find_open_python(place) if kind == "mode 555" else ""

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        if self._kind == "mount":
            return run_with_mounts(self.place, READ_ONLY, *words, FOLDERS=str(self.place.home))
        os.chown(self.place.home, 0, 0)
        self.place.home.chmod(0o555)
        done: subprocess.CompletedProcess[str] = run_as_unknown_user(
            self.place, "-m", "goose_like", *words, python=self._python, stdin=subprocess.DEVNULL
        )
        return done


@pytest.fixture(params=["mount", pytest.param("mode 555", marks=needs_root)])
def closed_home(request: pytest.FixtureRequest, open_place: Place) -> ClosedHome:
    return ClosedHome(open_place, request.param)


@pytest.mark.parametrize("words", [("run", "-q", "go"), ("session", "start", "mine")])
def test_a_read_only_home_is_named_with_the_next_step(closed_home, words):
    done = closed_home.run(*words)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert str(closed_home.place.home) in done.stderr
    assert "Errno" not in done.stderr
    assert done.stderr.endswith("make that folder writable or point GOOSE_LIKE_HOME elsewhere\n")
    doctor = closed_home.run("doctor")
    assert doctor.returncode == 1
    assert "goose-like run --no-session" in doctor.stdout


@pytest.mark.parametrize("mode", ["workspace", "read-only"])
def test_commands_run_without_session_in_a_read_only_home(closed_home, mode):
    model = closed_home.place.script({"calls": [shell("cat old.txt; echo new > new.txt")]}, "fine")
    (closed_home.place.work / "old.txt").write_text("old\n")
    done = closed_home.run("run", "--no-session", "--sandbox", mode, "--model", model, "go")
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
    assert "│ old" in done.stderr
    is_writable = mode == "workspace"
    assert (closed_home.place.work / "new.txt").exists() == is_writable
    # One sentence says what is lost.
    assert done.stderr.count("point GOOSE_LIKE_HOME elsewhere") == int(is_writable)


def test_hooks_are_refused_without_session_in_a_read_only_home(closed_home):
    command = "git init -q . && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit; echo x > .envrc"
    model = closed_home.place.script({"calls": [shell(command)]}, "fine")
    done = closed_home.run("run", "--no-session", "--model", model, "go")
    assert done.returncode == 6, done.stderr
    assert not (closed_home.place.work / ".git/hooks/pre-commit").exists()
    assert not (closed_home.place.work / ".envrc").exists()


def test_a_read_only_home_keeps_the_record_of_a_killed_session(place, monkeypatch):
    monkeypatch.setenv("GOOSE_LIKE_HOME", str(place.home))
    record = AuditRecord(place.work)
    record.write(AcceptedState())
    record.close(is_kept=True)
    (place.work / ".envrc").write_text("left by a command of the killed session\n")
    model = place.script({"calls": [shell("true")]}, "fine")
    words = ("run", "--no-session", "--model", model, "go")
    done = run_with_mounts(place, READ_ONLY, *words, FOLDERS=str(place.home))
    assert done.returncode == 6, done.stderr
    assert not (place.work / ".envrc").exists()


def run_without_namespaces(place: Place, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command where no user namespace can be made, without the rights of root."""
    script = (
        "echo 0 > /proc/sys/user/max_user_namespaces && "
        'exec setpriv --bounding-set=-all --inh-caps=-all "$0" -m goose_like "$@"'
    )
    line = ["unshare", "--user", "--map-root-user", "sh", "-c", script, sys.executable, *words]
    done = subprocess.run(line, cwd=place.work, env=place.env(), capture_output=True, text=True, timeout=120)
    if "unshare: " in done.stderr or "setpriv: " in done.stderr:
        pytest.skip(done.stderr.strip())
    return done


@pytest.mark.parametrize(
    ("mode", "notice"),
    [
        ("workspace", "commands cannot write in the workspace (only goose-like's own tools can)"),
        ("read-only", "commands run under Landlock only"),
    ],
)
def test_a_run_without_user_namespaces_names_the_limits_and_the_remedy(place, mode, notice):
    (place.work / "old.txt").write_text("old\n")
    write = {"tool": "write_file", "arguments": {"path": "tool.txt", "content": "text"}}
    calls = [shell("cat old.txt; echo new > new.txt"), write]
    model = place.script({"calls": calls}, "all failed")
    done = run_without_namespaces(place, "run", "--sandbox", mode, "--model", model, "go")
    assert not (place.work / "new.txt").exists()
    assert "allow user namespaces: sudo sysctl user.max_user_namespaces=15000" in done.stderr
    if find_landlock_problem() is not None:
        assert done.returncode == 7, done.stderr
        return
    assert (done.returncode, done.stdout) == (0, "all failed\n"), done.stderr
    assert notice in done.stderr
    is_writable = mode == "workspace"
    assert (place.work / "tool.txt").exists() == is_writable
    outputs = [event["result"]["output"] for event in place.events() if event["type"] == "tool_finished"]
    assert outputs[0].startswith("old\n")
    assert ("change files with the other tools" in outputs[0]) == is_writable
    assert ("say what you would change" in outputs[0]) != is_writable
    doctor = run_without_namespaces(place, "doctor")
    assert doctor.returncode == 0
    assert "allow user namespaces" in " ".join(doctor.stdout.split())
