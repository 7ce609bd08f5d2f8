"""Contacts come as text: one a line, `name <email> #tag #tag`."""

import pytest

from contacts.importer import ImportProblem, import_contacts
from contacts.model import Contact


def test_a_name_and_an_address():
    assert import_contacts("Ann Lee <ann@example.com>") == [Contact("Ann Lee", "ann@example.com")]


def test_addresses_become_lower_case():
    assert import_contacts("Bob <Bob@Example.com>")[0].email == "bob@example.com"


def test_tags_are_sorted():
    (contact,) = import_contacts("Cy <cy@example.com> #work #chess")
    assert contact.tags == ("chess", "work")


def test_empty_lines_and_comments_are_skipped():
    assert import_contacts("\n// old ones\n  \nAnn <a@example.com>\n") == [Contact("Ann", "a@example.com")]


def test_of_two_with_one_address_the_last_wins():
    found = import_contacts("Ann <a@example.com>\nBob <b@example.com>\nAnne <A@example.com> #new")
    assert found == [Contact("Anne", "a@example.com", ("new",)), Contact("Bob", "b@example.com")]


def test_a_line_that_cannot_be_read_is_named():
    with pytest.raises(ImportProblem, match="line 2: 'Bob'"):
        import_contacts("Ann <a@example.com>\nBob")


def test_the_problem_is_a_value_error():
    assert issubclass(ImportProblem, ValueError)
