"""Patches of files: each place exactly once, and the nearest text where there is none."""

import asyncio
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from goose_like.core.events import FileChanged
from goose_like.core.text_file import normalize_newlines
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer, patch


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


async def test_patches_apply_in_order_to_what_the_former_left(here: DeveloperHarness):
    (here.root / "a.py").write_text("def f():\n    return 1\n")
    answer = await here.call_ok(
        "patch_file", path="a.py", patches=[patch("f()", "g()"), patch("g():\n    return 1", "g(): pass")]
    )
    assert answer == "saved a.py (+1 -2 lines)"
    assert (here.root / "a.py").read_text() == "def g(): pass\n"
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1 @@\n-def f():\n-    return 1\n+def g(): pass"
    assert here.changes == [FileChanged(call_id="c1", path=f"{here.root}/a.py", diff=diff)]
    assert here.logged == []


async def test_patches_that_match_are_kept_and_named_if_another_fails(here: DeveloperHarness):
    (here.root / "a").write_text("one\ntwo\nfour\n")
    patches = [patch("one", "1"), patch("three", "3"), patch("two", "2"), patch("five", "5")]
    answer = await here.call_error("patch_file", path="a", patches=patches)
    assert answer.startswith("saved a (+2 -2 lines)\npatch 2 of 4: `before` is not in the file")
    assert "\npatch 4 of 4: " in answer
    assert answer.endswith("Applied: 1, 3. Not applied: 2, 4. Send only what failed again")
    assert (here.root / "a").read_text() == "1\n2\nfour\n"
    assert len(here.changes) == 1


async def test_nothing_is_written_if_no_patch_matches(here: DeveloperHarness):
    (here.root / "a").write_text("one\ntwo\n")
    answer = await here.call_error("patch_file", path="a", patches=[patch("four", "1"), patch("three", "3")])
    assert answer.startswith("patch 1 of 2: `before` is not in the file")
    assert answer.endswith("a was not changed")
    assert (here.root / "a").read_text() == "one\ntwo\n"
    assert here.changes == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_all_places_are_replaced_on_request(here: DeveloperHarness, end):
    (here.root / "a").write_bytes(f"x = 1{end}y = x{end}x = aaa{end}".encode())
    answer = await here.call_ok("patch_file", path="a", patches=[patch("x", "long", replace_all=True)])
    assert answer == "saved a (+3 -3 lines, 3 places)"
    await here.call_ok("patch_file", path="a", patches=[patch("aa", "b", replace_all=True)])
    await here.call_ok("patch_file", path="a", patches=[patch("1\ny", "2\nz", replace_all=True)])
    assert (here.root / "a").read_bytes() == f"long = 2{end}z = long{end}long = ba{end}".encode()


async def test_more_places_are_replaced_than_are_ever_listed(here: DeveloperHarness):
    (here.root / "a").write_text("ab \n" * 3_000)
    await here.call_ok("patch_file", path="a", patches=[patch("ab\n", "c\n", replace_all=True)])
    assert (here.root / "a").read_text() == "c\n" * 3_000


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("2\ttwo\n3\tthree", "2\t2\n3\t3\n3.5", "one\n2\n3\n3.5\n"),
        ("2\ttwo", "2\tTWO\nmore", "one\nTWO\nmore\nthree\n"),
        ("    3\tthree", "3", "one\ntwo\n3\n"),
    ],
)
async def test_line_numbers_in_a_patch_do_no_harm(here: DeveloperHarness, before, after, new):
    (here.root / "a").write_text("one\ntwo\nthree\n")
    answer = await here.call_ok("patch_file", path="a", patches=[patch(before, after)])
    assert "the line numbers of read_file were left out" in answer
    assert (here.root / "a").read_text() == new


async def test_numbers_that_belong_to_the_text_stay(here: DeveloperHarness):
    (here.root / "a").write_text("1\tone\n2\ttwo\n")
    await here.call_ok("patch_file", path="a", patches=[patch("2\ttwo", "2\tTWO")])
    assert (here.root / "a").read_text() == "1\tone\n2\tTWO\n"


