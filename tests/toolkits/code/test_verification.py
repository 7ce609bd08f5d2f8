"""The static check of cells: ordinary code passes, and names that the rules exclude are refused."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

pytest.importorskip("IPython")

from goose_like_toolkits.code import worker
from goose_like_toolkits.code.worker.install import quote_install_line
from goose_like_toolkits.code.worker.verification import Rules, list_faults
from IPython.core.inputtransformer2 import TransformerManager

FIXTURES = ROOT / "tests/fixtures/verification"
BLOCK = {"blocked_modules": ["os", "subprocess"]}
MODULES = """abc asyncio collections concurrent contextlib csv dataclasses datetime decimal enum fractions functools
    hashlib io itertools json math matplotlib numpy operator pandas pathlib random re shutil sqlite3
    statistics string sys textwrap threading time traceback typing warnings weakref"""
ALLOW = {"allowed_modules": MODULES.split()}


def read_sessions(name: str) -> dict[str, list[str]]:
    parts = (FIXTURES / f"{name}.txt").read_text().split("\n=== ")[1:]
    heads = [part.partition("\n")[::2] for part in parts]
    return {head: body.rstrip("\n").split("\n---\n") for head, body in heads}


def check(rules: dict[str, Any], *cells: str, **namespace: Any) -> list[tuple[int, str]]:
    """Check cells one after the other; a name that a cell binds is in the namespace of the next."""
    faults = []
    for cell in cells:
        tree = ast.parse(TransformerManager().transform_cell(cell))
        faults += list_faults(tree, Rules(rules), namespace)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                namespace[node.id] = object()
            elif isinstance(node, ast.FunctionDef):
                namespace[node.name] = object()
    return faults


def reasons(rules: dict[str, Any], *cells: str, **namespace: Any) -> str:
    return "\n".join(reason for _, reason in check(rules, *cells, **namespace))


@pytest.mark.parametrize("rules", [BLOCK, ALLOW, {}], ids=["block", "allow", "empty"])
def test_ordinary_cells_have_no_faults(rules: dict[str, Any]) -> None:
    ordinary = read_sessions("ordinary")
    assert len(ordinary) > 40
    assert [name for name, cells in ordinary.items() if check(rules, *cells)] == []


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
def test_excluded_names_are_refused(name: str, rules: dict[str, Any]) -> None:
    pytest.importorskip("pandas.io.common")
    assert [name for name, cells in read_sessions(name).items() if not check(rules, *cells)] == []


def test_faults_have_line_numbers() -> None:
    assert check(BLOCK, "# a comment\n\nimport os\n\nx = 1\ny = eval('1')\n") == [
        (3, "module 'os' is blocked: avoid it"),
        (6, "'eval' bypasses the rules: write the expression out; ast.literal_eval reads a literal"),
    ]


def test_a_name_that_a_cell_binds_is_no_builtin() -> None:
    assert check(BLOCK, "def help(): return 1\nhelp()", "help()") == []
    assert check(BLOCK, "input = 3\ninput + 1", "vars = input") == []


def test_modules_that_earlier_cells_imported_are_known() -> None:
    assert "module 'os' is blocked" in reasons(BLOCK, "o.getcwd()", o=os)
    assert "module 'os' is blocked" in reasons(BLOCK, "s.os.system", s=shutil)
    assert check(BLOCK, "o = {}\no.keys()", o=os) == []


def test_allowed_submodule_of_other_module() -> None:
    rules = {"allowed_modules": ["concurrent.futures", "os.path"]}
    assert check(rules, "import concurrent.futures\nimport os.path\nconcurrent.futures.Future\nos.path.join('a')") == []
    assert reasons(rules, "os.getcwd()", os=os) == "module 'os' is not allowed: use one of concurrent.futures, os.path"
    assert "module 'os' is not allowed" in reasons(rules, "import os")


def test_refused_module_can_be_allowed() -> None:
    assert check({"allowed_modules": ["importlib"]}, "import importlib\nimportlib.resources") == []
    assert "bypasses the rules" in reasons({}, "import importlib")


def test_empty_module_list() -> None:
    assert "module 'math' is not allowed: none is allowed" in reasons({"allowed_modules": []}, "import math")


def test_modules_of_the_current_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "json").mkdir()  # data, no package
    for cell in ("import mine", "from mine import a", "import ours.part"):
        assert "is in the current folder and is not checked: put its code into a cell" in reasons({}, cell), cell
    assert check({}, "import json") == []


@pytest.mark.parametrize(
    "cell",
    [
        "import json\njson.loads('1')",
        "import json as j\nf = j.loads",
        "from json import loads as l\nl('1')",
        "import json.decoder\njson.loads",
        "import time\ntime.sleep(0)",
        "from time import sleep as s",
        "import pandas as pd\npd.read_csv('a')",
        "from pandas import read_csv",
        "list(map(len, [[]]))",
    ],
)
def test_blocked_functions(cell: str) -> None:
    rules = {"blocked_functions": ["json.loads", "sleep", "pd.read_csv", "len"]}
    assert "is blocked: avoid it" in reasons(rules, cell)
    assert check(rules, "import json, time\njson.dumps([1]), time.time() > 1, 'a'.upper()") == []


@pytest.mark.parametrize(
    "cell",
    ["len('')", "import math\nmath.sin(1)", "from math import cos", "x = sorted\nx([])", "[max][0](1, 2)"],
)
def test_allowed_functions(cell: str) -> None:
    rules = {"allowed_functions": ["print", "range", "math.sqrt", "dumps"]}
    good = (
        "import math, json\ndef f(x): return x.real\nclass A: pass\n"
        "print(f(3), A() is None, math.sqrt(4), math.pi, json.dumps([1]), 'a'.upper())"
    )
    names = "from math import sqrt, pi\nsqrt(4), [i for i in range(2)]"
    assert check(rules, good, names, "doubled(1)", doubled=object()) == []
    assert check({"allowed_functions": ["DataFrame"]}, "import pandas as pd\npd.DataFrame.from_dict({})") == []
    assert "is not allowed: use one of" in reasons(rules, cell)


@pytest.mark.parametrize("kind", ["allowed_functions", "blocked_functions"])
def test_star_imports_are_refused_with_a_list_of_functions(kind: str) -> None:
    assert "`*` hides what is imported" in reasons({kind: ["print"]}, "from math import *")
    assert check(BLOCK, "from math import *") == []


@pytest.mark.parametrize("cell", ["x = 1", "for i in 'a': pass", "(y := 2)", "df = z = 1", "del q"])
def test_allowed_variables(cell: str) -> None:
    rules = {"allowed_variables": ["result", "df"]}
    good = "import math as m\nresult = [i for i in range(3)]\ndef f(a):\n    b = a\n    return b\ndf: int = f(1)"
    assert check(rules, good) == []
    assert "is not allowed; allowed: df, result" in reasons(rules, cell)


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
from goose_like_kernel.verification import install_verification
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
            shell_line = run("!ls")[0]["traceback"][0]
            assert shell_line.startswith("Refused: Error on line 1: !ls => magics and shell commands")
            assert run("exit()")[0]["ename"] == "Refused"
            assert run("open = 1")[0]["status"] == "ok"
            deep = run("y = " + "+".join(["1"] * 600))[0]
            assert deep["evalue"].startswith("the code can't be checked (RecursionError: ")
            assert run("1 / 0")[0]["ename"] == "ZeroDivisionError"
            assert run("import os")[0]["ename"] == "Refused"
            assert run("x + [3]")[1] == "[1, 2, 3]"
        finally:
            client.shutdown()
            process.wait(60)
            client.stop_channels()
