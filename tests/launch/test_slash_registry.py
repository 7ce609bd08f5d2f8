"""Slash commands as Markdown files: names, texts, and the sentences about files with errors."""

import asyncio
import os
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.slash_command import SlashCommand
from goose_like.agent.slash_context import SlashContext
from goose_like.agent.toolkit import Toolkit
from goose_like.agent.turn_request import TurnRequest
from goose_like.config import entry_points
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.trust import ProjectConfig
from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.core.message import Text
from goose_like.core.notifier import Recorder
from goose_like.core.tool import tool
from goose_like.launch import command_files, slash_registry
from goose_like.launch.command_files import fill_arguments, parse_command
from goose_like.launch.slash_registry import collect_commands, split_command_line
from tests.workspace.workspace_harness import ONCE, find_place, needs_sandbox

OURS = {"help": SlashCommand("help", "Show the keys.", lambda desk, words: None)}


def list_files(commands: dict[str, SlashCommand]) -> list[str]:
    return [name for name, command in commands.items() if command.source]


@pytest.fixture
def own(home: Path):
    """Writes the person's own command; gives the file."""

    def own(name: str, text: str | bytes) -> Path:
        file = home / "config/commands" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return own


def brought(root: Path, **files: str) -> ProjectConfig:
    return ProjectConfig(root, {f"commands/{name}.md": text for name, text in files.items()})


@pytest.mark.parametrize(
    ("body", "words", "said"),
    [
        ("fix $1 in $2", "one 'two three'", "fix one in two three"),
        ('fix $1 and "$2"', '"a b" c d', 'fix a b and "c"'),
        ("all: $ARGUMENTS.", "a 'b c'  d", "all: a 'b c'  d."),
        ("$1-${2:-none}-${3:-}-$4", "a", "a-none--"),
        ("${1:-x y}", "", "x y"),
        ("${1:-x}", "''", "x"),
        ("$1", "don't", "don't"),
        ("$1", "$2 $ARGUMENTS", "$2"),
        ("$10 and $0 and $ARGUMENTSX", "a", "$10 and $0 and $ARGUMENTSX\n\na"),
        ("nothing to fill", "a b", "nothing to fill\n\na b"),
        ("nothing to fill", "", "nothing to fill"),
    ],
)
def test_arguments(body, words, said):
    assert fill_arguments(body, words) == said


def test_names_words_and_where_they_come_from(own, tmp_path):
    fix = own("fix.md", "---\ndescription: Mend it.\nusage: FILE\n---\n\nMend $1.\n")
    own("git/log.md", "# Say what happened\r\n\r\nof late")
    commands, report = collect_commands(OURS, brought(tmp_path, look="Look at $ARGUMENTS"))
    assert report == []
    assert list_files(commands) == ["fix", "git:log", "look"]
    found = commands["fix"]
    assert (found.summary, found.usage, found.source) == ("Mend it.", "FILE", str(fix))
    assert found.run(None, "a.py") == "Mend a.py."
    assert (commands["git:log"].summary, commands["git:log"].usage) == ("Say what happened", "")
    assert commands["git:log"].run(None, "") == "# Say what happened\n\nof late"
    assert commands["look"].usage == "[ARGUMENTS]"
    assert commands["look"].source == str(tmp_path / ".goose-like/commands/look.md")


def test_without_trust_there_is_empty_of_a_project(own):
    own("fix.md", "Mend it.")
    assert list_files(collect_commands(OURS, None)[0]) == ["fix"]


def test_nobody_takes_a_name_that_is_taken(own, tmp_path):
    mine = own("fix.md", "Mend it.")
    other = own("help.md", "No help.")
    theirs = brought(tmp_path, fix="Break it.", help="No help.")
    commands, report = collect_commands(OURS, theirs)
    assert commands["help"] is OURS["help"]
    assert commands["fix"].source == str(mine)
    by = "a command of a package or toolkit"
    assert report == [
        f"skipped: {other}: the name /help is taken by {by}; rename the file",
        f"skipped: {theirs.get_path('commands/fix.md')}: the name /fix is taken by {mine}; rename the file",
        f"skipped: {theirs.get_path('commands/help.md')}: the name /help is taken by {by}; rename the file",
    ]


