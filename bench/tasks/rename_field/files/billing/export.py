import csv
import io
from operator import attrgetter

COLUMNS = ["number", "amount", "amount_paid"]


def to_csv(invoices):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for invoice in sorted(invoices, key=attrgetter("amount"), reverse=True):
        writer.writerow([getattr(invoice, column) for column in COLUMNS])
    return out.getvalue()
