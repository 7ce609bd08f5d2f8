"""Destructive commands: what they would lose is found, stored and restored, or the person is asked."""

import os

import pytest

from goose_like.core.errors import DeniedError
from goose_like.core.events import Answer
from goose_like.workspace.undo import snapshot
from goose_like.workspace.undo.destruction import find_losses
from goose_like.workspace.undo.names import UnknownName
from tests.workspace.undo.undo_harness import create_repository, list_changes, open_undo, read_tree, run_git
from tests.workspace.workspace_harness import needs_sandbox

YES = Answer(choice="allow", by="person")


@pytest.fixture
def folder(tmp_path):
    for name in ("a.txt", "b.txt", "sub/a.txt", "sub/c.pyc", "build/x.o", "dist/y"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name)
    (tmp_path / "link").symlink_to("a.txt")
    (tmp_path / "folder").symlink_to("sub")
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/sub/a.txt").write_text("other")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rm -rf build", "build"),
        ("command rm -- link", "link"),
        ("rm -rf build/ ./dist", "build dist"),
        ("rm -rf {build,dist}", "build dist"),
        ("rm *.txt", "a.txt b.txt"),
        ("rm -- -a.txt", "-a.txt"),
        ("sudo rm -r build; true", "build"),
        ("test -d x || timeout 5 rm -rf build", "build"),
        ("bash -c 'cd sub && rm a.txt'", "a.txt sub/a.txt"),
        ("cd sub && rm -f *.pyc", "sub/c.pyc"),
        ("cd sub && rm -rf build; cd .. && rm -rf dist", "sub/build dist"),
        ("cd sub; rm a.txt", "sub/a.txt"),
        ("cd nowhere; rm a.txt", "a.txt nowhere/a.txt"),
        ("(cd sub; make) ; rm -rf dist", "dist sub/dist"),
        ("rm link", "link"),
        ("find . -name '*.pyc' -delete", "sub/c.pyc"),
        ("find build dist -type f -exec rm -f {} +", "build dist"),
        ("mv a.txt b.txt", "b.txt"),
        ("mv a.txt sub", "sub/a.txt"),
        ("cp b.txt a.txt sub/", "sub/a.txt sub/b.txt"),
        ("cp a.txt link", "a.txt link"),
        ("mv -t sub a.txt", "sub/a.txt"),
        ("cp --target-directory=sub a.txt b.txt", "sub/a.txt sub/b.txt"),
        ("find . -iname '*.PYC' -delete", "sub/c.pyc"),
        ("find sub ! -name '*.pyc' -delete", "sub"),
        ("find sub -name x -o -type f -delete", "sub"),
        ("cd sub && echo x > a.txt", "sub/a.txt"),
        ("bash -c 'cd sub; echo x > a.txt'", "a.txt sub/a.txt"),
        ("echo x > a.txt", "a.txt"),
        ("echo x >'a.txt' 2>&1", "a.txt"),
        ("make 2> b.txt | tee a.txt", "a.txt b.txt"),
        ("echo x > link", "a.txt"),
        ("truncate -s 0 a.txt", "a.txt"),
        ("git rm -rq sub", "sub"),
        ("dd if=b.txt of=a.txt", "a.txt"),
        ("unlink a.txt; shred -u b.txt", "a.txt b.txt"),
        ("find . -name '*.pyc' -exec unlink {} ';'", "sub/c.pyc"),
        ("find . -name '*.pyc' -exec /bin/rm {} ';'", "sub/c.pyc"),
        ("find . -name '*.pyc' -exec shred -u {} +", "sub/c.pyc"),
        ("find . -name '*.pyc' -print", ""),
        ("truncate --size=0 a.txt", "a.txt"),
        ("cat b.txt | tee --append a.txt", ""),
        ("ln -sf b.txt a.txt", "a.txt"),
        ("ln --symbolic --force b.txt a.txt", "a.txt"),
        ("cd sub && ln -f ../b.txt ../a.txt .", "sub/a.txt sub/b.txt"),
        ("cd sub && ln -f ../a.txt", "sub/a.txt"),
        ("ln -s b.txt a.txt", ""),
        ("sed -i s/a/b/ a.txt", "a.txt"),
        ("sed -Ei.bak s/a/b/ a.txt b.txt", "a.txt b.txt"),
        ("sed --in-place=.bak s/a/b/ a.txt", "a.txt"),
        ("perl -pi -e s/a/b/ a.txt", "a.txt"),
        ("sed s/a/b/ a.txt", ""),
        ("cp --target-directory sub a.txt", "sub/a.txt"),
        ("cp -rt sub b.txt a.txt", "sub/a.txt sub/b.txt"),
        ("cp a.txt $NAME b.txt sub", "sub/a.txt sub/b.txt"),
        ("cp --no-clobber a.txt b.txt", ""),
        ("git -C sub rm a.txt", "sub/a.txt"),
        ("git -C sub -C .. rm a.txt", "a.txt"),
        ("echo x >> a.txt", ""),
        ("mv -n a.txt b.txt", ""),
        ("rm -f $NAME", ""),
        ("echo 'rm -rf build'", ""),
        ("grep -r rm . 2>&1 > /dev/null", ""),
        ("python -c 'def f() -> int: return 1'", ""),
        ("git rm --cached a.txt", ""),
        # files that a copied folder replaces
        ("cp -r sub/. .", "a.txt"),
        ("cp -a sub/./ .", "a.txt"),
        ("cp -rT sub .", "a.txt"),
        ("cp -R sub x", "x"),
        ("cp --parents sub/a.txt .", "sub/a.txt"),
        ("cp -r tree/sub .", "sub/a.txt"),
        ("cp -r tree/* .", "sub/a.txt"),
        ("cp sub/. .", ""),
        # quotes and signs within words
        ("r''m -rf build", "build"),
        ('"r"m -rf build', "build"),
        ("\\rm -rf build", "build"),
        ("'rm' -rf build", "build"),
        ("r\\m -rf bu\\ild", "build"),
        ("/bin/r''m -rf build", "build"),
        ("cat b.txt >& a.txt", "a.txt"),
        ("cat b.txt >&a.txt", "a.txt"),
        ("cat b.txt &>a.txt", "a.txt"),
        ("cat b.txt >& 2", ""),
        ("make 2>&1 >&-", ""),
        # commands within others
        ("env -C sub rm a.txt", "a.txt sub/a.txt"),
        ("env --chdir=sub X=y rm a.txt", "a.txt sub/a.txt"),
        ("coproc rm -rf build", "build"),
        ("coproc NAME { rm -rf build; }", "build"),
        ("bash <<< 'rm -rf build'", "build"),
        ("sh <<'E'\ncd sub\nrm a.txt\nE", "a.txt sub/a.txt"),
        ("env bash -s <<E\nrm -rf build\nE", "build"),
        (". /dev/stdin <<< 'rm -rf build'", "build"),
        ("cat <<< x > a.txt", "a.txt"),
        # links and git
        ("ln -sfn sub folder", "folder"),
        ("ln -sfT sub folder", "folder"),
        ("ln -sf b.txt folder", "sub/b.txt"),
        ("git mv -f b.txt a.txt", "a.txt"),
        ("git mv --force b.txt a.txt sub", "sub/a.txt sub/b.txt"),
        ("git mv -n -f b.txt a.txt", ""),
    ],
)
def test_the_paths_that_a_line_loses(folder, line, expected):
    losses = find_losses(line, str(folder))
    found = {path for path in losses.paths if path.startswith(str(folder))}
    assert {os.path.relpath(path, folder) for path in found} == set(expected.split())
    assert [losses.is_unknown, losses.cleaned, losses.resets_tree] == [False, [], False]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git reset --hard", "resets_tree"),
        ("git -C sub -c x.y=z reset --hard HEAD~1", "resets_tree"),
        ("git checkout .", "resets_tree"),
        ("git checkout -f main", "resets_tree"),
        ("git restore a.txt", "resets_tree"),
        ("git switch --discard-changes x", "resets_tree"),
        ("env GIT_TRACE=1 git clean -fd", "resets_tree"),
        ("git clean -fdx", "resets_tree cleaned"),
        ("git clean -f -d -X", "cleaned"),
        ("rm -rf $HOME/x", "is_unknown"),
        ("ls | xargs rm -rf", "is_unknown"),
        ('cd "$HOME" && rm -r x', "is_unknown"),
        ("find $X -delete", "is_unknown"),
        ("rm --recursive $HOME/x", "is_unknown"),
        ("rm -R $HOME/x", "is_unknown"),
        ("git reset --merge", "resets_tree"),
        ("git reset --keep HEAD~1", "resets_tree"),
        ("git switch --force x", "resets_tree"),
        ("git stash", "resets_tree"),
        ("git stash push -u", "resets_tree"),
        ("git stash save -a", "resets_tree cleaned"),
        ("git stash --all", "resets_tree cleaned"),
        ("git stash list", ""),
        ("git checkout", ""),
        ("git reset", ""),
        ("git clean -nx", ""),
        ("git clean --dry-run -x", ""),
        ("git status; git commit -am reset", ""),
    ],
)
def test_other_losses(folder, line, expected):
    losses = find_losses(line, str(folder))
    kinds = {name for name in ("resets_tree", "cleaned", "is_unknown") if getattr(losses, name)}
    assert kinds == set(expected.split())


