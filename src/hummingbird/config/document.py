"""YAML text to plain values that know where they stand. The only module that knows YAML.

Composes the parser's events itself, without recursion: that way each value has its line, doubled keys are seen, and
aliases cannot grow into more than a file may hold. Knows nothing of what the keys mean.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from hummingbird.config.faults import WHOLE, Fault, KeyPath, Place
from hummingbird.domain.limits import CONFIG_BYTES, CONFIG_DEPTH, CONFIG_NODES

# As YAML 1.1 has them, since the files of others were written for such a reader; numbers are the plain decimal ones.
_WORDS = {"": None, "~": None, "null": None, "true": True, "yes": True, "on": True}
_WORDS |= {"false": False, "no": False, "off": False}
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})")
_BROKEN = re.compile(r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")


class Unreadable(Exception):
    """The text as a whole cannot be read; it has one fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(slots=True)
class _Node:
    """`size` counts everything in it, with aliases written out. Mappings keep every pair, doubled keys too."""

    place: Place
    value: Any = None
    pairs: "list[tuple[_Node, _Node]] | None" = None
    items: "list[_Node] | None" = None
    waiting: "_Node | None" = None  # a key whose value has not come yet
    anchor: str = ""
    raw: str | None = None
    size: int = 1

    def take(self, child: "_Node") -> None:
        self.size += child.size
        if self.items is not None:
            self.items.append(child)
        elif self.waiting is None:
            self.waiting = child
        else:
            assert self.pairs is not None
            self.pairs.append((self.waiting, child))
            self.waiting = None


@dataclass(frozen=True, slots=True)
class Document:
    """`value` is made of dict, list, str, int, float, bool and None. `keys` and `values`: where each path stands."""

    value: Any
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def place(self, path: KeyPath, *, of_key: bool = False) -> Place:
        """Of the path, or of the nearest thing around it that stands in the file."""
        places = self.keys if of_key else self.values
        while path and path not in places:
            path = path[:-1]
        return places.get(path, Place(1, 1))

    def leaves(self) -> Iterator[tuple[KeyPath, Any]]:
        """Everything that is neither a mapping nor a list, with its path, in the order of the file."""
        left: list[tuple[KeyPath, Any]] = [((), self.value)]
        while left:
            path, value = left.pop()
            if isinstance(value, dict):
                left += reversed([((*path, key), below) for key, below in value.items()])
            elif isinstance(value, list):
                left += reversed([((*path, index), below) for index, below in enumerate(value)])
            else:
                yield path, value


def read_document(content: bytes) -> Document:
    """Raises Unreadable."""
    root = _composed(_text(content))
    if root is None:
        raise _unreadable(Place(1, 1), "the file is empty: expected `settings` and `workflows`")
    document = Document(None)
    value = _plain(root, (), document)
    if root.pairs is None:
        raise _unreadable(root.place, "expected a mapping with `settings` and `workflows` at the top level")
    return Document(value, document.keys, document.values, document.faults)


def _text(content: bytes) -> str:
    if len(content) > CONFIG_BYTES:
        raise _unreadable(WHOLE, f"the file is too large: expected at most {CONFIG_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise _unreadable(Place(line, column), "the file is not UTF-8: save it in that encoding") from error


def _composed(text: str) -> _Node | None:
    try:
        return _Composer().composed(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise _unreadable(
            Place(line, column), "expected text: there is a character that YAML does not allow"
        ) from error
    except yaml.MarkedYAMLError as error:
        place = _place(error.problem_mark or error.context_mark)
        raise _unreadable(place, _what_is_wrong(error, text, place)) from error
    except (ValueError, OverflowError) as error:  # PyYAML passes on what int() and chr() think of an escape
        raise _unreadable(Place(1, 1), "expected YAML: there is an escape in quotes that means no character") from error


def _what_is_wrong(error: Any, text: str, place: Place) -> str:
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: place.column]:
        return "expected spaces: there is a tab, which YAML does not take for indentation"
    return f"expected YAML: {error.problem or error.context or 'this cannot be read'}"


class _Composer:
    def __init__(self) -> None:
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._root: _Node | None = None
        self._nodes = 0

    def composed(self, events: Iterator[Any]) -> _Node | None:
        for event in events:
            self._take(event)
        return self._root

    def _take(self, event: Any) -> None:
        place = _place(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent) and self._root is not None:
            raise _unreadable(place, "expected one document: remove the second one, which begins with ---")
        if isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event, place), place)
        elif isinstance(event, yaml.ScalarEvent):
            self._add(self._anchored(_scalar(event, place), event), place)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()

    def _begin(self, event: Any, place: Place) -> None:
        _refuse_tag(event, place)
        if len(self._open) >= CONFIG_DEPTH:
            raise _unreadable(place, f"expected at most {CONFIG_DEPTH} levels of nesting")
        node = _Node(place, anchor=event.anchor or "")
        if isinstance(event, yaml.MappingStartEvent):
            node.pairs = []
        else:
            node.items = []
        self._open.append(node)

    def _end(self) -> None:
        node = self._open.pop()
        if node.anchor:
            self._anchors[node.anchor] = node
        self._add(node, node.place)

    def _add(self, node: _Node, place: Place) -> None:
        if node.size > CONFIG_NODES or self._nodes > CONFIG_NODES:
            raise _unreadable(place, f"expected at most {CONFIG_NODES:,} values, with every alias written out")
        self._nodes += 1
        if self._open:
            self._open[-1].take(node)
        else:
            self._root = node

    def _anchored(self, node: _Node, event: Any) -> _Node:
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: Any, place: Place) -> _Node:
        if any(event.anchor == node.anchor for node in self._open):
            raise _unreadable(place, "expected another value: the alias stands inside of itself")
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _unreadable(
                place,
                "expected an anchor, which begins with &, above this alias; put text that begins with * in quotes",
            )
        return found


