"""Plugins in a real IPython shell: files of varied style, real ones and invented ones."""

import json
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.loopback import Response, raw, threaded

WILD = ROOT / "tests/fixtures/taskweaver_plugins"
SHELL = ROOT / "tests/toolkits/code/kernel_double.py"


@dataclass
class KernelRun:
    """The results of the cells, the messages to the host, and new environment variables."""

    cells: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    environment: list[str]

    @property
    def values(self) -> list[Any]:
        assert [cell["error"] for cell in self.cells] == [None] * len(self.cells), self.cells
        return [cell["value"] for cell in self.cells]

    def list_messages(self, type: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == type]


def plugin(
    name: str,
    code: str = "",
    *,
    source: str = "",
    folder: Path = WILD,
    env: dict[str, str] | None = None,
    **config: Any,
) -> dict[str, Any]:
    file = folder / f"{code or name}.py"
    return {"name": name, "source": source or file.read_text(), "file": str(file), "config": config, "env": env or {}}


class KernelDouble:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.artifacts = folder / "artifacts"
        shutil.copytree(ROOT / "toolkits/goose_like_toolkits/code/worker", folder / "package" / "goose_like_kernel")
        (folder / "work").mkdir()

    def make_setup(self, *plugins: dict[str, Any], **variables: Any) -> dict[str, Any]:
        message = {
            "type": "setup",
            "session": "s1",
            "artifacts": str(self.artifacts),
            "plugins": plugins,
            "verify": None,
        }
        return {"take": {**message, "variables": variables}}

    def run(self, *steps: "str | dict[str, Any]", path: "Path | None" = None) -> KernelRun:
        command = [sys.executable, "-P", str(SHELL), str(self.folder / "package")]
        ended = subprocess.run(
            command,
            input=json.dumps(list_steps(*steps)),
            capture_output=True,
            text=True,
            cwd=self.folder / "work",
            env=make_environment(self.folder, path),
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return KernelRun(**json.loads(ended.stdout))

    def fork(self, server: "subprocess.Popen[str]", *steps: "str | dict[str, Any]") -> KernelRun:
        """Run the steps in a fork of a process that has imported the libraries for data."""
        request = {
            "package": str(self.folder / "package"),
            "steps": list_steps(*steps),
            "folder": str(self.folder / "work"),
            "env": make_environment(self.folder),
        }
        assert server.stdin
        assert server.stdout
        print(json.dumps(request), file=server.stdin, flush=True)
        return KernelRun(**json.loads(server.stdout.readline()))


def list_steps(*steps: "str | dict[str, Any]") -> list[dict[str, Any]]:
    return [{"cell": step} if isinstance(step, str) else step for step in steps]


def make_environment(folder: Path, path: "Path | None" = None) -> dict[str, str]:
    return {"PYTHONPATH": str(path or ""), "IPYTHONDIR": str(folder / "ipython"), "HOME": str(folder)}


@pytest.fixture
def kernel(tmp_path: Path) -> KernelDouble:
    return KernelDouble(tmp_path)


def changed(*plugins: dict[str, Any], removed: "list[str] | None" = None) -> dict[str, Any]:
    return {"take": {"type": "plugins", "plugins": plugins, "removed": removed or []}}


HEAD = "from taskweaver.plugin import Plugin, register_plugin\n"
CLASS = HEAD + "@register_plugin\nclass Odd(Plugin):\n    "
FUNCTION = HEAD + "@register_plugin\ndef "
USES_NEAR = """\
import near
from taskweaver.plugin import register_plugin

from . import near as same_near
from .near import Near


@register_plugin
def uses_near():
    return near.WORD, same_near.WORD, Near.__module__
"""


# --- plugins as they are


def test_seed_generator_loads_unchanged(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(
            plugin("random_generator", "seed_random_generator"), plugin("ranged", "random_generator", range=[7, 8])
        ),
        "result = random_generator(n=5)\nlen(result), all(1 <= number <= 100 for number in result)",
        "sorted(set(ranged(64)))",
    )
    assert result.values == ["(5, True)", "[7, 8]"]


def test_plugin_keeps_connection(kernel: KernelDouble) -> None:
    database = kernel.folder / "sales.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE sales (item TEXT, price REAL)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [("tea", 3.5), ("cake", 4.0)])
    result = kernel.run(
        kernel.make_setup(plugin("sql_pull_data", sqlite_db_path=str(database))),
        "sql_pull_data.db",
        "df, description = sql_pull_data('SELECT * FROM sales ORDER BY price')\nlist(df.item), description",
        "before = sql_pull_data.db; sql_pull_data(query='SELECT 1')\nsql_pull_data.db is before",
    )
    assert result.values == ["None", "(['tea', 'cake'], 'there are 2 rows in the result')", "True"]


def test_function_plugin_is_called_directly(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("word_count")),
        "word_count('a b a', top=1)",
        "import inspect, taskweaver_ext.plugin.word_count as module\ntype(word_count).__call__ is module.word_count",
        "str(inspect.signature(word_count))",
        "word_count.__doc__, isinstance(word_count, module.register_plugin.__globals__['Plugin'])",
    )
    assert result.values == [
        "{'a': 2}",
        "True",
        "'(text: str, top: int = 3) -> Dict[str, int]'",
        "('The words that occur most.', True)",
    ]