@pytest.mark.parametrize(
    ("line", "cleaned", "untracked", "kept"),
    [
        ("git clean -fd", "", ".", ""),
        ("git clean -fdx sub build", "sub build", "sub build", ""),
        ("git clean -fdX sub; git clean -fd build; git clean -fX dist", "sub dist", "build", ""),
        ("cd sub && git clean -fd ..", "", ".", ""),
        ("git -C sub clean -fd", "", "sub", ""),
        ("git clean -fd $NAME", "", "/", ""),
        ("git clean -fde x -e /y/ -fez --exclude v --exclude=w sub", "", "sub", "x y z v w"),
    ],
)
def test_the_folders_that_git_cleans(folder, line, cleaned, untracked, kept):
    losses = find_losses(line, str(folder))
    found = [
        [os.path.relpath(path, folder) if path != "/" else path for path in paths]
        for paths in (losses.cleaned, losses.untracked)
    ]
    assert [*found, losses.kept] == [cleaned.split(), untracked.split(), kept.split()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mv a.txt b.txt sub", {"a.txt": "sub", "b.txt": "sub"}),
        ("mv *.txt sub", {"a.txt": "sub", "b.txt": "sub"}),
        ("mv -t sub a.txt", {"a.txt": "sub"}),
        ("mv a.txt c.txt", {"a.txt": "c.txt"}),
        ("mv link c.txt", {"link": "c.txt"}),
        ("mv $NAME a.txt sub", {"a.txt": "sub"}),
        ("mv a.txt $NAME", {"a.txt": None}),
        ("cp a.txt sub", {}),
    ],
)
def test_the_places_where_a_line_moves_files(folder, line, expected):
    moved = find_losses(line, str(folder)).moved
    assert moved == {str(folder / name): str(folder / end) if end else "" for name, end in expected.items()}


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("git -C ~/sub clean -fdx", "cleaned", ["sub"]),
        ("git clean -fdx ~/build", "cleaned", ["build"]),
        ("git checkout -- ~/a.txt", "changed", ["a.txt"]),
        ("find ~/sub -name '*.pyc' -delete", "paths", ["sub/c.pyc"]),
        ("find s* -name '*.pyc' -delete", "paths", ["sub/c.pyc"]),
    ],
)
def test_names_below_the_home_folder(folder, monkeypatch, line, kind, expected):
    monkeypatch.setenv("HOME", str(folder))
    losses = find_losses(line, str(folder))
    assert list(getattr(losses, kind)) == [str(folder / name) for name in expected]


