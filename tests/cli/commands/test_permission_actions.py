"""The work of `permissions test` and `permissions list`."""

import pytest

from goose_like.cli.commands.permission_actions import print_judgement, print_rules
from goose_like.config import trust
from goose_like.config.rule_topics import TOPICS
from goose_like.core.errors import UsageError
from goose_like.workspace.undo import snapshot

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
    assert f"{answer}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "action", ["install:x", "outside:/etc/x", "network:", "domian:evil.com", "path:", "command:ls"]
)
def test_an_unknown_topic_is_refused(profiles, action):
    profiles(PROFILES)
    with pytest.raises(UsageError, match=r"neither a command, or `tool:`"):
        print_judgement(action, "mine")


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("verdict", ["deny", "ask", "allow"])
def test_each_topic_of_a_profile_is_judged(profiles, capsys, topic, verdict):
    action = "touch x" if topic == "command" else f"{topic}:x"
    rule = action if topic != "command" else "touch"
    profiles(f"mine: {{permissions: {{{verdict}: ['{rule}']}}}}")
    print_judgement(action, "mine")
    shown = capsys.readouterr().out
    assert shown.startswith(f"{verdict}: ")
    assert f"`{verdict}: {rule}` of the profile" in shown


def test_kept_answers_and_the_deletion_check_are_named(profiles, capsys, tmp_path, monkeypatch):
    profiles(
        "mine: {approval: ask, permissions: {ask: [curl], allow: [rm, 'path:x']}}\n"
        "strict: {extends: mine, sandbox: read-only}"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(snapshot, "LIMIT_FILE_BYTES", 2)
    (tmp_path / "big").write_text("big")
    for kind, subject in (("command", "curl x"), ("network", "curl y"), ("domain", "example.org")):
        trust.store_approval(tmp_path.resolve(), trust.StoredApproval(kind=kind, subject=subject))
    expected = {
        "curl x": "it is allowed: you allowed exactly this for good in this folder (goose-like trust list)\n",
        "curl y": "ask: `curl y` matches `ask: curl` of the profile\nnetwork: allowed for good in this folder\n",
        "domain:example.org": "it is allowed: you allowed exactly this",
        "make": "no rule decides: you are asked (approval ask, sandbox workspace)\n",
        "rm big": f"deletion: you are asked, since undo cannot keep everything ({tmp_path.resolve()}/big: over 0 MB)\n",
        "rm small": "allow: `allow: rm` of the profile\n",
        "rm $x": "you are asked about what cannot be stored\n",
    }
    for action, text in expected.items():
        print_judgement(action, "mine")
        assert text in capsys.readouterr().out
    print_judgement("path:x", "strict")
    assert ": it is refused (approval ask, sandbox read-only)" in capsys.readouterr().out


def test_the_hosts_of_a_command_are_judged_too(profiles, capsys, tmp_path, monkeypatch):
    profiles(
        "mine: {network: {allow: [listed.org]}, permissions: {deny: ['domain:*.evil.org'], "
        "allow: ['domain:ruled.org']}}\n"
        "open: {extends: mine, sandbox: workspace+network}\nplan: {extends: mine, approval: plan}"
    )
    monkeypatch.chdir(tmp_path)
    trust.store_approval(tmp_path.resolve(), trust.StoredApproval(kind="domain", subject="kept.org"))
    expected = {
        "curl https://x.org/a": "domain:x.org: no rule decides: you are asked when the command connects\n",
        "curl -s https://X.org:443": "domain:x.org: no rule",
        "sh -c 'wget http://x.org:8080/'": "domain:x.org:8080: no rule",
        "git clone https://ann@x.org/a.git": "domain:x.org: no rule",
        "curl https://a.evil.org": "domain:a.evil.org: deny: ",
        "curl https://listed.org https://ruled.org": "domain:listed.org: it is allowed\ndomain:ruled.org: it is al",
        "curl https://kept.org": "domain:kept.org: it is allowed\n",
        "curl http://10.0.0.1": "domain:10.0.0.1: it is refused: ",
        "curl x.org": "hosts: you are asked about each one that is not listed",
        "pip install x": "hosts: you are asked about each one that is not listed",
        "git push": "hosts: you are asked about each one that is not listed",
    }
    for action, text in expected.items():
        print_judgement(action, "mine")
        shown = capsys.readouterr().out
        assert text in shown, shown
    print_judgement("curl https://x.org", "open")
    assert "domain" not in capsys.readouterr().out
    print_judgement("curl https://x.org", "plan")
    assert "domain:x.org: no rule decides: it is refused" in capsys.readouterr().out


def test_what_mode_ask_spares_is_told(profiles, capsys):
    profiles("mine: {approval: ask}\nfull: {approval: ask, sandbox: full}")
    print_judgement("ls | head", "mine")
    assert capsys.readouterr().out.startswith("it is allowed, since it only reads")
    print_judgement("ls > x", "mine")
    assert "you are asked" in capsys.readouterr().out
    print_judgement("ls", "full")
    assert "you are asked (approval ask, sandbox full)" in capsys.readouterr().out


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
