"""The toolkit in an exchange: its listing, its tools, and loaded skills after a compaction."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from goose_like.agent.build import build_exchange
from goose_like.agent.exchange import Exchange
from goose_like.agent.slash_command import run_command
from goose_like.agent.slash_context import SlashContext
from goose_like.config import trust
from goose_like.config.profile import Profile
from goose_like.config.trust import ProjectConfig, load_trusted_project, mark_folders, read_project_config
from goose_like.core.events import Answer, Logged, MessageCompleted, ToolFinished
from goose_like.core.history import History
from goose_like.core.message import Message
from goose_like.core.notifier import Recorder
from goose_like.providers.base import Delta, Model, ModelPair, Request
from goose_like.sessions.session import Session
from tests.fakes import FakeProvider, call, calls
from tests.toolkits.skills.write_skill import describe, write_skill

ALLOW = Answer(choice="allow", by="person")
ALWAYS = Answer(choice="allow_always", by="person")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    (tmp_path / "person").mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mine(root: Path, tmp_path: Path) -> Path:
    """The folder of the person's skills."""
    return tmp_path / "person/.claude/skills"


@asynccontextmanager
async def open_exchange(
    *script: Any,
    provider: FakeProvider | None = None,
    project: ProjectConfig | None = None,
    answer: Answer = Answer(),
    session: Session | None = None,
    **profile: Any,
) -> AsyncIterator[tuple[Exchange, FakeProvider, Recorder]]:
    provider = provider or FakeProvider(script)
    model = Model(provider, "x", "scripted:x")
    recorder = Recorder(answer)
    chosen = Profile.model_validate({"toolkits": (), "sandbox": "full", **profile})
    async with build_exchange(
        chosen, recorder, models=ModelPair(model, model), project=project, session=session
    ) as exchange:
        yield exchange, provider, recorder


def use(name: str, id: str = "c1") -> Any:
    return calls(call("use_skill", f'{{"name": "{name}"}}', id))


def list_results(recorder: Recorder) -> list[str]:
    return [event.result.output for event in recorder.events if isinstance(event, ToolFinished)]


def trust_project(root: Path) -> ProjectConfig:
    project = read_project_config(root)
    assert project
    trust.trust_project(mark_folders(project))
    loaded = load_trusted_project(root)
    assert loaded
    return loaded


async def test_without_skills_it_costs_nothing(root: Path) -> None:
    async with open_exchange(toolkits=("skills",)) as (exchange, _, _):
        assert list(exchange.tools) == []
        assert "kill" not in exchange.system
    async with open_exchange() as (exchange, _, _):
        assert list(exchange.hooks.toolkits) == []


async def test_a_skill_is_listed_and_read_with_the_names_of_its_files(mine: Path) -> None:
    file = write_skill(mine, "pdf", "Fills forms.", "Run ${CLAUDE_SKILL_DIR}/scripts/fill.py on $1.")
    (file.parent / "scripts").mkdir()
    (file.parent / "scripts/fill.py").write_text("")
    async with open_exchange(use("PDF"), "done") as (exchange, provider, recorder):
        await exchange.reply("go")
        assert "\n- pdf: Fills forms." in provider.requests[0].system
    (text,) = list_results(recorder)
    assert text == (
        f"[skill pdf, in {file.parent}]\n\nRun {file.parent}/scripts/fill.py on $1.\n\n"
        f"Files in {file.parent}, from which paths above start:\nscripts/fill.py"
    )


async def test_a_long_skill_is_read_whole(mine: Path) -> None:
    write_skill(mine, "long", body="Line of instructions.\n" * 3_000)
    script = (use("long"), "done")
    async with open_exchange(*script, limits={"output_bytes": 2_000}) as (exchange, _, recorder):
        await exchange.reply("go")
    assert list_results(recorder)[0].count("Line of instructions.") == 3_000


async def test_an_unknown_skill_names_the_nearest_one_and_a_broken_one_is_told_once(mine: Path) -> None:
    write_skill(mine, "release-notes")
    write_skill(mine, "broken").write_text("---\nname: broken\n---\n")
    script = (use("release-note"), "done", "done")
    async with open_exchange(*script) as (exchange, _, recorder):
        await exchange.reply("go")
        await exchange.reply("go on")
    assert "there is no skill 'release-note'; did you mean 'release-notes'?" in list_results(recorder)[0]
    logged = [event.text for event in recorder.events if isinstance(event, Logged)]
    (told,) = [text for text in logged if "broken" in text]
    assert told.startswith(f"skipped: {mine}/broken/SKILL.md: the front matter has no `description`")


async def test_the_listing_stays_in_a_session_and_new_skills_come_by_the_search(mine: Path, tmp_path: Path) -> None:
    write_skill(mine, "first", "Old.")
    search = calls(call("search_skills", '{"query": "brand new"}'))
    async with open_exchange(search, use("second"), "done") as (exchange, provider, recorder):
        write_skill(mine, "second", "Brand new.")
        await exchange.reply("go")
        assert len({request.system for request in provider.requests}) == 1
    found, text = list_results(recorder)
    assert found == "- second: Brand new."
    assert text.startswith("[skill second, in ")


