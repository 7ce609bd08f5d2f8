"""SIGKILL at any moment: shown text is in the file, the work goes on at the other vendor, and nothing stays in /tmp.

`--kills N` is the number of moments for each kind of process (default 2, full count 100). `--kill-state FILE` notes
each moment that passed, so that the next run of the suite goes on there.
"""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress

import httpx2
import pytest

from goose_like.core.history import INTERRUPTED
from tests.e2e.serving import build_body, join_text, read_events, serving, wait_until
from tests.e2e.test_interrupted import MODELS, VALID, env, second
from tests.loopback import called, chunk, ended, events, named, raw, said, started, threaded, wish, words

CUT_NOTE = "[Your previous answer was cut off before its end.]"
UNSAVED_BYTES = 1_024
WORDS = [f"word{number:03} of the answer that is shown; " for number in range(150)]


def stream(vendor, texts, *calls, pause_s=0.004):
    """Build an answer that comes piece by piece."""
    if vendor == "openai":
        chunks = [*(chunk({"content": text}) for text in texts), *(called(*calls) if calls else said("")[2:])]
        pieces = [*(events([each], is_done=False) for each in chunks), events([])]
    else:
        wishes = [entry for at, call in enumerate(calls, 1) for entry in wish(at, *call)]
        entries = [started(), *words(0, *texts), *wishes, *ended("tool_use" if calls else "end_turn")]
        pieces = [named([entry]) for entry in entries]
    return raw(*pieces, pause_s=pause_s)


def list_answers(vendor, *commands, tool="shell", key="command"):
    """Return a step with two calls for each pair of commands, then the last answer."""
    steps = []
    for number, pair in enumerate(commands):
        calls = [(f"{letter}{number}", tool, json.dumps({key: each})) for letter, each in zip("ab", pair, strict=False)]
        steps.append(stream(vendor, [f"step {number}, word {at}; " for at in range(30)], *calls))
    return [*steps, stream(vendor, WORDS)]


# --- what was shown, and what the file has


def check_saved(shown, saved):
    """Check that the file has every durable event that was shown, and all but a kilobyte of unfinished text."""
    durable = {event["type"] for event in saved}
    assert [event for event in shown if event["type"] in durable and event not in saved] == []
    texts = {"": ""}  # by id of the call
    for event in shown:
        match event["type"]:
            case "text_delta":
                texts[""] += event["text"]
            case "tool_progress":
                texts[event["call_id"]] = texts.get(event["call_id"], "") + event["text"]
            case "message_completed":
                texts[""] = ""
            case "tool_finished":
                texts.pop(event["result"]["call_id"], None)
    finished = {event["result"]["call_id"] for event in saved if event["type"] == "tool_finished"}
    for call_id, text in texts.items():
        kept = "".join(map(read_answer, saved)) if call_id == "" else join_shown(saved, call_id)
        assert call_id in finished or text[: max(0, len(text) - UNSAVED_BYTES)] in kept


def read_answer(event):
    """Return the text of the model that an event has."""
    if event["type"] == "message_completed":
        return "".join(part.get("text", "") for part in event["message"]["parts"])
    return event["text"] if event["type"] == "text_shown" and not event.get("call_id") else ""


def join_shown(saved, call_id=""):
    """Join the shown text of a call, or of an answer that the file has no message of."""
    text = ""
    for event in saved:
        if event["type"] == "text_shown" and event.get("call_id", "") == call_id:
            text += event["text"]
        elif event["type"] in ("message_completed", "turn_started") and not call_id:
            text = ""
    return text


def read_saved(place):
    return [{key: value for key, value in event.items() if key != "at"} for event in place.events()]


def check_request(asked, vendor, partial):
    """Check the resumed request: it is valid, and a cut-off answer precedes the person's message, which tells so."""
    assert VALID[vendor](asked.json)
    before, last = asked.json["messages"][-2:]
    text = last["content"] if isinstance(last["content"], str) else "".join(part["text"] for part in last["content"])
    assert text.startswith("go on")
    assert (CUT_NOTE in text) == bool(partial)
    if partial:
        assert before["role"] == "assistant"
        assert partial in json.dumps(before)


# --- the kinds of processes


