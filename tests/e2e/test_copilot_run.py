"""Runs of copilots that go wrong or need something: limits, loops, storage, own folders and keys."""

from pathlib import Path
from typing import Any

import pytest

from goose_like.config.yaml_reader import format_document
from tests import ROOT
from tests.e2e.command import Place

WORKSHOP = ROOT / "tests/fixtures/components/workshop"
BASIC = "org.concopilot.basic"
HOW = ("component", "run", "drill_copilot")


def named(group_id: str, artifact_id: str, version: str, **more: Any) -> dict[str, Any]:
    return {"group_id": group_id, "artifact_id": artifact_id, "version": version, **more}


class Drill:
    """The copilot of the fixture `drill` in a user's workspace."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.env = {"HOME": str(place.home)}
        done = place.run("component", "install", str(WORKSHOP / "drill"), env=self.env)
        assert done.returncode == 0, done.stderr

    def run(self, does: str, *words: str, typed: str | None = None, config: Any = None, **profile: Any) -> Any:
        """Run the copilot with a profile that has these keys, and return the finished process."""
        self._write_copilot({"does": does, **(config or {})})
        profiles = self.place.home / "config" / "profiles.yaml"
        profiles.parent.mkdir(exist_ok=True)
        profiles.write_text(format_document({"default": {"toolkits": [], **profile}}))
        return self.place.run(*HOW, *words, env=self.env, input=typed)

    def _write_copilot(self, config: dict[str, Any]) -> None:
        resources = [
            named("goose_like", "llm", "1.0"),
            named(f"{BASIC}.resource.category", "disk", "0.0.0"),
        ]
        parts = {
            "resource_manager": named(
                f"{BASIC}.resource.manager", "basic-resource-manager", "0.0.0", config={"resources": resources}
            ),
            "cerebrum": named("goose_like", "cerebrum", "1.0"),
            "interactor": named("org.example.workshop", "drill", "1.0.0", config=config),
            "plugin_manager": named(f"{BASIC}.plugin.manager", "basic-plugin-manager", "0.0.0", config={"plugins": []}),
            "message_manager": named(f"{BASIC}.message.manager", "basic-str-msg-manager", "0.0.0"),
            "storage": named(f"{BASIC}.storage", "disk-storage", "0.0.1"),
            "user_interface": named("goose_like", "user-interface", "1.0"),
        }
        own = named("org.example.workshop", "drill-copilot", "1.0.0", type="copilot", as_plugin=False)
        file = Path(self.place.work, "drill_copilot/.config/config.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(format_document({**own, "setup": {"package": f"{BASIC[4:]}.copilot"}, "config": parts}))


@pytest.fixture
def drill(place: Place) -> Drill:
    return Drill(place)


@pytest.mark.parametrize("does", ["ask", "infer"])
def test_a_run_ends_at_the_limit_of_steps(drill: Drill, does: str):
    model = drill.place.script(*["fine"] * 9)
    done = drill.run(does, "--model", model, limits={"steps": 3})
    assert done.returncode == 3, done.stderr
    assert "stopped: the limit of 3 steps in the whole run; raise `limits` in the profile" in done.stderr
    assert done.stderr.startswith(f"auto · workspace · profile default · {model}\n")


def test_a_run_ends_at_the_limit_of_time(drill: Drill):
    done = drill.run("wait", limits={"time_s": 0.5})
    assert done.returncode == 124, done.stderr
    assert "stopped at the profile's limit of 0.5 s" in done.stderr


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("fail", "the copilot failed 10 times in the same way and was stopped"),
        ("ask", "stopped, as a request of the component failed 10 times in the same way: the model gave no answer"),
        ("read", "the input has ended, and the copilot asks on; it was stopped"),
    ],
)
def test_a_loop_that_fails_again_and_again_is_stopped(drill: Drill, does: str, reason: str):
    refusals = [{"error": {"status": 400, "text": "no such model"}}] * 12
    done = drill.run(does, "--model", drill.place.script(*refusals), typed="hello\n")
    assert done.returncode == 1
    assert reason in done.stderr


def test_a_storage_gives_back_what_it_got(drill: Drill):
    first = drill.run("keep")
    assert (first.returncode, first.stdout) == (0, ""), first.stderr
    second = drill.run("keep")
    assert second.returncode == 0, second.stderr
    assert second.stdout.splitlines() == [
        "Message hello user",
        "Message {'command': 'count', 'param': {'text': 'a'}} cerebrum",
        "Asset words ['a', 'b'] False",
    ]


def test_a_dot_folder_that_the_configuration_names_is_its_own(drill: Drill):
    for count in (1, 2):  # at the second start it exists
        done = drill.run("look")
        assert done.returncode == 0, done.stdout + done.stderr
        assert (drill.place.work / ".drill_pages/index.html").read_text() == "page\n" * count
    (drill.place.work / ".theirs").mkdir()
    done = drill.run("look", config={"folder": ".theirs"})
    assert done.returncode == 1
    assert "names that begin with a dot are reserved" in done.stdout
    settings = {"dot_folders": [".theirs"], "variables": ["DRILL_API_KEY"]}
    drill.env["DRILL_API_KEY"] = "drill-" + "secret"
    done = drill.run("look", config={"folder": ".theirs"}, toolkits=[{"name": "components", "config": settings}])
    assert (done.returncode, done.stdout) == (0, "key: drill-secret\n"), done.stderr
    assert (drill.place.work / ".theirs/index.html").is_file()