def test_the_place_below_the_home_folder_where_a_line_moves_a_file(folder, monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    assert find_losses("mv a.txt ~/x", str(folder)).moved == {str(folder / "a.txt"): str(home / "x")}


def test_a_folder_that_is_only_known_while_the_line_runs(folder):
    assert find_losses('git -C "$X" clean -fdx', str(folder)).cleaned == ["/"]
    assert find_losses('git -C "$X" checkout -- a.txt', str(folder)).changed == ["/"]
    assert find_losses('env -C "$X" rm -r data', str(folder)).is_unknown


def test_find_deletes_names_that_look_like_patterns(folder):
    (folder / "[a].pyc").touch()
    losses = find_losses("find . -name '*.pyc' -delete", str(folder))
    assert set(losses.paths) == {str(folder / "[a].pyc"), str(folder / "sub/c.pyc")}


def test_unknown_names_spare_the_content_of_folders_that_tools_make(tmp_path):
    marks = {"node_modules": "a", "__pycache__": "a", "cache": "CACHEDIR.TAG", "env": "pyvenv.cfg", "other": "a"}
    for name, mark in marks.items():
        (tmp_path / name).mkdir()
        for file in (mark, "deep"):
            (tmp_path / name / file).touch()
    folders = [str(tmp_path / name) for name in marks]

    def find(pattern, **options):
        return sorted(os.path.relpath(path, tmp_path) for path in UnknownName(pattern, **options).find(folders))

    assert find(".*/deep") == ["other/deep"]
    assert find(".*/deep", is_recursive=True) == ["other/deep"]
    assert find(".*", is_recursive=True) == sorted(marks)
    assert find(".*/[a-z]*") == ["other"]
    assert find(".*/(env|other)", is_recursive=True) == ["env", "other"]


@pytest.mark.parametrize(
    "line",
    [
        "git clean -qfdx",
        "rm -rf ignored a.log",
        "find . -name '*.log' -delete; rm -r ignored",
        'rm -rf "$PWD"/ignored; echo x > a.log',
        "mv kept.txt a.log; cp sub/deep.txt ignored/mine",
        "git reset -q --hard; rm -rf *",
        "cd ignored && rm -f mine && cd .. && rmdir ignored",
    ],
)
async def test_ignored_files_come_back(tmp_path, line):
    create_repository(tmp_path / "work")
    (tmp_path / "work/ignored").mkdir()
    (tmp_path / "work/ignored/mine").write_text("mine")
    (tmp_path / "work/a.log").write_text("log")
    for cache in (".venv", "sub/__pycache__", ".pytest_cache"):  # nobody misses these
        (tmp_path / "work" / cache).mkdir(parents=True)
        (tmp_path / "work" / cache / "x.log").write_text("made again")
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo(line)
        assert not harness.recorder.questions
        assert harness.logged == ["undo does not cover what commands do to a.log (ignored by git) and 1 more"]


@pytest.mark.parametrize("line", ["git reset -q --hard", "git clean -qfd", "git checkout -q .", "rm -r sub"])
async def test_changed_files_come_back_in_a_large_folder(tmp_path, monkeypatch, line):
    monkeypatch.setattr(snapshot, "LIMIT_ENTRIES", 3)
    create_repository(tmp_path / "work")
    (tmp_path / "work/kept.txt").write_text("changed")
    (tmp_path / "work/new.txt").write_text("new")
    async with open_undo(tmp_path) as harness:
        await harness.run_and_undo(line)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rm -rf many", "many: over 5 files"),
        ("git clean -fdx", "big.log: over 0 MB and 2 more"),
        ("rm big.log", "big.log: over 0 MB"),
        ("echo x > big.log", "big.log: over 0 MB"),
        ("rm -rf .git", ".git: part of a repository"),
        ("rm -rf other", "other/inner: a repository"),
        ('rm -rf "$UNSET"', ".git: part of a repository and 3 more"),
    ],
)
async def test_what_is_too_large_is_asked_about(tmp_path, monkeypatch, line, reason):
    work = tmp_path / "work"
    create_repository(work)
    (work / ".gitignore").write_text("many/\nbig.log\nother/\n")
    (work / "big.log").write_bytes(b"x" * 101)
    (work / "many").mkdir()
    for number in range(9):
        (work / f"many/{number}").touch()
    (work / "other/inner").mkdir(parents=True)
    run_git(work / "other/inner", "init", "-q")
    monkeypatch.setattr(snapshot, "LIMIT_FILE_BYTES", 100)
    monkeypatch.setattr("goose_like.workspace.undo.backup.LIMIT_ENTRIES", 5)

    async with open_undo(tmp_path) as harness:
        harness.begin()
        await harness.undo.on_change(None, ("true",))
        monkeypatch.setattr(snapshot, "LIMIT_ENTRIES", 5)
        with pytest.raises(DeniedError, match="without a way back"):
            await harness.command(line)
        [question] = harness.recorder.questions
        assert question.kind == "deletion"
        assert f"{harness.root}/{reason}" in question.text
        assert question.text.endswith(question.subject)
        assert (work / "big.log").stat().st_size == 101


