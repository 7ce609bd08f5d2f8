"""Skills for tests."""

from pathlib import Path

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


def describe(number: int) -> str:
    """Describe one of 500 skills by two words. Each word is in many descriptions, and each pair in one."""
    first = _FIRST.split()[number % 25]
    second = _SECOND.split()[(number // 25) % 20]
    return f"Handles the {first} of any {second}. Use it when a {second} has a broken {first}."
