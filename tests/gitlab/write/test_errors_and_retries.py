"""What is tried again and what is not, what refusals are called, and that no token stands in any of it."""

import logging
import socket
import traceback
from collections.abc import Iterator

import pytest

from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRequestRefused,
    GitLabUnavailable,
    GitLabWriteError,
    GitLabWriteUncertain,
    HummingbirdError,
    MissingSetting,
)
from hummingbird.core.limits import (
    FORGE_ANSWER_S,
    FORGE_ATTEMPTS,
    FORGE_CONNECT_S,
    FORGE_IDLE_S,
    FORGE_JSON_BYTES,
    FORGE_SAID_CHARS,
    FORGE_WAIT_S,
    HTTP_REFUSAL_BYTES,
)
from hummingbird.gitlab.write.client import WRITE_POLICY
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import NoteDraft, NoteMarker, OrchestratorToken
from hummingbird.lab.fault_injection import (
    DropConnection,
    Fault,
    FaultGate,
    FaultResponse,
    Hold,
    RawResponse,
    Redirect,
    StreamedBody,
    Truncate,
)
from hummingbird.lab.gitlab.error_responses import rack_attack_fault, rate_limit_fault, server_error_fault
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.read.stage import Answer as Trickled
from tests.gitlab.read.stage import staged
from tests.gitlab.write.writer_stage import MR, NOW, PROJECT, Bench, asked, forging, written

DRAFT = NoteDraft(text="Looking into it.", marker=NoteMarker(id="s1"))
CHUNK = b"x" * 65536


async def test_a_read_is_tried_again_with_growing_pauses(lab: GitLabLab, bench: Bench) -> None:
    for fault in (server_error_fault(502), DropConnection(), rate_limit_fault()):
        lab.world.faults.plan(MR, fault)
    assert (await bench.forge.merge_request(7)).change.iid == 7
    first, second, third = bench.pauses
    assert 1 <= first < 2 <= second < 4 <= third < 8


async def test_a_read_that_never_succeeds_is_down_after_all_tries(lab: GitLabLab, bench: Bench) -> None:
    lab.world.faults.plan(MR, server_error_fault(503), times=FORGE_ATTEMPTS)
    with pytest.raises(GitLabUnavailable, match="status 503"):
        await bench.forge.merge_request(7)
    assert len(bench.pauses) == FORGE_ATTEMPTS - 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_facts_2_8_retry_after_is_obeyed_by_reads_and_writes(lab: GitLabLab, bench: Bench, method: str) -> None:
    lab.world.faults.plan(f"{MR}/discussions", rack_attack_fault(retry_after_s=17), times=2, method=method)
    await bench.forge.open_thread(7, DRAFT, internal=False)
    await bench.forge.threads(7)
    assert (bench.pauses, len(written(lab))) == ([17, 17], 1)


async def test_who_is_told_to_wait_too_long_gives_up_at_once_and_nothing_was_written(
    lab: GitLabLab, bench: Bench
) -> None:
    lab.world.faults.plan(f"{MR}/discussions", rack_attack_fault(retry_after_s=3_600), method="POST")
    with pytest.raises(GitLabUnavailable, match="limits how often"):
        await bench.forge.open_thread(7, DRAFT, internal=False)
    assert (bench.pauses, written(lab)) == ([], [])


def test_facts_2_8_the_moment_of_a_reset_counts_once_nothing_remains() -> None:
    over = {"RateLimit-Reset": str(int(NOW) + 9)}
    assert WRITE_POLICY.pause_s({**over, "RateLimit-Remaining": "0"}, 1, NOW) == 9
    assert WRITE_POLICY.pause_s({**over, "RateLimit-Remaining": "0", "Retry-After": "3"}, 1, NOW) == 3
    for headers in ({**over, "RateLimit-Remaining": "12"}, {"RateLimit-Reset": "soon"}, {"RateLimit-Reset": "1"}):
        assert 1 <= WRITE_POLICY.pause_s(headers, 1, NOW) < 2


def test_all_tries_of_a_request_fit_into_the_time_that_is_waited_for_it() -> None:
    pauses = [WRITE_POLICY.backoff_s(attempt) for attempt in range(1, FORGE_ATTEMPTS)]
    assert sum(pauses) < FORGE_WAIT_S
    assert FORGE_IDLE_S < FORGE_CONNECT_S < FORGE_ANSWER_S
    assert HTTP_REFUSAL_BYTES < FORGE_JSON_BYTES


async def test_facts_2_8_a_write_that_the_limiter_refuses_without_a_word_about_when_is_tried_again(
    lab: GitLabLab, bench: Bench
) -> None:
    lab.world.faults.plan(f"{MR}/notes", rate_limit_fault(), times=2, method="POST")
    await bench.forge.open_thread(7, DRAFT, internal=True)
    assert (len(bench.pauses), len(written(lab))) == (2, 1)


