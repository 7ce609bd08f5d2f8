"""Tests of Bedrock and Vertex over loopback: the vendors' libraries find credentials and sign, the test verifies it."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from goose_like.config.profile import ModelChoice
from goose_like.core.message import Message
from goose_like.providers.anthropic import BedrockProvider, VertexProvider
from goose_like.providers.base import Request
from tests.loopback import Asked, Loopback, Response, answer, words
from tests.providers.vendors import get_text, set_keys_only

REASON = "the extra `{}` is not installed"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys_only(monkeypatch)


async def ask(provider: Any, model: str) -> str:
    request = Request(model, "s", [Message.user("x")])
    try:
        return get_text([delta async for delta in provider.stream(request)])
    finally:
        await provider.close()


def read_headers(asked: Asked) -> dict[str, str]:
    lines = asked.head.decode().splitlines()[1:]
    pairs = [line.partition(": ") for line in lines if line]
    return {name.lower(): value for name, _, value in pairs}


async def test_bedrock_signs_each_request(monkeypatch):
    pytest.importorskip("boto3", reason=REASON.format("bedrock"))
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    model = "anthropic.claude-opus-5-5"
    async with Loopback([answer(words(0, "hi"))]) as server:
        choice = ModelChoice(model=f"bedrock:{model}", base_url=f"http://127.0.0.1:{server.port}/anthropic")
        assert BedrockProvider.find_setup_error(choice) is None
        assert await ask(BedrockProvider(choice), model) == "hi"
    (asked,) = server.requests
    headers = read_headers(asked)
    scope = r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-west-1/bedrock-mantle/aws4_request"
    found = re.fullmatch(rf"{scope}, SignedHeaders=(\S+), Signature=([0-9a-f]{{64}})", headers["authorization"])
    assert found
    signed = {name: headers[name] for name in found[1].split(";")}
    request = AWSRequest("POST", f"http://{headers['host']}{asked.path}", signed, asked.body)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "secret"), "bedrock-mantle", "eu-west-1")
    wanted = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    assert found[2] == wanted
    assert (asked.path, asked.json["model"]) == ("/anthropic/v1/messages", model)


def write_service_account(folder: Path, token_uri: str) -> Path:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    account = {
        "type": "service_account",
        "project_id": "mine",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "ann@mine.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }
    file = folder / "account.json"
    file.write_text(json.dumps(account))
    return file


async def test_vertex_fetches_a_token_with_a_service_account(monkeypatch, tmp_path):
    pytest.importorskip("google.auth", reason=REASON.format("vertex"))
    pytest.importorskip("cryptography", reason=REASON.format("vertex"))
    body = b'{"access_token": "token-1", "expires_in": 3600, "token_type": "Bearer"}'
    token = Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])
    async with Loopback([token]) as google, Loopback([answer(words(0, "hi"))]) as server:
        file = write_service_account(tmp_path, f"http://127.0.0.1:{google.port}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
        monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "mine")
        choice = ModelChoice(model="vertex:claude-opus-5-5", base_url=f"http://127.0.0.1:{server.port}/v1")
        assert VertexProvider.find_setup_error(choice) is None
        assert await ask(VertexProvider(choice), "claude-opus-5-5") == "hi"
    (asked,) = server.requests
    assert read_headers(asked)["authorization"] == "Bearer token-1"
    place = "/v1/projects/mine/locations/europe-west1/publishers/anthropic/models/claude-opus-5-5:streamRawPredict"
    assert asked.path == place
    assert "model" not in asked.json
    assert asked.json["anthropic_version"]  # from the SDK
    assert b"assertion=" in google.requests[0].body


async def test_vertex_starts_no_program_for_a_login(monkeypatch, tmp_path):
    """The PATH may lead to a `gcloud` that the model has written."""
    pytest.importorskip("google.auth", reason=REASON.format("vertex"))
    pytest.importorskip("cryptography", reason=REASON.format("vertex"))
    mark = tmp_path / "started"
    program = tmp_path / "gcloud"
    program.write_text(f"#!/bin/sh\necho other\n: > {mark}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "mine")
    monkeypatch.setenv("CLOUD_ML_REGION", "europe-west1")
    body = b'{"access_token": "token-1", "expires_in": 3600, "token_type": "Bearer"}'
    token = Response(200, {"content-type": "application/json", "content-length": str(len(body))}, [body])
    async with Loopback([token]) as google, Loopback([answer(words(0, "hi"))]) as server:
        file = write_service_account(tmp_path, f"http://127.0.0.1:{google.port}/token")
        login = json.loads(file.read_text())
        del login["project_id"]  # as in a login by `gcloud`
        (tmp_path / "application_default_credentials.json").write_text(json.dumps(login))
        choice = ModelChoice(model="vertex:claude-opus-5-5", base_url=f"http://127.0.0.1:{server.port}/v1")
        assert await ask(VertexProvider(choice), "claude-opus-5-5") == "hi"
    assert read_headers(server.requests[0])["authorization"] == "Bearer token-1"
    assert not mark.exists()
