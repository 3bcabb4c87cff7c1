"""The five Konflux tools, which read one tenant with the operator's own kubeconfig."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx2

from hummingbird.clients.url_fetch import OpenResponseStream, UrlFetcher, prepend_chunk
from hummingbird.core.errors import (
    ArgumentsInvalid,
    ClusterUnusable,
    CredentialRefused,
    HummingbirdError,
    SourceNotFound,
    SourceRefused,
    SourceResponseInvalid,
    SourceUnavailable,
)
from hummingbird.core.limits import KONFLUX_CONTAINERS, KONFLUX_LIST_S, KONFLUX_LOGS_S, TOOL_TIMEOUT_S
from hummingbird.core.protocols.tools import ByteStream, SourceTool, ToolFunction, ToolOutput, arguments_schema
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.konflux import KonfluxSettings, parse_tenant
from hummingbird.konflux.objects import (
    NOTE,
    JsonObject,
    container_names,
    encode_json,
    encode_line,
    object_uid,
    prepare_object,
)
from hummingbird.konflux.servers import SERVER_ERRORS, KonfluxConnections, KonfluxServer, KonfluxServers

# The Konflux tools as a model sees them: what each returns, when to use it, and what it costs.
#
# Descriptions name no other tool. What one says about another is in `mentions`, shown only while that tool is enabled.


NAME = "konflux"
RUNS, TASKS, PODS = "konflux_list_pipelineruns", "konflux_list_taskruns", "konflux_list_pods"
POD, LOG = "konflux_get_pod", "konflux_get_pod_log"

SHA = {
    "type": "string",
    "pattern": "^[0-9a-f]{7,64}$",
    "description": "The commit, with all its characters: a shortened one finds nothing.",
}
_LABEL_NAME = "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"  # we select by label, and label values have 63 characters at most
PIPELINERUN = {"type": "string", "pattern": _LABEL_NAME, "description": "metadata.name of a PipelineRun."}
TASKRUN = {"type": "string", "pattern": _LABEL_NAME, "description": "metadata.name of a TaskRun."}
POD_NAME = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
    "description": "The pod's name: status.podName of a TaskRun, or metadata.name of a Pod.",
}
CONTAINER = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "description": "One container, such as step-build; all of them when left out.",
}

NOTES = (
    "About Konflux: it builds and tests commits in Tekton PipelineRuns; each has TaskRuns, each TaskRun one Pod, and "
    "each step of it is the container step-NAME. BUILD runs have the label pipelines.appstudio.openshift.io/type=build "
    "and the commit in pipelinesascode.tekton.dev/sha; TEST runs have type=test, the commit in "
    "pac.test.appstudio.openshift.io/sha and their scenario in test.appstudio.openshift.io/scenario. GitLab shows them "
    'as "Konflux / NAME" and "Konflux / SCENARIO / COMPONENT"; there an optional scenario that failed appears as '
    "skipped, and tests whose build failed as canceled. A re-run is another PipelineRun of the same commit: judge by "
    "the newest metadata.creationTimestamp. The label …/state may be stale: trust status.conditions, type Succeeded, "
    "which may lack reason and message. A PipelineRun does not say which step failed: that stands in its TaskRuns, "
    "status.steps, where the first step with an exitCode other than 0 counts and the later ones were skipped. "
    "status.podName is empty when a TaskRun failed before it had a pod; then its condition is all there is. A test "
    "that succeeded for Tekton may report a failure in its result TEST_OUTPUT, and Konflux goes by that; "
    f"`{NOTE}` points it out. A line with `incomplete` ends a list of which something is missing: what stands above it "
    "is true but not all."
)
_LINKS = (
    " Link a PipelineRun as {ui}/pipelinerun/NAME, or as its annotation pipelinesascode.tekton.dev/log-url says, if it "
    "has one."
)


@dataclass(frozen=True, slots=True)
class KonfluxToolTemplate:
    """A tool before it is bound to a tenant."""

    description: str
    required: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    mentions: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TOOL_TIMEOUT_S


TOOL_TEMPLATES: Mapping[str, KonfluxToolTemplate] = {
    RUNS: KonfluxToolTemplate(
        "The PipelineRuns of a commit, builds and tests, one JSON object a line, from the cluster and the archive. Use "
        "it first when a status of Konflux failed: it says which runs there were, how each ended and which tasks were "
        "not run. Each is 10 to 200 KB, so read the file with jq or python3. One or more requests to each server.",
        required={"sha": SHA},
        mentions={TASKS: f"Which step failed is not in here: {TASKS} has it."},
        timeout_s=KONFLUX_LIST_S,
    ),
    TASKS: KonfluxToolTemplate(
        "The TaskRuns of a PipelineRun, or of all runs of a commit, one JSON object a line: how each task ended, its "
        "steps with their exit codes, its results, its pod. Give exactly one of `pipelinerun` and `sha`; a run is much "
        "less to read than a commit, each TaskRun is 5 to 50 KB. One or more requests to each server.",
        optional={"pipelinerun": PIPELINERUN, "sha": SHA},
        mentions={LOG: f"With status.podName of the one that failed, {LOG} gives its log."},
        timeout_s=KONFLUX_LIST_S,
    ),
    PODS: KonfluxToolTemplate(
        "The Pods of a TaskRun, of a PipelineRun or of all runs of a commit, one JSON object a line: phase, containers "
        "and how each ended (exit code, OOMKilled, Evicted), the node. Give exactly one of `taskrun`, `pipelinerun` "
        "and `sha`. Use it for trouble of the platform: evictions, images that cannot be pulled, memory. Each is about "
        "10 KB. One or more requests to each server.",
        optional={"taskrun": TASKRUN, "pipelinerun": PIPELINERUN, "sha": SHA},
        timeout_s=KONFLUX_LIST_S,
    ),
    POD: KonfluxToolTemplate(
        "One Pod as JSON, from the cluster or else from the archive: its containers, how each ended and why, its "
        "conditions. About 10 KB. One or two requests.",
        required={"pod": POD_NAME},
    ),
    LOG: KonfluxToolTemplate(
        "The log of a pod. Without `container` the logs of all its containers one after another, init containers "
        "first, each below a line `=== NAME ===`; a log that is missing is said there. Name the container of the step "
        "that failed (step-NAME) if you know it: the log of all may be long. One or two requests a container.",
        required={"pod": POD_NAME},
        optional={"container": CONTAINER},
        mentions={TASKS: f"{TASKS} says which pod and which step it was."},
        timeout_s=KONFLUX_LOGS_S,
    ),
}


def build_specs(ui: str) -> list[ToolSpec]:
    """Return the tools for a tenant. `ui` is the address of its web interface; empty if unknown."""
    notes = NOTES + (_LINKS.format(ui=ui) if ui else "")
    return [
        _build_spec(name, template, notes, {"konflux_ui": ui} if ui else {})
        for name, template in TOOL_TEMPLATES.items()
    ]


def _build_spec(name: str, template: KonfluxToolTemplate, notes: str, metadata: Mapping[str, str]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=template.description,
        schema=arguments_schema(template.required, template.optional),
        toolset=NAME,
        timeout_s=template.timeout_s,
        notes=notes,
        mentions=template.mentions,
        source=NAME,
        metadata=metadata,
    )


# Errors that somebody can fix come before final ones: where one server has nothing and the other could not be asked,
# we do not know that there is nothing.
_GRAVEST_FIRST = (
    CredentialRefused,
    ClusterUnusable,
    SourceUnavailable,
    SourceResponseInvalid,
    SourceRefused,
    SourceNotFound,
)


def combine_errors(troubles: Sequence[HummingbirdError]) -> HummingbirdError:
    """Return one error of the gravest kind, with all messages, when no server gave what was asked for."""
    sentences = " ".join(dict.fromkeys(str(each) for each in troubles))
    for kind in _GRAVEST_FIRST:
        if any(isinstance(each, kind) for each in troubles):
            return kind(sentences)
    return SourceUnavailable(sentences or "Konflux gave no answer. Ask again later.")


def is_lasting_error(trouble: HummingbirdError) -> bool:
    """Return whether the same server would fail the next request of this call in the same way."""
    return isinstance(trouble, CredentialRefused | ClusterUnusable | SourceUnavailable)


INCOMPLETE = "incomplete"
NOTHING_FOUND = "nothing_found"


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """A label to select objects by. `words` describe them in messages, such as "taskruns of builds"."""

    label: str
    value: str
    words: str

    def __str__(self) -> str:
        return f"{self.label}={self.value}"


async def stream_objects(
    servers: Sequence[KonfluxServer], resource: str, selections: Sequence[LabelSelection], nothing: str
) -> AsyncGenerator[bytes, None]:
    """Yield the objects of both servers as lines of JSON, each object once.

    The cluster is asked first, because an archived copy can be older than the live one; the archive's copy of the same
    uid is left out. A last line says what could not be read; `nothing` is said when there is no object.

    Raises CredentialRefused, ClusterUnusable or a SourceError before the first line, if no server could be asked.
    """
    listing = _ObjectListing()
    for server in servers:
        async with aclosing(listing.list_new_items(server, resource, selections)) as items:
            async for item in items:
                yield encode_line(prepare_object(item, "Pod" if resource == "pods" else ""))
    if listing.nobody_answered:
        raise combine_errors(listing.troubles)
    empty = not listing.seen and not listing.nameless
    if empty and listing.gaps:
        listing.gaps.insert(0, "Nothing was found, but not all could be asked for, so there may be some.")
    elif empty:
        yield encode_json({NOTHING_FOUND: nothing}) + b"\n"
    if listing.gaps:
        yield encode_json({INCOMPLETE: " ".join(listing.gaps)}) + b"\n"


class _ObjectListing:
    """State of one listing over all servers: what was seen, and what is missing."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.nameless = 0
        self.gaps: list[str] = []
        self.troubles: list[HummingbirdError] = []
        self._answered = 0

    @property
    def nobody_answered(self) -> bool:
        return bool(self.troubles) and not self._answered

    async def list_new_items(
        self, server: KonfluxServer, resource: str, selections: Sequence[LabelSelection]
    ) -> AsyncGenerator[JsonObject, None]:
        for place, selection in enumerate(selections):
            try:
                async with aclosing(server.list_items(resource, str(selection), self.gaps)) as items:
                    async for item in items:
                        if self._is_new(item):
                            yield item
                self._answered += 1
            except SERVER_ERRORS as error:
                self.troubles.append(error)
                lasting = is_lasting_error(error)
                lost = selections[place:] if lasting else [selection]  # the following ones would fail the same way
                words = " and no ".join(each.words for each in lost)
                self.gaps.append(f"No {words} could be read from {server.name}: {error}")
                if lasting:
                    return

    def _is_new(self, item: JsonObject) -> bool:
        found = object_uid(item)
        if not found:
            self.nameless += 1
            return True
        if found in self.seen:
            return False
        self.seen.add(found)
        return True


