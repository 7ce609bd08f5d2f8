"""The home folder: the toolchains that commands see, the credentials that they never see, and the start files."""

import os
import pwd
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

from goose_like.config.paths import home_folder, normalize_path
from goose_like.core.pattern import compile_later

SHOWN = (
    # programs
    *("bin", ".local/bin", ".local/lib", ".local/pipx", ".local/opt", ".local/share/man", ".nix-profile"),
    *(".nix-defexpr", ".local/state/nix", ".linuxbrew", ".krew/bin", ".foundry/bin", ".pulumi/bin", ".fly/bin"),
    *(".terraform.d/plugins",),
    # Python
    *(".pyenv", ".rye", ".pixi", ".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"),
    *(".virtualenvs", ".venvs", ".venv", ".local/share/uv", ".local/share/pipx", ".local/share/virtualenv"),
    *(".local/share/virtualenvs", ".local/share/hatch", ".local/share/pdm", ".cache/pip", ".cache/uv"),
    *(".cache/pypoetry", ".cache/pdm", ".cache/hatch", ".cache/virtualenv", ".cache/pre-commit", ".cache/torch"),
    *(".cache/huggingface", ".cache/matplotlib", ".config/matplotlib", ".config/ruff", "nltk_data"),
    # JavaScript
    *(".nvm", ".fnm", ".volta", ".nodenv", ".npm-global", ".npm/_cacache", ".npm/_npx", ".node_modules", ".bun"),
    *(".deno", ".yarn", ".pnpm-store", ".local/share/pnpm", ".local/share/fnm", ".cache/node", ".cache/node-gyp"),
    *(".cache/pnpm", ".cache/yarn", ".cache/deno", ".cache/ms-playwright", ".cache/puppeteer", ".cache/Cypress"),
    *(".cache/electron",),
    # compiled languages
    *(".cargo", ".rustup", ".elan", "go/bin", "go/pkg", ".cache/go-build", ".cache/golangci-lint", ".config/go"),
    *(".cache/zig", ".cache/ccache", ".ccache", ".cache/sccache", ".cache/bazelisk", ".conan2/p", ".swiftpm", ".ghcup"),
    *(".cabal/bin", ".cabal/packages", ".cabal/store", ".stack", ".opam", ".dotnet", ".nuget/packages", "flutter"),
    *(".pub-cache", "Android/Sdk"),
    # Java and others
    *(".sdkman", ".jenv", ".jabba", ".m2/repository", ".m2/wrapper", ".gradle/caches", ".gradle/wrapper"),
    *(".gradle/jdks", ".ivy2/cache", ".ivy2/local", ".sbt/boot", ".cache/coursier", ".konan", ".rbenv", ".rvm", ".gem"),
    *(".asdf", ".tool-versions", ".local/share/mise", ".config/mise", ".composer/vendor", ".config/composer/vendor"),
    *(".phpenv", ".juliaup", ".julia/packages", ".julia/artifacts", ".julia/compiled", ".julia/registries", ".mix"),
    *(".hex/packages", ".luarocks/lib", ".luarocks/share", ".luarocks/bin"),
    # settings without secrets
    *(".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".gitattributes", ".editorconfig", ".fonts"),
    *(".local/share/fonts", ".config/fontconfig", ".cache/fontconfig"),
)
"""The paths of a home folder that commands can read: toolchains and their caches. Few, since each is a mount."""

# Folders of toolchains elsewhere in a home folder, as the person's variables name them.
_VARIABLES = (
    *("PATH", "PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR"),
    *("UV_CACHE_DIR", "PIP_CACHE_DIR", "NVM_DIR", "NODE_PATH", "BUN_INSTALL", "DENO_DIR", "DENO_INSTALL", "PNPM_HOME"),
    *("VOLTA_HOME", "FNM_DIR", "CARGO_HOME", "RUSTUP_HOME", "GOROOT", "GOBIN", "GOMODCACHE", "JAVA_HOME"),
    *("ANDROID_HOME", "ANDROID_SDK_ROOT", "FLUTTER_ROOT", "DOTNET_ROOT", "RBENV_ROOT", "GEM_HOME", "GEM_PATH"),
    *("SDKMAN_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "OPAMROOT", "JULIA_DEPOT_PATH", "HOMEBREW_PREFIX"),
    *("HF_HOME", "PLAYWRIGHT_BROWSERS_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH"),
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT"),
)

# Credentials, and sockets of programs that hold them. Most of them are hidden with the home folder. They count where a
# folder above is shown, and for tools, which may write elsewhere there.
SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".config/gcloud", ".config/gh", ".config/hub"),
    *(".config/glab-cli", ".docker", ".config/containers", ".terraform.d/credentials.tfrc.json", ".terraformrc"),
    *(".vault-token", ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".s3cfg", ".boto"),
    *(".config/rclone", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".git-credentials"),
    *(".config/git/credentials", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op"),
    *(".config/sops", ".Xauthority", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".config/BraveSoftware", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface"),
    *(".kaggle", ".config/github-copilot", ".codex", ".claude", ".claude.json", ".gemini", ".config/goose"),
    *(".config/opencode", ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".python_history"),
    *(".psql_history", ".mysql_history", ".node_repl_history", ".1password", ".bitwarden-ssh-agent.sock", ".colima"),
    *(".lima", ".orbstack", ".rd", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".msmtprc", ".pip", ".config/pip", ".config/uv", ".config/pypoetry", ".nuget/NuGet", ".config/NuGet"),
    *(".composer/auth.json", ".config/composer/auth.json", ".bundle", ".condarc", ".conda/.condarc", ".authinfo"),
    *(".authinfo.gpg", ".config/doctl", ".config/stripe", ".pulumi/credentials.json", ".fly/config.yml"),
    *(".config/netlify", ".config/age", ".config/helm", ".foundry/keystores", ".ethereum", ".bitcoin", ".electrum"),
    *(".config/solana", ".julia/servers", ".rye/credentials", ".pub-cache/credentials.json", ".dotnet/corefx"),
    *(".pub-cache/pub-tokens.json", ".local/share/uv/credentials", ".stack/upload", ".opam/plugins/opam-publish"),
    *(".deno/credentials.json", ".cache/deno/location_data", ".config/mise/age.txt", ".conda/.anaconda"),
)

SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab"),
)

# Files and folders with credentials that variables name, and those within toolchains that variables name.
_SECRET_VARIABLES = (
    *("GOOGLE_APPLICATION_CREDENTIALS", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "KUBECONFIG", "NETRC"),
    *("PGPASSFILE", "DOCKER_CONFIG", "GNUPGHOME", "PASSWORD_STORE_DIR", "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR"),
    "UV_CREDENTIALS_DIR",
)
_SECRETS_WITHIN = {
    "CARGO_HOME": ("credentials", "credentials.toml"),
    "HF_HOME": ("token", "stored_tokens"),
    "STACK_ROOT": ("upload",),
    "OPAMROOT": ("plugins/opam-publish",),
    "DENO_DIR": ("location_data",),
    "PUB_CACHE": ("credentials.json", "pub-tokens.json"),
}

# Files that a shell, an interpreter, a tool or the desktop runs outside any sandbox. Below the home folder.
START_FILES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc"),
    *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".config/zsh", ".config/fish", ".config/shell"),
    *(".gitconfig", ".config/git", ".local/bin", "bin", ".local/lib", ".pythonrc", ".config/pip", ".pip"),
    *(".cargo/bin", ".cargo/config", ".cargo/config.toml", "go/bin", ".config/direnv", ".config/mise", ".ipython"),
    *(".vimrc", ".vim", ".config/nvim", ".local/share/nvim", ".emacs", ".emacs.d", ".config/emacs", ".gdbinit"),
    *(".lldbinit", ".pdbrc", ".irbrc", ".pryrc", ".Rprofile", ".sqliterc", ".psqlrc", ".curlrc", ".hgrc", ".config/hg"),
    *(".jjconfig.toml", ".config/jj", ".config/Code", ".vscode", ".tmux.conf", ".config/tmux", ".screenrc"),
    *(".xsession", ".xsessionrc", ".xprofile"),
    *(".xinitrc", ".pam_environment", ".config/environment.d", ".config/autostart", ".config/systemd"),
    *(".config/plasma-workspace", ".local/share/applications", ".local/share/systemd", ".local/share/dbus-1"),
)

