import re
from pathlib import Path

from checking import assert_unchanged, run_python

assert_unchanged("notes.txt")
for text, count in [(None, 7), ("a b\n\n c\n", 3)]:
    if text is not None:
        Path("notes.txt").write_text(text)
    printed = run_python("count.py")
    numbers = re.findall(r"\d+", printed)
    assert numbers == [str(count)], f"it prints {printed[:100]!r} for {count} words"
