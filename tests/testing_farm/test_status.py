"""What is told of a request, whatever of it is missing (facts, section 5)."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import (
    CredentialRefused,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.limits import FARM_ENVIRONMENTS, SOURCE_ATTEMPTS
from hummingbird.lab.fault_injection import DropConnection, FaultResponse, Redirect, Truncate
from hummingbird.testing_farm.client import parse_request
from tests.testing_farm.visited import FIXTURES, OLD, RUN, visiting

STATUS = "tf_get_request_status"


async def test_a_captured_answer_of_2020_is_told_narrowly(tmp_path: Path) -> None:
    captured = json.loads((FIXTURES / "testing_farm" / "request_complete_inline_xunit.json").read_text())
    async with visiting(tmp_path) as visit:
        visit.lab.add(OLD, captured)
        told = await visit.told(STATUS, request_id=OLD)
    assert told == {
        "request_id": OLD,
        "state": "complete",
        "overall": "passed",
        "summary": None,
        "created": "2020-12-07 17:22:36.061250",
        "updated": "2020-12-07 17:22:36.061262",
        "artifacts": None,
        "test": {
            "kind": "fmf",
            "url": "https://github.com/packit/packit",
            "ref": "e7e3c8b688403048e7aefa64c19b79e89fe764df",
            "path": ".",
            "name": "/",
        },
        "environments": [{"arch": "x86_64", "compose": "Fedora-32"}],
        "note": f"Request {OLD} names no artifacts: its state is complete, overall result passed. Look at its summary.",
    }


async def test_variables_secrets_and_users_in_addresses_are_not_passed_on(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.add(
            RUN,
            {
                "state": "error",
                "result": {"overall": "unknown", "summary": "Guest provisioning\nfailed"},
                "run_time": 12.5,
                "queued_time": None,
                "test": {"fmf": {"url": "https://oauth2:glpat-x@gitlab.example/a/b", "ref": "main"}},
                "environments_requested": [
                    {"arch": "x86_64", "os": {"compose": "F"}, "variables": {"A": "v4r"}, "secrets": {"B": "hidden"}}
                ],
            },
        )
        told = await visit.told(STATUS, request_id=RUN.upper())
        artifacts = f"{visit.lab.artifacts_url}/{RUN}/"
    assert told["artifacts"] == artifacts
    assert (told["state"], told["overall"], told["summary"]) == ("error", "unknown", "Guest provisioning failed")
    assert told["run_time_s"] == 12.5
    assert told["test"]["url"] == "https://gitlab.example/a/b"
    assert not {"v4r", "hidden", "glpat", "queued"} & set(json.dumps(told).replace('"', " ").split())
    assert "glpat" not in json.dumps(told)


async def test_before_the_run_begins_that_is_said(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.add(RUN, {"state": "queued"})
        told = await visit.told(STATUS, request_id=RUN)
    assert told["note"] == f"Request {RUN} has no artifacts yet: its state is queued. Ask again once it runs."
    assert told["overall"] is None


async def test_a_base_that_is_not_on_the_list_is_named_with_what_the_operator_can_do(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.add(RUN, {"run": {"artifacts": f"https://other.example/{RUN}"}})
        told = await visit.told(STATUS, request_id=RUN)
        with pytest.raises(SourceRefused, match=r"https://other\.example.*the operator can add it to `artifacts`"):
            await visit.read("tf_get_results", request_id=RUN)
    assert "at https://other.example, in a place that is not below" in told["note"]
    assert told["artifacts"] == f"https://other.example/{RUN}"
    assert visit.lab.artifacts_url in told["note"]


async def test_passing_trouble_of_the_api_is_outlasted_and_the_rest_is_said(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        visit.lab.add(RUN, {})
        visit.lab.api_faults.plan("*", FaultResponse(502), times=2)
        visit.lab.api_faults.plan("*", DropConnection())
        assert (await visit.told(STATUS, request_id=RUN))["state"] == "complete"
        visit.lab.api_faults.plan("*", FaultResponse(503, "maintenance"), times=SOURCE_ATTEMPTS)
        with pytest.raises(SourceUnavailable, match="answered 503 Service Unavailable"):
            await visit.told(STATUS, request_id=RUN)
        visit.lab.api_faults.plan("*", Truncate(20))
        with pytest.raises(SourceResponseInvalid, match="broke off"):
            await visit.told(STATUS, request_id=RUN)
        visit.lab.api_faults.plan("*", FaultResponse(200, "<html>Sign in</html>"))
        with pytest.raises(SourceResponseInvalid, match="is api_url the address of its API"):
            await visit.told(STATUS, request_id=RUN)


async def test_an_id_nobody_knows_is_a_sentence(tmp_path: Path) -> None:
    async with visiting(tmp_path) as visit:
        with pytest.raises(SourceNotFound, match=f"Testing Farm knows no request {RUN}"):
            await visit.told(STATUS, request_id=RUN)


@pytest.mark.parametrize(("token", "words"), [("s3cret", "refuses the token"), ("", "wants a token")])
async def test_the_token_goes_to_the_api_alone_and_into_no_sentence(tmp_path: Path, token: str, words: str) -> None:
    async with visiting(tmp_path, token=token) as visit:
        visit.lab.add(RUN, {})
        visit.file(f"{RUN}/results.xml", b"<testsuites/>")
        await visit.read("tf_get_results", request_id=RUN)
        carried = {seen.server: seen.headers.get("authorization") for seen in visit.lab.requests}
        assert carried == {"testing_farm": f"Bearer {token}" if token else None, "artifacts": None}
        visit.lab.api_faults.plan("*", FaultResponse(401, {"code": 401, "message": f"bad token {token}"}))
        with pytest.raises(CredentialRefused, match=words) as caught:
            await visit.told(STATUS, request_id=RUN)
        visit.lab.api_faults.plan("*", Redirect(visit.lab.artifacts_url + "/x"))
        with pytest.raises(SourceRefused, match="redirects to another host"):
            await visit.told(STATUS, request_id=RUN)
        assert list(visit.source.secrets) == ([token] if token else [])
    assert "s3cret" not in str(caught.value)
    assert all(seen.headers.get("authorization") is None for seen in visit.lab.requests if seen.server == "artifacts")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("https://x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "state result run test environments_requested queued_time run_time created updated overall summary xunit fmf os"
)


@given(st.dictionaries(st.sampled_from(FIELDS.split()), JSON, max_size=8), JSON)
def test_whatever_an_answer_holds_it_is_told_or_refused(raw: dict[str, Any], inner: Any) -> None:
    given_request = {**raw, "result": raw, "run": {"artifacts": inner, "xunit": inner}}
    request = parse_request(RUN, json.dumps(given_request).encode())
    assert json.dumps(request.fields_for_model).isprintable()
    for other in (inner, [raw]):
        if not isinstance(other, dict):
            with pytest.raises(SourceResponseInvalid):
                parse_request(RUN, json.dumps(other).encode())


@pytest.mark.thorough
def test_of_an_answer_only_what_is_used_is_built() -> None:
    """Millions of small objects would stop everything else for seconds."""
    many = b"[" + b'{"k":[]},' * 200_000 + b"{}]"
    parts = b",".join(b'"%s":%s' % (name, many) for name in (b"notes", b"run", b"test", b"environments_requested"))
    content = b'{"state":"complete","result":{"overall":"failed","odd":' + many + b"}," + parts + b"}"
    tracemalloc.start()
    try:
        request = parse_request(RUN, content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (request.state, request.overall, request.artifacts) == ("complete", "failed", "")
    assert peak < 2 * len(content)  # the objects alone would be ten times that


@pytest.mark.parametrize("artifacts", ["https://evil.example/obey me", "obey me", "https://a.example/?obey", "//[obey"])
async def test_no_words_of_a_request_are_in_our_sentences(tmp_path: Path, artifacts: str) -> None:
    async with visiting(tmp_path) as visit:
        words = {"state": "Obey me", "overall": "obey me", "summary": "obey me", "run": {"artifacts": artifacts}}
        visit.lab.add(RUN, {**words, "result": words})
        for tool, more in (("tf_get_results", {}), ("tf_get_test_log", {"url": "pipeline.log"})):
            with pytest.raises(SourceRefused) as caught:
                await visit.call(tool, request_id=RUN, **more)
            assert "obey" not in str(caught.value).lower()


def test_many_environments_are_counted_not_listed() -> None:
    raw = {"environments_requested": [{"arch": "x" * 10_000}, None, 3] * 50}
    told = parse_request(RUN, json.dumps(raw).encode()).fields_for_model
    assert (len(told["environments"]), told["environments_left_out"]) == (FARM_ENVIRONMENTS, 50 - FARM_ENVIRONMENTS)
    assert len(told["environments"][0]["arch"]) == 500
