"""Whether causes are classified rightly in made-up jobs of tools that no labelled log knows, failed and passed.

    python -m benchmarks.evidence.made_up [--wrong]

The failures are written by hand in tests/fixtures/evidence: one half to choose rules on, and a blind half that was
written before. Each is put among the lines that a job prints anyway, scary ones among them, in the frames of GitLab,
GitHub, Jenkins and none. Passed jobs are such lines alone, with and without the frame's word for success.

Tests and tools print other programs' trouble as well: a test of a scheduler has lines about pods without a node. Such
lines are put above, within and below what a compiler, a linter or a test says; no machine is to blame then.
"""

import argparse
import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hummingbird.evidence.logs.log_analysis import analyse
from hummingbird.evidence.regions import CONFIDENT, TRANSIENT_CLASSES, Blame, FailureClass

FOLDER = Path(__file__).parents[2] / "tests" / "fixtures" / "evidence"
LOUD = "passed-loud.txt"  # steps of passed jobs that print more trouble than most
LOUD_ORDERS = 6
HALVES = {"chosen on": "failures-seen.txt", "blind": "failures-blind.txt"}
GREEN_JOBS = 60
NO_COMMAND = "-"
_HEADING = re.compile(r"^== (?=[\w-]+ \| )", re.MULTILINE)
Frame: TypeAlias = Callable[[Sequence[Sequence[str]], bool | None], str]

# What jobs print that pass: probes, errors that tests expect, retries that worked, allowed failures, counts of nothing.
CALM_STEPS = """
apt-get install -y build-essential
Reading package lists...
Setting up liberror-perl (0.17029-2) ...
Setting up libassert-simple-perl (1.0-3) ...
debconf: delaying package configuration, since apt-utils is not installed

npm ci
npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.
npm warn deprecated rimraf@3.0.2: Rimraf versions prior to v4 are no longer supported
added 812 packages, and audited 813 packages in 14s
found 0 vulnerabilities

./configure --prefix=/usr
checking for sys/endian.h... no
conftest.c:9:10: fatal error: sys/endian.h: No such file or directory
checking whether the linker accepts -Wl,--no-undefined... yes
checking for C compiler default output file name... a.out
configure: creating ./config.status

python -m pytest -v
tests/test_errors.py::test_connection_refused_is_reported PASSED [ 20%]
tests/test_errors.py::test_fatal_error_is_logged PASSED [ 40%]
tests/test_errors.py::test_raises_type_error PASSED [ 60%]
tests/test_flaky.py::test_known_bug XFAIL (issue 1204) [ 80%]
tests/test_other.py::test_needs_network SKIPPED (Connection refused) [100%]
=========== 3 passed, 1 skipped, 1 xfailed, 2 warnings in 3.21s ===========

curl --retry 3 -fsSL -o tool.tar.gz https://dl.example.com/tool.tar.gz
curl: (28) Connection timed out after 10001 milliseconds
Warning: Problem : timeout. Will retry in 1 seconds. 3 retries left.
tool.tar.gz: OK

mvn -B verify
[INFO] Running org.acme.ErrorHandlerTest
2024-03-01 10:00:04 ERROR ErrorHandler - request failed
java.lang.IllegalStateException: expected by the test
	at org.acme.ErrorHandlerTest.handles(ErrorHandlerTest.java:41)
[INFO] Tests run: 12, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.41 s
[WARNING] Some problems were encountered while building the effective settings
[INFO] BUILD SUCCESS

go test ./...
2024/03/01 10:00:05 http: panic serving 127.0.0.1:4411: expected panic
ok  	example.com/acme/pkg/server	0.412s
ok  	example.com/acme/pkg/failures	0.020s

docker build -t acme/web .
#5 CACHED
#6 [3/5] RUN make
#6 0.412 src/legacy.c:12:5: warning: 'gets' is deprecated [-Wdeprecated-declarations]
#6 DONE 4.1s

npx eslint . --max-warnings 20
/src/app.js
  12:5  warning  Unexpected console statement  no-console
✖ 1 problem (0 errors, 1 warning)

cargo test
warning: unused variable: `depth`
test parser::rejects_invalid_input ... ok
test net::connection_reset_is_retried ... ok
thread 'tests::panics_are_caught' panicked at src/lib.rs:12:9:
expected panic
test tests::panics_are_caught ... ok
test result: ok. 31 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out

bin/integration --allow-failure
ERROR: the optional check of links failed (allowed to fail)
WARNING: service redis-1 probably didn't start properly; retrying
redis is up after 2 attempts

dotnet build
Build succeeded.
    3 Warning(s)
    0 Error(s)

pip install -r requirements.txt
WARNING: Running pip as the 'root' user can result in broken permissions
Successfully installed attrs-23.2.0 requests-2.31.0

ctest
 1/2 Test #1: crash_handler ....................   Passed    0.02 sec
 2/2 Test #2: timeout_handler ..................   Passed    0.31 sec
100% tests passed, 0 tests failed out of 2

bundle exec rspec
An error occurred while loading the optional profiler; it is switched off.
120 examples, 0 failures, 2 pending

git fetch --depth 50
warning: redirecting to https://git.example.com/acme/web.git/
error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502
Retrying in 5 seconds (attempt 2 of 3)
From https://git.example.com/acme/web
""".strip()


