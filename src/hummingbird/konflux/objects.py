"""Prepares PipelineRuns, TaskRuns and Pods for the model: JSON lines without noise, with notes on what is easy to miss.

Accepts any object, however malformed.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json

JsonObject: TypeAlias = dict[str, Any]
NOTE = "hummingbird_note"
_TEST_RESULTS = ("TEST_OUTPUT", "HACBS_TEST_OUTPUT")  # the second is the name in older tasks
_FAILING_RESULTS = ("FAILURE", "ERROR")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_POD = {"kind": "Pod", "apiVersion": "v1"}


def encode_line(item: JsonObject) -> bytes:
    return encode_json(item) + b"\n"


def encode_json(item: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(item)
    except (ValueError, OverflowError):  # a lone surrogate, an integer over 64 bits
        return json.dumps(item, separators=(",", ":")).encode()


def object_uid(item: JsonObject) -> str:
    """Return the object's uid, or an empty string."""
    return str(_as_object(item.get("metadata")).get("uid") or "")


def prepare_object(item: JsonObject, kind: str = "") -> JsonObject:
    """Remove managed fields and add a note where needed. Set `kind` to "Pod" for items of a list, which lack theirs."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    typed = {**_POD, **item} if kind == "Pod" else item
    note = _failure_note(item)
    return {**typed, NOTE: note} if note else typed


def container_names(pod: JsonObject) -> list[str]:
    """Return the names in the order in which the containers run: init containers, then steps and sidecars."""
    spec = _as_object(pod.get("spec"))
    listed = [_as_object(each) for key in _CONTAINERS for each in _as_list(spec.get(key))]
    return [str(each["name"]) for each in listed if each.get("name")]


def _failure_note(item: JsonObject) -> str:
    """Return a note on a run that succeeded for Tekton but counts as failed in Konflux, or an empty string.

    Konflux judges a test by the result that it reports, not by whether its tasks ran through.
    """
    if not _has_succeeded(item):
        return ""
    for result in _iter_results(_as_object(item.get("status"))):
        if result.get("name") in _TEST_RESULTS and (said := _describe_failing_result(result.get("value"))):
            return (
                f"This run succeeded for Tekton, yet its result {result['name']} says {said}: Konflux judges the test "
                "by that result, so it counts as failed."
            )
    return ""


def _has_succeeded(item: JsonObject) -> bool:
    conditions = [_as_object(each) for each in _as_list(_as_object(item.get("status")).get("conditions"))]
    return any(each.get("type") == "Succeeded" and each.get("status") == "True" for each in conditions)


def _iter_results(status: JsonObject) -> Iterator[JsonObject]:
    """Yield the results under their current and v1beta1 names, also of TaskRuns inside a v1beta1 PipelineRun."""
    for key in ("results", "pipelineResults", "taskResults"):
        yield from (_as_object(each) for each in _as_list(status.get(key)))
    for run in _as_object(status.get("taskRuns")).values():
        inner = _as_object(_as_object(run).get("status"))
        for key in ("results", "taskResults"):
            yield from (_as_object(each) for each in _as_list(inner.get(key)))


def _describe_failing_result(value: object) -> str:
    """Describe a failing result; return an empty string for any other."""
    output = _as_object(_parse_json(value))
    if output.get("result") not in _FAILING_RESULTS:
        return ""
    counts = {name: output.get(name) for name in ("failures", "warnings", "successes")}
    counted = ", ".join(f"{count} {name}" for name, count in counts.items() if isinstance(count, int))
    return f"{output['result']} ({counted})" if counted else str(output["result"])


def _parse_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return decode_lenient_json(value)
    except InvalidJson:
        return None


def _as_object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
