"""The toolkit `code` with the plugins of a project, in a real kernel."""

import asyncio
import json
import re
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from goose_like_toolkits.code.config import Config
from goose_like_toolkits.code.kernel_session import CellResult
from goose_like_toolkits.code.shell_lines import list_shell_lines
from goose_like_toolkits.code.toolkit import CodeToolkit

from goose_like.core.errors import ProfileError
from goose_like.core.events import Compacted, MessageCompleted, StateSaved, ToolFinished, TurnStarted
from goose_like.core.history import History
from goose_like.core.message import Message, ToolCall, ToolResult, Usage
from goose_like.sdk.lint import collect_tools
from goose_like.terminal.plain_text import render_plain_text
from goose_like.workspace.workspace import Workspace
from tests import ROOT
from tests.fakes import ExchangeHarness
from tests.toolkits.code.cell_harness import CodeHarness, open_harness
from tests.toolkits.code.test_plugins import SEED
from tests.toolkits.developer.developer_harness import wait_until

WILD = ROOT / "tests/fixtures/taskweaver_plugins"
CONFIGURED = """
configurations:
  - name: range
    type: list
    required: false
    description: The range of the random numbers.
    default: [7, 7]
"""


@pytest.fixture
def project(tmp_path):
    """A function that adds plugins to a project in the workspace: a fixture, or the given source."""
    plugins = tmp_path / "project" / "work" / "plugins"
    plugins.mkdir(parents=True)

    def add(name: str, code: str, *parameters: str, more: str = "", source: str = "") -> Path:
        lines = "".join(
            f"\n  - {{name: {each.split()[0]}, type: {each.split()[1]}, required: {each.split()[2]}}}"
            for each in parameters
        )
        text = f"name: {name}\ncode: {code}\ndescription: The plugin {name}.\nparameters:{lines or ' []'}\n{more}\n"
        (plugins / f"{name}.yaml").write_text(text)
        file = plugins / f"{code}.py"
        if source:
            file.write_text(source)
        else:
            shutil.copy(WILD / f"{code}.py", file)
        return file

    add.folder = plugins
    return add


def with_project(tmp_path, **config):
    return open_harness(tmp_path, "full", project="work", **config)


# --- the seed's


@pytest.mark.parametrize(("configured", "code"), [("", "seed_random_generator"), (CONFIGURED, "random_generator")])
async def test_seed_generator_runs_unchanged(tmp_path, project, configured, code):
    (project.folder / "random_generator.yaml").write_text(SEED + configured)
    shutil.copy(WILD / f"{code}.py", project.folder / "random_generator.py")
    async with with_project(tmp_path) as here:
        assert (
            "def random_generator(\n    # The number of random numbers to generate.\n    n: int,"
            in here.toolkit.prompt()
        )
        found = await here.run("result = random_generator(n=5)")
        numbers = json.loads(found.partition("result = ")[2].partition("\n")[0])
        assert len(numbers) == 5
        assert set(numbers) == {7} if configured else set(numbers) <= set(range(1, 101))


async def test_seed_database_plugin_keeps_connection(tmp_path, project):
    database = tmp_path / "shop.sqlite"
    with sqlite3.connect(database) as connection:
        connection.executescript(
            "create table sales (day text, sum int); insert into sales values ('mo', 3), ('tu', 4)"
        )
    connection.close()
    project("sql_pull_data", "sql_pull_data", "query str true", more=f"configurations: {{sqlite_db_path: {database}}}")
    async with with_project(tmp_path) as here:
        found = await here.run("df, about = sql_pull_data('select sum(sum) as total from sales')\nprint(about)\ndf")
        assert "there are 1 rows" in found
        assert "7" in found
        await here.run("first = sql_pull_data.db")
        assert "True" in await here.run("sql_pull_data('select 1')\nfirst is sql_pull_data.db")


# --- what is told, and what goes wrong


