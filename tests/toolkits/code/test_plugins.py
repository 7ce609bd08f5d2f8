"""Plugins as they are written: the YAML, what the source can be called with, and where both differ."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from goose_like_toolkits.code.plugins.project import Project
from goose_like_toolkits.code.plugins.spec import PluginSpec, read_plugin_spec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goose_like.config.paths import kept_folder
from goose_like.sdk.diagnostics import ParseResult

SEED = """\
name: random_generator
enabled: true
required: true
description: >-
  This plugin generates n random numbers between 1 and 100.
examples: |-
  result = random_generator(n=5)
parameters:
  - name: n
    type: int
    required: true
    description: >-
      The number of random numbers to generate.

returns:
  - name: result
    type: list
    description: >-
      The list of random numbers.
"""
SEED_CONFIGURATIONS = """\
configurations:
  - name: range
    type: list
    required: false
    description: >-
      The range of the random numbers.
    default: [1, 100]
"""
SEED_SOURCE = """\
from taskweaver.plugin import Plugin, register_plugin

@register_plugin
class RandomGenerator(Plugin):
    def __call__(self, n: int):
        import random
        return [random.randint(1, 100) for _ in range(n)]
"""
HEAD = "from taskweaver.plugin import Plugin, register_plugin\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of plugins."""
    made = tmp_path / "plugins"
    made.mkdir()
    return made


def write(folder: Path, name: str, source: str | None, more: str = "", parameters: str = "") -> Path:
    """A plugin's two files; `parameters` is a line each: name, type and, if it is said, whether it is required."""
    listed = "".join(
        f"  - {{name: {words[0]}, type: {words[1]}, description: one"
        + (f", required: {words[2]}" if len(words) > 2 else "")
        + "}\n"
        for words in map(str.split, filter(None, parameters.splitlines()))
    )
    file = folder / f"{name}.yaml"
    file.write_text(
        f"name: {name}\ndescription: Does {name}.\n{dedent(more)}parameters:\n{listed or '  []'}\nreturns: []\n"
    )
    if source is not None:
        (folder / f"{name}.py").write_text(HEAD + dedent(source))
    return file


def report(project: Project) -> list[str]:
    """The faults, each with its file's name in the place of its path."""
    return [str(fault).replace(f"{fault.file.parent}{os.sep}", "") for fault in project.diagnostics]


def only(project: Project) -> PluginSpec:
    (spec,) = project.specs
    return spec


# --- the YAML


@pytest.mark.parametrize("more", ["", SEED_CONFIGURATIONS, "configurations:\n  range: [1, 100]\n", "configurations:\n"])
def test_seed_plugin_is_read(folder, more):
    (folder / "random_generator.yaml").write_text(SEED + more)
    (folder / "random_generator.py").write_text(SEED_SOURCE)
    project = Project.read(folder)
    definition = only(project)
    assert (project.diagnostics, dict(project.off)) == ((), {})
    assert definition.description == "This plugin generates n random numbers between 1 and 100."
    assert (definition.required, definition.required_names) == (True, ["n"])
    assert definition.configurations == ({"range": [1, 100]} if "range" in more else {})
    assert definition.examples == "result = random_generator(n=5)"
    assert [(each.name, each.type) for each in definition.returns] == [("result", "list")]
    assert definition.code == folder / "random_generator.py"


def test_types_become_python_types(folder):
    kinds = ["string", "integer", "Boolean", "number", "list", "pandas.DataFrame"]
    write(folder, "a", None, parameters="\n".join(f"p{at} {kind}" for at, kind in enumerate(kinds)))
    read = read_plugin_spec(folder / "a.yaml").value
    assert read
    assert [each.type for each in read.parameters] == ["str", "int", "bool", "float", "list", "pandas.DataFrame"]


