"""Patches: JSON merge patch and JSON patch, applied to a copy.

A strategic merge patch is the same as a merge patch as long as no list is in it; one with a list is refused, since
the stand-in knows no merge keys.
"""

import copy
from typing import Any

from hummingbird.lab.kubernetes_api.access import ApiStatusError, Raw, bad_request_error
from tests.standins.kubernetes.api_errors import media_type_error

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
STEPS = "application/json-patch+json"


def patched(target: Raw, patch: Any, media_type: str) -> Raw:
    if media_type == STEPS:
        return _stepped(copy.deepcopy(target), patch)
    if media_type not in {MERGE, STRATEGIC}:
        raise media_type_error(media_type, (STEPS, MERGE, STRATEGIC))
    if not isinstance(patch, dict):
        raise bad_request_error("cannot unmarshal a patch that is not an object")
    if media_type == STRATEGIC:
        _refuse_lists(patch)
    merged = _merged(target, patch)
    assert isinstance(merged, dict)
    return merged


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _refuse_lists(patch: Any) -> None:
    if isinstance(patch, list) or (isinstance(patch, dict) and any(key.startswith("$") for key in patch)):
        raise bad_request_error("This stand-in plays strategic merge patches without lists and directives alone.")
    for value in patch.values() if isinstance(patch, dict) else ():
        _refuse_lists(value)


def _stepped(target: Raw, steps: Any) -> Raw:
    if not isinstance(steps, list):
        raise bad_request_error("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    for step in steps:
        try:
            _step(target, step)
        except (KeyError, IndexError, ValueError, TypeError) as problem:
            raise _rejected() from problem
    return target


def _step(target: Raw, step: Raw) -> None:
    *path, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
    place: Any = target
    for part in path:
        place = place[int(part)] if isinstance(place, list) else place[part]
    key: Any = last if isinstance(place, dict) else len(place) if last == "-" else int(last)
    match step["op"]:
        case "add" if isinstance(place, list):
            place.insert(key, step["value"])
        case "add":
            place[key] = step["value"]
        case "replace" if isinstance(place, list) or key in place:
            place[key] = step["value"]
        case "remove":
            del place[key]
        case "test" if place[key] == step["value"]:
            pass
        case _:
            raise _rejected()


def _rejected() -> ApiStatusError:
    return ApiStatusError(422, "Invalid", "the server rejected our request due to an error in our request")
