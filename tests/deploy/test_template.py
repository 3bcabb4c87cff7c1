"""The template of queues and bucket is sound by cfn-lint, says what the code counts on, and works when set up."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.doctor import CheckStatus
from hummingbird.app.doctor.platform_checks import platform_checks
from hummingbird.app.doctor.runner import run_checks
from hummingbird.core.limits import QUEUE_BODY_BYTES, QUEUE_RECEIVES, QUEUE_TAKEN_S
from hummingbird.core.protocols.queues import QueueMessage
from hummingbird.queues.sqs import SqsClient, SqsInbox, SqsQueue
from hummingbird.service.envelopes import EventDelivery, delivery_from_sqs
from hummingbird.service.event_parser import CONFIDENTIAL_NOTE, parse_event
from tests.app.doctor.examining import doctor_context, tried
from tests.contracts.queues.backends.ministack import REGION, SURROUNDINGS
from tests.deploy.stack import TEMPLATE, TRANSFORM, Stack, properties, stacked, template

SOURCES = Path(__file__).parents[2] / "src" / "hummingbird"
WEBHOOKS = Path(__file__).parents[1] / "fixtures" / "gitlab" / "webhooks"
NOTE = (WEBHOOKS / "derived_note_mr_internal_reply_17x.json").read_text(encoding="utf-8")
QUEUES = {"EventsQueue": "EventsDeadLetters", "WorkQueue": "WorkDeadLetters"}
SETTINGS = {"EventsQueueUrl": "sqs_queue_url", "WorkQueueUrl": "sqs_fifo_queue_url", "SessionStore": "session_store"}


def linted(path: Path) -> subprocess.CompletedProcess[str]:
    """Notices count as errors do."""
    program = str(Path(sys.executable).with_name("cfn-lint"))
    argv = [program, "--include-checks", "I", "--regions", REGION, "eu-central-1", "-t", str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.thorough
def test_cfn_lint_finds_nothing_to_say() -> None:
    said = linted(TEMPLATE)
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.thorough
def test_cfn_lint_would_say_something(tmp_path: Path) -> None:
    spoilt = tmp_path / "template.yaml"
    spoilt.write_text(TEMPLATE.read_text(encoding="utf-8").replace("VisibilityTimeout", "VisibilityTimout"))
    said = linted(spoilt)
    assert said.returncode != 0
    assert "VisibilityTimout" in said.stdout


def test_it_is_a_template_of_sam_that_plain_cloudformation_can_create() -> None:
    assert TRANSFORM in TEMPLATE.read_text(encoding="utf-8")
    kinds = {one["Type"] for one in template()["Resources"].values()}
    assert not [kind for kind in kinds if kind.startswith("AWS::Serverless")]


def test_events_are_held_for_a_minute_and_work_for_half_an_hour() -> None:
    assert properties("EventsQueue")["VisibilityTimeout"] == 60
    assert properties("WorkQueue")["VisibilityTimeout"] == 1800
    assert properties("WorkQueue")["VisibilityTimeout"] >= QUEUE_TAKEN_S, "what `serve` asks for itself"


@pytest.mark.parametrize("queue", QUEUES)
def test_what_fails_as_often_as_the_code_tries_is_a_dead_letter(queue: str) -> None:
    redrive = properties(queue)["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == QUEUE_RECEIVES
    assert redrive["deadLetterTargetArn"] == {"Fn::GetAtt": [QUEUES[queue], "Arn"]}
    dead = properties(QUEUES[queue])
    assert dead.get("FifoQueue") == properties(queue).get("FifoQueue")
    assert dead["MessageRetentionPeriod"] >= properties(queue)["MessageRetentionPeriod"]


def test_each_queue_is_encrypted_and_carries_what_the_code_sends() -> None:
    for name in (*QUEUES, *QUEUES.values()):
        assert properties(name)["SqsManagedSseEnabled"] is True
        assert properties(name)["MaximumMessageSize"] == QUEUE_BODY_BYTES


def test_the_subscription_lets_every_event_in_that_the_code_reads() -> None:
    subscription = properties("EventsSubscription")
    assert set(subscription["FilterPolicy"]["event_type"]) == {"pipeline", "merge_request", "note", CONFIDENTIAL_NOTE}
    assert subscription["FilterPolicyScope"] == "MessageAttributes"
    assert subscription["RawMessageDelivery"] is False


def test_the_bucket_is_private_encrypted_and_reached_by_tls_alone() -> None:
    bucket = properties("Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert bucket["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert "VersioningConfiguration" not in bucket
    assert template()["Resources"]["Bucket"]["DeletionPolicy"] == "Retain"
    [statement] = properties("BucketPolicy")["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2, "the bucket and what is in it"


def test_sessions_expire_only_where_the_parameter_says_so() -> None:
    assert template()["Parameters"]["ExpireAfterDays"]["Default"] == 0
    unfinished, old = properties("Bucket")["LifecycleConfiguration"]["Rules"]
    assert unfinished["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    condition, rule, otherwise = old["Fn::If"]
    assert rule["ExpirationInDays"] == {"Ref": "ExpireAfterDays"}
    assert otherwise == {"Ref": "AWS::NoValue"}
    assert template()["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "ExpireAfterDays"}, 0]}]}


def granted() -> dict[str, set[str]]:
    """Actions by the resource that they are allowed on."""
    found: dict[str, set[str]] = {}
    for statement in properties("AgentPolicy")["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        actions = statement["Action"]
        found[json.dumps(statement["Resource"])] = set([actions] if isinstance(actions, str) else actions)
    return found


@pytest.mark.thorough
def test_every_call_to_sqs_in_the_sources_is_allowed_and_no_other() -> None:
    """Every call to SQS has its verb written out in the sources."""
    written = "".join(path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py"))
    verbs = {"receive_message", *re.findall(r'\.call\(\s*"([a-z]+_[a-z_]+)"', written)}
    called = {"sqs:" + "".join(part.capitalize() for part in verb.split("_")) for verb in verbs}
    assert len(called) > 5, "or the pattern finds nothing any more"
    allowed = {action for actions in granted().values() for action in actions}
    assert {action for action in allowed if action.startswith("sqs:")} == called


def test_the_agent_may_touch_its_own_queues_and_bucket_alone() -> None:
    resources = set(granted())
    assert resources == {
        *(json.dumps({"Fn::GetAtt": [name, "Arn"]}) for name in (*QUEUES, "WorkDeadLetters")),
        json.dumps({"Fn::GetAtt": ["Bucket", "Arn"]}),
        json.dumps({"Fn::Sub": "${Bucket.Arn}/*"}),
    }
    assert not [action for actions in granted().values() for action in actions if "*" in action]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Found by the environment, as it would be in a pod."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SURROUNDINGS, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}.items():
            patch.setenv(name, value)
        patch.setattr("hummingbird.queues.sqs.QUEUE_POLL_S", 1.0)  # closing waits for the end of a poll
        patch.setattr("hummingbird.queues.sqs.QUEUE_POLL_S", 1.0)
        with stacked(tmp_path_factory.mktemp("stack")) as made:
            patch.setenv("AWS_ENDPOINT_URL", made.endpoint)
            yield made


def settings(stack: Stack) -> str:
    """The outputs, as they are."""
    return "\n".join(f"{key}: {stack.outputs[output]}" for output, key in SETTINGS.items())


@pytest.mark.thorough
def test_doctor_is_content_with_what_was_set_up(stack: Stack, tmp_path: Path) -> None:
    parts = ("queue", "events' queue", "store")
    found = tried(
        lambda of: [one for one in platform_checks(of) if one.part in parts], doctor_context(tmp_path, settings(stack))
    )
    assert {one.part for one in found} == set(parts)
    assert {one.standing for one in found} == {CheckStatus.OK}, found


def test_every_output_that_is_a_setting_says_which_one() -> None:
    told = {name: output["Description"] for name, output in template()["Outputs"].items()}
    assert {name: f"settings.{key}" for name, key in SETTINGS.items()}.items() <= told.items()


@pytest.mark.thorough
@pytest.mark.parametrize("attributes", [{}, {"source": "gitlab"}], ids=["no-source", "gitlab"])
async def test_an_internal_note_comes_through_the_topic_into_our_inbox(
    stack: Stack, attributes: Mapping[str, str]
) -> None:
    stack.publish(NOTE, event_type=CONFIDENTIAL_NOTE, **attributes)
    inbox = SqsInbox(stack.outputs["EventsQueueUrl"], region=REGION, endpoint=stack.endpoint)
    try:
        [letter] = await inbox.receive(5)
        delivery = delivery_from_sqs(letter.body, letter.attributes)
        assert isinstance(delivery, EventDelivery)
        assert parse_event(delivery.body) == parse_event(NOTE.encode())
        await inbox.delete(letter)
    finally:
        await inbox.close()


@pytest.mark.thorough
async def test_events_of_other_kinds_and_sources_do_not_come_through(stack: Stack) -> None:
    stack.publish("{}", event_type="push")
    stack.publish("{}", event_type="note", source="elsewhere")
    stack.publish("{}")
    inbox = SqsInbox(stack.outputs["EventsQueueUrl"], region=REGION, endpoint=stack.endpoint)
    try:
        assert await inbox.receive(1) == []
    finally:
        await inbox.close()


@pytest.mark.thorough
async def test_work_goes_through_the_queue_once_and_into_its_dead_letters(stack: Stack) -> None:
    queue = SqsQueue(stack.outputs["WorkQueueUrl"], QUEUE_TAKEN_S, region=REGION, endpoint=stack.endpoint)
    try:
        await queue.check()
        first = await queue.send("work", group="session", dedup_id="once")
        assert await queue.send("work", group="session", dedup_id="once") == first
        for _ in range(QUEUE_RECEIVES):
            message = await received(queue)
            assert (message.body, message.group) == ("work", "session")
            await queue.postpone(message, 0)
        assert await queue.receive(1, 1) == []
        [letter] = await queue.list_dead_letters()
        assert letter.body == "work"
        await queue.delete_dead_letter(letter.id)
        assert await queue.list_dead_letters() == []
    finally:
        await queue.close()


async def received(queue: SqsQueue) -> QueueMessage:
    [message] = await queue.receive(1, 5)
    return message


@pytest.mark.thorough
async def test_the_agent_may_do_with_each_queue_what_it_does_there(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every verb of the port is played, the calls are listened to, and the policy allows those and no other."""
    done: dict[str, set[str]] = {}
    answer = SqsClient._call_blocking

    def overheard(self: SqsClient, verb: str, arguments: Mapping[str, Any]) -> Any:
        queue = str(arguments.get("QueueUrl") or arguments.get("QueueName")).rpartition("/")[2]
        done.setdefault(queue, set()).add("sqs:" + "".join(part.capitalize() for part in verb.split("_")))
        return answer(self, verb, arguments)

    monkeypatch.setattr(SqsClient, "_call_blocking", overheard)
    await play_work(SqsQueue(stack.outputs["WorkQueueUrl"], QUEUE_TAKEN_S, region=REGION, endpoint=stack.endpoint))
    stack.publish(NOTE, event_type=CONFIDENTIAL_NOTE)
    leaving, inbox = (
        SqsInbox(stack.outputs["EventsQueueUrl"], region=REGION, endpoint=stack.endpoint) for _ in range(2)
    )
    receiving = asyncio.create_task(leaving.receive(5))
    await asyncio.sleep(0)
    receiving.cancel()
    await leaving.close()
    [letter] = await inbox.receive(5)
    await inbox.delete(letter)
    await inbox.close()
    events = [one for one in platform_checks(doctor_context(tmp_path, settings(stack))) if one.part == "events' queue"]
    assert [one.standing async for one in run_checks(events, 30)] == [CheckStatus.OK]
    allowed = {name: granted()[json.dumps({"Fn::GetAtt": [name, "Arn"]})] for name in (*QUEUES, "WorkDeadLetters")}
    assert {name: done[stack.outputs[f"{name}Url"].rpartition("/")[2]] for name in allowed} == allowed


