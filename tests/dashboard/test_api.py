"""The JSON API answers as its description says, its pages follow each other, and no text acts or tells a secret."""

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema_rs
import pytest

from hummingbird.core.masking import MASK
from tests.dashboard.pictures import FAILURES, fill_with_runs
from tests.dashboard.test_entering import TOKEN, with_token
from tests.dashboard.test_hostile import ATTACK, NAME, SESSION, planted, seen_before
from tests.dashboard.test_many_runs import BROKEN_BUILD, BROKEN_TEST, client_of, remember, save_runs
from tests.dashboard.test_rendering import CANARY, billed
from tests.journeys.service.stage import Stage, staged

API = "/api/v1"


@asynccontextmanager
async def filled(tmp_path: Path) -> AsyncIterator[tuple[Stage, httpx2.AsyncClient, list[str]]]:
    async with staged("failing-test", tmp_path) as stage:
        ids = await fill_with_runs(stage, 2)
        async with client_of(stage) as client:
            yield stage, client, ids


class Description:
    """The OpenAPI document, as a client reads it."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations = {path: one["get"] for path, one in document["paths"].items()}

    def check(self, path: str, answer: httpx2.Response) -> Any:
        """Return the body, which is what the document says of that status."""
        described = self.operations[path]["responses"]
        assert str(answer.status_code) in described, (path, answer.status_code, answer.text[:300])
        assert answer.headers["content-type"] == "application/json; charset=utf-8"
        schema = described[str(answer.status_code)]["content"]["application/json"]["schema"]
        body = answer.json()
        whole = {**schema, "components": self.document["components"]}
        jsonschema_rs.Draft202012Validator(whole).validate(body)
        return body


def value_for(schema: dict[str, Any], draw: random.Random, *, right: bool) -> str:
    """Return a value that the schema allows, or one that it does not."""
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return str(draw.randint(low, high)) if right else draw.choice([str(low - 1), str(high + 1), "x", "1e1", "٣"])
    if "enum" in schema:
        return draw.choice(schema["enum"]) if right else "none-of-these"
    words = ["acme/shop", "voucher", "' OR 1 --", "%", '"', "\0", "é日", "\ud800"]
    return draw.choice(words) if right else "x" * (schema.get("maxLength", 0) + 1)


async def test_every_answer_is_what_the_description_says(tmp_path: Path) -> None:
    draw = random.Random(11)
    async with filled(tmp_path) as (_, client, ids):
        here = Description((await client.get(f"{API}/openapi.json")).json())
        assert here.document["openapi"] == "3.1.0"
        assert len(here.operations) == 10
        for path, operation in here.operations.items():
            refused = 0
            for turn in range(12):
                place, asked, fair = path, {}, turn % 2 == 0
                for one in operation["parameters"]:
                    right = fair or draw.random() < 0.5
                    if one["in"] == "path":
                        place = place.replace(
                            "{id}", ids[0] if right else quote(draw.choice(["none", "a b", NAME]), safe="")
                        )
                    elif one["name"] != "cursor" and (one["required"] or draw.random() < 0.6):
                        asked[one["name"]] = (
                            value_for(one["schema"], draw, right=right).encode("utf-8", "replace").decode()
                        )
                answer = await client.get(place, params=asked)
                here.check(path, answer)
                refused += answer.status_code == 400
                if fair:
                    assert answer.status_code in {200, 404}, (place, asked, answer.text)
            assert refused or not [one for one in operation["parameters"] if one["in"] == "query"], path


async def test_pages_follow_each_other_until_the_last(tmp_path: Path) -> None:
    async with filled(tmp_path) as (_, client, ids):
        here = Description((await client.get(f"{API}/openapi.json")).json())

        async def every(path: str, **asked: str) -> list[Any]:
            found: list[Any] = []
            described = path.replace(ids[0], "{id}")
            for _ in range(200):
                body = here.check(API + described, await client.get(API + path, params={**asked, "limit": "3"}))
                found += body["items"]
                if body["next"] is None:
                    return found
                asked["cursor"] = body["next"]
            raise AssertionError("they never end")

        assert [one["id"] for one in await every("/runs")] == ids[::-1], "each once, the newest first"
        entries = await every(f"/runs/{ids[0]}/entries")
        assert [one["number"] for one in entries] == list(range(1, len(entries) + 1))
        assert [one["called"] for one in entries if one["called"]], "a result names its call"
        shop = await every("/runs", project="acme/shop")
        pipelines = await every("/pipelines", project="acme/shop")
        assert [one["run_id"] for one in pipelines] == [one["id"] for one in shop]
        failures = await every("/failures", project="acme/shop")
        assert {one["title"] for one in failures} <= {one.title for one in FAILURES}
        assert len({one["title"] for one in failures}) == len(failures) > 1
        for cursor in ("x", "WzFd", "bnVsbA", "W05hTiwieCJd", "é"):
            answer = await client.get(f"{API}/runs", params={"cursor": cursor})
            assert (answer.status_code, answer.json()["error"]["status"]) == (400, 400)


async def test_answers_have_what_the_pages_show(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        (run, _) = await save_runs(stage, ("acme/shop", BROKEN_TEST, 0), ("acme/mobile", BROKEN_BUILD, 0))
        await remember(stage, (BROKEN_TEST.fingerprint, BROKEN_TEST), ("other-fingerprint", BROKEN_TEST))
        async with client_of(stage) as client:

            async def asked(path: str, **values: str) -> Any:
                return (await client.get(API + path, params=values)).json()

            one = await asked(f"/runs/{run}")
            assert (one["run"]["verdict"], one["run"]["merge_request"], one["run"]["project"]) == (
                "change",
                101,
                "acme/shop",
            )
            first, said = one["answer"].split("\n\n---\n\n")
            assert "**Yours.** The rules say so." in first, "as in the note, what rules say comes first"
            assert "→     org.opentest4j.AssertionFailedError" in first
            assert said.startswith("**`unit-tests`**: CartTest")
            assert one["citations"] == ["Quoted lines: 2 checked, 2 found."]
            assert [each["id"] for each in (await asked("/runs", text="voucher", verdict="change"))["items"]] == [run]
            (failure,) = (await asked("/failures", project="acme/shop"))["items"]
            assert failure["fingerprints"] == [BROKEN_TEST.fingerprint, "other-fingerprint"]
            history = await asked("/failure", project="acme/shop", fingerprint="other-fingerprint")
            assert [(each["run_id"], each["job"]["name"]) for each in history["runs"]] == [(run, "unit-tests")]
            overview = await asked("/overview", days="7", project="acme/shop")
            assert [(each["origin"], each["pipelines"], each["jobs"]) for each in overview["origins"]] == [
                ("change", 1, 1)
            ]
            assert overview["queued"] == 0
            assert {each["name"] for each in (await asked("/costs"))["by_project"]} == {"acme/shop", "acme/mobile"}
            assert (await asked("/projects"))["verdicts"] == ["change"]


async def test_only_those_with_the_token_are_answered(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {}})
        base = await with_token(stage)
        async with httpx2.AsyncClient(base_url=base, timeout=60) as client:
            for path in ("/runs", "/openapi.json", "/nothing"):
                answer = await client.get(API + path)
                assert (answer.status_code, answer.json()["error"]["status"]) == (401, 401), path
                assert answer.headers["www-authenticate"] == "Bearer"
                shown = await client.get(API + path, headers={"authorization": f"Bearer {TOKEN}"})
                assert shown.status_code == (404 if path == "/nothing" else 200)
            assert (await client.post(f"{API}/runs", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 405


async def test_hostile_text_is_data_and_credentials_are_masked(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {"data_sources": {"gitlab": {"token_env": "OTHER"}}}})
        stage.environment["OTHER"] = CANARY
        await billed(stage, "secretive", CANARY)
        await planted(stage, lines=3)
        await seen_before(stage)
        await stage.serve()
        told = ""
        async with client_of(stage) as client:
            for path in (
                *("/overview", "/runs", f"/runs?text={CANARY}", "/runs/secretive", "/runs/secretive/entries", "/costs"),
                *(f"/runs/{SESSION}", f"/runs/{SESSION}/entries", f"/pipelines?project={quote(f'a/{NAME}')}"),
                *(f"/failures?project={quote(f'a/{NAME}')}", f"/failure?fingerprint={CANARY}&project={CANARY}"),
                *("/projects", "/quality", f"/runs/{CANARY}", f"/{CANARY}", f"/overview?project={CANARY}"),
            ):
                answer = await client.get(API + path)
                assert answer.headers["content-type"] == "application/json; charset=utf-8", path
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert CANARY not in answer.text, path
                told += json.dumps(answer.json(), ensure_ascii=False)
    assert told.count(MASK) > 8
    assert json.dumps(ATTACK)[1:-1] in told, "what others wrote is told as it is, in a string"


@pytest.mark.thorough
async def test_schemathesis_finds_nothing_that_the_description_does_not_say(tmp_path: Path) -> None:
    async with filled(tmp_path) as (stage, _, _):
        description = f"http://127.0.0.1:{stage.serving.port}{API}/openapi.json"
        # A cursor is a text that only we can write: the one check leaves out that all others are refused.
        left_out = "--exclude-checks=positive_data_acceptance"
        words = (
            "run",
            description,
            "--checks=all",
            left_out,
            "--max-examples=50",
            "--no-color",
            "--generation-deterministic",
        )
        made = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "schemathesis.cli", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=tmp_path,
        )
        said, _ = await made.communicate()
        assert made.returncode == 0, said.decode()[-3_000:]
        assert b"Tested: 10" in said
