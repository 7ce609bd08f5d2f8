"""The tests of llm-comply for servers of OpenAI's APIs, against `serve`. See the option `--comply`."""

import json
import subprocess

import pytest

pytest.importorskip("uvicorn")

from tests.e2e.command import Place
from tests.e2e.serving import serving

TEXT = "one two three"
CALL = {"calls": [{"tool": "get_weather", "arguments": {"location": "San Francisco"}}]}
THOUGHT = {"thinking": "fifteen times thirty-seven", "text": "555"}
SCRIPTS = {
    "open-responses": [*[TEXT] * 3, CALL, *[TEXT] * 5, THOUGHT],
    "openai-chat": [*[TEXT] * 3, CALL, *[TEXT] * 3, THOUGHT],
}
"""The answers for each format, in the order of its tests."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_format(name, request, tmp_path):
    python = request.config.getoption("--comply")
    if python is None:
        pytest.skip("it needs the Python of an environment with `pip install llm-comply==0.5.*`: --comply PYTHON")
    place = Place(tmp_path / "home", tmp_path / "work")
    place.work.mkdir()
    profiles = place.home / "config/profiles"
    profiles.mkdir(parents=True)
    (profiles / "gpt-5.yaml").write_text("toolkits: []\n")  # a name for which it tests reasoning too
    with serving(place, "--profile", "gpt-5", "--model", place.script(*SCRIPTS[name])) as server:
        options = ["--base-url", f"{server.url}/v1", "--api-key", "any", "--model", "gpt-5", "--format", name, "--json"]
        command = [python, "-m", "llm_comply.cli", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout)["results"]
    assert {result["status"] for result in results} == {"passed"}, results
