"""Testing Farm as a source: three tools, and what the model is told about them (D1, D6)."""

from collections.abc import Sequence
from typing import Any

from hummingbird.adapters.sources.offered import SourceTool, Work, takes
from hummingbird.adapters.sources.testing_farm.farm import Farm
from hummingbird.adapters.sources.testing_farm.reading import Reading
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.domain.limits import FARM_CALL_S, URL_CHARS
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import Tool

NAME = "testing_farm"

_NOTES = """\
Testing Farm runs tests on machines of its own. A request has a UUID, which stands in the link of a commit status or \
in a job log.
- A request with state "complete" ran; its overall result says how (passed, failed, error, skipped). "error", as \
state or as overall result, means that something broke around the tests; the summary says what.
- Its report, results.xml, is not JUnit: there are no <failure> elements. testsuite/@result and testcase/@result (in \
reports of 2020 testsuite/@overall-result) say how it went: passed, failed, error, info, warn, skip, pending, \
undefined. What a test printed is behind logs/log/@href of the test case or of its suite: "testout.log" is its \
output; "log_dir", "data" and "workdir" are directories.
- Several test cases may have the same name: one for each guest, plan or repetition. Tell them apart by \
serial-number, guest and href.
- A report of a request that still runs is partial; a note beside it says so."""

_REQUEST_ID: dict[str, Any] = {
    "type": "string",
    "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "description": "UUID of the request, as in https://artifacts.dev.testing-farm.io/UUID.",
}
_URL: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": URL_CHARS,
    "description": "Whole address of a log, file or directory below an artifacts base. An href of results.xml that is "
    "relative needs request_id beside it.",
}

_STATUS = """\
State of a Testing Farm request: state, overall result, summary of what went wrong, times, artifacts directory, what \
was tested (repository, ref) and on which composes and architectures. Small and cheap: one request to the API. Use it \
first, and to see whether a request still runs."""
_RESULTS = """\
Test report of a Testing Farm request (results.xml): suites and test cases with their results and the addresses of \
their logs. Use it to find which tests failed and where their logs are. Costs two requests; reports have up to a few \
hundred KB. Falls back to the report in the API's answer or to results-junit.xml where results.xml is missing."""
_LOG = """\
One file of a request's artifacts: a test's output, pipeline.log, tmt's log. Of a directory it lists the entries. Only \
addresses below the artifacts bases are read. Use it with an href from the request's results.xml, or with pipeline.log \
in its artifacts directory when there is no report. Logs may be large; they are streamed."""


class TestingFarmSource:
    """A `Source`. Nothing is opened before a tool is called. `wiring` goes to `Farm` and is there for tests. Raises
    UsageFault for addresses in the settings that are none."""

    __test__ = False  # pytest would take it for a test

    def __init__(self, settings: TestingFarmSettings, **wiring: Any) -> None:
        self._settings = settings
        self._farm = Farm(settings, **wiring)
        self._tools = self._made(Reading(self._farm))

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Sequence[Tool]:
        return self._tools

    @property
    def secrets(self) -> Sequence[str]:
        return (self._settings.token.reveal(),) if self._settings.token else ()

    async def close(self) -> None:
        await self._farm.close()

    def _made(self, reading: Reading) -> tuple[Tool, ...]:
        request = takes({"request_id": _REQUEST_ID})
        return (
            self._tool("tf_get_request_status", _STATUS, request, reading.status),
            self._tool("tf_get_results", _RESULTS, request, reading.results),
            self._tool("tf_get_test_log", _LOG, takes({"url": _URL}, {"request_id": _REQUEST_ID}), reading.log),
        )

    def _tool(self, name: str, description: str, schema: dict[str, Any], work: Work) -> Tool:
        spec = ToolSpec(
            name=name,
            description=description,
            schema=schema,
            toolset=NAME,
            notes=_NOTES,
            source=NAME,
            timeout_s=FARM_CALL_S,
            metadata={"artifacts_base": " ".join(self._farm.allowed.bases)},
        )
        return SourceTool(spec, work)