@pytest.mark.parametrize(
    ("name", "text", "report"),
    [
        ("a b.md", "x", "use only letters, digits, '-' and '_' in the file name"),
        ("bad.md", b"one\ntwo \xff", ", line 2: not UTF-8 text; save the file as UTF-8"),
        ("bad.md", "---\nusage:\n  - y\n---\nx", ", line 2: usage: expected text, not ['y']"),
        ("bad.md", "---\nother: {\n---\nx", "this is not valid YAML"),
        ("bad.md", "---\nusage: y\n", ", line 1: the front matter has no end; add a line --- after it"),
        ("bad.md", "---\nusage: y\n---\n\n", " is empty; write the message for the model"),
        ("bad.md", "", " is empty"),
    ],
)
def test_what_can_not_be_used_is_told_and_the_others_work(own, name, text, report):
    file = own(name, text)
    own("fine.md", "x")
    commands, sentences = collect_commands({}, None)
    assert list_files(commands) == ["fine"]
    (sentence,) = sentences
    assert sentence.startswith(f"skipped: {file}")
    assert report in sentence


def test_front_matter_of_other_agents(own, tmp_path):
    front = "argument-hint: [file] [who]\ndescription: Explain: it's 'fine' 😀\nmodel: haiku\nagent: build\nusag: x\n"
    file = own("explain.md", f"---\n{front}---\nExplain $1")
    commands, report = collect_commands({}, None)
    command = commands["explain"]
    assert (command.usage, command.summary) == ("[file] [who]", "Explain: it's 'fine' 😀")
    assert command.in_run
    assert report == [
        f"{file}: the key 'agent' has no effect",
        f"{file}: the key 'usag' has no effect; did you mean 'usage'?",
    ]


def test_commands_for_other_agents(own, tmp_path):
    own("fix.md", "Mend it.")
    files = {".claude/commands/fix.md": "Mend it.", ".agents/commands/web/new.md": "A", "commands/old.md": "B"}
    commands, report = collect_commands({}, ProjectConfig(tmp_path, files))
    assert report == []  # a copy is no second command
    assert list_files(commands) == ["fix", "old", "web:new"]
    assert commands["web:new"].source == str(tmp_path / ".agents/commands/web/new.md")


def test_a_file_replaces_some_commands_of_ours(own):
    assert collect_commands({}, None)[0]["init"].source == ""
    own("init.md", "Mine.")
    commands, report = collect_commands({}, None)
    assert (commands["init"].run(None, ""), report) == ("Mine.", [])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/fix a b", ("fix", "a b")),
        ("/git:log  a b", ("git:log", "a b")),
        ("/git-log a", ("git:log", "a")),
        ("/fix:src/app.py", ("fix", "src/app.py")),
        ("/fix:log", ("fix", "log")),
        ("/none", ("none", "")),
        ("/etc/hosts", None),
        (" /fix", None),
    ],
)
def test_names_in_a_line(own, line, expected):
    own("fix.md", "x")
    own("git/log.md", "x")
    assert split_command_line(line, collect_commands({}, None)[0]) == expected


async def ask_nobody(label: str) -> str:
    return ""


@needs_sandbox
async def test_commands_in_a_text_run_in_the_sandbox(own, tmp_path, monkeypatch):
    (root := tmp_path / "project").mkdir()
    (root / "a.txt").write_text("content of a")
    monkeypatch.chdir(root)
    (tmp_path / "script").write_text("- text: done\n")
    own(
        "look.md",
        "---\nallowed-tools: Read, Bash(echo:*), Edit(src/**)\nmodel: opus\n---\n"
        'Look at @$1: !`echo "$2 @a.txt" and $ARGUMENTS` and !`exit 3`',
    )
    shown: list[object] = []
    words = "a.txt '$(touch evil); `touch evil`'"
    profile = Profile(processor=ModelChoice(model=f"scripted:{tmp_path}/script"), approval="ask")
    async with build_exchange(profile, recorder := Recorder(ONCE)) as exchange:
        context = SlashContext(exchange, profile, {}, shown.append, ask_nobody, print, print, ())
        request = await collect_commands({}, None)[0]["look"].run(context, words)
    assert isinstance(request, TurnRequest)
    assert (request.model, request.allow) == ("opus", ("echo", f"path:{root}/src/**"))
    assert request.text == (
        "Look at @a.txt: $(touch evil); `touch evil` @a.txt and a.txt '$(touch evil); `touch evil`' and \n[exit code 3]"
    )
    assert [part.text for part in request.message.parts[1:]] == ["\n[a.txt]\ncontent of a"]
    assert list(root.iterdir()) == [root / "a.txt"]
    assert [question.text for question in recorder.questions] == ["run: exit 3"]
    assert shown[0] == f'! echo "$2 @a.txt" and $ARGUMENTS  # {words}'


