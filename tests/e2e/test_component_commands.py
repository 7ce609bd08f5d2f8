"""`goose-like component` and `conpack` as a person types them: what they print, what they leave, how they end."""

import base64
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml

from tests.e2e.command import Place
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


@pytest.fixture(scope="module")
def new_plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a new plugin `words`."""
    place = Place(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work"))
    done = component(place, "new", "plugin", "words", "--group-id", "org.ada")
    files = ("pyproject.toml", ".config/config.yaml", "__init__.py", "words.py")
    assert done.stdout == "".join(f"wrote words/{file}\n" for file in files), done.stderr
    return place.work / "words"


@pytest.fixture
def words(place: Place, new_plugin: Path) -> Place:
    """A place with a new plugin `words` in it."""
    shutil.copytree(new_plugin, place.work / "words")
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
    assert shown.startswith(f"org.ada:words:{SNAPSHOT}  plugin\n{folder}/words-{SNAPSHOT}-config.yaml\n")
    assert yaml.safe_load(shown.partition("\n\n")[2])["config"]["longest"] == 3
    by_path = component(words, "show", "words/.config/config.yaml")
    assert "command_name: count_words" in by_path.stdout


def test_show_tells_of_the_copy_that_counts_here(words: Place):
    coordinates = f"org.ada:words:{SNAPSHOT}"
    assert component(words, "install", "words").returncode == 0
    built = component(words, "build", coordinates, "--skip-setup", "--sandbox", "full")
    assert built.returncode == 0, built.stderr
    copy = words.work / ".runtime" / "org" / "ada" / "words" / SNAPSHOT / "0" / "config.yaml"
    copy.write_text(copy.read_text().replace("longest: 3", "longest: 5"))
    shown = component(words, "show", coordinates).stdout
    assert (f"\n{copy}\n" in shown, "longest: 5" in shown) == (True, True)
    assert "longest: 3" in component(words, "show", coordinates, "--instance", "other").stdout
    refused = component(words, "show", coordinates, "--instance", "../0")
    assert (refused.returncode, "instance_id" in refused.stderr) == (2, True), refused.stderr


def test_a_plugin_and_a_copilot_work_as_they_are_written(words: Place):
    how = ("--skip-setup", "--sandbox", "full")
    built = component(words, "build", "words", *how)
    assert built.returncode == 0, built.stderr
    assert built.stdout == f"words can be constructed; its configuration is {words.work}/words/.config/config.yaml\n"
    profiles = words.home / "config" / "profiles.yaml"
    profiles.parent.mkdir(exist_ok=True)
    profiles.write_text(f"talk: {{processor: '{words.script('Good day to you.')}', toolkits: []}}\n")
    begun = component(words, "new", "copilot", "talk")
    assert "goose-like component install talk talk_interactor\n" in begun.stderr
    early = component(words, "run", "talk", "--profile", "talk", *how)
    assert early.returncode == 1
    assert f"there is no component org.example:talk-interactor:{SNAPSHOT} here; run:" in early.stderr
    assert component(words, "install", ".").returncode == 0
    env = {"HOME": str(words.home)}
    done = words.run("component", "run", "talk", "--profile", "talk", *how, env=env, input="hello\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "This is Talk. What can I do for you?" in done.stdout
    assert "Good day to you." in done.stdout


def test_faults_are_told_with_their_lines(words: Place):
    replaced(words, "type: plugin", "type: 3")
    done = component(words, "check", "words", "words/.config")
    assert done.returncode == 1
    assert "words/.config/config.yaml:5: type: expected text, not 3" in done.stdout
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
        (
            "title: words",
            "title: words\n  prompt_file_name: p.txt",
            1,
            "no prompt file 'p.txt' in words/.config; write it",
        ),
    ],
)
def test_slips_are_told_by_check(words: Place, old, new, code, said):
    replaced(words, old, new)
    done = component(words, "check", "words")
    assert (done.returncode, said in " ".join(done.stdout.split())) == (code, True), done.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"from .words import Words\n", "words/__init__.py: there is no function `constructor`"),
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
        ("[org.ada:words:1.0]", "line 6: use.0: expected a mapping"),
        (
            "[{path: wrods}]",
            "line 6: wrods: there is no component at this path; give the folder with its .config/config.yaml",
        ),
        ("[{path: .}]", "line 6: .: there is no component at this path"),
        ("[{path: ~nobodyx/words}]", "line 6: ~nobodyx/words: there is no component at this path"),
        ("[{path: words}, {path: wards}]", "both have the tool 'words_0_count_words'; give one of them a name"),
        ("[{path: faulty}]", "faulty: faulty/.config/config.yaml:3: version: YAML reads 1.0 as a number"),
        ("[{path: silent}]", "words: there is no prompt file 'p.txt' in"),
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
    assert "the package 'nowhere.words' of org.ada:words:" in done.stderr
    replaced(words, "package: nowhere.words", "package: words")
    code = words.work / "words" / "words.py"
    code.write_text(f"import nowhere_at_all\n{code.read_text()}")
    done = component(words, "build", "words", "--skip-setup", "--sandbox", "full")
    assert "if pip brings it, name it in `setup.pip` of config.yaml" in done.stderr
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
    shown = component(words, "show", "words").stdout
    assert "sesame" not in shown
    assert "\x1b" not in shown
    assert shown.count("17") == 1


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("show nowhere", 2, "there is nothing at nowhere; give a component's folder"),
        ("show a:b", 2, "names no component"),
        ("show org.example:none:1.0 --settings nowhere.yaml", 2, "there is no file nowhere.yaml"),
        ("install words none", 2, "there is nothing at none"),
        ("new plugin words", 2, "words is there already"),
        ("new plugn x", 2, "choose one of: plugin, resource, llm, interactor, copilot"),
        ("deploy words", 2, "nobody else could run"),
        ("deploy org.a:b:1", 2, "only components of folders can be deployed"),
    ],
)
def test_errors_are_one_line(words: Place, line, code, said):
    done = component(words, *line.split())
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not repository(words).exists()


class ConCopilotServer:
    """A server with ConCopilot's protocol: captcha, key, login, upload and download."""

    def __init__(self) -> None:
        from Crypto.PublicKey import RSA

        self.key = RSA.generate(3072)
        self.uploads: dict[str, dict[str, bytes]] = {}
        self.logins: list[str] = []
        self.is_logged_in = False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name = self.path.rpartition("/")[2]
                found = [files[name] for files in server.uploads.values() if name in files]
                self.reply(found[0] if found else b"GIF89a")

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                self.reply(server.answer(self.path, self.headers.get("content-type", ""), body))

            def reply(self, data: bytes):
                self.send_response(200 if data else 404)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, path: str, kind: str, body: bytes) -> bytes:
        ok = {"status": {"code": 0, "des": ""}}
        if path == "/api/checklogin":
            return json.dumps({"data": 1} if self.is_logged_in else {}).encode()
        if path == "/api/key":
            self.logins.append(parse_qs(body.decode())["b"][0])
            return json.dumps(
                {**ok, "data": base64.encodebytes(self.key.publickey().export_key("DER")).decode()}
            ).encode()
        if path == "/api/login":
            self.is_logged_in = True
            return json.dumps(ok).encode()
        if path == "/api/repo/upload":
            message = message_from_bytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + body)
            parts = [(part.get_filename(), part.get_payload(decode=True)) for part in message.get_payload()]
            text = next(data for name, data in parts if name is None)
            named = json.loads(text)
            coordinates = f"{named['g'].replace('.', '/')}/{named['a']}/{named['v']}"
            prefix = f"{named['a']}-{named['v']}-"
            self.uploads[coordinates] = {f"{prefix}{name}": data for name, data in parts if name}
            return json.dumps(ok).encode()
        coordinates = path.partition("/repository/")[2].partition("/")[2]
        return "".join(f"- {name}\n" for name in self.uploads.get(coordinates, ())).encode()


@pytest.fixture
def server() -> Iterator[ConCopilotServer]:
    made = ConCopilotServer()
    yield made
    made.http.shutdown()


def test_deployed_signed_and_installed_by_another_person(words: Place, tmp_path, server):
    coordinates = f"org.ada:words:{SNAPSHOT}"
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"repos: [{{url: '{server.url}'}}]\n")
    how = ("--settings", str(settings), "--sandbox", "full", "--approval", "yolo")
    refused = component(words, "deploy", "words", *how)
    assert (refused.returncode, "nobody else could run" in refused.stderr) == (2, True), refused.stderr
    replaced(words, "pip: []", "pip: [words]")
    with secret_key("open sesame") as home:
        login = ("--repo-user-name", "ada", "--repo-user-pwd", "sesame", "--gnupg-home", str(home))
        wrong = component(words, "deploy", "words", *how, *login, "--gpg-passphrase", "close sesame")
        assert (wrong.returncode, "GPG does not sign" in wrong.stderr) == (1, True), wrong.stderr
        env = {"HOME": str(words.home), "CONPACK_GPG_PASSPHRASE": "open sesame"}
        done = words.run("component", "deploy", "words", *how, *login, env=env, input="x7k2\n")
    assert (done.returncode, f"{coordinates} deployed, signed" in done.stdout) == (0, True), done.stderr
    assert server.logins == ['{"captcha": "x7k2"}']
    name = f"words-{SNAPSHOT}-config.yaml"
    (files,) = server.uploads.values()
    assert set(files) == {name, f"{name}.asc"}
    assert b"BEGIN PGP SIGNATURE" in files[f"{name}.asc"] or files[f"{name}.asc"]
    other = Place(tmp_path / "other", words.work)
    other.home.mkdir()
    done = component(other, "install", coordinates, *how)
    folder = repository(other) / "org" / "ada" / "words" / SNAPSHOT
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{coordinates} installed in {folder}"), done.stderr
    assert (folder / name).read_bytes() == files[name]


