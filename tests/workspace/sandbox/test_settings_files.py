"""Settings of toolchains: commands get them without credentials, and unchanged if there are none."""

import pytest

from goose_like.workspace.sandbox.settings_files import clean_settings

TOKEN = "gh" + "p_" + "A1b2" * 9

KEPT = """[user]
\tname = Ann
\temail = ann@example.org
\tsigningkey = ABCDEF
[alias]
\tst = status
\tgone = "!f() { \\
\t\tgit branch -d $1; \\
\t}; f"
[url "git@github.com:"]
\tinsteadOf = https://github.com/
[credential]
\thelper = cache
[http]
\tsslVerify = true
"""

SECRETS = {
    "extraheader": "[http]\n\textraheader = AUTHORIZATION: basic SECRET\n",
    "extraheader of a host": '[http "https://x.org/"]\n\tExtraHeader="X-Key: SECRET"\n',
    "behind the heading": '[http "https://x.org/"] extraheader = SECRET\n',
    "on the next line": '[http]\n\textraheader = \\\n"AUTHORIZATION: basic SECRET"\n',
    "user in the heading": '[url "https://SECRET@github.com/"]\n\tinsteadOf = https://github.com/\n',
    "password in the heading": '[url "https://oauth2:SECRET@gitlab.com/"]\n\tinsteadOf = x:\n',
    "proxy": "[http]\n\tproxy = http://me:SECRET@proxy:3128\n",
    "proxy without a scheme": '[http]\nproxy = "me:SECRET@proxy:3128"\n',
    "helper": '[credential]\n\thelper = "!f() { echo username=x; echo password=SECRET; }; f"\n',
    "curl in an alias": "[alias]\n\tci = \"!curl -H 'Authorization: Bearer SECRET' https://ci.org\"\n",
    "mail": "[sendemail]\n\tsmtpPass = SECRET\n",
    "known format": f"[x]\n\ty = {TOKEN}\n",
    "known format in a heading": f'[x "{TOKEN}"]\n\ty = 1\n',
    "cargo": '[registry]\ntoken = "SECRET"\n[registries.corp]\nindex = "sparse+https://me:SECRET@corp.org/"\n',
    "cargo in one line": 'registries = { corp = { token = "SECRET" } }\n',
    "pip": "[global]\nindex_url = https://me:SECRET@packages.corp.org/simple\n",
    "npm": "//npm.example.org/:_authToken=SECRET\nregistry=https://npm.example.org/\n",
    "npm, old": "_auth=SECRET\n//r.org/:_password=SECRET\n",
    "conda": "channels:\n  - https://conda.anaconda.org/t/SECRET-xyz/me\n",
    "conda proxy": "proxy_servers:\n  https: https://me:SECRET@proxy:8080\n",
    "go": "GOPROXY=https://me:SECRET@goproxy.org\n",
    "private key": 'key="-----BEGIN PRIVATE KEY-----\\nSECRET"\n',
    "several lines": 'x = """\ntoken = SECRET\n"""\n',
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_credentials_are_removed(text: str) -> None:
    cleaned = clean_settings(f"[first]\n\ta = 1\n{text}[last]\n\tb = 2\n")
    assert "SECRET" not in cleaned
    assert TOKEN not in cleaned
    if text != SECRETS["several lines"]:
        assert cleaned.startswith("[first]\n\ta = 1\n")
        assert cleaned.endswith("[last]\n\tb = 2\n")


def test_other_settings_stay() -> None:
    assert clean_settings(KEPT) == KEPT
    assert clean_settings('[build]\nrustflags = ["-C", "x"]') == '[build]\nrustflags = ["-C", "x"]'


def test_variables_of_mise_are_removed() -> None:
    text = '[tools]\nnode = "22"\n[env]\nMYSTERY = "SECRET"\n[settings]\nx = 1\n'
    assert clean_settings(text) == text
    assert clean_settings(text, has_secret_variables=True) == '[tools]\nnode = "22"\n[settings]\nx = 1\n'


@pytest.mark.parametrize("part", ['"a"', "token", "=a:", "://", "https://", "[", " ", "a.", "\\\n"])
@pytest.mark.parametrize("start", ["", "[", '["'])
def test_no_text_takes_quadratic_time(start: str, part: str) -> None:
    text = start + part * (150_000 // len(part))
    assert len(clean_settings(text)) <= len(text)
