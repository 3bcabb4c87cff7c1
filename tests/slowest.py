"""A pytest plugin that says which tests are slowest: `make slowest` loads it with `-p tests.slowest`.

CPU seconds are those of the test's process and of the children it has waited for, from set-up to teardown. A fixture
that several tests share is paid for by the first of them, a server that it started by the last. build/slowest.tsv gets
all of it: CPU seconds, seconds of wall clock, test.
"""

import resource
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

_SHOWN = 30
_CPU, _WALL = "cpu_s", "wall_s"

_started: dict[str, tuple[float, float]] = {}
_measured: dict[str, dict[str, float]] = {}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the children it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_runtest_logstart(nodeid: str) -> None:
    _started[nodeid] = cpu_seconds(), time.monotonic()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the measurements to the last report of a test, which travels from xdist's worker to the first process."""
    report = yield
    if report.when == "teardown":
        cpu, wall = _started.pop(item.nodeid)
        report.user_properties += [(_CPU, cpu_seconds() - cpu), (_WALL, time.monotonic() - wall)]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    properties = dict(report.user_properties)
    if report.when == "teardown" and _CPU in properties:
        _measured[report.nodeid] = {name: float(str(properties[name])) for name in (_CPU, _WALL)}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    _write_table(terminalreporter.config.rootpath / "build" / "slowest.tsv")
    for measure, name in ((_CPU, "CPU seconds"), (_WALL, "seconds of wall clock")):
        seconds = Counter({nodeid: each[measure] for nodeid, each in _measured.items()})
        by_folder: Counter[str] = Counter()
        for nodeid, spent in seconds.items():
            by_folder[nodeid.split("::", maxsplit=1)[0].rpartition("/")[0]] += spent
        for title, counted in (("folders", by_folder), ("tests", seconds)):
            terminalreporter.section(f"slowest {title} by {name}, of {seconds.total():.0f}")
            for place, spent in counted.most_common(_SHOWN):
                terminalreporter.write_line(f"{spent:8.2f}  {place}")


def _write_table(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    rows = sorted(_measured.items(), key=lambda row: -row[1][_CPU])
    path.write_text("".join(f"{each[_CPU]:.3f}\t{each[_WALL]:.3f}\t{nodeid}\n" for nodeid, each in rows))