@pytest.mark.parametrize(
    "fault",
    [
        server_error_fault(502),
        server_error_fault(500),
        DropConnection(),
        Truncate(20),
        FaultResponse(201, "<html>"),
        FaultResponse(201, []),
        FaultResponse(408),
    ],
    ids=["502", "500", "drop", "truncate", "html", "list", "408"],
)
async def test_a_write_whose_end_nobody_saw_is_uncertain_and_was_sent_once(
    lab: GitLabLab, bench: Bench, fault: Fault
) -> None:
    lab.world.faults.plan(f"{MR}/discussions", fault, method="POST", after_write=True)
    with pytest.raises(GitLabWriteUncertain, match="before writing it again"):
        await bench.forge.open_thread(7, DRAFT, internal=False)
    assert (len(written(lab)), asked(lab, "POST", "/discussions"), bench.pauses) == (1, 1, [])
    assert (await bench.forge.threads(7))[-1].marker == DRAFT.marker


async def test_silence_after_a_write_is_uncertain_and_silence_of_a_read_is_down(lab: GitLabLab) -> None:
    lab.world.faults.plan(f"{MR}/discussions", Hold(FaultGate()), method="POST", after_write=True)
    lab.world.faults.plan(MR, Hold(FaultGate()), times=FORGE_ATTEMPTS)
    async with forging(lab.url, answer_s=2) as bench:  # long enough for each request to arrive on a busy machine
        with pytest.raises(GitLabWriteUncertain, match="in time"):
            await bench.forge.open_thread(7, DRAFT, internal=False)
        with pytest.raises(GitLabUnavailable, match="in time"):
            await bench.forge.merge_request(7)
    assert (len(written(lab)), len(bench.pauses)) == (1, FORGE_ATTEMPTS - 1)


async def test_an_answer_that_trickles_in_for_ever_is_not_waited_for() -> None:
    with staged() as stage:

        def trickle() -> Iterator[bytes]:
            while not stage.left.wait(0.02):
                yield b" "

        stage.answers = [Trickled(201, trickle)]
        async with forging(stage.url, answer_s=0.3) as bench:
            with pytest.raises(GitLabWriteUncertain, match="in time"):
                await bench.forge.open_thread(7, DRAFT, internal=False)
        assert stage.left.wait(30)


async def test_a_write_to_a_gitlab_that_is_not_there_is_tried_again_and_then_down() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # and does not listen, so that nobody else can
        async with forging(f"http://127.0.0.1:{door.getsockname()[1]}") as bench:
            with pytest.raises(GitLabUnavailable, match="cannot be reached"):
                await bench.forge.open_thread(7, DRAFT, internal=False)
            assert len(bench.pauses) == FORGE_ATTEMPTS - 1


@pytest.mark.parametrize("token", [GitLabLab.expired_token, "no-such-token", GitLabLab.narrow_token])
async def test_a_token_that_gitlab_does_not_take_is_the_operators_business(lab: GitLabLab, token: str) -> None:
    async with forging(lab.url, token) as bench:
        with pytest.raises(CredentialRefused, match=r"acme/widgets.*orchestrator token's variable") as caught:
            await bench.forge.merge_request(7)
        assert token not in str(caught.value)


async def test_a_token_that_only_reads_cannot_resolve_and_that_is_told(lab: GitLabLab) -> None:
    async with forging(lab.url, lab.read_token) as bench:
        with pytest.raises(CredentialRefused, match="lacks the scope api"):
            await bench.forge.resolve(7, "c" * 40)


async def test_what_is_not_there_is_missing_with_gitlabs_own_words(forge: GitLabProjectWriter, bench: Bench) -> None:
    with pytest.raises(GitLabNotFound, match=r"Merge request 99 of acme/widgets was not found.*404 Not found"):
        await forge.merge_request(99)
    with pytest.raises(GitLabNotFound, match="404 Project Not Found"):
        await bench.forges.writer_for("acme/none").merge_request(7)
    assert bench.pauses == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "400 Bad request - Note is odd"}, "400 Bad request - Note is odd"),
        ({"message": {"note": ["is too long", "is odd"], "base": ["no"]}}, "note is too long, is odd, base no"),
        ({"error": "body is missing"}, "body is missing"),
        ({"message": "a\nb\x1b[31m\u202e" + "c" * 999}, "a b [31m c"),
        ({"message": [[[None]]], "error": {"a": {"b": 1}}}, "None – a b 1"),
        ({"error": "bad", "error_description": "worse"}, "bad – worse"),
    ],
)
async def test_facts_2_8_both_dialects_of_refusal_are_quoted_short_and_printable(
    lab: GitLabLab, forge: GitLabProjectWriter, body: object, words: str
) -> None:
    lab.world.faults.plan(f"{MR}/discussions", FaultResponse(400, body), method="POST")
    with pytest.raises(GitLabRequestRefused) as caught:
        await forge.open_thread(7, DRAFT, internal=False)
    assert f"GitLab said: {words}" in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < FORGE_SAID_CHARS + 200


