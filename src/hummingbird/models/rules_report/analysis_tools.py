"""Recognise what each offered tool can do in a failure analysis, and build the arguments and commands for it.

Tools are recognised by the words of their name and by their parameters, not by a list: `fetch_build_trace(build_id)` of
another forge has the same role as our own tool. A tool whose name says that it changes something has no role.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from typing import Any

import msgspec

from hummingbird.core.json_codec import InvalidJson, encode_json
from hummingbird.core.tool_spec import ToolDefinition


class ParameterKind(StrEnum):
    """What a tool's parameter means."""

    PROJECT = auto()
    CHANGE = auto()  # the number of a merge request
    COMMIT = auto()
    BRANCH = auto()
    PIPELINE = auto()
    JOB = auto()
    PIPELINE_RUN = auto()
    TASK_RUN = auto()
    POD = auto()
    CONTAINER = auto()
    REQUEST = auto()  # a Testing Farm request
    ADDRESS = auto()
    PATTERN = auto()
    FIRST = auto()
    LAST = auto()
    LIMIT = auto()
    COMMAND = auto()
    OTHER = auto()


class ToolRole(StrEnum):
    """What a tool can do in a failure analysis."""

    JOBS = auto()
    JOB_LOG = auto()
    SEARCH = auto()
    RANGE = auto()
    TEST_REPORT = auto()
    CHANGE = auto()
    DIFF = auto()
    PIPELINES = auto()
    PIPELINE_RUNS = auto()
    TASK_RUNS = auto()
    POD_LOG = auto()
    TEST_LOG = auto()
    RESULTS = auto()
    SHELL = auto()


@dataclass(frozen=True, slots=True)
class AnalysisTool:
    """A tool with its role. `kinds` maps each parameter to its meaning."""

    tool: ToolDefinition
    role: ToolRole
    kinds: Mapping[str, ParameterKind]
    required: frozenset[str]

    def takes(self, kind: ParameterKind) -> bool:
        return kind in self.kinds.values()


