"""`goose-like setup` before a person: provider, key, model and one request."""

import signal

import pytest

from tests.e2e.test_login import KEY, write_row
from tests.loopback import listed, refusal, said, sse, threaded


def test_a_person_sets_up_a_provider(place, open_screen):
    with threaded([listed("big", "small"), listed("big", "small"), sse(said("hello you"))]) as server:
        write_row(place, server, summary="my gateway")
        terminal = open_screen("setup", columns=80, rows=24)
        terminal.see("Choose a provider")
        terminal.type("gateway")
        terminal.see("1 of")
        terminal.type("\r")
        terminal.see("MINE_API_KEY (not shown)")
        terminal.type(f"{KEY}\r")
        terminal.see("Choose the default model")
        terminal.type("small\r")
        assert terminal.wait_exit() == 0
        assert "mine:small answers: hello you" in terminal.text
        assert KEY not in terminal.text
    assert "  processor: mine:small\n" in (place.home / "config/profiles.yaml").read_text()
    assert KEY in (place.home / "config/keys.yaml").read_text()


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (sse(said("fast hello")), "  processor: mine:big\n  accelerator: mine:tiny\n"),
        (refusal(404, "no such model"), "  processor: mine:big\n"),
    ],
    ids=["it answers", "the server does not have it"],
)
def test_the_fast_model_of_the_provider_is_set_up_too(place, open_screen, answer, lines):
    with threaded([listed("big"), sse(said("hello you")), answer]) as server:
        write_row(place, server, processor="big", accelerator="tiny")
        terminal = open_screen("setup", MINE_API_KEY=KEY)
        terminal.see("Choose a provider")
        terminal.type("mine:\r")
        terminal.see("Choose the default model")
        terminal.type("big\r")
        assert terminal.wait_exit() == 0, terminal.text
        assert [request.json["model"] for request in server.requests[1:]] == ["big", "tiny"]
    text = (place.home / "config/profiles.yaml").read_text()
    assert text.endswith(f"\ndefault:\n  extends: default\n{lines}")
    assert ("with mine:tiny as fast model" in terminal.text) == ("tiny" in lines)


@pytest.mark.parametrize("stored", [False, True])
def test_a_server_that_refuses_the_key_or_its_absence_is_given_another(place, open_screen, stored):
    refused = refusal(401, "wrong key")
    answers = [refused, refused, listed("big"), listed("big"), sse(said("hello you"))]
    with threaded(answers) as server:
        if stored:
            (place.home / "config").mkdir()
            keys = place.home / "config/keys.yaml"
            keys.touch(0o600)
            keys.write_text("OPENAI_API_KEY: sk-old-and-refused\n")
        terminal = open_screen("setup", OPENAI_BASE_URL=server.base_url)
        terminal.see("key from" if stored else "key if the server asks")
        terminal.type("openai:\r")
        terminal.see("OPENAI_API_KEY (not shown)")
        terminal.type("sk-wrong-key-of-mine\r")
        terminal.see("the server refused this key; type another one, or press Enter to stop")
        terminal.see("OPENAI_API_KEY (not shown)", times=2)
        terminal.type(f"{KEY}\r")
        terminal.see("accepted it")
        terminal.see("Choose the default model")
        terminal.type("big\r")
        terminal.see("openai:big answers: hello you")
        assert terminal.wait_exit() == 0
    assert KEY in (place.home / "config/keys.yaml").read_text()


def test_a_key_that_only_the_trial_refuses_is_asked_for_again(place, open_screen):
    answers = [listed("big"), listed("big"), refusal(401, "wrong key"), listed("big"), sse(said("hello you"))]
    with threaded(answers) as server:
        write_row(place, server, processor="big")
        terminal = open_screen("setup")
        terminal.see("Choose a provider")
        terminal.type("mine:\r")
        terminal.see("MINE_API_KEY (not shown)")
        terminal.type("sk-wrong-key-of-mine\r")
        terminal.see("Choose the default model")
        terminal.type("\r")
        terminal.see("MINE_API_KEY (not shown)", times=2)
        terminal.type(f"{KEY}\r")
        assert terminal.wait_exit() == 0
        assert "mine:big answers: hello you" in terminal.text
    assert KEY in (place.home / "config/keys.yaml").read_text()


