from pathlib import Path

from checking import assert_unchanged, read, run_python

assert_unchanged("slug.py")
assert "assert" in read("test_slug.py"), "test_slug.py has no assert"
run_python("test_slug.py")
Path("slug.py").write_text('def slug(title):\n    return "wrong"\n')
run_python("test_slug.py", code=1)
