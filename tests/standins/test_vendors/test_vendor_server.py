"""The server itself: its addresses, its keys, its records, and that it leaves nothing behind."""

import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import SurfaceName

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

SURFACES: list[SurfaceName] = [
    "anthropic",
    "vertex-anthropic",
    "gemini",
    "vertex-gemini",
    "openai-chat",
    "openai-responses",
]


def ask(lab: VendorLab, surface: SurfaceName, **changes: Any) -> httpx2.Response:
    chosen = sample(surface)
    headers = changes.get("headers", chosen.headers)
    return send(lab.url + changes.get("path", chosen.path), headers=headers, json=chosen.body)


def with_key(surface: SurfaceName, key: str) -> dict[str, str]:
    name = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(surface, "authorization")
    rest = {known: value for known, value in sample(surface).headers.items() if known != name}
    if not key:
        return rest
    return {**rest, name: key if name != "authorization" else f"Bearer {key}"}


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_answers_its_sample_and_writes_it_down(surface: SurfaceName) -> None:
    with VendorLab(Script([Turn(text="yes")])) as lab:
        response = ask(lab, surface)
        (record,) = lab.requests
    assert response.status_code == 200
    assert (record.surface, record.status, record.body) == (surface, 200, sample(surface).body)
    assert record.path == sample(surface).path
    assert record.headers["content-type"] == "application/json"
    assert record.usage


@pytest.mark.parametrize(
    ("surface", "kind"),
    [
        ("anthropic", "authentication_error"),
        ("vertex-anthropic", "UNAUTHENTICATED"),
        ("gemini", "UNAUTHENTICATED"),
        ("vertex-gemini", "UNAUTHENTICATED"),
        ("openai-chat", "invalid_request_error"),
        ("openai-responses", "invalid_request_error"),
    ],
)
@pytest.mark.parametrize("key", ["", "bad-key"])
def test_a_missing_or_bad_key_is_a_401(surface: SurfaceName, kind: str, key: str) -> None:
    """Permanent authentication errors go to the next model."""
    with VendorLab() as lab:
        response = ask(lab, surface, headers=with_key(surface, key))
    error = response.json()["error"]
    assert response.status_code == 401
    assert kind in {error.get("type"), error.get("status")}


@pytest.mark.parametrize(
    ("surface", "status", "words"),
    [
        ("anthropic", 400, "credit balance is too low"),
        ("vertex-anthropic", 403, "billing"),
        ("gemini", 429, "quota"),
        ("vertex-gemini", 403, "billing"),
        ("openai-chat", 429, "quota"),
        ("openai-responses", 429, "quota"),
    ],
)
def test_an_account_without_money_hears_it_in_the_vendors_way(surface: SurfaceName, status: int, words: str) -> None:
    """Billing errors switch the model at once."""
    with VendorLab() as lab:
        response = ask(lab, surface, headers=with_key(surface, "no-credit"))
    assert response.status_code == status
    assert words in response.text


def test_google_answers_a_key_it_never_issued_with_a_400() -> None:
    with VendorLab() as lab:
        response = ask(lab, "gemini", headers=with_key("gemini", "invalid-key"))
    assert response.status_code == 400
    assert response.json()["error"]["details"][0]["reason"] == "API_KEY_INVALID"


def test_a_list_of_keys_admits_these_only() -> None:
    with VendorLab(Script([Turn(text="yes")]), keys={"mine"}) as lab:
        assert ask(lab, "anthropic").status_code == 401
        assert ask(lab, "anthropic", headers=with_key("anthropic", "mine")).status_code == 200


def test_anthropic_takes_a_bearer_token_as_well() -> None:
    headers = {"authorization": "Bearer any", "anthropic-version": "2026-10-21"}
    with VendorLab(Script([Turn(text="yes")])) as lab:
        assert ask(lab, "anthropic", headers=headers).status_code == 200


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("text", [b"{", b"[1]", b""])
def test_a_body_that_is_no_json_object_is_a_400(surface: SurfaceName, text: bytes) -> None:
    chosen = sample(surface)
    with VendorLab() as lab:
        response = send(lab.url + chosen.path, headers=chosen.headers, content=text)
    assert response.status_code == 400
    assert "JSON" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("surface", "model", "status"),
    [
        ("anthropic", "claude-opus-9", 404),
        ("openai-chat", "gpt-4o", 404),
        ("openai-responses", "gpt-4o", 400),
    ],
)
def test_an_unknown_model_is_refused(surface: SurfaceName, model: str, status: int) -> None:
    chosen = sample(surface)
    with VendorLab() as lab:
        response = send(lab.url + chosen.path, headers=chosen.headers, json={**chosen.body, "model": model})
    assert response.status_code == status


@pytest.mark.parametrize(
    ("surface", "old", "new"),
    [
        ("gemini", "gemini-3.8-flash", "gemini-9-nope"),
        ("vertex-gemini", "gemini-3.8-flash", "gemini-1.5-pro"),
        ("vertex-anthropic", "claude-sonnet-5-5", "claude-2"),
        ("gemini", ":generateContent", ":inventContent"),
        ("vertex-anthropic", "projects/p/", "projects//"),
        ("vertex-gemini", "/locations/europe-west4", ""),
    ],
)
def test_a_wrong_path_is_not_found(surface: SurfaceName, old: str, new: str) -> None:
    """Project and region must be in the path."""
    path = sample(surface).path.replace(old, new)
    with VendorLab() as lab:
        assert ask(lab, surface, path=path).status_code == 404


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_gemini_answers_under_both_versions(version: str) -> None:
    path = sample("gemini").path.replace("/v1beta/", f"/{version}/")
    with VendorLab(Script([Turn(text="yes")])) as lab:
        assert ask(lab, "gemini", path=path).status_code == 200


@pytest.mark.parametrize("key", ["any", "bad-key"])
def test_models_answer_those_with_a_key(key: str) -> None:
    with VendorLab() as lab:
        known = httpx2.get(f"{lab.anthropic_url}/v1/models/claude-opus-5-5", headers={"x-api-key": key})
        unknown = httpx2.get(f"{lab.anthropic_url}/v1/models/claude-x", headers={"x-api-key": key})
    assert (known.status_code, unknown.status_code) == ((200, 404) if key == "any" else (401, 401))


@pytest.mark.thorough
def test_nothing_is_left_running() -> None:
    before = set(threading.enumerate())
    with VendorLab(Script([Turn(text="yes")])) as lab, httpx2.Client() as client:
        chosen = sample("anthropic")
        client.post(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)
        during = set(threading.enumerate()) - before
    assert len(during) == 1
    assert set(threading.enumerate()) - before == set()
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(lab.url)


def test_two_labs_never_invent_the_same_id() -> None:
    """A session resumed against a second lab must not meet its own ids again."""
    ids = set()
    for _ in range(2):
        with VendorLab(Script([Turn(text="yes")])) as lab:
            ids.add(ask(lab, "anthropic").json()["id"])
    assert len(ids) == 2


@pytest.mark.thorough
def test_it_can_be_run_by_hand(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "by hand"}]))
    command = [sys.executable, "-m", "tests.standins.vendors.server", "--script", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        chosen = sample("anthropic")
        url = address.removesuffix("/anthropic") + chosen.path
        answer = send(url, headers=chosen.headers, json=chosen.body)
        running.terminate()
    assert answer.json()["content"][0]["text"] == "by hand"
