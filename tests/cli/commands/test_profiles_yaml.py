"""Changes to profiles.yaml: the rest of the file stays the same, byte by byte."""

import json
import os
import re
import stat
import subprocess
import sys
from textwrap import indent

import pytest
from jsonschema import Draft202012Validator

from goose_like.cli.commands.profiles_yaml import (
    HINTS,
    NEW_FILE,
    add_profile,
    check_models_can_be_set,
    find_errors,
    format_schema,
    read_profiles_file,
    replace_profiles_file,
    set_models,
    use_profile,
)
from goose_like.config.profile import build_profiles_schema
from goose_like.config.profile_loader import get_profiles_file, list_profile_sources, load_profile
from goose_like.config.yaml_reader import parse_document
from goose_like.core.errors import GooseLikeError, ProfileError, UsageError
from tests import ROOT

WRITTEN = """\
# mine, since 2025
big:   {processor:   "openai:big",   limits: {steps: 5}}   # the expensive one


small:
    processor: 'openai:small'   # quotes of both kinds
    toolkits:
    -   developer
"""


@pytest.fixture
def file(home):
    """profiles.yaml, with a layout that a YAML library would not write."""
    get_profiles_file().parent.mkdir(parents=True)
    get_profiles_file().write_text(WRITTEN)
    return get_profiles_file()


def test_the_first_profile_makes_the_file(home):
    assert add_profile("mine", "local") == get_profiles_file()
    assert get_profiles_file().read_text() == f"{NEW_FILE}\nmine:\n  extends: local\n{HINTS}"
    profile, source = load_profile("mine")
    assert profile.processor.model == "local"
    assert source.bases[0].name == "local"


def test_all_that_was_written_stays(file):
    file.chmod(0o640)
    add_profile("third", "big")
    use_profile("third")
    assert file.read_text() == f"{WRITTEN}\nthird:\n  extends: big\n{HINTS}\nuse: third\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert load_profile(None)[0].processor.model == "openai:big"
    use_profile("small")
    assert file.read_text() == f"{WRITTEN}\nthird:\n  extends: big\n{HINTS}\nuse: small\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("use: big # for now", "use: local # for now"),
        ('use: "big"', "use: local"),
        ("use:   'big' ", "use: local "),
    ],
)
def test_use_changes_the_name_alone(file, before, after):
    file.write_text(f"{before}\n{WRITTEN}")
    use_profile("local")
    assert file.read_text() == f"{after}\n{WRITTEN}"


def test_names_that_mean_something_else_in_yaml_are_quoted(file):
    add_profile("null", None)
    use_profile("null")
    assert file.read_text() == f"{WRITTEN}\n'null':\n  extends: default\n{HINTS}\nuse: 'null'\n"
    assert load_profile(None)[0].name == "null"


def test_line_ends_and_a_last_line_without_one(file):
    file.write_bytes(b"a: {}\r\nb: {}")
    add_profile("c", "a")
    hints = HINTS.replace("\n", "\r\n").encode()
    assert file.read_bytes() == b"a: {}\r\nb: {}\r\n\r\nc:\r\n  extends: a\r\n" + hints


def test_the_hints_are_settings_that_work(home):
    add_profile("mine", None)
    file = get_profiles_file()
    file.write_text(re.sub(r"(?m)^  # ", "  ", file.read_text()))
    profile, _ = load_profile("mine")
    assert (profile.processor.model, profile.limits.steps) == ("openai:gpt-5-mini", 256)
    default, _ = load_profile("default")
    assert (profile.toolkits, profile.sandbox, profile.approval) == (
        default.toolkits,
        default.sandbox,
        default.approval,
    )


def test_a_profile_with_the_name_of_a_toolkit_has_it(home):
    add_profile("repo_context", None)
    added = [toolkit.name for toolkit in load_profile("repo_context")[0].toolkits]
    assert added == [*(toolkit.name for toolkit in load_profile("default")[0].toolkits), "repo_context"]
    assert "# toolkits" not in get_profiles_file().read_text()