def test_a_refused_key_of_the_environment_is_named(place, open_screen):
    with threaded([refusal(401, "wrong key")]) as server:
        terminal = open_screen("setup", columns=200, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=KEY)
        terminal.see("Choose a provider")
        terminal.type("openai:\r")
        assert terminal.wait_exit() == 76
    assert "OPENAI_API_KEY" in terminal.text.partition("asking for")[2]


@pytest.mark.parametrize("answers", ["yy", "yn", "n"])
def test_without_a_network_the_typed_key_is_kept_if_the_person_wants_it(place, open_screen, answers):
    (place.home / "config").mkdir()
    row = "mine:\n  base_url: http://127.0.0.1:9/v1\n  key_variable: MINE_API_KEY\n  processor: big\n"
    (place.home / "config/providers.yaml").write_text(row)
    terminal = open_screen("setup")
    terminal.see("Choose a provider")
    terminal.type("mine:\r")
    terminal.see("MINE_API_KEY (not shown)")
    terminal.type(f"{KEY}\r")
    terminal.see("Store the key without a check? [y]es  [N]o:")
    terminal.type(f"{answers[0]}\r")
    if answers[0] == "y":
        terminal.see("Choose the default model")
        terminal.type("big\r")
        terminal.see("Make mine:big the default model anyway? [y]es  [N]o:")
        terminal.type(f"{answers[1]}\r")
    assert terminal.wait_exit() == (0 if answers == "yy" else 77)
    keys, profiles = place.home / "config/keys.yaml", place.home / "config/profiles.yaml"
    assert (keys.exists() and KEY in keys.read_text()) == (answers[0] == "y")
    assert profiles.exists() == (answers == "yy")


def test_a_file_that_cannot_be_changed_is_told_before_the_questions(place, open_screen):
    (place.home / "config").mkdir()
    (place.home / "config/profiles.yaml").write_text("use: gone\n")
    terminal = open_screen("setup")
    assert terminal.wait_exit() == 2
    assert "use: unknown profile 'gone'" in terminal.text
    assert "Choose a provider" not in terminal.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_the_key_restores_the_terminal(place, open_screen, number):
    with threaded([listed("big")]) as server:
        write_row(place, server)
        terminal = open_screen("setup")
        terminal.see("Choose a provider")
        terminal.type("mine:\r")
        terminal.see("MINE_API_KEY (not shown)")
        assert terminal.is_raw
        terminal.signal(number)
        assert terminal.wait_exit() == 128 + number
    assert not terminal.is_raw


def test_a_model_that_does_not_answer_is_not_kept(place, open_screen):
    with threaded([listed("big"), refusal(404, "no such model")]) as server:
        write_row(place, server, processor="big")
        terminal = open_screen("setup", MINE_API_KEY=KEY)
        terminal.see("Choose a provider")
        terminal.type("mine:\r")
        terminal.see("Choose the default model")
        terminal.type("\r")
        terminal.see("Make mine:big the default model anyway?")
        terminal.type("\r")
        assert terminal.wait_exit() == 77
        assert "no such model" in terminal.text
    assert not (place.home / "config/profiles.yaml").exists()


def test_nothing_is_changed_without_a_choice_or_a_terminal(place, open_screen):
    terminal = open_screen("setup")
    terminal.see("Choose a provider")
    terminal.type("\x03")
    assert terminal.wait_exit() == 0
    assert "nothing was changed" in terminal.text
    done = place.run("setup")
    assert done.returncode == 2
    assert "goose-like provider login NAME < FILE" in done.stderr
