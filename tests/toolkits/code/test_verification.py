"""Verification of cells: ordinary work goes on as ever, and no way around the rules gets anywhere."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import ROOT

pytest.importorskip("IPython")

from goose_like_toolkits.code import worker
from goose_like_toolkits.code.worker.verification.rewriter import quote_install_line

HERE = ROOT / "tests/fixtures/verification"
BLOCK = {"blocked_modules": ["os", "subprocess"]}
MODULES = """abc asyncio collections concurrent contextlib csv dataclasses datetime decimal enum fractions functools
    hashlib io itertools json math matplotlib numpy operator pandas pathlib random re shutil sqlite3
    statistics string sys textwrap threading time traceback typing warnings weakref"""
ALLOW = {"allowed_modules": MODULES.split()}


def sessions(name: str) -> dict[str, list[str]]:
    parts = (HERE / f"{name}.txt").read_text().split("\n=== ")[1:]
    heads = [part.partition("\n")[::2] for part in parts]
    return {head: body.rstrip("\n").split("\n---\n") for head, body in heads}


class Child:
    """A process with IPython, to which cells are given."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(Path(worker.__file__).parent, folder / "goose_like_kernel")
        (folder / "work").mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "child.py")],
            cwd=folder / "work",
            env={**os.environ, "PYTHONPATH": str(folder), "MPLBACKEND": "Agg"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, rules: dict[str, Any] | None, sessions: dict[str, list[str]]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"rules": rules, "sessions": sessions}) + "\n")
        self._process.stdin.flush()
        report: dict[str, Any] = json.loads(self._process.stdout.readline())
        return report

    def cells(self, rules: dict[str, Any] | None, *cells: str) -> dict[str, Any]:
        report: dict[str, Any] = self.run(rules, {"": list(cells)})[""]
        return report

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.kill()  # cells may have left threads
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    child = Child(tmp_path_factory.mktemp("verified"))
    yield child
    child.close()


def errors(report: dict[str, Any]) -> str:
    return "\n".join(report["errors"])


@pytest.mark.parametrize("rules", [BLOCK, ALLOW], ids=["block", "allow"])
def test_ordinary_cells_are_unaffected(child: Child, rules: dict[str, Any]) -> None:
    ordinary = sessions("ordinary")
    assert len(ordinary) > 40
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    free = child.run(None, ordinary)
    assert [name for name, report in free.items() if report["errors"]] == []
    assert child.run(rules, ordinary) == free