@asynccontextmanager
async def open_context(tmp_path: Path, monkeypatch, answer: Answer = ONCE, **profile: object):
    """Open a session in the folder `project`; give the context of its commands, and what they show."""
    (root := tmp_path / "project").mkdir(exist_ok=True)
    monkeypatch.chdir(root)
    (tmp_path / "script").write_text("- text: done\n")
    chosen = Profile(processor=ModelChoice(model=f"scripted:{tmp_path}/script"), **profile)
    shown: list[object] = []
    async with build_exchange(chosen, Recorder(answer)) as exchange:
        yield SlashContext(exchange, chosen, {}, shown.append, ask_nobody, print, print, ()), shown


@pytest.mark.parametrize(
    ("tools", "rules"),
    [
        ("Bash, Bash(*), Bash(:*)", ["*", "*", "*"]),
        ("bash(git log:*) Bash(npm run *) run_command(ls)", ["git log", "npm run", "ls"]),
        (
            "Edit, Write(src/**), MultiEdit(./a b), NotebookEdit",
            ["path:{}/*", "path:{}/src/**", "path:{}/a b", "path:{}/*"],
        ),
        ("Edit(src/(a)/*)", ["path:{}/src/(a)/*"]),
        ("Read, Grep(x), TodoWrite, WebSearch, mcp__x, Task", []),
        ('["Bash(git log:*)", "Edit(a)"]', ["git log", "path:{}/a"]),
    ],
)
async def test_allowed_tools_become_rules(own, tmp_path, monkeypatch, tools, rules):
    own("do.md", f"---\nallowed-tools: {tools}\n---\nDo it.")
    async with open_context(tmp_path, monkeypatch) as (context, shown):
        request = await collect_commands({}, None)[0]["do"].run(context, "")
    assert (list(request.allow), shown) == ([rule.format(tmp_path / "project") for rule in rules], [])


class Remote(Toolkit):
    """Tools of another package that other agents know under their own names."""

    @tool(aliases=("Bash",), rule_topic="command")
    def run_on_server(self, line: str) -> str:
        """Run a line."""
        return line

    @tool(aliases=("Edit",), rule_topic="path")
    def change_on_server(self, path: str) -> str:
        """Change a file."""
        return path

    @tool(aliases=("WebFetch",))
    def fetch_on_server(self, url: str) -> str:
        """Fetch a page."""
        return url


async def test_a_tool_of_another_package_says_what_rules_about_it_name(own, tmp_path, monkeypatch):
    own("do.md", "---\nallowed-tools: Bash(git log:*), Edit(src/*), WebFetch(domain:x)\n---\nDo it.")
    monkeypatch.setitem(entry_points.BUILTIN_ENTRY_POINTS["goose_like.toolkit"], "remote", f"{__name__}:Remote")
    async with open_context(tmp_path, monkeypatch, toolkits=("remote",)) as (context, _):
        request = await collect_commands({}, None)[0]["do"].run(context, "")
    assert request.allow == ("git log", f"path:{tmp_path}/project/src/*")