async def test_failed_plugin_is_off(tmp_path, project):
    project("reads_images", "reads_images", "image_path str true")
    project("needs_key", "needs_key")
    project("word_count", "word_count", "text str true", "top int false")
    async with with_project(tmp_path) as here:
        found = await here.run("try:\n    reads_images('x')\nexcept NameError as error:\n    print('told:', error)")
        assert "told: the plugin 'reads_images' is off because loading it failed" in found
        assert "Please install no_such_reader" in found
        assert "failed and is off" not in found  # once is enough
        hidden = await here.run("try:\n    needs_key()\nexcept NameError:\n    pass")
        assert hidden.startswith("[plugin needs_key failed and is off:")
        assert "KeyError: 'key'" in hidden
        assert "KeyError: 'key'" in await here.run("needs_key()")
        assert "{'a': 2}" in await here.run("word_count('a b a', top=1)")


async def test_signature_mismatch_is_logged_at_start(tmp_path, project):
    file = project("word_count", "word_count", "words str true")
    project("counter", "counter")
    (project.folder / "broken.yaml").write_text("name: [")
    async with with_project(tmp_path) as here:
        reason = "takes no parameter 'words'; did you mean 'text'"
        assert "def word_count" not in here.toolkit.prompt()
        assert re.search(f"\n- broken: .*broken.yaml:1: .*\n- word_count: .*{reason}", here.toolkit.prompt())
        assert (await here.call("list_plugins")).output.splitlines()[1].startswith("word_count: (off: ")
        for cell in ("word_count('a')", "def count(text): return word_count(text)\ncount('a')"):
            failed = await here.run(cell)
            assert "NameError" in failed
            assert re.search(rf"\[plugin word_count is off: .*{reason}", failed)
        assert "[plugin broken is off: " in await here.run("broken()")
        assert "off" not in await here.run("unknown()")
        yaml = project.folder / "word_count.yaml"
        yaml.write_text(yaml.read_text() + "allow_drift: true\n")
        assert "{'a': 1}" in await here.run("word_count('a')")
        assert any(f"{yaml.name}:" in line for line in here.log_lines)
    assert file.is_file()


async def test_two_yaml_files_share_a_source(tmp_path, project):
    project("from_one", "counter", more="configurations: {start: 1}")
    project("from_ten", "counter", more="configurations: {start: 10}")
    async with with_project(tmp_path) as here:
        found = await here.run("from_one(), from_ten(), from_one()")
        assert "('from_one', 2, 1, 'taskweaver_ext.plugin.from_one')" in found
        assert "('from_ten', 11, 1, 'taskweaver_ext.plugin.from_ten')" in found
        assert "('from_one', 3, 2," in found


async def test_changed_plugin_is_reloaded(tmp_path, project):
    file = project("counter", "counter")
    async with with_project(tmp_path) as here:
        assert "'counter', 1" in await here.run("counter()")
        assert "'counter', 2" in await here.run("counter()")
        file.write_text(file.read_text().replace("self.count += 1", "self.count += 100"))
        found = await here.run("counter()")
        assert "'counter', 100" in found
        assert "[plugin counter changed and was reloaded, without its former state]" in found
        (project.folder / "counter.yaml").unlink()
        assert "NameError" in await here.run("counter()")


async def test_artifacts_variables_and_environment(tmp_path, project, monkeypatch):
    monkeypatch.setenv("PLUGIN_reporter_KEY", "k1")
    monkeypatch.setenv("PLUGIN_other_KEY", "k2")
    project("reporter", "reporter")
    async with with_project(tmp_path, session_vars={"user": "ada"}) as here:
        found = await here.run("reporter.user(), reporter.get_env('KEY'), reporter()")
        assert "('ada', None), 'k1'" in found
        (report,) = here.list_outputs("*report.txt")
        assert report.read_text() == "all is well"
        assert f"[artifact report: {report}" in found
        assert "LookupError" in await here.run("reporter.ctx.get_env('other', 'KEY')")
        assert "k1" not in await here.run("import os\n[name for name in os.environ if 'PLUGIN' in name]")
        here.toolkit.plugins(Shown(), "user=grace")
        assert "'grace'" in await here.run("reporter.user()")