def test_configurations_become_json_values(folder):
    more = "configurations: {day: 2026-01-02, 1: yes, big: .inf, none: , list: [a, {b: 1}]}\n"
    write(folder, "a", "@register_plugin\ndef a(): ...", more)
    wanted = {"day": "2026-01-02", "1": True, "big": float("inf"), "none": None, "list": ["a", {"b": 1}]}
    assert only(Project.read(folder)).configurations == wanted
    reading = read_plugin_spec(folder / "a.yaml")
    kept = ParseResult[PluginSpec].model_validate_json(reading.model_dump_json(exclude_unset=True))
    assert kept.value == reading.value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "a.yaml:1: this file is empty; a plugin begins with `name: NAME`"),
        ("- a\n", "a.yaml:1: a plugin is a mapping with"),
        ("name: a\n  b: [\n", "a.yaml:2: this is not valid YAML: mapping values are not allowed"),
        ("name: a\nx: !!python/name:os.system\n", "a.yaml:2: this is not valid YAML: could not determine"),
        ("name: a\nx: !!bool maybe\n", "a.yaml:1: this is not valid YAML: KeyError"),
        ("description: d\n", "a.yaml:1: name: this key is missing"),
        ("description: d\nname: 7\n", "a.yaml:2: name: expected text, not 7"),
        ("name: a b\ndescription: d\n", "a.yaml:1: name: 'a b' is not a Python name; use letters"),
        ("description: d\n\nname: class\n", "a.yaml:3: name: 'class' is a keyword of Python; choose another name"),
        ("name: a\ndescription:\n", "a.yaml:2: description: it is empty"),
        ("name: a\ndescription: d\nenabled: perhaps\n", "a.yaml:3: enabled: expected a valid boolean"),
        ("name: a\ndescription: d\nparameters: {n: int}\n", "a.yaml:3: parameters: expected a list, not {'n': 'int'}"),
        ("name: a\ndescription: d\nparameters:\n  - type: int\n", "a.yaml:4: parameters.0.name: this key is missing"),
        ("name: a\ndescription: d\nparameters:\n  - name: n\n  - name: n\n", "a.yaml:5: there are two parameters 'n'"),
        ("name: a\ndescription: d\nconfigurations: 3\n", "a.yaml:3: configurations: expected a mapping, not 3"),
        ("name: a\ndescription: d\nconfigurations: {x: !!binary aGk=}\n", "a.yaml:3: configurations.x"),
        ("a: &a [x, *a]\nname: a\n", "a.yaml:1: its aliases repeat more than 10,000 values"),
        ("a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
         f"d: [{','.join(['*c'] * 100)}]\n", "a.yaml:1: its aliases repeat more than 10,000 values"),
        ("x: " + "[" * 200 + "]" * 200, "a.yaml:1: it nests too deep; write it flatter"),
        ("x: [\n", "a.yaml:1: this is not valid YAML: did not find expected node content"),
        ("x: " + "[" * 500_000, "a.yaml:1: it nests too deep"),
        ("- " * 300_000, "a.yaml:1: it nests too deep"),
        ("name: \x00", "a.yaml:1: this is not valid YAML"),
    ],
)  # fmt: skip
def test_yaml_errors_have_lines_and_spare_other_plugins(folder, text, fault):
    (folder / "a.yaml").write_text(text)
    write(folder, "good", "@register_plugin\ndef good(): ...")
    project = Project.read(folder)
    assert report(project)[0].startswith(fault)
    assert only(project).name == "good"


def test_unknown_key_is_a_warning(folder):
    write(folder, "a", "@register_plugin\ndef a(n): ...", "descripton: oops\nx-author: me\n", "n int")
    text = (folder / "a.yaml").read_text().replace("type: int", "typ: int")
    (folder / "a.yaml").write_text(text)
    project = Project.read(folder)
    assert [only(project)] == list(project.usable)
    assert [line.partition("; there are")[0] for line in report(project)] == [
        "a.yaml:3: warning: unknown key 'descripton' is ignored; did you mean 'description'?",
        "a.yaml:4: warning: unknown key 'x-author' is ignored",
        "a.yaml:6: warning: unknown key 'typ' is ignored; did you mean 'type'?",
    ]


LINES = st.sampled_from(
    [*SEED.splitlines(), "name: x", "parameters: 3", "  - &a {name: n}", "  - *a", "configurations: !!set {a, b}", "\t",
     "---", "description: {}", "<<: *a", "<<: {name: x}", "enabled: 2", "code: [1]", "code: ../../x", "? [a]: b",
     "!!int : !!float x", "returns:", "  - name: {}", "x: !!timestamp y", "required: 2026-13-77"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.lists(LINES).map("\n".join).map(str.encode), st.binary(), st.text().map(lambda t: t.encode())))
