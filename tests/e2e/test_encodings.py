"""Repositories in other encodings than UTF-8, as a person works with them: mentions, input, reading and changes."""

import subprocess

import pytest

from tests.e2e.command import Place, shell

SOURCES = {
    "latin-1": "# r\xe9sum\xe9 du march\xe9\nprint('caf\xe9')\n",
    "cp1252": "# Preis in \u20ac f\xfcr M\xfcller\nprint('5 \u20ac')\n",
    "cp932": "# \u8a2d\u5b9a\u3092\u8aad\u307f\u307e\u3059\nprint('\u30c6\u30b9\u30c8\u3067\u3059')\n",
}
NOTES = {
    "latin-1": "unknown 8-bit encoding, shown as Windows-1252",
    "cp1252": "unknown 8-bit encoding, shown as Windows-1252",
    "cp932": "Shift-JIS",
}


def use(tool: str, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "arguments": {"path": "app.py", **arguments}}


def results(place: Place) -> list[dict[str, object]]:
    return [event["result"] for event in place.events() if event["type"] == "tool_finished"]


@pytest.fixture(params=[*SOURCES])
def encoding(place, request) -> str:
    (place.work / "app.py").write_bytes(SOURCES[request.param].encode(request.param))
    return request.param


def test_a_file_is_mentioned_read_and_changed_without_a_foreign_byte(place, encoding):
    source = SOURCES[encoding]
    first = source.splitlines()[0]
    patch = {"before": "print", "after": f"{first} 2\nprint"}
    steps = (
        {"calls": [use("read_file"), use("patch_file", patches=[patch])]},
        {"calls": [use("patch_file", patches=[{"before": "print", "after": "# \xdf\u30f6\nprint"}])]},
        "the second patch failed",
    )
    done = place.run("run", "look at @app.py", "--model", place.script(*steps))
    assert done.returncode == 0, done.stderr
    mention = place.events()[1:]
    parts = next(event["message"]["parts"] for event in mention if event["type"] == "turn_started")
    assert parts[1]["text"] == f"\n[app.py: {NOTES[encoding]}]\n{source}"
    read, saved, refused = results(place)
    assert NOTES[encoding] in read["output"]
    assert f"1\t{first}" in read["output"]
    assert saved["output"].startswith("saved app.py (+1 -0 lines)")
    assert refused["is_error"]
    for word in ("convert", "iconv", "UTF-8"):
        assert word not in refused["output"]
    expected = source.replace("print", f"{first} 2\nprint")
    assert (place.work / "app.py").read_bytes() == expected.encode(encoding)


@pytest.mark.parametrize(
    ("encoding", "name", "letter"),
    [("latin-1", "iso-8859-1", "\xe8"), ("cp1252", "windows-1252", "\u201e"), ("cp932", "shift_jis", "\u65b0")],
    indirect=["encoding"],
)
def test_new_letters_are_written_once_the_encoding_is_named(place, encoding, name, letter):
    patch = {"before": "print", "after": f"# {letter}\nprint"}
    content = f"# {letter}{letter}\n"
    steps = (
        {"calls": [use("read_file", encoding=name), use("patch_file", patches=[patch])]},
        {"calls": [use("write_file", content=content)]},
        {"calls": [use("write_file", path="new.py", content=content, encoding=name)]},
        {"calls": [shell("cat new.py | od -c | head -1")]},
        "done",
    )
    done = place.run("run", "go", "--model", place.script(*steps))
    assert done.returncode == 0, done.stderr
    assert [result["is_error"] for result in results(place)] == [False] * 5
    assert (place.work / "app.py").read_bytes() == content.encode(encoding)
    assert (place.work / "new.py").read_bytes() == content.encode(encoding)


def test_a_diff_through_standard_input_is_read(place, encoding):
    def git(*words: str) -> bytes:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        return subprocess.run(command, cwd=place.work, check=True, capture_output=True).stdout

    git("init", "-q")
    git("add", "app.py")
    git("commit", "-qm", "start")
    (place.work / "app.py").write_bytes(SOURCES[encoding].replace("print", "show").encode(encoding))
    (place.work / "change.diff").write_bytes(git("diff"))
    with (place.work / "change.diff").open("rb") as diff:
        process = place.start("run", "review this", "-", "--model", place.script("fine"), stdin=diff)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (0, "fine\n"), err
    (message,) = place.list_messages()
    assert f"+{SOURCES[encoding].splitlines()[1].replace('print', 'show')}\n" in message
    assert (f"[standard input: {NOTES[encoding]}]" in message) == (encoding != "cp932")


def test_binary_input_is_refused_in_one_sentence(place):
    (place.work / "data").write_bytes(b"\x7fELF\0\1\2")
    with (place.work / "data").open("rb") as data:
        process = place.start("run", "-", "--model", place.script("fine"), stdin=data)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "standard input is binary, not text" in err