@pytest.mark.parametrize(
    "tool",
    [
        *(
            "Bash(echo $(date):*)",
            'Bash(python -c "print(1)")',
            "Bash(git log",
            'Bash(grep -E "(a|b)" src:*)',
            "Bash()",
        ),
        *("Bash(tool:write_file)", "Bash(path:/**)", "Bash(domain:x)", "Bash(a)(b)", "Bash(npm:test)", "Bash(a > b)"),
        *("Edit(/etc/*)", "Edit(~/x)", "Edit(../x)", "Edit(src/(a/*)", "Write(a)b", "Edit()"),
    ],
)
async def test_a_pattern_that_nobody_can_read_allows_nothing_and_is_reported(own, tmp_path, monkeypatch, tool):
    own("do.md", f"---\nallowed-tools: Bash(git diff:*), {tool}\n---\nDo it.")
    async with open_context(tmp_path, monkeypatch) as (context, shown):
        request = await collect_commands({}, None)[0]["do"].run(context, "")
    assert request.allow == ("git diff",)
    assert [str(note).startswith(f"allowed-tools: {tool} allows nothing; ") for note in shown] == [True]


@pytest.fixture
def person(monkeypatch) -> Iterator[Path]:
    """A home outside /tmp, which a session does not see, with a private file and a private image."""
    with TemporaryDirectory(dir=find_place()) as folder:
        person = Path(folder).resolve()
        monkeypatch.setenv("HOME", str(person))
        (person / "Docs").mkdir()
        (person / "Docs/a.txt").write_text("private")
        (person / "Docs/a.png").write_bytes(b"\x89PNG\r\n\x1a\n1")
        yield person


@pytest.mark.parametrize("start", ["", "---\nmodel: haiku\n---\n", "---\nallowed-tools: Bash\n---\n"])
@pytest.mark.parametrize("path", ["~/Docs/a.txt", "{}/Docs/a.txt", "../Docs/a.txt", "link", "~/Docs"])
async def test_the_text_of_a_project_attaches_only_files_of_the_workspace(person, monkeypatch, start, path):
    async with open_context(person, monkeypatch) as (context, shown):
        workspace = context.exchange.workspace
        (workspace.root / "link").symlink_to(person / "Docs/a.txt")
        (workspace.root / "in.txt").write_text("ours")
        path, image, file = path.format(person), f"{person}/Docs/a.png", f"{person}/Docs/a.txt"
        text = f"{start}See @{path} and @in.txt and `{image}`, @$1, @/none, @types/x"
        run = collect_commands({}, brought(workspace.root, look=text))[0]["look"].run
        message = (await run(context, "in.txt")).message
        assert [part.text for part in message.parts[1:]] == ["\n[in.txt]\nours"]
        assert [str(note).partition(": ")[0] for note in shown] == [
            f"the model does not see {name}" for name in (image, path)
        ]
        with pytest.raises(DeniedError, match="in the home folder"):
            workspace.read_bytes(file)
        message = (await run(context, f"in.txt @{file}")).message
        assert f"\n[{file}]\nprivate" in [part.text for part in message.parts[1:]]
        assert workspace.read_bytes(file) == b"private"


async def test_the_persons_own_text_attaches_any_file(own, person, monkeypatch):
    own("look.md", "---\nmodel: haiku\n---\nSee @~/Docs/a.txt")
    async with open_context(person, monkeypatch) as (context, shown):
        message = (await collect_commands({}, None)[0]["look"].run(context, "")).message
    assert ([part.text for part in message.parts[1:]], shown) == (["\n[~/Docs/a.txt]\nprivate"], [])


@needs_sandbox
@pytest.mark.parametrize("start", ["---\nmodel: haiku\n---\n", "!`true` "])
@pytest.mark.parametrize("is_project", [True, False])
async def test_words_of_another_program_attach_only_files_of_the_workspace(own, person, monkeypatch, start, is_project):
    text = f"{start}See $ARGUMENTS"
    own("look.md", text)
    async with open_context(person, monkeypatch) as (context, _):
        workspace = context.exchange.workspace
        (workspace.root / "in.txt").write_text("ours")
        commands = collect_commands({}, None)[0]
        if is_project:
            commands["look"], _ = parse_command("look", workspace.root / "look.md", text, is_project=True)
        words = "@in.txt @~/Docs/a.txt `~/Docs/a.png`"
        context.is_typed = False
        message = (await commands["look"].run(context, words)).message
        assert [part.text for part in message.parts[1:]] == ["\n[in.txt]\nours"]
        with pytest.raises(DeniedError, match="in the home folder"):
            workspace.read_bytes("~/Docs/a.txt")
        context.is_typed = True
        message = (await commands["look"].run(context, words)).message
        assert "\n[~/Docs/a.txt]\nprivate" in [part.text for part in message.parts[1:] if isinstance(part, Text)]
        assert len(message.images) == 1


