import pytest

from library.loans import late_fee, lend
from library.members import Member


def test_lend_and_give_back():
    ann = Member("Ann")
    lend(ann, "Emma")
    lend(ann, "Dune")
    with pytest.raises(ValueError, match="2 books"):
        lend(ann, "Ulysses")
    ann.give_back("Emma", days_late=3)
    assert ann.describe() == "Ann: 1 of 2 books, 60 cents to pay"


def test_only_members_borrow():
    with pytest.raises(TypeError):
        lend("Ann", "Emma")


def test_late_fee():
    assert late_fee(-1) == 0
