from checking import assert_unchanged, evaluate, passes_tests

assert_unchanged("tests/test_cart.py")
assert passes_tests("tests"), "the tests fail"
CODE = """
from shop.cart import Cart

def total(*lines, is_member=False, coupon=None):
    cart = Cart(is_member=is_member)
    for line in lines:
        cart.add(*line)
    cart.coupon = coupon
    return cart.total()
"""
values = evaluate(
    CODE,
    "total(('cup', 300, 2), ('pen', 100), ('cup', 300, 2))",
    "total(('bag', 4999), is_member=True)",
    "total(('bag', 6000), is_member=True)",
    "total(('bag', 6000), coupon='SAVE20')",
    "total(('bag', 1999), coupon='SAVE20')",
)
assert values == [1300, 4999, 5400, 4000, 0], f"five other carts cost {values}"