@pytest.mark.parametrize(
    "line",
    ["git clean -fdxe many", "git clean -fdx -e big.log -e many/ .", "cd sub && git clean -fdx", "git clean -fdx sub"],
)
async def test_git_clean_is_not_asked_about_what_it_keeps(tmp_path, monkeypatch, line):
    create_repository(tmp_path / "work")
    (tmp_path / "work/.git/info/exclude").write_text("many/\n")
    (tmp_path / "work/many").mkdir()
    for number in range(9):
        (tmp_path / f"work/many/{number}").touch()
    monkeypatch.setattr(snapshot, "LIMIT_ENTRIES", 5)
    async with open_undo(tmp_path) as harness:
        (harness.root / "sub/a.log").write_text("log")
        await harness.run_and_undo(line)
        assert not harness.recorder.questions


LARGE = "big.dat: over 0 MB"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *((f"git clean {options}", LARGE) for options in ("-fd", "-fdx", "-qfd", "-fd -e none", "-fd .")),
        ("git -C sub clean -fd ..", LARGE),
        ("git checkout -- tracked.dat", "tracked.dat: over 0 MB"),
        ("git checkout .", "tracked.dat: over 0 MB"),
        ("git reset -q --hard", "tracked.dat: over 0 MB"),
        ("git restore .", "tracked.dat: over 0 MB"),
        ("git restore '*.dat'", "tracked.dat: over 0 MB"),
        ("git stash -q; git stash drop -q", "tracked.dat: over 0 MB"),
        ("git stash -qu", LARGE),
        ("x=big.dat; rm $x", LARGE),
        ('for f in *.dat; do rm "$f"; done', LARGE),
        ("ls *.dat | xargs rm -f", LARGE),
        ('rm "$(echo big.dat)"', LARGE),
        ("find . -name 'big*' | xargs rm", LARGE),
        ("read f <<< big.dat; rm $f", LARGE),
        ("mv big.dat /tmp", LARGE),
        ("d=.git; rm -rf $d", ".git: part of a repository"),
        ("d=$(echo .git); rm -rf $d", ".git: part of a repository"),
    ],
)
async def test_large_files_are_asked_about(tmp_path, monkeypatch, home, line, reason):
    work = tmp_path / "work"
    create_repository(work)
    (work / "tracked.dat").write_bytes(b"x" * 101)
    run_git(work, "add", ".")
    run_git(work, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "y")
    (work / "tracked.dat").write_bytes(b"y" * 101)
    (work / "big.dat").write_bytes(b"x" * 101)
    monkeypatch.setattr(snapshot, "LIMIT_FILE_BYTES", 100)
    async with open_undo(tmp_path, mode="workspace") as harness:
        harness.begin()
        with pytest.raises(DeniedError, match="without a way back"):
            await harness.command(line)
        [question] = harness.recorder.questions
        assert f"{harness.root}/{reason}" in question.text
        assert (work / "big.dat").read_bytes() == b"x" * 101
        assert (work / "tracked.dat").read_bytes() == b"y" * 101


