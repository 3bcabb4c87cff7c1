"""The template of deploy/sam: read as CloudFormation reads it, and set up on ministack.

`sam` itself is not needed: nothing in the template is of its own types, so its transform changes nothing, and is left
out for ministack, which has none.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import boto3.session

from tests.contracts.queues.backends.ministack import REGION, _is_healthy
from tests.contracts.storage.backends.serving import served
from tests.real_parts import missing

TEMPLATE = Path(__file__).parents[2] / "deploy" / "sam" / "template.yaml"
TRANSFORM = "Transform: AWS::Serverless-2016-10-31\n"
_SERVICES = "sqs,s3,sns,iam,cloudformation"
_PATIENCE_S = 60.0


def template() -> Mapping[str, Any]:
    """With its short forms written out: `!GetAtt A.B` is {"Fn::GetAtt": ["A", "B"]}."""
    from cfnlint.decode import decode  # type: ignore[import-untyped]  # it has hints and does not say so

    read, faults = decode(str(TEMPLATE))
    assert not faults
    found: Mapping[str, Any] = read
    return found


def properties(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = template()["Resources"][name]["Properties"]
    return found


@dataclass(frozen=True)
class Stack:
    endpoint: str
    topic: str
    outputs: Mapping[str, str]

    def client(self, service: str) -> Any:
        return boto3.session.Session(region_name=REGION).client(service, endpoint_url=self.endpoint)

    def publish(self, message: str, **attributes: str) -> None:
        named = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        self.client("sns").publish(TopicArn=self.topic, Message=message, MessageAttributes=named)


@contextmanager
def stacked(folder: Path) -> Iterator[Stack]:
    """Where ministack's SURROUNDINGS are in force."""
    if find_spec("ministack") is None:
        missing("ministack is not installed: it is one of the development dependencies.")
    given = {**os.environ, "SERVICES": _SERVICES, "BIND_HOST": "127.0.0.1"}

    def words(port: int) -> Sequence[str]:
        return ("env", f"GATEWAY_PORT={port}", sys.executable, "-m", "ministack")

    with served(words, folder, given, _is_healthy) as port:
        yield _created(f"http://127.0.0.1:{port}")


def _created(endpoint: str) -> Stack:
    bare = Stack(endpoint, "", {})
    topic = str(bare.client("sns").create_topic(Name="gitlab-events")["TopicArn"])
    stacks = bare.client("cloudformation")
    stacks.create_stack(
        StackName="hummingbird",
        TemplateBody=TEMPLATE.read_text(encoding="utf-8").replace(TRANSFORM, ""),
        Parameters=[{"ParameterKey": "EventsTopicArn", "ParameterValue": topic}],
        Capabilities=["CAPABILITY_IAM"],
    )
    until = time.monotonic() + _PATIENCE_S
    while (made := stacks.describe_stacks(StackName="hummingbird")["Stacks"][0])["StackStatus"] != "CREATE_COMPLETE":
        assert time.monotonic() < until, made
        time.sleep(0.1)  # a stack tells by being asked
    return Stack(endpoint, topic, {one["OutputKey"]: one["OutputValue"] for one in made["Outputs"]})
