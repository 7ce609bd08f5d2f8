"""Files of each format version, kept as the version wrote them, and files of newer versions."""

import json
from pathlib import Path

import pytest

from goose_like.config.paths import config_folder, sessions_folder
from goose_like.config.profile_loader import load_profile
from goose_like.config.trust import StoredApproval, load_folder_trust, store_approval
from goose_like.core.errors import GooseLikeError, ProfileError, SessionError
from goose_like.core.events import Asked, PromptRecorded, TurnFinished, TurnStarted
from goose_like.core.format_version import SESSION_FORMAT
from goose_like.core.message import Message
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_session, list_sessions
from goose_like.sessions.session import Session
from goose_like.sessions.transcript import list_changed_files

FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"
PROJECT = Path("/home/ann/project")
NEWER = SESSION_FORMAT + 1
UPGRADE = "upgrade it: pip install --upgrade goose-like"


def keep_session(text: str) -> Path:
    """Write the lines as the file of the session `kept`."""
    file = sessions_folder() / "20261127T080000-kept" / "events.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def keep_config(name: str, text: str) -> Path:
    config_folder().mkdir(parents=True, exist_ok=True)
    file = config_folder() / name
    file.write_text(text)
    return file


@pytest.mark.parametrize("is_numbered", [True, False], ids=["1", "before the number"])
def test_a_session_of_each_format_is_resumed(home, is_numbered):
    text = (FORMATS / "1" / "events.jsonl").read_text()
    if not is_numbered:
        text = text.replace(',"format":1', "")
    keep_session(text)
    session = Session.resume("kept")
    assert session.damage == []
    history = session.history
    assert [message.text for message in history.context.messages if message.role == "user"][-1].endswith("go on")
    assert (history.header.sandbox, history.header.approval) == ("read-only", "ask")
    assert [task.status for task in history.plan] == ["complete", "in-progress"]
    assert history.state["developer"] == {"facts": ["git: clean", 3, None, 2.5, True]}
    assert history.messages[-1].text.startswith("I was going to")
    session.close()


def test_a_session_of_format_2_keeps_its_prompt(home):
    keep_session((FORMATS / "2" / "events.jsonl").read_text())
    session = Session.resume("kept")
    assert session.damage == []
    history = session.history
    assert history.context.prompt is not None
    assert "Use tabs." in history.context.prompt.system
    assert history.context.known_prompt is not None
    assert "Use spaces." in history.context.known_prompt.system
    assert "write_file" in history.context.known_prompt.unavailable
    assert [message.role for message in history.messages[-4:]] == ["system", "user", "system", "assistant"]
    session.close()


def test_a_session_of_format_3_tells_what_changed_and_who_asked(home):
    keep_session((FORMATS / "3" / "events.jsonl").read_text())
    session = Session.resume("kept")
    assert session.damage == []
    assert session.history.header is not None
    assert session.history.header.displays == {"ask_user": "name", "update_plan": "nothing"}
    events = list(session.read_events())
    assert list_changed_files(events) == ["AGENTS.md"]
    (asked,) = (event.question for event in events if isinstance(event, Asked))
    assert asked.call_id == "call_4_1"
    assert [option.choice for option in asked.options] == ["allow", "allow_always", "deny"]
    session.close()


def test_a_session_of_format_4_tells_what_would_have_been_allowed(home):
    keep_session((FORMATS / "4" / "events.jsonl").read_text())
    session = Session.resume("kept")
    assert session.damage == []
    (asked,) = (event.question for event in session.read_events() if isinstance(event, Asked))
    assert asked.allowed_by == "sandbox workspace+network"
    session.close()
    import_file(FORMATS / "4" / "session.json", "again").close()
    assert Session.resume("again").damage == []


def test_a_session_of_format_5_keeps_what_a_killed_turn_has_spent(home):
    keep_session((FORMATS / "5" / "events.jsonl").read_text())
    session = Session.resume("kept")
    assert session.damage == []
    assert session.history.usage.turn_step_count == 2
    assert session.history.usage.turn_total.total_tokens == 2_500
    assert session.interrupted_turn_s == 6
    session.record(TurnStarted(message=Message.user("go on")))
    assert session.history.usage.turn_step_count == 2
    session.record(TurnFinished(reason="stop"))
    assert session.interrupted_turn_s == 0
    session.close()


def test_a_session_of_format_6_keeps_what_only_the_server_reads(home):
    keep_session((FORMATS / "6" / "events.jsonl").read_text())
    session = Session.resume("kept")
    assert session.damage == []
    (prompt,) = (event for event in session.read_events() if isinstance(event, PromptRecorded))
    assert prompt.tools[0].native == "apply_patch"
    (document,) = session.history.messages[0].images
    assert document.is_document
    (summary,) = session.history.context.messages
    assert summary.verbatim is not None
    assert summary.verbatim.items == ({"type": "compaction", "encrypted_content": "x"},)
    session.close()


def test_an_imported_session_of_format_3_keeps_its_changes(home):
    import_file(FORMATS / "3" / "session.json", "again").close()
    session = Session.resume("again")
    assert session.damage == []
    assert list_changed_files(list(session.read_events())) == ["/home/ann/project/AGENTS.md"]
    assert [task.description for task in session.history.plan] == ["note the tools"]
    session.close()


