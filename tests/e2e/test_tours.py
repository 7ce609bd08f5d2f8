"""The tours: each command of a page in its order, with a server that answers `ok` in place of OpenAI's."""

import re

import pytest

from tests import ROOT
from tests.loopback import said, sse, threaded

STEP = re.compile(r"^```(\w+)\n(.*?)^```|^    (goose-like [^\n]*)$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", sorted(page.stem for page in (ROOT / "docs").glob("tour-*.md")))
def test_each_command_of_a_tour_works(place, newcomer, name):
    """Lines of a shell run in one folder, a block that names its file is written to it, lines of a session are read."""
    page = (ROOT / f"docs/{name}.md").read_text()
    folder = str(place.work)
    installs_its_own = re.search("^pip install .*-e ", page, re.MULTILINE)
    count = 0
    with threaded([sse(said("ok"))]) as server:
        env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.base_url}
        for language, block, indented in STEP.findall(page):
            if language in ("yaml", "python"):
                file = place.work / block.splitlines()[0].removeprefix("# ")
                file.parent.mkdir(exist_ok=True)
                file.write_text(block)
                continue
            lines = block or indented
            if language == "text":
                lines = f"goose-like --continue <<'END'\n{block}END\n"
            done = newcomer(f"cd {folder}\n{lines}\npwd", forks=not installs_its_own, **env)
            assert done.returncode == 0, done.stdout + done.stderr
            folder = done.stdout.splitlines()[-1]
            count += 1
    assert count >= 3
