import pytest

from shop.cart import Cart


def test_an_empty_cart_is_free():
    assert Cart().total() == 0


def test_the_same_article_twice_counts_twice():
    cart = Cart()
    cart.add("pen", 150)
    cart.add("pen", 150, quantity=2)
    assert cart.total() == 450


def test_members_save_from_fifty_on():
    cart = Cart(is_member=True)
    cart.add("bag", 5000)
    assert cart.total() == 4500


def test_a_coupon_never_pays_money_out():
    cart = Cart()
    cart.add("pen", 150)
    cart.coupon = "SAVE5"
    assert cart.total() == 0


def test_an_unknown_coupon():
    cart = Cart()
    cart.coupon = "FREE"
    with pytest.raises(ValueError, match="FREE"):
        cart.total()
