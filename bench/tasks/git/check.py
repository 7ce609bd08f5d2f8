from checking import run

assert run("git", "log", "--format=%s").splitlines() == ["first"], "the log does not have one commit 'first'"
assert run("git", "status", "--short") == "", "there are changes that were not committed"
assert run("git", "ls-files").split() == ["a.txt", "b.txt"], "the commit does not have both files"