async def play_work(queue: SqsQueue) -> None:
    """All that a queue can be asked for."""
    await queue.check()
    await queue.send("play", group="play", dedup_id="play")
    for _ in range(QUEUE_RECEIVES):
        message = await received(queue)
        await queue.extend_lease(message, 60)
        await queue.postpone(message, 0)
    assert await queue.receive(1, 1) == []
    [letter] = await queue.list_dead_letters()
    await queue.retry_dead_letter(letter.id)
    await queue.delete(await received(queue))
    await queue.close()


@pytest.mark.thorough
def test_the_policy_that_was_set_up_names_what_was_set_up(stack: Stack) -> None:
    """No placeholder is left in it."""
    accounts: Any = stack.client("iam")
    policy = accounts.get_policy(PolicyArn=stack.outputs["AgentPolicyArn"])["Policy"]
    version = accounts.get_policy_version(PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"])
    resources = [one["Resource"] for one in version["PolicyVersion"]["Document"]["Statement"]]
    bucket = stack.outputs["SessionStore"].removeprefix("s3://")
    queues = [
        stack.outputs[name].rpartition("/")[2] for name in ("EventsQueueUrl", "WorkQueueUrl", "WorkDeadLettersUrl")
    ]
    ends = [one.rpartition(":")[2] for one in resources]
    assert ends == [*queues, bucket, f"{bucket}/*"]
