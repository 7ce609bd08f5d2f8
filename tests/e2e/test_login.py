"""Providers before a person: checked, logged in to and out of; and a planted key that must turn up nowhere."""

import json
import os
import stat
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import ROOT
from tests.e2e.command import shell
from tests.e2e.test_terminal import Terminal
from tests.loopback import Response, called, listed, refusal, said, sse, threaded

KEY = "sk-planted-1234567890"
TESTS = ROOT / "tests"


def write_row(place, server, **more: str) -> None:
    (place.home / "config").mkdir(exist_ok=True)
    lines = [f"base_url: {server.base_url}", "key_variable: MINE_API_KEY", *(f"{k}: {v}" for k, v in more.items())]
    (place.home / "config/providers.yaml").write_text("mine:\n  " + "\n  ".join(lines) + "\n")


def everything(*folders: Path) -> str:
    """All that lies there but the file of keys itself."""
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file() and file.name != "keys.yaml")
    return "".join(f"{file}\n{file.read_text(errors='replace')}" for file in files)


def test_a_provider_is_checked(place):
    with threaded([listed("big", "small")]) as server:
        write_row(place, server, processor="big", accelerator="tiny")
        done = place.run("provider", "check", "mine", env={"MINE_API_KEY": KEY})
        assert done.returncode == 0, done.stderr
        assert f"mine: 127.0.0.1:{server.port} answers\n" in done.stdout
        assert "MINE_API_KEY from the environment, accepted" in done.stdout
        assert "big is available" in done.stdout
        assert "tiny is not in the list" in done.stdout
        assert place.run("provider", "check", "mine:big", env={"MINE_API_KEY": KEY}).returncode == 0
        wrong = place.run("provider", "check", "mine:bigg", env={"MINE_API_KEY": KEY})
        assert (wrong.returncode, "did you mean 'big'" in wrong.stdout) == (77, True)
    gone = place.run("provider", "check", "mine", env={"MINE_API_KEY": KEY})
    assert (gone.returncode, "no answer" in gone.stderr) == (77, True)
    unknown = place.run("provider", "check", "mone")
    assert (unknown.returncode, "did you mean 'mine'" in unknown.stderr) == (2, True)
    assert place.run("provider", "check", "scripted:nowhere").returncode != 0


def test_the_list_shows_rows_and_asks_nobody(place):
    with threaded([refusal(500)]) as server:
        write_row(place, server, summary="my gateway")
        done = place.run("provider", "list", env={"MINE_API_KEY": KEY, "GROQ_API_KEY": "k"})
        assert server.requests == []
    rows = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert "ready, key from the environment" in rows["groq"]
    assert "set MISTRAL_API_KEY" in rows["mistral"]
    assert "my gateway" in rows["mine"]
    assert KEY not in done.stdout


def test_the_doctor_asks_the_server_that_would_be_used(place):
    with threaded([refusal(401, f"no {KEY}")]) as server:
        write_row(place, server, processor="big")
        done = place.run("doctor", env={"MINE_API_KEY": KEY})
    assert done.returncode == 76
    assert "next: mine at 127.0.0.1" in done.stdout
    assert "MINE_API_KEY (the environment)" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_key_is_kept_once_the_server_took_it(place):
    file = place.home / "config/keys.yaml"
    with threaded([refusal(401, f"no {KEY}"), listed("big"), sse(said("hello"))]) as server:
        write_row(place, server, processor="big")
        refused = place.run("provider", "login", "mine", input=f"{KEY}\n")
        assert (refused.returncode, file.exists()) == (76, False)
        taken = place.run("provider", "login", "mine", input=f"{KEY}\n")
        assert taken.returncode == 0, taken.stderr
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert f"stored in {file} (127.0.0.1:{server.port} accepted it)" in taken.stdout
        # The default profile uses the new key, too.
        done = place.run("run", "hi")
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    report = [each.stdout + each.stderr for each in (refused, taken, done)]
    assert KEY not in "".join(report) + everything(place.home, place.work)
    assert "deleted MINE_API_KEY from" in place.run("provider", "logout", "mine").stdout
    assert KEY not in file.read_text()
    assert place.run("run", "--model", "mine:big", "hi").returncode == 76
    assert "no MINE_API_KEY is stored" in place.run("provider", "logout", "mine").stdout


def test_a_key_may_be_kept_unchecked(place):
    with threaded([refusal(500)]) as server:
        write_row(place, server)
        done = place.run("provider", "login", "mine", "--no-check", input=KEY, env={"MINE_API_KEY": "other"})
        assert server.requests == []
    assert done.returncode == 0, done.stderr
    assert "not checked" in done.stdout
    assert "MINE_API_KEY in the environment takes precedence" in done.stdout


@pytest.mark.parametrize(("name", "typed"), [("ollama", KEY), ("groq", ""), ("groq", "schlüssel"), ("grok", KEY)])
def test_a_login_that_can_not_be(place, name, typed):
    done = place.run("provider", "login", name, "--no-check", input=typed)
    assert done.returncode == 2
    assert not list(place.home.rglob("keys*"))
    assert (typed or "no key was given") not in done.stdout
    assert done.stderr.startswith("goose-like: ")