@pytest.fixture
def env_of(place, monkeypatch):
    """Return the variables for servers of both vendors. Temporary files lie in a folder of the test."""
    tmp = place.home.parent / "tmp"
    tmp.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp))
    return env


def kill_run(place, variables, *options, after, wait_s):
    """Kill a run `wait_s` after its event number `after`. Return its events."""
    process = place.start("run", "--output-format", "stream-json", *options, env=variables)
    shown = []
    for line in process.stdout:
        shown.append(json.loads(line))
        if len(shown) > after:
            break
    time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    shown += [json.loads(line) for line in process.stdout if line.endswith("\n")]
    process.communicate()
    return shown


def resume_run(place, env_of, vendor, partial, *options, name):
    """Resume a killed run at another vendor. Check the request and the export."""
    with threaded([second(vendor, "went on")]) as server:
        words = ("run", *options, "--model", MODELS[vendor], "--session", name, "--resume", "go on")
        done = place.run(*words, env=env_of(dict.fromkeys(MODELS, server)))
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr
    check_request(server.requests[0], vendor, partial)
    if partial:
        text = place.run("session", "export", name).stdout
        assert partial.strip() in text
        assert "cut off" in text


def kill_runs(place, env_of, moments, kind, answers, *options):
    """Kill runs at random moments of their work, and resume each at the other vendor."""
    total = 0
    for moment, chance in moments(kind):
        vendor = list(MODELS)[moment % 2]
        with threaded(answers(vendor)) as server:
            variables = env_of(dict.fromkeys(MODELS, server))
            words = (*options, "--model", MODELS[vendor], "--session")
            if not total:
                total = len(kill_run(place, variables, *words, "whole", "go", after=sys.maxsize, wait_s=0))
                server.requests.clear()
            after = chance.randrange(total)
            shown = kill_run(place, variables, *words, f"s{moment}", "go", after=after, wait_s=chance.random() * 0.05)
        saved = read_saved(place)
        check_saved(shown, saved)
        partial = join_shown(saved)
        moments.note = f"after {len(shown)} of {total} events; {len(partial)} characters of an answer saved"
        if any(event["type"] == "turn_started" for event in saved):
            resume_run(place, env_of, list(MODELS)[(moment + 1) % 2], partial, *options, name=f"s{moment}")
    check_nothing_is_left(place)


def check_nothing_is_left(place):
    """Check that the next start removes the private folders of killed processes."""
    tmp, model = place.home.parent / "tmp", place.script(*["so"] * 100)
    wait_until(lambda: place.run("run", "--model", model, "hi").returncode == 0 and not list(tmp.iterdir()))


def test_a_killed_run_goes_on(place, env_of, moments):
    commands = [
        (f"for i in 1 2 3 4; do echo {number} line $i; sleep 0.03; done", f"seq {number}000 {number}900; sleep 0.05")
        for number in range(1, 4)
    ]
    kill_runs(place, env_of, moments, "run", lambda vendor: list_answers(vendor, *commands))


def test_a_killed_run_with_a_kernel_goes_on(place, env_of, moments):
    pytest.importorskip("jupyter_client")
    (place.home / "config").mkdir(parents=True)
    (place.home / "config" / "profiles.yaml").write_text("analyst:\n  toolkits: [code]\n")
    cells = [
        (f"for i in range(300): print('{number} line', i)", f"import time\ntime.sleep(0.2)\nx = {number}")
        for number in (1, 2)
    ]
    pids = set(list_kernels())
    kill_runs(
        place,
        env_of,
        moments,
        "kernel",
        lambda vendor: list_answers(vendor, *cells, tool="run_python", key="code"),
        "--profile",
        "analyst",
    )
    wait_until(lambda: set(list_kernels()) <= pids)


