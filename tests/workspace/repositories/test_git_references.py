"""Programs of the workspace that git settings name."""

from pathlib import Path

import pytest

from goose_like.workspace.repositories.git_references import find_git_programs, find_references

SETTINGS = {
    "filter": '[filter "f"]\n\tclean = tools/run.sh %f\n',
    "filter by an interpreter": '[filter "f"]\n\tsmudge = python3 tools/data\n',
    "process": '[filter "f"]\n\tprocess = "tools/run.sh"\n',
    "textconv": '[diff "d"]\n\ttextconv = sh -c \\"tools/data \\"$1\\"\\" -\n',
    "diff command": '[diff "d"]\n\tcommand = ./tools/run.sh\n',
    "external": "[diff]\n\texternal = tools/data\n",
    "merge driver": '[merge "m"]\n\tdriver = tools/run.sh %O %A %B\n',
    "gpg": "[gpg]\n\tprogram = tools/data\n",
    "ssh signing": '[gpg "ssh"]\n\tprogram = tools/data\n',
    "alias": "[alias]\n\tx = !tools/data --all\n",
    "alias with a function": '[alias]\n\tx = "!f() { tools/data \\"$@\\"; }; f"\n',
    "alias after another program": "[alias]\n\tx = !cd . && tools/data\n",
    "on the next line": '[filter "f"]\n\tclean = \\\ntools/data\n',
    "behind the heading": "[core] editor = tools/data\n",
    "askpass": "[core]\n\taskPass = tools/run.sh\n",
    "credential helper": "[credential]\n\thelper = !tools/data\n",
    "pager": "[pager]\n\tlog = tools/data\n",
    "upload pack": '[remote "r"]\n\tuploadpack = tools/data\n',
}
OTHERS = (
    '[remote "origin"]\n\turl = tools/data\n',
    "[core]\n\texcludesFile = tools/data\n",
    "[commit]\n\ttemplate = tools/data\n",
    "[blame]\n\tignoreRevsFile = tools/data\n",
    "[user]\n\tname = tools/data\n",
    "[alias]\n\tshow-it = !cat tools/data\n",
    "[alias]\n\tst = status\n",
)


@pytest.fixture
def tools(root: Path) -> Path:
    (root / "tools").mkdir()
    (root / "tools/data").touch()
    (root / "tools/run.sh").touch(0o755)
    return root / "tools"


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_programs_are_found(root: Path, tools: Path, text: str) -> None:
    (program,) = find_git_programs(text, [root], [root])
    assert program.parent == tools


@pytest.mark.parametrize("text", OTHERS)
def test_other_values_name_no_program(root: Path, tools: Path, text: str) -> None:
    assert find_git_programs(text, [root], [root]) == set()


def test_programs_by_other_ways(root: Path, tools: Path, tmp_path: Path) -> None:
    absolute = f'[filter "f"]\n\tclean = {tools}/run.sh\n'
    assert find_git_programs(absolute, [tmp_path], [root]) == {tools / "run.sh"}
    absent = '[filter "f"]\n\tclean = tools/later.sh\n'
    assert find_git_programs(absent, [root], [root]) == {tools / "later.sh"}
    template = "[init]\n\ttemplateDir = tools\n"
    assert find_git_programs(template, [root], [root]) == {tools}
    assert find_git_programs(absolute, [root], [tmp_path / "elsewhere"]) == set()
    (root / "more").write_text(absolute)
    (root / "config").write_text("[include]\n\tpath = more\n")
    found = find_references([root / "config"], [], [root])
    assert found.programs == {tools / "run.sh"}
    assert found.paths == {root / "more"}


@pytest.mark.parametrize(
    "text", ["[a" + " " * 300_000, '[a "' + "x" * 300_000, "x" * 300_000, "[a]\nb = " + "s" * 300_000]
)
def test_no_text_takes_quadratic_time(root: Path, text: str) -> None:
    assert find_git_programs(text, [root], [root]) == set()


def test_a_name_that_no_file_can_have_is_left_out(root: Path, tools: Path) -> None:
    name = "x" * 256
    assert find_git_programs(f"[alias]\n\ta = !{name}; tools/{name}\n", [root], [root]) == set()
    (root / "config").write_text(f"[core]\n\thooksPath = {name}\n[include]\n\tpath = {'x/' * 3_000}\n")
    assert find_references([root / "config"], [], [root]).paths == set()