def _scalar(event: Any, place: Place) -> _Node:
    _refuse_tag(event, place)
    if any("\ud800" <= sign <= "\udfff" for sign in event.value):
        raise _unreadable(place, "expected text: there is an escape in quotes that means no character")
    plain = event.implicit[0]
    return _Node(place, _meant(event.value) if plain else event.value, raw=event.value)


def _meant(text: str) -> Any:
    cased = text in {text.lower(), text.upper(), text.capitalize()}
    if cased and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text.replace("_", ""))
    if _BROKEN.fullmatch(text) and not re.match(r"[-+]?0[0-9]", text) and math.isfinite(float(text)):
        return float(text)
    return text


def _refuse_tag(event: Any, place: Place) -> None:
    if event.tag not in {None, "!"}:
        raise _unreadable(place, "expected a plain value: tags, which begin with !, are not used here")


def _plain(node: _Node, path: KeyPath, document: Document) -> Any:
    """Depth is bounded by the composer, aliases included: an alias brings a value that was as deep elsewhere."""
    document.values.setdefault(path, node.place)
    if len(path) > CONFIG_DEPTH:
        raise _unreadable(node.place, f"expected at most {CONFIG_DEPTH} levels of nesting")
    if node.items is not None:
        return [_plain(item, (*path, index), document) for index, item in enumerate(node.items)]
    if node.pairs is None:
        return node.value
    return _mapping(node, path, document)


def _mapping(node: _Node, path: KeyPath, document: Document) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.pairs or ():
        if key.raw is None:
            document.faults.append(Fault(path, key.place, "expected a name as the key, not a list or a mapping"))
        elif key.raw == "<<":
            continue
        elif key.raw in found:
            first = document.keys[(*path, key.raw)].line
            document.faults.append(Fault((*path, key.raw), key.place, f"the key is there twice, first in line {first}"))
        else:
            document.keys[(*path, key.raw)] = key.place
            found[key.raw] = _plain(value, (*path, key.raw), document)
    for key, value in node.pairs or ():
        if key.raw == "<<":
            _merge(value, path, document, found)
    return found


def _merge(source: _Node, path: KeyPath, document: Document, found: dict[str, Any]) -> None:
    for one in source.items if source.items is not None else [source]:
        if one.pairs is None:
            document.faults.append(Fault(path, one.place, "expected a mapping to merge after <<"))
            continue
        for key, value in _merged_pairs(one):
            if key.raw is not None and key.raw not in found:
                document.keys[(*path, key.raw)] = key.place
                found[key.raw] = _plain(value, (*path, key.raw), document)


def _merged_pairs(node: _Node) -> Iterator[tuple[_Node, _Node]]:
    """What stands in it, then what it merges itself."""
    pairs = node.pairs or []
    yield from (pair for pair in pairs if pair[0].raw != "<<")
    for key, value in pairs:
        if key.raw == "<<":
            for one in value.items if value.items is not None else [value]:
                yield from _merged_pairs(one)


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1) if mark is not None else Place(1, 1)


def _unreadable(place: Place, expected: str) -> Unreadable:
    return Unreadable(Fault((), place, expected))
