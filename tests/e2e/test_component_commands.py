"""`goose-like component` and `conpack` as a person types them: what they print, what they leave, how they end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.command import Place
from tests.toolkits.components.component_server import component_server
from tests.toolkits.components.gpg_keys import secret_key

SNAPSHOT = "0.1.0-SNAPSHOT"


def component(place: Place, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return place.run("component", *words, env={"HOME": str(place.home), **env})


def conpack(place: Place, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "goose_like_toolkits.components.conpack", *words],
        cwd=place.work,
        env=place.env(HOME=str(place.home), **env),
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def repository(place: Place) -> Path:
    return place.home / ".concopilot" / "repository"


@pytest.fixture
def words(place: Place) -> Place:
    """A place with a new plugin `words` in it."""
    done = component(place, "new", "plugin", "words", "--group-id", "org.ada")
    assert done.stdout == "wrote words/.config/config.yaml\nwrote words/__init__.py\nwrote words/words.py\n", (
        done.stderr
    )
    return place


def replaced(place: Place, old: str, new: str) -> None:
    file = place.work / "words" / ".config" / "config.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_new_check_install_list_show(words: Place):
    done = component(words, "check", "words")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 component: nothing is wrong"), done.stdout
    done = component(words, "install", "words")
    folder = repository(words) / "org" / "ada" / "words" / SNAPSHOT
    assert (done.returncode, done.stdout) == (0, f"org.ada:words:{SNAPSHOT} installed in {folder}\n"), done.stderr
    assert {file.name for file in folder.iterdir()} == {"__COMPLETED", f"words-{SNAPSHOT}-config.yaml"}
    listed = json.loads(component(words, "list", "--json").stdout)
    (own,) = (entry for entry in listed if entry["group"] == "org.ada")
    assert own == {
        "group": "org.ada",
        "artifact": "words",
        "version": SNAPSHOT,
        "type": "plugin",
        "commands": "count_words",
        "from": str(repository(words)),
    }
    rows = [line.split()[:5] for line in component(words, "list").stdout.splitlines()]
    assert ["org.ada", "words", SNAPSHOT, "plugin", "count_words"] in rows
    shown = component(words, "show", f"org.ada:words:{SNAPSHOT}").stdout
    assert "├── takes (mapping)\n│   ├── text (text, or an asset" in shown
    assert f"longest  3      {folder}/words-{SNAPSHOT}-config.yaml, line " in shown
    by_path = component(words, "show", "words/.config/config.yaml", "--json")
    assert json.loads(by_path.stdout)["commands"][0]["name"] == "count_words"


def test_show_tells_of_the_copy_that_counts_here(words: Place):
    coordinates = f"org.ada:words:{SNAPSHOT}"
    assert component(words, "install", "words").returncode == 0
    built = component(words, "build", coordinates, "--skip-setup", "--sandbox", "full")
    assert built.returncode == 0, built.stderr
    copy = words.work / ".runtime" / "org" / "ada" / "words" / SNAPSHOT / "0" / "config.yaml"
    copy.write_text(copy.read_text().replace("longest: 3", "longest: 5"))
    assert f"longest  5      {copy}, line " in component(words, "show", coordinates).stdout
    assert "longest  3  " in component(words, "show", coordinates, "--instance", "other").stdout
    refused = component(words, "show", coordinates, "--instance", "../0")
    assert (refused.returncode, "instance_id" in refused.stderr) == (2, True), refused.stderr


def test_a_plugin_and_a_copilot_work_as_they_are_written(words: Place):
    how = ("--skip-setup", "--sandbox", "full")
    built = component(words, "build", "words", *how)
    assert built.returncode == 0, built.stderr
    assert built.stdout == "words can be made; its configuration is words/.config/config.yaml\n"
    profiles = words.home / "config" / "profiles.yaml"
    profiles.parent.mkdir(exist_ok=True)
    profiles.write_text(f"talk: {{processor: '{words.script('Good day to you.')}', toolkits: []}}\n")
    begun = component(words, "new", "copilot", "talk")
    assert "goose-like component install talk talk_interactor\n" in begun.stderr
    early = component(words, "run", "talk", "--profile", "talk", *how)
    assert early.returncode == 1
    assert early.stderr.startswith(f"goose-like: there is no component org.example:talk-interactor:{SNAPSHOT} ")
    assert component(words, "install", ".").returncode == 0
    env = {"HOME": str(words.home)}
    done = words.run("component", "run", "talk", "--profile", "talk", *how, env=env, input="hello\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "This is Talk. What can I do for you?" in done.stdout
    assert "Good day to you." in done.stdout


def test_who_includes_a_component_overrides_its_config(words: Place):
    replaced(words, "  longest: 3", "  longest: 3\n  search: {pages: 8, of: [a, b]}\n  empty: {}")
    includes = "".join(
        f"    - group_id: {group}\n      artifact_id: words\n      version: {SNAPSHOT}\n"
        f"      config: {{search: {{pages: {pages}, of: [c]}}}}\n"
        for group, pages in (("org.bob", 1), ("ORG.ada", 3))
    )
    outer = words.work / "outer.yaml"
    outer.write_text(f"config:\n  plugins:\n{includes}")
    shown = component(words, "show", "words", "--within", "outer.yaml", "--json")
    assert shown.returncode == 0, shown.stderr
    own = "words/.config/config.yaml, line "
    rows = {row["key"]: (row["value"], row["from"].rstrip("0123456789")) for row in json.loads(shown.stdout)["config"]}
    assert rows == {
        "longest": (3, own),
        "search.pages": (3, "outer.yaml, line "),
        "search.of": (["c"], "outer.yaml, line "),
        "empty": ({}, own),
    }
    assert (
        "search.pages  3      outer.yaml, line 10\n"
        in component(words, "show", "words", "--within", "outer.yaml").stdout
    )
    for path, said in (("words", "does not include org.ada:words"), ("nowhere.yaml", "there is nothing at")):
        refused = component(words, "show", "words", "--within", path)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_faults_are_told_with_their_lines(words: Place):
    replaced(words, "type: plugin", "type: 3")
    done = component(words, "check", "words", "words/.config")
    assert done.returncode == 1
    assert "words/.config/config.yaml:5: type: expected text, not '3'" in done.stdout
    assert done.stdout.count("config.yaml:5:") == 1
    done = component(words, "install", ".")
    assert (done.returncode, done.stdout) == (1, "")
    assert "config.yaml:5: type: expected text" in done.stderr
    assert not repository(words).exists()
    assert component(words, "show", "words").returncode == 1


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        (
            "package: words",
            "package: wrods",
            0,
            "warning: setup.package: 'wrods' is not the package in this folder, 'words'",
        ),
        (
            "type: plugin",
            "type: plugn",
            0,
            "config.yaml:5: warning: type: 'plugn' is none that ConCopilot knows; did you mean",
        ),
        ("title: words", "title: words\n  prompt_file_name: p.txt", 1, "no such file in words/.config; write it"),
    ],
)
def test_slips_are_told_by_check(words: Place, old, new, code, said):
    replaced(words, old, new)
    done = component(words, "check", "words")
    assert (done.returncode, said in " ".join(done.stdout.split())) == (code, True), done.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            b"from .words import Words\n__all__ = ['constructor']\n",
            "words/__init__.py: there is no function `constructor`",
        ),
        (b"\n\ndef constructor(:\n", "words/__init__.py:3: this is no Python: invalid syntax"),
        (b"x = '\0'\n", "cannot contain null bytes"),
        (b"(" * 5000, "words/__init__.py"),
        (b"from .words import *\n", "nothing is wrong"),
        (b"from .words import Words as constructor\n", "nothing is wrong"),
        (b"if True:\n    constructor = lambda config: None\n", "nothing is wrong"),
    ],
)
def test_code_that_can_make_nothing_is_told_by_check(words: Place, source, said):
    (words.work / "words" / "__init__.py").write_bytes(source)
    done = component(words, "check", "words")
    assert (done.returncode, said in done.stdout) == ("nothing" not in said, True), done.stdout


def used(place: Place, use: str) -> "subprocess.CompletedProcess[str]":
    """A run of a profile that uses these components, whose model calls `words count_words`."""
    file = place.home / "config" / "profiles.yaml"
    file.parent.mkdir(exist_ok=True)
    model = place.script({"calls": [{"tool": "words_count_words", "arguments": {"text": "a b"}}]}, "done")
    file.write_text(
        f"mine:\n  processor: {model}\n  toolkits:\n    - name: components\n      config:\n        use: {use}\n"
    )
    return place.run("run", "--profile", "mine", "--sandbox", "full", "count", env={"HOME": str(place.home)})


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("[org.ada:words:1.0]", "line 6: use: expected a mapping with group_id, artifact_id and version, or path, not"),
        (
            "[{path: wrods}]",
            "line 6: wrods: there is no component at this path; give the folder with its .config/config.yaml",
        ),
        ("[{path: .}]", "line 6: .: there is no component at this path"),
        ("[{path: ~nobodyx/words}]", "line 6: ~nobodyx/words: there is no component at this path"),
        ("[{path: words}, {path: wards}]", "both have the tool 'words_0_count_words'; give one of them a name"),
        ("[{path: faulty}]", "faulty: faulty/.config/config.yaml:3: version: YAML reads 1.0 as a number"),
        ("[{path: silent}]", "words: prompt_file_name names 'p.txt', and there is no such file in"),
    ],
)
def test_invalid_uses_in_a_profile_are_reported_before_the_start(words: Place, use, said):
    text = (words.work / "words/.config/config.yaml").read_text()
    others = {
        "wards": ("artifact_id: words", "artifact_id: wards"),
        "faulty": (f'version: "{SNAPSHOT}"', "version: 1.0"),
        "silent": ("title: words", "title: words\n  prompt_file_name: p.txt"),
    }
    for name, (old, new) in others.items():
        assert old in text
        (words.work / name / ".config").mkdir(parents=True)
        (words.work / name / ".config/config.yaml").write_text(text.replace(old, new))
    done = used(words, use)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("path", ["words", "words/.config", "words/.config/config.yaml"])
def test_a_component_is_used_by_any_path_to_it(words: Place, path):
    done = used(words, f"[{{path: {path}}}]")
    assert (done.returncode, '"count": 2' in done.stderr) == (0, True), done.stderr


def test_a_package_that_is_nowhere_is_told_with_what_to_do(words: Place):
    replaced(words, "package: words", "package: nowhere.words")
    done = component(words, "build", "words", "--skip-setup", "--sandbox", "full")
    assert done.returncode == 1
    assert "its `setup.package` 'nowhere.words' is nowhere: pip brings it if" in done.stderr
    replaced(words, "package: nowhere.words", "package: words")
    code = words.work / "words" / "words.py"
    code.write_text(f"import nowhere_at_all\n{code.read_text()}")
    done = component(words, "build", "words", "--skip-setup", "--sandbox", "full")
    assert "No module named 'nowhere_at_all'; if pip brings it, name it in `setup.pip` of config.yaml" in done.stderr
    assert "words/words.py:1 in <module>" in done.stderr
    assert "importlib" not in done.stderr


@pytest.mark.parametrize(("key", "code"), [("\x03", 130), ("\x04", 0)])
def test_ctrl_c_and_ctrl_d_end_a_copilot(words: Place, open_screen, key, code):
    component(words, "new", "copilot", "talk")
    assert component(words, "install", "talk", "talk_interactor").returncode == 0
    how = ("--skip-setup", "--sandbox", "full")
    terminal = open_screen("component", "run", "talk", *how, HOME=str(words.home))
    terminal.see("What can I do for you?")
    terminal.see("\n>")
    terminal.type(key)
    assert terminal.wait_exit() == code
    assert "stopping" not in terminal.rows[-1]
    assert b"\n" in terminal.raw.rpartition(b"> ")[2]


def test_no_secret_is_shown(words: Place):
    replaced(words, "  longest: 3", '  api_key: sesame\n  servers: [{password: sesame, max_tokens: 17}]\n  x: "\\e[1m"')
    shown = component(words, "show", "words").stdout + component(words, "show", "words", "--json").stdout
    assert "sesame" not in shown
    assert "\x1b" not in shown
    assert shown.count("17") == 2


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("show nowhere", 2, "there is nothing at nowhere; give a component's folder"),
        ("show a:b", 2, "names no component"),
        ("show org.example:none:1.0 --settings nowhere.yaml", 2, "there is no file nowhere.yaml"),
        ("install words none", 2, "there is nothing at none"),
        ("new plugin words", 2, "words is there already"),
        ("new plugn x", 2, "did you mean 'plugin'"),
        ("deploy words", 2, "captcha"),
        ("deploy words --to ftp://x", 2, "reached by http:"),
        ("deploy words --to there --repo-user-name ada", 2, "a user name without a password"),
    ],
)
def test_errors_are_one_line(words: Place, line, code, said):
    done = component(words, *line.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not repository(words).exists()


def test_deployed_to_a_server_and_fetched_by_another_person(words: Place, tmp_path):
    coordinates = f"org.ada:words:{SNAPSHOT}"
    with component_server(tmp_path / "served", user=("ada", "sesame")) as server:
        words_of = ("deploy", "words", "--to", server.url, "--repo-user-name", "ada")
        done = component(words, *words_of, CONPACK_REPO_USER_PWD="sesame")
        assert done.returncode == 0, done.stderr
        report = f"{coordinates} deployed to {server.url}: 1 file, not signed, as no passphrase was given\n"
        assert done.stdout.endswith(report)
        denied = component(words, *words_of, "--repo-user-pwd", "open")
        assert (denied.returncode, "are not accepted" in denied.stderr) == (1, True)
        other = Place(tmp_path / "other", words.work)
        other.home.mkdir()
        settings = tmp_path / "settings.yaml"
        settings.write_text(f"repos:\n- url: {server.url.replace('http://', 'http://ada:sesame@')}\n")
        done = component(other, "fetch", coordinates, "--settings", str(settings))
        folder = repository(other) / "org" / "ada" / "words" / SNAPSHOT
        assert (done.returncode, done.stdout) == (0, f"{folder}\n"), done.stderr
        assert done.stderr == f"{coordinates} fetched from {server.url}\n"
        third = Place(tmp_path / "third", words.work)
        third.home.mkdir()
        done = component(third, "install", coordinates, "--settings", str(settings))
        assert (done.returncode, "fetched from" in done.stderr) == (0, True), done.stderr
        assert (repository(third) / "org" / "ada" / "words" / SNAPSHOT / "__COMPLETED").exists()
    done = component(other, "show", coordinates, "--settings", str(settings))
    assert done.returncode == 0  # the server is gone, and not needed
    done = component(other, "fetch", coordinates, "--anew", "--settings", str(settings))
    assert (done.returncode, "sesame" in done.stderr) == (1, False)


def test_conpack_installs_and_deploys_as_scripts_know_it(words: Place, tmp_path):
    replaced(words, SNAPSHOT, "1.0")
    component(words, "new", "storage", "more", "--group-id", "org.ada")
    share = tmp_path / "share"
    share.mkdir()
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"local_repo_path: {tmp_path / 'mine'}\nrepos: [{{url: {share}}}]\n")
    flags = (f"--settings={settings}", "--skip-setup", "--add-current-folder-to-path")
    nothing = conpack(words, "install", *flags)
    assert (nothing.returncode, "--recursive" in nothing.stderr) == (2, True)
    done = conpack(words, *flags, " INSTALL ", "--recursive")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [f"org.ada:more:{SNAPSHOT}", "org.ada:words:1.0"]
    done = conpack(words, "deploy", *flags, "--src-folder=words")
    assert done.returncode == 0, done.stderr
    assert (share / "releases/org/ada/words/1.0/words-1.0-config.yaml.sha256").is_file()
    again = conpack(words, "deploy", *flags, "--src-folder", "words")
    assert (again.returncode, "a release is never replaced" in again.stderr) == (2, True)


def test_a_passphrase_from_a_terminal_or_the_environment_signs(words: Place, tmp_path, open_screen):
    (tmp_path / "share").mkdir()
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"repos: [{{url: {tmp_path / 'share'}}}]\n")
    signature = tmp_path / f"share/snapshots/org/ada/words/{SNAPSHOT}/words-{SNAPSHOT}-config.yaml.asc"
    deploy = ("deploy", f"--settings={settings}", "--src-folder=words")
    with secret_key("open sesame") as home:
        wrong = conpack(words, *deploy, f"--gnupg-home={home}", CONPACK_GPG_PASSPHRASE="close sesame")
        assert (wrong.returncode, "signing failed: Bad passphrase" in wrong.stderr) == (1, True), wrong.stderr
        done = conpack(words, *deploy, f"--gnupg-home={home}", CONPACK_GPG_PASSPHRASE="open sesame")
        assert (done.returncode, done.stdout.endswith("1 file, signed\n")) == (0, True), done.stderr
        assert signature.is_file()
        signature.unlink()
        more = ("--settings", str(settings), "--gnupg-home", str(home))
        terminal = open_screen("component", "deploy", "words", *more, HOME=str(words.home), columns=200)
        terminal.see("passphrase of your GPG key")
        terminal.type("open sesame\n")
        terminal.see("signed")
        assert terminal.wait_exit() == 0
        assert "sesame" not in terminal.text
        assert signature.is_file()
    conpack(words, *deploy)
    assert not signature.exists()  # a deployment replaces all of the former one


def test_conpack_tells_what_it_takes(place: Place):
    flags = (
        "settings working-directory skip-setup pip-params src-folder config-file group-id artifact-id version "
        "recursive add-current-folder-to-path add-working-directory-to-path add-src-folder-to-path repo-user-name "
        "repo-user-pwd gpg-passphrase gnupg-home help-cmd"
    )
    every = conpack(place)
    assert every.returncode == 0
    assert [flag for flag in flags.split() if f"--{flag}" not in every.stdout] == []
    assert conpack(place, "help").stdout == conpack(place, "--help").stdout == every.stdout
    of_install = conpack(place, "install", "--help-cmd").stdout
    assert of_install.startswith("usage: conpack install")
    assert "--group-id" not in of_install
    assert conpack(place, "help", "install").stdout == of_install


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("instal", "did you mean 'install'"),
        ("install --recursve", "unknown argument '--recursve'; did you mean '--recursive'"),
        ("run --group-id=org.ada --version=1", "coordinates are three: give --artifact-id, too"),
        ("build", "there is no component in ."),
        ("build --config-file nowhere.yaml", "there is no file nowhere.yaml"),
        ("install --settings", "argument --settings: expected one argument; `conpack help` tells"),
        ("help instal", "unknown command 'instal'; did you mean 'install'"),
        ("deploy --repo-user-pwd=x --src-folder=none", "there is nothing at none"),
    ],
)
def test_conpack_refuses_in_one_line(place: Place, line, said):
    done = conpack(place, *line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_library_that_is_missing_is_told_in_one_line(place: Place):
    script = (
        "import sys; sys.modules['jsonschema'] = None\nfrom goose_like_toolkits.components.conpack import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "install"], cwd=place.work, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "goose-like: components need jsonschema, which is not installed: pip install 'goose-like[components]'\n"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("list",), ("new", "plugin", "other")])
def test_a_full_disk_is_told_in_one_sentence(place: Place, words, unbuffered):
    with open("/dev/full", "w") as full:
        env = {"HOME": str(place.home), "PYTHONUNBUFFERED": unbuffered}
        process = place.start("component", *words, env=env, stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err.splitlines()[-1].startswith("goose-like: No space left on device; ")) == (1, True)
    assert err.count("No space") == 1
    assert "Traceback" not in err