@pytest.mark.parametrize("figures", [True, False])
async def test_model_sees_charts_of_plugins(tmp_path, figures):
    pytest.importorskip("matplotlib", reason="the extra `analyst` is not installed")
    async with open_harness(tmp_path, figures=figures) as here:
        code = "df = pd.DataFrame({'a': [1, 2]})\nplot(df, file_name='chart.png')"
        outcome = await here.call("run_python", code=code)
        (copy,) = here.list_outputs("*chart.png")
        assert (here.root / "chart.png").read_bytes() == copy.read_bytes()
        assert (outcome.image.data if outcome.image else None) == (copy.read_bytes() if figures else None)
        assert (await here.call("run_python", code="1")).image is None


async def test_temporal_text_is_not_sent_later(tmp_path, project):
    project("reporter", "reporter")
    async with with_project(tmp_path) as here:
        outcome = await here.call("run_python", code="print('stays', reporter.say('passes'))")
        assert "stays passes" in outcome.output
        assert outcome.replacement is not None
        assert "stays" in outcome.replacement
        assert "passes" not in outcome.replacement
        assert "Plugin-reporter: passes" in here.log_lines
        await here.run("for letter in reporter.say('pieces') + 'end': print(letter, end='', flush=True)")
        assert here.screen_text.replace("\n", "") == "stays passespiecesend"


async def test_temporal_text_beside_a_figure(tmp_path, project):
    project("reporter", "reporter")
    async with with_project(tmp_path) as here:
        outcome = await here.call("run_python", code="print(reporter.say('passes'))\nplt.plot([1, 2])\nplt.show()")
        assert outcome.image is not None
        assert "passes" in outcome.output
        assert outcome.replacement is not None
        assert "passes" not in outcome.replacement


def test_a_summary_forgets_temporal_text():
    call = ToolCall(id="c1", name="run_python", arguments="{}")
    result = ToolResult(call_id="c1", output="stays passes", replacement="stays")
    said = TurnStarted(message=Message.user("go"))
    first = [said, MessageCompleted(message=Message.assistant("", [call]), usage=Usage()), ToolFinished(result=result)]
    later = [*first, MessageCompleted(message=Message.assistant("done"), usage=Usage()), said]
    shortened = Compacted(summary="", kept_count=9)
    for events, output in ((first, "stays passes"), (later, "stays passes"), ([*later, shortened], "stays")):
        sent = [part for message in History.replay(events).context.messages for part in message.tool_results]
        assert [part.output for part in sent] == [output]
    assert History.replay(later).messages[2].tool_results == (result,)


def test_elided_result_stays_elided():
    call = ToolCall(id="c1", name="run_python", arguments="{}")
    result = ToolResult(call_id="c1", output="stays passes", replacement="stays")
    said = TurnStarted(message=Message.user("go"))
    events = [said, MessageCompleted(message=Message.assistant("", [call]), usage=Usage()), ToolFinished(result=result)]
    history = History.replay([*events, Compacted(summary="", kept_count=3, replacements={"c1": "[left out]"}), said])
    assert [part.output for message in history.context.messages for part in message.tool_results] == ["[left out]"]


@pytest.mark.parametrize(
    ("text", "now", "later"),
    [
        ("a<b>c<d>e", "abcde", "ace"),
        ("a<b<c>d", "abcd", "ad"),
        ("a>b<c", "abc", "abc"),  # a part of long output is left out
        ("", "", ""),
    ],
)
def test_temporal_marks_are_parsed(text, now, later):
    def marked(text):
        marks = {"<": "{{DELIMITER_START_TEMPORAL}}", ">": "{{DELIMITER_END_TEMPORAL}}"}
        return "".join(marks.get(each, each) for each in text)

    assert (CellResult.from_marked(marked(text)).text, CellResult.from_marked(marked(text)).replacement) == (
        marked(now),
        marked(later),
    )