@pytest.mark.parametrize(
    "line",
    [
        "f=.env; rm $f",
        "echo .env | xargs rm",
        'rm "$(echo .env)"',
        "for f in .env; do rm $f; done",
        "find . -maxdepth 1 -name .env | xargs rm",
        'read f <<< .env; rm "$f"',
        "f() { rm $1; }; f .env",
        "mv .env /tmp/",
        "mv .env plain.txt",
        'echo x >"$PWD/.env"',
        "f=.env; echo x > $f",
        "cd sub; echo x >../.env",
        "ln -sf kept.txt .env",
        "install kept.txt .env",
        "sed -i d .env",
        "echo .env | xargs sed -i d",
        "perl -pi -e 's/x/y/' .env",
        "cp -t data kept.txt; mv -t /tmp -f .env",
        'd=data; rm -r "$PWD/$d"',
        "git stash -qa",
    ],
)
async def test_ignored_files_of_unknown_names_come_back(tmp_path, home, line):
    work = tmp_path / "work"
    create_repository(work)
    (work / ".git/info/exclude").write_text(".env\ndata/\n")
    (work / ".env").write_text("x=1\n")
    (work / "data").mkdir()
    (work / "data/kept.txt").write_text("old")
    run_git(work, "config", "user.name", "n")
    run_git(work, "config", "user.email", "e")
    async with open_undo(tmp_path) as harness:
        before = read_tree(harness.root)
        number = await harness.turn(line)
        assert read_tree(harness.root) != before
        assert await harness.back(number) == []
        assert read_tree(harness.root) == before
        assert not harness.recorder.questions


