"""Profiles of sessions: the modes in which one ended stay, and the embedded model gets fewer tools."""

import itertools

import pytest

from goose_like.agent import profile_choice
from goose_like.agent.profile_choice import choose_profile, keep_modes, restrict_profile
from goose_like.config.paths import config_folder
from goose_like.config.profile import Profile
from goose_like.core.errors import CredentialError
from goose_like.core.events import ModeRestricted
from goose_like.sessions.archive import export_archive, import_file
from goose_like.sessions.fork import fork
from goose_like.sessions.index import find_session
from goose_like.sessions.session import Session
from goose_like.workspace.permissions.policy import APPROVALS, MODES
from tests.sessions.session_files import make_header, write_session

RESUMED = {"unattended": "auto"}
"""The process that resumes a session may have a person at its terminal."""

PAIRS = list(itertools.product(MODES, APPROVALS))


def end_in(name, sandbox, approval, is_restricted=False):
    """Write a session that began in the modes of the profile and ended in others, after a new start or without one."""
    write_session(name, "one", "two", cwd="/w")
    header = make_header(name).model_copy(update={"sandbox": sandbox, "approval": approval, "profile": ""})
    session = Session.resume(name)
    if is_restricted:
        session.append(header.model_copy(update={"sandbox": "full", "approval": "yolo"}))
        session.append(ModeRestricted(sandbox=sandbox, approval=approval))
    else:
        session.append(header)
    session.close()
    return Session.resume(name)


@pytest.mark.parametrize("is_restricted", [False, True])
@pytest.mark.parametrize(("sandbox", "approval"), PAIRS)
def test_a_resumed_session_is_in_the_mode_in_which_it_ended(home, sandbox, approval, is_restricted):
    session = end_in("one", sandbox, approval, is_restricted)
    profile = choose_profile(None, "scripted:x", session=session).profile
    assert (profile.sandbox, profile.approval) == (sandbox, RESUMED.get(approval, approval))
    given = choose_profile(None, "scripted:x", "workspace", "ask", session).profile
    assert (given.sandbox, given.approval) == ("workspace", "ask")
    session.close()


@pytest.mark.parametrize("is_restricted", [False, True])
@pytest.mark.parametrize(("sandbox", "approval"), PAIRS)
def test_a_fork_before_the_last_start_has_its_mode(home, sandbox, approval, is_restricted):
    end_in("one", sandbox, approval, is_restricted).close()
    copy = fork(find_session("one"), at=2, name="copy")
    copy.close()
    resumed = Session.resume("copy")
    assert resumed.history.turn_count == 1
    kept = keep_modes(Profile(), resumed)
    assert (kept.sandbox, kept.approval) == (sandbox, RESUMED.get(approval, approval))
    resumed.close()


@pytest.mark.parametrize(("approval", "kept"), [("unattended", "unattended"), ("yolo", "auto"), ("ask", "ask")])
def test_an_unattended_session_resumes_in_the_mode_of_the_profile_or_auto(home, approval, kept):
    session = end_in("one", "workspace", "unattended")
    assert keep_modes(Profile(approval=approval), session).approval == kept
    session.close()


def test_a_given_model_replaces_one_that_cannot_be_chosen_now(home, monkeypatch):
    write_session("one", "one", "two", cwd="/w")
    session = Session.resume("one")
    session.append(make_header("one").model_copy(update={"profile": "default"}))
    session.close()
    session = Session.resume("one")

    def fail(profile):
        raise CredentialError("no model")

    monkeypatch.setattr(profile_choice, "choose_models", fail)
    profile = choose_profile(None, "scripted:x", session=session).profile
    assert profile.processor.model == "scripted:x"
    with pytest.raises(CredentialError):
        choose_profile(None, None, session=session)
    session.close()


def test_another_profile_may_only_be_stricter(home):
    for (sandbox, approval), (other, stricter) in itertools.product(PAIRS, PAIRS):
        profile = Profile(sandbox=sandbox, approval=approval)
        result = restrict_profile(profile, Profile(sandbox=other, approval=stricter))
        assert MODES.index(result.sandbox) == min(MODES.index(sandbox), MODES.index(other))
        assert APPROVALS.index(result.approval) == min(APPROVALS.index(approval), APPROVALS.index(stricter))
    session = end_in("one", "read-only", "plan")
    chosen = choose_profile("default", session=session).profile
    assert (chosen.sandbox, chosen.approval) == ("read-only", "plan")
    session.close()


def test_an_unknown_mode_counts_as_the_strictest_and_none_as_the_profiles(home):
    session = end_in("new", "airtight", "sometimes")
    kept = keep_modes(Profile(), session)
    assert (kept.sandbox, kept.approval) == ("read-only", "plan")
    session.close()
    write_session("old", "one")
    old = Session.resume("old")
    assert keep_modes(Profile(approval="ask"), old).approval == "ask"
    old.close()


@pytest.mark.parametrize("is_restricted", [False, True])
@pytest.mark.parametrize(("sandbox", "approval"), PAIRS)
def test_an_imported_session_may_only_restrict(home, tmp_path, sandbox, approval, is_restricted):
    end_in("one", sandbox, approval, is_restricted).close()
    file = tmp_path / "one.json"
    file.write_text(export_archive(find_session("one")))
    import_file(file, "copy").close()
    copy = Session.resume("copy")
    kept = keep_modes(Profile(), copy)
    assert kept.approval == (approval if approval in ("plan", "ask") else "auto")
    assert kept.sandbox == (sandbox if sandbox == "read-only" else "workspace")
    copy.close()


@pytest.mark.parametrize(
    ("name", "model", "own", "chosen"),
    [
        ("analyst", "local", "", "analyst-local"),
        ("analyst", "local:/a/larger.gguf", "", "analyst"),
        ("analyst", "openai:m", "", "analyst"),
        ("analyst", None, "default: {processor: local}", "analyst-local"),
        ("analyst", None, "default: {processor: openai:m}", "analyst"),
        ("analyst", "local", "analyst: {toolkits: [code]}", "analyst"),
        ("openbb", "local", "", "openbb-local"),
        ("openbb", "openai:m", "", "openbb"),
        ("default", "local", "", "default"),
        (None, "local", "", "local"),
        (None, "local:/a/larger.gguf", "", "default"),
    ],
)
def test_embedded_model_gets_small_profiles(home, name, model, own, chosen):
    if own:
        file = config_folder() / "profiles.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(own)
    profile = choose_profile(name, model, approval="ask").profile
    assert (profile.name, profile.approval) == (chosen, "ask")
    toolkits = {
        "analyst-local": ["code"],
        "default": ["developer", "delegate"],
        "local": ["developer"],
        "openbb": ["openbb"],
        "openbb-local": ["openbb"],
    }
    whole = ["code"] if own.startswith("analyst") else ["developer", "code"]
    assert [each.name for each in profile.toolkits] == toolkits.get(chosen, whole)


def test_embedded_model_keeps_the_persons_own_default(home):
    file = config_folder() / "profiles.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("default: {processor: openai:m, toolkits: [developer]}")
    profile = choose_profile(None, "local").profile
    assert (profile.name, profile.processor and profile.processor.model) == ("default", "local")