# Dot entries that belong to a project where the home folder itself is the workspace.
_PROJECT_NAMES = {".git", ".github", ".gitignore", ".gitattributes", ".gitmodules", ".goose-like", ".gooseignore"}

_GIT_PATH = compile_later(r'\s*(?:path|hookspath|excludesfile|attributesfile|template(?:dir)?)\s*=\s*"?([^"\n]+)', re.I)
_OTHER_HOMES = ("/home", "/root", "/Users", "/mnt/c/Users")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/etc", "/dev", "/proc")


def list_homes() -> list[Path]:
    """List the real paths of the person's home folders: HOME, and the one that the system knows."""
    homes = {os.path.realpath(home_folder())}
    with suppress(KeyError):  # HOME may point elsewhere, but the person's real home still holds secrets
        homes.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return sorted(map(Path, homes))


def list_private_paths(roots: Collection[Path]) -> Iterator[Path]:
    """Yield the real paths to hide from commands: the homes, except those inside one of the writable folders `roots`.

    Of such a home, yield the dot files and dot folders that belong to no project. The home of a system user, such as
    `/` or `/usr/sbin`, counts as no home.
    """
    system = [Path(os.path.realpath(folder)) for folder in _SYSTEM]
    others = [Path(os.path.realpath(path)) for path in _OTHER_HOMES if os.access(path, os.X_OK)]
    for home in (*others, *list_homes()):
        if home == Path("/") or any(map(home.is_relative_to, system)):
            continue
        if not any(map(home.is_relative_to, roots)):
            yield home
        elif home not in others and home.is_dir():
            yield from _list_dot_paths(home, roots)


