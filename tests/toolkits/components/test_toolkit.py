"""Components as tools: from a config.yaml and a call to what a model reads, in their real process."""

import asyncio
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from goose_like_toolkits.components.commands.scaffold import write_component

from goose_like.core.errors import ProfileError
from goose_like.core.events import Answer
from tests.toolkits.components.component_files import put_into_repository
from tests.toolkits.components.component_session import COMPONENTS, company, used


@pytest.fixture
def page():
    """The address of a page on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"Headline\nmore of it\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


async def test_a_command_runs_with_its_resource_and_its_effects_stay(tmp_path):
    async with company(tmp_path, "notes") as made:
        assert await made.value("notes_write", name="shopping", text="milk") == {"characters": 4}
        assert await made.value("notes_write", name="shopping", text=", eggs", append=True) == {"characters": 10}
        assert await made.value("notes_read", name="shopping") == {"text": "milk, eggs"}
        assert (made.root / "shopping.txt").read_text() == "milk, eggs"


async def test_no_process_until_a_command_is_called(tmp_path):
    async with company(tmp_path, "greeter", "crasher", "notes") as made:
        assert not (made.root / ".runtime" / ".venv").exists()
        assert made.recorder.events == []


async def test_arguments_are_checked_before_the_component_sees_them(tmp_path):
    async with company(tmp_path, "picture") as made:
        assert "height" in await made.failed("picture_draw", width=2, shade=0)
        said = await made.failed("picture_draw", width="2", height=2, shade=7, colour="red")
        assert "width" in said
        assert "shade" in said
        assert "colour" in said


async def test_two_instances_have_configuration_and_state_of_their_own(tmp_path):
    first = used("greeter", instance_id=0, config={"greeting": {"word": "Hi"}, "key1": "a"})
    second = used("greeter", instance_id="loud", config={"greeting": {"mark": "!!!"}, "others": []})
    async with company(tmp_path, first, second) as made:
        assert await made.value("greeter_0_greet", who="Ada") == {"text": "Hi Ada! (a)", "times": 1}
        assert await made.value("greeter_loud_greet", who="Bob") == {"text": "Hello Bob!!! (own)", "times": 1}
        assert (await made.value("greeter_0_greet", who="Ada"))["times"] == 2


async def test_a_resource_is_shared_opened_once_and_closed_once_after_its_users(tmp_path, page):
    async with company(tmp_path, "fetch", "pool", "headline", network=True, answer=Answer(choice="allow")) as made:
        assert (await made.value("fetch_get", url=page))["text"].endswith("more of it\n")
        assert (await made.value("headline_get", url=page)) == {"text": "Headline"}
        log = made.root / "pool.log"
        assert log.read_text() == "open http\n"
    assert log.read_text() == "open http\nclose http\n"


async def test_a_missing_resource_is_told_at_the_start(tmp_path):
    with pytest.raises(ProfileError, match=r"fetch needs a resource with type 'http'.*add one to `use`"):
        async with company(tmp_path, "fetch"):
            pass


async def test_one_resource_that_two_configure_differently_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    def with_log(name: str, log: str) -> dict:
        pool = {"group_id": "org.example.workshop", "artifact_id": "pool", "version": "1.0.0", "config": {"log": log}}
        return used(name, config={"resources": [{"type": "http", **pool}]})

    put_into_repository(COMPONENTS / "workshop" / "pool")
    with pytest.raises(ProfileError, match=r"headline and another component configure org\.example\.workshop:pool"):
        async with company(tmp_path, with_log("fetch", "a.log"), with_log("headline", "b.log")):
            pass


async def test_an_llm_is_the_profiles_model(tmp_path):
    async with company(tmp_path, "summariser", said=["It rains."]) as made:
        assert await made.ok("summariser_summarise", param="Water falls from the sky.") == "It rains."
        assert "Water falls" in made.strong.requests[0].messages[0].text
        assert "Summarise long texts with it" in made.kit.prompt()


async def test_assets_go_from_command_to_command_by_reference(tmp_path):
    async with company(tmp_path, "picture") as made:
        drawn = await made.value("picture_draw", width=2, height=1, shade=128)
        reference = f"asset://{drawn['asset_id']}/content"
        assert await made.value("picture_invert", rows=reference) == {"rows": [[127, 127]]}
        rows = {"asset_id": drawn["asset_id"], "field_path": ["content"]}
        pictures = [{"label": "a", "rows": rows}, {"label": "b", "rows": [[0, 1]]}]
        assert await made.value("picture_mean", pictures=pictures) == {"means": {"a": 128.0, "b": 0.5}}
        assert drawn["asset_id"] in await made.ok("list_assets")
        assert "128" in await made.ok("get_asset", asset_id=drawn["asset_id"])
        near = f"did you mean {drawn['asset_id']!r}?"
        assert near in await made.failed("get_asset", asset_id=drawn["asset_id"][:-1])


async def test_a_reference_is_refused_where_none_is_accepted(tmp_path):
    async with company(tmp_path, "picture") as made:
        assert "label" in await made.failed("picture_mean", pictures=[{"label": "asset://x/content", "rows": [[1]]}])
        assert "no asset" in await made.failed("picture_invert", rows="asset://nobody/content")


async def test_what_only_the_process_can_hold_is_an_asset_there(tmp_path):
    async with company(tmp_path, "picture") as made:
        reference = await made.ok("picture_object")
        assert reference.startswith("asset://")
        assert await made.ok("picture_look", what=reference) == "Canvas"


async def test_bytes_become_an_asset(tmp_path):
    async with company(tmp_path, "picture") as made:
        said = await made.ok("picture_raw")
        assert "asset://" in said
        assert "108" in said


async def test_a_large_answer_becomes_an_asset(tmp_path):
    async with company(tmp_path, "flood") as made:
        said = await made.ok("flood_rows", count=2_000)
        assert len(said) < 4_000
        reference = next(word for word in said.replace('"', " ").split() if word.startswith("asset://"))
        assert "row 1999" in await made.ok("get_asset", asset_id=reference.rstrip(".,;"), path="content/rows/1999")


async def test_a_deviation_from_the_described_answer_is_told(tmp_path):
    async with company(tmp_path, "liar") as made:
        said = await made.ok("liar_tell")
        assert '"seven"' in said
        assert "not as liar describes it" in said
        assert "number" in said
        assert "word" in said
        assert "extra" in said


@pytest.mark.parametrize(("how", "words"), [("fault", "SIGSEGV"), ("exit", "exit code 3"), ("kill", "SIGKILL")])
async def test_a_crash_is_told_and_the_next_call_has_a_new_process(tmp_path, how, words):
    async with company(tmp_path, "crasher", "greeter") as made:
        await made.ok("greeter_greet", who="Ada")
        said = await made.failed("crasher_crash", how=how)
        assert words in said
        assert "about to end" in said
        again = await made.ok("greeter_greet", who="Ada")
        assert '"times": 1' in again
        assert "gone: " in again
        assert "greeter" in again


@pytest.mark.parametrize(("how", "words"), [("raise", "RuntimeError: that did not"), ("system_exit", "I am through")])
async def test_what_a_component_raises_is_told_and_its_state_stays(tmp_path, how, words):
    async with company(tmp_path, "crasher", "greeter") as made:
        await made.ok("greeter_greet", who="Ada")
        said = await made.failed("crasher_crash", how=how)
        assert words in said
        assert "crasher/__init__.py" in said
        assert (await made.value("greeter_greet", who="Ada"))["times"] == 2


async def test_one_that_hangs_is_interrupted_and_one_that_ignores_it_is_ended(tmp_path):
    async with company(tmp_path, "hanger", "greeter", timeout_s=1.0) as made:
        await made.ok("greeter_greet", who="Ada")
        assert "its time limit of 1 s was over" in await made.failed("hanger_hang")
        assert (await made.value("greeter_greet", who="Ada"))["times"] == 2
        assert "its process was ended" in await made.failed("hanger_hang", deaf=True)
        assert '"times": 1' in await made.ok("greeter_greet", who="Ada")


async def test_a_cancelled_call_does_not_run_on(tmp_path):
    async with company(tmp_path, "hanger", "greeter") as made:
        await made.ok("greeter_greet", who="Ada")
        running = asyncio.create_task(made.outcome("hanger_hang"))
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await made.value("greeter_greet", who="Ada"))["times"] == 2


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_a_component_stays_in_the_running_directory(tmp_path, mode):
    (tmp_path / "secret.txt").write_text("secret")
    async with company(tmp_path, "escaper", mode=mode) as made:
        (made.root / "own.txt").write_text("mine")
        (made.root / ".hidden").mkdir()
        (made.root / ".hidden" / "key").write_text("secret")
        (made.root / "link").symlink_to(tmp_path / "secret.txt")
        assert await made.ok("escaper_read", path="own.txt") == "mine"
        for path in ("../secret.txt", str(tmp_path / "secret.txt"), "link", ".hidden/key", "/etc/hostname"):
            said = await made.failed("escaper_read", path=path)
            assert path in said
            assert "secret" not in said.replace(path, "")
        await made.failed("escaper_write", path="../out.txt")
        await made.failed("escaper_write", path=".hidden/new")
        assert not (tmp_path / "out.txt").exists()
        if mode == "workspace":
            await made.failed("escaper_read", path=str(tmp_path / "secret.txt"), by="program")


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_of_an_installed_component_its_package_is_reached_and_nothing_beside_it(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    there = tmp_path / "mine"
    write_component("plugin", "counter", there, "org.example")
    (there / "private.txt").write_text("secret")
    put_into_repository(there / "counter")
    counter = {"group_id": "org.example", "artifact_id": "counter", "version": "0.1.0-SNAPSHOT"}
    async with company(tmp_path, "escaper", counter, mode=mode) as made:
        assert (await made.value("counter_count_words", text="to be"))["count"] == 2
        assert "counter" in await made.ok("escaper_read", path=str(there / "counter" / "__init__.py"))
        said = await made.failed("escaper_read", path=str(there / "private.txt"))
        assert "secret" not in said


@pytest.mark.parametrize("mode", ["workspace", "full"])
async def test_of_one_in_a_namespace_no_more_is_reached(tmp_path, mode):
    there = tmp_path / "person" / "mine"
    write_component("plugin", "counter", there, "org.example")
    config = there / "counter" / ".config" / "config.yaml"
    config.write_text(config.read_text().replace("package: counter", "package: person.mine.counter"))
    for place in (there, there.parent):
        (place / "private.txt").write_text("secret")
    async with company(tmp_path, "escaper", {"path": str(there / "counter")}, mode=mode) as made:
        assert (await made.value("counter_count_words", text="to be"))["count"] == 2
        for place in (there, there.parent):
            said = await made.failed("escaper_read", path=str(place / "private.txt"))
            assert "secret" not in said


async def test_of_two_versions_the_code_of_the_one_that_is_used_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for version in ("1.0.0", "2.0.0"):
        write_component("plugin", "counter", tmp_path / version, "org.example")
        config = tmp_path / version / "counter" / ".config" / "config.yaml"
        config.write_text(config.read_text().replace("0.1.0-SNAPSHOT", version))
        code = tmp_path / version / "counter" / "counter.py"
        code.write_text(code.read_text().replace("len(words),", f"{version[0]},"))
        put_into_repository(tmp_path / version)
    newer = {"group_id": "org.example", "artifact_id": "counter", "version": "2.0.0"}
    async with company(tmp_path, newer) as made:
        assert (await made.value("counter_count_words", text="to be or not"))["count"] == 2


async def test_a_dot_folder_with_leave(tmp_path):
    (tmp_path / "project" / ".hidden").mkdir(parents=True)
    (tmp_path / "project" / ".hidden" / "key").write_text("opened")
    async with company(tmp_path, "escaper", dot_folders=[".hidden"]) as made:
        assert await made.ok("escaper_read", path=".hidden/key") == "opened"


async def test_messages_are_answered_as_the_guide_says(tmp_path):
    async with company(tmp_path, "postman") as made:
        reply = await made.value("postman_send")
        assert reply["receiver"] == {"role": "cerebrum", "id": "c1", "name": "brain"}
        assert reply["sender"] == {"role": "plugin", "id": "box", "name": "postman"}
        assert reply["content"] == {"command": "echo", "response": "text"}
        assert reply["thrd_id"] == "t7"
        for field, value, words in (
            ("receiver", {"role": "user", "id": "box"}, "receiver.role"),
            ("receiver", {"role": "plugin", "id": "other", "name": "other"}, "receiver"),
            ("content_type", "text/plain", "content_type"),
            ("content", {"param": 1}, "content.command"),
        ):
            assert words in await made.failed("postman_send", field=field, value=value)


async def test_the_person_may_say_no(tmp_path):
    async with company(tmp_path, "notes", approval="ask") as made:
        assert "not allowed" in await made.failed("notes_write", name="a", text="b")
        assert not (made.root / "a.txt").exists()


async def test_what_gives_a_session_nothing_is_told(tmp_path):
    write_component("copilot", "talk", tmp_path, "org.example")
    async with company(tmp_path, {"path": str(tmp_path / "talk")}, "greeter") as made:
        (said,) = made.logged
        assert said.startswith(
            "components: talk is of type copilot, and a session has use for plugins and resources only"
        )


async def test_the_profile_picks_among_the_tools(tmp_path):
    async with company(tmp_path, "notes", "greeter", tools=["notes_read", "get_asset"]) as made:
        assert list(made.tools) == ["notes_read", "get_asset"]
    with pytest.raises(ProfileError, match=r"no tool 'notes_reed' to pick; did you mean 'notes_read'"):
        async with company(tmp_path, "notes", tools=["notes_reed"]):
            pass


async def test_two_tools_of_one_name_are_told(tmp_path):
    twin = used("notes", config={"name": "greeter_greet"})
    other = used("escaper", config={"name": "greeter"})
    async with company(tmp_path, twin, other) as made:
        assert {"greeter_greet_write", "greeter_read"} < set(made.tools)
    with pytest.raises(ProfileError, match=r"both have the tool 'a_b_0_read'.*config: \{name: \.\.\.\}"):
        async with company(tmp_path, used("notes", config={"name": "a b"}), used("escaper", config={"name": "a/b"})):
            pass