def test_a_person_types_the_key_unseen(place):
    terminal = Terminal(place, [sys.executable, "-m", "goose_like", "provider", "login", "groq", "--no-check"])
    try:
        terminal.see("GROQ_API_KEY (not shown): ")
        terminal.type(KEY + "\n")
        assert terminal.wait_exit() == 0
    finally:
        terminal.close()
    assert KEY not in terminal.text
    assert KEY in (place.home / "config/keys.yaml").read_text()


@pytest.mark.parametrize("sandbox", ["workspace", "full"])
@pytest.mark.parametrize("home_of_the_key", ["environment", "keyring", "file"])
def test_a_planted_key_turns_up_nowhere(place, tmp_path, home_of_the_key, sandbox):
    """Through tool calls, a server that says it back in each kind of error, and all that a run writes and shows."""
    env = {"VAULT": str(tmp_path / "vault.json"), "PYTHONPATH": str(ROOT)}
    env["PYTHON_KEYRING_BACKEND"] = "tests.keyring_file.Vault"
    if home_of_the_key == "keyring" and find_spec("keyring") is None:
        pytest.skip("the extra `keyring` is not installed")
    look = shell("env; cat /proc/self/environ /proc/$PPID/environ; echo looked")["arguments"]["command"]
    answers = [
        refusal(429, f"slow down, {KEY}", {"retry-after": "0.01"}),
        sse([{"error": {"message": f"broke off, {KEY}"}}]),
        sse(called(("p", "note", '{"text": "ready"}'))),  # the answer to the probe
        sse(called(("a", "shell", f'{{"command": "{look}"}}'), ("b", "read_file", '{"path": "nowhere"}'))),
        sse(called(("c", "shell", "{broken"), ("d", "no_such_tool", "{}"))),
        refusal(401, f"no longer valid: {KEY}"),
    ]
    with threaded([listed("big"), *answers]) as server:
        write_row(place, server, processor="big")
        if home_of_the_key == "environment":
            env["MINE_API_KEY"] = KEY
            login = place.run("provider", "check", "mine", env=env)
        else:
            if home_of_the_key == "file":
                env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
            login = place.run("provider", "login", "mine", input=KEY, env=env)
        assert login.returncode == 0, login.stderr
        words = ["run", "--model", "mine:big", "--sandbox", sandbox, "--output-format", "stream-json", "look around"]
        done = place.run(*words, env=env)
        bodies = b"".join(asked.body for asked in server.requests)
        heads = [asked.head for asked in server.requests]
    assert done.returncode == 76, done.stderr
    assert "looked" in done.stdout
    assert len(heads) == 7
    assert all(KEY.encode() in head for head in heads)  # it is the key that was used
    shown = "".join((login.stdout, login.stderr, done.stdout, done.stderr))
    assert "***" in shown
    assert KEY not in shown
    assert KEY.encode() not in bodies
    written = everything(place.home, place.work)
    assert "events.jsonl" in written
    assert KEY not in written


def test_commands_can_not_read_the_file_of_keys(place):
    assert place.run("provider", "login", "groq", "--no-check", input=KEY).returncode == 0
    look = shell(f"cat {place.home}/config/keys.yaml; ls {place.home}/config; echo looked")
    read = {"tool": "read_file", "arguments": {"path": f"{place.home}/config/keys.yaml"}}
    model = place.script({"calls": [look, read]}, {"text": "done", "expect": "."})
    done = place.run(
        "run", "--model", model, "--output-format", "stream-json", "x", env={"HOME": os.fspath(place.work)}
    )
    assert "looked" in done.stdout, done.stderr
    assert KEY not in done.stdout + done.stderr + everything(place.home)


def test_a_check_says_what_was_found_of_a_model(place):
    with threaded([listed("gpt-6-sol", "gpt-4.1", "own")]) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY}
        found = place.run("provider", "check", "openai:gpt-6-sol", env=env).stdout
        plain = place.run("provider", "check", "openai:gpt-4.1", env=env).stdout
        unknown = place.run("provider", "check", "openai:own", env=env).stdout
    assert "  wire    chat\n" in found
    assert "window 1.05M · effort none, low, medium, high, xhigh, max · images\n" in found
    assert "· no levels of effort · images\n" in plain
    assert "unknown window · any effort is sent · images\n" in unknown


def test_a_check_asks_a_server_for_its_facts(place):
    props = json.dumps({"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": True}}).encode()
    told = Response(200, {"content-type": "application/json", "content-length": str(len(props))}, [props])
    with threaded([listed("m"), told]) as server:
        (place.home / "config").mkdir(exist_ok=True)
        own = {"mine": {"base_url": server.base_url, "facts": "llama-server", "wire": "responses"}}
        (place.home / "config" / "providers.yaml").write_text(json.dumps(own))
        found = place.run("provider", "check", "mine:m").stdout
    assert "  wire    responses\n" in found
    assert "window 8k · any effort is sent · images\n" in found
