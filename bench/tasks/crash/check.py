from pathlib import Path

from checking import assert_unchanged, run_python

assert_unchanged("data.json")
printed = run_python("report.py")
assert printed == "total: 15\n", f"it prints {printed[:100]!r}"
Path("data.json").write_text('{"items": [{"name": "cup", "price": 4, "count": 2}]}')
printed = run_python("report.py")
assert printed == "total: 8\n", f"it prints {printed[:100]!r} for other data"
