"""What these tests share: the case, the captured payloads, and a client that knows the token and the paths."""

import json
from pathlib import Path
from typing import Any

import httpx2

from hummingbird.lab.case import LabCase

Raw = dict[str, Any]
CASE = LabCase(Path(__file__).parent / "case")
NAMESPACE = "acme-tenant"
RUNS = f"/apis/tekton.dev/v1/namespaces/{NAMESPACE}/pipelineruns"
TASKS = f"/apis/tekton.dev/v1/namespaces/{NAMESPACE}/taskruns"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
BUILD = "widgets-on-pull-request-8pblb"
UNIT_POD = "widgets-8pblb-unit-pod"
SHA = "b9d5cbba33c14e8f64d68c4e964837cf1b57c3c7"
BUILT_FROM = f"pipelinesascode.tekton.dev/sha={SHA}"
_FIXTURES = Path(__file__).parents[2] / "fixtures"


def captured(name: str) -> Any:
    """A payload of a real server, from whichever room keeps it."""
    places = (_FIXTURES / "evidence" / "tekton", _FIXTURES / "tekton")
    return json.loads(next(place / name for place in places if (place / name).is_file()).read_text())


class Door(httpx2.Client):
    """Asks for no compression unless a test does, so that bodies are what they look like."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Accept-Encoding": "identity", "Authorization": f"Bearer {token}"}
        # plain HTTP needs no certificates, and loading them takes longer than the rest of a test
        super().__init__(base_url=url, headers=headers, verify=False)

    def names(self, path: str, **query: str) -> list[str]:
        answer = self.get(path, params=query)
        answer.raise_for_status()
        return [each["metadata"]["name"] for each in answer.json()["items"]]


def refused(answer: httpx2.Response, code: int, reason: str) -> str:
    """The sentence of a refusal, which must be a Status object as the real API makes it."""
    status = answer.json()
    assert (answer.status_code, status["kind"], status["status"]) == (code, "Status", "Failure"), answer.text
    assert (status["code"], status["reason"]) == (code, reason)
    return str(status["message"])


def rejected(answer: httpx2.Response, code: int) -> str:
    """The sentence of KubeArchive's refusal, which is all there is."""
    assert answer.status_code == code, answer.text
    assert list(answer.json()) == ["message"]
    return str(answer.json()["message"])