async def test_missing_column_is_explained(tmp_path):
    pytest.importorskip("pandas", reason="the extra `analyst` is not installed")
    async with open_harness(tmp_path, "full") as here:
        await here.run("df = pd.DataFrame({'id': [1], 'amount': [2]})")
        for cell in (
            "df['amuont']",
            "df.groupby('town').sum()",
            "df.sort_values('t')",
            "df[['id', 'x']]",
            "df.groupby('id')['x']",
        ):
            failed = await here.run(cell)
            assert "use one of these columns: 'id', 'amount'" in failed
            assert failed.count("Traceback") == 1
        for cell in ("{}['id']", "df.loc[5]"):
            assert "these columns" not in await here.run(cell)


@pytest.mark.parametrize("small_model", [True, False])
async def test_small_model_gets_help(tmp_path, small_model):
    async with open_harness(tmp_path, small_model=small_model) as here:
        (here.root / "orders.csv").write_text("id,date,town\n1,2,3\n")
        await here.toolkit.on_turn_start()
        shown = {"first lines": "\n==> orders.csv <==\nid,date,town"} if small_model else {}
        assert await here.toolkit.context_updates() == shown
        await here.run("1 / 0")
        asked = here.toolkit.before_finish()
        assert ("ZeroDivisionError: division by zero" in asked) if small_model else asked is None
        await here.run("1")
        assert here.toolkit.before_finish() is None
        await here.run("1 / 0")
        await here.toolkit.on_turn_start()
        assert here.toolkit.before_finish() is None


# --- files that change, or can't be


async def test_repaired_and_broken_plugins_are_noticed(tmp_path, project):
    project("counter", "counter")
    project("standalone", "standalone", "text str true")
    yaml = project.folder / "standalone.yaml"
    good = yaml.read_text()
    yaml.write_text("name: [")
    async with with_project(tmp_path) as here:
        assert "NameError" in await here.run("standalone('a')")
        yaml.write_text(good)
        assert "'A'" in await here.run("standalone('a')")
        assert "def standalone(" in (await here.toolkit.context_updates())["plugins"]
        yaml.write_text(good.replace("name: text", "name: words"))
        said = await here.run("standalone('a')")
        assert "NameError" in said
        assert "[plugin standalone is off now: " in said
        assert "takes no parameter 'words'; did you mean 'text'" in said
        yaml.write_text(good.replace("The plugin", "A plugin"))
        await here.run("1")
        assert "A plugin standalone" in (await here.toolkit.context_updates())["plugins"]


async def test_change_survives_cancelled_cell(tmp_path, project):
    file = project("counter", "counter")
    busy = "import os\ntry:\n    print('begun', counter())\n    while True: pass\nexcept KeyboardInterrupt:\n"
    busy += "    while not os.path.exists('go'): pass"
    async with with_project(tmp_path) as here:
        first = asyncio.create_task(here.run(busy))
        await wait_until(lambda: "begun" in here.screen_text)
        first.cancel()
        file.write_text(file.read_text().replace("self.count += 1", "self.count += 100"))
        second = asyncio.create_task(here.run("counter()"))
        await wait_until(here.toolkit._kernel_session._lock.locked)
        await asyncio.sleep(0.1)
        second.cancel()
        (here.root / "go").touch()
        await asyncio.wait({first, second})
        assert "'counter', 100" in await here.run("counter()")


@pytest.mark.parametrize("text", ["name: " + "a" * 300, "name: b\ncode: " + "a" * 300, 'name: b\ncode: "a\\0b"'])
async def test_impossible_file_name_spares_other_plugins(tmp_path, project, text):
    project("counter", "counter")
    (project.folder / "odd.yaml").write_text(f"{text}\ndescription: odd\n")
    async with with_project(tmp_path) as here:
        assert "(off: " in (await here.call("list_plugins")).output
        assert "'counter', 1" in await here.run("counter()")


@pytest.mark.parametrize("folder", ["~nobody-of-this-name/x", "a\0b", "a" * 5_000])
async def test_impossible_folder_is_an_error(tmp_path, folder):
    with pytest.raises(ProfileError, match="there is no such folder"):
        async with open_harness(tmp_path, "full", project=folder):
            pass


