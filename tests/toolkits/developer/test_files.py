"""File tools: exact changes, byte for byte, and only of files that the model knows."""

import os
import stat
from tempfile import NamedTemporaryFile

import pytest
from goose_like_toolkits.developer.file_part import read_part
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.events import FileChanged, PlanUpdated, Task
from goose_like.core.images import MAX_DOCUMENT_BYTES, MAX_IMAGE_BYTES
from goose_like.toolkit import FollowUp
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, patch


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


# --- read_file


async def test_reading_tells_lines_and_range(here: DeveloperHarness):
    (here.root / "a.txt").write_text("one\ntwo\n\x0cthree\u2028still\n")
    assert await here.call_ok("read_file", path="a.txt") == "[a.txt: 3 lines]\n1\tone\n2\ttwo\n3\t\x0cthree\u2028still"
    part = await here.call_ok("read_file", path="a.txt", start_line=2, end_line=2)
    assert part == "[a.txt: 3 lines, here 2 to 2]\n2\ttwo"
    assert (await here.call_ok("read_file", path="a.txt", start_line=3, end_line=99)).startswith(
        "[a.txt: 3 lines, here 3 to 3]"
    )


async def test_a_long_file_is_read_in_parts(tmp_path):
    async with open_developer(tmp_path, output_bytes=2000) as here:
        (here.root / "a").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
        first = await here.call_ok("read_file", path="a")
        assert "[a: 1000 lines, here 1 to 92, go on with start_line=93]" in first
        assert (await here.call_ok("read_file", path="a", start_line=93)).splitlines()[1] == "93\tline 93"
        (here.root / "b").write_text("é" * 5000 + "\nend")
        assert (await here.call_ok("read_file", path="b")).startswith(
            "[b: 2 lines, here 1 to 1, go on with start_line=2, line 1 is too long and cut]\n1\té"
        )


@pytest.mark.parametrize(
    ("data", "report"),
    [
        (b"", "[f: empty]"),
        (b"\xef\xbb\xbfa\n", "[f: 1 line]\n1\ta"),
        ("h\u00e9\r\n".encode("utf-16"), "[f: 1 line, utf-16-le, CRLF, kept when you write]\n1\th\u00e9"),
        (b"\xfe\xff\x00a", "[f: 1 line, utf-16-be, no newline at the end]\n1\ta"),
        (
            b"caf\xe9\n",
            "[f: 1 line, unknown 8-bit encoding, shown as Windows-1252, name its `encoding` to add letters, or if some "
            "look wrong]"
            "\n1\tcaf\u00e9",
        ),
    ],
)
async def test_encodings_are_read_and_told(here: DeveloperHarness, data, report):
    (here.root / "f").write_bytes(data)
    assert await here.call_ok("read_file", path="f") == report