def test_plugin_object_is_not_wrapped(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("standalone")),
        "standalone('x')",
        "import taskweaver_ext.plugin.standalone as module\n"
        "type(standalone) is module.Standalone, type(standalone).__mro__[1] is module.Plugin",
        "vars(standalone).keys() == {'name', 'ctx', 'config'}, type(standalone).__call__ is module.Standalone.__call__",
    )
    assert result.values == ["'X'", "(True, True)", "(True, True)"]


def test_plugins_of_one_file_share_nothing(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("count_a", "counter"), plugin("count_b", "counter", start=10)),
        "count_a(), count_a(), count_b()",
        "type(count_a) is type(count_b)",
    )
    expected = [
        ("count_a", 1, 1, "taskweaver_ext.plugin.count_a"),
        ("count_a", 2, 2, "taskweaver_ext.plugin.count_a"),
        ("count_b", 11, 1, "taskweaver_ext.plugin.count_b"),
    ]
    assert result.values == [repr(tuple(expected)), "False"]


def test_dataclasses_and_pickles(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("shapes"), plugin("context", source=FUNCTION + "context(): return {}")),
        "import copy, pickle\nshape = shapes((1, 2))\npickle.loads(pickle.dumps(shape)) == shape",
        "again = pickle.loads(pickle.dumps(shapes))\n"
        "again is not shapes, again((1, 2)) == shape, again.ctx is shapes.ctx",
        "copy.deepcopy(shapes).ctx is shapes.ctx",
        "context(), pickle.loads(pickle.dumps(shapes.ctx)) is shapes.ctx",
    )
    assert result.values == ["True", "(True, True, True)", "True", "({}, True)"]


def test_async_generic_and_mixin_plugins(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("waits"), plugin("typed")),
        "await waits(3, times=2)",
        "typed(1), typed(2), typed.is_mixed, typed.kind",
    )
    assert result.values == ["3", "(None, 1, True, 'txt')"]


def test_noisy_plugin_breaks_nothing(kernel: KernelDouble) -> None:
    result = kernel.run(kernel.make_setup(plugin("restless")), "restless()", "restless()")
    assert result.values == ["'the second'"] * 2
    assert result.cells[0]["out"].startswith("restless is here\nand complains\n")
    assert "here" not in result.cells[1]["out"]  # it is loaded once


def test_modules_beside_a_plugin_are_importable(kernel: KernelDouble) -> None:
    result = kernel.run(kernel.make_setup(plugin("uses_near", source=USES_NEAR)), "uses_near()")
    assert result.values == ["('one', 'one', 'taskweaver_ext.plugin.near')"]
    assert not (WILD / "__pycache__" / "near.cpython-311.pyc").exists()


