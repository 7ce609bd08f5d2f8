"""The code library: its outline, and saving drafts without a change to other lines."""

import ast

import pytest
from goose_like_toolkits.boss.library.code_library import build_outline, get_module_name, save_draft
from hypothesis import example, given
from hypothesis import strategies as st

from goose_like.toolkit import ToolError

LIBRARY = '''#!/usr/bin/env python
"""Numbers."""

from __future__ import annotations

import math
from os import path

LIMIT: int = 10
table, _hidden = {key: 1 for key in ""}, 1
table["x"] = 2
table[max(key for key in table)], [first, *rest] = 3, "abc"


# The mean.
@cache
def mean(values: list[float], *, start=0) -> float:
    """The mean of values.

    Raises when there are none.
    """
    return sum(values, start) / len(values)  # by hand: kept


def _private(): ...


@dataclass(frozen=True)
class Point(Base, metaclass=Meta):
    """A point
    in the plane.

    And more.
    """

    x: float
    y: float = 0.0
    _z: int = 1

    def __init__(self, x): ...

    def __repr__(self): ...

    @property
    def size(self) -> float:
        """Its size."""

    async def go(self): ...

if True:
    guarded = 1
'''

OUTLINE = '''LIMIT: int
table = ...
first = ...
rest = ...
@cache
def mean(values: list[float], *, start=0) -> float:
    """The mean of values."""
@dataclass(frozen=True)
class Point(Base, metaclass=Meta):
    """A point in the plane."""
    x: float
    y: float = 0.0
    def __init__(self, x):
    @property
    def size(self) -> float:
        """Its size."""
    async def go(self):'''


def show_outline(source, *detail):
    return "\n".join(build_outline(source, *detail))


def test_outline():
    assert show_outline(LIBRARY) == OUTLINE
    assert show_outline(LIBRARY, "names") == "LIMIT\ntable\nfirst\nrest\nmean\nPoint"
    signatures = show_outline(LIBRARY, "signatures")
    assert "Its size" not in signatures
    assert "def mean(values: list[float], *, start=0) -> float:" in signatures
    assert show_outline("") == ""
    assert show_outline("\ufeffx = 1\r\n") == "x = ..."


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ndef f(:\n", "[the file has a syntax error in line 2"),
        ("x = '\0'", "[the file "),
        ("return 1", "line 1"),
    ],
)
def test_syntax_error_is_reported_with_its_line(source, message):
    assert message in show_outline(source)
    with pytest.raises(ToolError, match=r"the library .*; correct it"):
        save_draft(source, "y = 2")
    with pytest.raises(ToolError, match=r"the draft .*; correct it"):
        save_draft("", source)


def test_new_definitions_go_to_the_end_and_new_imports_to_the_top():
    draft = "import math, json\nfrom os import path, sep\n\nTWO = 2\n\n\n# Twice.\ndef twice(n):\n    return TWO * n"
    text = save_draft(LIBRARY, draft)
    assert text == LIBRARY.replace(
        "from os import path\n", "from os import path\nimport json\nfrom os import sep\n"
    ) + ("\n\nTWO = 2\n\n\n# Twice.\ndef twice(n):\n    return TWO * n\n")
    assert save_draft(text, draft) == text


