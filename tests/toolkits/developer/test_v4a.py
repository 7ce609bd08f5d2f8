"""V4A diffs as patches of `patch_file`."""

import pytest

from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

TWO_CLASSES = "class A:\n    def run(self):\n        pass\n\nclass B:\n    def run(self):\n        pass\n"


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


def update(*lines, name="a"):
    return "\n".join([f"*** Update File: {name}", *lines])


@pytest.mark.parametrize(
    ("text", "diff", "wanted"),
    [
        ("one\ntwo\nthree\n", ["@@", " one", "-two", "+2"], "one\n2\nthree\n"),
        ("one\ntwo\nthree", ["@@", "-three", "+3"], "one\ntwo\n3"),
        ("one\ntwo\nthree\n", ["@@", "-two"], "one\nthree\n"),
        ("one\n\ntwo\n", ["@@", " one", "", "-two", "+2"], "one\n\n2\n"),  # an empty line without its space
        ("one\ntwo\n", ["@@ one", "+half"], "one\nhalf\ntwo\n"),
        ("one\ntwo\nonetwo\n", ["@@", "-two", "+2"], "one\n2\nonetwo\n"),  # whole lines only
        ("a\nb\nc\nd\n", ["@@", "-a", "+A", "@@", "-d", "+D", "*** End of File"], "A\nb\nc\nD\n"),
        ("a\r\nb\r\n", ["@@", "-a", "+A"], "A\r\nb\r\n"),
        (TWO_CLASSES, ["@@ class B:", "     def run(self):", "-        pass", "+        go()"], None),
        (TWO_CLASSES, ["@@ class B:", "@@     def run(self):", "-        pass", "+        go()"], None),
    ],
)
async def test_an_update_changes_whole_lines(here: DeveloperHarness, text, diff, wanted):
    (here.root / "a").write_bytes(text.encode())
    await here.call_ok("patch_file", path="a", patches=update(*diff))
    wanted = wanted or TWO_CLASSES[:-9] + "    go()\n"
    assert (here.root / "a").read_bytes().decode() == wanted


async def test_a_file_is_created_and_deleted(here: DeveloperHarness):
    made = await here.call_ok("patch_file", path="b/new.txt", patches="*** Add File: b/new.txt\n+one\n+\n+two")
    assert made.startswith("created b/new.txt")
    assert (here.root / "b/new.txt").read_text() == "one\n\ntwo\n"
    await here.call_ok("patch_file", path="b/new.txt", patches="*** Delete File: b/new.txt\n")
    assert not (here.root / "b/new.txt").exists()


@pytest.mark.parametrize(
    ("diff", "reason"),
    [
        (["@@", "-nothing", "+x"], "`before` is not in the file"),
        (["@@", "-        pass", "+        go()"], "`before` occurs 2 times, at lines 3, 7"),
        (["@@ class C:", "-        pass", "+        go()"], "`before` occurs 2 times, at lines 3, 7"),
        (["@@", "*pass"], "begins with ' ', '+', '-' or '@@'"),
        (["@@", "-a", "*** Delete File: b"], "a call changes one file"),
        (["@@"], "patches is empty"),
    ],
)
async def test_what_cannot_be_applied_changes_nothing(here: DeveloperHarness, diff, reason):
    (here.root / "a").write_text(TWO_CLASSES)
    assert reason in await here.call_error("patch_file", path="a", patches=update(*diff))
    assert (here.root / "a").read_text() == TWO_CLASSES
