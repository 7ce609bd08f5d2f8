"""The work of `permissions test` and `permissions list`."""

import pytest

from goose_like.cli.commands.permission_actions import print_judgement, print_rules
from goose_like.config import trust

PROFILES = """
mine:
  sandbox: read-only
  permissions:
    deny: [git push --force, "path:*.pem"]
    ask: [git push, "tool:fetch*"]
    allow: [npm test, "domain:*.example.org"]
"""


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("cd x && git push --force", "deny: `git push --force` matches `deny: git push --force` of the profile"),
        ("git push", "ask: `git push` matches `ask: git push` of the profile"),
        ("npm test", "allow: `allow: npm test` of the profile"),
        ("echo '\x1b", "ask: no rule can judge a part of this line before it runs"),
        ("ls \u202e", "no rule decides: it is allowed (approval auto, sandbox read-only)"),
        ("path:a/key.pem", "/a/key.pem` matches `deny: path:*.pem` of the profile"),
        ("path:x", "no rule decides: it is refused (approval auto, sandbox read-only)"),
        ("tool:fetch", "ask: `fetch` matches `ask: tool:fetch*` of the profile"),
        ("domain:a.example.org", "allow: `a.example.org` matches `allow: domain:*.example.org` of the profile"),
        ("domain:example.org", "no rule decides: you are asked (approval auto, sandbox read-only)"),
    ],
)
def test_the_deciding_rule_is_shown(profiles, capsys, action, answer):
    profiles(PROFILES)
    print_judgement(action, "mine")
    assert capsys.readouterr().out.endswith(f"{answer}\n")


def test_all_rules_are_listed_with_their_sources(profiles, capsys, tmp_path, monkeypatch):
    profiles(PROFILES)
    monkeypatch.chdir(tmp_path)
    with trust._edit_folder(tmp_path.resolve()) as fields:
        fields["permissions"] = {"deny": ["rm"]}
    print_rules("mine")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows[0] == ["deny", "git", "push", "--force", "the", "profile"]
    assert rows[-1] == ["deny", "rm", "trust.json"]
    monkeypatch.chdir("/")
    print_rules("default")
    assert "there are no rules" in capsys.readouterr().out
