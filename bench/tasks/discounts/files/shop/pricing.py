MEMBER_PERCENT = 10
MEMBER_FROM = 5000


def line_total(price, quantity):
    return price * quantity


def member_discount(total):
    """Return what members save: 10 % from 50.00 on."""
    if total > MEMBER_FROM:
        return total * MEMBER_PERCENT // 100
    return 0
