"""Does an answer have everything that a captured one has?

    lacks(ours, captured)  →  ["notes[].author.locked is missing", "sha is null, captured as string"]

Every key path of the captured answer must be in ours, with a type that fits: numbers are numbers, and null fits only
where the capture has null too or the path is named in `nullable`. The items of a list are taken together: one of ours
must have what any captured one has, and none may be of a type that no captured one has. More keys are welcome.
It knows nothing of GitLab.
"""

from collections.abc import Collection, Iterator
from typing import Any

NULL = "null"


def lacks(ours: Any, captured: Any, *, nullable: Collection[str] = (), absent: Collection[str] = ()) -> list[str]:
    """What is wrong with ours, a sentence each. `absent`: paths that ours need not have."""
    return list(_lacks([ours], [captured], "", frozenset(nullable), frozenset(absent)))


def paths(things: Any) -> set[str]:
    """Every key path of an answer, as `nullable` and `absent` spell them."""
    return set(_paths(things, ""))


def _paths(thing: Any, path: str) -> Iterator[str]:
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield _below(path, key)
            yield from _paths(value, _below(path, key))
    elif isinstance(thing, list):
        for value in thing:
            yield from _paths(value, f"{path}[]")


def _lacks(
    ours: list[Any], captured: list[Any], path: str, nullable: frozenset[str], absent: frozenset[str]
) -> Iterator[str]:
    yield from _misfits(ours, captured, path, nullable)
    for key in _keys(captured):
        below, found = _below(path, key), _values(ours, key)
        if below in absent or not any(isinstance(each, dict) for each in ours):
            continue
        if not found:
            yield f"{below} is missing"
        else:
            yield from _lacks(found, _values(captured, key), below, nullable, absent)
    wanted, items = _items(captured), _items(ours)
    if wanted and items:
        yield from _lacks(items, wanted, f"{path}[]", nullable, absent)
    elif wanted and any(isinstance(each, list) for each in ours):
        yield f"{path}[] has no item to compare"


def _misfits(ours: list[Any], captured: list[Any], path: str, nullable: frozenset[str]) -> Iterator[str]:
    known = {_kind(each) for each in captured}
    for kind in sorted({_kind(each) for each in ours} - known):
        if kind == NULL and path in nullable:
            continue
        if kind != NULL and known == {NULL}:
            continue  # what a value looks like that was null when it was captured, nobody knows
        yield f"{path or 'it'} is {kind}, captured as {' or '.join(sorted(known))}"


def _kind(thing: Any) -> str:
    if thing is None:
        return NULL
    if isinstance(thing, bool):
        return "boolean"
    names = {str: "string", int: "number", float: "number", dict: "object", list: "list"}
    return names[type(thing)]


def _keys(things: list[Any]) -> list[str]:
    return list(dict.fromkeys(key for each in things if isinstance(each, dict) for key in each))


def _values(things: list[Any], key: str) -> list[Any]:
    return [each[key] for each in things if isinstance(each, dict) and key in each]


def _items(things: list[Any]) -> list[Any]:
    return [item for each in things if isinstance(each, list) for item in each]


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
