def find_files(source):
    print("looking into", source)
    found = []
    for path in sorted(source.rglob("*")):
        if path.is_symlink():
            print(f"warning: {path.name} is a link and is left out")
            continue
        if path.is_file():
            found.append(path)
    print(len(found), "files found")
    return found