async def test_plugin_may_replace_a_builtin(tmp_path, project):
    source = "from taskweaver.plugin import register_plugin\n@register_plugin\ndef f(a): return 'mine', a\n"
    for name in ("open", "print"):
        project(name, name, "a int true", source=source)
    async with with_project(tmp_path) as here:
        assert "('mine', 1)" in await here.run("open(1)")
        assert "('mine', 2)" in await here.run("print(2)")
        for name in ("open", "print"):
            here.toolkit.plugins(Shown(), f"off {name}")
        assert "io.open(" in await here.run("open")  # IPython's own one, in `io` or `_io`
        await here.run("open = 5")
        here.toolkit.plugins(Shown(), "on open")
        assert await here.run("open") == "5"


@pytest.mark.parametrize(
    "state",
    [[1], "x", {"names": 5}, {"names": [{}]}, {"plugins": [1]}, {"plugins": {"a": []}}, {"variables": {"a": {}}}],
)
async def test_malformed_saved_state_is_ignored(tmp_path, state):
    history = History.replay([StateSaved(toolkit="code", value=state)])
    async with open_harness(tmp_path, "full", history=history) as here:
        assert await here.run("1") == "1"


# --- sets, selection, modes


class Shown(list):
    def show(self, renderable):
        self.append(render_plain_text(renderable))


async def test_profile_and_session_choose_plugins(tmp_path, project):
    for name in ("counter", "word_count", "shapes"):
        project(name, name)
    (project.folder / "word_count.yaml").write_text(
        (project.folder / "word_count.yaml").read_text() + "allow_drift: true"
    )
    desk = Shown()
    async with with_project(tmp_path, plugins=["counter", "word_count"]) as here:
        assert "def counter()" in here.toolkit.prompt()
        assert "shapes" not in here.toolkit.prompt()
        assert await here.toolkit.context_updates() == {}
        assert "NameError" in await here.run("shapes()")
        here.toolkit.plugins(desk, "on shapes")
        here.toolkit.plugins(desk, "off counter")
        here.toolkit.plugins(desk, "")
        assert [re.split(r"  +", line.rstrip()) for line in desk[2].splitlines()] == [
            ["plugin", "state", "description"],
            ["counter", "off: switched off in this session", "The plugin counter."],
            ["shapes", "on", "The plugin shapes."],
            ["word_count", "on", "The plugin word_count."],
        ]
        assert "def shapes()" in (await here.toolkit.context_updates())["plugins"]
        assert "Shape(points=[])" in await here.run("shapes()")
        assert "NameError" in await here.run("counter()")
        saved = here.saved_state
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "project", again / "project")
    history = History.replay([StateSaved(toolkit="code", value=saved)])
    async with open_harness(again, "full", project="work", plugins=["counter", "word_count"], history=history) as here:
        assert "def shapes()" in here.toolkit.prompt()
        assert "def counter()" not in here.toolkit.prompt()


async def test_fitting_plugins_are_shown_and_all_callable(tmp_path, project):
    for name in ("waits", "shapes", "counter", "standalone"):
        project(name, name, more="allow_drift: true")
    yaml = project.folder / "shapes.yaml"
    yaml.write_text(yaml.read_text().replace("The plugin shapes.", "Moves points on a map.\nrequired: true"))
    yaml = project.folder / "counter.yaml"
    yaml.write_text(yaml.read_text().replace("The plugin counter.", "Counts how often something happened."))
    async with with_project(tmp_path, select_top_k=2) as here:
        assert "There are 4 plugins," in here.toolkit.prompt()
        here.session.history.apply(TurnStarted(message=Message.user("how often did that happen?")))
        response_text = (await here.toolkit.context_updates())["plugins that may fit"]
        assert "def counter()" in response_text
        assert "def shapes()" in response_text
        assert "def waits" not in response_text
        assert "'HELLO'" in await here.run("standalone('hello')")
        assert (await here.call("list_plugins", about="points on a map")).output.startswith("shapes:")
        described = await here.call("describe_plugin", name="shape")
        assert described.is_error
        assert "did you mean 'shapes'" in described.output