@pytest.mark.parametrize("data", [b"\x7fELF\0\1", b"\x89PNM\r\n\x1a\n\xff", b"\xff\xfe\0"])
async def test_binary_is_told_as_such(here: DeveloperHarness, data):
    (here.root / "f").write_bytes(data)
    assert f"f is binary, {len(data)} bytes" in await here.call_error("read_file", path="f")
    assert "f is binary" in await here.call_error("write_file", path="f", content="x")
    assert "f is binary" in await here.call_error("patch_file", path="f", patches=[patch("a", "b")])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "src"}, "is a folder"),
        ({"path": "src/man.py"}, "near it are main.py"),
        ({"path": "src/zzzzzz"}, "its folder holds main.py"),
        ({"path": "scr/main.py"}, "there is no folder 'scr' either"),
        ({"path": "src/main.py/x"}, "there is no file"),
        ({"path": ""}, "path is empty"),
        ({"path": "a\0b"}, "not a path"),
        ({"path": "\ud800"}, "invalid JSON"),
        ({"path": "~nobody-here/x"}, "there is no file '~nobody-here/x'"),
        ({"path": "x" * 300}, "File name too long"),
        ({"path": "loop"}, "symbolic links"),
        ({"path": "pipe"}, "no file"),
        ({"path": "huge", "start_line": 3_000_000}, "huge has only 2,500,001 lines"),
        ({"path": "src/main.py", "start_line": 0}, "lines count from 1"),
        ({"path": "src/main.py", "start_line": 2, "end_line": 1}, "not before start_line"),
        ({"path": "src/main.py", "start_line": 2}, "has only 1 line"),
        ({"path": "/proc/self/environ"}, "hidden"),
        ({"path": "link-to-secret"}, "hidden"),
        ({"path": "dangling"}, "'dangling' is a link to src/gone.py, which does not exist"),
    ],
)
async def test_what_can_not_be_read_is_told(here: DeveloperHarness, arguments, words):
    (here.root / "src").mkdir()
    (here.root / "src/main.py").write_text("pass\n")
    (here.root / "loop").symlink_to("loop")
    (here.root / "link-to-secret").symlink_to("/etc/shadow")
    (here.root / "dangling").symlink_to("src/gone.py")
    os.mkfifo(here.root / "pipe")
    (here.root / "huge").write_bytes(b"x\n" * 2_500_001)
    answer = await here.call_error("read_file", **arguments)
    assert words in answer
    assert "root:" not in answer