class PodLogs:
    """The logs of one pod, for one call; `doors` are the servers in the order in which they are asked.

    A log that is missing or breaks off is reported in its place, and the others still follow.
    """

    def __init__(self, servers: Sequence[KonfluxServer], pod: str) -> None:
        self._servers = servers
        self._pod = pod
        self._server_errors: dict[str, HummingbirdError] = {}

    async def stream_container(self, container: str) -> AsyncGenerator[bytes, None]:
        """Yield the log of one container, which may be empty.

        Raises CredentialRefused, ClusterUnusable or a SourceError when no server has it.
        """
        troubles: list[HummingbirdError] = []
        for server in self._servers:
            if server.name in self._server_errors:
                troubles.append(self._server_errors[server.name])
                continue
            came = False
            try:
                async with aclosing(self._stream_from(server, container)) as chunks:
                    async for chunk in chunks:
                        came = True
                        yield chunk
            except SERVER_ERRORS as error:
                if came:
                    yield f"\n[The log breaks off here. {error}]\n".encode()
                    return
                troubles.append(error)
                if is_lasting_error(error):
                    self._server_errors[server.name] = error
            if came:
                return
        if len(troubles) == len(self._servers):
            raise combine_errors(troubles)

    async def stream_all(self, pod: JsonObject) -> AsyncGenerator[bytes, None]:
        """Yield the logs of all containers, each below a header."""
        names = container_names(pod)
        for name in names[:KONFLUX_CONTAINERS]:
            yield f"=== {name} ===\n".encode()
            last = b""
            try:
                async with aclosing(self.stream_container(name)) as chunks:
                    async for chunk in chunks:
                        last = chunk
                        yield chunk
            except SERVER_ERRORS as error:
                last = f"[No log of {name}: {error}]\n".encode()
                yield last
            if not last.endswith(b"\n"):
                yield b"\n" if last else b"[The log is empty.]\n"
        if len(names) > KONFLUX_CONTAINERS:
            yield f"[{len(names) - KONFLUX_CONTAINERS} more containers were not asked for: name one.]\n".encode()

    async def _stream_from(self, server: KonfluxServer, container: str) -> AsyncGenerator[bytes, None]:
        async with server.open_log(self._pod, container) as answer, aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk


BUILD_SHA = "pipelinesascode.tekton.dev/sha"
TEST_SHA = "pac.test.appstudio.openshift.io/sha"
_FULL_SHA = 40


class KonfluxSource:
    """The Konflux source. Reads and asks nothing until a tool is called. Raises UsageError for invalid settings.

    `environment` says where the kubeconfig is; `reading` lets tests avoid waiting.
    """

    name = NAME

    def __init__(
        self,
        settings: KonfluxSettings,
        environment: Mapping[str, str],
        *,
        reading: Callable[[httpx2.AsyncClient], UrlFetcher] = UrlFetcher,
    ) -> None:
        self._tenant = parse_tenant(settings)
        self._connections = KonfluxConnections(settings, self._tenant, environment, reading)
        work: Mapping[str, ToolFunction] = {
            RUNS: self._list_pipelineruns,
            TASKS: self._list_taskruns,
            PODS: self._list_pods,
            POD: self._get_pod,
            LOG: self._get_pod_log,
        }
        self.tools: Sequence[SourceTool] = tuple(
            SourceTool(spec, work[spec.name]) for spec in build_specs(self._tenant.ui)
        )

    @property
    def secrets(self) -> Sequence[str]:
        return self._connections.secrets()

    async def close(self) -> None:
        await self._connections.close()

    async def _list_pipelineruns(self, sha: str) -> ToolOutput:
        return await self._list_objects("pipelineruns", {"sha": sha})

    async def _list_taskruns(self, pipelinerun: str = "", sha: str = "") -> ToolOutput:
        return await self._list_objects("taskruns", {"pipelinerun": pipelinerun, "sha": sha})

    async def _list_pods(self, taskrun: str = "", pipelinerun: str = "", sha: str = "") -> ToolOutput:
        return await self._list_objects("pods", {"taskrun": taskrun, "pipelinerun": pipelinerun, "sha": sha})

    async def _list_objects(self, resource: str, given: Mapping[str, str]) -> ToolOutput:
        chosen = [(name, value) for name, value in given.items() if value]
        if len(chosen) != 1:
            raise ArgumentsInvalid(f"Give exactly one of {', '.join(given)}.")
        selections = _label_selections(resource, *chosen[0])
        servers = await self._connections.connect()
        lines = stream_objects(
            servers.live_first, resource, selections, self._nothing_found_text(resource, *chosen[0], servers)
        )
        return await _start_stream(lines, "jsonl")

    async def _get_pod(self, pod: str) -> ToolOutput:
        return await self._read_pod(await self._connections.connect(), pod)

    async def _get_pod_log(self, pod: str, container: str = "") -> ToolOutput:
        servers = await self._connections.connect()
        logs = PodLogs(servers.archive_first, pod)
        if container:
            return await _start_stream(logs.stream_container(container), "log", terminal=True)
        try:
            found = await self._read_pod(servers, pod)
        except SERVER_ERRORS as error:
            return await self._default_log(logs, error)
        return await _start_stream(logs.stream_all(found), "log", terminal=True)

    async def _default_log(self, logs: PodLogs, unknown: HummingbirdError) -> ToolOutput:
        """Return a log whose pod is not known: an archive may have only the log, and then chooses the container."""
        try:
            return await _start_stream(logs.stream_container(""), "log", terminal=True)
        except SERVER_ERRORS:
            raise unknown from None

    async def _read_pod(self, servers: KonfluxServers, name: str) -> JsonObject:
        troubles: list[HummingbirdError] = []
        for server in servers.live_first:
            try:
                found = prepare_object(await server.get_object("pods", name), "Pod")
            except SERVER_ERRORS as error:
                troubles.append(error)
                continue
            asked_in_vain = [str(each) for each in troubles if not isinstance(each, SourceNotFound)]
            return {**found, INCOMPLETE: " ".join([*asked_in_vain, _ARCHIVED_COPY])} if asked_in_vain else found
        raise combine_errors(troubles)

    def _nothing_found_text(self, resource: str, name: str, value: str, servers: KonfluxServers) -> str:
        sentence = f"There are no {resource} of the {_NAMES[name]} {value} in the tenant {self._tenant.namespace}, "
        if servers.archive:
            sentence += "neither in the cluster nor in KubeArchive."
        else:
            sentence += "at least not in the cluster: no archive is configured, which could have older ones."
        if name == "sha" and len(value) < _FULL_SHA:
            sentence += " The commit is shortened: give all its characters."
        return sentence


_ARCHIVED_COPY = "This is the archived copy, which may be older."
_NAMES = {"sha": "commit", "pipelinerun": "PipelineRun", "taskrun": "TaskRun"}
_OWNERS = {"pipelinerun": "tekton.dev/pipelineRun", "taskrun": "tekton.dev/taskRun"}


def _label_selections(resource: str, name: str, value: str) -> tuple[LabelSelection, ...]:
    if name == "sha":
        return (
            LabelSelection(BUILD_SHA, value, f"{resource} of builds"),
            LabelSelection(TEST_SHA, value, f"{resource} of tests"),
        )
    return (LabelSelection(_OWNERS[name], value, resource),)


async def _start_stream(chunks: AsyncGenerator[bytes, None], suffix: str, *, terminal: bool = False) -> ByteStream:
    """Return a stream whose first chunk has arrived, so that an immediate failure fails the call, not the stream."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(chunks.aclose)
        first = await anext(chunks, b"")
        return ByteStream(OpenResponseStream(stack.pop_all(), prepend_chunk(first, chunks)), suffix, terminal=terminal)