def test_no_yaml_raises(tmp_path, data):
    file = tmp_path / "a.yaml"
    file.write_bytes(data)
    reading = read_plugin_spec(file)
    assert reading.value or reading.diagnostics
    for fault in reading.diagnostics:
        assert (fault.line or 1) <= max(len(data.decode("utf-8", "replace").splitlines()), 1)
        assert "\n" not in fault.text


# --- plugins of varied style, which are all in order

CALLED = "class A(Plugin):\n    def __call__"
STYLES = {
    "decorated class": (f"@register_plugin\n{CALLED}(self, n: int): ...", "n int true"),
    "a function": ("@register_plugin\ndef f(n, least=1): ...", "n int true\nleast int false"),
    "an async function": ("@register_plugin\nasync def f(n): ...", "n int"),
    "called as a function": (f"{CALLED}(self, n): ...\nregister_plugin(A)", "n int true"),
    "called, and assigned": ("def f(n): ...\nf = register_plugin(f)", "n int true"),
    "a lambda": ("register_plugin(lambda n: n)", "n int true"),
    "another name": ("from taskweaver.plugin import register_plugin as r\n@r\ndef f(n): ...", "n int true"),
    "an attribute": ("import taskweaver.plugin as tw\n@tw.register_plugin\ndef f(n): ...", "n int true"),
    "the whole path": ("import taskweaver.plugin\n@taskweaver.plugin.register_plugin\ndef f(n): ...", "n int"),
    "all names": (f"from taskweaver.plugin import *\n@register_plugin\n{CALLED}(self, n): ...", "n int"),
    "an inherited call": (f"{CALLED}(self, n): ...\n@register_plugin\nclass B(A): ...", "n int"),
    "a base of another file": ("from kin import Base\n@register_plugin\nclass A(Base): ...", "n int\nm int true"),
    "anything": (f"@register_plugin\n{CALLED}(self, *args, **kwargs): ...", "n int\nm str true"),
    "anything more": ("@register_plugin\ndef f(n, **more): ...", "n int true\nother str"),
    "by name only": ("@register_plugin\ndef f(n, *, least=1, most): ...", "n int true\nmost int true\nleast int"),
    "without parameters": (f"@register_plugin\n{CALLED}(self): ...", ""),
    "a static method": (
        "@register_plugin\nclass A(Plugin):\n    @staticmethod\n    def __call__(n): ...",
        "n int",
    ),
    "helpers and state": (
        f"import numpy\nLIMIT = 3\ndef helper(a): ...\n@register_plugin\n{CALLED}(self, n=LIMIT): ...\n    db = None",
        "n int false",
    ),
    "one of two": (
        "try:\n    import x\n    @register_plugin\n    def f(n): ...\n"
        "except ImportError:\n    @register_plugin\n    def f(m): ...",
        "n int",
    ),
    "what runs alone": (
        "@register_plugin\ndef f(n): ...\nif __name__ == '__main__':\n    register_plugin(print)",
        "n int",
    ),
    "required, with a default": ("@register_plugin\ndef f(n=1): ...", "n int true"),
    "an option that is kept quiet": ("@register_plugin\ndef f(n, debug=False): ...", "n int true"),
    "an assigned call": (
        "@register_plugin\nclass A(Plugin):\n    def run(self, n): ...\n    __call__ = run",
        "n int",
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_all_source_styles_are_accepted(folder, style):
    source, parameters = STYLES[style]
    write(folder, "a", source, parameters=parameters)
    project = Project.read(folder)
    assert (report(project), [each.name for each in project.usable]) == ([], ["a"])


# --- and those that are not

SOURCES = {
    "async def f(:": "a.py:2: this is not valid Python: invalid syntax",
    "x = 1": "a.py: nothing is registered here; put @register_plugin before the plugin's class",
    "@register_plugin\ndef f(): ...\n@register_plugin\ndef g(): ...": "a.py:5: a second plugin is registered here",
    "@register_plugin\nclass A(Plugin): ...": "a.py:3: class 'A' has no method __call__, which runs the plugin",
    "@register_plugin\nclass A:\n    def __call__(self): ...": "a.py:3: class 'A' does not derive from Plugin",
    "@register_plugin()\ndef f(): ...": "a.py:2: @register_plugin takes the class itself; write it without ()",
}


@pytest.mark.parametrize("source", SOURCES)
def test_unloadable_source_is_an_error(folder, source):
    write(folder, "a", source)
    project = Project.read(folder)
    assert report(project)[0].startswith(SOURCES[source])
    assert (list(project.off), project.usable) == (["a"], ())


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"x = '\x00'", b"(" * 100_000, b"# coding: nonsense\n"])
def test_binary_source_is_an_error(folder, data):
    write(folder, "a", None)
    (folder / "a.py").write_bytes(data)
    assert re.match(r"a\.py(:\d+)?: (this is not valid Python|can't be read)", report(Project.read(folder))[0])


