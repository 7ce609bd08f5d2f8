def pay(invoice, amount):
    """Book a payment; more than the open amount is an error."""
    if amount > invoice.open_amount():
        raise ValueError("that is too much")
    invoice.amount_paid += amount
