import sys
from pathlib import Path

from ledger.parse import parse_statement
from ledger.report import format_report

print(format_report(parse_statement(Path(sys.argv[1]).read_text())))