async def test_keys_in_the_home_folder_are_hidden(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/nobody-here")  # a home below /tmp would lead into the private folder
    async with open_developer(tmp_path) as here:
        assert "hidden" in await here.call_error("read_file", path="~/.ssh/nothing")


async def test_paths_start_at_the_root_wherever_the_shell_is(here: DeveloperHarness):
    await here.shell("mkdir -p sub/lib; cd sub; echo one > a; echo two > /tmp/b; echo top > ../top")
    hint = "sub/a exists: paths start at the workspace root, not in the shell's folder"
    assert await here.call_error("read_file", path="a") == f"there is no file 'a'; {hint}"
    assert hint in await here.call_error("patch_file", path="a", patches=[patch("one", "1")])
    assert await here.call_ok("write_file", path="a", content="new\n") == f"created a (+1 -0 lines, {hint})"
    assert await here.call_ok("read_file", path="a") == "[a: 1 line]\n1\tnew"
    assert await here.call_ok("read_file", path="top") == "[top: 1 line]\n1\ttop"
    assert await here.call_ok("write_file", path="sub/b", content="new\n") == "created sub/b (+1 -0 lines)"
    assert "exists" not in await here.call_error("read_file", path="missing")
    assert await here.call_ok("read_file", path="/tmp/b") == "[/tmp/b: 1 line]\n1\ttwo"
    await here.call_ok("write_file", path="/tmp/c", content="three\n")
    assert await here.shell("cat /tmp/c") == "three"


async def test_a_part_of_a_large_file(here: DeveloperHarness):
    (here.root / "log").write_text("".join(f"line {number} é\n" for number in range(1, 600_001)))
    facts = "[log: 8,888,895 bytes, here"
    assert await here.call_ok("read_file", path="log", start_line=300_000, end_line=300_002) == (
        f"{facts} 300000 to 300002]\n300000\tline 300000 é\n300001\tline 300001 é\n300002\tline 300002 é"
    )
    assert await here.call_ok("read_file", path="log", start_line=599_999) == (
        f"{facts} 599999 to 600000]\n599999\tline 599999 é\n600000\tline 600000 é"
    )
    first = await here.call_ok("read_file", path="log")
    last = int(first.splitlines()[-1].split()[0])
    assert first.startswith(f"{facts} 1 to {last}, go on with start_line={last + 1}]\n1\tline 1 é\n")
    assert len(first.encode()) < 16_000
    assert "has only 600,000 lines" in await here.call_error("read_file", path="log", start_line=600_001)
    for tool, arguments in {"write_file": {"content": "x"}, "patch_file": {"patches": [patch("a", "b")]}}.items():
        assert "change it with a program in the shell" in await here.call_error(tool, path="log", **arguments)


@given(
    lines=st.lists(st.integers(0, 90), min_size=1, max_size=40),
    skipped=st.integers(0, 39),
    count=st.integers(1, 40) | st.none(),
    is_ended=st.booleans(),
)
def test_any_part_of_a_large_file(lines: list[int], skipped: int, count: int | None, is_ended: bool):
    texts = [f"{number}{'ü' * size}" for number, size in enumerate(lines, 1)]
    start = skipped % len(texts) + 1
    end = count and start + count - 1
    with NamedTemporaryFile() as file:
        file.write(("\n".join(texts) + "\n" * is_ended).encode())
        file.seek(0)
        facts, *shown = read_part(file, "f", start, end, 400).splitlines()
    wanted = [f"{number}\t{text}" for number, text in enumerate(texts, 1)][start - 1 : end]
    assert shown == wanted[: len(shown)]
    assert (f"go on with start_line={start + len(shown)}" in facts) == (len(shown) < len(wanted))


async def test_a_large_file_with_endless_lines_keys_or_no_text(here: DeveloperHarness):
    key = "-----BEGIN PRIVATE KEY-----\n" + f"{'A1b2' * 16}\n" * 20 + "-----END PRIVATE KEY-----\n"
    filler = "x" * 99 + "\n"
    (here.root / "keys").write_text(filler * 30_000 + key + filler * 30_000)
    assert "A1b2" not in await here.call_ok("read_file", path="keys", start_line=30_005, end_line=30_010)
    (here.root / "line").write_text("ü" * 3_000_000)
    answer = await here.call_ok("read_file", path="line")
    assert answer.startswith("[line: 6,000,000 bytes, here 1 to 1, go on with start_line=2, line 1 is too long")
    assert answer.splitlines()[1].strip("ü") == "1\t"
    (here.root / "latin").write_bytes(b"caf\xe9\n" * 1_100_000)
    part = await here.call_ok("read_file", path="latin", start_line=7, end_line=7)
    assert part.endswith("7 to 7, unknown 8-bit encoding, shown as Windows-1252]\n7\tcaf\u00e9")
    part = await here.call_ok("read_file", path="latin", start_line=7, end_line=7, encoding="cp1251")
    assert part.endswith("7 to 7, cp1251]\n7\tcaf\u0439")
    (here.root / "zero").write_bytes(bytes(6_000_000))
    assert "zero is binary, 6,000,000 bytes" in await here.call_error("read_file", path="zero", start_line=1)


# --- write_file


async def test_a_new_file_with_its_folders(here: DeveloperHarness):
    assert await here.call_ok("write_file", path="a/b/c.txt", content="one\r\ntwo") == "created a/b/c.txt (+2 -0 lines)"
    assert (here.root / "a/b/c.txt").read_bytes() == b"one\r\ntwo"
    diff = "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two"
    assert here.changes == [FileChanged(call_id="c1", path=f"{here.root}/a/b/c.txt", diff=diff)]


async def test_a_change_of_newlines_only_has_no_diff(here: DeveloperHarness):
    (here.root / "a").write_text("one\n")
    await here.call_ok("read_file", path="a")
    await here.call_ok("write_file", path=f"{here.root}/../{here.root.name}/a", content="one")
    assert here.changes == [FileChanged(call_id="c1", path=f"{here.root}/a")]
    (note,) = here.logged
    assert note.endswith("/a: only the end of the file or its newlines changed")


async def test_only_what_was_read_is_written_over(here: DeveloperHarness):
    file = here.root / "a.txt"
    file.write_text("precious\n")
    answer = await here.call_error("write_file", path="a.txt", content="new\n")
    assert answer == (
        "not written, as you have not read it as it is now. Its content follows. If the task needs a change of it, "
        "write all of it with the change; else leave it as it is:\n"
        "[a.txt: 1 line]\n1\tprecious"
    )
    assert file.read_text() == "precious\n"
    assert await here.call_ok("write_file", path="a.txt", content="new\n") == "saved a.txt (+1 -1 lines)"
    assert await here.call_ok("write_file", path="./a.txt", content="newer\n") == "saved ./a.txt (+1 -1 lines)"


@pytest.mark.parametrize(
    ("command", "is_known"),
    [
        ("cat a.txt", True),
        ("cd . && head -5 ./a.txt", True),
        ("sed -n 1,5p 'a.txt'; true", True),
        ("cat *.txt", True),
        ("tail -n +1 ./[a-c].t?t", True),
        ("head -n1 *.txt", False),
        ("wc a.txt", False),
        ("cat a.txt | wc", False),
        ("false && cat a.txt", False),
        ("head -n1 a.txt", False),
        ("cat a.txt; echo more >> a.txt", False),
    ],
)
async def test_what_the_shell_printed_has_been_read(here: DeveloperHarness, command, is_known):
    (here.root / "a.txt").write_text("precious\nlines\n")
    await here.shell(command)
    write = here.call_ok if is_known else here.call_error
    assert ("saved" in await write("write_file", path="a.txt", content="new\n")) == is_known


async def test_what_changed_since_is_not_written_over(here: DeveloperHarness):
    await here.call_ok("write_file", path="a", content="one\n")
    await here.shell("echo two >> a")
    answer = await here.call_error("write_file", path="a", content="three\n")
    assert "it has changed since you read it" in answer
    assert "1\tone\n2\ttwo" in answer


async def test_an_empty_file_or_the_same_text_needs_no_reading(here: DeveloperHarness):
    (here.root / "empty").touch()
    (here.root / "same").write_text("same\n")
    assert await here.call_ok("write_file", path="empty", content="x\n") == "saved empty (+1 -0 lines)"
    assert await here.call_ok("write_file", path="same", content="same\n") == (
        "nothing was changed: same holds exactly this already. If the task needs no change of it, go on; else write "
        "all of it with the change"
    )


async def test_what_is_written_unchanged_hears_what_the_last_command_demands(here: DeveloperHarness):
    (here.root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (here.root / "test_calc.py").write_text("from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    unchanged = {"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}
    line = "python3 -m pytest -q -p no:cacheprovider 2>&1 | tail -20"
    await here.call_ok("shell", command=line)
    answer = await here.call_ok("write_file", **unchanged)
    start, _, rest = answer.partition("\n")
    assert start == f"nothing was changed: calc.py holds exactly this already, and `{line}` failed with it:"
    assert "E       assert -1 == 3" in rest.splitlines()
    assert rest.endswith("Change what these lines demand")
    await here.call_ok("shell", command="echo 'no such line' && exit 3")
    assert "failed with it:\nno such line\nChange" in await here.call_ok("write_file", **unchanged)
    await here.call_ok("shell", command="true")
    assert "failed" not in await here.call_ok("write_file", **unchanged)


@pytest.mark.parametrize(
    ("old", "content", "new"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\r\n", b"c\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("a\n".encode("utf-16"), "é\n", "é\n".encode("utf-16")),
        (b"a\n", "b", b"b"),
    ],
)
async def test_encoding_mark_and_newlines_are_kept(here: DeveloperHarness, old, content, new):
    file = here.root / "f"
    file.write_bytes(old)
    await here.call_ok("read_file", path="f")
    await here.call_ok("write_file", path="f", content=content)
    assert file.read_bytes() == new


async def test_mode_and_link_are_kept(here: DeveloperHarness):
    target = here.root / "run.sh"
    target.write_text("echo hi\n")
    target.chmod(0o755)
    (here.root / "link").symlink_to("run.sh")
    await here.call_ok("read_file", path="link")
    await here.call_ok("write_file", path="link", content="echo ho\n")
    assert (here.root / "link").is_symlink()
    assert target.read_text() == "echo ho\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert sorted(path.name for path in here.root.iterdir()) == ["link", "run.sh"]


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("/usr/new", "x", "outside the workspace"),
        (".git/hooks/pre-commit", "x", "protected"),
        ("folder", "x", "is a folder"),
        ("file/x", "x", "no folder"),
        ("", "x", "path is empty"),
        ("half", "a\ud800", "invalid JSON"),
        ("link-to-secret", "x", "hidden"),
        ("link-out", "x", "outside the workspace"),
    ],
)
async def test_what_can_not_be_written_is_told(here: DeveloperHarness, path, content, words):
    (here.root / "folder").mkdir()
    (here.root / "file").touch()
    (here.root / "link-to-secret").symlink_to("/etc/shadow")
    (here.root / "link-out").symlink_to("/usr/new")
    assert words in await here.call_error("write_file", path=path, content=content)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("a.py", "x = (\n", "but line 1 does not parse: '(' was never closed"),
        ("a.json", '{"a": }', "but line 1 does not parse: Expecting value"),
        ("a.py", "x = 1\n", "(+1 -0 lines)"),
        ("a.py", "(" * 5000, "does not parse: too many nested parentheses"),
        ("a.txt", "x = (", "(+1 -0 lines)"),
    ],
)
async def test_what_does_not_parse_is_saved_and_told(here: DeveloperHarness, path, content, words):
    assert (await here.call_ok("write_file", path=path, content=content)).endswith(words)
    assert (here.root / path).read_text() == content