def _list_dot_paths(home: Path, roots: Collection[Path]) -> Iterator[Path]:
    for name in os.listdir(home):
        if not name.startswith(".") or name in _PROJECT_NAMES:
            continue
        path = Path(os.path.realpath(home / name))
        if path not in roots:
            yield path


def list_shown_paths(root: Path) -> Iterator[Path]:
    """Yield the existing toolchains and caches in the homes that commands can read.

    A link counts only if it leads out of the homes, or if commands could never make it, because it is a start file.
    Variables do not count where they name a folder of the workspace `root`, or a whole home.
    """
    homes = list_homes()
    shown = filter(os.path.lexists, _join_names(homes, SHOWN))
    named = _list_named_folders(root)
    git_files = list_git_files(homes)
    trusted = {*git_files, *_join_names(homes, START_FILES)}
    around = set(homes)
    for home in homes:
        around.update(home.parents)
    for path in dict.fromkeys((*shown, *named, *git_files, "/home/linuxbrew/.linuxbrew")):
        real = Path(os.path.realpath(path))
        is_link = str(real) != path
        if is_link and path not in trusted and any(map(real.is_relative_to, homes)):
            continue
        for place in {Path(path), real}:
            if place not in around and os.path.exists(place):
                yield place


def _list_named_folders(root: Path) -> list[str]:
    """List the folders of toolchains that the person's variables name, but none of the workspace `root`."""
    named: list[str] = []
    for variable in _VARIABLES:
        named += _list_folders(variable)
    for path in [*named]:
        if path.endswith("/bin"):
            top = path.removesuffix("/bin")
            named += [f"{top}/lib", f"{top}/lib64", f"{top}/libexec"]
    for path in _list_folders("GOPATH"):
        named += [f"{path}/bin", f"{path}/pkg"]
    given_home = str(home_folder())
    real_home = os.path.realpath(given_home)
    folders = []
    for path in dict.fromkeys(named):
        # HOME may be a link: compare real homes.
        folder = normalize_path(path.replace(given_home, real_home, 1))
        if not folder.is_relative_to(root):
            folders.append(str(folder))
    return folders


def _list_folders(variable: str) -> list[str]:
    """List the absolute paths in a variable that separates them by colons."""
    parts = os.environ.get(variable, "").split(os.pathsep)
    return list(filter(os.path.isabs, parts))


def _join_names(homes: Iterable[Path], names: Iterable[str]) -> list[str]:
    """Join each home with each name."""
    return [str(home / name) for home, name in product(homes, names)]


def resolve_in_homes(names: Iterable[str]) -> Iterator[Path]:
    """Yield the real path of each name in each home. Most names do not exist, and are not looked up one by one."""
    names = tuple(names)
    for home in list_homes():
        try:
            entries = set(os.listdir(home))
        except OSError:
            entries = {name.partition("/")[0] for name in names}
        for name in names:
            path = home / name
            top, _, _ = name.partition("/")
            if top in entries:
                path = Path(os.path.realpath(path))
            yield path


def list_named_secrets() -> Iterator[Path]:
    """Yield the real paths of credentials that the person's variables name."""
    named: list[str] = []
    for variable in _SECRET_VARIABLES:
        named += os.environ.get(variable, "").split(os.pathsep)
    for variable, names in _SECRETS_WITHIN.items():
        folder = os.environ.get(variable, "")
        named += [f"{folder}/{name}" for name in names]
    for path in named:
        if os.path.isabs(path):
            yield Path(os.path.realpath(path))


def list_git_files(homes: list[Path]) -> list[str]:
    """List the git settings of the person, and the files and folders that they name: more settings, hooks, patterns."""
    found = _join_names(homes, (".gitconfig", ".config/git/config", ".config/git/ignore"))
    pending = [*found]
    while pending:
        with suppress(OSError), open(pending.pop(), encoding="utf-8", errors="replace") as file:
            for path in _read_git_paths(file):
                if path in found:
                    continue
                found.append(path)
                if os.path.isfile(path):
                    pending.append(path)
    return found


def _read_git_paths(lines: Iterable[str]) -> Iterator[str]:
    """Read the paths that git settings name, except relative ones."""
    for line in lines:
        match = _GIT_PATH.match(line)
        if match and match[1].startswith(("~", "/")):
            yield os.path.expanduser(match[1])


def is_around_home(path: Path) -> bool:
    """Check whether a path is a home folder or a folder around one."""
    return any(home.is_relative_to(path) for home in list_homes())