def test_an_imported_session_of_format_2_brings_no_instructions(home):
    import_file(FORMATS / "2" / "session.json", "again").close()
    session = Session.resume("again")
    assert session.damage == []
    history = session.history
    assert history.context.prompt is None
    assert "Use spaces." not in "".join(message.text for message in history.messages)
    assert [message.role for message in history.messages[-4:]] == ["system", "user", "system", "assistant"]
    session.close()


def test_an_export_of_each_format_is_imported(home):
    session = import_file(FORMATS / "1" / "session.json", "again")
    assert session.damage == []
    assert (session.outputs / "call_1.txt").read_text() == "Saved x-1.0.whl\n"
    assert (session.assets / "table.csv").read_text() == "a,b\n1,2\n"
    session.close()
    assert [info.summary for info in list_sessions()] == ["fetch the package"]


def test_a_trust_file_of_each_format_holds(home):
    keep_config("trust.json", (FORMATS / "1" / "trust.json").read_text())
    trust = load_folder_trust(PROJECT)
    assert trust.files == {"profiles.yaml": "default: {extends: default}\n"}
    assert trust.approvals == (StoredApproval(kind="network", subject="files.example.org"),)
    assert trust.permissions.ask == ("git push",)
    assert load_folder_trust(Path("/home/ann/other")).refused


@pytest.mark.parametrize("first_line", ["version: 1\n", ""], ids=["1", "without a number"])
def test_profiles_of_each_format_are_loaded(home, first_line):
    text = (FORMATS / "1" / "profiles.yaml").read_text().removeprefix("version: 1\n")
    keep_config("profiles.yaml", first_line + text)
    profile, _ = load_profile(None)
    assert (profile.name, profile.processor.model, profile.limits.steps) == ("careful", "openai:gpt-5", 40)
    assert [choice.name for choice in profile.toolkits] == ["developer", "delegate"]


@pytest.mark.parametrize("first_line", ["version: 1\n", ""])
def test_a_file_of_one_profile_may_have_a_version(home, first_line):
    (config_folder() / "profiles").mkdir(parents=True)
    (config_folder() / "profiles" / "own.yaml").write_text(first_line + "extends: default\nlimits: {steps: 7}\n")
    assert load_profile("own")[0].limits.steps == 7


def test_a_profile_may_be_named_version(home):
    keep_config("profiles.yaml", "version: {extends: default, limits: {steps: 7}}\n")
    assert load_profile("version")[0].limits.steps == 7


def make_newer(text: str) -> list[str]:
    """Return session files that a newer version began, resumed, and left with a torn line."""
    first, rest = text.split("\n", 1)
    newer = first.replace('"format":1', f'"format":{NEWER},"novelty":"x"')
    return [f"{newer}\n{rest}", f"{text}{newer}\n", f"{text}{newer}\ntorn"]


@pytest.mark.parametrize(
    "text", make_newer((FORMATS / "1" / "events.jsonl").read_text()), ids=["new", "resumed", "torn"]
)
def test_a_newer_session_is_listed_but_neither_read_nor_changed(home, text):
    file = keep_session(text)
    info = find_session("kept")
    acts = [lambda: Session.resume("kept"), lambda: fork(info), lambda: export_archive(info)]
    for act in acts:
        with pytest.raises(SessionError, match=f"has format {NEWER} of a newer goose-like") as failed:
            act()
        assert str(failed.value).endswith(UPGRADE)
    assert file.read_text() == text


@pytest.mark.parametrize("place", ["version", "format"])
def test_a_newer_export_is_refused(home, tmp_path, place):
    archive = json.loads((FORMATS / "1" / "session.json").read_text())
    if place == "version":
        archive["version"] = NEWER
        archive["novelty"] = 1
    else:
        archive["events"][0]["format"] = NEWER
        archive["events"][0]["novelty"] = 1
    file = tmp_path / "new.json"
    file.write_text(json.dumps(archive))
    with pytest.raises(
        SessionError, match=rf"new\.json has format {NEWER} of a newer goose-like.*Nothing was imported"
    ):
        import_file(file)
    assert list_sessions() == []


def test_a_newer_trust_file_is_neither_read_nor_changed(home):
    stored = json.loads((FORMATS / "1" / "trust.json").read_text())
    file = keep_config("trust.json", json.dumps(stored | {"version": 2, "novelty": 1}))
    before = file.read_text()
    for act in (load_folder_trust, lambda folder: store_approval(folder, StoredApproval(kind="network", subject="x"))):
        with pytest.raises(GooseLikeError, match=r"trust\.json has format 2 of a newer goose-like") as failed:
            act(PROJECT)
        assert str(failed.value).endswith(UPGRADE)
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("version", "report"),
    [("2", r"profiles\.yaml, line 1 has format 2 of a newer goose-like"), ("new", "expected the number 1, not 'new'")],
)
def test_profiles_of_a_newer_format_are_refused(home, version, report):
    keep_config("profiles.yaml", f"version: {version}\nown: {{extends: default, novelty: 1}}\n")
    for name in (None, "own", "local"):
        with pytest.raises(ProfileError, match=report):
            load_profile(name)
    keep_config("profiles.yaml", "")
    (config_folder() / "profiles").mkdir()
    (config_folder() / "profiles" / "own.yaml").write_text(f"version: {version}\nextends: default\nnovelty: 1\n")
    with pytest.raises(ProfileError, match=report.replace("profiles", "own")):
        load_profile("own")