async def test_people_see_no_more_of_a_diff_than_they_can_read(here: DeveloperHarness):
    await here.call_ok("write_file", path="long", content="".join(f"{number}\n" for number in range(5000)))
    await here.call_ok("write_file", path="wide", content="x" * 100_000)
    await here.call_ok("write_file", path="huge", content="x\n" * 30_000)
    long, wide, huge = [change.diff for change in here.changes]
    assert long.endswith("... 4923 more lines of this diff")
    assert max(len(long), len(wide)) < 7_000
    assert huge == ""
    assert here.logged == ["huge: 30000 lines, before 0"]


# --- update_plan


async def test_the_plan_is_an_event_and_the_answer_is_short(here: DeveloperHarness):
    tasks = [{"description": "look", "status": "complete"}, {"description": "mend"}]
    assert await here.call_ok("update_plan", tasks=tasks) == "the plan is shown: 1 of 2 tasks complete"
    assert here.recorder.events == [
        PlanUpdated(tasks=(Task(description="look", status="complete"), Task(description="mend")))
    ]


async def test_an_unknown_status_is_told(here: DeveloperHarness):
    answer = await here.call_error("update_plan", tasks=[{"description": "x", "status": "done"}])
    assert "'planned', 'in-progress', 'complete' or 'failed'" in answer


