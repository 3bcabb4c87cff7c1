"""The door to a cluster's API: five verbs on the pods of one namespace (I5), and what its refusals are called here.

The room `clusters` finds the cluster and the credentials; the requests are our own, since lightkube's `delete` carries
no preconditions and a pod must never be removed that somebody else has taken meanwhile. No watch: the role has none.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import anyio
import httpx2

from hummingbird.adapters.sandboxes.kubeconfig import Found, as_unavailable, made_client
from hummingbird.adapters.sandboxes.manifest import Raw
from hummingbird.adapters.sandboxes.pod import Pod, pod_of
from hummingbird.domain.errors import HummingbirdError, SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import API_TIMEOUT_S, ERROR_TEXT_CHARS
from hummingbird.domain.text import shortened

MERGE_PATCH = "application/merge-patch+json"
_PAGE = 500
# What httpx2 lets through of the layers below it; the last one is its own word for a client that was closed meanwhile
_BELOW = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, RuntimeError)


class PodGone(SandboxBroken):
    """There is no such pod, or it is another one of that name."""


class Outrun(SandboxBroken):
    """Somebody changed the pod since we looked at it: nothing was done."""


class Unanswered(SandboxBroken):
    """The cluster did not say whether it did it. Worth another try."""


class Cluster:
    """The connection is made with the first request; after `close` there is none any more."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._client: httpx2.AsyncClient | None = None
        self._closed = False

    @property
    def namespace(self) -> str:
        return self._found.namespace

    async def create(self, manifest: Raw) -> Pod:
        """Raises SandboxUnavailable, Outrun when there is one of that name, Unanswered."""
        return pod_of(await self._ask("create", "POST", body=manifest))

    async def get(self, name: str) -> Pod:
        """Raises PodGone, SandboxUnavailable, Unanswered."""
        return pod_of(await self._ask("get", "GET", name))

    async def list(self, selector: Mapping[str, str]) -> list[Pod]:
        """The pods that have all these labels. Raises SandboxUnavailable, Unanswered."""
        query = {"labelSelector": ",".join(f"{key}={value}" for key, value in selector.items()), "limit": str(_PAGE)}
        found: list[Pod] = []
        while True:
            page = await self._ask("list", "GET", query=query)
            found += [pod_of(each) for each in page.get("items") or ()]
            more = (page.get("metadata") or {}).get("continue")
            if not more:
                return found
            query["continue"] = more

    async def patch(self, pod: Pod, changes: Raw, *, unchanged: bool) -> Pod:
        """Merges `changes` into the pod's metadata, if it is still that pod; `unchanged`: and if nobody has changed it
        since. Raises PodGone, Outrun, SandboxUnavailable, Unanswered."""
        known = {"uid": pod.uid, "resourceVersion": pod.version} if unchanged else {"uid": pod.uid}
        return pod_of(await self._ask("patch", "PATCH", pod.name, body={"metadata": {**changes, **known}}))

    async def delete(self, name: str, uid: str = "", version: str = "") -> None:
        """At once. With `uid` only that very pod, with `version` only if nobody has changed it since. Raises PodGone,
        Outrun, SandboxUnavailable, Unanswered."""
        known = {"uid": uid, "resourceVersion": version}
        options: Raw = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        if preconditions := {key: value for key, value in known.items() if value}:
            options["preconditions"] = preconditions
        await self._ask("delete", "DELETE", name, body=options)

    async def close(self) -> None:
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _ask(
        self, verb: str, method: str, name: str = "", *, body: Raw | None = None, query: Mapping[str, str] | None = None
    ) -> Any:
        path = f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods" + (
            f"/{quote(name, safe='')}" if name else ""
        )
        headers = {"Content-Type": MERGE_PATCH if method == "PATCH" else "application/json"}
        content = None if body is None else json.dumps(body).encode()
        client = self._opened()
        try:
            with as_unavailable():  # credentials are asked for with the request
                async with asyncio.timeout(API_TIMEOUT_S):
                    response = await client.request(method, path, params=query, content=content, headers=headers)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, *_BELOW) as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise self._refusal(verb, response.status_code, response.content)
        return _decoded(response.content)

    def _opened(self) -> httpx2.AsyncClient:
        if self._closed:
            raise Unanswered("The connection to the cluster was closed: start a new sandbox.")
        if self._client is None:
            self._client = made_client(self._found)
        return self._client

    def _unreachable(self, error: Exception) -> HummingbirdError:
        said = shortened(str(error) or type(error).__name__, 200)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return SandboxUnavailable(
                f"The certificate of {self._found.server} is not trusted: set certificate-authority in the kubeconfig, "
                f"or ca_bundle ({said})."
            )
        return Unanswered(
            f"The cluster at {self._found.server} does not answer ({said}): check that it is up and that this machine "
            "reaches it."
        )

    def _refusal(self, verb: str, code: int, content: bytes) -> HummingbirdError:
        status = _decoded(content, {})
        status = status if isinstance(status, dict) else {}
        said = shortened(str(status.get("message") or f"HTTP {code}"), ERROR_TEXT_CHARS).rstrip(".")
        if code == 401:
            return SandboxUnavailable(
                f"The cluster at {self._found.server} does not accept your credentials: log in again ({said})."
            )
        if code == 403:
            return SandboxUnavailable(_forbidden(verb, self.namespace, said))
        if code == 404 and verb == "create":
            return SandboxUnavailable(
                f"There is no namespace {self.namespace}: create it or name another one ({said})."
            )
        if code == 404 or (code == 422 and verb == "patch" and _is_another(status)):
            return PodGone(f"The pod is gone ({said}). Start a new sandbox.")
        if code == 409:
            return Outrun(f"Somebody else was quicker ({said}). Try again.")
        if code in {400, 405, 413, 415, 422}:
            return SandboxUnavailable(
                f"The cluster refuses to {verb} a sandbox's pod: mend image, resources and metadata in the settings "
                f"({said})."
            )
        return Unanswered(f"The cluster at {self._found.server} is in trouble: try again ({code}: {said}).")


def _forbidden(verb: str, namespace: str, said: str) -> str:
    if "violates PodSecurity" in said or "security context constraint" in said:
        return (
            f"The namespace {namespace} lets no pod in that is as hardened as a sandbox; something adds to it or asks "
            f"for more. Look at its labels and webhooks ({said})."
        )
    if "quota" in said:
        return (
            f"The quota of the namespace {namespace} is used up: wait until other sandboxes end, raise it, or ask for "
            f"less in `resources` ({said})."
        )
    return (
        f"You may not {verb} pods in the namespace {namespace}: bind the role hummingbird-sandboxes there (pods: "
        f"create, get, list, delete, patch; pods/exec: create, get) ({said})."
    )


def _is_another(status: Raw) -> bool:
    """A patch that names another pod's uid is refused as one that would change it."""
    causes = (status.get("details") or {}).get("causes") or ()
    return any(isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes)


def _decoded(content: bytes, otherwise: Raw | None = None) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        if otherwise is not None:
            return otherwise
        raise Unanswered("The cluster's answer is no JSON: is a proxy between you and it?") from error
