import re

from checking import read, run

PROBLEMS = {
    "the default list that each call extends": (
        "club/export.py",
        range(5, 8),
        ["mutable", "default", "shared", "grow", "each call", "accumulat", "extend", "between calls"],
    ),
    "the oldest come first": (
        "club/export.py",
        range(6, 12),
        ["newest", "oldest", "order", "sort", "revers", "ascending"],
    ),
    "a shell runs the names": (
        "club/export.py",
        range(16, 19),
        ["inject", "shell", "os.system", "quot", "escap", "unsafe", "untrusted", "subprocess"],
    ),
    "the last page is not counted": (
        "club/pages.py",
        range(1, 3),
        ["last", "round", "ceil", "partial", "remainder", "floor", "too few", "incomplete"],
    ),
    "SQL with a name in it": (
        "club/store.py",
        range(12, 17),
        ["inject", "parameter", "quot", "escap", "unsafe", "placeholder"],
    ),
}


def is_about(line: str, path: str, numbers: range, words: list[str]) -> bool:
    place = re.search(r"([\w/]+\.py):(\d+)", line)
    if place is None or not path.endswith(place[1]) or int(place[2]) not in numbers:
        return False
    said = line[place.end() :].lower()
    return any(word in said for word in words)


status = run("git", "status", "--porcelain", "--untracked-files=no")
difference = run("git", "diff", "--stat", "export", "--", "club", "tests")
assert status + difference == "", "the code was changed"
lines = [line for line in read("REVIEW.md").splitlines() if re.search(r"\w\.py:\d", line)]
assert lines, "REVIEW.md has no line with FILE:LINE"
assert len(lines) <= 10, f"REVIEW.md has {len(lines)} lines with FILE:LINE; the branch has five mistakes"
found = [title for title, problem in PROBLEMS.items() if any(is_about(line, *problem) for line in lines)]
assert len(found) >= 4, f"REVIEW.md has {len(found)} of 5 mistakes: {found}"
