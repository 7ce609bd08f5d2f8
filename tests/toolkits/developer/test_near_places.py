"""Patches that are not exactly in the file: the one place that can be known for sure, and no other one ever."""

import pytest
from goose_like_toolkits.developer.patching import Patch, apply_patches
from hypothesis import given
from hypothesis import strategies as st

from goose_like.core.text_file import create_text
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, patch

CODE = """\
class Shop:
    def open(self):
        if self.is_closed:
            self.unlock_the_door()
            return True
        return False

    def close(self):
        self.lock_the_door()
        return False
"""
BLOCK = "        if self.is_closed:\n            self.unlock_the_door()\n            return True\n"
LOOP = "            for door in self.doors:\n                door.unlock()\n\n"
NEW = f"        if self.is_closed:\n{LOOP}            return True\n"


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        (made.root / "shop.py").write_text(CODE)
        yield made


def lose_margin(text: str) -> str:
    return text.replace("\n        ", "\n").removeprefix("        ")


def indent_more(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def make_tabs(text: str) -> str:
    return text.replace("    ", "\t")


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("damage", [lose_margin, indent_more, make_tabs])
async def test_another_indentation_becomes_that_of_the_file(here: DeveloperHarness, damage, end):
    await here.call_ok("read_file", path="shop.py")
    before, after = damage(BLOCK).removesuffix("\n") + end, damage(NEW).removesuffix("\n") + end
    answer = await here.call_ok("patch_file", path="shop.py", patches=[patch(before, after)])
    assert "the indentation differed and is now as in the file" in answer
    assert (here.root / "shop.py").read_text() == CODE.replace(BLOCK, NEW)


async def test_tabs_of_the_file_stay(here: DeveloperHarness):
    (here.root / "shop.py").write_text(make_tabs(CODE))
    await here.call_ok("read_file", path="shop.py")
    await here.call_ok("patch_file", path="shop.py", patches=[patch(BLOCK, NEW)])
    assert (here.root / "shop.py").read_text() == make_tabs(CODE.replace(BLOCK, NEW))


@pytest.mark.parametrize(
    "before",
    [
        "if self.is_closed:\n  self.unlock_the_door()\n      return True",  # no one change leads there
        "    return False",  # at two places, at none of them so
        "  return True",  # too short
    ],
)
async def test_an_indentation_without_one_meaning_is_refused(here: DeveloperHarness, before):
    await here.call_ok("read_file", path="shop.py")
    answer = await here.call_error("patch_file", path="shop.py", patches=[patch("\n" + before + "\n", "pass\n")])
    assert "`before` is not in the file" in answer
    assert (here.root / "shop.py").read_text() == CODE


async def test_a_file_that_was_not_read_needs_the_exact_text(here: DeveloperHarness):
    answer = await here.call_error("patch_file", path="shop.py", patches=[patch(lose_margin(BLOCK), lose_margin(NEW))])
    assert "with other whitespace it is" in answer


@given(st.integers(0, 3), st.integers(1, 9), st.sampled_from([lose_margin, indent_more, make_tabs]))
def test_a_reindented_block_is_the_same_edit_anywhere(depth: int, copies: int, damage) -> None:
    others = "".join(f"def other_{number}():\n    return {number}\n" for number in range(copies))
    block, new = BLOCK, NEW
    for _ in range(depth):
        block, new = indent_more(block), indent_more(new)
    text = f"{others}{block}{others}"
    done = apply_patches(create_text(text), [Patch(before=damage(block), after=damage(new))], text)
    assert done.failures == {}
    assert done.text.shown == f"{others}{new}{others}"


async def change_after_reading(here: DeveloperHarness, old: str, new: str) -> str:
    await here.call_ok("read_file", path="shop.py")
    changed = CODE.replace(old, new)
    (here.root / "shop.py").write_text(changed)
    return changed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def open(self):", "def open(self) -> bool:"),
        ("        return False\n\n", ""),
        ("class Shop", "# new\nclass Store"),
    ],
)
async def test_other_lines_around_the_place_are_kept(here: DeveloperHarness, old, new):
    changed = await change_after_reading(here, old, new)
    before = "    def open(self):\n" + BLOCK + "        return False\n"
    answer = await here.call_ok("patch_file", path="shop.py", patches=[patch(before, before.replace(BLOCK, NEW))])
    assert "it had changed since you read it" in answer
    assert (here.root / "shop.py").read_text() == changed.replace(BLOCK, NEW)


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        # The line to replace has changed itself.
        ("unlock_the_door()", "unlock()", BLOCK, BLOCK.replace("unlock_the_door", "open_the_door")),
        # Both of its neighbours have.
        ("if self.is_closed:\n", "if self.shut:\n", "is_closed:\n            self.unlock_the_door()\n", "is_closed:\n"),
        # A new line has its place between two lines, one of which has changed.
        (
            "            return True\n",
            "            return 1\n",
            BLOCK,
            BLOCK + "        wait()\n",
        ),
    ],
)
async def test_a_place_that_is_gone_is_refused(here: DeveloperHarness, old, new, before, after):
    changed = await change_after_reading(here, old, new)
    answer = await here.call_error("patch_file", path="shop.py", patches=[patch(before, after)])
    assert "nothing was written: shop.py had changed since you read it" in answer
    assert (here.root / "shop.py").read_text() == changed


async def test_one_of_two_equal_lines_that_is_left_is_not_taken_for_the_other(here: DeveloperHarness):
    changed = await change_after_reading(here, "        return False\n\n", "        return None\n\n")
    answer = await here.call_error("patch_file", path="shop.py", patches=[patch("        return False\n", "")])
    assert "`before` occurred 2 times in the file as you read it" in answer
    assert (here.root / "shop.py").read_text() == changed


@given(st.lists(st.sampled_from(["a = 1", "bb = 22", "", "ccc = 333"]), min_size=2, max_size=12), st.data())
def test_a_changed_file_is_patched_as_a_merge_or_not_at_all(lines: list[str], data: st.DataObject) -> None:
    """Others change one line; the patch changes another one, and quotes both."""
    mine, others = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=2, max_size=2, unique=True))
    known = "".join(f"{line}\n" for line in lines)
    first, last = min(mine, others), max(mine, others)
    wanted = [*lines]
    wanted[mine] = "mine"
    before = "".join(f"{line}\n" for line in lines[first : last + 1])
    after = "".join(f"{line}\n" for line in wanted[first : last + 1])
    now = [*lines]
    now[others] = "others"
    text = create_text("".join(f"{line}\n" for line in now))
    done = apply_patches(text, [Patch(before=before, after=after)], known)
    wanted[others] = "others"
    assert done.text.shown in (text.shown, "".join(f"{line}\n" for line in wanted))
