"""What `component list`, `show` and `check` print."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from goose_like.cli.table import print_fitted, print_table
from goose_like.cli.visible import one_line, visible

from .checking import check_file
from .coordinates import Coordinates
from .definition import read_definition
from .repository import Repositories, Shelf, config_file_in
from .sources import config_files

_WIDTH = 60


def list_components(repositories: Repositories, *, is_json: bool) -> None:
    """Every component that is at hand, and which repository it is of; of equal ones the first is used."""
    found: dict[Coordinates, Shelf] = {}
    for shelf in repositories.at_hand:
        for coordinates in shelf.all():
            found.setdefault(coordinates, shelf)
    entries = [_entry(coordinates, found[coordinates]) for coordinates in sorted(found)]
    if is_json:
        print(json.dumps(entries, indent=1))
        return
    columns = ("group", "artifact", "version", "type", "commands", "from")
    rows = [[one_line(str(entry[column]), _WIDTH * 2) for column in columns] for entry in entries]
    print_table(
        columns,
        rows,
        f"there are no components in {repositories.local.name}; `goose-like component new plugin` writes one, "
        "`goose-like component install FOLDER` installs it",
    )


def _entry(coordinates: Coordinates, shelf: Shelf) -> dict[str, str]:
    file = config_file_in(shelf.folder_of(coordinates), coordinates)
    reading = read_definition(file) if file else None
    definition = reading.value if reading else None
    broken = next((f"broken: {fault.text}" for fault in reading.faults if not fault.is_remark), "") if reading else ""
    return {
        "group": coordinates.group_id,
        "artifact": coordinates.artifact_id,
        "version": coordinates.version,
        "type": definition.type if definition else broken,
        "commands": ", ".join(command.name for command in definition.commands) if definition else "",
        "from": shelf.name,
    }


def check_components(paths: Sequence[Path]) -> int:
    """Prints every fault and remark, remarks dim; gives the exit code."""
    files = dict.fromkeys(file for path in paths for file in config_files(path))
    wrong = 0
    for file in files:
        for fault in check_file(file):
            wrong += not fault.is_remark
            print_fitted(Text(visible(str(fault)), style="dim" if fault.is_remark else ""))
    count = f"{len(files)} component{'s' * (len(files) != 1)}"
    print(f"{count}: {wrong} thing{'s' * (wrong != 1)} to mend" if wrong else f"{count}: nothing is wrong")
    return int(wrong > 0)
