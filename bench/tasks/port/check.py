import re

from checking import assert_unchanged, read_answer

ports = re.findall(r"\b\d{4}\b", read_answer())
assert ports[:1] == ["8472"], f"the answer is {read_answer()[:200]!r}"
assert_unchanged("config.toml")
