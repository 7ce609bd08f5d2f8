"""Run the evasion suite: python -m tests.evasion [--user NAME] [--families NAME ...] [--modes MODE ...] [--resume].

Prints how many attacks were tried and held, for each family and mode, and the catch rate of the permission rules apart.
`--user` runs everything as another user, which needs root: root hides several holes. `--control` runs the attacks
without a sandbox and lists those that fail even so, as they show nothing. Results are kept in a file below the folder
of the suite, and `--resume` skips the cases that held.
"""

import argparse
import compileall
import os
import pwd
import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.evasion.case import EVERY_MODE
from tests.evasion.suite import Suite, list_families, load_family


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.evasion")
    parser.add_argument("--user", help="run as this user (needs root)")
    parser.add_argument("--families", nargs="*", choices=list_families(), default=list_families(), metavar="NAME")
    parser.add_argument("--modes", nargs="*", choices=EVERY_MODE, default=EVERY_MODE, metavar="MODE")
    parser.add_argument("--case", default="", help="only cases whose name contains this text")
    parser.add_argument("--resume", action="store_true", help="skip the cases that held")
    parser.add_argument("--control", action="store_true", help="run without a sandbox, to find cases that show nothing")
    parser.add_argument("--keep", action="store_true", help="keep the folder of each case")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--folder", type=Path, help="where the places of the cases are created, outside of /tmp")
    options = parser.parse_args()
    if os.access(ROOT, os.W_OK):  # otherwise each of a thousand starts compiles every module
        for name in ("goose_like", "toolkits", "profiles"):
            compileall.compile_dir(ROOT / name, quiet=2)
    if options.user:
        return run_as(options.user, options.folder, sys.argv[1:])
    if options.control and os.geteuid() == 0:
        parser.error("--control runs attacks without a sandbox: use --user nobody")
    suite = Suite(options.folder or choose_folder(), is_control=options.control, is_kept=options.keep)
    cases = [(family, case) for family in options.families for case in load_family(family) if options.case in case.name]
    return suite.run(cases, options.modes, jobs=options.jobs, resumes=options.resume)


def choose_folder() -> Path:
    """Return the default folder. Below /tmp the sandbox would hide everything beside the workspace anyway."""
    return Path("/var/lib/goose-like-evasion") if os.geteuid() == 0 else Path.home() / ".cache/goose-like-evasion"


def run_as(user: str, folder: Path | None, arguments: list[str]) -> int:
    """Run the suite as another user, with an interpreter that this user can start."""
    folder = folder or Path(f"/var/lib/goose-like-evasion-{user}")
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["chown", "-R", user, str(folder)], check=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(folder), "USER": user}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    group, at = pwd.getpwnam(user).pw_gid, arguments.index("--user")
    rest = [*arguments[:at], *arguments[at + 2 :], "--folder", str(folder)]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            command = [python, "-m", "tests.evasion", *rest]
            return subprocess.run(command, env=env, user=user, group=group, extra_groups=[], check=False).returncode
        except PermissionError:
            print(f"{user} cannot start {python}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
