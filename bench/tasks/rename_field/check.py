from checking import evaluate, passes_tests, read

CODE = """
from billing.export import to_csv
from billing.invoice import Invoice
from billing.payments import pay

invoice = Invoice("A-1", net_total=100)
pay(invoice, amount=20)
"""
values = evaluate(
    CODE,
    "(invoice.net_total, invoice.amount_paid, invoice.gross(), invoice.open_amount())",
    "to_csv([Invoice('B', 5, amount_paid=1), invoice])",
    "hasattr(invoice, 'amount')",
    "error_of(lambda: Invoice('A-1', amount=3))",
)
numbers, text, has_old_name, error = values
assert numbers == (100, 20, 120, 100), f"an invoice of 100 with 20 paid has {numbers}"
assert text == "number,net_total,amount_paid\nA-1,100,20\nB,5,1\n", f"the export is {text!r}"
assert not has_old_name and error == "TypeError", "the old name works still"
assert passes_tests("tests"), "the tests fail"
tests = read("tests/test_billing.py")
assert "net_total" in tests and tests.count("def test_") == 3, "the tests do not test the new name, or some are gone"
readme = read("README.md")
assert "net_total=100" in readme and "invoice.net_total" in readme, "README.md has the old name"
assert "`amount_paid`" in readme, "README.md has lost amount_paid"