@pytest.mark.parametrize("body", ["<html>Forbidden</html>", "", "\x00", b"\xff\xfe", "[" * 100_000, CHUNK * 3])
async def test_a_refusal_in_no_dialect_is_told_by_its_status(
    lab: GitLabLab, forge: GitLabProjectWriter, body: object
) -> None:
    lab.world.faults.plan(MR, FaultResponse(422, body))
    with pytest.raises(GitLabRequestRefused, match="status 422: it would be refused again"):
        await forge.merge_request(7)


@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:9/api/v4/user", "/api/v4/user", "file:///etc/passwd"])
async def test_redirects_are_not_followed(lab: GitLabLab, forge: GitLabProjectWriter, elsewhere: str) -> None:
    lab.world.faults.plan(MR, Redirect(elsewhere))
    lab.world.faults.plan(f"{MR}/discussions", Redirect(elsewhere, 307), method="POST")
    with pytest.raises(GitLabRequestRefused, match="elsewhere"):
        await forge.merge_request(7)
    with pytest.raises(GitLabRequestRefused, match="elsewhere"):
        await forge.open_thread(7, DRAFT, internal=False)
    assert len(lab.requests) == 2


async def test_an_answer_without_an_end_is_not_read_to_its_end(lab: GitLabLab, bench: Bench) -> None:
    pieces = FORGE_JSON_BYTES // len(CHUNK) + 2
    lab.world.faults.plan(MR, StreamedBody(lambda: (CHUNK for _ in range(pieces))))
    lab.world.faults.plan(
        f"{MR}/discussions", StreamedBody(lambda: (CHUNK for _ in range(pieces)), status=201), method="POST"
    )
    with pytest.raises(GitLabRequestRefused, match="larger than"):
        await bench.forge.merge_request(7)
    with pytest.raises(GitLabWriteUncertain, match="larger than"):
        await bench.forge.open_thread(7, DRAFT, internal=False)


async def test_cookies_are_not_kept(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan("/api/v4/user", FaultResponse(200, {"id": 91}, {"Set-Cookie": "_gitlab_session=abc; Path=/"}))
    await forge.bot_ids()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    lab.world.faults.plan(f"{MR}/discussions", RawResponse(head), method="GET")
    with pytest.raises(GitLabRequestRefused):
        await forge.threads(7)
    assert [dict(forge._client._client.connection.http.cookies)] == [{}]


async def test_no_error_record_or_name_shows_the_token(lab: GitLabLab, caplog: pytest.LogCaptureFixture) -> None:
    token = lab.write_token
    caplog.set_level(logging.DEBUG)
    echo = {"message": f"who sent {token}?", "error": token}
    faults: list[Fault] = [
        FaultResponse(400, echo),
        FaultResponse(404, echo),
        FaultResponse(401, echo),
        DropConnection(),
        RawResponse(b"HTTP/1.1 junk\r\n"),
    ]
    told: list[str] = []
    async with forging(lab.url, token) as bench:
        for fault in faults:
            lab.world.faults.plan(f"{MR}/discussions", fault, method="POST")
            with pytest.raises(HummingbirdError) as caught:
                await bench.forge.open_thread(7, DRAFT, internal=False)
            told += [repr(caught.value), "".join(traceback.format_exception(caught.value))]
        told += [
            repr(bench.forge),
            repr(bench.forges),
            repr(vars(bench.forge)),
            repr(bench.forge._client._client._token),
        ]
        assert (await bench.forge.merge_request(7)).change.iid == 7
    assert token not in "".join([*told, caplog.text])
    assert "HTTP Request" in caplog.text


@pytest.mark.parametrize("value", ["", "two words", "line\nbreak", "schlüssel", "nul\x00"])
async def test_a_token_that_no_header_holds_is_refused_without_being_shown(value: str) -> None:
    with pytest.raises(MissingSetting, match="copy it again") as caught:
        async with forging("http://127.0.0.1:1", value):
            pass
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize("url", ["gitlab.example", "http://[::1", "http://" + "a" * 70 + ".invalid.:99999", "ftp://x"])
async def test_an_address_that_is_none_is_told_and_not_raised_as_something_else(url: str) -> None:
    async with forging(url) as bench:
        with pytest.raises(GitLabWriteError, match="GitLab"):
            await bench.forge.merge_request(7)


async def test_each_project_has_its_own_token_and_a_changed_one_is_taken_over(lab: GitLabLab, bench: Bench) -> None:
    assert bench.forges.writer_for(PROJECT) is bench.forge
    assert bench.forges.writer_for("jdoe/widgets") is not bench.forge
    async with forging(lab.url) as other:
        tokens = iter([b"bot", b"reader"])
        other.forges._token_of = lambda project: OrchestratorToken(next(tokens).decode())
        assert other.forges.writer_for(PROJECT) is other.forge
        assert await other.forges.writer_for(PROJECT).bot_ids() == {92}
