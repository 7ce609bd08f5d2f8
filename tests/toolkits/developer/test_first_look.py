"""Tests of what small models learn about the files of a project before they write one."""

import pytest

from goose_like.toolkit import PromptSubmitted
from tests.toolkits.developer.developer_harness import DeveloperHarness, open_developer

TASK = "The module of lib/model.py is missing in test_model.py. Write it."


@pytest.fixture
async def here(tmp_path):
    async with open_developer(tmp_path, "full", first_look=True) as made:
        yield made


async def look(here: DeveloperHarness, task: str = TASK) -> None:
    await here.toolkit.on_prompt_submitted(PromptSubmitted(task, False))


async def test_other_models_write_what_they_want(tmp_path):
    async with open_developer(tmp_path, "full") as made:
        (made.root / "test_model.py").write_text("import model\n")
        await look(made)
        await made.call_ok("write_file", path="model.py", content="x = 1\n")


async def test_what_the_task_names_is_read_before_a_file_is_written(here):
    (here.root / "lib").mkdir()
    (here.root / "lib" / "model.py").write_text("class Model: pass\n")
    (here.root / "test_model.py").write_text("import model\n")
    (here.root / "other.py").write_text("print(1)\n")
    await look(here)
    await here.shell("cat lib/model.py")
    refused = await here.call_error("write_file", path="model.py", content="x = 1\n")
    assert refused.startswith("not written, as you have not read what the task names. Write model.py to fit this:")
    assert refused.endswith("\n\ntest_model.py:\nimport model")
    assert not (here.root / "model.py").exists()
    await here.call_ok("write_file", path="model.py", content="x = 1\n")


async def test_long_and_binary_files_need_not_be_read_and_a_change_needs_no_other_file(here):
    (here.root / "test_model.py").write_text("x = 1\n" * 10_000)
    (here.root / "model.py").write_bytes(b"\0\xff")
    await look(here, "Repair model.py, new.py and test_model.py.")
    await here.call_ok("write_file", path="new.py", content="x = 1\n")
    (here.root / "other.py").write_text("x = 1\n")
    await look(here, "Repair other.py and new.py.")
    await here.call_ok("write_file", path="new.py", content="x = 2\n")