@pytest.mark.parametrize(
    ("line", "before", "words"),
    [
        (
            "result = compute_total(prices, discount=0.1, currency='EUR', rounding='half-even')",
            "compute_total(price, discount=0.2)",
            "Nearest is in line 3:\nresult = compute_total(prices, discount=0.1",
        ),
        (
            "a" * 500 + "<td class='total'>12.50</td>" + "b" * 900,
            "<td class='sum'>12.50</td>",
            "class='total'>12.50</td>",
        ),
        ("x = {'first_name': 1, 'last_name': 2}  # names of a person", "'lastname': 2}", "'last_name': 2}"),
    ],
)
async def test_the_nearest_part_of_a_line_is_shown(here: DeveloperHarness, line, before, words):
    (here.root / "a").write_text(f"import os\n\n{line}\n\nprint(os.name)\n")
    error = await here.call_error("patch_file", path="a", patches=[patch(before, "x")])
    assert words in error
    assert len(error) < 600


CODE = "def f(x):\n\tif x:\n\t\treturn 1\n    \ndef g(x):\n\tif x:\n\t\treturn 2\n"


@pytest.mark.parametrize(
    ("patches", "words"),
    [
        ([], "patches is empty"),
        ([patch("", "x")], "`before` is empty"),
        ([patch("if x:", "if x:")], "the same; nothing would change"),
        ([patch("if x:", "if y:")], "occurs 2 times, at lines 2, 6; add lines around it, or set replace_all"),
        (
            [patch("    if x:\n        return 2", "")],
            "with other whitespace it is. The file has at line 6:\n\tif x:\n\t\treturn 2",
        ),
        ([patch("def g(y):\n\tif x:", "")], "Nearest is line 5:\ndef g(x):\n\tif x:"),
        ([patch("\t\tretrun 2", "")], "line 7:\n\t\treturn 2"),
        ([patch("quite another thing", "")], "nor anything like it; read the file first"),
        ([patch("\n" * 50, "")], "is not in the file"),
    ],
)
async def test_a_patch_that_does_not_fit_is_told_why(here: DeveloperHarness, patches, words):
    (here.root / "a").write_text(CODE)
    assert words in await here.call_error("patch_file", path="a", patches=patches)
    assert (here.root / "a").read_text() == CODE


async def test_overlapping_places_are_not_one(here: DeveloperHarness):
    (here.root / "a").write_text("aaa")
    assert "occurs 2 times" in await here.call_error("patch_file", path="a", patches=[patch("aa", "b")])


async def test_newlines_of_model_and_file_need_not_agree(here: DeveloperHarness):
    (here.root / "dos").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (here.root / "unix").write_bytes(b"one\ntwo\nthree\n")
    await here.call_ok("patch_file", path="dos", patches=[patch("one\ntwo", "1\n2")])
    await here.call_ok("patch_file", path="unix", patches=[patch("one\r\ntwo", "1\r\n2")])
    assert (here.root / "dos").read_bytes() == b"1\r\n2\r\nthree\r\n"
    assert (here.root / "unix").read_bytes() == b"1\n2\nthree\n"


async def test_a_missing_file_can_not_be_patched(here: DeveloperHarness):
    (here.root / "main.py").touch()
    assert "near it are main.py" in await here.call_error("patch_file", path="man.py", patches=[patch("a", "b")])


pieces = st.lists(st.sampled_from([*"abé→😀\n\r\t \u2028\ufeff", "\r\n"]), max_size=30).map("".join)
kinds = st.sampled_from([("utf-8", b""), ("utf-8", BOM_UTF8), ("utf-16-le", BOM_UTF16_LE), ("utf-16-be", BOM_UTF16_BE)])


