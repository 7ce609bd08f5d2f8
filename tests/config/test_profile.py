"""Tests of profiles: all written forms, and one sentence with file, line and next step for every bad input."""

import re
import subprocess

import pytest
from goose_like_toolkits.delegate.config import DelegateConfig, parse_config

from goose_like.config.profile import ModelChoice, Profile, ToolkitChoice
from goose_like.config.profile_loader import describe_goose09_profiles, list_profile_sources, load_profile
from goose_like.core.errors import ProfileError


@pytest.fixture
def write(home):
    """Writes `profiles.yaml`; with a name, `profiles/NAME.yaml`."""

    def write(text: str, name: str | None = None):
        file = home / "config" / (f"profiles/{name}.yaml" if name else "profiles.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write


def test_all_forms(write):
    write("""
mine:
  processor: openai:big
  accelerator: {model: local, window: 4096}
  moderator: {name: truncate, config: {limit_tokens: 10}}
  toolkits:
    - plain
    - {name: full, requires: {a: plain}, config: {tools: [x]}}
    - [older, {b: plain}]
  limits: {steps: 3}
""")
    profile, source = load_profile("mine")
    assert (profile.name, source.file.name) == ("mine", "profiles.yaml")
    assert (profile.processor.provider, profile.processor.name) == ("openai", "big")
    assert (profile.accelerator.provider, profile.accelerator.name, profile.accelerator.window) == ("local", "", 4096)
    assert profile.moderator.config == {"limit_tokens": 10}
    assert profile.toolkits == (
        ToolkitChoice(name="plain"),
        ToolkitChoice(name="full", requires={"a": "plain"}, config={"tools": ["x"]}),
        ToolkitChoice(name="older", requires={"b": "plain"}),
    )
    assert profile.limits.steps == 3
    assert Profile.model_validate_json(profile.model_dump_json()) == profile


def test_key_named_like_a_toolkit_configures_it(write):
    write("""
added: {jira: {url: a, site: {x: 1}}}
listed:
  toolkits: [developer, jira, {name: github, config: {a: 1}}, [reasoner, {b: jira}]]
  jira: {url: a}
  github: {a: 2, b: 3}
  reasoner: {c: 4}
extending: {extends: added, jira: {site: {y: 2}}}
""")
    assert load_profile("added")[0].toolkits == (
        ToolkitChoice(name="developer"),
        ToolkitChoice(name="jira", config={"url": "a", "site": {"x": 1}}),
    )
    assert load_profile("listed")[0].toolkits == (
        ToolkitChoice(name="developer"),
        ToolkitChoice(name="jira", config={"url": "a"}),
        ToolkitChoice(name="github", config={"a": 1, "b": 3}),  # the list wins
        ToolkitChoice(name="reasoner", requires={"b": "jira"}, config={"c": 4}),
    )
    assert load_profile("extending")[0].toolkits[1].config == {"url": "a", "site": {"x": 1, "y": 2}}


def test_provider_beside_bare_names(write):
    write("old: {provider: openai, processor: big, accelerator: small}\nalone: {provider: openai}")
    profile, _ = load_profile("old")
    assert (profile.processor.model, profile.accelerator.model) == ("openai:big", "openai:small")
    profile, _ = load_profile("alone")
    assert (profile.processor.model, profile.accelerator) == ("openai", None)


def test_profiles_of_goose_09_are_named_until_they_are_copied(home, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert describe_goose09_profiles() == ""
    old = tmp_path / ".config/goose/profiles.yaml"
    old.parent.mkdir(parents=True)
    old.write_text("default: {provider: openai, processor: gpt-4o, accelerator: gpt-4o-mini, moderator: truncate}\n")
    command = describe_goose09_profiles().partition("copy them: ")[2]
    subprocess.run(command, shell=True, check=True)
    assert load_profile(None)[0].processor == ModelChoice(model="openai:gpt-4o")
    assert describe_goose09_profiles() == ""


def test_extends_merges_mappings_and_replaces_lists(write):
    write("""
base:
  accelerator: openai:small
  processor: openai:big
  toolkits: [a, b]
  limits: {steps: 5, tokens: 10}
child:
  extends: base
  processor: {temperature: 0.5}
  toolkits: [c]
  limits: {steps: 6}
old_child: {extends: base, provider: local, processor: tiny}
""")
    profile, _ = load_profile("child")
    assert (profile.processor.model, profile.processor.temperature) == ("openai:big", 0.5)
    assert [choice.name for choice in profile.toolkits] == ["c"]
    assert (profile.limits.steps, profile.limits.tokens) == (6, 10)
    profile, _ = load_profile("old_child")
    assert (profile.processor.model, profile.accelerator.model) == ("local:tiny", "openai:small")


def test_permission_rules_and_hidden_files_add_up(write):
    write("""
base:
  permissions: {deny: [git push --force, rm], ask: [git push], allow: [ls]}
  paths: {hide: ["*.pem"], read: [~/a]}
child:
  extends: base
  permissions:
    deny: [docker, rm]
    allow: []
  paths: {hide: [private/], read: [~/b]}
grandchild: {extends: child, permissions: {ask: [curl]}}
""")
    permissions = load_profile("grandchild")[0].permissions
    assert permissions.deny == ("docker", "rm", "git push --force")
    assert (permissions.ask, permissions.allow) == (("curl", "git push"), ("ls",))
    paths = load_profile("grandchild")[0].paths
    assert (paths.hide, paths.read) == (("private/", "*.pem"), ("~/b",))


def test_one_extends_the_next_of_its_own_name(write):
    write("mine: {extends: mine, limits: {steps: 6}}")
    write("{limits: {steps: 5, tokens: 10}, sandbox: full}", "mine")
    profile, _ = load_profile("mine")
    assert (profile.limits.steps, profile.limits.tokens, profile.sandbox) == (6, 10, "full")
    assert [source.name for source in list_profile_sources()][:2] == ["mine", "mine"]


def test_empty_file_is_a_profile_of_defaults(write):
    write("", "mine")
    assert load_profile("mine")[0] == Profile(name="mine")


def test_unchecked_defaults_pass_the_check():
    profile = Profile()
    checked = Profile.model_validate(profile.model_dump())
    assert checked == profile
    assert checked.limits is not profile.limits
    assert DelegateConfig.model_validate(parse_config({}).model_dump()) == parse_config({})


BAD = {
    "misspelt key": (
        "m:\n  processor: local\n  toolkit: [a]",
        r"line 3: unknown key 'toolkit'; did you mean 'toolkits'\?",
    ),
    "misspelt inner key": (
        "m:\n  limits:\n    steps: 3\n    token: 4",
        r"line 4: unknown key 'limits.token'; did you mean 'tokens'\?",
    ),
    "misspelt key of a toolkit": (
        "m:\n  toolkits:\n    - a\n    - name: b\n      requirs: {}",
        r"line 5: unknown key 'toolkits.1.requirs'; did you mean 'requires'\?",
    ),
    "wrong type": ("m:\n  limits:\n    steps: many", r"line 3: limits.steps: expected a valid integer, .*, not 'many'"),
    "wrong choice": (
        "m:\n  sandbox: none",
        r"line 2: sandbox: expected 'read-only', .* or 'full', not 'none'",
    ),
    "below the limit": ("m:\n  limits: {steps: 0}", r"line 2: limits.steps: expected greater than 0, not 0"),
    "list for mapping": ("m:\n  limits: [1]", r"line 2: limits: expected a mapping"),
    "text for list": ("m:\n  toolkits: developer", r"line 2: toolkits: expected a list, not 'developer'"),
    "mapping for list": ("m:\n  toolkits: {a: b}", r"line 2: toolkits: expected a list"),
    "list for fallback": (
        "m:\n  fallback: [x]",
        r"line 2: fallback: expected PROVIDER:MODEL or a mapping, not \['x'\]",
    ),
    "number for model": ("m:\n  processor: 4", r"line 2: processor: expected PROVIDER:MODEL or a mapping, not 4"),
    "model that is not there": ("m:\n  processor: {window: 4}", r"line 2: processor.model: this key is missing"),
    "toolkit without name": ("m:\n  toolkits:\n    - requires: {}", r"line 3: toolkits.0.name: this key is missing"),
    "number as key": ("m:\n  3: x", r"line 2: "),
    "no mapping": ("m: 3", r"profiles.yaml, line 1: profile 'm' is no mapping"),
    "profiles without names": ("- m", r"profiles.yaml: this file maps names to profiles"),
    "a URL in place of a host": (
        "m: {network: {allow: [example.org, 'https://x.org:8/a']}}\n",
        r"line 1: network.allow.1: expected the name of a host, such as x\.org:8, not",
    ),
    "no host": ("m: {network: {allow: ['']}}\n", r"network.allow.0: expected the name of a host, such as example"),
    "a port that cannot exist": (
        "m: {network: {allow: ['[::1]', '[::1]:22', 'x.org:*', 'x.org:65535', 'x.org:65536']}}\n",
        r"network.allow.4: expected a port from 1 to 65535 after the colon, not",
    ),
    "a port of letters": ("m: {network: {allow: ['x.org:http']}}\n", r"network.allow.0: expected a port from 1"),
    "port zero": ("m: {network: {allow: ['x.org:0']}}\n", r"network.allow.0: expected a port from 1"),
    "a key of other agents": (
        "m:\n  model: openai:gpt-5\n",
        r"line 2: unknown key 'model'; did you mean 'processor'\?",
    ),
    "toolkit key without a mapping": ("m:\n  jira: [a]", r"line 2: jira: expected a mapping, the configuration of"),
    "misspelt toolkit key": ("m:\n  jirra: {a: b}", r"line 2: unknown key 'jirra'"),
    "toolkit key and a wrong list": ("m:\n  jira: {a: b}\n  toolkits: x", r"line 3: toolkits: expected a list"),
    "settings without a profile": (
        "provider: openai\nprocessor: gpt-5\ntoolkits: [developer]\n",
        r"line 1: 'provider' stands outside of a profile; write `default:` or another name above",
    ),
    "settings beside a profile": (
        "m: {extends: default}\nlimits: {steps: 3}\n",
        r"line 2: 'limits' stands outside of a profile",
    ),
    "toolkits of a list": ("toolkits:\n- name: developer\n  requires: {}\n", r"line 1: 'toolkits' stands outside"),
    "no YAML": ("m:\n  a: [1", r"line \d: this is not valid YAML"),
    "a key twice": ("m:\n  sandbox: full\n  sandbox: full", r"line 3: this is not valid YAML: found duplicate key"),
    "control characters": ("m: \x01", r"profiles.yaml: ReaderError: "),
    "circle": (
        "m:\n  extends: n\nn:\n  extends: m",
        r"line 4: profiles extend each other in a circle: m -> n -> m; remove one `extends`",
    ),
    "circle of one": ("m:\n  extends: m", r"line 2: profiles extend each other in a circle: m -> m"),
    "extends unknown": (
        "m:\n  extends: defalt\ndefault: {}",
        r"line 2: unknown profile 'defalt'; did you mean 'default'\?",
    ),
    "nesting": ("m: " + "[" * 3_000 + "]" * 3_000, "line 1: it nests too deep; write it flatter"),
    "nesting by lines": ("".join(f"{' ' * depth}m:\n" for depth in range(3_000)), "it nests too deep"),
    "extends a list": ("m:\n  extends: [a]", r"line 2: extends: expected one profile's name, not \['a'\]"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence_with_its_line(write, kind):
    text, words = BAD[kind]
    file = write(text)
    with pytest.raises(ProfileError, match=words) as caught:
        load_profile("m")
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(file))


def test_no_utf8(write):
    write("").write_bytes(b"m: \xff")
    with pytest.raises(ProfileError, match=r"can't be read: line 1 is not UTF-8 text; correct or remove it"):
        load_profile("m")


@pytest.mark.parametrize("use", ["[a]", "3", "true", "[[a]]"])
def test_a_default_that_is_no_name(write, use):
    file = write(f"default: {{}}\nuse: {use}")
    with pytest.raises(ProfileError, match=re.escape(f"{file}, line 2: use: expected the name of a profile, not ")):
        load_profile(None)


def test_a_profile_may_have_the_name_use(write):
    write("use: {sandbox: full}")
    assert load_profile("use")[0].sandbox == "full"
    assert load_profile(None)[0].name == "default"


def test_unknown_profile(write, home):
    write("mine: {}")
    with pytest.raises(ProfileError, match=r"^unknown profile 'mne'; did you mean 'mine'\?; looked in ") as caught:
        load_profile("mne")
    assert f"{home / 'config'}, " in str(caught.value)
    write("default: {}")
    with pytest.raises(ProfileError, match="there are: ") as listed:
        load_profile("zzz")
    assert str(listed.value).count("default") == 1
    assert str(caught.value).endswith("; make it: goose-like profile new mne")


def test_an_error_names_the_file_of_the_base(write):
    write("m:\n  extends: base\n  limits:\n    steps: 3")
    base = write("sandbox: full\nlimits:\n  steps: 3\n  tokens: many", "base")
    with pytest.raises(ProfileError, match=r"line 4: limits.tokens") as caught:
        load_profile("m")
    assert str(base) in str(caught.value)


def test_place_of_an_inherited_value(write):
    write("m:\n  extends: base\n  sandbox: full")
    base = write("limits: {}\ntoolkits:\n  - a\n  - name: b\n    requires:\n      x: y", "base")
    _, source = load_profile("m")
    assert source.locate("toolkits", 1, "requires", "x") == f"{base}, line 6"
    assert source.locate("toolkits", 1, "nothing") == f"{base}, line 4"
    assert source.locate("sandbox").endswith("profiles.yaml, line 3")


def test_place_of_a_replaced_value(write):
    write("m:\n  extends: base\n  processor: local\n  toolkits: [a]")
    write("processor:\n  model: local\ntoolkits:\n  - name: b\n    requires: {x: y}", "base")
    _, source = load_profile("m")
    assert source.locate("processor", "model").endswith("profiles.yaml, line 3")
    assert source.locate("toolkits", 0, "name").endswith("profiles.yaml, line 4")


@pytest.mark.parametrize("rule", ["''", "'tool:'", "url:x", "ls | rm", "rm $HOME", "echo `x`"])
def test_a_permission_rule_that_could_never_match_is_refused(write, rule):
    write(f"mine:\n  permissions:\n    deny:\n    - git push\n    - {rule}")
    with pytest.raises(ProfileError, match=r"line 5: permissions.deny.1: expected the start of a command"):
        load_profile("mine")
