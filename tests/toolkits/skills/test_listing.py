"""The listing stays small, and the search finds each skill."""

import pytest
from goose_like_toolkits.skills.catalog import Skill
from goose_like_toolkits.skills.listing import MAX_TOKENS, count_tokens, search, write_listing

from tests.toolkits.skills.write_skill import describe


def make(number: int, description: str = "", owner: str = "person") -> Skill:
    name = f"skill-{number}"
    return Skill(name, description or describe(number), f"/skills/{name}/SKILL.md", owner)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 5, 20, 60, 200, 500, 2_000])
@pytest.mark.parametrize("length", [10, 100, 1_000])
def test_no_listing_is_longer_than_its_limit_and_it_counts_every_skill(count: int, length: int) -> None:
    skills = [make(number, "wörd " * (length // 5)) for number in range(count)]
    text = write_listing(skills)
    assert count_tokens(text) <= MAX_TOKENS
    described = text.count("\n- skill-")
    _, _, names = text.partition("\nAlso: ")
    listed = names.partition(".\n")[0].removesuffix(".")
    named = listed.count("skill-")
    more = count - described - named
    assert more >= 0
    assert (f"And {more:,} more: `search_skills`." in text) == (more > 0)
    if more:
        assert count_tokens(text) > MAX_TOKENS * 0.95, "the room is used"
        assert described > 5
        assert named > 20
    assert "\n\n" not in text, "it is one paragraph"


def test_few_skills_are_listed_whole_and_those_of_the_project_first() -> None:
    skills = [make(1, "b"), make(2, "a " * 400), make(3, "c", "project")]
    lines = write_listing(skills).splitlines()[1:]
    assert lines == ["- skill-3: c", "- skill-1: b", f"- skill-2: {('a ' * 400).strip()}"]


def test_a_skill_among_500_is_found_by_words_of_its_description() -> None:
    skills = [make(number) for number in range(500)]
    for skill in skills[::10]:
        found, count = search(skill.description, skills)
        assert found[0] == skill, (skill.description, [each.name for each in found])
        assert count > 1, "others share its words"


def test_rare_words_names_and_parts_of_words_count() -> None:
    pdf = make(1, "Fills forms and extracts tables.")
    word = make(2, "Writes documents with tables.")
    git = make(3, "Rebases branches.")
    assert search("the table of a document", [pdf, word, git])[0] == [word, pdf]
    assert search("form", [pdf, word, git])[0] == [pdf]
    assert search("3", [pdf, word, git])[0] == [git]
    assert search("nothing like it", [pdf, word, git]) == ([], 0)
    assert search("", [pdf]) == ([], 0)