async def test_only_plugins_that_fit_the_message_are_sent(tmp_path, project):
    for name in ("counter", "shapes", "waits"):
        project(name, name, more="allow_drift: true")
    yaml = project.folder / "waits.yaml"
    yaml.write_text(yaml.read_text().replace("The plugin waits.", "Sleeps for some seconds."))
    exchange = ExchangeHarness(["Good night.", "Bye."], folder=tmp_path / "session")
    workspace = Workspace(
        tmp_path / "project", mode="full", approval="auto", notifier=exchange.recorder, session_folder=tmp_path
    )
    async with workspace:
        here = CodeHarness(exchange.session, workspace, exchange.recorder, project="work", select_top_k=1)
        exchange.add_toolkits(here.toolkit)
        await exchange.exchange.reply("sleeping for five seconds")
        await exchange.exchange.reply("something else")
        await here.toolkit.close()
    first, second = (" ".join(each.text for each in sent.messages) for sent in exchange.provider.requests)
    assert re.findall(r"def (\w+)\(", first) == ["waits"]
    assert re.findall(r"def (\w+)\(", second) == ["waits"]
    assert "plugins that may fit: none by the words of the message" in second


async def test_plugin_only_mode_has_plugin_tools(tmp_path, project):
    project("word_count", "word_count", "text str true", "top int false")
    project("counter", "counter")
    async with with_project(tmp_path, mode="plugin_only") as here:
        assert set(here.tools) == {"list_plugins", "describe_plugin", "kernel_reset", "word_count", "counter"}
        schema = here.tools["word_count"].spec.schema
        assert schema["properties"]["top"]["type"] == "integer"
        assert schema["required"] == ["text"]
        assert "{'a': 2}" in (await here.call("word_count", text="a b a", top=1)).output
        assert "__import__" in (await here.call("word_count", text="') or __import__('os')")).output
        wrong = await here.call("word_count", text="a", top="many")
        assert wrong.is_error
        assert "field 'top'" in wrong.output
        assert "'counter', 2" in [(await here.call("counter")).output for _ in range(2)][1]


async def test_plugin_only_mode_offers_chosen_or_marked(tmp_path, project):
    project("counter", "counter", more="plugin_only: true")
    project("waits", "waits", more="allow_drift: true")
    project("shapes", "shapes", more="allow_drift: true")
    async with with_project(tmp_path, mode="plugin_only") as here:
        assert set(here.tools) == {"list_plugins", "describe_plugin", "kernel_reset", "counter"}
        assert "waits: (off: no `plugin_only: true` in its YAML)" in (await here.call("list_plugins")).output
    async with with_project(tmp_path, mode="plugin_only", plugins=["counter", "waits"]) as here:
        assert set(here.tools) == {"list_plugins", "describe_plugin", "kernel_reset", "counter", "waits"}


async def test_plugin_only_mode_with_many_plugins(tmp_path, project):
    for name in ("waits", "shapes", "counter"):
        project(name, name, more="allow_drift: true")
    async with with_project(tmp_path, mode="plugin_only", select_top_k=2) as here:
        assert set(here.tools) == {"list_plugins", "describe_plugin", "kernel_reset", "call_plugin"}
        assert "'counter', 1" in (await here.call("call_plugin", name="counter", arguments={})).output
        assert (await here.call("call_plugin", name="contre", arguments={})).is_error
        code = {"name='a')\nprint('free')\ndict(b": 1}
        for arguments in (code, {"size": 1}):
            outcome = await here.call("call_plugin", name="shapes", arguments=arguments)
            assert outcome.is_error
            assert "shapes takes no " in outcome.output


