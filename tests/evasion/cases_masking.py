"""Keys that a command prints: none of them may reach the model, a file of the session or the screen."""

from tests.evasion.case import Call, Case

# Each secret is put together, so that no scanner takes this file for a leak.
_SECRETS = {
    "OpenAI key": "sk-" + "proj-a1B2c3D4e5F6g7H8i9J0k1L2",
    "Anthropic key": "sk-" + "ant-api03-" + "x1Y2" * 10,
    "GitHub token": "gh" + "p_" + "a1B2" * 9,
    "fine-grained GitHub token": "github" + "_pat_" + "11ABCDEFG0" * 6,
    "GitLab token": "glp" + "at-" + "a1B2" * 5,
    "AWS key": "AK" + "IAIOSFODNN7EXAMPLE",
    "Slack token": "xo" + "xb-123456789012-abcdefABCDEF",
    "Google key": "AI" + "za" + "Sy0" * 11 + "ab",
    "npm token": "np" + "m_" + "a1B2" * 9,
    "web token": "ey" + "J" + "a1" * 10 + ".eyJ" + "b2" * 15 + "." + "c3" * 20,
    "Docker token": "dckr" + "_pat_" + "a1B2" * 7,
    "SendGrid key": "SG" + "." + "aB3_" * 5 + "aB" + "." + "xY9-" * 10 + "xyz",
    "DigitalOcean token": "dop" + "_v1_" + "0a1b" * 16,
    "Vault token": "hv" + "s." + "CAESI" * 6,
    "Shopify token": "shp" + "at_" + "0a1b" * 8,
    "Linear key": "lin" + "_api_" + "a1B2" * 10,
    "known value": "correct horse 1 battery",
}
_KEY_LINE = "MIIEpAIBAAKCAQEA/+xy" * 3
_PRIVATE_KEY = (
    "-----BEGIN RSA PRIVATE " + "KEY-----\\n" + f"{_KEY_LINE}\\n" * 9 + "-----END RSA PRIVATE " + "KEY-----\\n"
)
_KEY_READERS = {
    "cat": "cat key",
    "numbered by cat": "cat -n key",
    "numbered by nl": "nl key",
    "numbered by grep": "grep -n '' key",
    "named by grep": "grep -rn '' key /dev/null",
    "indented": "sed 's/^/    /' key",
    "indented by tabs": "sed 's/^/\\t\\t/' key",
    "on one line": "tr '\\n' ' ' < key",
    "without line ends": "tr -d '\\n' < key",
    "as JSON": "python3 -c 'import json; print(json.dumps(open(\"key\").read()))'",
    "as JSON in JSON": "python3 -c 'import json; print(json.dumps(json.dumps(open(\"key\").read())))'",
    "carriage returns": "sed 's/$/\\r/' key",
    "first lines": "head -5 key",
    "first lines, indented": "head -5 key | sed 's/^/    /'",
    "as a diff": "git diff --no-index /dev/null key",
    "quoted": "sed 's/^/> /' key",
    "file tool": (Call("read_file", {"path": "key"}),),
}
_URLS = {
    "https://ann:hunter2@example.org/x": "hunter2",
    "postgres://app:s3cr3t@db:5432/x": "s3cr3t",
    "redis://:p4ssword@cache": "p4ssword",
    "git+https://x-oauth:abc123@h/r.git": "abc123",
}
_READERS = {
    "cat": "cat .env",
    "in pieces": "python3 -uc \"import time; [(print(c, end=''), time.sleep(0.02)) for c in open('.env').read()]\"",
    "long output": "cat .env; seq 30000; cat .env",
    "grep": "grep -rn KEY .env",
    "error": "cat .env >&2; exit 3",
    "file tool": (Call("read_file", {"path": ".env"}),),
    "background": "(cat .env; sleep 0.1; cat .env) & wait",
    "carriage returns": "printf 'a\\r'; cat .env; printf '\\rb\\n'",
}
# Undo keeps the files themselves, in a folder that no command can read.
_LEAKED = (
    "printf %s '{0}' > \"$HOME/.wanted\"; "
    'grep -rqF -f "$HOME/.wanted" "$SCREEN" "$EVENTS" "$OUTPUT" $HOME/.local/state/goose-like/sessions/*/outputs'
)

_VARIABLES = {"DB_PASSWORD": _SECRETS["known value"]}


def _plant(secret: str) -> str:
    return f"echo 'KEY={secret}' > .env"


CASES = [
    *(
        Case(f"{kind}: {name}", reader, _LEAKED.format(secret), setup=_plant(secret), variables=_VARIABLES)
        for kind, secret in _SECRETS.items()
        for name, reader in _READERS.items()
        if kind in ("OpenAI key", "known value") or name == "cat"
    ),
    *(
        Case(f"private key: {name}", reader, _LEAKED.format(_KEY_LINE[:40]), setup=f"printf -- '{_PRIVATE_KEY}' > key")
        for name, reader in _KEY_READERS.items()
    ),
    *(
        Case(f"password in {url.partition(':')[0]} URL: {name}", reader, _LEAKED.format(password), setup=f"echo 'KEY={url}' > .env")
        for url, password in _URLS.items()
        for name, reader in (("cat", "cat .env"), ("error", "cat .env >&2; exit 3"))
    ),
    *(
        Case(
            f"{kind} written back: {name}",
            ("cat .env", call),
            'grep -q "masked" .env *.sh 2>/dev/null',
            setup=_plant(secret),
            variables=_VARIABLES,
        )
        for kind, secret, mask in (
            ("GitHub token", _SECRETS["GitHub token"], "[masked:github-token]"),
            ("known value", _SECRETS["known value"], "[masked:DB_PASSWORD]"),
        )
        for name, call in {
            "write_file": Call("write_file", {"path": ".env", "content": f"KEY={mask}\nB=1\n"}),
            "patch_file": Call("patch_file", {"path": ".env", "patches": [{"before": "KEY", "after": f"K='{mask}'\nKEY"}]}),
            "shell": f"printf '%s' 'KEY={mask}' > x.sh",
        }.items()
    ),
    *(
        Case(f"{kind} in an answer", "true", _LEAKED.format(secret), says=f"It is {secret}.", variables=_VARIABLES)
        for kind, secret in _SECRETS.items()
    ),
]  # fmt: skip
