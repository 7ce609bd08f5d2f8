"""Tests of project files: read without links, trusted by content, and limited to harmless keys."""

import json
import os
from pathlib import Path

import pytest

from goose_like.config import trust
from goose_like.config.profile_loader import list_profile_sources, load_profile
from goose_like.config.trust import ProjectConfig, StoredApproval, load_trusted_project, read_project_config
from goose_like.core.errors import GooseLikeError, ProfileError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which we are, in a folder below its root."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/below").mkdir()
    monkeypatch.chdir(tmp_path / "repo/below")
    return tmp_path / "repo"


@pytest.fixture
def bring(root: Path):
    """Writes the project's profiles; gives the project."""

    def bring(text: str) -> ProjectConfig:
        file = root / ".goose-like/profiles.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        project = read_project_config(Path.cwd())
        assert project
        return project

    return bring


def test_trust_is_bound_to_the_content_and_the_folder(bring, root, tmp_path):
    project = bring("review: {limits: {steps: 5}}")
    assert load_trusted_project(Path.cwd()) is None
    trust.trust_project(project)
    assert load_trusted_project(Path.cwd()) == project
    assert load_trusted_project(root) == project
    bring("review: {limits: {steps: 6}}")
    assert load_trusted_project(Path.cwd()) is None
    bring("review: {limits: {steps: 5}}")
    assert load_trusted_project(Path.cwd()) == project
    root.rename(tmp_path / "elsewhere")
    assert load_trusted_project(tmp_path / "elsewhere") is None


def test_the_judged_texts_are_used(bring, root):
    project = bring("review: {limits: {steps: 5}}")
    (root / ".goose-like/profiles.yaml").write_text("review: {limits: {steps: 6}}")
    assert load_profile("review", project)[0].limits.steps == 5


@pytest.mark.parametrize("link", [".goose-like", ".goose-like/profiles.yaml"])
def test_links_are_not_followed(root, tmp_path, link):
    (tmp_path / "target").mkdir()
    (tmp_path / "target/profiles.yaml").write_text("review: {}")
    (root / link).parent.mkdir(exist_ok=True)
    (root / link).symlink_to(tmp_path / "target" / ("" if link == ".goose-like" else "profiles.yaml"))
    project = read_project_config(root)
    assert project
    assert project.files == {}
    assert "links are not followed" in project.skipped[0]


def test_unreadable_files_are_reported(bring, root):
    assert "line 1 is not UTF-8 text" in read_skipped(bring, root, b"\xff")
    assert "more than 256,000 bytes" in read_skipped(bring, root, b"#" * 256_001)
    (root / ".goose-like/profiles.yaml").unlink()
    os.mkfifo(root / ".goose-like/profiles.yaml")
    assert read_project_config(root)  # and does not wait for a writer


def read_skipped(bring, root, data: bytes) -> str:
    bring("")
    (root / ".goose-like/profiles.yaml").write_bytes(data)
    project = read_project_config(root)
    assert project
    assert project.files == {}
    return project.skipped[0]


def test_commands_are_read_too(bring, root):
    project = bring("review: {}")
    trust.trust_project(project)
    for name in ("commands/fix.md", "commands/git/log.md", "commands/notes.txt"):
        (root / ".goose-like" / name).parent.mkdir(exist_ok=True)
        (root / ".goose-like" / name).write_text(f"say {name}")
    assert load_trusted_project(root) is None
    brought = read_project_config(root)
    assert brought
    assert brought.files == {
        "profiles.yaml": "review: {}",
        "commands/fix.md": "say commands/fix.md",
        "commands/git/log.md": "say commands/git/log.md",
    }
    trust.trust_project(brought)
    assert load_trusted_project(root) == brought
    (root / ".goose-like/commands/fix.md").write_text("say something else")
    assert load_trusted_project(root) is None


