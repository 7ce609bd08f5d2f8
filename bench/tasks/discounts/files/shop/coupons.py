COUPONS = {"SAVE5": 500, "SAVE20": 2000}


def apply_coupon(total, code):
    """Take the value of a coupon off. Nobody pays less than nothing."""
    if code not in COUPONS:
        raise ValueError(f"unknown coupon {code}")
    return total - COUPONS[code]
