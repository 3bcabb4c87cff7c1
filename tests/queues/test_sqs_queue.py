"""What only the queue of the cloud does: how it is set up, and what AWS says that no stand-in of it says.

The answers are played by a server of a few lines, in words that were not compared with AWS itself.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from hummingbird.app.stores import sqs_region
from hummingbird.core.errors import InvalidRequest, PlatformError, QueueUnusable, ReceiptExpired
from hummingbird.core.limits import ERROR_TEXT_CHARS, QUEUE_ATTEMPTS
from hummingbird.core.protocols.queues import QueueMessage, SuccessorMessage
from hummingbird.lab.http_server import LabServer
from hummingbird.queues.sqs import SqsQueue
from tests.contracts.queues.backends.ministack import SURROUNDINGS

_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo"
_POLICY = {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:123456789012:dead.fifo", "maxReceiveCount": 3}
_WELL = {"FifoQueue": "true", "MaximumMessageSize": "1048576", "RedrivePolicy": json.dumps(_POLICY)}
_HELD = QueueMessage("id", "a", "body", 1, "receipt")
_RECEIVED = {
    "MessageId": "id",
    "ReceiptHandle": "receipt",
    "Body": "hello",
    "Attributes": {"MessageGroupId": "a", "ApproximateReceiveCount": "2"},
}


class Aws:
    """Answers each call by what is in `answers` for it, the last one for ever; keeps what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, dict[str, Any]]]] = {
            "GetQueueAttributes": [(200, {"Attributes": _WELL})],
            "GetQueueUrl": [(200, {"QueueUrl": _URL.replace("orders", "dead")})],
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def refuse(self, verb: str, code: str, words: str) -> None:
        self.answers[verb] = [(400, {"__type": f"com.amazonaws.sqs#{code}", "message": words})]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (part := await receive()).get("more_body"):
            body += part["body"]
        verb = dict(scope["headers"])[b"x-amz-target"].decode().partition(".")[2]
        self.asked.append((verb, json.loads(body + part["body"])))
        answers = self.answers[verb]
        status, answer = answers.pop(0) if len(answers) > 1 else answers[0]
        headers = [(b"content-type", b"application/x-amz-json-1.0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


@pytest.fixture
def aws() -> Aws:
    return Aws()


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SURROUNDINGS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def endpoint(aws: Aws) -> Iterator[str]:
    with LabServer({"aws": aws}) as serving:
        yield serving.url("aws")


@pytest.fixture
async def queue(endpoint: str) -> AsyncIterator[SqsQueue]:
    queue = SqsQueue(_URL, 60, region="us-east-1", endpoint=endpoint)
    yield queue
    await queue.close()


async def test_a_queue_that_is_no_fifo_queue_is_refused_by_a_sentence(queue: SqsQueue, aws: Aws) -> None:
    aws.answers["GetQueueAttributes"] = [(200, {"Attributes": {**_WELL, "FifoQueue": "false"}})]
    with pytest.raises(QueueUnusable, match="not a FIFO queue; create one"):
        await queue.send("1", group="a", dedup_id="1")
    assert [verb for verb, _ in aws.asked] == ["GetQueueAttributes"]


@pytest.mark.parametrize(
    ("attributes", "weakness", "receives"),
    [
        ({"RedrivePolicy": ""}, "has no queue for dead letters", 3),
        ({"RedrivePolicy": "[]"}, "has no queue for dead letters", 3),
        ({"RedrivePolicy": "not json"}, "has no queue for dead letters", 3),
        ({"RedrivePolicy": json.dumps({**_POLICY, "maxReceiveCount": 1})}, "has a maxReceiveCount of 1", 1),
        ({"RedrivePolicy": json.dumps({**_POLICY, "maxReceiveCount": 1000})}, "", 3),
        ({"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}, "", 3),
        ({"MaximumMessageSize": "262144"}, "", 3),
        ({"MaximumMessageSize": "65536"}, "set its MaximumMessageSize to 262144", 3),
    ],
)
async def test_a_queue_that_somebody_else_set_up_is_used(
    queue: SqsQueue, aws: Aws, attributes: dict[str, str], weakness: str, receives: int
) -> None:
    """What could be better is a sentence for `doctor`."""
    aws.answers["GetQueueAttributes"] = [(200, {"Attributes": {**_WELL, **attributes}})]
    aws.answers["SendMessage"] = [(200, {"MessageId": "1"})]
    await queue.send("1", group="a", dedup_id="1")
    found = await queue.find_weaknesses()
    assert [weakness in one for one in found] == ([True] if weakness else [])
    assert queue.most_receives == receives


@pytest.mark.parametrize(
    ("policy", "receives", "verbs"),
    [
        ({**_POLICY, "maxReceiveCount": 3}, 3, ["ChangeMessageVisibility"]),
        ({**_POLICY, "maxReceiveCount": 10}, 3, ["GetQueueUrl", "SendMessage", "DeleteMessage"]),
        ({}, 3, ["DeleteMessage"]),
    ],
)
async def test_a_message_is_given_up_whatever_the_queue_says(
    queue: SqsQueue, aws: Aws, policy: dict[str, Any], receives: int, verbs: list[str]
) -> None:
    aws.answers["GetQueueAttributes"] = [(200, {"Attributes": {**_WELL, "RedrivePolicy": json.dumps(policy)}})]
    aws.answers |= {verb: [(200, {"MessageId": "2"})] for verb in ("SendMessage", "DeleteMessage")}
    aws.answers["ChangeMessageVisibility"] = [(200, {})]
    assert await queue.bury(QueueMessage("id", "a", "body", receives, "receipt")) == bool(policy)
    assert [verb for verb, _ in aws.asked] == ["GetQueueAttributes", *verbs]


async def test_a_message_that_may_not_be_moved_goes_round_until_its_queue_moves_it(queue: SqsQueue, aws: Aws) -> None:
    """An existing role may lack the right to send to the queue of dead letters."""
    policy = json.dumps({**_POLICY, "maxReceiveCount": 10})
    aws.answers["GetQueueAttributes"] = [(200, {"Attributes": {**_WELL, "RedrivePolicy": policy}})]
    aws.refuse("SendMessage", "AccessDenied", "Access to the resource is denied.")
    aws.answers["ChangeMessageVisibility"] = [(200, {})]
    assert await queue.bury(QueueMessage("id", "a", "body", 3, "receipt"))
    assert [verb for verb, _ in aws.asked][-1] == "ChangeMessageVisibility"


_EXPIRED = "Value receipt for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
_TOO_LONG = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message "


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        ("InvalidParameterValue", _EXPIRED, ReceiptExpired),
        ("MessageNotInflight", "The message is not in flight.", ReceiptExpired),
        ("ReceiptHandleIsInvalid", "The input receipt handle is invalid.", ReceiptExpired),
        ("InvalidParameterValue", _TOO_LONG + "is beyond the limit [43200 seconds].", InvalidRequest),
        ("AccessDenied", "Access to the resource is denied.", QueueUnusable),
        ("QueueDoesNotExist", "The specified queue does not exist.", QueueUnusable),
    ],
)
async def test_a_refusal_of_aws_becomes_the_error_that_says_who_must_act(
    queue: SqsQueue, aws: Aws, code: str, words: str, kind: type[PlatformError]
) -> None:
    aws.refuse("ChangeMessageVisibility", code, words)
    with pytest.raises(PlatformError) as caught:
        await queue.extend_lease(_HELD, 43_200)
    assert type(caught.value) is kind
    assert str(caught.value).endswith(".")


@pytest.mark.thorough
async def test_what_is_sent_anew_for_who_has_left_is_deleted_whatever_becomes_of_the_rest(
    queue: SqsQueue, aws: Aws
) -> None:
    """Else it would be there twice, and the one that nobody tried a dead letter."""
    tries = {"b": "1", "a": "3"}
    received = [
        {**_RECEIVED, "MessageId": group, "Attributes": {"MessageGroupId": group, "ApproximateReceiveCount": receives}}
        for group, receives in tries.items()
    ]
    aws.answers |= {
        "ReceiveMessage": [(200, {"Messages": received})],
        "SendMessageBatch": [(200, {"Successful": []})],
        "DeleteMessage": [(200, {})],
    }
    aws.refuse("ChangeMessageVisibility", "ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
    await queue.check()
    leaving = asyncio.create_task(queue.receive(10, 0))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait((leaving,))
    await queue.close()
    asked = [verb for verb, _ in aws.asked]
    assert asked[asked.index("ReceiveMessage") + 1 :] == [
        "SendMessageBatch",
        "DeleteMessage",
        "ChangeMessageVisibility",
    ]


@pytest.mark.thorough
async def test_messages_are_replaced_by_few_requests_and_the_first_is_deleted_last(queue: SqsQueue, aws: Aws) -> None:
    """A process that dies between requests leaves messages twice; the first one locks its group until the end."""
    aws.answers |= {
        "ChangeMessageVisibilityBatch": [(200, {"Successful": []})],
        "SendMessageBatch": [(200, {"Successful": []})],
        "DeleteMessageBatch": [(200, {"Successful": []})],
        "DeleteMessage": [(200, {})],
    }
    await queue.check()
    aws.asked.clear()
    messages = [QueueMessage(f"id{number}", "a", "body", 2, f"receipt{number}") for number in range(10)]
    await queue.replace(messages, [SuccessorMessage(f"{number}", f"{number}") for number in range(10)])
    (kept, sent, deleted, last) = (asked for _, asked in aws.asked)
    receipts = [message.receipt for message in messages]
    assert [one["ReceiptHandle"] for one in kept["Entries"]] == receipts
    assert [one["MessageBody"] for one in sent["Entries"]] == [f"{number}" for number in range(10)]
    assert [*(one["ReceiptHandle"] for one in deleted["Entries"]), last["ReceiptHandle"]] == [
        *receipts[1:],
        receipts[0],
    ]


@pytest.mark.thorough
async def test_one_refused_message_of_several_is_told(queue: SqsQueue, aws: Aws) -> None:
    refused = {"Id": "0", "Code": "InternalError", "Message": "Try again.", "SenderFault": False}
    aws.answers |= {
        "ChangeMessageVisibilityBatch": [(200, {"Successful": []})],
        "SendMessageBatch": [(200, {"Successful": [], "Failed": [refused]})],
    }
    with pytest.raises(QueueUnusable, match=r"refused a call \(InternalError\): Try again\."):
        await queue.replace((_HELD,), (SuccessorMessage("1", "1"),))


@pytest.mark.thorough
async def test_what_aws_says_is_shortened_and_printable(queue: SqsQueue, aws: Aws) -> None:
    aws.refuse("DeleteMessage", "AccessDenied", "no\x1b[31m\n" * 5_000)
    with pytest.raises(QueueUnusable) as caught:
        await queue.delete(_HELD)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < ERROR_TEXT_CHARS + 300


@pytest.mark.thorough
async def test_a_receive_that_is_tried_again_has_the_same_attempt_id(queue: SqsQueue, aws: Aws) -> None:
    """So that SQS gives the same messages again; ministack, on which the contract is played, knows no such thing."""
    aws.answers["ReceiveMessage"] = [(500, {}), (200, {"Messages": [_RECEIVED]}), (200, {})]
    assert list(await queue.receive(1, 0)) == [QueueMessage("id", "a", "hello", 2, "receipt")]
    assert not await queue.receive(1, 0)
    attempts = [asked["ReceiveRequestAttemptId"] for verb, asked in aws.asked if verb == "ReceiveMessage"]
    assert attempts[0] == attempts[1] != attempts[2]


@pytest.mark.thorough
async def test_a_queue_that_is_asked_too_often_is_asked_again(queue: SqsQueue, aws: Aws) -> None:
    aws.refuse("SendMessage", "RequestThrottled", "Request is throttled.")
    aws.answers["SendMessage"].append((200, {"MessageId": "sent"}))
    assert await queue.send("1", group="a", dedup_id="1") == "sent"


@pytest.mark.thorough
async def test_a_queue_that_stays_busy_says_so(queue: SqsQueue, aws: Aws) -> None:
    aws.refuse("DeleteMessage", "ThrottlingException", "Rate exceeded")
    with pytest.raises(QueueUnusable, match=r"asked too often; ask less often"):
        await queue.delete(_HELD)
    assert len(aws.asked) == QUEUE_ATTEMPTS


@pytest.mark.thorough
async def test_a_queue_that_cannot_be_reached_is_told_in_a_sentence(aws: Aws) -> None:
    with LabServer({"aws": aws}) as serving:
        endpoint = serving.url("aws")
    queue = SqsQueue(_URL, 60, region="us-east-1", endpoint=endpoint)
    with pytest.raises(QueueUnusable, match=r"cannot be reached: .* Check its address"):
        await queue.receive(1, 0)
    await queue.close()


@pytest.mark.thorough
async def test_a_queue_without_credentials_says_so(queue: SqsQueue, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(QueueUnusable, match="credentials"):
        await queue.receive(1, 0)
    assert not aws.asked


async def test_the_region_of_the_environment_holds_where_the_address_names_none(
    endpoint: str, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod has AWS_REGION, which boto3 does not read."""
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    url = "https://queues.example/123456789012/orders.fifo"
    queue = SqsQueue(url, 60, region=sqs_region(url), endpoint=endpoint)
    try:
        await queue.check()
    finally:
        await queue.close()
    assert aws.asked