DRIFTS = {
    ("def f(self_, inputs): ...", "self_ int\ninput_list list true"): "a.yaml:5: f (a.py:3) takes no parameter "
    "'input_list'; did you mean 'inputs'?",
    ("def f(n): ...", "n int\nmore int"): "a.yaml:5: f (a.py:3) takes no parameter 'more'; it takes n",
    ("def f(): ...", "more int"): "a.yaml:4: f (a.py:3) takes no parameter 'more'; it takes nothing",
    ("def f(n, m): ...", "n int"): "a.yaml:1: f (a.py:3) needs 'm', which is missing in `parameters`",
    ("def f(*, m): ...", ""): "a.yaml:1: f (a.py:3) needs 'm', which is missing in `parameters`",
    ("def f(n): ...", "n int false"): "a.yaml:4: parameter 'n' is optional here, but f (a.py:3) has no default",
    ("def f(a, b): ...", "b int\na int"): "a.yaml:4: f (a.py:3) takes the parameters in another order: a, b",
    ("def f(n, /): ...", "n int"): "a.yaml:4: f (a.py:3) takes 'n' by its position only",
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_signature_mismatch_turns_plugin_off(folder, drift):
    source, parameters = drift
    file = write(folder, "a", f"@register_plugin\n{source}", parameters=parameters)
    project = Project.read(folder)
    (fault,) = report(project)
    assert fault.startswith(DRIFTS[drift])
    assert project.usable == ()
    assert "allow_drift: true" in project.off["a"]
    file.write_text(file.read_text() + "allow_drift: true\n")
    project = Project.read(folder)
    assert [each.name for each in project.usable] == ["a"]
    assert report(project) == [fault.replace(": ", ": warning: ", 1)]


def test_different_default_is_a_warning(folder):
    file = write(folder, "a", "@register_plugin\ndef a(n=10, m='x', k=None): ...", parameters="n int\nm str\nk int")
    text = file.read_text().replace("{name: n,", "{name: n, default: 5,").replace("{name: m,", "{name: m, default: x,")
    file.write_text(text)
    project = Project.read(folder)
    assert report(project) == ["a.yaml:4: warning: the default of 'n' is 10 in a (a.py:3), here 5"]
    assert len(project.usable) == 1


def test_source_completes_the_yaml(folder):
    write(folder, "a", "@register_plugin\ndef a(n, m=3, k=len): ...", parameters="n int\nm int\nk int")
    n, m, k = only(Project.read(folder)).parameters
    assert [each.required for each in (n, m, k)] == [True, False, False]
    assert ["default" in each.model_fields_set for each in (n, m, k)] == [False, True, False]
    assert m.default == 3


# --- the project


def test_plugins_share_files_but_not_names(folder):
    for name, code in (("one", "shared"), ("two", "shared.py"), ("three", "gone")):
        write(folder, name, None, f"code: {code}\nconfigurations: {{db: {name}}}\n")
    (folder / "shared.py").write_text(HEAD + "@register_plugin\ndef f(): ...\n")
    (folder / "zwei.yaml").write_text((folder / "two.yaml").read_text())
    project = Project.read(folder)
    assert [(each.name, each.configurations["db"]) for each in project.usable] == [("one", "one"), ("two", "two")]
    assert {each.code for each in project.usable} == {folder / "shared.py"}
    assert report(project) == [
        "gone.py: there is no such file; write it, or correct `name` or `code` in the YAML",
        "zwei.yaml:1: the name 'two' is taken by two.yaml; choose another one",
    ]


def test_errors_of_disabled_plugin_are_not_urgent(folder):
    write(folder, "a", "@register_plugin\ndef a(n): ...", "enabled: no\n")
    write(folder, "b", None)
    project = Project.read(folder)
    assert project.off["a"] == "`enabled: false` in its YAML"
    assert [fault.file.name for fault in project.diagnostics] == ["a.yaml", "b.py"]
    assert [fault.file.name for fault in project.urgent_diagnostics] == ["b.py"]


@pytest.mark.parametrize("base", [None, "tools", "${AppBaseDir}/tools", "{absolute}"])
def test_taskweaver_project_is_read(tmp_path, base):
    place = tmp_path / ("plugins" if base is None else "tools")
    place.mkdir()
    write(place, "a", "@register_plugin\ndef a(): ...")
    config = {
        "llm.model": "m",
        "code_generator.enable_auto_plugin_selection": True,
        "code_generator.auto_plugin_selection_topk": 4,
        "code_interpreter.code_verification_on": True,
        "code_interpreter.allowed_modules": ["pandas"],
    }
    if base:
        config["plugin.base_path"] = base.replace("{absolute}", str(place))
    (tmp_path / "taskweaver_config.json").write_text(json.dumps(config))
    project = Project.read(tmp_path)
    assert (project.plugins, project.diagnostics) == (place, ())
    assert [each.name for each in project.usable] == ["a"]
    assert (project.settings.select_top_k, project.settings.has_verification) == (4, True)
    assert (project.settings.allowed_modules, project.settings.blocked_functions) == (("pandas",), None)


def test_sources_may_be_in_plugins_folder(tmp_path):
    for name in ("plugins", "tools"):
        (tmp_path / name).mkdir()
    write(tmp_path / "tools", "a", None)
    (tmp_path / "plugins" / "a.py").write_text(HEAD + "@register_plugin\ndef a(): ...")
    (tmp_path / "taskweaver_config.json").write_text('{"plugin.base_path": "tools"}')
    assert only(Project.read(tmp_path)).code == tmp_path / "plugins" / "a.py"


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        ("{", "taskweaver_config.json:1: this is not valid JSON"),
        ("[]", "taskweaver_config.json:1: the settings are one object"),
        ('{\n "code_generator.auto_plugin_selection_topk": 0}', "taskweaver_config.json:2: code_generator.auto_plugin"),
    ],
)
def test_broken_settings_spare_the_plugins(tmp_path, config, fault):
    (tmp_path / "plugins").mkdir()
    write(tmp_path / "plugins", "a", "@register_plugin\ndef a(): ...")
    (tmp_path / "taskweaver_config.json").write_text(config)
    project = Project.read(tmp_path)
    assert report(project)[0].startswith(fault)
    assert len(project.usable) == 1