@needs_sandbox
async def test_endless_output_of_a_command_in_a_text_is_stopped(own, tmp_path, monkeypatch):
    own("flood.md", "!`yes` and !`echo 1`")
    monkeypatch.setattr(command_files, "MAX_OUTPUT_BYTES", 1_000_000)
    async with open_context(tmp_path, monkeypatch) as (context, shown):
        request = await collect_commands({}, None)[0]["flood"].run(context, "")
    assert shown[:2] == ["! yes", "[stopped after 1,000,000 bytes]"]
    assert "[stopped after 1,000,000 bytes] and 1" in request.text


@needs_sandbox
async def test_a_question_about_a_host_takes_no_time_of_a_command_in_a_text(own, tmp_path, monkeypatch):
    own("wait.md", "!`sleep 2; echo done`")
    monkeypatch.setattr(command_files, "_TIMEOUT_S", 1)
    async with open_context(tmp_path, monkeypatch) as (context, _):
        hosts = context.exchange.workspace.hosts
        running = asyncio.create_task(collect_commands({}, None)[0]["wait"].run(context, ""))
        while not hosts.limits and not running.done():  # noqa: ASYNC110
            await asyncio.sleep(0)
        with hosts.pause_limits():
            await asyncio.sleep(2.5)
        assert "done" in (await running).text
        assert not hosts.limits


def test_what_is_no_file_is_not_waited_for(own):
    os.mkfifo(own("fine.md", "x").with_name("pipe.md"))
    assert list_files(collect_commands({}, None)[0]) == ["fine"]


def test_a_command_that_cannot_be_imported_is_reported_and_the_others_work(monkeypatch):
    broken = {"broken": "no_such_package:command", "leave": "goose_like.cli.chat.slash_commands:leave"}
    monkeypatch.setitem(entry_points.BUILTIN_ENTRY_POINTS, "goose_like.command", broken)
    monkeypatch.setattr(entry_points, "_scan_packages", lambda path: dict.fromkeys(entry_points.GROUPS, ()))
    commands, (report,) = collect_commands({}, None)
    assert list(commands) == ["leave", "init"]
    assert report.startswith("skipped: the command 'broken' of the package 'goose-like' can't be imported: ")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("new", "here it is /clear"),
        ("quit", "here it is /exit"),
        ("approvals", "here it is /permissions and /mode"),
        ("hlep", "did you mean 'help'?"),
    ],
)
def test_commands_of_other_agents_are_named(home, name, hint):
    commands, _ = slash_registry.collect_commands({}, None)
    assert slash_registry.describe_unknown(name, commands).endswith(hint)


def test_each_command_that_stands_for_another_exists(home):
    commands, _ = slash_registry.collect_commands({}, None)
    others = slash_registry._OTHER_NAMES
    assert not others.keys() & commands.keys()
    named = {name for text in others.values() for name in re.findall(r"(?<![\w-])/([a-z]+)", text)}
    assert named <= commands.keys()


@pytest.mark.parametrize(
    ("typed", "name"),
    [("con", "context"), ("context", "context"), ("co", "co"), ("c", "c"), ("nothing", "nothing"), ("new", "new")],
)
def test_a_part_of_a_name_is_the_only_command_that_begins_with_it(typed, name):
    commands = collect_commands({}, None)[0]
    assert slash_registry.complete_name(typed, commands) == name


def test_the_commands_that_begin_with_a_part_of_a_name_are_suggested():
    commands = collect_commands({}, None)[0]
    assert slash_registry.describe_unknown("co", commands).endswith(
        "did you mean /commit or /compact or /context or /copy or /cost?"
    )
