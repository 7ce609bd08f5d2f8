"""Skills for tests."""

import json
from pathlib import Path

PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"

_FIRST = """alloy beacon cinder dormer ember fathom gasket hamper ingot jetty kernel ladle mortar nectar osprey pewter
quarry rudder saddle tassel urchin vellum walnut yonder zephyr"""
_SECOND = """invoice ledger treaty novel recipe atlas sonnet patent census memoir almanac charter diary essay fable
glossary hymnal itinerary journal lexicon"""


def write_skill(top: Path, name: str, description: str = "Does it.", body: str = "Do it.", front: str = "") -> Path:
    """Write a SKILL.md file below a folder and return it."""
    file = top / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: {description}\n{front}---\n{body}\n")
    return file


def install_plugin(site: Path, package: str, *skills: str, schema: str = PLUGIN_SCHEMA) -> Path:
    """Write what a wheel with a plugin installs."""
    info = site / f"{package}-1.0.dist-info"
    plugin = site / f"{package}-1.0.agent-plugin"
    info.mkdir(parents=True)
    for name in skills:
        write_skill(plugin / "skills", name, f"From {package}.")
    (plugin / "plugin.json").write_text(json.dumps({"$schema": schema, "name": package}))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    files = ["plugin.json", *(f"skills/{name}/SKILL.md" for name in skills)]
    (info / "agent_plugins.json").write_text(json.dumps({"root": plugin.name, "files": files}))
    return plugin


def describe(number: int) -> str:
    """Describe one of 500 skills by two words. Each word is in many descriptions, and each pair in one."""
    first = _FIRST.split()[number % 25]
    second = _SECOND.split()[(number // 25) % 20]
    return f"Handles the {first} of any {second}. Use it when a {second} has a broken {first}."
