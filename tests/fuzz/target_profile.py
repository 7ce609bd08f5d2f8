"""The loader of profiles."""

from pathlib import Path

import goose_like.config.profile_loader as loader
from goose_like.cli.commands.profile_actions import format_profile
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig
from goose_like.config.yaml_source import read_yaml
from goose_like.core.errors import ProfileError
from tests.fuzz.source import Source

BLOCKS = (
    "  processor: openai:big\n",
    "  accelerator: {model: local, window: 4096, temperature: 0.5}\n",
    "  moderator: {name: truncate, config: {limit_tokens: 10}}\n",
    "  toolkits:\n    - plain\n    - {name: full, requires: {a: plain}, config: {tools: [x], y: 1.5, z: null}}\n",
    "  toolkits: [[older, {b: plain}]]\n",
    "  limits: {steps: 3, cost_usd: 0.5, time_s: 1e3}\n",
    "  permissions:\n    deny: [git push --force, 'tool:x']\n    ask: [\"path:*.pem\"]\n    allow: [ls]\n",
    "  paths: {hide: ['*.pem'], read: [~/a]}\n",
    "  network: {allow: [example.org]}\n",
    "  variables: {pass: [A, B]}\n",
    "  resources: {processes: null, memory_mb: 100}\n",
    "  sandbox: full\n  approval: ask\n",
    "  session: {keys: vi}\n",
    "  extends: base\n",
    "  extends: default\n",
    "  provider: openai\n  processor: x\n",
    "  # a comment\n",
)
TEXTS = (
    "&a ", "*a", "<<: *a", "!!str ", "!!set ", "!!binary ", "!!timestamp 2001-01-01", "!!float ",
    "!!python/name:os.system", "null", "~", "true", "yes", ".inf", "-.inf", ".nan", "0x1F", "1_000", "1e400", "-0.0",
    "08", "2001-01-01", "[", "]", "{", "}", "'", '"', "|\n", ">\n", "- ", "? ", ": ", ",", "#", "\n", "\n  ", "\t",
    "  ", "---\n", "...\n", "%YAML 1.1\n", "é", "😀", "\0", "\x85", "\u2028", "\ufeff", '"\\ud83d"', '"\\x00"', "@",
    "`", "extends: m\n", "base:", "use: m\n", "9" * 400, "=", "<<",
)  # fmt: skip
VALUES = (
    "null", "~", "yes", "true", "1", "-0.0", ".inf", "1e400", "0x1F", "1_000", "08", "2001-01-01", "''", '"\\x85"',
    '"\\0"', '"a\\u2028 b"', '" x\\n\\n y "', "é 😀", "'<<'", "'='", "!!binary aGk=", "!!binary /w==",
    "!!set {a: null}", "!!float 3", "!!timestamp 2001-01-01", "!!omap [a: 1]", "!!str 5", "!!null x", "{1: 2}",
    "{null: [1]}", "{1.5: {}}", "{[a]: 1}", "[~]",
)  # fmt: skip
_WHOLE_SHARE, _PRINTED_SHARE = 0.01, 0.3


class FuzzTarget:
    """Texts of profiles.yaml. A loaded profile is printed and loaded again without a difference."""

    def __init__(self, folder: Path) -> None:
        self._project = ProjectConfig(folder, {})
        self._file = folder / "profiles.yaml"
        shipped = loader.list_profile_sources(self._project, {loader.get_profiles_file(): ""})
        self._shipped = [source for source in shipped if "goose_like_profiles" in str(source.file)]

    def create(self, source: Source) -> tuple[str, bool, bool]:
        """Create a text, and tell whether to load it with all files, and to print what was loaded: both take long."""
        blocks = "".join(dict.fromkeys(source.some(BLOCKS, 5)))
        text = f"base:\n{source.choice(BLOCKS)}" * source.happens(0.3) + f"m:\n{blocks or '  {}'}\n"
        if source.happens(0.5):
            value = source.choice(VALUES)
            value = source.choice(("{}", "[{}, {}]", "{{z: {}}}", "&a [{}]", "[&a {}, *a]")).format(
                value, source.choice(VALUES)
            )
            text += f"  accelerator: {{model: x, stall_s: {value}}}\n" if source.happens(0.1) else ""
            text += f"  moderator: {{name: x, config: {{z: {source.stretch(value)}}}}}\n"
        if source.happens(0.4):
            text = source.mutate(text, TEXTS)
        return text, source.happens(_WHOLE_SHARE), source.happens(_PRINTED_SHARE)

    def check(self, value: tuple[str, bool, bool]) -> None:
        text, is_whole, is_printed = value
        try:
            profile = self._load(text, is_whole)
        except ProfileError as error:
            self._check_error(str(error), is_whole)
            return
        if not is_printed:
            return
        again = self._load(f"m:\n  {format_profile(profile).rstrip().replace(chr(10), chr(10) + '  ')}\n", False)
        assert repr(again) == repr(profile)  # NaN equals nothing

    def _check_error(self, text: str, is_whole: bool) -> None:
        lines = text.splitlines()
        assert 0 < len(lines) < 50, text
        assert len(text) < 20_000, text
        assert is_whole or "unknown profile" in lines[0] or str(self._file) in lines[0] or "_profiles" in lines[0], text

    def _load(self, text: str, is_whole: bool) -> Profile:
        if is_whole:
            return loader.load_profile("m", self._project, {loader.get_profiles_file(): text})[0]
        sources = [*read_yaml(self._file, {self._file: text}).split("names to profiles"), *self._shipped]
        return loader._resolve(sources, "m")[0]
