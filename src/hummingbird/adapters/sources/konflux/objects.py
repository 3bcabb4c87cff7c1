"""What a PipelineRun, a TaskRun or a Pod becomes before the model reads it: a line of JSON, less what nobody reads,
plus what is easily overlooked.

Total: whatever an object looks like, it is handed on. Knows nothing of where it came from.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Raw: TypeAlias = dict[str, Any]
NOTE = "hummingbird_note"
_TEST_RESULTS = ("TEST_OUTPUT", "HACBS_TEST_OUTPUT")  # the second is what older tasks call it
_FAILING = ("FAILURE", "ERROR")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_POD = {"kind": "Pod", "apiVersion": "v1"}


def line(item: Raw) -> bytes:
    return encoded(item) + b"\n"


def encoded(item: Raw) -> bytes:
    try:
        return msgspec.json.encode(item)
    except (ValueError, OverflowError):  # half a surrogate pair, an integer over 64 bits
        return json.dumps(item, separators=(",", ":")).encode()


def uid(item: Raw) -> str:
    """Empty where there is none."""
    return str(_fields(item.get("metadata")).get("uid") or "")


def shown(item: Raw, kind: str = "") -> Raw:
    """`kind` "Pod" is for items of a list, which leave out what they are."""
    metadata = item.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    typed = {**_POD, **item} if kind == "Pod" else item
    note = _note(item)
    return {**typed, NOTE: note} if note else typed


def containers(pod: Raw) -> list[str]:
    """In the order in which they run: the init containers, then the steps and sidecars."""
    spec = _fields(pod.get("spec"))
    listed = [_fields(each) for key in _CONTAINERS for each in _items(spec.get(key))]
    return [str(each["name"]) for each in listed if each.get("name")]


def _note(item: Raw) -> str:
    """Konflux judges a test by the result that it reports, not by whether its tasks ran through."""
    if not _succeeded(item):
        return ""
    for result in _results(_fields(item.get("status"))):
        if result.get("name") in _TEST_RESULTS and (said := _failing(result.get("value"))):
            return (
                f"This run succeeded for Tekton, yet its result {result['name']} says {said}: Konflux judges the test "
                "by that result, so it counts as failed."
            )
    return ""


def _succeeded(item: Raw) -> bool:
    conditions = [_fields(each) for each in _items(_fields(item.get("status")).get("conditions"))]
    return any(each.get("type") == "Succeeded" and each.get("status") == "True" for each in conditions)


def _results(status: Raw) -> Iterator[Raw]:
    """Under the names of today and of v1beta1, and those of the TaskRuns that a v1beta1 PipelineRun holds."""
    for key in ("results", "pipelineResults", "taskResults"):
        yield from (_fields(each) for each in _items(status.get(key)))
    for run in _fields(status.get("taskRuns")).values():
        inner = _fields(_fields(run).get("status"))
        for key in ("results", "taskResults"):
            yield from (_fields(each) for each in _items(inner.get(key)))


def _failing(value: object) -> str:
    """What a failing result says, in our words; empty for any other."""
    output = _fields(_parsed(value))
    if output.get("result") not in _FAILING:
        return ""
    counts = {name: output.get(name) for name in ("failures", "warnings", "successes")}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if isinstance(count, int))
    return f"{output['result']} ({told})" if told else str(output["result"])


def _parsed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        found: object = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found


def _fields(value: object) -> Raw:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