async def test_plugin_only_mode_hides_uncallable_plugins(tmp_path, project):
    for name in ("waits", "shapes", "counter"):
        project(name, name, more="allow_drift: true\nplugin_only: true" if name != "waits" else "allow_drift: true")
    async with with_project(tmp_path, mode="plugin_only", select_top_k=1) as here:
        here.session.history.apply(TurnStarted(message=Message.user("waits, the plugin that waits")))
        assert "def waits" not in (await here.toolkit.context_updates())["plugins that may fit"]
        assert "There are 2 plugins," in here.toolkit.prompt()
    async with with_project(tmp_path, mode="plugin_only", select_top_k=2) as here:
        assert set(here.tools) == {"list_plugins", "describe_plugin", "kernel_reset", "shapes", "counter"}


async def test_plugin_only_mode_respects_switches(tmp_path, project):
    project("counter", "counter")
    project("standalone", "standalone", "text str true")
    async with with_project(tmp_path, mode="plugin_only", plugins=["counter"]) as here:
        assert (await here.call("call_plugin", name="standalone", arguments={"text": "a"})).is_error
        here.toolkit.plugins(Shown(), "on standalone")
        here.toolkit.plugins(Shown(), "off counter")
        called = await here.call("call_plugin", name="standalone", arguments={"text": "a"})
        assert "'A'" in called.output
        off = await here.call("counter")
        assert off.is_error
        assert off.output == "counter can't be called: switched off in this session"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"projects": "x"}, "no 'projects'; did you mean 'project'"),
        ({"project": "nowhere"}, "there is no such folder"),
        ({"project": "work", "plugins": ["countr"]}, "no plugin 'countr'"),
        ({"mode": "plugins"}, "mode: expected 'full' or 'plugin_only'"),
        ({"select_top_k": 1.5}, "select_top_k"),
        ({"select_top_k": 0}, "select_top_k"),
        ({"project": "work", "plugins": ["rough"]}, "the plugin 'rough' can't be used: .*rough.yaml:1: "),
        (
            {"verify": {"allowed_modules": ["a"], "blocked_modules": ["b"]}},
            "^verify: give either allowed_modules or blocked_modules$",
        ),
        ({"verify": {"allow_modules": ["a"]}}, "^'verify' has no 'allow_modules'; did you mean 'allowed_modules'"),
        ({"verify": {"allowed_modules": "a"}}, "^verify.allowed_modules: expected a list"),
        ({"verify": "yes"}, "^verify: expected a mapping, not 'yes'$"),
        ({"timeout_s": -1}, "timeout_s"),
        ({"figures": "no"}, "figures"),
        ({"session_vars": ["a"]}, "session_vars"),
    ],
)
async def test_wrong_config_names_its_key(tmp_path, project, config, expected):
    project("counter", "counter")
    (project.folder / "rough.yaml").write_text("name: rough\n")
    with pytest.raises(ProfileError, match=f"(?s){expected}") as error:
        async with open_harness(tmp_path, "full", **config):
            pass
    assert error.value.path[0] == "config"


# --- verification


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_cells_are_verified_and_plugins_are_not(tmp_path, project, mode):
    project("counter", "counter", source=(WILD / "counter.py").read_text() + "\nimport os\n")
    rules = {"allowed_modules": ["math", "pandas"], "blocked_functions": ["open"]}
    async with open_harness(tmp_path, mode, project="work", verify=rules) as here:
        assert "2.0" in await here.run("import math\nroot = math.sqrt(4)")
        assert "'counter', 1" in await here.run("counter()")
        refused = await here.run("x = 1\nimport os")
        assert "Error on line 2: import os" in refused
        for bypass in ("x = open\nx('f')", "!id", "%%timeit\nimport os", "counter.__class__", "getattr(math, 'pi')"):
            assert "[raised " in await here.run(bypass), bypass
        assert "1" in await here.run("1")


async def test_project_rules_apply(tmp_path, project):
    project("counter", "counter")
    settings = {"code_interpreter.code_verification_on": True, "code_interpreter.allowed_modules": ["math"]}
    (project.folder.parent / "taskweaver_config.json").write_text(json.dumps(settings))
    async with with_project(tmp_path) as here:
        assert "[raised " in await here.run("import os")
    async with open_harness(tmp_path, "full", project="work", verify=False) as here:
        assert "raised" not in await here.run("import os")