@given(kinds, pieces, pieces, pieces, st.text(st.sampled_from("xy\n"), max_size=10))
def test_a_patch_touches_no_other_byte(kind, head, middle, tail, after):
    encoding, mark = kind
    middle = f"§{middle}§"  # nowhere else, and no newline of two characters is cut in two
    exact = head + middle + tail
    assume(mark or not exact.startswith("\ufeff"))
    is_dos = exact.count("\r\n") > exact.count("\n") / 2
    expected = head + (after.replace("\n", "\r\n") if is_dos else after) + tail

    async def patch_and_read(folder: Path) -> bytes:
        async with open_developer(folder, "full") as here:
            (here.root / "f").write_bytes(mark + exact.encode(encoding))
            await here.call_ok("patch_file", path="f", patches=[patch(normalize_newlines(middle), after)])
            return (here.root / "f").read_bytes()

    with TemporaryDirectory() as folder:
        assert asyncio.run(patch_and_read(Path(folder))) == mark + expected.encode(encoding)


async def test_a_patch_of_a_changed_file_is_applied_where_it_is_unique(here: DeveloperHarness):
    await here.call_ok("write_file", path="a", content="one\ntwo\n")
    await here.shell("echo more >> a; sed -i s/two/three/ a")
    answer = await here.call_error("patch_file", path="a", patches=[patch("one", "1"), patch("two\n", "2\n")])
    assert "patch 2 of 2: `before` is not in the file" in answer
    assert "saved a (+1 -1 lines, it had changed since you read it)" in answer
    assert (here.root / "a").read_text() == "1\nthree\nmore\n"
    assert "you have not read it as it is now" in await here.call_error("write_file", path="a", content="four\n")


async def test_a_refused_patch_shows_its_lines_and_not_the_start_of_a_huge_file(here: DeveloperHarness):
    names = [f"{number * 2_654_435_761 % 2**32:x}" for number in range(12_000)]
    (here.root / "a.py").write_text("".join(f"def function_{name}(): return 1\n" for name in names))
    await here.call_ok("read_file", path="a.py")
    await here.shell(f"sed -i 's/{names[10_000]}.*/{names[10_000]}(): return 2/' a.py")
    answer = await here.call_error("patch_file", path="a.py", patches=[patch(f"{names[10_000]}(): return 1", "x")])
    assert f"line 10001:\ndef function_{names[10_000]}(): return 2\n" in answer
    assert len(answer) < 1_000


async def test_a_refused_patch_of_a_repetitive_file_is_not_compared_for_minutes(here: DeveloperHarness):
    (here.root / "data.csv").write_text(("0,0,1," * 50 + "\n") * 10_000)
    before = ("0,0,1," * 49 + "0,1\n") * 40
    answer = await here.call_error("patch_file", path="data.csv", patches=[patch(before, "x")])
    assert "Nearest is line 1:\n0,0,1,0," in answer


@pytest.mark.parametrize(
    ("old", "before", "new"),
    [
        ("a \nb\t\nc\n", "a\nb\nc\n", "X\n"),
        ("a\nb\nc\n", "a  \nb\t\nc", "X\n"),
        ("a\r\nb \r\nc\r\n", "a\nb\n", "X\nc\r\n"),
        ("one = 1  \ntwo\n", "= 1\ntwo", "one X\n"),
        ("x + x\n", "x", "occurs 2 times, at line 1; add"),
        ("a \nb\na \nb\n", "a\nb\n", "occurs 2 times, at lines 1, 3"),
        ("a \nb\n", "a\n  b\n", "with other whitespace it is"),
    ],
)
async def test_whitespace_at_line_ends_may_differ(here: DeveloperHarness, old, before, new):
    (here.root / "f").write_bytes(old.encode())
    after = "X\n" if before.endswith("\n") else "X"
    if "occurs" in new or "other" in new:
        assert new in await here.call_error("patch_file", path="f", patches=[patch(before, after)])
        assert (here.root / "f").read_bytes() == old.encode()
    else:
        answer = await here.call_ok("patch_file", path="f", patches=[patch(before, after)])
        assert "whitespace at line ends differed" in answer
        assert (here.root / "f").read_bytes().replace(b"\r", b"") == new.replace("\r", "").encode()


async def test_the_places_of_a_repetitive_text_are_counted_up_to_a_limit(here: DeveloperHarness):
    (here.root / "a").write_text("a" * 6_000)
    error = await here.call_error("patch_file", path="a", patches=[patch("a" * 3_000, "b")])
    assert "occurs 1000 times or more, at line 1, ...; " in error