@pytest.mark.parametrize(
    ("source", "draft", "result"),
    [
        ("", "def f(): ...\n", "def f(): ...\n"),
        ("", "import os\nx = os\n", "import os\n\n\nx = os\n"),
        ("x = 1", "y = 2", "x = 1\n\n\ny = 2\n"),
        ("import os", "import sys\ny = 2", "import os\nimport sys\n\n\ny = 2\n"),
        ('"""Doc."""\nx = 1\n', "import os\ny = 2", '"""Doc."""\n\nimport os\n\nx = 1\n\n\ny = 2\n'),
        ("#!/bin/x\n# note\nx = 1\n", "import os\ny = 2", "#!/bin/x\n\nimport os\n\n# note\nx = 1\n\n\ny = 2\n"),
        (
            '"""Doc."""\nimport os\nx = 1\n',
            "from __future__ import annotations\ny = 2",
            '"""Doc."""\n\nfrom __future__ import annotations\n\nimport os\nx = 1\n\n\ny = 2\n',
        ),
        (
            "",
            "from __future__ import annotations\nfrom PIL import Image\ny = 2",
            "from __future__ import annotations\nfrom PIL import Image\n\n\ny = 2\n",
        ),
        ("import os\n", "import os.path\ny = 2", "import os\nimport os.path\n\n\ny = 2\n"),
        ("x = 1\r\n", "def f():\n    return 1\n", "x = 1\r\n\r\n\r\ndef f():\r\n    return 1\r\n"),
        ("\ufeffx = 1\n", "y = 2\n", "\ufeffx = 1\n\n\ny = 2\n"),
        ("x = 1\n", "x = 1", "x = 1\n"),
        ("x = 1", "from library import x\nx = 1", "x = 1"),
        ("x = 1\n", "from library import x\ny = x", "x = 1\n\n\ny = x\n"),
    ],
)
def test_places_of_definitions_and_imports(source, draft, result):
    assert save_draft(source, draft, module="library") == result


def test_replace_changes_only_the_lines_of_the_definition():
    two = save_draft("x = 1\n\ny = 2\n", "a = 1\nb = a\ny = b", replace=True)
    assert two == "x = 1\n\na = 1\n\n\nb = a\n\n\ny = b\n"
    draft = "STEP = 2\n\n# By hand.\n@other\ndef mean(values, step=STEP):\n    return step\n"
    with pytest.raises(ToolError, match="the library has another 'mean'; call save_code with replace=true"):
        save_draft(LIBRARY, draft)
    start, end = LIBRARY.index("# The mean."), LIBRARY.index("\n\n\ndef _private")
    new = "STEP = 2\n\n\n# By hand.\n@other\ndef mean(values, step=STEP):\n    return step"
    replaced = save_draft(LIBRARY, draft, replace=True)
    assert replaced == LIBRARY[:start] + new + LIBRARY[end:]
    assert save_draft(replaced, draft, replace=True) == replaced


@pytest.mark.parametrize(
    ("source", "draft", "result"),
    [
        ("import bad\n\n\ndef f():\n    return bad.x\n", "def f(): ...", "def f(): ...\n"),
        ("import a, bad\ny = a\nx = bad\n", "x = 1", "import a\ny = a\nx = 1\n"),
        ("from m import (\n    a,\n    bad,\n)\ny = a\nx = bad\n", "x = 1", "from m import a\ny = a\nx = 1\n"),
        ("import bad\nimport side\nx = bad\n", "x = 1", "import side\nx = 1\n"),  # nothing used it before
        ("import bad\nx = bad\ny = bad\n", "x = 1", "import bad\nx = 1\ny = bad\n"),
        ("import bad\nx = bad\n", "import bad\nx = [bad]", "import bad\nx = [bad]\n"),
        ("import seen\nx = seen\n", "x = 1", "import seen\nx = 1\n"),  # the tests use it
    ],
)
def test_an_import_goes_with_the_last_definition_that_used_it(source, draft, result):
    assert save_draft(source, draft, replace=True, tests="assert seen.y") == result


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        ("", "the draft defines nothing"),
        ('"""Only words."""\nimport os', "the draft defines nothing"),
        ("x = 1\nprint(x)", r"line 2 of the draft, `print\(x\)`, defines nothing; leave it out: .*run_code"),
        ("def f(): ...\nif __name__ == '__main__':\n    f()", "line 2 of the draft"),
        ("a, b = 1, 2", "line 1 of the draft"),
        ("x += 1", "line 1 of the draft"),
        ("x = 1; y = 2", "line 1 of the draft holds two statements"),
        ("def f(): ...\nf = 1", "the draft defines 'f' twice, in line 2"),
        ("def math(): ...", "the library imports another 'math'; choose another name"),
        ("import numpy as math\nx = 1", "`import numpy as math` takes the name 'math'"),
        ("from statistics import mean\nx = 1", "takes the name 'mean'"),
        ("from a import z\nfrom b import z\nx = 1", "takes the name 'z'"),
        ("import x\nx = 1", "takes the name 'x'"),
        ("import library\nx = library.mean", "line 1 of the draft imports the library, but becomes part of it"),
        ("from library import *\nx = 1", "imports the library"),
        ("from library import unknown\nx = 1", "imports the library"),
    ],
)
def test_unusable_draft_is_refused(draft, why):
    with pytest.raises(ToolError, match=why):
        save_draft(LIBRARY, draft, replace=True, module="library")


