import sys
from pathlib import Path

from backup.copy import copy_files
from backup.scan import find_files


def main(source, target):
    files = find_files(Path(source))
    print(copy_files(files, Path(source), Path(target)))


if __name__ == "__main__":
    main(*sys.argv[1:])