def test_conpack_installs_as_scripts_know_it(words: Place, tmp_path):
    replaced(words, SNAPSHOT, "1.0")
    component(words, "new", "resource", "more", "--group-id", "org.ada")
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"local_repo_path: {tmp_path / 'mine'}\n")
    flags = (f"--settings={settings}", "--skip-setup", "--add-current-folder-to-path")
    nothing = conpack(words, "install", *flags)
    assert (nothing.returncode, "--recursive" in nothing.stderr) == (2, True)
    done = conpack(words, *flags, "install", "--recursive")
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines() if " installed in " in line]
    assert names == [f"org.ada:more:{SNAPSHOT}", "org.ada:words:1.0"]


def test_no_model_is_needed_to_build_a_component(words: Place):
    script = (
        "import sys; sys.modules['xllamacpp'] = None; from goose_like_toolkits.components.conpack import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "build", "--src-folder=words", "--skip-setup", "--sandbox=full"],
        cwd=words.work,
        env=words.env(HOME=str(words.home)) | {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, "words can be constructed" in done.stdout) == (0, True), done.stderr


def test_a_component_without_network_says_how_to_get_it(words: Place):
    code = words.work / "words" / "words.py"
    code.write_text(f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')\n{code.read_text()}")
    done = component(words, "build", "words", "--skip-setup", "--sandbox", "workspace")
    assert (done.returncode, "--sandbox workspace+network" in done.stderr) == (1, True), done.stderr


def test_conpack_shows_its_options(place: Place):
    flags = (
        "settings working-directory skip-setup pip-params src-folder config-file group-id artifact-id version "
        "recursive add-current-folder-to-path add-working-directory-to-path add-src-folder-to-path repo-user-name "
        "repo-user-pwd gpg-passphrase gnupg-home"
    )
    shown = conpack(place, "help", "install").stdout
    assert [flag for flag in flags.split() if f"--{flag}" not in shown] == []
    assert conpack(place, "install", "--help-cmd").stdout == shown
    assert conpack(place, "help").stdout == conpack(place, "--help").stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("instal", "did you mean 'install'"),
        ("install --recursve", "recursve"),
        ("run --group-id=org.ada --version=1", "coordinates are three: give --artifact-id, too"),
        ("build", "there is no component in ."),
        ("build --config-file nowhere.yaml", "there is no file nowhere.yaml"),
        ("deploy --repo-user-pwd=x --src-folder=none", "there is nothing at none"),
    ],
)
def test_conpack_refuses_wrong_lines(place: Place, line, said):
    done = conpack(place, *line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_library_that_is_missing_is_told_in_one_line(place: Place):
    script = (
        "import sys; sys.modules['concopilot'] = None\nfrom goose_like_toolkits.components.conpack import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "install"], cwd=place.work, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "goose-like: components need concopilot, which is not installed: pip install 'goose-like[components]'\n"
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