@pytest.mark.parametrize(
    "line",
    [
        "touch $TMPDIR/x; rm -f $TMPDIR/x",
        "t=$(mktemp); rm -f $t",
        't=$(mktemp -d); rm -rf "$t"',
        "f=kept.txt; rm $f",
        "for f in *.txt; do mv $f $f.old; done",
        "rm -rf $PWD/sub",
        "git checkout -q -- kept.txt",
        "git checkout -qb new",
        "git restore kept.txt; git clean -qfd sub",
        "echo x > $TMPDIR/y; cp $TMPDIR/y sub/z",
        "sed -i s/one/two/ kept.txt",
    ],
)
async def test_ordinary_work_beside_large_files_asks_nothing(tmp_path, monkeypatch, home, line):
    work = tmp_path / "work"
    create_repository(work)
    (work / ".git/info/exclude").write_text("node_modules/\n")
    (work / "node_modules/a").mkdir(parents=True)
    for number in range(9):
        (work / f"node_modules/a/{number}").write_bytes(b"x" * 200)
    (work / "big.dat").write_bytes(b"x" * 101)
    monkeypatch.setattr(snapshot, "LIMIT_FILE_BYTES", 100)
    async with open_undo(tmp_path, mode="workspace") as harness:
        await harness.turn(line)
        assert not harness.recorder.questions


async def test_an_answer_lets_the_command_run(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "LIMIT_FILE_BYTES", 2)
    async with open_undo(tmp_path, answer=YES) as harness:
        (harness.root / "large").write_text("large")
        await harness.turn("rm large")
        assert not (harness.root / "large").exists()
        assert len(harness.recorder.questions) == 1


