from pathlib import Path

from checking import evaluate, passes_tests, read, run_python

for folder in ("source", "target"):
    Path(folder).mkdir()
    Path(folder, "a.txt").write_text("a")
Path("source/b.txt").write_text("b")
Path("source/link").symlink_to("b.txt")
printed = run_python("main.py", "source", "target")
assert printed == "2\n", f"main.py prints {printed[:150]!r}"
assert sorted(path.name for path in Path("target").iterdir()) == ["a-1.txt", "a.txt", "b.txt"], "files are missing"
CODE = """
import logging
from pathlib import Path
records = []

class Keep(logging.Handler):
    def emit(self, record):
        records.append((record.name, record.levelname, record.getMessage()))

from backup.copy import copy_files
from backup.scan import find_files
logging.getLogger().addHandler(Keep())
logging.getLogger().setLevel(logging.INFO)
source = Path("source")
copy_files(find_files(source), source, Path("target"))
"""
(records,) = evaluate(CODE, "records")
expected = [
    ("backup.scan", "INFO", "looking into source"),
    ("backup.scan", "WARNING", "link is a link and is left out"),
    ("backup.scan", "INFO", "2 files found"),
    ("backup.names", "WARNING", "a.txt is taken, a-2.txt is used"),
    ("backup.copy", "INFO", "copied a.txt"),
    ("backup.names", "WARNING", "b.txt is taken, b-1.txt is used"),
    ("backup.copy", "INFO", "copied b.txt"),
]
for right in expected:
    assert right in records, f"there is no log record {right}; there are {records}"
for path in ("backup/scan.py", "backup/copy.py", "backup/names.py"):
    assert "print(" not in read(path), f"{path} prints still"
assert passes_tests("tests"), "the tests fail"