async def find_objection(made: DeveloperHarness) -> str:
    objection = await made.toolkit.before_finish()
    return objection.text if isinstance(objection, FollowUp) else ""


async def test_what_was_changed_and_not_run_is_doubted(tmp_path):
    async with open_developer(tmp_path, "full", asks_back=True) as made:
        assert await find_objection(made) == ""
        await made.call_ok("write_file", path="a.py", content="print(1)\n")
        doubt = "You changed a.py and ran nothing since. Check it with the shell; if it is right, finish."
        assert await find_objection(made) == doubt
        assert await find_objection(made) == "", "once for each change"
        await made.call_ok("write_file", path="a.py", content="print(2)\n")
        await made.shell("python3 a.py")
        assert await find_objection(made) == ""
        await made.call_ok("write_file", path="a.py", content="print(2)\n")
        assert await find_objection(made) == "", "nothing was changed"
        await made.shell("echo 'wrong: 3' && exit 3")
        failed = "This failed: echo 'wrong: 3' && exit 3\nwrong: 3\nRepair that, and run it again; then finish."
        assert await find_objection(made) == failed
        await made.call_ok("write_file", path="a.py", content="print(4)\n")
        await made.shell("cat a.py")
        assert await find_objection(made) == (
            "You changed a.py. Now run this again: echo 'wrong: 3' && exit 3\nBefore, it failed:\nwrong: 3"
        )
        await made.shell("true")
        assert await find_objection(made) == ""
    async with open_developer(tmp_path, "full") as made:
        await made.call_ok("write_file", path="b.py", content="print(1)\n")
        assert await made.toolkit.before_finish() is None


