"""Tests of Azure without an API key: azure-identity fetches tokens over loopback, as in a container of Azure."""

import json
import os
import time

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.errors import CredentialError
from goose_like.providers.entra import TokenSource
from goose_like.providers.known_models import find_known_model
from goose_like.providers.registry import find_provider_class
from tests.loopback import Asked, Loopback, Response, listed, refusal
from tests.providers.vendors import REQUEST, RESPONSES, get_text, set_keys_only

pytest.importorskip("azure.identity", reason="the extra `azure` is not installed")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)


def build_token(text: str, lifetime_s: int) -> Response:
    """Build the answer of the endpoint of managed identities."""
    end = int(time.time()) + lifetime_s
    token = {"access_token": text, "expires_on": str(end), "resource": "https://ai.azure.com", "token_type": "Bearer"}
    body = json.dumps(token).encode()
    return Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])


def use_identity(monkeypatch: pytest.MonkeyPatch, identity: Loopback) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{identity.port}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "secret")


def read_key(asked: Asked) -> str:
    """Read the header with the key or the token."""
    lines = asked.head.decode().lower().splitlines()
    (line,) = (line for line in lines if line.startswith(("authorization:", "api-key:")))
    return line


async def test_a_token_is_fetched_kept_and_renewed(monkeypatch):
    """Each request has a valid token: one that ends within minutes is not sent again."""
    tokens = [build_token("short", 200), build_token("long", 9_000)]
    async with Loopback(tokens) as identity, Loopback([RESPONSES.answer("hi")]) as server:
        use_identity(monkeypatch, identity)
        choice = ModelChoice(model="azure:gpt-6-sol", base_url=server.base_url)
        kind = find_provider_class("azure")
        assert kind.find_setup_error(choice) is None
        provider = kind(choice)
        for _ in range(3):
            assert get_text([delta async for delta in provider.stream(REQUEST)]) == "hi"
        await provider.close()
    assert [read_key(asked) for asked in server.requests] == [
        "authorization: bearer short",
        "authorization: bearer long",
        "authorization: bearer long",
    ]
    assert len(identity.requests) == 2
    assert b"resource=https://ai.azure.com " in identity.requests[0].head
    assert server.requests[0].path == "/v1/responses"


async def test_a_key_wins_over_tokens(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-mine")
    async with Loopback([RESPONSES.answer("hi")]) as server:
        provider = find_provider_class("azure")(ModelChoice(model="azure:m", base_url=server.base_url))
        assert get_text([delta async for delta in provider.stream(REQUEST)]) == "hi"
        await provider.close()
    assert read_key(server.requests[0]) == "api-key: sk-mine"


async def test_a_check_uses_a_token(monkeypatch):
    async with Loopback([build_token("mine", 9_000)]) as identity, Loopback([listed("gpt-6-sol")]) as server:
        use_identity(monkeypatch, identity)
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"http://127.0.0.1:{server.port}")
        report = await find_provider_class("azure").probe(ModelChoice(model="azure:gpt-6-sol"))
    assert (report.models, report.wire) == (("gpt-6-sol",), "responses")
    assert read_key(server.requests[0]) == "authorization: bearer mine"


async def test_a_refused_identity_is_one_clear_error(monkeypatch, capfd):
    async with Loopback([refusal(400, "no such identity")]) as identity, Loopback([RESPONSES.answer("hi")]) as server:
        use_identity(monkeypatch, identity)
        provider = find_provider_class("azure")(ModelChoice(model="azure:m", base_url=server.base_url))
        with pytest.raises(CredentialError, match=r"azure at 127.*no token of Entra ID .*AZURE_TENANT_ID") as caught:
            [_ async for _ in provider.stream(REQUEST)]
        await provider.close()
    assert "\n" not in str(caught.value)
    assert "DefaultAzureCredential" not in capfd.readouterr().err
    assert not server.requests


@pytest.mark.parametrize("chosen", ["", "dev", "AzureCliCredential"])
async def test_no_program_is_started_for_a_token(monkeypatch, tmp_path, chosen):
    """The PATH may lead to programs that the model has written, such as those of the project's environment."""
    mark = tmp_path / "started"
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("az", "azd", "pwsh"):
        program = programs / name
        program.write_text(f"#!/bin/sh\necho {name} >> {mark}\n")
        program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", chosen)
    async with Loopback([refusal(400, "no such identity")]) as identity:
        use_identity(monkeypatch, identity)
        with pytest.raises(CredentialError, match="starts no program such as `az`"):
            await TokenSource("https://ai.azure.com/.default").fetch()
    assert not mark.exists()


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setattr("goose_like.providers.entra.find_spec", lambda name: None)
    error = find_provider_class("azure").find_setup_error(
        ModelChoice(model="azure:m", base_url="http://127.0.0.1:1/v1")
    )
    assert "set AZURE_OPENAI_API_KEY" in str(error)
    assert "goose-like[azure]" in str(error)


def test_a_deployment_with_the_name_of_a_model():
    assert find_known_model("azure", "gpt-6-sol").reasons
    assert not find_known_model("azure", "my-deployment").reasons
