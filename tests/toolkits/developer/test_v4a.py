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
    assert await delete(here, "b/new.txt") == "deleted b/new.txt"
    assert not (here.root / "b/new.txt").exists()


async def delete(here: DeveloperHarness, path: str) -> str:
    return await here.call_ok("patch_file", path=path, patches=f"*** Delete File: {path}\n")


@pytest.mark.parametrize("path", ["link", "folder/link", "link_to_folder/link", "to_nothing", "/tmp/link"])
async def test_of_a_link_only_the_link_is_deleted(here: DeveloperHarness, path):
    (here.root / "file").write_text("kept")
    (here.root / "folder").mkdir()
    (here.root / "link_to_folder").symlink_to("folder")
    (here.root / "link").symlink_to("file")
    (here.root / "to_nothing").symlink_to("nothing")
    (here.root / "folder/link").symlink_to("../file")
    (here.workspace.tmp / "link").symlink_to(here.root / "file")
    await delete(here, path)
    place = here.workspace.tmp / "link" if path.startswith("/tmp") else here.root / path
    assert not place.is_symlink()
    assert (here.root / "file").read_text() == "kept"
    assert (here.root / "link_to_folder").is_symlink()


async def test_a_link_to_a_folder_and_odd_names_are_deleted(here: DeveloperHarness):
    (here.root / "folder").mkdir()
    (here.root / "folder/file").touch()
    (here.root / "to_folder").symlink_to("folder")
    (here.root / "-f o'o").touch()
    for path in ("to_folder", "-f o'o"):
        assert await delete(here, path) == f"deleted {path}"
    assert [entry.name for entry in here.root.iterdir()] == ["folder"]
    assert (here.root / "folder/file").exists()


async def test_a_function_of_the_shell_does_not_change_the_deletion(here: DeveloperHarness):
    (here.root / "file").touch()
    await here.shell("rm() { echo no; }; export -f rm")
    await delete(here, "file")
    assert not (here.root / "file").exists()
    (here.root / "file").touch()
    await here.shell("command() { :; }; export -f command")
    refused = await here.call_error("patch_file", path="file", patches="*** Delete File: file\n")
    assert refused.startswith("file was not deleted: ")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nothing", "there is no file 'nothing'"),
        ("none/nothing", "No such file or directory"),
        ("file/x", "Not a directory"),
        ("", "is a folder"),
        ("folder", "is a folder"),
        ("folder/..", "is a folder"),
        ("hidden", "is hidden from you by .gooseignore"),
        ("../outside", "No such file or directory"),
    ],
)
async def test_what_cannot_be_deleted_is_an_error(here: DeveloperHarness, path, reason):
    (here.root / "file").touch()
    (here.root / "folder").mkdir()
    (here.root / "hidden").touch()
    (here.root / ".gooseignore").write_text("hidden\n")
    (here.root / "../outside").touch()
    error = await here.call_error("patch_file", path=path, patches=f"*** Delete File: {path}\n")
    assert reason in error
    for name in ("file", "folder", "hidden", "../outside"):
        assert (here.root / name).exists()


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
