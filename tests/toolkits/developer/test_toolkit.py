"""Tests of the toolkit as a whole: which tools a session offers, and what the model is asked before a turn ends."""

import pytest

from goose_like.config.profile import NetworkChoice, WorkspaceSettings
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

WRITING = {"write_file", "patch_file"}
OTHERS = {"update_plan", "fetch_web_content"}


@pytest.mark.parametrize(
    ("mode", "approval", "missing", "has_access"),
    [
        ("full", "auto", set(), False),
        ("workspace+network", "auto", set(), False),
        ("workspace", "auto", set(), True),
        ("read-only", "auto", WRITING, True),
        ("workspace", "plan", WRITING | OTHERS, False),
        ("full", "plan", WRITING | OTHERS, False),
    ],
)
async def test_only_what_the_session_allows_is_offered(tmp_path, mode, approval, missing, has_access):
    async with open_developer(tmp_path, mode, approval=approval) as made:
        assert (WRITING | OTHERS) - set(made.tools) == missing
        assert {"shell", "read_file", "process", "ask_user"} <= set(made.tools)
        assert ("access" in made.tools["shell"].spec.schema["properties"]) == has_access
        prompt = made.toolkit.prompt()
    assert not [name for name in missing if f"`{name}`" in prompt]
    assert ("No network." in prompt) == (approval == "plan")


async def test_plan_mode_reads_web_pages_of_listed_hosts(tmp_path):
    settings = WorkspaceSettings(network=NetworkChoice(allow=("docs.python.org",)))
    async with open_developer(tmp_path, approval="plan", settings=settings) as made:
        assert "fetch_web_content" in made.tools


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path) as made:
        yield made


async def test_names_of_other_agents_lead_to_one_tool_each(here: DeveloperHarness):
    names = {"edit_file": "patch_file", "Bash": "shell", "view": "read_file", "TodoWrite": "update_plan"}
    for name, expected in names.items():
        assert (await here.call_error(name)).startswith(f"no tool {name!r}; use {expected}; ")
    aliases = [alias for tool in here.tools.values() for alias in tool.options.aliases]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & set(here.tools)


async def test_files_that_no_longer_parse_are_found(here: DeveloperHarness):
    (here.root / "old.json").write_text("{} // not JSON\n")
    (here.root / "fine.toml").write_text("a = 1\n")
    await here.call_ok("write_file", path="new.py", content="def f(:\n")
    await here.call_ok("patch_file", path="old.json", patches=[{"before": "not", "after": "no"}])
    await here.call_ok("patch_file", path="fine.toml", patches=[{"before": "1", "after": ""}])
    await here.call_ok("write_file", path="other.py", content="x = (\n")
    await here.shell("rm other.py; echo 'x = 1' > new.py")
    text = await here.toolkit.before_finish()
    assert text is not None
    assert text.startswith("fine.toml does not parse: line 1: ")
    assert [name for name in ("new.py", "old.json", "other.py") if name in text] == []
    await here.toolkit.on_turn_start()
    assert await here.toolkit.before_finish() is None  # the files of an earlier turn


async def test_a_running_process_costs_no_request(here: DeveloperHarness):
    await here.call_ok("process", action="start", command="sleep 300")
    assert await here.toolkit.before_finish() is None
