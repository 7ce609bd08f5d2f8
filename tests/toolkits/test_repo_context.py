"""Tests of the repository map with real grammars and files, through the tool that the model calls."""

import asyncio
import json
import os
import sqlite3
import sys
import time

import pytest
from goose_like_toolkits.repo_context import RepoContextToolkit
from goose_like_toolkits.repo_context.file_choice import choose_files, group_by_words, max_files
from goose_like_toolkits.repo_context.outline import Grammars

from goose_like.agent.build import build_exchange
from goose_like.config.profile import Profile
from goose_like.core.events import Status, ToolFinished
from goose_like.core.notifier import Recorder
from goose_like.sdk.parse_cache import ParseCache
from goose_like.testing import trial
from goose_like.toolkit import Requirements, ToolError, Workspace
from goose_like.workspace.sandbox.bubblewrap import find_sandbox_problem

LIBRARY = """
LIMIT = 3

class Ledger(dict):
    def book(self, amount: int) -> None:
        def inner(): ...
        self.get(amount)

    def get(self, key): ...


def balance(ledger: Ledger) -> int:
    return sum(ledger.values())


def unused(): ...
"""


@pytest.fixture
def project(tmp_path):
    """Create a project with a library, three files that use it, a test, and files without code."""
    folder = tmp_path / "project"
    files = {
        "lib/ledger.py": LIBRARY,
        "app.py": "from lib.ledger import Ledger, balance\n\ndef run():\n    return balance(Ledger())\n",
        "web/server.py": "import lib.ledger as l\n\ndef serve(table):\n    l.balance(l.Ledger()), table.get(1)\n",
        "web/report.js": "export class Report { print() { return balance(this) } }\n",
        "tests/test_ledger.py": "def test_it():\n    assert balance(Ledger()) == 0\n",
        "notes.md": "# balance\n",
        ".secret.py": "def hidden(): ...\n",
        "built/out.py": "def ignored(): ...\n",
        ".gitignore": "built/\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".git").mkdir()
    return folder


async def map_project(project, **arguments):
    async with trial(RepoContextToolkit, project) as context:
        return await context.call("map_repository", **arguments)


def shown(text):
    """Split a map into its files, in order, and its lines with definitions."""
    lines = [line for line in text.splitlines() if not line.startswith("[")]
    return [line.split(" (")[0] for line in lines if line[0] != " "], [line for line in lines if line[0] == " "]


async def test_the_most_used_come_first_with_their_lines(project):
    text = await map_project(project)
    files, lines = shown(text)
    assert text.splitlines()[0] == "[.: definitions of 5 of 5 files, most used first]"
    assert files[0] == "lib/ledger.py"
    assert files[-1] == "tests/test_ledger.py"
    assert lines[:6] == [
        "    2 LIMIT = 3",
        "    4 class Ledger(dict):",
        "    5     def book(self, amount: int) -> None:",
        "    9     def get(self, key): ...",
        "   12 def balance(ledger: Ledger) -> int:",
        "   16 def unused(): ...",
    ]
    assert "inner" not in text
    assert "hidden" not in text
    assert "ignored" not in text


async def test_what_does_not_fit_is_what_is_used_least(project):
    (project / "lib/ledger.py").write_text(LIBRARY + "".join(f"\ndef rare_{n}(): ...\n" for n in range(100)))
    text = await map_project(project, budget=1_000)
    assert len(text) <= 1_000
    assert "class Ledger(dict):" in text
    assert "def balance(" in text
    assert "rare_99" not in text
    assert "of 106 lines)" in text


async def test_names_that_each_file_has_for_itself_do_not_count(project):
    own = [f"_name_{number}" for number in range(60)]
    (project / "web/part.py").write_text("".join(f"{name} = 1\n" for name in own) + "def shared(): ...\n")
    for number in range(9):
        (project / f"web/part_{number}.py").write_text(f"{', '.join(own)} = range(60)\n")
    (project / "web/user.py").write_text("shared()\n")
    assert "   61 def shared(): ..." in shown(await map_project(project, path="web", budget=1_000))[1]


async def test_a_method_comes_with_its_class(project):
    methods = "".join(f"    def method_{n}(self): ...\n" for n in range(100))
    (project / "box.py").write_text(f"X = 1\nclass Box:\n{methods}    def wanted(self): ...\n")
    _, lines = shown(await map_project(project, path="box.py", about="wanted", budget=1_000))
    assert (lines[1], lines[-1]) == ("    2 class Box:", "  103     def wanted(self): ...")
    assert len(lines) < 30


@pytest.mark.parametrize("about", ["serve", "the Server", "web_server"])
async def test_words_of_a_task_come_first(project, about):
    assert shown(await map_project(project, about=about))[0][0] == "web/server.py"


async def test_a_word_that_nothing_has_is_told(project):
    assert "[no name that was looked at has 'frobnicate']" in await map_project(project, about="frobnicate balance")


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("web", {"web/server.py", "web/report.js"}),
        ("./web/", {"web/server.py", "web/report.js"}),
        ("app.py", {"app.py"}),
    ],
)
async def test_of_a_folder_or_a_file(project, path, files):
    assert set(shown(await map_project(project, path=path))[0]) == files


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere", "there is no 'nowhere'; leave `path` out"),
        ("..", "is outside of the workspace"),
        ("/etc", "is outside of the workspace"),
        ("out", "is outside of the workspace"),
        ("notes.md", "nothing in 'notes.md' can be mapped"),
        ("built", "ignored by git"),
        (".secret.py", "hidden"),
    ],
)
async def test_what_can_not_be_mapped(project, path, words):
    (project / "out").symlink_to(project.parent)
    with pytest.raises(ToolError, match=words):
        await map_project(project, path=path)