# --- images, numbers and names


async def test_an_image_that_is_too_large_is_called_an_image(here: DeveloperHarness):
    for size in (MAX_IMAGE_BYTES + 1, 6_000_000):
        (here.root / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(size - 8))
        error = await here.call_error("read_file", path="shot.png")
        assert error.startswith(
            f"shot.png is an image of {size:,} bytes, and models take at most 3,750,000; make a smaller"
        )


async def test_a_pdf_is_a_document(here: DeveloperHarness):
    for size in (2_000, 6_000_000):
        (here.root / "a.pdf").write_bytes(b"%PDF-" + bytes(size - 5))
        outcome = await here.outcome("read_file", path="a.pdf")
        assert outcome.output == f"[a.pdf: a PDF file, {size:,} bytes]"
        assert outcome.image
        assert len(outcome.image.data) == size
    (here.root / "a.pdf").write_bytes(b"%PDF-" + bytes(MAX_DOCUMENT_BYTES))
    error = await here.call_error("read_file", path="a.pdf")
    assert error.startswith("a.pdf is a PDF file of more than 20,000,000 bytes, which models do not take")


async def test_line_numbers_are_not_written_into_a_file(here: DeveloperHarness):
    (here.root / "a.py").write_text("one\ntwo\n")
    shown = await here.call_ok("read_file", path="a.py")
    copied = shown.partition("\n")[2] + "\n3\tthree\n"
    answer = await here.call_ok("write_file", path="a.py", content=copied)
    assert answer == "saved a.py (+1 -0 lines, the line numbers of read_file were left out)"
    assert (here.root / "a.py").read_text() == "one\ntwo\nthree\n"
    data = "1\tnorth\n2\tsouth\n"
    assert "begins with its number" in await here.call_error("write_file", path="a.py", content=data)
    assert (here.root / "a.py").read_text() == "one\ntwo\nthree\n"
    await here.call_ok("write_file", path="new.tsv", content="1\tone\n2\ttwo\n")
    await here.call_ok("write_file", path="new.tsv", content="1\tone\n2\tthree\n")
    assert (here.root / "new.tsv").read_text() == "1\tone\n2\tthree\n"


async def test_a_name_that_is_not_utf8_is_reached_as_commands_show_it(here: DeveloperHarness):
    folder = here.root / os.fsdecode(b"d\xe9p\xf4t")
    folder.mkdir()
    file = folder / os.fsdecode(b"caf\xe9.txt")
    file.write_text("one\n")
    shown = await here.shell("ls d*/*")
    assert shown == "d\ufffdp\ufffdt/caf\ufffd.txt"
    assert await here.call_ok("read_file", path=shown) == f"[{shown}: 1 line]\n1\tone"
    await here.call_ok("patch_file", path=shown, patches=[patch("one", "two")])
    await here.call_ok("write_file", path=shown, content="three\n")
    assert file.read_text() == "three\n"
    assert "near it are caf\ufffd.txt" in await here.call_error("read_file", path="d\ufffdp\ufffdt/cafe.txt")
    (folder / os.fsdecode(b"caf\xe8.txt")).touch()
    assert "stands for 2 files" in await here.call_error("read_file", path=shown)
    await here.toolkit.context_updates()
    await here.shell("rm d*/*")
    assert (
        "caf\ufffd.txt (removed by your command)" in (await here.toolkit.context_updates())["no longer as you saw it"]
    )
