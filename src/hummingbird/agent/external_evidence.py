"""Read what failed outside of GitLab: the log of a Konflux task, the test report of a Testing Farm request.

An external status only links to a run. Nothing here is asked of an address in a status: names and ids are taken out of
it, and the workflow's own sources are asked for them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hummingbird.agent.failed_logs import FailedLog, RawRecord, ToolReader, read_failed_log
from hummingbird.evidence.bounds import LOOK_REQUESTS
from hummingbird.evidence.tekton.object_reader import read_task_run
from hummingbird.evidence.tekton.runs import TektonState, TektonTask

_RUN = re.compile(r"/pipelinerun/([a-z0-9](?:[-a-z0-9.]{0,61}[a-z0-9])?)(?:[/?#]|$)")
_REQUEST = re.compile(rb"\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b")
TASK_RUNS, POD_LOG, RESULTS = "konflux_list_taskruns", "konflux_get_pod_log", "tf_get_results"
_HELD_BYTES = 256  # of the end of a chunk, in which an id may have begun


class _RequestFinder:
    """Collects ids of Testing Farm requests from a log that streams by."""

    def __init__(self) -> None:
        self._rest = b""
        self.ids: dict[str, None] = {}

    def feed(self, chunk: bytes) -> None:
        text = self._rest + chunk
        for found in _REQUEST.findall(text):
            if len(self.ids) < LOOK_REQUESTS:
                self.ids[found.decode()] = None
        self._rest = text[-_HELD_BYTES:]


@dataclass(frozen=True, slots=True)
class ExternalEvidence:
    """Reads the evidence behind external statuses, as far as the workflow has the tools for it."""

    reads: ToolReader

    async def read(self, status: RawRecord) -> FailedLog | None:
        """Return what the log or the test report shows that a failed status is about; None if there is none."""
        address = str(status.get("target_url") or "")
        run = _RUN.search(address)
        if run is not None and self.reads.has_tool(TASK_RUNS):
            return await self._read_run(run[1])
        request = _REQUEST.search(address.encode("utf-8", "replace"))
        return await self._read_request(request[1].decode()) if request is not None else None

    async def _read_run(self, name: str) -> FailedLog | None:
        what = f"The list of tasks of {name}"
        listed = await self.reads.read_list(TASK_RUNS, what, pipelinerun=name) or []
        tasks = [task for raw in listed for task in _failed_tasks(raw)]
        for task in tasks:
            if task.pod and self.reads.has_tool(POD_LOG):
                return await self._read_pod(task)
        return None

    async def _read_pod(self, task: TektonTask) -> FailedLog | None:
        step, requests = task.culprit, _RequestFinder()
        container: Mapping[str, Any] = {"container": step.container} if step is not None and step.container else {}
        what = f"The log of the task {task.name}"
        seen = await read_failed_log(self.reads, POD_LOG, what, also=requests.feed, pod=task.pod, **container)
        for request in requests.ids:
            if (reported := await self._read_request(request)) is not None and reported.failures:
                return reported  # the task only waited for the tests
        return seen

    async def _read_request(self, request_id: str) -> FailedLog | None:
        if not self.reads.has_tool(RESULTS):
            return None
        what = f"The test report of the request {request_id}"
        return await read_failed_log(self.reads, RESULTS, what, request_id=request_id)


def _failed_tasks(raw: RawRecord) -> list[TektonTask]:
    try:
        run = read_task_run(dict(raw))
    except (KeyError, TypeError, ValueError, msgspec.DecodeError):
        return []
    return [task for task in run.tasks if task.state is TektonState.FAILED]
