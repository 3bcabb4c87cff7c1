"""Label and field selectors: from a query string or from a Deployment's `selector`, to yes or no about an object.

Knows labels and three dozen characters of grammar; nothing about pods but the fields one may select by.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from hummingbird.lab.kubernetes.refusals import Raw, bad_request

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]
Selects = Callable[[Raw], bool]

_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(r"([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)")
_EXISTS = re.compile(r"(!?)\s*([^\s=!,()]+)")

FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP")


class LabelSelector:
    """All requirements must hold; none at all selects everything."""

    def __init__(self, requirements: list[Requirement]) -> None:
        self._requirements = requirements

    def __call__(self, labels: Labels) -> bool:
        return all(holds(labels) for holds in self._requirements)

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        parts = [part.strip() for part in _OUTSIDE_BRACKETS.split(text)] if text.strip() else []
        return cls([_requirement(part) for part in parts])

    @classmethod
    def of(cls, selector: Raw) -> "LabelSelector":
        """As workloads write it: matchLabels and matchExpressions."""
        equal = [_in(key, {value}) for key, value in (selector.get("matchLabels") or {}).items()]
        return cls([*equal, *(_expression(each) for each in selector.get("matchExpressions") or [])])


def _requirement(text: str) -> Requirement:
    if found := _SET.fullmatch(text):
        wanted = {value.strip() for value in found[3].split(",")}
        return _in(found[1], wanted) if found[2] == "in" else _not_in(found[1], wanted)
    if found := _EQUAL.fullmatch(text):
        return _not_in(found[1], {found[3]}) if found[2] == "!=" else _in(found[1], {found[3]})
    if found := _EXISTS.fullmatch(text):
        return _absent(found[2]) if found[1] else _present(found[2])
    raise bad_request(f"unable to parse requirement: found '{text}', expected: a key, '=', '!=', 'in' or 'notin'")


def _expression(expression: Raw) -> Requirement:
    key, values = expression["key"], set(expression.get("values") or [])
    match expression["operator"]:
        case "In":
            return _in(key, values)
        case "NotIn":
            return _not_in(key, values)
        case "Exists":
            return _present(key)
        case "DoesNotExist":
            return _absent(key)
        case other:
            raise bad_request(f'"{other}" is not a valid label selector operator')


def _in(key: str, wanted: set[str]) -> Requirement:
    return lambda labels: key in labels and labels[key] in wanted


def _not_in(key: str, wanted: set[str]) -> Requirement:
    # an object without the label passes, as in the real one
    return lambda labels: labels.get(key) not in wanted


def _present(key: str) -> Requirement:
    return lambda labels: key in labels


def _absent(key: str) -> Requirement:
    return lambda labels: key not in labels


def field_selector(text: str, resource: str = "/v1, Resource=pods", fields: tuple[str, ...] = FIELDS) -> Selects:
    """By the `fields` that may be selected by. `resource` is as refusals name it."""
    tests = [_field(part.strip(), resource, fields) for part in text.split(",") if part.strip()]
    return lambda thing: all(holds(thing) for holds in tests)


def _field(text: str, resource: str, fields: tuple[str, ...]) -> Selects:
    found = _EQUAL.fullmatch(text)
    if found is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    path, operator, value = found[1], found[2], found[3]
    if path not in fields:
        raise bad_request(
            f'Unable to find "{resource}" that match label selector "", field selector "{text}": '
            f"field label not supported: {path}"
        )
    return lambda thing: (_at(thing, path) == value) != (operator == "!=")


def _at(thing: Raw, path: str) -> str:
    here: Any = thing
    for step in path.split("."):
        here = here.get(step, "") if isinstance(here, dict) else ""
    return str(here)