def test_commands_for_other_agents_need_trust_too(root, tmp_path):
    for name in (".claude/commands/fix.md", ".claude/settings.json", ".agents/commands/git/log.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"say {name}")
    assert load_trusted_project(root) is None
    brought = read_project_config(root)
    assert brought
    names = [".claude/commands/fix.md", ".agents/commands/git/log.md"]
    assert brought.files == {name: f"say {name}" for name in names}
    assert [brought.get_path(name) for name in names] == [root / name for name in names]
    trust.trust_project(brought)
    assert load_trusted_project(root) == brought


@pytest.mark.parametrize("link", ["commands", "commands/one.md", "commands/below/one.md"])
def test_no_link_leads_to_a_command(root, tmp_path, link):
    (tmp_path / "target/below").mkdir(parents=True)
    (tmp_path / "target/one.md").write_text("x")
    (tmp_path / "target/below/one.md").write_text("x")
    at = root / ".goose-like" / link
    at.parent.mkdir(parents=True)
    at.symlink_to(tmp_path / "target" / ("one.md" if link.endswith(".md") else ""))
    project = read_project_config(root)
    assert project
    assert project.files == {}
    (text,) = project.skipped
    assert text.startswith(f".goose-like/{link} is not read: ")
    assert text.endswith("links are not followed")


def test_a_command_whose_name_can_not_be_shown(root):
    (root / ".goose-like/commands").mkdir(parents=True)
    for name in (b"a\nb.md", b"\xff.md", b"fine.md"):
        Path(os.fsdecode(bytes(root) + b"/.goose-like/commands/" + name)).write_text("x")
    project = read_project_config(root)
    assert project
    assert list(project.files) == ["commands/fine.md"]
    assert ["rename it" in sentence for sentence in project.skipped] == [True, True]
    trust.trust_project(project)
    assert load_trusted_project(root) == project


def test_a_linked_folder_of_commands_is_left_out(root, tmp_path):
    (root / ".goose-like/commands").mkdir(parents=True)
    (tmp_path / "one.md").write_text("x")
    (root / ".goose-like/commands/below").symlink_to(tmp_path)
    assert read_project_config(root) is None


def test_a_project_without_files(root):
    assert read_project_config(root) is None


def test_the_trust_file_is_private_and_a_damaged_one_is_reported(bring, home):
    trust.trust_project(bring("review: {}"))
    file = home / "config/trust.json"
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert list(file.parent.iterdir()) == [file]
    file.write_text("{")
    with pytest.raises(GooseLikeError, match=r"trust\.json can't be read \(Invalid JSON"):
        load_trusted_project(Path.cwd())


def test_rules_in_the_trust_file_stay_and_a_wrong_one_is_named(root, home):
    file = home / "config/trust.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    rules = {"allow": [], "ask": [], "deny": ["git push"]}
    file.write_text(json.dumps({"folders": {str(root): {"permissions": rules}}}))
    approval = StoredApproval(kind="network", subject="one")
    trust.store_approval(root, approval)
    trust.store_approval(root.parent, approval)
    folders = json.loads(file.read_text())["folders"]
    assert (folders[str(root)]["permissions"], "permissions" in folders[str(root.parent)]) == (rules, False)
    file.write_text(json.dumps({"folders": {str(root): {"permissions": {"deny": ["a | b"]}}}}))
    with pytest.raises(GooseLikeError, match=r"permissions\.deny\.0: the start of a command .*; correct or remove it"):
        trust.load_folder_trust(root)


def test_permissions_are_revoked_one_by_one(bring, root, home):
    project = bring("review: {}")
    one, two = StoredApproval(kind="network", subject="one"), StoredApproval(kind="network", subject="two")
    trust.trust_project(project)
    trust.store_approval(root, one)
    trust.store_approval(root, two)
    trust.revoke(root, one)
    assert trust.load_folder_trust(root).approvals == (two,)
    assert load_trusted_project(root) == project
    trust.revoke(root)
    assert load_trusted_project(root) is None
    assert trust.load_folder_trust(root).approvals == (two,)
    trust.revoke(root, two)
    assert json.loads((home / "config/trust.json").read_text())["folders"] == {}


# --- profiles


def test_profiles_of_a_project_need_trust(bring, root):
    project = bring("review: {limits: {steps: 5}}")
    with pytest.raises(ProfileError, match="unknown profile 'review'"):
        load_profile("review")
    trust.trust_project(project)
    profile, source = load_profile("review")
    assert (profile.limits.steps, source.file) == (5, root / ".goose-like/profiles.yaml")


@pytest.fixture
def write_own(home):
    """Writes the person's own profiles."""

    def write(text: str) -> None:
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config/profiles.yaml").write_text(text)

    return write


def test_user_profiles_override_the_projects(bring, write_own):
    project = bring("default: {limits: {steps: 5, tokens: 10}}\nmine: {limits: {steps: 5}}")
    write_own("default: {extends: default, limits: {steps: 6}}\nmine: {}")
    profile, _ = load_profile("default", project)
    assert (profile.limits.steps, profile.limits.tokens) == (6, 10)
    assert load_profile("mine", project)[0].limits.steps == 256
    files = [source.file.parent.name for source in list_profile_sources(project) if source.name == "default"]
    assert files == ["config", ".goose-like", "goose_like_profiles"]


ALLOWED = """
default:
  extends: default
  processor: {model: openai:big, tools: constrained, window: 8192, max_output_tokens: 100, temperature: 0, stall_s: 9}
  accelerator: openai:small
  moderator: passive
  toolkits:
    - developer
    - {name: b, requires: {it: developer}, config: {tools: [x]}}
    - [c, {it: developer}]
  limits: {steps: 3, cost_usd: 1, tokens: 5, time_s: 3, output_bytes: 500}
older: {provider: openai, processor: big}
"""


def test_allowed_keys_of_a_project(bring):
    project = bring(ALLOWED)
    profile, _ = load_profile("default", project)
    assert (profile.processor.model, len(profile.toolkits), profile.limits.steps) == ("openai:big", 3, 3)
    assert load_profile("older", project)[0].processor.model == "openai:big"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("processor: {model: openai:x, base_url: http://evil.example}", "processor.base_url"),
        ("accelerator: {model: openai:x, api_key: x}", "accelerator.api_key"),
        ("sandbox: full", "sandbox"),
        ("approval: yolo", "approval"),
        ("hosted: [web_search]", "hosted"),
        ("toolkits: [{name: developer, config: {allow_private: true}}]", "toolkits.0.config.allow_private"),
        ("moderator: {name: truncate, config: {x: 1}}", "moderator.config"),
        ("<<: {sandbox: full}", "<<|sandbox"),
    ],
)
def test_forbidden_keys_of_a_project(bring, root, line, key):
    project = bring(f"good: {{}}\nevil:\n  extends: default\n  {line}")
    with pytest.raises(ProfileError, match=rf"profiles\.yaml, line [34]: a project may not set '({key})'"):
        load_profile("evil", project)
    assert load_profile("good", project)