def test_unreadable_files_are_errors(folder):
    (folder / "dir.yaml").mkdir()
    (folder / "gone.yaml").symlink_to(folder / "nowhere")
    (folder / "large.yaml").write_bytes(b"#" * 1_000_001)
    (folder / ".hidden.yaml").write_text("no plugin")
    os.mkfifo(folder / "pipe.yaml")
    assert [line.partition(";")[0] for line in report(Project.read(folder.parent))] == [
        "dir.yaml: this is a folder",
        "gone.yaml: this is no file that can be read",
        "large.yaml: this is larger than 1,000,000 bytes, and no plugin",
        "pipe.yaml: this is no file that can be read",
    ]


def test_file_names_without_utf8(folder):
    odd = os.fsencode(folder) + b"/\xff"
    os.mkdir(odd)
    place = Path(os.fsdecode(odd))
    write(place, "a", "@register_plugin\ndef a(): ...")
    (place / os.fsdecode(b"\xfe.yaml")).write_text((place / "a.yaml").read_text())
    (fault,) = Project.read(place).diagnostics
    assert re.search(r"the name 'a' is taken by", fault.text)


def test_parsed_plugins_are_kept_out_of_reach_of_commands(folder, home):
    write(folder, "a", "@register_plugin\ndef a(n): ...", parameters="n int")
    Project.read(folder)
    assert (kept_folder() / "plugins.sqlite").exists()


