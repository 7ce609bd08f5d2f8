import pytest

from billing.export import to_csv
from billing.invoice import Invoice
from billing.payments import pay


def test_gross():
    assert Invoice("A-1", amount=100).gross() == 120


def test_pay():
    invoice = Invoice("A-1", amount=100)
    pay(invoice, amount=20)
    assert (invoice.amount, invoice.amount_paid, invoice.open_amount()) == (100, 20, 100)
    with pytest.raises(ValueError, match="too much"):
        pay(invoice, 101)


def test_export():
    text = to_csv([Invoice("A-1", 5), Invoice("A-2", 9, amount_paid=3)])
    assert text == "number,amount,amount_paid\nA-2,9,3\nA-1,5,0\n"
