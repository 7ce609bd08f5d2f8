"""What a component opened is given back, even where its `initialize` came only half-way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.toolkits.components.component_session import company
from tests.toolkits.developer.developer_harness import wait_until

HEAD = """
group_id: org.example
artifact_id: {name}
version: "1.0.0"
type: {type}
as_plugin: {as_plugin}
setup: {{package: {name}}}
"""
PLUGIN = """
info: {title: careful, description: Opens two things.}
commands: [{command_name: work, description: Works.}]
config:
  resources: [{type: first}, {type: second}]
"""
CODE = """
import os
import time
from concopilot.framework.plugin import AbstractPlugin
from concopilot.framework.resource import Resource


def tell(what):
    with open("told.log", "a") as log:
        log.write(f"{{what}}\\n")


class It({base}):
    def initialize(self):
        tell("open {name}")
        if os.path.exists("{name}.stuck"):
            time.sleep(60)
        if os.path.exists("{name}.down"):
            raise OSError("{name} is down")

    def finalize(self):
        tell("close {name}")
        if os.path.exists("{name}.sticks"):
            raise RuntimeError("{name} sticks")

    def command(self, command_name, param, **kwargs):
        tell("work")
        return "worked"


def constructor(config):
    return It(config)
"""


@pytest.fixture
def shop(tmp_path: Path) -> list[dict[str, Any]]:
    """A plugin with two resources, each of which fails as files in the running directory say."""
    for name in ("first", "second", "careful"):
        is_plugin = name == "careful"
        place = tmp_path / "shop" / name
        (place / ".config").mkdir(parents=True)
        base, rest = ("AbstractPlugin", PLUGIN) if is_plugin else ("Resource", f"resource_type: {name}\n")
        head = HEAD.format(name=name, type="plugin" if is_plugin else "resource", as_plugin=str(is_plugin).lower())
        (place / ".config" / "config.yaml").write_text(head + rest)
        (place / "__init__.py").write_text(CODE.format(name=name, base=base))
    return [{"path": str(tmp_path / "shop" / name)} for name in ("first", "second", "careful")]


def log_of(made: Any) -> list[str]:
    return (made.root / "told.log").read_text().splitlines()


@pytest.mark.parametrize(("which", "before"), [("careful", ["first", "second"]), ("second", ["first"]), ("first", [])])
async def test_one_that_fails_half_way_is_given_back_and_made_anew(tmp_path, shop, which, before):
    async with company(tmp_path, *shop) as made:
        fault = made.root / f"{which}.down"
        fault.touch()
        opened = [f"open {name}" for name in (*before, which)]
        assert f"{which} is down" in await made.failed("careful_work")
        assert log_of(made) == [*opened, f"close {which}"]
        assert f"{which} is down" in await made.failed("careful_work")
        assert log_of(made)[len(opened) + 1 :] == [f"open {which}", f"close {which}"]
        fault.unlink()
        assert await made.ok("careful_work") == "worked"
    assert log_of(made)[-4:] == ["work", "close careful", "close second", "close first"]
    assert [log_of(made).count(f"{do} {which}") for do in ("open", "close")] == [3, 3]


async def test_the_first_error_is_told_before_the_one_of_giving_back(tmp_path, shop):
    async with company(tmp_path, *shop) as made:
        (made.root / "second.down").touch()
        (made.root / "second.sticks").touch()
        said = await made.failed("careful_work")
        assert said.index("OSError: second is down") < said.index("RuntimeError: second sticks")


async def test_one_that_is_stopped_while_it_opens_is_given_back(tmp_path, shop):
    async with company(tmp_path, *shop) as made:
        (made.root / "second.stuck").touch()
        running = asyncio.create_task(made.outcome("careful_work"))
        await wait_until(lambda: (made.root / "told.log").exists() and "open second" in log_of(made))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert log_of(made)[-1] == "close second"
        (made.root / "second.stuck").unlink()
        assert await made.ok("careful_work") == "worked"