def list_kernels():
    """List the kernels of this user, by their process ids."""
    listed = subprocess.run(["ps", "-eo", "pid,args", "ww"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in listed.splitlines() if "goose_like_kernel" in line]


def test_a_killed_chat_goes_on(place, env_of, open_screen, moments):
    for moment, chance in moments("chat"):
        vendor = list(MODELS)[moment % 2]
        answers = [*list_answers(vendor, ("echo one; sleep 0.1; echo two", "seq 1000 1900")), second(vendor, "again")]
        signs = ["step 0", "echo one", "two", "1900", *(word.split()[0] for word in WORDS[::15])]
        with threaded(answers) as server:
            variables = env_of(dict.fromkeys(MODELS, server))
            terminal = open_screen("session", "start", f"s{moment}", "--model", MODELS[vendor], **variables)
            terminal.see("goose>")
            terminal.type("go\r")
            terminal.see(sign := chance.choice(signs))
            time.sleep(chance.random() * 0.1)
            terminal.signal(signal.SIGKILL)
            terminal.wait_exit()
        saved, partial = read_saved(place), join_shown(read_saved(place))
        seen = [word for word in WORDS if word.split()[0] in terminal.text]
        text = "".join(seen)
        assert text[: max(0, len(text) - UNSAVED_BYTES)] in "".join(map(read_answer, saved))
        with threaded([second(vendor, "went on")]) as server:
            variables = env_of(dict.fromkeys(MODELS, server))
            terminal = open_screen("session", "resume", f"s{moment}", **variables)
            terminal.see("goose>")
            if partial:
                terminal.see("(cut off)")
                terminal.see(partial.split()[-2])
            terminal.type("go on\r")
            terminal.see("went on")
            assert terminal.leave() == 0
        check_request(server.requests[0], vendor, partial)
        moments.note = f"at {sign!r}; {len(partial)} characters of an answer saved"
    check_nothing_is_left(place)


def test_a_killed_server_serves_again(place, env_of, moments):
    pytest.importorskip("uvicorn")
    tmp = place.home.parent / "tmp"
    for moment, chance in moments("serve"):
        vendor = list(MODELS)[moment % 2]
        count = chance.randrange(1, len(WORDS))
        with threaded([stream(vendor, WORDS)]) as model:
            options, variables = ("--model", MODELS[vendor]), env_of(dict.fromkeys(MODELS, model))
            with (
                serving(place, *options, env=variables) as server,
                suppress(httpx2.TransportError),
                server.stream(build_body("go")) as shown,
            ):
                for _, _ in zip(range(count), shown, strict=False):
                    pass
                server.signal(signal.SIGKILL)
                server.process.wait()
            with serving(place, *options, env=variables) as server:
                assert join_text(read_events(server.post(build_body("go")))) == "".join(WORDS)
                wait_until(lambda: len(list(tmp.glob("goose-like-serve-*"))) <= 2)  # those of the new server
        assert list(tmp.iterdir()) == []
        moments.note = f"after {count} events"


def test_text_on_the_screen_is_in_the_file_within_a_second(place, env_of):
    """The model and the command say little and then nothing, so that no later text completes a kilobyte."""
    pause = chunk({"content": "few words"})
    for answer, sign in [
        (raw(events([pause], is_done=False), hang_s=300), "few words"),
        (stream("openai", [], ("a", "shell", '{"command": "echo few lines; sleep 300"}')), "few lines\\n"),
    ]:
        with threaded([answer]) as server:
            variables = env_of(dict.fromkeys(MODELS, server))
            process = place.start("run", "--model", MODELS["openai"], "go", env=variables)
            line = f'"text_shown","text":"{sign}"'
            wait_until(lambda line=line: any(line in file.read_text() for file in list_files(place)))
            process.kill()
            process.communicate()
        (name,) = (file.parent.name for file in list_files(place) if "text_shown" in file.read_text())
        exported = place.run("session", "export", name).stdout
        if sign == "few words":
            assert exported.endswith("few words\n\n*cut off*\n")
            assert "not finished, cut off: …few words" in place.run("session", "show", name).stdout
        else:
            assert f"{INTERRUPTED}. It had shown:\nfew lines" in exported
        with threaded([second("openai", "went on")]) as server:
            words = ("run", "--model", MODELS["openai"], "--session", name, "--resume", "go on")
            assert place.run(*words, env=env_of(dict.fromkeys(MODELS, server))).returncode == 0
        assert "few" in json.dumps(server.requests[0].json)
        place.run("session", "clear", "--keep", "0", "--yes")


def list_files(place):
    return list((place.home / "state" / "sessions").glob("*/events.jsonl"))
