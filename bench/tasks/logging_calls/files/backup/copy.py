import shutil

from backup.names import choose_name


def copy_files(files, source, target):
    count = 0
    for path in files:
        goal = choose_name(target / path.relative_to(source))
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, goal)
        print(f"copied {path.name}")
        count += 1
    return count