def test_plugin_does_not_import_itself(kernel: KernelDouble) -> None:
    file = kernel.folder / "no_such_reader.py"
    file.write_text((WILD / "reads_images.py").read_text())
    result = kernel.run(kernel.make_setup(plugin("no_such_reader", folder=kernel.folder)), "no_such_reader('x')")
    assert "ImportError: Please install no_such_reader" in result.list_messages("failed")[0]["error"]


def test_plugin_does_not_import_other_plugins(kernel: KernelDouble) -> None:
    (kernel.folder / "no_such_reader.py").write_text((WILD / "standalone.py").read_text())
    (kernel.folder / "no_such_reader.yaml").touch()
    reads = plugin("reads", source=(WILD / "reads_images.py").read_text(), folder=kernel.folder)
    result = kernel.run(kernel.make_setup(reads), "reads('x')")
    assert "ImportError: Please install no_such_reader" in result.list_messages("failed")[0]["error"]


def test_script_registers_nothing(kernel: KernelDouble) -> None:
    result = kernel.run(kernel.make_setup(), f"%run {WILD / 'standalone.py'}")
    assert result.cells[0]["out"] == "no registry for loading plugin\nHELLO\n"


# --- what fails


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reads_images", "ImportError: Please install no_such_reader with `pip install no_such_reader`."),
        ("registers_twice", "duplicated plugin impl registration"),
        ("needs_key", "KeyError: 'key'"),
        ("near", "nothing is registered"),
    ],
)
def test_failure_disables_one_plugin(kernel: KernelDouble, name: str, expected: str) -> None:
    result = kernel.run(
        kernel.make_setup(plugin(name), plugin("standalone")),
        f"before = standalone('a')\n{name}()",
        f"standalone(before), '{name} is off' if {name} else ''",
        f"{name}()",
    )
    [failed] = result.list_messages("failed")  # once, although it was named again
    assert failed["plugin"] == name
    assert expected in failed["error"]
    assert [cell["error"] and cell["error"].partition(":")[0] for cell in result.cells] == [
        "NameError",
        None,
        "NameError",
    ]
    assert expected in result.cells[2]["error"]
    assert f"the plugin {name!r} is off" in result.cells[2]["error"]
    assert result.list_messages("names") == [{"type": "names", "names": ["before"]}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import sys\nsys.exit(3)", "SystemExit: 3"),
        ("raise BaseException('all')", "BaseException: all"),
        ("class Stop(GeneratorExit): pass\nraise Stop('it')", "Stop: it"),
        ("x = (\n", "SyntaxError"),
        ("x = '\0'", "null bytes"),
        (HEAD + "register_plugin(3)", "a class of plugins or a function, not 3"),
        (CLASS + "pass", "abstract"),
        (CLASS + "def __init__(self): pass", "TypeError"),
        (CLASS + "def __call__(self): pass\n    __init__ = lambda *a: exit(4)", "SystemExit: 4"),
        ("def f(): f()\nf()", "RecursionError"),
        ("class E(Exception):\n    def __str__(self): raise E\nraise E", "E: <exception str() failed>"),
    ],
)
def test_any_load_error_spares_the_cell(kernel: KernelDouble, source: str, expected: str) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("odd", source=source)), "import copy\ncopy.deepcopy(odd)\n1 + 1", "odd.config"
    )
    assert result.cells[0]["value"] == "2"
    assert expected in result.list_messages("failed")[0]["error"]
    assert result.cells[1]["error"].startswith("AttributeError: the plugin 'odd' is off")