async def test_tools_that_repeat_the_prompt_are_left_out(tmp_path, project):
    async with open_harness(tmp_path, "full") as here:  # the shipped plugins fit the prompt
        assert "def csv_profile(" in here.toolkit.prompt()
        assert set(here.tools) == {"run_python", "kernel_reset"}
    project("counter", "counter")
    project("word_count", "word_count", "words str true")  # is off, which only the list tells
    async with with_project(tmp_path) as here:
        assert {"list_plugins", "describe_plugin"} <= set(here.tools)


async def test_the_prompt_names_the_kernels_python(tmp_path):
    async with open_harness(tmp_path, "full") as here:
        prompt = here.toolkit.prompt()
        version = (await here.run("import sys; print('%d.%d' % sys.version_info[:2])")).strip()
        assert f"The kernel runs Python {version}, with the packages of that environment" in prompt


async def test_a_file_in_the_sandboxs_own_tmp_is_told(tmp_path):
    async with open_harness(tmp_path, "workspace") as here:
        told = await here.run("open('/tmp/report.csv', 'w').write('a')")
        assert "[the file /tmp/report.csv is in the sandbox's own /tmp, which is removed when the session ends]" in told
        assert "report.csv is in" not in await here.run("print(open('/tmp/report.csv').read())")


@pytest.mark.parametrize(
    "cell",
    [
        "import io, sys\nsys.stdout = io.StringIO()\nsys.stderr = sys.stdout\nprint('lost')",
        "import sys\nsys.stdout.close(); sys.stderr.close()",
        "import sys\nsys.stdout = None",
        "import sys\nsys.stdout = open('log.txt', 'w')\nprint('x')\nraise ValueError",
        "import sys\ndel sys.stdout",
    ],
)
async def test_a_cell_does_not_silence_later_ones(tmp_path, cell):
    async with open_harness(tmp_path, "full") as here:
        await here.run(cell)
        assert "heard" in await here.run("print('heard')")
        assert "warned" in await here.run("import sys; print('warned', file=sys.stderr)")
        assert "42" in await here.run("6 * 7")
        assert "replaced" not in await here.run("print('quiet')")


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("!rm a.csv", ["rm a.csv"]),
        ("x = 1\n  !rm -r data\nfiles = !ls", ["rm -r data", "ls"]),
        ("!!rm a", ["rm a"]),
        ("%sx rm a\n%system rm b\nrm c\n%mv d e", ["rm a", "rm b", "rm c", "mv d e"]),
        ("%%bash\nrm a\nrm b", ["rm a\nrm b"]),
        ("%%script bash --bg\nrm a", ["rm a"]),
        ("for name in names:\n    !rm {name} \\\nb", ["rm $inserted  b"]),
        ("a != b\nrm = 1\nprint('!rm')\nrm_all(x)", []),
    ],
)
def test_shell_lines_of_a_cell_are_found(cell, lines):
    assert list(list_shell_lines(cell)) == lines


async def test_undo_hears_of_shell_lines_before_they_run(tmp_path):
    async with open_harness(tmp_path, "workspace") as here:
        (here.root / "kept.log").write_text("1")
        heard = []

        async def hear(path: Path | None, argv: Sequence[str], folder: str, is_confined: bool) -> None:
            heard.append((list(argv)[-1], (here.root / "kept.log").exists()))

        here.workspace.add_change_listener(hear)
        await here.run("!rm kept.log")
        assert heard == [("!rm kept.log", True), ("rm kept.log", True)]
        assert not (here.root / "kept.log").exists()


async def test_docs_list_every_key_and_tool(tmp_path):
    page = (ROOT / "docs" / "code.md").read_text()
    for key in Config.model_fields.keys() - {"tools"}:
        assert f"`{key}`" in page or f"      {key}: " in page, key
    async with open_harness(tmp_path, "full", select_top_k=1) as full:
        assert [tool.name for tool in collect_tools(CodeToolkit)] == [*full.tools]  # for `toolkit show`
        for name in ("call_plugin", *full.tools):
            assert f"`{name}(" in page
