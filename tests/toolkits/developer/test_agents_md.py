"""The system prompt: short, correct for the selected tools, and with hints from AGENTS.md."""

import json
import os
from pathlib import Path

import pytest
from goose_like_toolkits.developer.agents_md import load_hints

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.events import SessionStarted
from goose_like.core.message import Message
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Request
from goose_like.providers.openai_wire import OpenAIEncoder
from goose_like.workspace.workspace import Workspace
from tests.toolkits.developer.developer_harness import open_developer, wait_until


@pytest.fixture
def script(tmp_path) -> ModelChoice:
    file = tmp_path / "script.yaml"
    file.write_text("- text: done\n")
    return ModelChoice(model=f"scripted:{file}")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch) -> Path:
    """A project folder with a path of usual length."""
    folder = tmp_path / "home-of-a-person" / "src" / "a-project-of-theirs"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def first_body(exchange: Exchange) -> bytes:
    specs = [tool.spec for tool in exchange.tools.values()]
    said = [Message.user("Create hello.py that prints the first 10 primes, then run it.")]
    return OpenAIEncoder().encode_request(Request("gpt-5-mini", exchange.system, said, specs))


@pytest.mark.parametrize(("name", "limit_tokens", "limit_bytes"), [("default", 1250, 5200), ("local", 900, 4000)])
async def test_prompt_and_tools_keep_to_their_budget(script, name, limit_tokens, limit_bytes):
    profile = load_profile(name)[0].model_copy(update={"processor": script, "accelerator": None})
    async with build_exchange(profile, Recorder()) as exchange:
        body = json.loads(first_body(exchange))
        tools = json.dumps(body["tools"], ensure_ascii=False, separators=(",", ":"))
        assert len((exchange.system + tools).encode()) / 4 <= limit_tokens
        assert len(first_body(exchange)) <= limit_bytes
        assert len(body["tools"]) <= 12


@pytest.mark.parametrize("picked", [["shell"], ["shell", "write_file", "patch_file"], ["update_plan"], ["read_file"]])
async def test_the_prompt_speaks_only_of_tools_that_are_there(tmp_path, picked):
    async with open_developer(tmp_path, tools=picked) as made:
        text = made.toolkit.prompt()
        for name in ("shell", "process", "read_file", "write_file", "patch_file", "update_plan"):
            assert f"`{name}`" not in text or name in picked
        assert "plan" not in text or "update_plan" in picked
        assert list(made.tools) == picked


async def test_the_whole_guidance_is_there(tmp_path):
    async with open_developer(tmp_path) as made:
        text = made.toolkit.prompt()
        for word in ("`update_plan`", "rg", "`patch_file`", "run", "failed", "short"):
            assert word in text


async def test_without_read_file_a_refusal_still_shows_what_is_there(tmp_path):
    async with open_developer(tmp_path, tools=["shell", "write_file"]) as made:
        (made.root / "a").write_text("old\n")
        assert (await made.call_error("write_file", path="a", content="new\n")).endswith("\n1\told")
        await made.call_ok("write_file", path="a", content="new\n")


async def test_hints_are_told_once_after_the_session_has_started(project, script):
    (project / "AGENTS.md").write_text("Use tabs.")
    recorder = Recorder()
    async with build_exchange(Profile(processor=script), recorder) as exchange:
        assert f"Hints from {project}/AGENTS.md:\nUse tabs." in exchange.system
        await exchange.reply("hello")
    assert isinstance(recorder.events[0], SessionStarted)
    report = [event for event in recorder.events if "hints from" in getattr(event, "text", "")]
    assert [event.text for event in report] == [f"hints from {project}/AGENTS.md"]


async def test_hints_are_not_told_of_a_session_that_is_over(tmp_path):
    async with open_developer(tmp_path) as made:
        (made.root / ".goosehints").write_text("Use tabs.")
        made.toolkit.prompt()
    assert made.logged == []


async def test_hints_of_a_session_that_goes_on_are_told(tmp_path):
    async with open_developer(tmp_path) as made:
        (made.root / ".goosehints").write_text("Use tabs.")
        made.toolkit.prompt()
        await wait_until(lambda: made.logged)
        assert made.logged == [f"hints from {made.root}/.goosehints"]


def test_hints_come_from_the_person_and_from_root_to_here(home, tmp_path):
    root, below = tmp_path / "root", tmp_path / "root/a/b"
    below.mkdir(parents=True)
    (root / ".git").mkdir()
    (home / "config").mkdir(parents=True)
    files = [
        home / "config/AGENTS.md",
        root / "AGENTS.md",
        root / ".goosehints",
        root / "a/AGENTS.md",
        below / ".goosehints",
    ]
    for file in files:
        file.write_text(f"in {file.name}\n")
    (tmp_path / "AGENTS.md").write_text("above the repository")
    assert [(hint.file, hint.text) for hint in load_hints(below)] == [(file, f"in {file.name}") for file in files]
    (root / ".git").rmdir()
    assert [hint.file for hint in load_hints(below)] == [files[0], files[-1]]


