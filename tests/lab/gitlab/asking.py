"""Plain HTTP questions to the stand-in, without anybody's client in between."""

from pathlib import Path
from typing import Any

import httpx2

from hummingbird.lab.case import LabCase
from hummingbird.lab.gitlab.server import GitLabLab

TINY = LabCase(Path(__file__).parent / "cases" / "tiny", {"konflux": "http://konflux.example.invalid"})
PROJECT = "/projects/acme%2Fwidgets"
MR = f"{PROJECT}/merge_requests/7"
HEAD, MERGED, BASE, MAIN = "a1" * 20, "c3" * 20, "b0" * 20, "d4" * 20


class Web:
    """Asks a lab with one of its tokens; None asks as a stranger. Redirects are not followed."""

    def __init__(
        self, lab: GitLabLab, token: str | None = GitLabLab.read_token, client: httpx2.Client | None = None
    ) -> None:
        self.lab = lab
        self._headers = {"PRIVATE-TOKEN": token} if token else {}
        # plain HTTP needs no certificates, and loading them takes longer than the rest of a test
        self.client = client or httpx2.Client(base_url=f"{lab.url}/api/v4", verify=False, timeout=60)

    def get(
        self, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        return self.client.request(method, path, headers={**self._headers, **(headers or {})}, **more)

    def json(self, path: str, **more: Any) -> Any:
        answer = self.get(path, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ids(self, path: str, **more: Any) -> list[Any]:
        return [each["id"] for each in self.json(path, **more)]

    def as_other(self, token: str | None) -> "Web":
        return Web(self.lab, token, self.client)