def test_a_profile_of_a_shipped_name_extends_that_one(home):
    add_profile("local", None)
    add_profile("mine", None)
    assert (load_profile("local")[0].limits.output_bytes, load_profile("mine")[0].limits.output_bytes) == (3000, 16000)


def test_what_is_used_may_extend_the_default(home):
    """`use` is no profile: nothing that extends `default` turns in a circle by it."""
    add_profile("mine", "default")
    use_profile("mine")
    assert load_profile(None)[0] == load_profile("mine")[0]
    assert load_profile(None)[0].name == "mine"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"{NEW_FILE}\ndefault:\n  extends: default\n  processor: openai:new\n"),
        ("default:\n  limits: {steps: 5}  # few\n", "default:\n  processor: openai:new\n  limits: {steps: 5}  # few\n"),
        (
            "a: {}\ndefault: # mine\n\n    processor: 'openai:old' # fast\n    sandbox: full\nb: {processor: x}\n",
            "a: {}\ndefault: # mine\n\n    processor: openai:new # fast\n    sandbox: full\nb: {processor: x}\n",
        ),
        ("default:\n", "default:\n  processor: openai:new\n"),
        ("default:", "default:\n  processor: openai:new\n"),
        ("default:  # mine\na: {}\n", "default:  # mine\n  processor: openai:new\na: {}\n"),
        ("default:\n      # none yet\n\na: {}\n", "default:\n  processor: openai:new\n      # none yet\n\na: {}\n"),
        ("default:\r\n  sandbox: full\r\n", "default:\r\n  processor: openai:new\r\n  sandbox: full\r\n"),
        (
            "default:\n  accelerator: openai:mini  # cheap\n  processor: openai:old\n",
            "default:\n  accelerator: openai:new  # cheap\n  processor: openai:new\n",
        ),
        ("use: mine\nmine:\ndefault: {}\n", "use: mine\nmine:\n  processor: openai:new\ndefault: {}\n"),
        (
            "default:\n  provider: anthropic  # as in goose 0.9\n  processor: old\n  accelerator: mini\n",
            "default:\n  processor: openai:new\n  accelerator: openai:new\n",
        ),
        ("default:\r\n  provider: anthropic\r\n", "default:\r\n  processor: openai:new\r\n"),
    ],
)
def test_a_new_default_model_keeps_the_rest(home, before, after):
    get_profiles_file().parent.mkdir(parents=True)
    if before is not None:
        get_profiles_file().write_bytes(before.encode())
    check_models_can_be_set()
    assert read_profiles_file(get_profiles_file()) == before
    set_models("openai:new")
    assert read_profiles_file(get_profiles_file()) == after
    assert load_profile(None)[0].processor.model == "openai:new"
    assert (load_profile(None)[0].accelerator or load_profile(None)[0].processor).model == "openai:new"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, f"{NEW_FILE}\ndefault:\n  extends: default\n  processor: openai:new\n  accelerator: openai:fast\n"),
        ("default:\n", "default:\n  processor: openai:new\n  accelerator: openai:fast\n"),
        (
            "default:\n  processor: openai:old\n",
            "default:\n  accelerator: openai:fast\n  processor: openai:new\n",
        ),
        (
            "default:\n  processor: openai:old\n  sandbox: full\n  accelerator: 'openai:mini'\n",
            "default:\n  processor: openai:new\n  sandbox: full\n  accelerator: openai:fast\n",
        ),
    ],
)
def test_the_fast_model_is_set_too(home, before, after):
    get_profiles_file().parent.mkdir(parents=True)
    if before is not None:
        get_profiles_file().write_text(before)
    set_models("openai:new", "openai:fast")
    assert get_profiles_file().read_text() == after
    profile, _ = load_profile(None)
    assert (profile.processor.model, profile.accelerator.model) == ("openai:new", "openai:fast")


@pytest.mark.parametrize("before", [None, "default:\n  extends: default\n  processor: openai:old\n"])
def test_the_embedded_model_brings_its_profile(home, before):
    get_profiles_file().parent.mkdir(parents=True)
    if before:
        get_profiles_file().write_text(before)
    for _ in range(2):
        set_models("local")
        assert get_profiles_file().read_text().endswith("default:\n  extends: local\n")
        assert load_profile(None)[0] == load_profile("local")[0].model_copy(update={"name": "default"})
    set_models("openai:new", "openai:fast")
    assert load_profile(None)[0].toolkits == load_profile("default")[0].toolkits != load_profile("local")[0].toolkits
    assert load_profile(None)[0].processor.model == "openai:new"