def test_every_bypass_works_without_rules(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    child = Child(tmp_path)  # some of them leave a process that is good for nothing
    free = child.run(None, sessions("to_system")) | child.run(None, sessions("opening"))
    child.close()
    assert [name for name, report in free.items() if not report["reached"]] == []


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("to_system", BLOCK),
        ("to_system", ALLOW),
        ("refused", BLOCK),
        ("refused", ALLOW),
        ("refused", {}),
        ("opening", {"blocked_functions": ["open"]}),
    ],
    ids=["block", "allow", "refused-block", "refused-allow", "refused-empty", "opening"],
)
def test_every_bypass_is_refused(child: Child, name: str, rules: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    verified = child.run(rules, sessions(name))
    assert [name for name, report in verified.items() if report["reached"]] == []
    # one in a thread has no error but what was printed
    assert [name for name, report in verified.items() if "Refused" not in errors(report) + report["output"]] == []


STARTS = [
    "shutil",
    "shutil.os",
    "[shutil][0]",
    "sys.modules['os']",
    "print",
    "type(shutil)",
    "f",
    "tempfile",
    "f()",
    "G",
]
STEPS = [
    "{}.os",
    "{}.system",
    "{}._os",
    "{}['os']",
    "{}.__globals__",
    "{}.__dict__",
    "{}.__class__",
    "{}.__self__",
    "getattr({}, 'os')",
    "getattr({}, 'system')",
    "vars({})",
    "operator.attrgetter('os.system')({})",
    "operator.methodcaller('system', 'x')({})",
    "(lambda m: m)({})",
    "(lambda m: m.os)({})",
    "[m for m in [{}]][0]",
    "next(m.system for m in [{}])",
    "(y := {})",
    "max([{}], key=id)",
    "functools.reduce(getattr, ['os', 'system'], {})",
    "functools.partial({}, 'x')",
    "copy.copy({})",
    "({} if 1 else 0)",
    "dict(a={})['a']",
    "types.SimpleNamespace(a={}).a",
    "__import__('os', fromlist=[{}])",
    "contextlib.nullcontext({}).enter_result",
]
ENDS = [
    "x = {}\nx('x')",
    "x = {}\nx.system('x')",
    "list(map({}, ['x']))",
    "list(map({}.system, ['x']))",
    "@{}\ndef h(): pass",
    "class C:\n    a = {}\nC.a('x')",
    "def h(a={}): return a('x')\nh()",
    "match {}:\n    case object(system=s):\n        s('x')",
    "match {}:\n    case o:\n        o.system('x')",
    "for o in [{}]:\n    o('x')",
    "with contextlib.nullcontext({}) as o:\n    o.os.system('x')",
    "try:\n    raise Exception({})\nexcept Exception as e:\n    e.args[0]('x')",
    "f'{{{}(1)}}'",
    "(await h2({}))('x')",
    "def h(a: {}): pass",
    "class C(metaclass={}): pass",
    "sorted(['x'], key={})",
]
PRELUDE = (
    "import shutil, tempfile, functools, copy, types, contextlib, sys, operator\n"
    "def f(): return shutil\n"
    "class G:\n    os = property(lambda s: shutil.os)\n    def __getattr__(s, n): return shutil.os\n    system = f\n"
    "async def h2(v): return v"
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(STARTS), st.lists(st.sampled_from(STEPS), max_size=4), st.sampled_from(ENDS))
def test_composed_bypasses_are_refused(child: Child, start: str, steps: list[str], end: str) -> None:
    expression = start
    for step in steps:
        expression = step.replace("{}", expression)
    cell = end.replace("{}", expression).replace("{{", "{").replace("}}", "}")
    report = child.cells(BLOCK, PRELUDE, f"{cell}\n", cell)
    assert report["reached"] == []


def test_composed_bypass_works_without_rules(child: Child) -> None:
    assert child.cells(None, PRELUDE, "list(map(functools.reduce(getattr, ['os', 'system'], shutil), ['x']))")[
        "reached"
    ]


def test_faults_have_original_line_numbers(child: Child) -> None:
    report = child.cells(BLOCK, "\n# a comment\n\nimport os\n\nx = 1\ny = eval('1')\n")
    assert report["errors"] == [
        "Refused: Error on line 4: import os => module 'os' is blocked: avoid it\n"
        "Error on line 7: y = eval('1') => 'eval' bypasses the rules: write the expression out; "
        "ast.literal_eval reads a literal"
    ]


def test_runtime_refusals_have_line_numbers(child: Child) -> None:
    report = child.cells(BLOCK, "import shutil\ndef f(m):\n\n    return m.os", "\n\nprint('before')\nf(shutil)")
    assert report["errors"] == ["Refused: Error on line 4: return m.os => module 'os' is blocked: avoid it"]
    assert "before" in report["output"]


def test_unverifiable_code_is_refused(child: Child) -> None:
    report = child.cells(BLOCK, "x = " + "+".join(["1"] * 600), "import os")
    assert "the code can't be verified" in report["errors"][0]
    assert "'os' is blocked" in report["errors"][1]


def test_other_errors_are_unchanged(child: Child) -> None:
    for cell in (
        "[].foo",
        "import no_such_module",
        "from json import no_such_name",
        "1 / 0",
        "def f(:",
        "no_such_name",
    ):
        free, verified = child.cells(None, cell), child.cells({}, cell)
        assert verified["errors"][0].partition(" (")[0] == free["errors"][0].partition(" (")[0]


def test_allowed_submodule_of_other_module(child: Child) -> None:
    rules = {"allowed_modules": ["concurrent.futures", "os.path"]}
    report = child.cells(rules, "import concurrent.futures\nimport os.path\nos.path.join('a', 'b')", "os.getcwd()")
    assert "a/b" in report["output"]
    assert report["errors"] == ["Refused: Error on line 1: os.getcwd() => " + report["errors"][0].partition(" => ")[2]]
    assert "module 'os' is not allowed: use one of concurrent.futures, os.path" in report["errors"][0]


def test_forbidden_module_can_be_allowed(child: Child) -> None:
    assert child.cells({"allowed_modules": ["gc"]}, "import gc\ngc.isenabled()")["errors"] == []
    assert "bypasses the rules" in errors(child.cells({}, "import gc"))


def test_blocked_functions_by_name_path_and_identity(child: Child) -> None:
    rules = {"blocked_functions": ["json.loads", "sleep", "pd.read_csv", "len"]}
    assert child.cells(rules, "import json, time\njson.dumps([1]), time.time() > 1")["errors"] == []
    for cell in (
        "import json\njson.loads('1')",
        "from json import loads as l\nl('1')",
        "import json.decoder\njson.loads",
        "import time\ntime.sleep(0)",
        "from time import sleep as s",
        "import pandas as pd\npd.read_csv('a')",
        "from pandas import read_csv",
        "list(map(len, [[]]))",
    ):
        assert "is blocked: avoid it" in errors(child.cells(rules, cell)), cell


def test_allowed_functions(child: Child) -> None:
    rules = {"allowed_functions": ["print", "range", "math.sqrt", "dumps"]}
    good = (
        "import math, json\ndef f(x): return x.real\nclass A: pass\n"
        "print(f(3), A() is None, math.sqrt(4), math.pi, json.dumps([1]), 'a'.upper())"
    )
    assert (
        child.cells(rules, good, "from math import sqrt\nsqrt(4), [i for i in range(2)]", "doubled(1)")["errors"] == []
    )
    for cell in ("len('')", "import math\nmath.sin(1)", "from math import cos", "x = sorted\nx([])", "[max][0](1, 2)"):
        assert "is not allowed: use one of" in errors(child.cells(rules, cell)), cell


def test_allowed_variables(child: Child) -> None:
    rules = {"allowed_variables": ["result", "df"]}
    good = "import math as m\nresult = [i for i in range(3)]\ndef f(a):\n    b = a\n    return b\ndf: int = f(1)"
    assert child.cells(rules, good)["errors"] == []
    for cell in ("x = 1", "for i in 'a': pass", "(y := 2)", "df = z = 1", "del q"):
        assert "is not allowed; allowed: df, result" in errors(child.cells(rules, cell)), cell


def test_plugins_are_callable_but_opaque(child: Child) -> None:
    assert "42" in child.cells(ALLOW, "doubled(21)")["output"]
    assert "only call plugins" in errors(child.cells(ALLOW, "doubled.system"))


def test_empty_module_list(child: Child) -> None:
    assert "module 'math' is not allowed: none is allowed" in errors(
        child.cells({"allowed_modules": []}, "import math")
    )


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("install pandas", "install pandas"),
        (
            "install -q --upgrade pandas>=2,<4 'x[a,b]==1.0' # for tables",
            "install -q --upgrade 'pandas>=2,<4' 'x[a,b]==1.0'",
        ),
        ("install x; id", None),
        ("install `id`", None),
        ("install $HOME", None),
        ("install {x}", None),
        ("install ../x", None),
        ("install x/y", None),
        ("install git+https://x", None),
        ("install x.whl", None),
        ("install -e x", None),
        ("install --target=x y", None),
        ("install 'x", None),
        ("uninstall x", None),
        ("", None),
    ],
)
def test_pip_install_lines(line: str, quoted: str | None) -> None:
    assert quote_install_line("pip", line) == quoted
    assert quote_install_line("time", line) is None