async def test_what_is_no_text_or_too_large_is_told(project):
    (project / "blob.py").write_bytes(b"def blob(): ...\n\0")
    (project / "large.py").write_text("def large(): ...\n" * 20_000)
    text = await map_project(project)
    assert "[2 files could not be read, are too large, or no text]" in text
    assert "large" not in text.replace("too large", "")
    with pytest.raises(ToolError, match=r"1 files in 'blob.py' define nothing, of which 1 could not be read"):
        await map_project(project, path="blob.py")


async def test_broken_syntax_and_deep_nesting(project):
    (project / "web/broken.py").write_text("def fine(): ...\ndef half(: x\nclass Later:\n  def end(self): ...\n")
    (project / "web/deep.py").write_text("x = " + "[" * 100_000)
    _, lines = shown(await map_project(project, path="web/broken.py"))
    assert "    1 def fine(): ..." in lines
    assert "    3 class Later:" in lines
    with pytest.raises(ToolError, match=r"1 files in 'web/deep.py' define nothing; read"):
        await map_project(project, path="web/deep.py")


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        ("a.py", "X = 1\nclass A:\n  class B:\n    async def c(self): ...\n", "X A A.B B.c"),
        ("a.js", "class A { m() {} }\nmodule.exports.go = function () { const inner = () => 1 }\n", "A A.m go"),
        ("a.ts", "interface I { go(): void }\nenum E {A}\ntype T = string\nconst f = async () => 1\n", "I I.go E T f"),
        ("a.tsx", "export const App = () => <div onClick={() => 1}/>\n", "App"),
        ("a.go", "package p\ntype S struct {}\nfunc (s *S) Run() {}\nfunc New() *S { return nil }\n", "S Run New"),
        ("a.rs", "struct S<T>(T);\nimpl S<u8> { fn f() {} }\ntrait R {}\nmacro_rules! m { () => {} }\n", "S S S.f R m"),
        ("A.java", "class A { A() {}\n void m() {} enum E { X } }\nrecord R(int x) {}\n", "A A.A A.m A.E R"),
        ("a.c", "struct s { int a; };\nint add(int a) { return a; }\ntypedef int t;\n", "s add t"),
        ("a.hpp", "class K { void run(); };\nnamespace n { struct V { int i; }; }\nvoid K::go() {}\n", "K K.run V go"),
        ("a.rb", "module M\n class N::H\n  def get(x)\n  end\n  def self.make; end\n end\nend\n", "M M.H H.get H.make"),
    ],
)  # fmt: skip
def test_each_language(file, text, names):
    found = Grammars().parse(file, text.encode()).definitions
    message = [(f"{found[one.parent].name}." if one.parent is not None else "") + one.name for one in found]
    assert " ".join(message) == names
    assert all(one.text == text.splitlines()[one.line - 1] for one in found)


def test_of_a_line_that_is_a_whole_file_its_beginning_is_shown():
    line = "été\t= 1; " * 5_000
    found = Grammars().parse("a.py", f"\n{line}\n".encode()).definitions
    assert len(found) == 5_000
    assert {(each.name, each.line, each.text) for each in found} == {("été", 2, line.expandtabs(4)[:140])}
    wide = "x = 0 # " + "𝄞" * 300
    assert [each.text for each in Grammars().parse("a.py", wide.encode()).definitions] == [wide[:140]]


async def test_without_the_extra_a_model_is_told(project, monkeypatch):
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    with pytest.raises(ToolError, match=r"pip install 'goose-like\[map\]'"):
        await map_project(project)


