"""Bundles as a person uses them: the commands of docs/bundles.md."""

from tests.e2e.command import Place
from tests.e2e.pages import find_blocks, run_line
from tests.toolkits.bundles.write_bundle import write


def test_the_bundle_of_the_page(place: Place) -> None:
    """Run the blocks of the page in their order, the first one against a copy of such a list."""
    listed, made, changed = find_blocks("docs/bundles.md", "sh")
    market = place.home / "market"
    write(market / "one/.claude-plugin/plugin.json", {"name": "commit-commands"})
    write(market / "one/commands/commit.md", "Commit.")
    entries = [{"name": "commit-commands", "source": "./one"}, {"name": "other", "source": "./two"}]
    write(market / ".claude-plugin/marketplace.json", {"name": "m", "plugins": entries})
    line = listed.replace("anthropics/claude-code", str(market)).strip()
    done = run_line(place, f"{line} --yes")
    assert done.returncode == 0, done.stderr
    assert "added; new sessions use it" in done.stdout

    *adding, running = made.strip().splitlines()
    done = run_line(place, "\n".join(adding))
    assert done.returncode == 0, done.stderr
    model = place.script({"text": "news", "expect": r"^Say what changed since v1\.0, in three lines\.$"})
    done = run_line(place, running.replace("goose-like run", f"goose-like run --model {model}"))
    assert (done.returncode, done.stdout) == (0, "news\n"), done.stderr
    done = run_line(place, changed)
    assert done.returncode == 0, done.stderr
    assert "+Say what changed since $1, in five lines." in done.stdout
    assert "removed kit" in done.stdout


def test_without_a_person_nothing_is_added(place: Place) -> None:
    write(place.work / "kit/.codex-plugin/plugin.json", {"name": "kit"})
    done = place.run("bundle", "add", "kit")
    assert done.returncode == 6
    assert "nobody is there to ask" in done.stderr
    assert "there are no bundles" in place.run("bundle", "list").stdout
