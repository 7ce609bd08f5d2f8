"""Tests of the toolkits that a profile offers over HTTP."""

import pytest

from goose_like.agent.build import build_exchange
from goose_like.config.profile import ModelChoice, Profile
from goose_like.config.profile_loader import load_profile
from goose_like.core.errors import ProfileError
from goose_like.core.notifier import Recorder
from goose_like.serve.service import restrict_profile


def profile(*toolkits):
    return Profile.model_validate({"name": "p", "processor": "scripted:x.yaml", "toolkits": list(toolkits)})


def names(served):
    return [choice.name for choice in served.toolkits]


def test_what_touches_the_machine_is_left_out():
    served, left_out = restrict_profile(profile("developer", "jira", "code", "delegate", "reasoner", "screen"), ())
    assert names(served) == ["jira", "reasoner", "openbb"]
    assert left_out == ("developer", "code", "delegate", "screen")


def test_what_is_named_stays_in_its_place_with_its_config():
    configured = {"name": "developer", "config": {"tools": ["shell"]}}
    served, left_out = restrict_profile(profile("repo_context", configured, {"name": "openbb"}), ["developer"])
    assert (names(served), left_out) == (["developer", "openbb"], ("repo_context",))
    assert served.toolkits[0].config == {"tools": ["shell"]}


def test_a_profile_of_which_nothing_is_left():
    assert names(restrict_profile(profile("developer"), ())[0]) == ["openbb"]
    assert names(restrict_profile(profile(), ["openbb"])[0]) == ["openbb"]


def test_a_requirement_that_was_left_out_is_told_with_what_to_add():
    needing = {"name": "reasoner", "requires": {"shell": "developer"}}
    with pytest.raises(ProfileError, match=r"'reasoner' requires 'developer'.* add --toolkit developer") as caught:
        restrict_profile(profile("developer", needing), ())
    assert caught.value.path == ("toolkits", 1, "requires", "shell")
    assert names(restrict_profile(profile("developer", needing), ["developer"])[0]) == [
        "developer",
        "reasoner",
        "openbb",
    ]
    also_out = {"name": "screen", "requires": {"shell": "developer"}}
    assert names(restrict_profile(profile("developer", also_out), ())[0]) == ["openbb"]


@pytest.mark.parametrize(
    ("toolkits", "report"), [(("developer",), "did you mean 'developer'?"), ((), "there are none")]
)
def test_a_name_that_the_profile_has_not(toolkits, report):
    with pytest.raises(ProfileError, match="--toolkit develper: profile 'p' has no such toolkit; ") as caught:
        restrict_profile(profile(*toolkits), ["develper"])
    assert str(caught.value).endswith(report)


async def test_the_profile_that_comes_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text("- hello\n")
    found, _ = load_profile("openbb")
    served, left_out = restrict_profile(found, ())
    assert (served, left_out) == (found, ())
    played = served.model_copy(update={"processor": ModelChoice(model="scripted:x.yaml"), "sandbox": "full"})
    async with build_exchange(played, Recorder()) as exchange:
        assert exchange.system.startswith("You are goose_like, an assistant.")
        assert "folder" not in exchange.system
