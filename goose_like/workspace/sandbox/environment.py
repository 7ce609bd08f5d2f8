"""The environment variables of commands: an allow-list of the person's, set for output without a terminal."""

import os
import shutil
import sys
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from goose_like.config.secrets import is_secret_variable

from .path_rules import Rules
from .settings_files import strip_url_users

# Variables of the system, of toolchains and of development tools that hold no secrets, and no way out of a sandbox.
_PASSED = {
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "HOSTNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP", "CI"),
    *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"),
    *("MANPATH", "INFOPATH", "TERMINFO", "TERMINFO_DIRS", "LOCALE_ARCHIVE", "LOCPATH", "EMAIL", "GOOSE_LIKE_HOME"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY"),
    *("ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("NIX_SSL_CERT_FILE", "GIT_SSL_CAINFO", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
    *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "SOURCE_DATE_EPOCH"),
    *("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYENV_ROOT", "PYENV_VERSION", "GOPATH", "GOROOT", "GOBIN", "GOFLAGS"),
    *("GOPROXY", "GONOPROXY", "GOPRIVATE", "GONOSUMDB", "GOSUMDB", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOTOOLCHAIN"),
    *("GOMODCACHE", "GOCACHE", "GOWORK", "GO111MODULE", "GOENV", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG"),
    *("GOEXPERIMENT", "GOVCS", "JAVA_HOME", "JDK_HOME", "JAVA_OPTS", "JAVA_TOOL_OPTIONS", "MAVEN_HOME", "M2_HOME"),
    *("MAVEN_OPTS", "GRADLE_HOME", "GRADLE_USER_HOME", "GRADLE_OPTS", "KOTLIN_HOME", "SCALA_HOME", "SBT_OPTS"),
    *("ANDROID_HOME", "ANDROID_SDK_ROOT", "FLUTTER_ROOT", "NUGET_PACKAGES", "COMPOSER_HOME", "PERL5LIB", "LUA_PATH"),
    *("LUA_CPATH", "R_HOME", "R_LIBS", "R_LIBS_USER", "RUBYLIB", "RUBYOPT", "RBENV_ROOT", "RBENV_VERSION", "GEM_HOME"),
    *("GEM_PATH", "BUNDLE_PATH", "BUNDLE_GEMFILE", "BUNDLE_WITHOUT", "MIX_ENV", "MIX_HOME", "HEX_HOME", "ERL_LIBS"),
    *("OPAMROOT", "OPAMSWITCH", "CABAL_DIR", "STACK_ROOT", "JULIA_DEPOT_PATH", "CC", "CXX", "CPP", "LD", "AR", "AS"),
    *("NM", "RANLIB", "STRIP", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "LDLIBS", "FC", "FFLAGS", "MAKEFLAGS"),
    *("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "HF_HOME", "HF_HUB_CACHE"),
    *("HF_HUB_OFFLINE", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TRANSFORMERS_OFFLINE", "TORCH_HOME", "MPLBACKEND"),
    *("MPLCONFIGDIR", "PLAYWRIGHT_BROWSERS_PATH", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY"),
    *("NIX_PATH", "NIX_PROFILES", "NIX_LD", "NIX_LD_LIBRARY_PATH", "DJANGO_SETTINGS_MODULE", "FLASK_APP", "FLASK_ENV"),
    *("RAILS_ENV", "RACK_ENV", "APP_ENV", "DEBUG", "CCACHE_DIR", "SCCACHE_DIR", "TF_CPP_MIN_LOG_LEVEL"),
}
# Names that begin so are passed too, unless they name a secret (as in CARGO_REGISTRY_TOKEN).
_PASSED_PREFIXES = (
    *("LC_", "PYTHON", "PIP_", "UV_", "CONDA_", "MAMBA_", "POETRY_", "PDM_", "HATCH_", "PIPX_", "PYTEST_", "TOX_"),
    *("NOX_", "COVERAGE_", "RUFF_", "MYPY", "NODE_", "NVM_", "npm_config_", "NPM_CONFIG_", "YARN_", "PNPM_"),
    *("COREPACK_", "BUN_", "DENO_", "VOLTA_", "FNM_", "ASDF_", "MISE_", "SDKMAN_", "CARGO_", "RUST", "CGO_", "DOTNET_"),
    *("GHCUP_", "CMAKE_", "NINJA_", "MESON_", "PKG_CONFIG_", "CUDA_", "NVIDIA_", "ROCM_"),
    *("HIP_", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "XLA_", "JAX_"),
)
_PASSED_UNCONFINED = {"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "TMUX"}

_NO_EDITOR = "echo 'there is no editor here; give the text on the command line, e.g. git commit -m' >&2; false"

_NON_INTERACTIVE = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    **dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"), "cat"),
    **dict.fromkeys(("EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), _NO_EDITOR),
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_MERGE_AUTOEDIT": "no",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    # `npm test` must not ask for a host only to look for news.
    **dict.fromkeys(("npm_config_update_notifier", "npm_config_fund"), "false"),
    **dict.fromkeys(("NO_UPDATE_NOTIFIER", "DO_NOT_TRACK"), "1"),
    "PYTHONUNBUFFERED": "1",  # the output of a program that runs out of time matters more than its speed
}

# The person's caches are read-only in the sandbox, and these tools fail with a read-only cache.
_CONFINED = {
    **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp"),
    "GOCACHE": "/tmp/.cache/go-build",
    "UV_CACHE_DIR": "/tmp/.cache/uv",
    "npm_config_cache": "/tmp/.cache/npm",
    "PRE_COMMIT_HOME": "/tmp/.cache/pre-commit",
}

# Where the workspace is read-only, tests and checks must not fail for want of a cache or a folder of build results.
_READ_ONLY = {
    "CARGO_TARGET_DIR": "/tmp/.cache/cargo-target",
    "COVERAGE_FILE": "/tmp/.cache/coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/.cache/hypothesis",
    "MYPY_CACHE_DIR": "/tmp/.cache/mypy",
    "PYTHONPYCACHEPREFIX": "/tmp/.cache/pycache",
    "RUFF_CACHE_DIR": "/tmp/.cache/ruff",
}
# pytest has no variable for its cache, and its option for the folder fails where the cache is switched off.
_PYTEST_OPTIONS = "-W ignore::pytest.PytestCacheWarning"


PROXY_PORT = 3128
_PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"
PROXY_VARIABLES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), _PROXY_URL),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY": "1",
}
"""The variables that lead programs of a sandbox without network to the proxy."""


def drop_writable_folders(path: str, rules: Rules) -> str:
    """Drop the folders from a PATH where an earlier command may have put programs."""
    kept = []
    for folder in path.split(os.pathsep):
        if os.path.isabs(folder) and not rules.is_writable(folder):
            kept.append(folder)
    return os.pathsep.join(kept)


def build_environment(
    *, is_confined: bool, is_read_only: bool = False, allowed: Collection[str] = ()
) -> dict[str, str]:
    """Build the variables of a command, with `rg` on the PATH.

    Only variables of the allow-list are passed, without user and password in a URL, and those that `allowed` names. A
    name with `*` passes no variable whose name is that of a secret. With `is_read_only`, commands cannot write in the
    workspace: caches lie in the private /tmp.
    """
    variables = {}
    for name, value in os.environ.items():
        if name in allowed:
            variables[name] = value
        elif _is_passed(name, is_confined, allowed) and not is_secret_variable(name):
            variables[name] = strip_url_users(value)
    variables |= _NON_INTERACTIVE
    if is_confined:
        variables |= _CONFINED
    if is_read_only:
        variables |= _READ_ONLY
        variables["PYTEST_ADDOPTS"] = f"{variables.get('PYTEST_ADDOPTS', '')} {_PYTEST_OPTIONS}".strip()
    path = variables.get("PATH") or os.defpath
    own_folder = str(Path(sys.executable).parent)
    if shutil.which("rg", path=path) is None and shutil.which("rg", path=own_folder):
        path = f"{path}{os.pathsep}{own_folder}"
    return variables | {"PATH": path}


def _is_passed(name: str, is_confined: bool, allowed: Collection[str]) -> bool:
    if name in _PASSED or name.startswith(_PASSED_PREFIXES):
        return True
    if not is_confined and name in _PASSED_UNCONFINED:
        return True
    return any(fnmatchcase(name, pattern) for pattern in allowed)