def test_the_embedded_model_loosens_no_base_of_one_s_own(home):
    get_profiles_file().parent.mkdir(parents=True)
    own = "use: mine\nmine:\n  extends: default\ndefault:\n  sandbox: read-only\n"
    get_profiles_file().write_text(own)
    set_models("local")
    profile, _ = load_profile(None)
    assert (profile.sandbox, profile.processor.model) == ("read-only", "local")


def test_a_profile_of_one_s_own_stays_with_the_embedded_model(home):
    get_profiles_file().parent.mkdir(parents=True)
    get_profiles_file().write_text("default:\n  extends: default\n  sandbox: full\n")
    set_models("local")
    assert get_profiles_file().read_text() == "default:\n  processor: local\n  extends: default\n  sandbox: full\n"


@pytest.mark.parametrize(
    "text",
    [
        "default: {sandbox: full}\n",
        "default: {}\n",
        "default: ~\n",
        "default:\n  processor: {model: local, window: 4096}\n",
        "default:\n  processor:\n    model: local\n",
        "default: {provider: anthropic}\n",
    ],
)
def test_a_model_that_cannot_be_changed_by_lines_is_told(home, text):
    get_profiles_file().parent.mkdir(parents=True)
    get_profiles_file().write_text(text)
    with pytest.raises(ProfileError, match=r"add this to your profile 'default' in .*: `processor: openai:new`"):
        set_models("openai:new")
    with pytest.raises(ProfileError, match=r"`processor: PROVIDER:MODEL` and `accelerator: PROVIDER:FAST_MODEL`"):
        check_models_can_be_set()
    assert get_profiles_file().read_text() == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("use: gone\n", r"profiles.yaml: use: unknown profile 'gone'"),
        ("use: defualt\ndefault: {}\n", r"use: unknown profile 'defualt'; did you mean 'default'\?"),
        ("use: [a]\n", "use: expected the name of a profile"),
        ("default: 5\n", "profile 'default' is no mapping"),
        ("default:\n  - local\n", "profile 'default' is no mapping"),
        ("default:\n  sandbox: none\n", "sandbox: expected"),
        ("default: [\n", "not valid YAML"),
        ("- default\n", "maps names to profiles"),
        ("{a: {}}\n", "has a form that cannot be changed automatically"),
    ],
)
def test_a_file_that_cannot_be_changed_is_found_before_the_questions(home, text, words):
    get_profiles_file().parent.mkdir(parents=True)
    get_profiles_file().write_text(text)
    for change in (check_models_can_be_set, lambda: set_models("openai:new")):
        with pytest.raises(ProfileError, match=words):
            change()
    assert get_profiles_file().read_text() == text


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_changed_is_found_before_the_questions(home):
    home.mkdir(mode=0o500)
    with pytest.raises(GooseLikeError, match=f"make {home} writable"):
        check_models_can_be_set()


@pytest.mark.parametrize("name", ["", "a b", "-a", "1", "a" * 65, "use", "a:", "../a", "ä b"])
def test_names_that_is_empty(file, name):
    with pytest.raises(UsageError, match="not a valid profile name"):
        add_profile(name, None)
    assert file.read_text() == WRITTEN


