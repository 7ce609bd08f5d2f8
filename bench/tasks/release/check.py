import re
import tomllib

from checking import evaluate, get_original, passes_tests, read, run

project = tomllib.loads(read("pyproject.toml"))["project"]
(version,) = evaluate("import tinytpl", "tinytpl.__version__")
title, *rest = read("docs/index.md").splitlines()
versions = [project["version"], version, title]
assert versions == ["1.3.0", "1.3.0", "# tinytpl 1.3.0"], f"the versions are {versions}"
assert rest == get_original("docs/index.md").splitlines()[1:], "more of docs/index.md was changed"
changelog = read("CHANGELOG.md")
head, _, older = changelog.partition("## 1.2.0 (2026-01-15)")
assert older == get_original("CHANGELOG.md").partition("## 1.2.0 (2026-01-15)")[2], "older releases were changed"
assert re.findall("(?m)^#.*", head) == ["# Changelog", "## 1.3.0 (2026-03-20)"], f"the new section is {head!r}"
entries = re.findall("(?m)^- (.*)", head)
assert len(entries) == 2, f"two changes are for users; the entries are {entries}"
text = " ".join(entries).lower()
assert "filter" in text and ("placeholder" in text or "no value" in text), f"the entries are {entries}"
kinds = sorted(entry.partition(":")[0] for entry in entries)
assert kinds == ["Added", "Fixed"], f"the entries are not in the style of the older ones: {entries}"
assert passes_tests("tests"), "the tests fail"
assert run("git", "log", "-1", "--format=%s") == "Release 1.3.0\n", "the last commit has another message"
assert run("git", "rev-list", "--count", "v1.2.0..HEAD") == "5\n", "there is not one new commit"
assert run("git", "rev-parse", "v1.3.0^{commit}") == run("git", "rev-parse", "HEAD"), "v1.3.0 is another commit"
assert run("git", "status", "--porcelain") == "", "there are changes that were not committed"