# --- what is kept


def wait_for_clock(folder):
    """Wait until another change of a file would get another time stamp."""
    changed = max(path.stat().st_ctime_ns for path in folder.rglob("*"))
    while time.time_ns() - changed < 60_000_000:
        time.sleep(0.01)


async def count_reads(project, monkeypatch, **arguments):
    """Build a map; return it and the files that were read."""
    seen = []
    read = Workspace.read_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "read_bytes", lambda self, path, *rest: seen.append(path) or read(self, path, *rest))
        return await map_project(project, **arguments), seen


async def test_what_has_not_changed_is_not_read_again(project, monkeypatch):
    wait_for_clock(project)
    first, seen = await count_reads(project, monkeypatch)
    assert len(set(seen)) == 5
    assert await count_reads(project, monkeypatch) == (first, [])
    with_words, seen = await count_reads(project, monkeypatch, about="serve")
    assert (with_words == first, seen) == (False, [])

    (project / "web/server.py").write_text("def other(): ...\n")
    wait_for_clock(project)
    changed, seen = await count_reads(project, monkeypatch)
    assert "def other" in changed
    assert "def serve" not in changed
    assert set(seen) == {"web/server.py"}


async def test_a_file_that_is_new_gone_or_renamed_is_minded(project):
    wait_for_clock(project)
    await map_project(project)
    (project / "app.py").rename(project / "main.py")
    (project / "web/report.js").unlink()
    (project / "more.go").write_text("package p\nfunc Added() {}\n")
    files, lines = shown(await map_project(project))
    assert {"main.py", "more.go"} < set(files)
    assert not {"app.py", "web/report.js"} & set(files)
    assert "    2 func Added() {}" in lines


async def test_a_change_of_the_same_size_is_seen(project):
    for name in ("serve", "nerve", "verve"):
        (project / "web/server.py").write_text(f"def {name}(): ...\n")
        assert f"def {name}()" in await map_project(project)


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
async def test_a_damaged_cache_is_begun_anew(project, home, monkeypatch, damage):
    wait_for_clock(project)
    first = await map_project(project)
    (file,) = (home / "cache/repo_context").iterdir()
    file.write_bytes(damage)
    assert await map_project(project) == first
    assert await count_reads(project, monkeypatch) == (first, [])


async def test_what_is_kept_in_a_wrong_form_is_made_anew(project, home):
    first = await map_project(project)
    (file,) = (home / "cache/repo_context").iterdir()
    with sqlite3.connect(file) as database:
        database.execute("UPDATE kept SET text = '[]'")
    assert await map_project(project) == first


async def test_without_a_place_for_a_cache(project, home):
    (home / "cache").parent.mkdir(exist_ok=True)
    (home / "cache").write_text("a file in its place")
    assert shown(await map_project(project))[0][0] == "lib/ledger.py"


def test_the_store_is_bounded_and_the_latest_stay(tmp_path):
    store = ParseCache(tmp_path / "map.db", limit_bytes=200_000)
    for number in range(200):
        store.put({f"{number}": "x" * 5_000})
    assert (tmp_path / "map.db").stat().st_size < 300_000
    assert list(store.get(["0", "199"])) == ["199"]
    store.close()


