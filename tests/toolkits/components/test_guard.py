"""The guard of a component's process, each group of accesses in a Python process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

GUARDS = ROOT / "toolkits/goose_like_toolkits/components/worker/guard.py"

_BEFORE = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("guards", sys.argv[1])
guards = sys.modules["guards"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guards)
settings = json.loads(sys.argv[2])
import os
os.chdir(settings["root"])
guards.Guard(**settings).install()

refused = []
def attempt(name, act):
    try:
        act()
    except PermissionError as error:
        refused.append(name)
        print(error, file=sys.stderr)
    except OSError as error:
        print(name, "let through:", error, file=sys.stderr)
"""
_AFTER = "\nprint(json.dumps(refused))\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A running directory `work`, and beside it what is not for components."""
    for name in ("work/a.txt", "work/sub/b.txt", "work/.git/config", "work/.runtime/r", "work/.env", "out/secret.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "work/link").symlink_to("../out/secret.txt")
    (tmp_path / "work/linked").symlink_to(tmp_path / "out")
    (tmp_path / "work/good").symlink_to("sub")
    return tmp_path


def run(place: Path, code: str, **settings: Any) -> tuple[Any, str]:
    """What the code printed at its end, and what it said of refusals."""
    given = json.dumps({"root": str(place / "work"), **settings})
    line = [sys.executable, "-I", "-c", _BEFORE + code + _AFTER, str(GUARDS), given]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_files_of_the_running_directory(place: Path) -> None:
    refused, said = run(
        place,
        """
attempt("read", lambda: open("a.txt").read())
attempt("write", lambda: open("new.txt", "w").write("x"))
attempt("absolute", lambda: open(settings["root"] + "/sub/b.txt", "rb"))
attempt("bytes", lambda: open(b"sub/../a.txt"))
attempt("inner link", lambda: open("good/b.txt"))
attempt("up and back", lambda: open("../work/a.txt"))
attempt("list", lambda: (os.listdir(), os.listdir("."), list(os.scandir()), os.listdir(settings["root"])))
attempt("make", lambda: os.makedirs("x/y/z"))
attempt("rename", lambda: os.rename("x", "w"))
attempt("link away", lambda: os.remove("link"))
attempt("missing", lambda: open("nothing/at/all"))
attempt("descriptor", lambda: open(os.open("a.txt", os.O_RDONLY)).read())
fd = os.open("sub", os.O_RDONLY)
attempt("dir_fd", lambda: (os.mkdir("d", dir_fd=fd), os.rename("d", "e", src_dir_fd=fd, dst_dir_fd=fd), os.listdir(fd)))
import shutil
attempt("tree", lambda: shutil.rmtree("w"))
""",
    )
    assert refused == []
    assert said.splitlines() == ["missing let through: [Errno 2] No such file or directory: 'nothing/at/all'"]


_OUT = """
import pathlib, shutil, sqlite3
out = os.path.dirname(settings["root"]) + "/out"
secret = out + "/secret.txt"
"""


@pytest.mark.parametrize(
    "path",
    [
        "../out/secret.txt",
        "sub/../../out/secret.txt",
        "link",
        "linked/secret.txt",
        "linked/../out/secret.txt",
        "/etc/passwd",
        "/etc/../etc/passwd",
        "//etc/passwd",
        "/proc/self/root" + "/etc/passwd",
        "/proc/self/cwd/../out/secret.txt",
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/self/mem",
        "/dev/mem",
        "/home/x/.ssh/id_rsa",
        "..",
        "/",
        "../new",
        "good/../../../out/secret.txt",
    ],
)
def test_ways_out(place: Path, path: str) -> None:
    code = f"""
path = {path!r}
attempt("open", lambda: open(path))
attempt("bytes", lambda: open(os.fsencode(path), "rb"))
attempt("os.open", lambda: os.open(path, os.O_RDONLY))
import pathlib
attempt("pathlib", lambda: pathlib.Path(path).read_bytes())
attempt("write", lambda: open(path, "a"))
attempt("list", lambda: os.listdir(path))
attempt("truncate", lambda: os.truncate(path, 0))
"""
    refused, said = run(place, code)
    assert refused == ["open", "bytes", "os.open", "pathlib", "write", "list", "truncate"]
    assert said.splitlines()[0] == (
        f"[Errno 13] a component may only use files in its running directory {place}/work; "
        f"give a path below it: {path!r}"
    )
    assert (place / "out/secret.txt").read_text() == "out/secret.txt"


CALLS = r"""
os.listdir(out)
list(os.scandir(out))
os.chdir(out)
list(os.walk(out))
list(os.fwalk(out))
os.mkdir(out + "/n")
os.rmdir(out)
os.remove(secret)
os.unlink(secret)
os.rename(secret, "mine")
os.rename("a.txt", out + "/a")
os.replace("a.txt", secret)
os.link(secret, "mine")
os.link("a.txt", out + "/a")
os.symlink("a.txt", out + "/a")
os.symlink("../out", "mine")
os.symlink("../../out", "sub/mine")
os.symlink(out, "mine")
os.chmod(secret, 0o777)
os.chown(secret, 0, 0)
os.truncate(secret, 0)
os.utime(secret)
os.utime("link")
os.makedirs(out + "/x/y")
os.setxattr(secret, "user.a", b"1")
os.listxattr(secret)
os.getxattr(secret, "user.a")
os.removedirs(out)
shutil.copy(secret, "mine")
shutil.copyfile("a.txt", out + "/a")
shutil.copytree(out, "mine")
shutil.move(out, "mine")
shutil.move("a.txt", out)
shutil.rmtree(out)
shutil.make_archive("z", "zip", out)
shutil.copytree("sub", out + "/s")
shutil.chown(secret, "root")
pathlib.Path(out).iterdir().__next__()
pathlib.Path(secret).unlink()
sqlite3.connect(out + "/db")
sqlite3.connect("file:../out/db?mode=ro", uri=True)
sqlite3.connect(pathlib.Path(out, "d"))
"""


def test_every_call_that_takes_a_path(place: Path) -> None:
    listed = CALLS.strip().splitlines()
    code = _OUT + "\n".join(f"attempt({call!r}, lambda: {call})" for call in listed)
    refused, said = run(place, code)
    assert refused == listed, said
    assert sorted(path.name for path in (place / "out").iterdir()) == ["secret.txt"]
    assert not (place / "work/mine").exists()


def test_relative_paths_of_an_open_folder(place: Path) -> None:
    refused, _ = run(
        place,
        """
fd = os.open("sub", os.O_RDONLY)
attempt("remove", lambda: os.remove("../../out/secret.txt", dir_fd=fd))
attempt("rename", lambda: os.rename("b.txt", "../../out/b", src_dir_fd=fd, dst_dir_fd=fd))
attempt("mkdir", lambda: os.mkdir("../../out/d", dir_fd=fd))
attempt("link", lambda: os.symlink("../../out", "x", dir_fd=fd))
attempt("inside", lambda: os.symlink("../a.txt", "y", dir_fd=fd))
""",
    )
    assert refused == ["remove", "rename", "mkdir", "link"]


def test_dot_folders(place: Path) -> None:
    code = """
for path in (".git/config", "sub/../.git/config", ".env", ".runtime/r", ".runtime/.hidden/x", ".gitignore"):
    attempt(path, lambda: open(path))
attempt("list", lambda: os.listdir(".git"))
attempt("make", lambda: os.mkdir(".new"))
attempt("write", lambda: open(".notes", "w").write("x"))
attempt("remove", lambda: __import__("shutil").rmtree(".git"))
"""
    refused, said = run(place, code)
    reserved = [".git/config", "sub/../.git/config", ".env"]
    assert refused == [*reserved, ".runtime/r", ".runtime/.hidden/x", "list", "make", "remove"]
    assert f"names that begin with a dot are reserved in {place}/work; take another name: '.git/config'" in said
    refused, said = run(place, code, dot_folders=[".runtime"])
    assert refused == [*reserved, ".runtime/.hidden/x", "list", "make", "remove"]
    assert "but for .runtime" in said
    assert run(place, code, dot_folders=[".runtime", ".git", ".env", ".new", ".hidden"])[0] == []


def test_folders_that_may_be_read_or_written(place: Path) -> None:
    code = """
out = os.path.dirname(settings["root"]) + "/out"
attempt("read", lambda: open(out + "/secret.txt"))
attempt("linked", lambda: open("linked/secret.txt"))
attempt("list", lambda: os.listdir(out))
attempt("write", lambda: open(out + "/secret.txt", "r+"))
attempt("new", lambda: open(out + "/new", "w"))
attempt("remove", lambda: os.remove(out + "/secret.txt"))
attempt("beside", lambda: open(out + "side/x"))
attempt("env", lambda: open(".env"))
"""
    out, env = str(place / "out"), str(place / "work/.env")
    refused, said = run(place, code, readable=[out, env])
    assert refused == ["write", "new", "remove", "beside"]
    assert "a component may only read this; write in its running directory" in said
    assert run(place, code, writable=[out])[0] == ["beside", "env"]


def test_python_itself_goes_on(place: Path) -> None:
    (place / "code/pkg").mkdir(parents=True)
    (place / "code/pkg/__init__.py").write_text("VALUE = open(__file__).read() and 7")
    (place / "work/mine.py").write_text("VALUE = 8")
    refused, said = run(
        place,
        """
def use():
    sys.path += [os.path.dirname(settings["root"]), *settings["readable"], settings["root"]]
    import ctypes, decimal, email, json, mimetypes, multiprocessing, sqlite3
    import ssl, subprocess, tempfile, uuid, venv, zoneinfo
    import pkg, mine, xml.dom.minidom
    assert (pkg.VALUE, mine.VALUE) == (7, 8)
    assert mimetypes.guess_type("x.txt")[0] == "text/plain"
    assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\\n"
    assert subprocess.run("true", shell=True).returncode == 0
    ctypes.CDLL(None), ctypes.CDLL("libc.so.6"), ssl.create_default_context()
    sqlite3.connect(":memory:"), sqlite3.connect("data.db").execute("create table t (a)")
    open("/dev/null", "w").write("x"), os.listdir("/proc/self/fd"), open("/proc/self/status"), open("/proc/meminfo")
    r, w = os.pipe()
    open(f"/proc/self/fd/{w}", "w").write("x")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        open(folder + "/x", "w").close()
    context = multiprocessing.get_context("spawn")
    with multiprocessing.Manager() as manager:
        assert manager.dict(a=1)["a"] == 1
    try:
        1 / 0
    except ZeroDivisionError:
        import traceback
        traceback.format_exc()
attempt("use", use)
""",
        readable=[str(place / "code")],
    )
    assert (refused, said) == ([], "")


def test_what_is_no_path_is_complained_of_by_who_takes_it(place: Path) -> None:
    code = """
def strange(act):
    try:
        act()
    except (TypeError, ValueError, OSError, KeyError) as error:
        print(type(error).__name__, file=sys.stderr)
class Odd:
    def __fspath__(self):
        raise KeyError("odd")
for path in ("a\\0b", "", None, 1.5, [], "x" * 5000, "\\udcff", "/".join(["d"] * 3000), -7):
    strange(lambda: open(path))
    strange(lambda: os.remove(path))
strange(lambda: os.listdir(10**6))
strange(lambda: open(Odd()))
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
strange(lambda: open("x"))
strange(lambda: os.listdir())
"""
    refused, said = run(place, code)
    assert refused == []
    assert "PermissionError" not in said
    assert len(said.split()) >= 16


def test_a_folder_that_becomes_a_link_is_judged_anew(place: Path) -> None:
    code = """
import subprocess
open("sub/b.txt").read()
subprocess.run("mv sub other && ln -s ../out sub", shell=True, check=True)
attempt("after", lambda: open("sub/secret.txt"))
subprocess.run("rm sub && mv other sub", shell=True, check=True)
attempt("back", lambda: open("sub/b.txt"))
"""
    assert run(place, code)[0] == ["after"]


def test_threads_and_children(place: Path) -> None:
    code = """
import threading
def act():
    attempt("thread", lambda: open("../out/secret.txt"))
thread = threading.Thread(target=act)
thread.start(), thread.join()
child = os.fork()
if not child:
    try:
        open("../out/secret.txt")
    except PermissionError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    assert run(place, code)[0] == ["thread"]


def test_the_message_is_an_error_as_the_system_raises_it(place: Path) -> None:
    code = """
import errno
try:
    open("../out/secret.txt")
except PermissionError as error:
    refused += [error.errno == errno.EACCES, error.filename]
"""
    assert run(place, code)[0] == [True, "../out/secret.txt"]


def test_a_running_directory_behind_a_link(place: Path) -> None:
    (place / "here").symlink_to("work")
    code = """
attempt("relative", lambda: open("a.txt"))
attempt("by the link", lambda: open(settings["root"] + "/a.txt"))
attempt("by its name", lambda: open(os.path.realpath("a.txt")))
attempt("out", lambda: open("../out/secret.txt"))
"""
    assert run(place, code, root=str(place / "here"))[0] == ["out"]
