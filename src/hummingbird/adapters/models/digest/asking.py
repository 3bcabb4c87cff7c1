"""Commands for the sandbox, where a preview of a file is not enough: failing lines of a log, a place in it, the failed
records of a list, the files of a diff.

Each prints little, so that its own output is not saved and previewed again. A command is known again by its text: that
is how a later turn finds its answer.
"""

import re
import shlex

PATTERN = (
    "[Ee]rror|ERROR|[Ff]ail|FAIL|[Ff]atal|FATAL|[Pp]anic|[Ee]xception|Traceback|[Tt]imed out|[Tt]imeout|[Kk]illed|"
    "[Rr]efused|[Dd]enied|[Cc]annot|[Uu]nable to|[Uu]ndefined|not found|No space|No such|[Aa]bort|assert"
)
"""For search tools and awk alike: extended, without flags."""
BEFORE, AFTER = 25, 15
_MOST = "head -c 3500"
_SEARCH = (
    'awk \'/%s/ { line = NR ": " substr($0, 1, 130); if (n < 8) print line; else kept[n %% 16] = line; n++ } '
    "END { for (i = (n > 24 ? n - 16 : 8); i < n; i++) print kept[i %% 16] }' %s"
)
_AROUND = "awk -v a=%d -v b=%d 'NR > b { exit } NR >= a { print NR \": \" substr($0, 1, 300) }' %s | %s"
_END = (
    "awk '{ kept[NR %% 40] = $0 } END { for (i = (NR > 40 ? NR - 39 : 1); i <= NR; i++) "
    'print i ": " substr(kept[i %% 40], 1, 90) }\' %s'
)
_STEP = "{name, container, terminationReason, terminated: (.terminated? | objects | {exitCode, reason, message})}"
_FIELDS = (
    "if .metadata? then {kind, metadata: {name: .metadata.name, labels: (.metadata.labels? | objects | "
    'with_entries(select(.key | startswith("tekton.dev/"))))}, status: {podName: .status.podName, '
    f"steps: [.status.steps[]? | {_STEP}], conditions: .status.conditions}}}} else {{id, name, status, stage, web_url, "
    "target_url, failure_reason, allow_failure, finished_at, needs, pipeline_id: (.pipeline_id? // .pipeline?.id?)} end"
)
_RECORDS = (
    '{ jq -c \'.. | objects | select((.name? and (.status? | strings | test("^(failed|failure|error)$")))'
    ' or (.status?.conditions? | arrays | any(.type? == "Succeeded" and .status? == "False")))'
    f" | {_FIELDS} | del(..|nulls)' %s; "
    'jq -c \'.. | objects | select(.name? and (.status? | strings | test("^(canceled|skipped)$")))'
    " | {id, name, status, stage}' %s; } | %s"
)
_TESTS = (
    "jq -c '.. | objects | select(.test_cases? | arrays) | {name, test_cases: [.test_cases[] | "
    'select(.status == "failed" or .status == "error") | {name, classname, status, stack_trace: ((.stack_trace // '
    ".system_output) | tostring | .[0:300])}]} | select(.test_cases | length > 0)' %s | %s"
)
_FILES = 'grep -a -o -E \'"(new|old)_path": *"[^"]*"|^(\\+\\+\\+|---) [ab]/.*\' %s | sort -u | %s'
_PLACE = re.compile(r"awk -v a=(\d{1,9}) -v b=(\d{1,9}) ")


def search(path: str) -> str:
    return _SEARCH % (PATTERN, shlex.quote(path))


def around(path: str, line: int) -> str:
    return _AROUND % (max(1, line - BEFORE), line + AFTER, shlex.quote(path), _MOST)


def end(path: str) -> str:
    return _END % shlex.quote(path)


def failed_records(path: str) -> str:
    """The failed ones, then what was not run at all."""
    return _RECORDS % (shlex.quote(path), shlex.quote(path), _MOST)


def failed_tests(path: str) -> str:
    return _TESTS % (shlex.quote(path), _MOST)


def changed_files(path: str) -> str:
    return _FILES % (shlex.quote(path), _MOST)


def looks_into(command: str, path: str) -> bool:
    """Whether this command of ours shows numbered lines of that file."""
    if command in {search(path), end(path)}:
        return True
    place = _PLACE.match(command)
    return place is not None and command == around(path, int(place[2]) - AFTER)
