"""MCP servers as a person uses them: the commands of docs/mcp.md, and a session in a terminal."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, put_command_on_path
from tests.toolkits.mcp.oauth_server import oauth_server
from tests.toolkits.mcp.servers import SCRIPTS, script, serve

PAGE = "docs/mcp.md"
BLOCKS = find_blocks(PAGE, "sh")
FIRST = BLOCKS[0]


@pytest.fixture
def path(place: Place) -> str:
    """Return a PATH with goose-like and the servers of this environment."""
    programs = str(Path(sys.executable).parent)
    return os.pathsep.join((put_command_on_path(place.home), programs))


def call(tool: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"tool": tool, "arguments": arguments}]}


def make_repository(place: Place) -> None:
    for words in ("init -q", "config user.email a@b.c", "config user.name Ann"):
        subprocess.run(["git", *words.split()], cwd=place.work, check=True)
    (place.work / "a.txt").write_text("a\n")
    subprocess.run(["git", "add", "a.txt"], cwd=place.work, check=True)
    subprocess.run(["git", "commit", "-qm", "the first one"], cwd=place.work, check=True)


def test_the_first_five_minutes_of_the_page(place: Place, path: str) -> None:
    make_repository(place)
    install, add, run = FIRST.splitlines()
    assert install.startswith("pip install 'goose-like[mcp]' mcp-server-git")
    done = subprocess.run(
        add, shell=True, cwd=place.work, env=place.env(PATH=path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "12 tools" in done.stdout
    model = place.script(call("mcp__git__git_log", repo_path="."), {"text": "it was a.txt", "expect": "the first one"})
    line = run.replace("goose-like run", f"goose-like run --model {shlex.quote(model)}")
    done = subprocess.run(
        line, shell=True, cwd=place.work, env=place.env(PATH=path), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "it was a.txt\n"), done.stderr


def test_the_files_of_the_page_name_servers_that_can_be_read(place: Place, path: str) -> None:
    file = find_blocks(PAGE, "json")[0]
    (profile,) = find_blocks(PAGE, "yaml")
    (place.home / "config").mkdir()
    (place.home / "config/mcp.json").write_text(file)
    (place.home / "config/profiles.yaml").write_text(profile)
    shown = place.run("mcp", "list", env={"PATH": path})
    assert shown.returncode == 0, shown.stderr
    assert re.findall(r"^(git|tickets) ", shown.stdout, re.MULTILINE) == ["git", "tickets"]
    assert "profile" in next(line for line in shown.stdout.splitlines() if line.startswith("git"))


def test_the_page_names_the_commands_that_there_are(place: Place) -> None:
    page = (ROOT / PAGE).read_text()
    (table,) = re.findall(r"^\| `goose-like mcp` \|.*?\n\n", page, re.DOTALL | re.MULTILINE)
    named = {words.split()[0] for words in re.findall(r"`([a-z]+[^`]*)`", table)} - {"goose-like"}
    shown = place.run("mcp", "--help").stdout
    assert named == set(re.findall(r"^  ([a-z]+)  ", shown, re.MULTILINE))


def test_a_session_with_a_server(place: Place, session: object, path: str) -> None:
    command, *arguments = script("demo_server.py", "stdio")
    entry = {"command": command, "args": arguments}
    (place.home / "config").mkdir()
    (place.home / "config/mcp.json").write_text(json.dumps({"mcpServers": {"demo": entry}}))
    assert place.run("mcp", "test", "demo", env={"PATH": path}).returncode == 0
    steps = [call("mcp__demo__add", a=20, b=22), "it is 42", "looks good", "seen"]
    terminal = session(*steps)  # type: ignore[operator]
    terminal.type("/mcp\r")
    terminal.see("not started")
    terminal.see("tokens in each request")
    terminal.type("add them\r")
    terminal.see("it is 42")
    terminal.type("/mcp demo\r")
    terminal.see("demo: running")
    terminal.see("/demo:review")
    terminal.type("/demo:review x=1\r")
    terminal.see("looks good")
    terminal.type("see @demo:no")
    terminal.see("demo:note://one  The first note.")
    terminal.type("te://one\r")
    terminal.see("seen")
    terminal.idle()
    assert place.list_messages() == ["add them", "Review this: x=1", "see @demo:note://one"]
    reminded = [event["text"] for event in place.events() if event["type"] == "reminded"]
    assert any("the first note" in text for text in reminded)


def run_block(place: Place, path: str, block: str, keys: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
    """Run the commands of a block as a person would type them, and type the keys."""
    variables = place.env(PATH=path, **env)
    line = f"set -e\n{block}"
    return subprocess.run(
        line, shell=True, cwd=place.work, env=variables, input=keys, capture_output=True, text=True, check=False
    )


def test_the_workspace_of_openbb(place: Place, path: str) -> None:
    (block,) = (block for block in BLOCKS if "workspace http" in block)
    steps = [call("mcp__workspace__add", a=20, b=22), {"text": "42 widgets", "expect": "42"}]
    with serve("http") as url:
        block = block.replace("http://127.0.0.1:8787/mcp", url)
        block = block.replace("goose-like run", f"goose-like run --model {shlex.quote(place.script(*steps))}")
        done = run_block(place, path, block)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("42 widgets\n")


async def test_a_key_and_a_login(place: Place, path: str) -> None:
    key_block, login_block = (block for block in BLOCKS if "mcp login" in block)
    async with oauth_server() as server:
        server.tokens.add("the-right-key-0123456789")
        key_block = key_block.replace("https://tickets.example/mcp", server.url)
        wrong = await asyncio.to_thread(run_block, place, path, key_block, "a-wrong-key-0123456789\n")
        assert wrong.returncode == 1
        assert "refuses the key in the header `Authorization`; store another one: goose-like mcp login" in wrong.stderr
        _, again = key_block.splitlines()
        right = await asyncio.to_thread(run_block, place, path, again, "the-right-key-0123456789\n")
        assert right.returncode == 0, right.stderr
        assert "TICKETS_TOKEN is stored; type another value" in right.stderr
        assert "the server accepts the key\noffers 1 tool" in right.stdout
        assert "/authorize" not in server.seen
        login_block = login_block.replace("https://issues.example/mcp", server.url)
        browser = f"{sys.executable} {SCRIPTS / 'browser.py'} %s"
        done = await asyncio.to_thread(run_block, place, path, login_block, BROWSER=browser)
        assert done.returncode == 0, done.stderr
        assert "it wants a login first" in done.stdout
        assert f"logged in at {server.issuer}\noffers 1 tool" in done.stdout