def test_load_error_is_short(kernel: KernelDouble) -> None:
    source = "def deep(n):\n    return deep(n - 1) if n else 1 / 0\n\ndeep(30)\n"
    result = kernel.run(kernel.make_setup(plugin("deep", source=source, folder=Path("/nowhere"))), "deep")
    lines = result.list_messages("failed")[0]["error"].splitlines()
    assert lines[:2] == ['  File "/nowhere/deep.py", line 4, in <module>', "    deep(30)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert len(lines) < 16
    assert "loading.py" not in "".join(lines)


def test_import_error_is_retried(kernel: KernelDouble) -> None:
    library = kernel.folder / "work" / "no_such_reader.py"
    result = kernel.run(
        kernel.make_setup(plugin("reads_images")),
        "import sys; sys.path.append(''); reads_images('x')",
        "'reads_images'",
        {"write": [str(library), "def read(path): return path.upper()"]},
        "reads_images('x')",
    )
    assert [message["type"] for message in result.messages] == ["failed", "names", "reloaded"]
    assert "install the missing package" in result.cells[0]["error"]
    assert result.cells[2]["value"] == "'X'"


def test_call_error_shows_plugin_lines(kernel: KernelDouble) -> None:
    source = "\ufeff" + CLASS + "def __call__(self):\n        return 1 / 0  # as ever\n"
    result = kernel.run(kernel.make_setup(plugin("odd", source=source, folder=Path("/nowhere"))), "odd()")
    assert result.cells[0]["error"] == "ZeroDivisionError: division by zero"
    assert "return 1 / 0  # as ever" in result.cells[0]["out"]
    assert "/nowhere/odd.py:5" in result.cells[0]["out"]
    assert "goose_like_kernel" not in result.cells[0]["out"]


def test_interrupted_load_is_retried(kernel: KernelDouble) -> None:
    source = (
        "import os, signal, pathlib\nfrom taskweaver.plugin import register_plugin\n"
        "if not os.path.exists('seen'):\n"
        "    pathlib.Path('seen').touch()\n    signal.raise_signal(signal.SIGINT)\n"
        "@register_plugin\ndef slow(): return 'there'\n"
    )
    result = kernel.run(kernel.make_setup(plugin("slow", source=source)), "slow()", "slow()")
    assert [cell["error"] for cell in result.cells] == ["KeyboardInterrupt: ", None]
    assert result.cells[1]["value"] == "'there'"
    assert result.list_messages("failed") == []


# --- the real package


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A package `taskweaver` with the same hooks for loaders as the real one."""
    folder = tmp_path / "real"
    files = {
        "__init__": "",
        "plugin/__init__": "from .register import register_plugin, test_plugin\nfrom .base import Plugin\n",
        "plugin/base": "class Plugin:\n    is_real = True\n    def __init__(self, name, ctx, config):\n"
        "        self.name, self.ctx, self.config = name, ctx, config\n"
        "    def get_env(self, name):\n        return self.ctx.get_env(self.name, name)\n",
        "plugin/context": "import contextlib\nclass TestPluginContext:\n    def __init__(self):\n"
        "        self._env, self._session_var, self._artifacts = {}, {}, [{'file_name': 'report.txt'}]\n"
        "    def add_artifact(self, **_):\n        return 'test_artifact_id_0'\n"
        "    def get_env(self, plugin, name):\n        return self._env[plugin + '_' + name]\n"
        "    def get_session_var(self, name, default=None):\n        return self._session_var.get(name, default)\n"
        "@contextlib.contextmanager\ndef temp_context():\n    yield TestPluginContext()\n",
        "plugin/register": "register_plugin_inner = register_plugin_test_inner = None\n"
        "def register_plugin(it):\n    register_plugin_inner(it)\n    return it\n"
        "def test_plugin(name=None, description=None):\n    def inner(it):\n"
        "        register_plugin_test_inner(name or it.__name__, description or '', it)\n        return it\n"
        "    return inner\n",
    }
    for name, text in files.items():
        file = folder / "taskweaver" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_real_taskweaver_is_used(kernel: KernelDouble, real: Path) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter", env={"KEY": "k1"}), plugin("registers_twice"), user="ada"),
        "reporter.is_real, reporter(), reporter.get_env('KEY'), reporter.user()",
        {"take": {"type": "test", "plugin": "reporter"}},
        "from taskweaver.plugin import register\nregister.register_plugin_inner",
        "registers_twice()",
        path=real,
    )
    assert result.cells[0]["value"] == "(True, 'obj_1_txt_0000', 'k1', ('ada', None))"
    assert [test["error"] is None for test in result.list_messages("tested")[0]["tests"]] == [True, True, False, False]
    assert result.cells[1]["value"] == "None"
    assert "duplicated plugin impl registration" in result.cells[2]["error"]


def test_folder_named_taskweaver_is_ignored(kernel: KernelDouble) -> None:
    (kernel.folder / "work" / "taskweaver").mkdir()
    result = kernel.run(
        "import sys; sys.path.insert(0, '')", kernel.make_setup(plugin("standalone")), "standalone('x')"
    )
    assert result.cells[1]["value"] == "'X'"


def test_all_import_names_exist(kernel: KernelDouble) -> None:
    result = kernel.run(
        "from taskweaver.plugin import *\nimport taskweaver.plugin as package\n"
        "from taskweaver.plugin import Plugin, context, register_plugin, test_plugin\n"
        "from taskweaver.plugin.context import ArtifactType, LogErrorLevel, PluginContext\n"
        "from taskweaver.plugin.context import TestPluginContext, temp_context\n"
        "from taskweaver.plugin.register import register_plugin as same\n"
        "from taskweaver.plugin.utils import make_api_call\n"
        "same is register_plugin is package.register_plugin, package.base.Plugin is Plugin",
        "with temp_context('.') as ctx:\n    id, path = ctx.create_artifact_path('n', 'f.txt', 'txt', 'd')\n"
        "    ctx.log('info', 'tag', 'text')\n"
        "isinstance(ctx, TestPluginContext), ctx.session_id, ctx._artifacts, ctx._logs, path.endswith('/f.txt')",
        "import os; os.listdir()",
        "import taskweaver.planner",
    )
    kept = [{"file_name": "f.txt", "id": "test_artifact_id_0", "name": "n", "type": "txt", "desc": "d"}]
    assert [cell["value"] for cell in result.cells[:3]] == [
        "(True, True)",
        repr((True, "test", kept, [("info", "tag", "text")], True)),
        "[]",
    ]
    assert "No module named 'taskweaver.planner'" in result.cells[3]["error"]


# --- when plugins are loaded, and when not


def test_only_named_plugins_are_loaded(kernel: KernelDouble) -> None:
    marks = [
        plugin(name, source=f"print('load {name}')\n" + CLASS + "def __call__(self): return self.name")
        for name in ("one", "two", "three", "four", "five")
    ]
    result = kernel.run(
        kernel.make_setup(*marks),
        "'two' + str(dict(three=1).get('four'))  # one",
        "two = 2",
        "def later(): return one()\n",
        "later(), one(), two",
        "%timeit -n1 -r1 three()",
        "f'{four()}', [five for five in [1]]",
    )
    assert [cell["error"] for cell in result.cells] == [None] * 6
    loads = [[line for line in cell["out"].splitlines() if line.startswith("load")] for cell in result.cells]
    assert loads == [[], [], ["load one"], [], ["load three"], ["load five", "load four"]]
    assert result.cells[3]["value"] == "('one', 'one', 2)"


def test_user_variable_hides_plugin(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("counter")),
        "kept = counter; counter()[1]",
        "counter = 5",
        "counter",
        changed(plugin("counter")),
        "counter",
        "del counter",
        "counter()[1], kept()[1], counter is kept",
        "del counter",
        "counter()[1]",
    )
    assert [cell["value"] for cell in result.cells] == ["1", "5", "5", "5", "None", "(1, 2, False)", "None", "2"]


def test_reset_keeps_plugins(kernel: KernelDouble) -> None:
    result = kernel.run(kernel.make_setup(plugin("counter")), "x = counter()[1]", "%reset -f", "counter()[1]")
    assert result.cells[2]["value"] == "2"
    assert [message["names"] for message in result.list_messages("names")] == [["x"], []]


def test_changed_plugin_is_replaced_at_next_cell(kernel: KernelDouble) -> None:
    def version(text: str, state: str = "pass") -> dict[str, Any]:
        source = f"{CLASS}\n    def __call__(self):\n        {state}\n        return {text!r}"
        return plugin("odd", source=source)

    result = kernel.run(
        kernel.make_setup(version("first")),
        "def call(): return odd()\ncall()",
        changed(version("second", "self.x = 1")),
        "call()",
        changed(version("third")),
        "call()",
        changed(plugin("odd", source="import absent_library")),
        "call()",
        changed(version("fourth")),
        "call()",
        "call()",
    )
    assert [cell["value"] for cell in result.cells] == [
        "'first'",
        "'second'",
        "'third'",
        "None",
        "'fourth'",
        "'fourth'",
    ]
    assert [message["plugin"] for message in result.list_messages("reloaded")] == ["odd"] * 3
    assert "No module named 'absent_library'" in result.list_messages("failed")[0]["error"]


def test_sibling_modules_are_reloaded(kernel: KernelDouble) -> None:
    near = kernel.folder / "near.py"
    near.write_text("WORD = 'one'\nclass Near: pass")
    using = plugin("uses_near", source=USES_NEAR, folder=kernel.folder)
    result = kernel.run(
        kernel.make_setup(using),
        "uses_near()[:2]",
        {"write": [str(near), "WORD = 'two'\nclass Near: pass"]},
        changed(using),
        "uses_near()[:2]",
    )
    assert result.values == ["('one', 'one')", "('two', 'two')"]
    assert not (kernel.folder / "__pycache__").exists()


def test_removed_plugin_is_undefined(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("standalone"), plugin("counter")),
        "mine = standalone; standalone('x'); counter",
        "counter = 1",
        changed(removed=["standalone", "counter", "never_seen"]),
        "mine('a'), counter",
        "standalone('x')",
    )
    assert result.cells[2]["value"] == "('A', 1)"
    assert result.cells[3]["error"] == "NameError: name 'standalone' is not defined"


def test_changed_names_are_sent(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("counter")),
        "1",
        "a, _b = 1, 2; globals()[1] = 2",
        "a = 3; counter()",
        "import json",
        "del a",
        "1",
    )
    assert [message["names"] for message in result.list_messages("names")] == [["a"], ["a", "json"], ["json"]]


# --- the context


def test_artifacts_are_written(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter")),
        "import pandas as pd\nreporter(), reporter(), reporter('t.csv', 'df', pd.DataFrame({'a': [1, 2]}))",
        "reporter('d.svg', 'svg', '<svg/>', desc='a circle')",
        "[reporter(f'{kind}.x', kind, value) for kind, value in"
        " {'html': '<p>\u00e4</p>', 'chart': '{}', 'file': b'\\0'}.items()]",
        "reporter.path()",
        "reporter.where()",
    )
    assert result.values[:3] == [
        "('obj_1_txt_0000', 'obj_1_txt_0001', 'obj_1_df_0002')",
        "'obj_2_svg_0000'",
        "['obj_3_html_0000', 'obj_3_chart_0001', 'obj_3_file_0002']",
    ]
    assert result.values[4] == "('local', 's1', 'exec-5', 5)"
    own = kernel.artifacts / "obj_4_file_0000_own.bin"
    assert result.values[3] == repr(("obj_4_file_0000", str(own)))
    response_text = {Path(message["file"]).name: message for message in result.list_messages("artifact")}
    assert {name: (kernel.artifacts / name).read_bytes() for name in response_text} == {
        "obj_1_txt_0000_report.txt": b"all is well",
        "obj_1_txt_0001_report.txt": b"all is well",
        "obj_1_df_0002_t.csv": b"a\n1\n2\n",
        "obj_2_svg_0000_d.svg": b"<svg/>",
        "obj_3_html_0000_html.x": "<p>\u00e4</p>".encode(),
        "obj_3_chart_0001_chart.x": b"{}",
        "obj_3_file_0002_file.x": b"\0",
        "obj_4_file_0000_own.bin": b"\0\1",
    }
    assert response_text["obj_2_svg_0000_d.svg"] == {
        "type": "artifact",
        "id": "obj_2_svg_0000",
        "name": "report",
        "file": str(kernel.artifacts / "obj_2_svg_0000_d.svg"),
        "kind": "svg",
        "description": "a circle",
    }
    assert response_text["obj_1_txt_0000_report.txt"]["description"] == "all is well"
    assert response_text["obj_1_df_0002_t.csv"]["description"] == "table of 2 rows with columns a"


def test_images_of_all_kinds(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter")),
        "import io, matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfrom PIL import Image\n"
        "red = Image.new('RGB', (2, 3), 'red')\nbuffer = io.BytesIO(); red.save(buffer, 'PNG')\n"
        "red.save('red.png')\nfigure, axes = plt.subplots()\n"
        "for name, value in {'pil.jpg': red, 'pil': red, 'bytes.png': buffer.getvalue(),"
        " 'path.png': 'red.png', 'figure.png': figure, 'axes': axes}.items():\n"
        "    reporter(name, 'image', value)",
        "reporter('x.png', 'image', [1])",
    )
    assert result.cells[0]["error"] is None
    kinds = {Path(message["file"]).name.split("_")[-1]: message["file"] for message in result.list_messages("artifact")}
    starts = {name: Path(file).read_bytes()[:4] for name, file in kinds.items()}
    assert starts.pop("pil.jpg")[:2] == b"\xff\xd8"
    assert set(starts.values()) == {b"\x89PNG"}
    assert len(starts) == 5
    assert "bytes, a path, a Pillow image or a matplotlib figure, not list" in result.cells[1]["error"]


@pytest.mark.parametrize("name", ["../up.txt", "/etc/x", "a/b", "a\\\\b", "", ".", "..", "nul\\0"])
def test_artifact_names_have_no_folders(kernel: KernelDouble, name: str) -> None:
    result = kernel.run(kernel.make_setup(plugin("reporter")), f"reporter('{name}')", f"reporter.path('{name}')")
    assert ["not a file name" in cell["error"] for cell in result.cells] == [True, True]
    assert result.list_messages("artifact") == []
    assert list(kernel.artifacts.iterdir()) == []


def test_wrong_artifact_type_is_an_error(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter")),
        "reporter(kind='sound')",
        "reporter(kind='../x')",
        "reporter(value={})",
        "reporter(kind='df')",
    )
    assert [cell["error"].partition(";")[0] for cell in result.cells] == [
        "ValueError: no artifact is of type 'sound'",
        "ValueError: no artifact is of type '../x'",
        "TypeError: an artifact of type 'txt' is text or bytes, not dict",
        "TypeError: an artifact of type 'df' is a data frame, and str has no to_csv",
    ]
    assert result.list_messages("artifact") == []


def test_threads_get_unique_ids(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter")),
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(16) as pool: ids = list(pool.map(lambda n: reporter(value=str(n)), range(200)))\n"
        "len(set(ids))",
    )
    assert result.values == ["200"]
    texts = {Path(message["file"]).read_text() for message in result.list_messages("artifact")}
    assert texts == {str(number) for number in range(200)}


def test_next_kernel_overwrites_nothing(kernel: KernelDouble) -> None:
    first = kernel.run(kernel.make_setup(plugin("reporter")), "reporter()")
    second = kernel.run(kernel.make_setup(plugin("reporter")), "reporter(value='later')")
    assert first.values == ["'obj_1_txt_0000'"]
    assert second.values == ["'obj_1_txt_0001'"]
    assert (kernel.artifacts / "obj_1_txt_0000_report.txt").read_text() == "all is well"


def test_session_variables_logs_and_marks(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter"), user=7),
        "reporter.user()",
        {"take": {"type": "variables", "variables": {"user": "ada", "depth": 2}}},
        "reporter.user()",
        "reporter.say('low on tea')",
    )
    marked = "{{DELIMITER_START_TEMPORAL}}low on tea{{DELIMITER_END_TEMPORAL}}"
    assert result.values == ["('7', None)", "('ada', None)", repr(marked)]
    assert result.list_messages("log") == [
        {"type": "log", "level": "warning", "tag": "Plugin-reporter", "text": "low on tea"}
    ]


def test_plugin_environment_is_passed(kernel: KernelDouble) -> None:
    result = kernel.run(
        kernel.make_setup(plugin("reporter", env={"KEY": "k1"}), plugin("other", "reporter")),
        "reporter.get_env('KEY')",
        "other.get_env('KEY')",
        changed(plugin("reporter", env={"KEY": "k2"})),
        "reporter.get_env('KEY')",
    )
    assert [cell["value"] for cell in result.cells] == ["'k1'", "None", "'k2'"]
    assert "'PLUGIN_other_KEY' is not set" in result.cells[1]["error"]
    assert [name for name in result.environment if name.startswith("PLUGIN")] == []


def test_make_api_call_requests(kernel: KernelDouble) -> None:
    refused = Response(404, {"content-type": "text/plain; charset=latin-1"}, ["nö".encode("latin-1")])
    with threaded([raw(b"fine"), raw(b"", kind="text/plain"), refused, Response(is_reset=True)]) as server:
        call = f"json.loads(make_api_call('http://127.0.0.1:{server.port}/a/', "
        result = kernel.run(
            "import json\nfrom taskweaver.plugin.utils import make_api_call",
            call + "'b?c=1', query_params={'q': 'x y', 'n': [1, 2]}, headers={'X-Key': 'k'}))",
            call + "method='POST', body={'a': 1}, query_params='{\"z\": 3}'))",
            call + "'/top', method='PUT', body='plain'))",
            call + "timeout_secs=9))['status']",
            call + "'file:///etc/passwd'))['status']",
            call + "method='TRACE'))",
            call + "query_params='no json'))",
        )
    values = [cell["value"] for cell in result.cells]
    assert values[1] == repr({"status": "success", "status_code": 200, "response": "fine"})
    assert values[2] == repr({"status": "success", "status_code": 200, "response": ""})
    assert values[3] == repr({"status": "success", "status_code": 404, "response": "nö"})
    assert values[4:6] == ["'error'", "'error'"]
    assert [cell["error"] for cell in result.cells[6:]] == [
        "ValueError: no method 'TRACE'; the methods are: GET, POST, PUT, DELETE",
        "ValueError: query_params is a dictionary, or a JSON object",
    ]
    first, second, third = ((asked.head.decode(), asked.body) for asked in server.requests[:3])
    assert first[0].startswith("GET /a/b?c=1&q=x+y&n=1&n=2 HTTP")
    assert "x-key: k" in first[0].lower()
    assert second[0].startswith("POST /a/?z=3 HTTP")
    assert "content-type: application/json" in second[0].lower()
    assert json.loads(second[1]) == {"a": 1}
    assert third[0].startswith("PUT /top HTTP")
    assert third[1] == b"plain"


# --- a plugin's own tests


def test_plugin_tests_run(kernel: KernelDouble) -> None:
    def tried(name: str) -> dict[str, Any]:
        return {"take": {"type": "test", "plugin": name}}

    named = [plugin("reporter", env={"KEY": "k1"}), plugin("waits"), plugin("standalone"), plugin("needs_key")]
    result = kernel.run(kernel.make_setup(*named, user="ada"), "waits", *[tried(one["name"]) for one in named], "1")
    tested = {message["plugin"]: message["tests"] for message in result.list_messages("tested")}
    assert [(test["name"], test["description"]) for test in tested["reporter"]] == [
        ("it writes", "a report is an artifact"),
        ("it knows its key", "The environment comes with the plugin."),
        ("test_wrong", ""),
        ("test_leaves", ""),
    ]
    assert [test["error"] for test in tested["reporter"]][:2] == [None, None]
    wrong, leaves = (test["error"].splitlines() for test in tested["reporter"][2:])
    assert wrong[0].endswith("in test_wrong")
    assert wrong[1] == '    assert report.name == "somebody else"'
    assert wrong[-1] == "AssertionError"
    assert leaves[-1] == "SystemExit: 3"
    assert [test["error"] for test in tested["waits"]] == [None]
    assert tested["standalone"] == []
    assert tested["needs_key"] == []
    assert result.list_messages("artifact") == []
    assert [cell["error"] for cell in result.cells] == [None, None]
