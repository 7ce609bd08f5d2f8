"""SKILL.md files as other agents write them."""

from pathlib import Path

import pytest
from goose_like_toolkits.skills.skill_file import list_deviations, parse_skill_file

from goose_like.core.errors import GooseLikeError

PATH = Path("/skills/pdf/SKILL.md")


@pytest.mark.parametrize(
    ("front", "description"),
    [
        ("name: pdf\ndescription: Fills forms.", "Fills forms."),
        ("name: pdf\ndescription: Use when: a form, e.g. tax: yes", "Use when: a form, e.g. tax: yes"),
        ("name: pdf\ndescription: |\n  Fills\n  forms.", "Fills forms."),
        ('name: pdf\ndescription: "Fills: forms"\nmetadata:\n  a: b\nextra: c: d', "Fills: forms"),
        ("name: pdf\ndescription: 'Fills'\nargument-hint: [FILE] [WHO]", "Fills"),
        ("description: Fills.\nunknown: [1, 2]", "Fills."),
    ],
)
@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_files_are_read_leniently(front: str, description: str, before: str) -> None:
    skill = parse_skill_file(PATH, f"{before}---\r\n{front}\n---\n\n# Body\n")
    assert (skill.name, skill.description, skill.body) == ("pdf", description, "# Body")


@pytest.mark.parametrize(
    "text",
    [
        "# only text",
        "---\nname: pdf\n---\nx",
        "---\nname: pdf\ndescription: [a\n b: {\n---\n",
        "---\ndescription: x",
        "",
    ],
)
def test_only_files_without_description_or_with_broken_yaml_are_refused(text: str) -> None:
    with pytest.raises(GooseLikeError, match=str(PATH)):
        parse_skill_file(PATH, text)


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        ("Read, Bash(git log:*)", ("Read", "Bash(git log:*)")),
        ("Bash(git:*) Bash(jq:*) Read", ("Bash(git:*)", "Bash(jq:*)", "Read")),
        ("[Read, Write]", ("Read", "Write")),
        ("\n  - Read\n  - Bash(ls *)", ("Read", "Bash(ls *)")),
        ("3", ()),
    ],
)
def test_allowed_tools_in_each_form(value: str, entries: tuple[str, ...]) -> None:
    text = f"---\nname: pdf\ndescription: x\nallowed-tools: {value}\n---\nx"
    assert parse_skill_file(PATH, text).allowed_tools == entries


def test_a_name_that_cannot_be_typed_gives_way_to_that_of_the_folder() -> None:
    skill = parse_skill_file(PATH, "---\nname: My PDF skill!\ndescription: x\n---\nx")
    assert skill.name == "pdf"
    notes = "\n".join(list_deviations(PATH, skill))
    assert "the folder 'pdf'" in notes
    assert "lower-case letters" in notes


def test_deviations_from_the_specification_are_named() -> None:
    text = f"---\nname: pdf\ndescription: {'x' * 2_000}\nmodel: opus\ncompatibility: 3\n---\n"
    skill = parse_skill_file(PATH, text)
    assert len(skill.description) <= 1_024
    notes = "\n".join(list_deviations(PATH, skill))
    for part in ("1,024", "`model`", "`compatibility`", "says nothing"):
        assert part in notes