def test_a_link_out_of_the_repository_is_no_hint(home, tmp_path):
    (tmp_path / "secret").write_text("open sesame")
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository/AGENTS.md").symlink_to(tmp_path / "secret")
    (tmp_path / "repository/other.md").write_text("fine")
    (tmp_path / "repository/.goosehints").symlink_to("other.md")
    assert [hint.text for hint in load_hints(tmp_path / "repository")] == ["fine"]


def test_an_ignored_file_is_no_hint(tmp_path):
    (tmp_path / ".gooseignore").write_text(".env\n.goosehints\n")
    for name in (".env", ".goosehints"):
        (tmp_path / name).write_text("open sesame")
    (tmp_path / "AGENTS.md").symlink_to(".env")
    workspace = Workspace(tmp_path, mode="full", approval="auto", notifier=Recorder())
    assert load_hints(tmp_path, workspace.is_ignored) == []


def test_long_hints_are_cut_and_say_so(tmp_path):
    folder = tmp_path
    (tmp_path / ".git").mkdir()
    for name in "abcd":
        folder /= name
        folder.mkdir()
        (folder / "AGENTS.md").write_text("é" * 10_000)
    found = load_hints(folder)
    assert [len(hint.text.encode()) // 1000 for hint in found] == [0, 8, 12, 12]  # the nearest file has the first claim
    assert all(hint.is_cut and hint.text.endswith(f"[cut; the rest is in {hint.file}]") for hint in found)


def test_imports_are_cut_before_the_files_that_import_them(tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / ".git").mkdir()
    sizes = {"AGENTS.md": 9, "a.md": 12, "deep.md": 5, "below/AGENTS.md": 2, "below/b.md": 5, "below/c.md": 12}
    imports = {"AGENTS.md": "@a.md ", "a.md": "@deep.md ", "below/AGENTS.md": "@b.md @c.md "}
    for name, size in sizes.items():
        (tmp_path / name).write_text(imports.get(name, "x").ljust(size * 1000, "."))
    found = load_hints(below)
    assert [str(hint.file.relative_to(tmp_path)) for hint in found] == [*sizes]
    assert [len(hint.text.partition("\n[cut; ")[0]) // 1000 for hint in found] == [9, 4, 0, 2, 5, 12]
    assert [hint.file.name for hint in found if hint.is_cut] == ["a.md", "deep.md"]


async def test_cut_hints_are_reported_with_the_limits(tmp_path):
    async with open_developer(tmp_path) as made:
        (made.root / "AGENTS.md").write_text("x" * 20_000)
        made.toolkit.prompt()
        await wait_until(lambda: made.logged)
        assert f"{made.root}/AGENTS.md (cut)" in made.logged[0]
        assert "a file is cut at 12,000 bytes, all together at 32,000" in made.logged[0]


def test_a_folder_gives_its_first_instruction_file(tmp_path):
    below = tmp_path / "a/b/c"
    below.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for folder, *names in (
        (tmp_path, "AGENTS.override.md", "AGENTS.md", "CLAUDE.md"),
        (tmp_path / "a", "AGENTS.md", "CLAUDE.md", "GEMINI.md"),
        (tmp_path / "a/b", "CLAUDE.md", "GEMINI.md", ".goosehints"),
        (below, "GEMINI.md"),
    ):
        for name in names:
            (folder / name).write_text(name)
    names = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".goosehints", "GEMINI.md"]
    assert [hint.text for hint in load_hints(below)] == names


def test_imports_follow_their_file_once(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "AGENTS.md").write_text(
        "See @docs/style.md, @docs/style.md and @nobody.\n`@docs/code.md`\n```\n@docs/code.md\n```\n"
    )
    (tmp_path / "docs/style.md").write_text("Use tabs. @more.md")
    (tmp_path / "docs/more.md").write_text("@../AGENTS.md and @style.md: a circle. me@docs/code.md")
    (tmp_path / "docs/code.md").write_text("not imported")
    found = load_hints(tmp_path)
    assert [hint.file.name for hint in found] == ["AGENTS.md", "style.md", "more.md"]
    assert [hint.problem for hint in found] == ["", "", ""]


def test_imports_stay_in_the_workspace_and_have_a_depth(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("open sesame")
    (root / "link.md").symlink_to("../secret")
    (root / ".gooseignore").write_text("hidden.md\n")
    (root / "hidden.md").write_text("open sesame")
    (root / "0.md").write_text("@1.md")
    for number in range(1, 9):
        (root / f"{number}.md").write_text(f"number {number}: @{number + 1}.md")
    (root / "AGENTS.md").write_text(f"@../secret @{tmp_path}/secret @link.md @hidden.md @0.md")
    workspace = Workspace(root, mode="workspace", approval="auto", notifier=Recorder())
    found = load_hints(root, workspace.is_ignored, workspace.open_file)
    assert [hint.file.name for hint in found] == ["AGENTS.md", "0.md", "1.md", "2.md", "3.md", "4.md"]
    assert not any("sesame" in hint.text for hint in found)
    assert found[0].problem.count("is not below") == 3
    assert "hidden.md is hidden from you" in found[0].problem
    assert "@5.md is not imported: imports go at most 5 files deep" in found[0].problem


def test_imports_from_the_home_folder_are_refused_like_others_outside(tmp_path, monkeypatch):
    home, root = tmp_path / "home", tmp_path / "home/src/root"
    (home / ".claude").mkdir(parents=True)
    root.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / ".claude/x.md").write_text("open sesame")
    (root / "in.md").write_text("within")
    (root / "~").mkdir()
    (root / "~/odd.md").write_text("in a folder with that name")
    names = "@~/.claude/x.md @~/src/root/in.md @~/missing.md @~no-such-user/x.md @~ @./~/odd.md @~/odd.md"
    (root / "AGENTS.md").write_text(names)
    found = load_hints(root)
    assert [hint.text for hint in found[1:]] == ["within", "in a folder with that name"]
    outside, *missing = found[0].problem.splitlines()
    assert outside == f"{root}/AGENTS.md: @~/.claude/x.md is not imported: it is not below {root}"
    assert {line.partition(": ")[2] for line in missing} == {
        f"@{path} is not imported: there is no such file" for path in ("~/missing.md", "~no-such-user/x.md", "~/odd.md")
    }


@pytest.mark.parametrize("data", [b"", b" \n", b"\0\1\2"])
def test_what_is_no_text_is_no_hint(tmp_path, data):
    (tmp_path / "AGENTS.md").write_bytes(data)
    assert load_hints(tmp_path) == []


def test_a_folder_or_pipe_of_that_name_is_no_hint(tmp_path):
    (tmp_path / "AGENTS.md").mkdir()
    os.mkfifo(tmp_path / ".goosehints")
    assert load_hints(tmp_path) == []


def load_template(root, text):
    (root / ".goosehints").write_text(text)
    workspace = Workspace(root, mode="workspace", approval="auto", notifier=Recorder())
    return load_hints(root, workspace.is_ignored, workspace.open_file)[-1]


def test_hints_are_templates_that_include_files(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/CONTRIBUTING.md").write_text("Run make.\nuses: ${{ secrets.KEY }}\n")
    (tmp_path / "AGENTS.md").write_text("{{ raw }}")
    hint = load_template(
        tmp_path, "{% set way = 'Be brief.' %}{{ way }}\n{% include 'docs/CONTRIBUTING.md' %}{# note #}"
    )
    assert (hint.text, hint.problem) == ("Be brief.\nRun make.\nuses: ${{ secrets.KEY }}", "")
    assert load_hints(tmp_path)[0].text == "{{ raw }}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("one\n{% include %}", "line 2: "),
        ("{% include 'missing' %}", "there is no 'missing' to include"),
        ("{% include '../secret' %}", "'../secret' is not below"),
        ("{% include 'link' %}", "'link' is not below"),
        ("{% include 'pipe' %}", "'pipe' can't be included: "),
        ("{% include 'ignored' %}", "ignored is hidden from you"),
        ("{% include '.goosehints' %}", "more than 20 files are included"),
        ("{% for a in range(99999) %}{% endfor %}", "line 1: hints take only `include`, `set` and names"),
        ("\n{{ 'x' * 10**9 }}", "line 2: hints take only"),
        ("{{ ''.__class__ }}", "line 1: hints take only"),
        ("{% if x %}" * 790, "it nests too deep"),
    ],
)
def test_a_broken_template_is_read_as_it_is(tmp_path, text, problem):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("open sesame")
    (root / "link").symlink_to("../secret")
    (root / "ignored").write_text("open sesame")
    (root / ".gooseignore").write_text("ignored\n")
    os.mkfifo(root / "pipe")
    hint = load_template(root, text)
    assert problem in hint.problem
    assert hint.text in text


def test_short_templates_cannot_become_long(tmp_path):
    (tmp_path / "big").write_text("x" * 1_000_000)
    hint = load_template(tmp_path, "{% include 'big' %}" * 20)
    assert hint.is_cut
    assert len(hint.text) < 13_000


async def test_a_broken_template_is_reported(tmp_path):
    async with open_developer(tmp_path) as made:
        (made.root / ".goosehints").write_text("{% include %}")
        made.toolkit.prompt()
        await wait_until(lambda: made.logged)
        assert ".goosehints: line 1: " in made.logged[0]


def test_the_hints_of_goose_09_count_unless_there_are_own(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config/goose").mkdir(parents=True)
    (tmp_path / ".config/goose/.goosehints").write_text("old")
    assert [hint.text for hint in load_hints(tmp_path / ".config")] == ["old"]
    (home / "config").mkdir(parents=True)
    (home / "config/.goosehints").write_text("new")
    assert [hint.text for hint in load_hints(tmp_path / ".config")] == ["new"]