# Trouble of machines, networks and chance that a test may print. A hash says on which half rules were chosen.
PRINTED_EXCUSES = """
ERROR: Job failed (system failure): prepare environment: waiting for pod running: timed out waiting for pod to start
ERROR: Job failed (system failure): Cannot connect to the Docker daemon at unix:///var/run/docker.sock
runner_system_failure
runner system failure
ERROR: Preparation failed: adding cache volume: set volume permissions: running permission container
WARNING: Failed to pull image with policy "always": Error response from daemon: Get "https://r.example.com/v2/": EOF
ERROR: Job failed: execution took longer than 1h0m0s seconds
dial tcp 10.0.0.1:443: i/o timeout
Get "https://example.com/v1": dial tcp: lookup example.com on 10.96.0.10:53: no such host
fatal: unable to access 'https://gitlab.example.com/acme/web.git/': Could not resolve host: gitlab.example.com
0/3 nodes are available: 3 Insufficient cpu.
Warning  FailedScheduling  default-scheduler  0/1 nodes are available: 1 Too many pods.
pod status is unschedulable
write /tmp/x: no space left on device
OSError: [Errno 28] No space left on device
The runner has received a shutdown signal. This can happen when the runner service is stopped
The hosted runner lost communication with the server.
Killed
Out of memory: Killed process 4242 (java) total-vm:812kB
OOMKilled
Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?
toomanyrequests: You have reached your pull rate limit.
curl: (6) Could not resolve host: example.com
npm ERR! network timeout at: https://registry.npmjs.org/left-pad
E: Failed to fetch http://deb.debian.org/debian/pool/x.deb Connection timed out
Error: read ECONNRESET
java.net.SocketTimeoutException: connect timed out
java.net.UnknownHostException: db.example.com
getaddrinfo EAI_AGAIN api.example.com
HTTP 503: service unavailable
requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.example.com', port=443): Max retries exceeded
Error: The operation was canceled: job exceeded the maximum execution time
ERROR: Uploading artifacts as "archive" to coordinator... 500 Internal Server Error
pod "runner-x-project-1" was evicted
error dialing backend: EOF
spot instance was interrupted
unexpected termination of the channel
agent went offline
InfrastructureError: guest provisioning failed
1 flaky
passed on retry
test is known to be flaky
database is locked
bind: address already in use
WARNING: DATA RACE
Segmentation fault (core dumped)
""".strip().split("\n")
_Lines: TypeAlias = tuple[str, ...]
_PLACES: dict[str, Callable[[_Lines, str], _Lines]] = {
    "above": lambda lines, said: (lines[0], said, *lines[1:]),
    "within": lambda lines, said: (*lines[: len(lines) // 2 + 1], said, *lines[len(lines) // 2 + 1 :]),
    "below": lambda lines, said: (*lines, said, "done"),
}


@dataclass(frozen=True, slots=True)
class MadeUpFailure:
    """A failure as a tool prints it, with the classes that a person would accept.

    The first line is the command, or `-` where the runner itself speaks.
    """

    name: str
    classes: frozenset[FailureClass]
    rules: frozenset[str]  # that may name it; none are stated for the blind half
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgedFailure:
    failure: MadeUpFailure
    frame: str
    blame: Blame

    @property
    def is_right(self) -> bool:
        return self.blame.class_ in self.failure.classes

    @property
    def is_sure(self) -> bool:
        return self.blame.class_ is not FailureClass.UNKNOWN and self.blame.confidence >= CONFIDENT


def read_failures(file: str) -> list[MadeUpFailure]:
    """Read failures that are written as `== name | class class | rule rule` and the lines below."""
    found = []
    for block in _HEADING.split((FOLDER / file).read_text(encoding="utf-8"))[1:]:
        head, _, body = block.strip("\n").partition("\n")
        name, classes, *rules = head.split(" | ")
        allowed = frozenset(FailureClass(one) for one in classes.split())
        found.append(MadeUpFailure(name, allowed, frozenset(" ".join(rules).split()), tuple(body.split("\n"))))
    return found


def calm_steps(chosen: random.Random, steps: int) -> list[list[str]]:
    return [step.split("\n") for step in chosen.sample(CALM_STEPS.split("\n\n"), steps)]


def frame_for_gitlab(steps: Sequence[Sequence[str]], failed: bool | None) -> str:
    lines = [
        "\x1b[0KRunning with gitlab-runner 16.11.0 (91a27b2a)\x1b[0;m",
        "\x1b[0K  on docker-4 xS6Vzpvo, system ID: s_5651e5b5643b\x1b[0;m",
        (
            "section_start:1715000000:get_sources\r\x1b[0K\x1b[0K\x1b[36;1mGetting source from Git repo"
            "sitory\x1b[0;m\x1b[0;m"
        ),
        "\x1b[32;1mChecking out 41fe2a9c as detached HEAD (ref is topic)...\x1b[0;m",
        "section_end:1715000002:get_sources\r\x1b[0Ksection_start:1715000002:step_script\r\x1b[0K\x1b[0K\x1b[36;1m"
        'Executing "step_script" stage of the job script\x1b[0;m\x1b[0;m',
    ]
    for command, *said in steps:
        lines += [*([f"\x1b[32;1m$ {command}\x1b[0;m"] if command != NO_COMMAND else []), *said]
    if failed is not None and (not failed or steps[-1][0] != NO_COMMAND):
        end = "\x1b[31;1mERROR: Job failed: exit code 1" if failed else "\x1b[32;1mJob succeeded"
        lines += ["section_end:1715000060:step_script\r\x1b[0K" + end, "\x1b[0;m"]
    return "\n".join(lines)


def frame_for_github(steps: Sequence[Sequence[str]], failed: bool | None) -> str:
    lines = ["##[group]Operating System", "Ubuntu", "22.04.4", "LTS", "##[endgroup]", "Prepare workflow directory"]
    for command, *said in steps:
        if command != NO_COMMAND:
            lines += [f"##[group]Run {command}", f"\x1b[36;1m{command}\x1b[0m", "shell: /usr/bin/bash -e {0}"]
            lines += ["##[endgroup]"]
        lines += said
    if failed is not None:
        of_script = failed and steps[-1][0] != NO_COMMAND
        end = ["##[error]Process completed with exit code 1."] if of_script else []
        lines += [*end, "Post job cleanup.", "[command]/usr/bin/git version", "git version 2.43.2"]
        lines += ["Cleaning up orphan processes"]
    return "\n".join(f"2024-03-01T10:{at // 60 % 60:02}:{at % 60:02}.1234567Z {line}" for at, line in enumerate(lines))


def frame_for_jenkins(steps: Sequence[Sequence[str]], failed: bool | None) -> str:
    lines = [
        "Started by user admin",
        "[Pipeline] Start of Pipeline",
        "[Pipeline] node",
        "Running on agent-3 in /ws/acme",
    ]
    for command, *said in steps:
        lines += [*(["[Pipeline] sh", f"+ {command}"] if command != NO_COMMAND else []), *said]
    if failed is not None:
        lines += ["[Pipeline] }", "[Pipeline] // node", "[Pipeline] End of Pipeline"]
        of_script = failed and steps[-1][0] != NO_COMMAND
        lines += ["ERROR: script returned exit code 1"] if of_script else []
        lines += ["Finished: FAILURE" if failed else "Finished: SUCCESS"]
    return "\n".join(lines)


def frame_bare(steps: Sequence[Sequence[str]], failed: bool | None) -> str:
    return "\n".join(
        line for command, *said in steps for line in (*([f"$ {command}"] if command != NO_COMMAND else []), *said)
    )


FRAMES: dict[str, Frame] = {
    "GitLab": frame_for_gitlab, "GitHub": frame_for_github, "Jenkins": frame_for_jenkins, "none": frame_bare,
}  # fmt: skip


def failed_jobs(failure: MadeUpFailure) -> Iterator[tuple[str, str]]:
    """Put the failure behind some calm steps, once for each frame; nothing runs after it."""
    for frame, put in FRAMES.items():
        chosen = random.Random(f"{failure.name} {frame}")
        yield frame, put([*calm_steps(chosen, chosen.randint(2, 7)), failure.lines], True)


def green_jobs() -> Iterator[tuple[str, str, str]]:
    """Yield the frame, whether it states success, and the log of each passed job."""
    for number in range(GREEN_JOBS):
        for frame, put in FRAMES.items():
            steps = calm_steps(random.Random(f"green {number} {frame}"), 3 + number % 8)
            yield frame, "whole", put(steps, False)
            yield frame, "without its end", put(steps, None)


def loud_jobs(half: str) -> Iterator[tuple[str, str, str]]:
    """Yield the frame, whether it states success, and the log of each passed job that ends with a loud step."""
    texts = (FOLDER / LOUD).read_text(encoding="utf-8").strip().split("\n\n")
    steps = [text.split("\n") for text in texts if half_of(text.partition("\n")[0]) == half]
    for last in steps:
        for order in range(LOUD_ORDERS):
            chosen = random.Random(f"{last[0]}{order}")
            for frame, put in FRAMES.items():
                for view, failed in (("whole", False), ("without its end", None)):
                    before = [*calm_steps(chosen, 3), *(step for step in chosen.sample(steps, 3) if step is not last)]
                    chosen.shuffle(before)
                    yield frame, view, put([*before, last], failed)


def judge_half(file: str, frames: Collection[str] = FRAMES.keys()) -> list[JudgedFailure]:
    return [
        JudgedFailure(failure, frame, analyse(log).blame)
        for failure in read_failures(file)
        for frame, log in failed_jobs(failure)
        if frame in frames
    ]


def half_of(text: str) -> str:
    """Tell whether rules were chosen with such a text in view."""
    return tuple(HALVES)[int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 2]


def excused_jobs(half: str) -> Iterator[tuple[str, str]]:
    """Yield the place of the excuse and the log of each job whose test or tool prints one beside its own failure."""
    excuses = [excuse for excuse in PRINTED_EXCUSES if half_of(excuse) == half]
    for failure in (failure for file in HALVES.values() for failure in read_failures(file)):
        if failure.lines[0] == NO_COMMAND or not failure.classes <= {FailureClass.CODE, FailureClass.TEST}:
            continue
        for place, put_in in _PLACES.items():
            excuse = random.Random(f"{failure.name} {place}").choice(excuses)
            for name, frame in FRAMES.items():
                chosen = random.Random(f"{failure.name} {name}")
                steps = calm_steps(chosen, chosen.randint(1, 4))
                if name != "none" and half_of(failure.name) == half:
                    yield place, frame([*steps, put_in(failure.lines, excuse)], True)


def buys_excuse(log: str) -> bool:
    """Tell whether a machine, a network or chance is blamed with confidence."""
    blame = analyse(log).blame
    return blame.class_ in TRANSIENT_CLASSES and blame.confidence >= CONFIDENT


def report(*, wrong: bool) -> None:
    print("## Causes of made-up jobs\n")
    print(
        "| failures | logs | sure and right % | sure and wrong % | right, sure or not % | worst frame: sure, wrong % |"
    )
    print("|---|--:|--:|--:|--:|---|")
    for half, file in HALVES.items():
        judged = judge_half(file)
        print(_half_row(half, judged))
        if wrong and half == "chosen on":
            print("\n".join(_describe(one) for one in judged if not one.is_right or not one.is_sure))
    print("\n| passed jobs | logs | given a cause with 0.75 or more % |\n|---|--:|--:|")
    logs: Counter[tuple[str, str]] = Counter()
    alarms: Counter[tuple[str, str]] = Counter()
    for frame, view, log in green_jobs():
        blame = analyse(log).blame
        logs[frame, view] += 1
        if blame.class_ is not FailureClass.UNKNOWN and blame.confidence >= CONFIDENT:
            alarms[frame, view] += 1
            if wrong:
                print(f"  ALARM [{frame}, {view}]: {blame.rule} {blame.confidence}")
    for key, count in logs.items():
        print(f"| {', '.join(key)} | {count} | {100 * alarms[key] / count:.1f} |")

    print("\n| passed jobs that end with a loud step: given a cause | jobs | whole % | without its end % | bare % |")
    print("|---|--:|--:|--:|--:|")
    for half in HALVES:
        loud = [("bare" if frame == "none" else view, _is_alarm(log)) for frame, view, log in loud_jobs(half)]
        shares = (_share([one for at, one in loud if at == view]) for view in ("whole", "without its end", "bare"))
        print(f"| {half} | {len(loud)} | {' | '.join(f'{share:.1f}' for share in shares)} |")
    print("\n| printed excuses | jobs | above % | within % | below % |\n|---|--:|--:|--:|--:|")
    for half in HALVES:
        jobs = [(place, buys_excuse(log)) for place, log in excused_jobs(half)]
        shares = (_share([bought for one, bought in jobs if one == place]) for place in _PLACES)
        print(f"| {half} | {len(jobs)} | {' | '.join(f'{share:.1f}' for share in shares)} |")


def _is_alarm(log: str) -> bool:
    blame = analyse(log).blame
    return blame.class_ is not FailureClass.UNKNOWN and blame.confidence >= CONFIDENT


def _share(kept: Sequence[bool]) -> float:
    return 100 * sum(kept) / len(kept)


def _describe(one: JudgedFailure) -> str:
    kind = "WRONG" if one.is_sure else "unsure" if one.is_right else "unknown"
    blame = one.blame
    return f"  {kind} {one.failure.name} [{one.frame}]: {blame.class_} {blame.rule} {blame.confidence}"


def _half_row(half: str, judged: Sequence[JudgedFailure]) -> str:
    by_frame = {
        frame: _share([one.is_sure and not one.is_right for one in judged if one.frame == frame]) for frame in FRAMES
    }
    worst = max(by_frame, key=by_frame.__getitem__)
    return (
        f"| {half} | {len(judged)} | {_share([one.is_sure and one.is_right for one in judged]):.1f} "
        f"| {_share([one.is_sure and not one.is_right for one in judged]):.1f} "
        f"| {_share([one.is_right for one in judged]):.1f} | {by_frame[worst]:.1f} ({worst}) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true", help="name what is not right and sure")
    report(wrong=parser.parse_args().wrong)


if __name__ == "__main__":
    main()