REFUSED = {
    "a name that is taken": (lambda: add_profile("big", None), r"'big' already: .*profiles.yaml, line 2; edit it"),
    "an unknown base": (lambda: add_profile("a", "bigg"), r"unknown profile 'bigg'; did you mean 'big'\?"),
    "an unknown profile": (lambda: use_profile("smal"), r"unknown profile 'smal'; did you mean 'small'\?"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_changes_nothing(file, kind):
    work, words = REFUSED[kind]
    with pytest.raises(ProfileError, match=words):
        work()
    assert file.read_text() == WRITTEN


@pytest.mark.parametrize("text", ["{a: {}}\n", "a: {}\n...\n", "a:\n  moderator: |\n    x\n...\n# end"])
def test_a_form_that_lines_can_not_be_added_to_is_told(file, text):
    file.write_text(text)
    with pytest.raises(ProfileError, match=r'by hand: "b": {"extends": "local"}'):
        add_profile("b", "local")
    assert file.read_text() == text


def test_a_broken_file_is_told_and_left(file):
    file.write_text("a: [")
    with pytest.raises(ProfileError, match="line 1: this is not valid YAML"):
        add_profile("b", None)
    assert file.read_text() == "a: ["


def test_a_link_to_the_file_stays_one(file, tmp_path):
    real = tmp_path / "dotfiles.yaml"
    file.rename(real)
    file.symlink_to(real)
    assert add_profile("a", None) == real
    assert file.is_symlink()
    assert real.read_text().startswith(WRITTEN)


def test_what_somebody_else_wrote_meanwhile_is_not_lost(file):
    before = read_profiles_file(file)
    file.write_text("theirs: {}")
    with pytest.raises(GooseLikeError, match="changed by another program"):
        replace_profiles_file(file, before, "ours: {}")
    assert file.read_text() == "theirs: {}"


def test_commands_at_once_lose_nothing(home):
    names = ["a", "b", "c", "d"]
    program = (
        "import sys; from goose_like.cli.commands.profiles_yaml import add_profile; add_profile(sys.argv[1], None)"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, name], env=os.environ) for name in names]
    assert [process.wait(60) for process in running] == [0] * 4
    assert sorted(load_profile(name)[0].name for name in names) == names


FAULTS = {
    "m:\n  sandbox: none": "line 2: sandbox: expected ",
    "m: {}\nn:\n  extends: o": "line 3: unknown profile 'o'",
    "m: [": "line 1: this is not valid YAML",
    "m: {}\nuse: n": r"line 2: use: unknown profile 'n'",
    "- m": "this file maps names to profiles",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_are_found_before_a_text_is_saved(file, text):
    assert FAULTS[text] in find_errors(file, text)
    assert file.read_text() == WRITTEN


def test_what_is_wrong_in_another_file_hinders_no_edit(file):
    (file.parent / "profiles").mkdir()
    (file.parent / "profiles/old.yaml").write_text("sandbx: x")
    assert find_errors(file, "m: {extends: old}") is None
    assert "old.yaml, line 1" in find_errors(file.parent / "profiles/old.yaml", "sandbx: y")


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="a wheel has no copy of the schema")
def test_the_schema_in_the_docs_is_current(home):
    kept = ROOT / "docs/profiles.schema.json"
    assert kept.read_text() == format_schema(), "goose-like profile schema > docs/profiles.schema.json"
    add_profile("a", None)
    assert json.loads((get_profiles_file().parent / "profiles.schema.json").read_text()) == build_profiles_schema()


READ = ["processor: local", "processor: {window: 5}", "provider: openai\nprocessor: big", "toolkits: [a, {name: b}]"]
READ += [
    "jira: {url: x}",
    "toolkits: [[a, {b: c}]]",
    "moderator: {config: {limit_tokens: 5}}",
    "limits: {steps: 5}",
    "extends: default",
    "{}",
]


@pytest.mark.parametrize("text", [*READ, "processr: x", "limits: {steps: 0}", "sandbox: none", "toolkits: a"])
def test_an_editor_accepts_what_is_read_and_nothing_else(home, text):
    validator = Draft202012Validator(build_profiles_schema())
    written = "m:\n" + indent(text, "  ")
    # The schema accepts incomplete mappings such as `{window: 5}`, because a profile can extend another one.
    is_read = text in READ or find_errors(get_profiles_file(), written) is None
    assert validator.is_valid(parse_document(written)[0]) == is_read


@pytest.mark.parametrize("source", list_profile_sources(), ids=lambda source: source.name)
def test_an_editor_accepts_the_shipped_profiles(source):
    validator = Draft202012Validator(build_profiles_schema())
    validator.validate({"use": source.name, source.name: source.data})