def test_a_store_that_another_process_writes_to_is_done_without(tmp_path):
    store = ParseCache(tmp_path / "map.db")
    store.put({"a": "1"})
    other = sqlite3.connect(tmp_path / "map.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    store.put({"b": "2"})
    assert store.get(["a"]) == {}
    other.execute("ROLLBACK")
    assert store.get(["a", "b"]) == {"a": "1"}
    other.close()
    store.close()


# --- large trees


def test_of_many_files_few_are_looked_at():
    paths = [f"lib/deep/module_{n}.py" for n in range(3_000)] + ["lib/test_a.py", "top.py", "lib/order.py"]
    found = choose_files(paths)
    assert len(found) == max_files(3_003) == 1_332
    assert found[:2] == ["top.py", "lib/order.py"]
    assert "lib/test_a.py" not in found
    words = ["module_2999", "test"]
    assert choose_files(paths, group_by_words(paths, words))[:2] == ["lib/test_a.py", "lib/deep/module_2999.py"]
    assert [max_files(count) for count in (0, 2_000, 4_000, 100_000)] == [0, 2_000, 1_000, 60]


async def test_in_a_large_tree_words_are_searched_for_in_files(tmp_path):
    for number in range(2_100):
        (tmp_path / f"m{number:04}.py").write_text(f"def f{number}(): ...\n")
    (tmp_path / "z_long_name_at_the_very_end.py").write_text("def refund(): ...\n")
    note = "[only 1,903 files were looked at, short paths first; name a folder as `path`"
    async with trial(RepoContextToolkit, tmp_path) as context:
        text = await context.call("map_repository")
        assert f"{note}, or words of your task as `about` for others]" in text
        text = await context.call("map_repository", about="refund")
        assert shown(text)[1][0] == "    1 def refund(): ..."
        assert f"{note} for others]" in text
        message = [event.text for event in context.recorder.events if isinstance(event, Status)]
        assert "searching for refund" in message


async def test_two_maps_at_once_and_one_that_is_cancelled(project):
    async with trial(RepoContextToolkit, project) as context:
        calls = [context.call("map_repository", path=path) for path in ("web", "lib")]
        web, lib = await asyncio.gather(*calls)
        assert (shown(lib)[0], "Report" in web) == (["lib/ledger.py"], True)
        cancelled = asyncio.create_task(context.call("map_repository", about="ledger"))
        begun = asyncio.Event()
        context.recorder.notify = lambda event: begun.set()
        await begun.wait()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert shown(await context.call("map_repository"))[0][0] == "lib/ledger.py"


@pytest.mark.skipif(find_sandbox_problem() is not None, reason=str(find_sandbox_problem()))
async def test_in_the_sandbox(project):
    recorder = Recorder()
    async with (
        trial(RepoContextToolkit, project) as context,
        Workspace(project, mode="workspace", approval="auto", notifier=recorder) as workspace,
    ):
        given = context.toolkit
        confined = RepoContextToolkit(
            recorder,
            Requirements("map", {}),
            workspace=workspace,
            limits=given.limits,
            exchange_view=given.exchange_view,
        )
        assert shown(await confined.map_repository())[0][0] == "lib/ledger.py"
        await confined.close()


def test_a_name_that_is_no_utf8(tmp_path):
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff.py", os.O_CREAT | os.O_WRONLY))
    (tmp_path / "a.py").write_text("def a(): ...\n")
    text = asyncio.run(map_project(tmp_path))
    assert "1 files could not be read" in text
    assert "def a(): ..." in text


async def map_in_conversation(project, tmp_path, monkeypatch, question, *calls):
    """Let a model make calls and then map the project. Return the map."""
    steps = [{"calls": [*calls, {"tool": "map_repository", "arguments": {}}]}, "done"]
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps(steps))
    monkeypatch.chdir(project)
    recorder = Recorder()
    toolkits = ("developer", "repo_context")
    profile = Profile(processor=f"scripted:{script}", sandbox="full", approval="yolo", toolkits=toolkits)
    async with build_exchange(profile, recorder) as exchange:
        assert (await exchange.reply(question)).reason == "stop"
    *_, result = [event.result for event in recorder.events if isinstance(event, ToolFinished)]
    return result.output


async def test_names_and_paths_in_the_question_come_first(project, tmp_path, monkeypatch):
    for question in ("why is `print` wrong?", "look at print() please", "fix web/report.js."):
        text = await map_in_conversation(project, tmp_path, monkeypatch, question)
        assert shown(text)[0][0] == "web/report.js", question
    assert "those of the task, then most used first" in text
    plain = await map_in_conversation(project, tmp_path, monkeypatch, "what is here?")
    assert shown(plain)[0][0] == "lib/ledger.py"


async def test_files_that_were_read_or_run_come_first_and_then_those_that_they_refer_to(project, tmp_path, monkeypatch):
    (project / "far.py").write_text("def far():\n    return 1\n")
    (project / "near.py").write_text("from far import far\n\n\ndef near():\n    return far()\n")
    read = {"tool": "read_file", "arguments": {"path": "near.py"}}
    run = {"tool": "shell", "arguments": {"command": f"cat {project}/near.py"}}
    for call in (read, run):
        text = await map_in_conversation(project, tmp_path, monkeypatch, "go on", call)
        assert shown(text)[0][:2] == ["near.py", "far.py"]
    assert shown(await map_in_conversation(project, tmp_path, monkeypatch, "go on"))[0][0] == "lib/ledger.py"


async def test_a_map_of_the_task_keeps_its_budget(project, tmp_path, monkeypatch):
    for number in range(60):
        (project / f"part_{number}.py").write_text(f"def do_part_{number}(ledger, amount, currency): ...\n" * 3)
    text = await map_in_conversation(project, tmp_path, monkeypatch, "change `do_part_59` in part_58.py")
    assert len(text) <= 8_000
    assert set(shown(text)[0][:2]) == {"part_58.py", "part_59.py"}
