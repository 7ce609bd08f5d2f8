from checking import assert_unchanged, get_original, list_files, read

for path in ["README.md", "docs/guide.md"]:
    expected = get_original(path).replace("2023", "2024")
    assert read(path).split() == expected.split(), f"{path} has {read(path)!r}"
assert_unchanged("data.csv")
assert list_files() == ["README.md", "data.csv", "docs/guide.md"], f"the files are {list_files()}"