_LOGS = frozenset({"log", "trace", "console"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ACTING = frozenset(
    _WORDS.findall(
        "create post update delete remove retry cancel play send write set add approve trigger close reopen comment "
        "reply resolve erase push edit rerun restart start stop upload apply publish finding"
    )
)
_TOGETHER = (
    (re.compile(r"merge[_-]?requests?|pull[_-]?requests?|MergeRequests?|PullRequests?"), "mr"),
    (re.compile(r"pipeline[_-]?runs?|PipelineRuns?"), "pipelinerun"),
    (re.compile(r"task[_-]?runs?|TaskRuns?"), "taskrun"),
    (re.compile(r"testing[_-]?farm|TestingFarm"), "tf"),
)
_MEANT: Sequence[tuple[Set[str], ParameterKind]] = (
    (frozenset({"command", "cmd"}), ParameterKind.COMMAND),
    (frozenset({"pipelinerun", "plr"}), ParameterKind.PIPELINE_RUN),
    (frozenset({"taskrun"}), ParameterKind.TASK_RUN),
    (frozenset({"iid", "mr"}), ParameterKind.CHANGE),
    (frozenset({"project", "repo", "repository"}), ParameterKind.PROJECT),
    (frozenset({"sha", "commit", "revision"}), ParameterKind.COMMIT),
    (frozenset({"ref", "branch"}), ParameterKind.BRANCH),
    (frozenset({"pipeline"}), ParameterKind.PIPELINE),
    (frozenset({"job", "build"}), ParameterKind.JOB),
    (frozenset({"container", "step"}), ParameterKind.CONTAINER),
    (frozenset({"pod"}), ParameterKind.POD),
    (frozenset({"request"}), ParameterKind.REQUEST),
    (frozenset({"url", "href", "link", "address"}), ParameterKind.ADDRESS),
    (frozenset({"pattern", "regex", "regexp"}), ParameterKind.PATTERN),
    (frozenset({"first", "start", "from", "begin"}), ParameterKind.FIRST),
    (frozenset({"last", "end", "to", "until"}), ParameterKind.LAST),
    (frozenset({"limit", "max", "count"}), ParameterKind.LIMIT),
)
_BARE = frozenset({"id", "name"})
_OWNERS = ("pipelinerun", "taskrun", "pod", "job", "build", "pipeline", "mr", "request")


def split_words(name: str) -> frozenset[str]:
    """Split a name into words, in lower case and singular."""
    for pattern, word in _TOGETHER:
        name = pattern.sub(f"_{word}_", name)
    return frozenset(_to_singular(word.lower()) for word in _WORDS.findall(name))


def find_analysis_tools(tools: Iterable[ToolDefinition]) -> list[AnalysisTool]:
    """Return the tools that have a role, in the order in which they are offered."""
    return [offer for tool in tools if (offer := classify_tool(tool)) is not None]


def classify_tool(tool: ToolDefinition) -> AnalysisTool | None:
    """Return a tool with its role; None if it has none.

    The name decides first; if it is not enough, the first sentence of the description counts too.
    """
    properties, required = _read_parameters(tool.schema)
    name = split_words(tool.name)
    told = split_words(tool.description.split(". ", 1)[0][:300])
    for words in (name, name | told):
        kinds = {parameter: _find_kind(parameter, name, told) for parameter in properties}
        acting = name & _ACTING
        role = None if acting else _find_role(words, told, frozenset(kinds.values()), _kinds_for(kinds, required))
        if role is not None:
            return AnalysisTool(tool, role, kinds, required)
    return None


def _find_role(
    words: Set[str], told: Set[str], takes: Set[ParameterKind], needs: Set[ParameterKind]
) -> ToolRole | None:
    if ParameterKind.COMMAND in takes:  # only in a sandbox: rules must not run commands on the user's machine
        return ToolRole.SHELL if needs <= {ParameterKind.COMMAND} and "sandbox" in words | told else None
    if words & {"sandbox", "baseline", "discussion", "note", "archive", "git", "audit"}:
        return None
    return next((role for role, fits in _ROLES if fits(words, takes)), None)


_IDENTITIES = frozenset(
    {
        ParameterKind.REQUEST,
        ParameterKind.COMMIT,
        ParameterKind.BRANCH,
        ParameterKind.CHANGE,
        ParameterKind.PIPELINE,
        ParameterKind.OTHER,
    }
)
_ROLES: Sequence[tuple[ToolRole, Callable[[Set[str], Set[ParameterKind]], bool]]] = (
    (ToolRole.SEARCH, lambda words, takes: bool(words & _LOGS) and ParameterKind.PATTERN in takes),
    (ToolRole.RANGE, lambda words, takes: bool(words & _LOGS) and {ParameterKind.FIRST, ParameterKind.LAST} <= takes),
    (ToolRole.POD_LOG, lambda words, takes: bool(words & _LOGS) and ParameterKind.POD in takes),
    (ToolRole.TEST_LOG, lambda words, takes: bool(words & _LOGS) and ParameterKind.ADDRESS in takes),
    (
        ToolRole.JOB_LOG,
        lambda words, takes: bool(words & _LOGS) and (ParameterKind.JOB in takes or not takes & _IDENTITIES),
    ),
    (
        ToolRole.RESULTS,
        lambda words, takes: "result" in words and "status" not in words and ParameterKind.REQUEST in takes,
    ),
    (ToolRole.TEST_REPORT, lambda words, takes: {"test", "report"} <= words and ParameterKind.PIPELINE in takes),
    (
        ToolRole.TASK_RUNS,
        lambda words, takes: "taskrun" in words and bool(takes & {ParameterKind.PIPELINE_RUN, ParameterKind.COMMIT}),
    ),
    (ToolRole.PIPELINE_RUNS, lambda words, takes: "pipelinerun" in words and ParameterKind.COMMIT in takes),
    (ToolRole.DIFF, lambda words, takes: bool(words & {"diff", "change"}) and ParameterKind.CHANGE in takes),
    (
        ToolRole.JOBS,
        lambda words, takes: (
            bool(words & {"job", "build", "status"})
            and bool(takes & {ParameterKind.PIPELINE, ParameterKind.COMMIT})
            and not takes & {ParameterKind.JOB, ParameterKind.REQUEST}
        ),
    ),
    (ToolRole.CHANGE, lambda words, takes: "mr" in words and "commit" not in words and ParameterKind.CHANGE in takes),
    (ToolRole.PIPELINES, lambda words, takes: "pipeline" in words and ParameterKind.BRANCH in takes),
)


def _find_kind(parameter: str, name: Set[str], told: Set[str]) -> ParameterKind:
    """Return the meaning of a parameter. A bare `id` or `name` belongs to the thing that the tool is about."""
    words = split_words(parameter)
    found = next((kind for meant, kind in _MEANT if words & meant), None)
    if found is None and words <= _BARE:
        about = [owner for words in (name, told) for owner in _OWNERS if owner in words]
        owner = about[0] if about else "request" if "tf" in name else ""
        found = next((kind for meant, kind in _MEANT if owner in meant), None)
    if found in {ParameterKind.JOB, ParameterKind.PIPELINE, ParameterKind.PROJECT} and "name" in words:
        return ParameterKind.OTHER  # these are identified by ids, not by names
    return found or ParameterKind.OTHER


def _kinds_for(kinds: Mapping[str, ParameterKind], names: Iterable[str]) -> frozenset[ParameterKind]:
    return frozenset(kinds.get(name, ParameterKind.OTHER) for name in names)


def _read_parameters(schema: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    properties, required = schema.get("properties"), schema.get("required")
    known = [name for name in properties if isinstance(name, str)] if isinstance(properties, Mapping) else []
    wanted = required if isinstance(required, list | tuple) else ()
    return known, frozenset(name for name in wanted if isinstance(name, str))


def _to_singular(word: str) -> str:
    if word.endswith("ses"):  # statuses
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")) else word


_OPTIONAL = frozenset({ParameterKind.PROJECT, ParameterKind.JOB, ParameterKind.CONTAINER, ParameterKind.LIMIT})
"""Optional parameters that are always given if known: they say what is meant, and how much of it."""


def fill_arguments(
    offer: AnalysisTool, known: Mapping[ParameterKind, Any], meant: Set[ParameterKind] = frozenset()
) -> dict[str, Any] | None:
    """Return arguments that the tool's schema accepts; None if a required parameter is unknown.

    `known` maps each meaning to the value to use. `meant` are the meanings that this call is about.
    """
    arguments: dict[str, Any] = {}
    asked = _optional_kinds(offer, meant)
    for name, kind in offer.kinds.items():
        if kind in known and (name in offer.required or kind in _OPTIONAL or kind in asked):
            arguments[name] = _convert_value(known[kind], _schema_types(offer.tool.schema, name))
    if not offer.required <= arguments.keys() or not _schema_validator(offer.tool.schema)(arguments):
        return None
    return arguments


def _optional_kinds(offer: AnalysisTool, meant: Set[ParameterKind]) -> Set[ParameterKind]:
    """Choose the optional parameters of a tool that requires none, because something must say what is meant.

    These are the ones that the call is about, or all if the tool has none of those. Giving all is the exception,
    because tools that list by one parameter or another refuse both.
    """
    if offer.required:
        return frozenset()
    takes = frozenset(offer.kinds.values()) - {ParameterKind.OTHER, ParameterKind.FIRST, ParameterKind.LAST}
    return takes & meant or takes


def _schema_types(schema: Mapping[str, Any], name: str) -> set[str]:
    properties = schema.get("properties")
    about = properties.get(name) if isinstance(properties, Mapping) else None
    found: set[str] = set()
    if isinstance(about, Mapping):
        for one in [about, *(o for key in ("anyOf", "oneOf") for o in _as_list(about.get(key)))]:
            if isinstance(one, Mapping):
                found |= {t for t in _as_list(one.get("type")) if isinstance(t, str)}
    return found


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _convert_value(value: Any, types: set[str]) -> Any:
    """Convert a value to the type that the schema accepts, a number or text."""
    if isinstance(value, str) and types & {"integer", "number"} and value.isdecimal() and value.isascii():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and types and not types & {"integer", "number"}:
        return str(value)
    return value


def _schema_validator(schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], bool]:
    try:
        return _compile_validator(encode_json(schema))
    except InvalidJson:
        return _reject_all


@lru_cache(maxsize=256)
def _compile_validator(schema: bytes) -> Callable[[dict[str, Any]], bool]:
    import jsonschema_rs  # noqa: PLC0415 - a compiled library, loaded when the first call is planned

    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(schema), retriever=_no_remote_references).is_valid
    except (ValueError, TypeError, jsonschema_rs.ValidationError):
        return _reject_all


def _reject_all(_arguments: dict[str, Any]) -> bool:
    return False


def _no_remote_references(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri[:120]}")


# Shell commands for the sandbox, for when the preview of a file is not enough. Each prints little, so that its own
# output is not shortened to a preview again. A later turn recognises a command, and so its output, by its exact text.

FAILURE_PATTERN = (
    "[Ee]rror|ERROR|[Ff]ail|FAIL|[Ff]atal|FATAL|[Pp]anic|[Ee]xception|Traceback|[Tt]imed out|[Tt]imeout|[Kk]illed|"
    "[Rr]efused|[Dd]enied|[Cc]annot|[Uu]nable to|[Uu]ndefined|not found|No space|No such|[Aa]bort|assert"
)
"""An extended regular expression without flags, so that both search tools and awk accept it."""
LINES_BEFORE, LINES_AFTER = 25, 15
_FIRST_BYTES = "head -c 3500"
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


def command_for_search(path: str) -> str:
    """Return a command that prints the first and last lines that look like a failure."""
    return _SEARCH % (FAILURE_PATTERN, shlex.quote(path))


def command_for_lines_around(path: str, line: int) -> str:
    """Return a command that prints the lines around a line number."""
    return _AROUND % (max(1, line - LINES_BEFORE), line + LINES_AFTER, shlex.quote(path), _FIRST_BYTES)


def command_for_tail(path: str) -> str:
    """Return a command that prints the last lines."""
    return _END % shlex.quote(path)


def command_for_failed_records(path: str) -> str:
    """Return a command that prints the failed records, then those that were cancelled or skipped."""
    return _RECORDS % (shlex.quote(path), shlex.quote(path), _FIRST_BYTES)


def command_for_failed_tests(path: str) -> str:
    """Return a command that prints the failed tests of GitLab's test report."""
    return _TESTS % (shlex.quote(path), _FIRST_BYTES)


def command_for_changed_files(path: str) -> str:
    """Return a command that prints the files of a diff."""
    return _FILES % (shlex.quote(path), _FIRST_BYTES)


def is_command_for(command: str, path: str) -> bool:
    """Tell whether this is one of our commands that print numbered lines of that file."""
    if command in {command_for_search(path), command_for_tail(path)}:
        return True
    place = _PLACE.match(command)
    return place is not None and command == command_for_lines_around(path, int(place[2]) - LINES_AFTER)
