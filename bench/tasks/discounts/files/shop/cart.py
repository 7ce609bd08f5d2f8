from shop.coupons import apply_coupon
from shop.pricing import line_total, member_discount


class Cart:
    def __init__(self, is_member=False):
        self.is_member = is_member
        self.lines = {}
        self.coupon = None

    def add(self, name, price, quantity=1):
        self.lines[name] = (price, quantity)

    def total(self):
        """Return the price of everything in cents."""
        total = 0
        for price, quantity in self.lines.values():
            total += line_total(price, quantity)
        if self.is_member:
            total -= member_discount(total)
        if self.coupon:
            total = apply_coupon(total, self.coupon)
        return total