async def test_a_resumed_session_keeps_its_listing(mine: Path, tmp_path: Path) -> None:
    write_skill(mine, "first", "Old.")
    session = Session(tmp_path / "s", "n", History())
    session._open(is_new=True)
    async with open_exchange("hi", session=session) as (exchange, provider, _):
        await exchange.reply("go")
        before = provider.requests[0].system
    write_skill(mine, "second", "Brand new.")
    async with open_exchange("hi", session=session) as (exchange, provider, _):
        assert exchange.system == before
        await exchange.reply("go")
        assert provider.requests[0].system == before
        assert not [message for message in provider.requests[0].messages if "Brand new" in message.text]
    session.close()


async def test_skills_among_500_are_found_by_the_tool(mine: Path) -> None:
    for number in range(500):
        write_skill(mine, f"skill-{number}", describe(number))
    async with open_exchange() as (exchange, _, _):
        assert "And " in exchange.system
        search = exchange.tools["search_skills"].function
        for number in range(0, 500, 20):  # each one: see test_listing.py
            _, _, words = describe(number).partition("when a ")
            first = (await search(query=words)).splitlines()[0]
            assert first.startswith(f"- skill-{number}: ")


class _NoteTaker(FakeProvider):
    """A provider that writes the notes of summaries beside its script, and tells no usage."""

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        if request.messages[-1].text.endswith("Write the notes.") or "Above all keep" in request.messages[-1].text:
            self.script.insert(0, "The notes.")
        step = self.script[0]
        if isinstance(step, Message):
            self.script[0] = MessageCompleted(message=step)
        async for delta in super().stream(request):
            yield delta


@pytest.mark.parametrize("moderator", ["summarize", "truncate", "synopsis"])
async def test_a_loaded_skill_survives_a_compaction(mine: Path, moderator: str) -> None:
    write_skill(mine, "pdf", "Fills forms.", "Always sign in blue. " * 150)
    config = {} if moderator == "synopsis" else {"limit_tokens": 2_500}
    steps = [calls(call("use_skill", '{"name": "missing"}', f"c{number}"), text="word " * 300) for number in range(9)]
    provider = _NoteTaker([use("pdf", "pdf"), *steps, "done"])
    async with open_exchange(provider=provider, moderator={"name": moderator, "config": config}) as (exchange, _, _):
        await exchange.reply("go")
        assert exchange.history.context.summary is not None, "it was compacted"
        (request,) = [request for request in provider.requests if request.tools][-1:]
    results = [result.output for message in request.messages for result in message.tool_results]
    assert not [text for text in results if "in blue" in text], "the result itself is gone"
    said = "\n".join(message.text for message in request.messages)
    # A synopsis also lists what the model was told, cut.
    assert said.count("Always sign in blue.") in (150, 151), "word for word"


async def test_a_person_compacts_twice_and_a_skill_is_there_once(mine: Path) -> None:
    write_skill(mine, "pdf", "Fills forms.", "Always sign in blue. " * 100)
    provider = _NoteTaker([use("pdf"), "x " * 4_000, "more " * 4_000, "end"])
    async with open_exchange(provider=provider) as (exchange, _, _):
        await exchange.reply("go")
        await exchange.compact()
        await exchange.reply("go on")
        await exchange.compact()
        await exchange.reply("end")
    asked = [request.messages[-1].text for request in provider.requests if not request.tools]
    assert ["these skills are in use: pdf" in text for text in asked] == [True, True]
    said = "\n".join(message.text for message in provider.requests[-1].messages)
    assert said.count("Always sign in blue.") == 100


@pytest.mark.parametrize("is_typed", [True, False])
async def test_only_words_of_the_person_name_files_elsewhere(mine: Path, root: Path, is_typed: bool) -> None:
    write_skill(mine, "pdf")
    (root / "a.txt").write_text("inside")
    outside = root.parent / "outside.txt"
    outside.write_text("private")
    async with open_exchange() as (exchange, _, recorder):
        (skill,) = exchange.hooks.yielding_commands
        context = SlashContext(exchange, Profile(), {}, recorder.log, is_typed=is_typed)
        request = await run_command(skill, context, f"fill @a.txt and @{outside}")
    assert "inside" in request.message.text
    assert ("private" in request.message.text) == is_typed


async def test_a_changed_file_beside_a_trusted_skill_is_asked_about(root: Path) -> None:
    folder = write_skill(root / ".claude/skills", "pdf").parent
    (folder / "fill.sh").write_text("echo 1")
    project = trust_project(root)
    (folder / "fill.sh").write_text("echo 2")
    (folder / "new.sh").write_text("echo 3")

    async with open_exchange(use("pdf"), "done", project=project) as (exchange, _, recorder):
        await exchange.reply("go")
    (refusal,) = list_results(recorder)
    assert "has files that the person did not trust (fill.sh (changed), new.sh (new))" in refusal

    script = (use("pdf"), use("pdf", "c2"), "done")
    async with open_exchange(*script, project=project, answer=ALLOW) as (exchange, _, recorder):
        await exchange.reply("go")
    assert [text.startswith("[skill pdf") for text in list_results(recorder)] == [True, True]
    (question,) = recorder.questions
    assert question.kind == "trust"
    assert " 6 fill.sh" in question.detail

    project = load_trusted_project(root)
    async with open_exchange(use("pdf"), "done", project=project, answer=ALWAYS) as (exchange, _, _):
        await exchange.reply("go")
    project = load_trusted_project(root)
    async with open_exchange(use("pdf"), "done", project=project) as (exchange, _, recorder):
        await exchange.reply("go")
    assert list_results(recorder)[0].startswith("[skill pdf")
