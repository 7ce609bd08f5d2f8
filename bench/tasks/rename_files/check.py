from checking import list_files, read

assert list_files() == ["a.md", "b.md", "keep.py"], f"the files are {list_files()}"
assert (read("a.md"), read("b.md")) == ("a\n", "b\n"), "the files have other texts"