@pytest.mark.parametrize("source", ["x = 1; y = 2\n", "z = 1\nz = 2\n"])
def test_unusual_library_is_refused(source):
    with pytest.raises(ToolError, match=r"line 1 of the library holds two statements|the library defines 'z' twice"):
        save_draft(source, "w = 3")


NAMES = st.sampled_from("abcdef")
VALUES = st.sampled_from(["1", "'''\n# no comment\n'''", "(\n    2,\n)"])
BLOCKS = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("{}def {}(n={}):\n    '''d\n\n    e'''\n    return {}".format, st.just(""), NAMES, VALUES, VALUES),
    st.builds("@x\n@y(\n  1\n)\nasync def {}():  # here\n    pass".format, NAMES),
    st.builds("class {}:\n    v = {}\n\n    def m(self): ...".format, NAMES, VALUES),
)
COMMENTED = st.builds("{}{}".format, st.sampled_from(["", "# c\n", "#!\n", "# far\n\n", "# two\n# lines\n"]), BLOCKS)
IMPORTS = st.lists(st.sampled_from(["import os", "import sys", "from os import path", "from re import *"]), max_size=3)


def name_of(block):
    node = ast.parse(block).body[-1]
    return node.targets[0].id if isinstance(node, ast.Assign) else node.name


@st.composite
def sources(draw):
    blocks = draw(st.lists(COMMENTED, max_size=5, unique_by=name_of))
    parts = [*draw(st.sampled_from([[], ['"""Doc."""'], ["#!/bin/x"]])), *dict.fromkeys(draw(IMPORTS)), *blocks]
    return draw(st.sampled_from(["\n", "\n\n", "\n\n\n"])).join(parts) + draw(
        st.sampled_from(["", "\n", "\n\n"])
    ), blocks


@example(("#!\nclass a:\n    v = 1", ["#!\nclass a:\n    v = 1"]), ("import os\nb = 1", ["b = 1"]), False)
@given(sources(), sources(), st.booleans())
def test_each_name_is_defined_once_and_other_lines_stay(one, other, is_windows):
    (source, olds), (draft, news) = one, other
    source = source.replace("\n", "\r\n") if is_windows else source
    if not news:
        return
    text = save_draft(source, draft, replace=True)
    names = [name_of(block) for block in news]
    kept = [block for block in olds if name_of(block) not in names]
    now = ast.parse(text)
    bodies = [ast.dump(node) for node in now.body]
    assert sorted(name for node in now.body if (name := getattr(node, "name", None) or _target(node))) == sorted(
        {*map(name_of, olds), *names}
    )
    for block in (*kept, *news):
        assert ast.dump(ast.parse(block).body[-1]) in bodies
    for block in (each.removeprefix("#!\n") for each in kept):  # at the top that is the file's, above new imports
        assert (block.replace("\n", "\r\n") if is_windows else block) in text
    assert save_draft(text, draft, replace=True) == text
    lines = text.splitlines()
    assert len([line for line in lines if line.startswith(("import ", "from "))]) == len(
        {line for line in lines if line.startswith(("import ", "from "))}
    )
    if is_windows and "\n" in source:
        assert text.count("\n") == text.count("\r\n")


def _target(node):
    return node.targets[0].id if isinstance(node, ast.Assign) else ""


@pytest.mark.parametrize("name", ["my-library.py", "library.txt", "class.py", "1.py", "json.py", "__main__.py", "x"])
def test_library_file_needs_a_module_name(name):
    with pytest.raises(ToolError, match=r"like `library.py`"):
        get_module_name(f"/some/where/{name}")
    assert get_module_name("deep/library.py") == "library"