def test_unchanged_files_come_from_cache(folder):
    file = write(folder, "a", "@register_plugin\ndef a(n): ...", parameters="n int")
    script = dedent("""
        import sys
        from pathlib import Path
        from goose_like_toolkits.code.plugins import project as module

        read, files = module.read_plugin_spec, []
        module.read_plugin_spec = lambda file: files.append(file) or read(file)
        project = module.Project.read(Path(sys.argv[1]))
        print(bool(files), project.specs[0].description, len(project.usable))
    """)

    def started() -> str:
        command = [sys.executable, "-c", script, str(folder)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert [started(), started()] == ["True Does a. 1", "False Does a. 1"]
    file.write_text(file.read_text().replace("Does a.", "Does b."))
    assert [started(), started()] == ["True Does b. 1", "False Does b. 1"]
    (folder / "a.py").write_text(HEAD + "@register_plugin\ndef a(m): ...")
    assert started() == "False Does b. 0"


def test_plugins_are_not_imported(folder):
    write(folder, "a", "raise SystemExit('imported')\n@register_plugin\ndef a(): ...")
    assert len(Project.read(folder).usable) == 1


# --- the command


def plugin(*words: str, cwd: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "goose_like", "plugin", *words]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_plugin_new_writes_valid_plugin(tmp_path):
    code, out, _ = plugin("new", "word_count", cwd=tmp_path)
    assert (code, out) == (0, f"wrote {tmp_path}/word_count.yaml\nwrote {tmp_path}/word_count.py\n")
    assert plugin("check", cwd=tmp_path) == (0, "1 plugin, no errors\n", "")
    code, out, _ = plugin("--project", str(tmp_path), "list", cwd=tmp_path.parent)
    assert code == 0
    assert re.search(r"^word_count +on +Counts how often each word occurs", out, re.MULTILINE)
    code, _, err = plugin("new", "word_count", cwd=tmp_path)
    assert (code, err) == (2, "goose-like: there is a plugin 'word_count' already; choose another name\n")
    (tmp_path / "other.py").touch()
    assert plugin("new", "other", cwd=tmp_path)[0] == 2
    assert not (tmp_path / "other.yaml").exists()
    for name in ("a-b", ""):
        assert "is not a valid name for a plugin" in plugin("new", name, cwd=tmp_path)[2]
    assert "'class' is a keyword of Python" in plugin("new", "class", cwd=tmp_path)[2]


def test_plugin_check_prints_errors(folder):
    write(folder, "a", "@register_plugin\ndef a(n): ...", "enabld: no\n", parameters="m int")
    (folder / "b.yaml").write_text("name: b\n")
    code, out, _ = plugin("check", cwd=folder.parent)
    assert (code, out) == (
        1,
        f"{folder}/a.yaml:3: warning: unknown key 'enabld' is ignored; did you mean 'enabled'?\n"
        f"{folder}/a.yaml:5: a (a.py:3) takes no parameter 'm'; did you mean 'n'?\n"
        f"{folder}/b.yaml:1: description: this key is missing\n\n1 plugin, 2 errors\n",
    )
    _, out, _ = plugin("list", cwd=folder.parent)
    assert re.search(r"^a +off: a \(a.py:3\) takes no parameter 'm'; did you mean 'n'; `allow_drift: true`", out, re.M)
    assert re.search(r"^b +broken: description: this key is missing", out, re.M)


def test_yaml_of_other_programs_is_no_broken_plugin(tmp_path):
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    (tmp_path / "tasks.yaml").write_text("- one\n")
    _, out, _ = plugin("list", cwd=tmp_path)
    assert out.startswith(f"there are no plugins in {tmp_path}: ")
    (tmp_path / "tasks.py").touch()  # now it is meant as one
    _, out, _ = plugin("list", cwd=tmp_path)
    assert re.search(r"^tasks +broken: a plugin is a mapping with `name`", out, re.M)


def test_missing_plugins_and_folder(tmp_path):
    code, out, _ = plugin("list", cwd=tmp_path)
    assert (code, out.partition(":")[0]) == (0, f"there are no plugins in {tmp_path}")
    assert plugin("check", cwd=tmp_path)[0] == 1
    code, out, err = plugin("--project", "nowhere", "list", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err == f"goose-like: {tmp_path}/nowhere: there is no such folder\n"
    (tmp_path / "a.yaml").touch()
    assert plugin("--project", "a.yaml", "list", cwd=tmp_path)[2].endswith(
        "this is not a folder; give the folder that contains it\n"
    )