KERNEL = """
import json, sys
from ipykernel.kernelapp import IPKernelApp
from goose_like_kernel.verification.verifier import install_verification
app = IPKernelApp.instance(connection_file=sys.argv[1])
app.initialize([])
install_verification(app.shell, json.loads(sys.argv[2]))
app.start()
"""


def test_verification_in_a_real_kernel(tmp_path: Path) -> None:
    connect = pytest.importorskip("jupyter_client.connect")
    clients = pytest.importorskip("jupyter_client")
    shutil.copytree(Path(worker.__file__).parent, tmp_path / "goose_like_kernel")
    file, _ = connect.write_connection_file(str(tmp_path / "connection.json"))
    command = [sys.executable, "-P", "-c", KERNEL, file, json.dumps(BLOCK)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL) as process:
        client = clients.BlockingKernelClient(connection_file=file)
        client.load_connection_file()
        client.start_channels(hb=False)
        try:
            client.wait_for_ready(60)

            def run(code: str) -> tuple[dict[str, Any], str]:
                report = []

                def hear(message: dict[str, Any]) -> None:
                    content = message["content"]
                    report.append(content.get("text") or content.get("data", {}).get("text/plain") or "")

                return client.execute_interactive(code, output_hook=hear, timeout=60)["content"], "".join(report)

            content, report = run("import shutil, sys\nx = [1, 2]\nprint(len(x))\nsys.stdout.flush()\nx")
            assert (content["status"], report) == ("ok", "2\n[1, 2]")
            content, _ = run("\n\nprint('hi')\nshutil.os.system('x')")
            assert content["ename"] == "Refused"
            assert content["evalue"] == ("Error on line 4: shutil.os.system('x') => module 'os' is blocked: avoid it")
            assert content["traceback"] == [f"Refused: {content['evalue']}"]
            assert run("!ls")[0]["traceback"][0].startswith(
                "Refused: Error on line 1: !ls => magics and shell commands"
            )
            assert run("exit()")[0]["ename"] == "Refused"
            assert run("async def f(): return shutil\n(await f()).os")[0]["ename"] == "Refused"
            assert run("sys.stdin.shell")[0]["status"] == "error"
            assert run("sys.stdout.session")[0]["ename"] == "Refused"
            assert run("x + [3]")[1] == "[1, 2, 3]"
        finally:
            client.shutdown()
            process.wait(60)
            client.stop_channels()
