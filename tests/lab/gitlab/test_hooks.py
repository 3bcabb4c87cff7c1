"""Webhooks, from their subscription to the receiver."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.webhook_delivery import FAILURES_UNTIL_OFF, WebhookSender, sign_webhook, webhook_sender
from hummingbird.lab.gitlab.write import ci, merge_request_changes
from tests.lab.gitlab.receiving import Receiver
from tests.lab.gitlab.written_case import Person, served

VECTOR = json.loads((Path(__file__).parents[2] / "fixtures/gitlab/webhooks/signing_token_vector.json").read_text())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.fixture
def hooks(lab: GitLabLab) -> WebhookSender:
    return webhook_sender(lab.world)


@pytest.fixture
def maintainer(lab: GitLabLab) -> Iterator[Person]:
    found = Person(lab, "maintainer")
    yield found
    found.close()


@pytest.fixture
def bot(lab: GitLabLab) -> Iterator[Person]:
    found = Person(lab, "bot")
    yield found
    found.close()


def test_the_signature_is_that_of_the_published_vector() -> None:
    headers = VECTOR["headers"]
    made = sign_webhook(
        VECTOR["signing_token"],
        headers["webhook-id"],
        int(headers["webhook-timestamp"]),
        VECTOR["raw_body"].encode(),
    )
    assert made == headers["webhook-signature"]
    with pytest.raises(ValueError, match="whsec_"):
        sign_webhook("secret", "id", 1, b"")


def test_a_note_arrives_with_all_headers_and_a_signature(hooks: WebhookSender, receiver: Receiver, bot: Person) -> None:
    hooks.clock = lambda: 1_780_000_000.0
    hooks.subscribe(receiver.url, "note_events", token="secret", signing_token=VECTOR["signing_token"])
    note = bot.mr.notes.create({"body": "Hellö"})
    hooks.wait_until_sent()
    ((headers, body),) = receiver.got
    said = json.loads(body)
    assert (said["object_attributes"]["id"], said["object_attributes"]["note"]) == (note.id, "Hellö")
    assert headers["User-Agent"].startswith("GitLab/18.")
    assert (headers["X-Gitlab-Event"], headers["X-Gitlab-Token"]) == ("Note Hook", "secret")
    assert headers["webhook-id"] == headers["Idempotency-Key"]
    assert headers["webhook-timestamp"] == "1780000000"
    assert headers["webhook-signature"] == sign_webhook(
        VECTOR["signing_token"], headers["webhook-id"], 1_780_000_000, body
    )
    assert headers["X-Gitlab-Instance"] == hooks.world.url
    assert {"X-Gitlab-Event-UUID", "X-Gitlab-Webhook-UUID"} <= set(headers)
    assert hooks.deliveries[0].status == 200


def test_two_hooks_share_the_event_and_not_the_key(hooks: WebhookSender, receiver: Receiver, bot: Person) -> None:
    for _ in range(2):
        hooks.subscribe(receiver.url, "note_events")
    bot.mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    (first, _), (second, _) = receiver.got
    assert first["X-Gitlab-Event-UUID"] == second["X-Gitlab-Event-UUID"]
    assert first["Idempotency-Key"] != second["Idempotency-Key"]
    assert first["X-Gitlab-Webhook-UUID"] != second["X-Gitlab-Webhook-UUID"]
    assert "X-Gitlab-Token" not in first
    assert "webhook-signature" not in first


def test_internal_notes_go_to_those_alone_who_subscribed_to_confidential_ones(
    hooks: WebhookSender, receiver: Receiver, bot: Person
) -> None:
    public = hooks.subscribe(receiver.url, "note_events")
    secret = hooks.subscribe(receiver.url, "confidential_note_events")
    bot.mr.notes.create({"body": "psst", "internal": True})
    bot.mr.notes.create({"body": "hello"})
    hooks.wait_until_sent()
    assert [(each.hook_id, each.event) for each in hooks.deliveries] == [
        (secret.id, "Confidential Note Hook"),
        (public.id, "Note Hook"),
    ]


def test_commands_alone_send_no_note_and_the_merge_request_tells_what_they_did(
    hooks: WebhookSender, receiver: Receiver, bot: Person
) -> None:
    hooks.subscribe(receiver.url, "note_events", "merge_requests_events")
    bot.mr.notes.create({"body": "/close"})
    hooks.wait_until_sent()
    ((_, body),) = receiver.got
    assert json.loads(body)["object_attributes"]["action"] == "close"


@pytest.mark.thorough
def test_a_title_tells_an_update_and_no_note(
    lab: GitLabLab, hooks: WebhookSender, receiver: Receiver, maintainer: Person
) -> None:
    hooks.subscribe(receiver.url, "note_events", "confidential_note_events", "merge_requests_events")
    maintainer.on_mr("PUT", "", title="Other")
    hooks.wait_until_sent()
    assert receiver.events() == ["Merge Request Hook"]
    assert lab.run_in_server(lambda world: world.merge_request.notes[-1].system)


def test_every_turn_of_a_pipeline_and_of_its_jobs_is_told(
    lab: GitLabLab, hooks: WebhookSender, receiver: Receiver
) -> None:
    hooks.subscribe(receiver.url, "pipeline_events", "job_events")
    world = lab.world
    lab.run_in_server(lambda world: ci.retry_job(world, world.jobs[0], world.user(12)))
    lab.run_in_server(lambda world: ci.finish_pipeline(world, world.pipelines[0], "failed"))
    hooks.wait_until_sent()
    assert receiver.events() == ["Job Hook", "Pipeline Hook", "Job Hook", "Pipeline Hook"]
    told = [json.loads(body) for _, body in receiver.got]
    assert [each["object_attributes"]["status"] for each in told[1::2]] == ["running", "failed"]
    assert [each["user"]["username"] for each in told[1::2]] == ["developer", "developer"]
    assert told[3]["builds"][0]["id"] == world.jobs[-1].id


def test_a_fork_is_told_of_its_own_pipelines_and_the_target_is_not(
    lab: GitLabLab, hooks: WebhookSender, receiver: Receiver
) -> None:
    assert lab.world.fork is not None
    lab.world.pipelines[0].project_id = lab.world.fork.id
    hooks.subscribe(receiver.url, "pipeline_events")
    of_fork = hooks.subscribe(receiver.url, "pipeline_events", project=lab.world.fork)
    lab.run_in_server(lambda world: ci.finish_pipeline(world, world.pipelines[0], "success"))
    hooks.wait_until_sent()
    assert [each.hook_id for each in hooks.deliveries] == [of_fork.id]


@pytest.mark.thorough
def test_nothing_is_sent_again_by_itself_and_a_resend_keeps_its_key(
    hooks: WebhookSender, receiver: Receiver, bot: Person, maintainer: Person
) -> None:
    receiver.statuses = [500]
    hook = hooks.subscribe(receiver.url, "note_events")
    bot.mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    assert len(receiver.got) == 1
    path = f"/hooks/{hook.id}/events"
    (sent,) = maintainer.ask("GET", path).json()
    assert sent["response_status"] == "500"
    for _ in range(5):
        assert maintainer.ask("POST", f"{path}/{sent['id']}/resend").status_code == 201
    assert maintainer.ask("POST", f"{path}/{sent['id']}/resend").status_code == 429
    hooks.wait_until_sent()
    assert len({headers["Idempotency-Key"] for headers, _ in receiver.got}) == 1
    assert len({body for _, body in receiver.got}) == 1


@pytest.mark.thorough
def test_a_failing_hook_rests_after_four_failures_and_longer_each_time(
    lab: GitLabLab, hooks: WebhookSender, receiver: Receiver, maintainer: Person
) -> None:
    now = 1_000_000.0
    hooks.clock = lambda: now
    hook = hooks.subscribe(receiver.url, "merge_requests_events")

    def change(status: int) -> None:
        receiver.statuses = [status]
        lab.run_in_server(
            lambda world: merge_request_changes.change_title(
                world, world.merge_request, world.user(11), f"T{len(world.merge_request.notes)}"
            )
        )
        hooks.wait_until_sent()

    for status in (404, 500, 302, 503):
        change(status)
    assert maintainer.ask("GET", f"/hooks/{hook.id}").json()["alert_status"] == "temporarily_disabled"
    change(200)
    assert len(receiver.got) == 4
    now += 60
    change(500)
    assert hook.disabled_until == now + 120
    now += 120
    change(200)
    assert (len(receiver.got), hook.failures, hook.alert_status(now)) == (6, 0, "executable")
    hook.failures = FAILURES_UNTIL_OFF
    now += 10**9
    change(200)
    assert (len(receiver.got), hook.alert_status(now)) == (6, "disabled")
    assert maintainer.ask("POST", f"/hooks/{hook.id}/test/merge_requests_events").status_code == 201
    hooks.wait_until_sent()
    assert "action" not in json.loads(receiver.got[-1][1])["object_attributes"]
    assert hook.alert_status(now) == "executable"


@pytest.mark.thorough
def test_a_receiver_that_is_not_there_counts_as_a_failure(
    hooks: WebhookSender, receiver: Receiver, bot: Person
) -> None:
    nobody = hooks.subscribe("http://127.0.0.1:1/", "note_events")
    abroad = hooks.subscribe("https://hooks.example.com/", "note_events")
    bot.mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    assert [each.status for each in hooks.deliveries] == [None, None]
    assert (nobody.failures, abroad.failures) == (1, 1)
    assert "this machine" in hooks.deliveries[1].problem


@pytest.mark.thorough
def test_maintainers_manage_hooks_and_secrets_are_never_shown(
    hooks: WebhookSender, receiver: Receiver, maintainer: Person, bot: Person
) -> None:
    made = maintainer.project.hooks.create(
        {
            "url": receiver.url,
            "token": "top-secret",
            "signing_token": VECTOR["signing_token"],
            "push_events": False,
            "note_events": True,
            "confidential_note_events": True,
        }
    )
    shown = maintainer.ask("GET", f"/hooks/{made.id}")
    assert (shown.json()["token_present"], shown.json()["signing_token_present"]) == (True, True)
    assert "top-secret" not in shown.text
    assert "whsec_" not in shown.text
    assert (shown.json()["confidential_note_events"], shown.json()["push_events"]) == (True, False)
    assert len(maintainer.project.hooks.list(get_all=True)) == 1
    assert bot.ask("GET", "/hooks").status_code == 403
    bot.mr.notes.create({"body": "x", "internal": True})
    hooks.wait_until_sent()
    assert receiver.events() == ["Confidential Note Hook"]
    assert maintainer.ask("PUT", f"/hooks/{made.id}", confidential_note_events=False).status_code == 200
    assert hooks.hooks[0].flags == {"note_events"}
    maintainer.project.hooks.delete(made.id)
    assert hooks.hooks == []


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [{"url": "ftp://x"}, {"url": "http://127.0.0.1/", "signing_token": "whsec_no"}])
def test_a_hook_needs_an_address_and_a_signing_token_of_32_bytes(maintainer: Person, wrong: dict[str, str]) -> None:
    assert maintainer.ask("POST", "/hooks", **wrong).status_code in (400, 422)


@pytest.mark.thorough
def test_an_event_above_25_megabytes_is_never_sent(lab: GitLabLab, hooks: WebhookSender, receiver: Receiver) -> None:
    hooks.subscribe(receiver.url, "merge_requests_events")
    huge = "x" * (9 * 1024 * 1024)  # it is told three times: in the attributes, and before and after
    edit = merge_request_changes.MergeRequestEdit(description=huge)
    lab.world.merge_request.description = huge + "y"
    lab.run_in_server(lambda world: merge_request_changes.apply_edit(world, world.merge_request, world.user(11), edit))
    hooks.wait_until_sent()
    assert receiver.got == []
    assert "too large" in hooks.deliveries[0].problem