OWN = """
risky: {sandbox: full, approval: yolo, limits: {steps: 7}}
default: {extends: default, sandbox: read-only}
mine: {extends: mine, approval: plan}
"""


@pytest.mark.parametrize(("name", "approval"), [("new", "auto"), ("default", "auto"), ("mine", "plan")])
def test_a_project_does_not_loosen_anything_by_extending(bring, write_own, name, approval):
    project = bring(f"{name}: {{extends: risky}}")
    write_own(OWN)
    profile, _ = load_profile(name, project)
    assert profile.limits.steps == 7
    assert (profile.sandbox, profile.approval) == ("read-only", approval)


def test_a_project_does_not_loosen_a_profile_by_taking_its_name(bring, home, write_own):
    project = bring("strict: {}\nlocal: {}")
    write_own("default: {extends: default, sandbox: full}")
    (home / "config/profiles").mkdir()
    (home / "config/profiles/strict.yaml").write_text("sandbox: read-only")
    assert load_profile("strict", project)[0].sandbox == "read-only"
    profile, source = load_profile("local", project)
    assert (source.file, profile.sandbox) == (project.get_path("profiles.yaml"), "workspace")


def test_a_project_does_not_tighten_by_extending_either(bring, write_own):
    project = bring("review: {extends: strict}")
    write_own("strict: {sandbox: read-only}")
    assert load_profile("review", project)[0].sandbox == "workspace"


def test_a_project_cannot_switch_on_the_vendors_tools_by_what_it_extends(bring, write_own):
    write_own("web: {hosted: [web_search]}")
    project = bring("default: {extends: web}")
    assert load_profile("default", project)[0].hosted == ()
    assert load_profile("web", project)[0].hosted == ("web_search",)


def test_rules_of_the_default_profile_hold_below_a_profile_that_extends_a_project(bring, write_own):
    project = bring("review: {}")
    write_own("default: {permissions: {deny: [rm]}}\nmine: {extends: review, permissions: {deny: [curl]}}")
    assert load_profile("mine", project)[0].permissions.deny == ("curl", "rm")


def test_errors_of_a_project_name_the_line(bring):
    with pytest.raises(ProfileError, match=r"\.goose-like/profiles\.yaml, line 2: this is not valid YAML"):
        load_profile("x", bring("x:\n  a: [1"))
    with pytest.raises(ProfileError, match=r"profiles\.yaml, line 2: limits\.steps: expected a valid integer"):
        load_profile("x", bring("x:\n  limits: {steps: many}"))
