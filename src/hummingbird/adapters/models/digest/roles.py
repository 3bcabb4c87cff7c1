"""What an offered tool is good for in a failure analysis: told by the words of its name and by its parameters.

No list of tools: another forge's `fetch_build_trace(build_id)` plays the same role as our own. A tool whose name says
that it changes something plays none. Knows nothing of a conversation.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

from hummingbird.domain.tools import ToolDefinition


class Kind(StrEnum):
    """What a parameter stands for."""

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
    REQUEST = auto()  # of Testing Farm
    ADDRESS = auto()
    PATTERN = auto()
    FIRST = auto()
    LAST = auto()
    LIMIT = auto()
    COMMAND = auto()
    OTHER = auto()


class Role(StrEnum):
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
class Offer:
    """A tool in its role. `kinds`: what each of its parameters stands for."""

    tool: ToolDefinition
    role: Role
    kinds: Mapping[str, Kind]
    required: frozenset[str]

    def takes(self, kind: Kind) -> bool:
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
_MEANT: Sequence[tuple[Set[str], Kind]] = (
    (frozenset({"command", "cmd"}), Kind.COMMAND),
    (frozenset({"pipelinerun", "plr"}), Kind.PIPELINE_RUN),
    (frozenset({"taskrun"}), Kind.TASK_RUN),
    (frozenset({"iid", "mr"}), Kind.CHANGE),
    (frozenset({"project", "repo", "repository"}), Kind.PROJECT),
    (frozenset({"sha", "commit", "revision"}), Kind.COMMIT),
    (frozenset({"ref", "branch"}), Kind.BRANCH),
    (frozenset({"pipeline"}), Kind.PIPELINE),
    (frozenset({"job", "build"}), Kind.JOB),
    (frozenset({"container", "step"}), Kind.CONTAINER),
    (frozenset({"pod"}), Kind.POD),
    (frozenset({"request"}), Kind.REQUEST),
    (frozenset({"url", "href", "link", "address"}), Kind.ADDRESS),
    (frozenset({"pattern", "regex", "regexp"}), Kind.PATTERN),
    (frozenset({"first", "start", "from", "begin"}), Kind.FIRST),
    (frozenset({"last", "end", "to", "until"}), Kind.LAST),
    (frozenset({"limit", "max", "count"}), Kind.LIMIT),
)
_BARE = frozenset({"id", "name"})
_OWNERS = ("pipelinerun", "taskrun", "pod", "job", "build", "pipeline", "mr", "request")


def words_of(name: str) -> frozenset[str]:
    """The words of a name in small letters, without their plural."""
    for pattern, word in _TOGETHER:
        name = pattern.sub(f"_{word}_", name)
    return frozenset(_singular(word.lower()) for word in _WORDS.findall(name))


def offers(tools: Iterable[ToolDefinition]) -> list[Offer]:
    """The tools that play a role, in the order in which they are offered."""
    return [offer for tool in tools if (offer := offer_of(tool)) is not None]


def offer_of(tool: ToolDefinition) -> Offer | None:
    properties, required = _parameters(tool.schema)
    name = words_of(tool.name)
    told = words_of(tool.description.split(". ", 1)[0][:300])
    for words in (name, name | told):
        kinds = {parameter: _kind(parameter, name, told) for parameter in properties}
        acting = name & _ACTING
        role = None if acting else _role(words, told, frozenset(kinds.values()), _kinds(kinds, required))
        if role is not None:
            return Offer(tool, role, kinds, required)
    return None


def _role(words: Set[str], told: Set[str], takes: Set[Kind], needs: Set[Kind]) -> Role | None:
    if Kind.COMMAND in takes:  # on this machine itself it would not be ours to run anything
        return Role.SHELL if needs <= {Kind.COMMAND} and "sandbox" in words | told else None
    if words & {"sandbox", "baseline", "discussion", "note", "archive", "git", "audit"}:
        return None
    return next((role for role, fits in _ROLES if fits(words, takes)), None)


_IDENTITIES = frozenset({Kind.REQUEST, Kind.COMMIT, Kind.BRANCH, Kind.CHANGE, Kind.PIPELINE, Kind.OTHER})
_ROLES: Sequence[tuple[Role, Callable[[Set[str], Set[Kind]], bool]]] = (
    (Role.SEARCH, lambda words, takes: bool(words & _LOGS) and Kind.PATTERN in takes),
    (Role.RANGE, lambda words, takes: bool(words & _LOGS) and {Kind.FIRST, Kind.LAST} <= takes),
    (Role.POD_LOG, lambda words, takes: bool(words & _LOGS) and Kind.POD in takes),
    (Role.TEST_LOG, lambda words, takes: bool(words & _LOGS) and Kind.ADDRESS in takes),
    (Role.JOB_LOG, lambda words, takes: bool(words & _LOGS) and (Kind.JOB in takes or not takes & _IDENTITIES)),
    (Role.RESULTS, lambda words, takes: "result" in words and "status" not in words and Kind.REQUEST in takes),
    (Role.TEST_REPORT, lambda words, takes: {"test", "report"} <= words and Kind.PIPELINE in takes),
    (Role.TASK_RUNS, lambda words, takes: "taskrun" in words and bool(takes & {Kind.PIPELINE_RUN, Kind.COMMIT})),
    (Role.PIPELINE_RUNS, lambda words, takes: "pipelinerun" in words and Kind.COMMIT in takes),
    (Role.DIFF, lambda words, takes: bool(words & {"diff", "change"}) and Kind.CHANGE in takes),
    (
        Role.JOBS,
        lambda words, takes: (
            bool(words & {"job", "build", "status"})
            and bool(takes & {Kind.PIPELINE, Kind.COMMIT})
            and not takes & {Kind.JOB, Kind.REQUEST}
        ),
    ),
    (Role.CHANGE, lambda words, takes: "mr" in words and "commit" not in words and Kind.CHANGE in takes),
    (Role.PIPELINES, lambda words, takes: "pipeline" in words and Kind.BRANCH in takes),
)


def _kind(parameter: str, name: Set[str], told: Set[str]) -> Kind:
    """A bare `id` or `name` is that of what the tool is about."""
    words = words_of(parameter)
    found = next((kind for meant, kind in _MEANT if words & meant), None)
    if found is None and words <= _BARE:
        about = [owner for words in (name, told) for owner in _OWNERS if owner in words]
        owner = about[0] if about else "request" if "tf" in name else ""
        found = next((kind for meant, kind in _MEANT if owner in meant), None)
    if found in {Kind.JOB, Kind.PIPELINE, Kind.PROJECT} and "name" in words:
        return Kind.OTHER  # names are not what these are known by
    return found or Kind.OTHER


def _kinds(kinds: Mapping[str, Kind], names: Iterable[str]) -> frozenset[Kind]:
    return frozenset(kinds.get(name, Kind.OTHER) for name in names)


def _parameters(schema: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    properties, required = schema.get("properties"), schema.get("required")
    known = [name for name in properties if isinstance(name, str)] if isinstance(properties, Mapping) else []
    wanted = required if isinstance(required, list | tuple) else ()
    return known, frozenset(name for name in wanted if isinstance(name, str))


def _singular(word: str) -> str:
    if word.endswith("ses"):  # statuses
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us")) else word