async def test_the_persons_own_commands_are_not_asked_about(tmp_path):
    create_repository(tmp_path / "work")
    async with open_undo(tmp_path) as harness:
        await harness.turn("true")
        await harness.command("rm -rf .git")
        assert not harness.recorder.questions


@pytest.mark.parametrize("mode", ["full", pytest.param("workspace", marks=needs_sandbox)])
async def test_undo_of_head_and_index(tmp_path, home, mode):
    create_repository(tmp_path / "work")
    async with open_undo(tmp_path, mode=mode) as harness:
        work = harness.root
        run_git(work, "config", "user.name", "n")
        run_git(work, "config", "user.email", "e")
        (work / "staged.txt").write_text("staged")
        run_git(work, "add", "staged.txt")

        def describe() -> list[str]:
            commands = (
                ["rev-parse", "HEAD"],
                ["rev-parse", "--abbrev-ref", "HEAD"],
                ["ls-files", "-s"],
                ["status", "-s"],
            )
            return [run_git(work, *words) for words in commands]

        before, tree = describe(), read_tree(work)
        first = await harness.turn(
            "git commit -qam one; echo x > kept.txt", "git checkout -qb side; git commit -qam two"
        )
        await harness.undo.plan_restore(first)  # the changes of a turn are recorded in the background
        middle = describe()
        second = await harness.turn("git reset -q --hard HEAD~2", "git branch -f x; git checkout -q --detach")
        assert describe() != middle
        plan = await harness.undo.plan_restore(second)
        assert [change for change in list_changes(plan) if change[0] in ("HEAD", "index")] == [
            ("HEAD", "restore", False),
            ("index", "restore", False),
        ]
        assert await harness.undo.restore(plan) == []
        assert describe() == middle
        assert await harness.back(first) == []
        assert (describe(), read_tree(work)) == (before, tree)


async def test_git_status_is_no_change_and_a_persons_commit_is_kept(tmp_path):
    create_repository(tmp_path / "work")
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("touch kept.txt; sleep 0.1; git status", "git log -1")
        assert list_changes(await harness.undo.plan_restore(number)) == []
        number = await harness.turn("echo x > kept.txt; git add kept.txt")
        await harness.undo.plan_restore(number)  # the turn's changes are recorded in the background
        run_git(harness.root, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "mine")
        plan = await harness.undo.plan_restore(number)
        assert ("HEAD", "restore", True) not in list_changes(plan)
        await harness.undo.restore(plan)
        assert run_git(harness.root, "log", "-1", "--format=%s") == "mine\n"


@pytest.mark.parametrize("is_packed", [False, True])
async def test_worktrees_and_new_branches(tmp_path, is_packed):
    create_repository(tmp_path / "main")
    if is_packed:
        run_git(tmp_path / "main", "pack-refs", "--all")
    run_git(tmp_path / "main", "worktree", "add", "-q", "-b", "side", str(tmp_path / "work"))
    async with open_undo(tmp_path) as harness:
        before = run_git(harness.root, "rev-parse", "HEAD")
        number = await harness.turn("git -c user.name=n -c user.email=e commit -q --allow-empty -m x")
        assert run_git(harness.root, "rev-parse", "HEAD") != before
        assert await harness.back(number) == []
        assert run_git(harness.root, "rev-parse", "HEAD") == before
        assert run_git(harness.root, "symbolic-ref", "HEAD") == "refs/heads/side\n"


async def test_the_first_commit_is_undone(tmp_path):
    (tmp_path / "work").mkdir()
    run_git(tmp_path / "work", "init", "-q")
    async with open_undo(tmp_path) as harness:
        number = await harness.turn("git -c user.name=n -c user.email=e commit -q --allow-empty -m x")
        assert await harness.back(number) == []
        assert run_git(harness.root, "status", "--porcelain", "--branch").startswith("## No commits yet")
