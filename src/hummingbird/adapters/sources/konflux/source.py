"""Konflux as a source (D5): five tools that read one tenant, with the operator's own kubeconfig."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

import httpx2

from hummingbird.adapters.sources.http.answer import HeldOpen
from hummingbird.adapters.sources.http.reader import Reader
from hummingbird.adapters.sources.konflux import offering
from hummingbird.adapters.sources.konflux.door import UNANSWERED
from hummingbird.adapters.sources.konflux.listing import INCOMPLETE, Selection, listed
from hummingbird.adapters.sources.konflux.logs import PodLogs
from hummingbird.adapters.sources.konflux.objects import Raw, shown
from hummingbird.adapters.sources.konflux.servers import Doors, Servers
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings, tenant
from hummingbird.adapters.sources.konflux.trouble import together
from hummingbird.adapters.sources.offered import SourceTool, Work
from hummingbird.domain.errors import ArgumentsInvalid, HummingbirdError, NothingThere
from hummingbird.ports.tool import ByteStream, Output

BUILD_SHA = "pipelinesascode.tekton.dev/sha"
TEST_SHA = "pac.test.appstudio.openshift.io/sha"
_FULL_SHA = 40


class KonfluxSource:
    """Raises UsageFault for settings that make no sense; reads and asks nothing until a tool is called.

    `environment` is where the kubeconfig is looked for; `reading` is for tests, which do not wait."""

    name = offering.NAME

    def __init__(
        self,
        settings: KonfluxSettings,
        environment: Mapping[str, str],
        *,
        reading: Callable[[httpx2.AsyncClient], Reader] = Reader,
    ) -> None:
        self._tenant = tenant(settings)
        self._servers = Servers(settings, self._tenant, environment, reading)
        work: Mapping[str, Work] = {
            offering.RUNS: self._list_pipelineruns,
            offering.TASKS: self._list_taskruns,
            offering.PODS: self._list_pods,
            offering.POD: self._get_pod,
            offering.LOG: self._get_pod_log,
        }
        self.tools: Sequence[SourceTool] = tuple(
            SourceTool(spec, work[spec.name]) for spec in offering.specs(self._tenant.ui)
        )

    @property
    def secrets(self) -> Sequence[str]:
        return self._servers.secrets()

    async def close(self) -> None:
        await self._servers.close()

    async def _list_pipelineruns(self, sha: str) -> Output:
        return await self._list("pipelineruns", {"sha": sha})

    async def _list_taskruns(self, pipelinerun: str = "", sha: str = "") -> Output:
        return await self._list("taskruns", {"pipelinerun": pipelinerun, "sha": sha})

    async def _list_pods(self, taskrun: str = "", pipelinerun: str = "", sha: str = "") -> Output:
        return await self._list("pods", {"taskrun": taskrun, "pipelinerun": pipelinerun, "sha": sha})

    async def _list(self, resource: str, given: Mapping[str, str]) -> Output:
        chosen = [(name, value) for name, value in given.items() if value]
        if len(chosen) != 1:
            raise ArgumentsInvalid(f"Give exactly one of {', '.join(given)}.")
        selections = _selections(resource, *chosen[0])
        doors = await self._servers.doors()
        lines = listed(doors.live_first, resource, selections, self._nothing(resource, *chosen[0], doors))
        return await _begun(lines, "jsonl")

    async def _get_pod(self, pod: str) -> Output:
        return await self._pod(await self._servers.doors(), pod)

    async def _get_pod_log(self, pod: str, container: str = "") -> Output:
        doors = await self._servers.doors()
        logs = PodLogs(doors.archive_first, pod)
        if container:
            return await _begun(logs.of(container), "log", terminal=True)
        try:
            found = await self._pod(doors, pod)
        except UNANSWERED as error:
            return await self._default_log(logs, error)
        return await _begun(logs.of_all(found), "log", terminal=True)

    async def _default_log(self, logs: PodLogs, unknown: HummingbirdError) -> Output:
        """An archive may have a log and not the pod; then it chooses the container itself."""
        try:
            return await _begun(logs.of(""), "log", terminal=True)
        except UNANSWERED:
            raise unknown from None

    async def _pod(self, doors: Doors, name: str) -> Raw:
        troubles: list[HummingbirdError] = []
        for door in doors.live_first:
            try:
                found = shown(await door.get("pods", name), "Pod")
            except UNANSWERED as error:
                troubles.append(error)
                continue
            asked_in_vain = [str(each) for each in troubles if not isinstance(each, NothingThere)]
            return {**found, INCOMPLETE: " ".join([*asked_in_vain, _OLDER])} if asked_in_vain else found
        raise together(troubles)

    def _nothing(self, resource: str, name: str, value: str, doors: Doors) -> str:
        sentence = f"There are no {resource} of the {_NAMES[name]} {value} in the tenant {self._tenant.namespace}, "
        if doors.archive:
            sentence += "neither in the cluster nor in KubeArchive."
        else:
            sentence += "at least not in the cluster: no archive is configured, which could have older ones."
        if name == "sha" and len(value) < _FULL_SHA:
            sentence += " The commit is shortened: give all its characters."
        return sentence


_OLDER = "This is the archived copy, which may be older."
_NAMES = {"sha": "commit", "pipelinerun": "PipelineRun", "taskrun": "TaskRun"}
_OWNERS = {"pipelinerun": "tekton.dev/pipelineRun", "taskrun": "tekton.dev/taskRun"}


def _selections(resource: str, name: str, value: str) -> tuple[Selection, ...]:
    if name == "sha":
        return (
            Selection(BUILD_SHA, value, f"{resource} of builds"),
            Selection(TEST_SHA, value, f"{resource} of tests"),
        )
    return (Selection(_OWNERS[name], value, resource),)


async def _begun(chunks: AsyncGenerator[bytes, None], suffix: str, *, terminal: bool = False) -> ByteStream:
    """A stream whose first chunk is there, so that what fails at once fails the call and not the stream."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(chunks.aclose)
        first = await anext(chunks, b"")
        return ByteStream(HeldOpen(stack.pop_all(), _after(first, chunks)), suffix, terminal=terminal)


async def _after(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk
