"""Parse YAML text into plain values that remember their line and column.

Only this module parses YAML. It composes PyYAML's events itself, without recursion, so that every value has a
position, duplicate keys are detected, and nested aliases cannot expand without limit.
"""

import difflib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from hummingbird.core.errors import ConfigurationError
from hummingbird.core.limits import CONFIG_BYTES, CONFIG_DEPTH, CONFIG_FAULTS, CONFIG_NODES
from hummingbird.core.text import shorten_line

KeyPath = tuple[str | int, ...]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, order=True)
class FilePosition:
    """A position in the file. Both numbers start at 1; (0, 0) stands for the whole file."""

    line: int
    column: int


WHOLE_FILE = FilePosition(0, 0)


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault. `expected` starts in lower case and has no full stop."""

    path: KeyPath
    position: FilePosition
    expected: str

    def __str__(self) -> str:
        where = f"line {self.position.line}, column {self.position.column}" if self.position != WHOLE_FILE else ""
        return f"{': '.join(filter(None, (where, format_key_path(self.path), self.expected)))}."


def format_key_path(path: KeyPath) -> str:
    """Format a path as people write it: workflows.review.projects["group/project"].tokens."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{shorten_line(step, 80)}" if text else shorten_line(step, 80)
        else:
            text += f"[{json.dumps(shorten_line(step, 80), ensure_ascii=not step.isprintable())}]"
    return text


def unknown_key_message(name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key, with the most similar known key or a list of all."""
    names = sorted(known)
    alike = {one.replace("-", "_").casefold(): one for one in names}
    near = difflib.get_close_matches(name[:200].replace("-", "_").casefold(), alike, n=1, cutoff=0.6)
    if near:
        return f"there is no such key here; perhaps {alike[near[0]]!r} is meant"
    return f"there is no such key here; expected one of: {', '.join(names)}"


def faults_error(name: str, faults: Sequence[ConfigFault]) -> ConfigurationError:
    """Combine all faults into one error, in the order of the file."""
    ordered = sorted(faults, key=lambda fault: (fault.position, format_key_path(fault.path)))
    lines = tuple(str(fault) for fault in ordered)
    shown = [f"  {line}" for line in lines[:CONFIG_FAULTS]]
    if len(lines) > CONFIG_FAULTS:
        shown.append(f"  … and {len(lines) - CONFIG_FAULTS} more.")
    count = "one thing" if len(lines) == 1 else f"{len(lines)} things"
    return ConfigurationError("\n".join([f"Fix {count} in {name}:", *shown]), lines)


# YAML 1.1 words, because existing configuration files were written for YAML 1.1 parsers. Numbers are plain decimals.
_PLAIN_WORDS = {"": None, "~": None, "null": None, "true": True, "yes": True, "on": True}
_PLAIN_WORDS |= {"false": False, "no": False, "off": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]{0,30})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")


class DocumentUnreadable(Exception):
    """The text cannot be parsed at all; `fault` says why."""

    def __init__(self, fault: ConfigFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(slots=True)
class _YamlNode:
    """A YAML node with its position.

    `size` counts the node and everything below it, with aliases expanded. A mapping keeps all pairs, also those with
    duplicate keys.
    """

    position: FilePosition
    value: Any = None
    pairs: "list[tuple[_YamlNode, _YamlNode]] | None" = None
    items: "list[_YamlNode] | None" = None
    pending_key: "_YamlNode | None" = None  # a key whose value has not come yet
    anchor: str = ""
    raw: str | None = None
    size: int = 1

    def add_child(self, child: "_YamlNode") -> None:
        self.size += child.size
        if self.items is not None:
            self.items.append(child)
        elif self.pending_key is None:
            self.pending_key = child
        else:
            assert self.pairs is not None
            self.pairs.append((self.pending_key, child))
            self.pending_key = None


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """A parsed file.

    `value` consists of dict, list, str, int, float, bool and None. `keys` and `values` hold the position of each path.
    """

    value: Any
    keys: dict[KeyPath, FilePosition] = field(default_factory=dict)
    values: dict[KeyPath, FilePosition] = field(default_factory=dict)
    faults: list[ConfigFault] = field(default_factory=list)

    def position(self, path: KeyPath, *, of_key: bool = False) -> FilePosition:
        """Return the position of the path, or of its nearest parent that is in the file."""
        places = self.keys if of_key else self.values
        while path and path not in places:
            path = path[:-1]
        return places.get(path, FilePosition(1, 1))

    def leaves(self) -> Iterator[tuple[KeyPath, Any]]:
        """Yield every value that is neither a mapping nor a list, with its path, in the order of the file."""
        left: list[tuple[KeyPath, Any]] = [((), self.value)]
        while left:
            path, value = left.pop()
            if isinstance(value, dict):
                left += reversed([((*path, key), below) for key, below in value.items()])
            elif isinstance(value, list):
                left += reversed([((*path, index), below) for index, below in enumerate(value)])
            else:
                yield path, value


def read_document(content: bytes) -> ConfigDocument:
    """Parse the bytes of a configuration file. Raises DocumentUnreadable."""
    root = _compose(_decode_text(content))
    if root is None:
        raise _unreadable_error(FilePosition(1, 1), "the file is empty: expected `settings` and `workflows`")
    document = ConfigDocument(None)
    value = _to_value(root, (), document)
    if root.pairs is None:
        raise _unreadable_error(root.position, "expected a mapping with `settings` and `workflows` at the top level")
    return ConfigDocument(value, document.keys, document.values, document.faults)


def _decode_text(content: bytes) -> str:
    if len(content) > CONFIG_BYTES:
        raise _unreadable_error(WHOLE_FILE, f"the file is too large: expected at most {CONFIG_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise _unreadable_error(
            FilePosition(line, column), "the file is not UTF-8: save it in that encoding"
        ) from error


def _compose(text: str) -> _YamlNode | None:
    try:
        return _YamlComposer().compose(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise _unreadable_error(
            FilePosition(line, column), "expected text: there is a character that YAML does not allow"
        ) from error
    except yaml.MarkedYAMLError as error:
        place = _position_from_mark(error.problem_mark or error.context_mark)
        raise _unreadable_error(place, _describe_yaml_error(error, text, place)) from error
    except (ValueError, OverflowError) as error:  # PyYAML does not catch errors of int() and chr() for bad escapes
        raise _unreadable_error(
            FilePosition(1, 1), "expected YAML: there is an escape in quotes that means no character"
        ) from error


def _describe_yaml_error(error: Any, text: str, place: FilePosition) -> str:
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: place.column]:
        return "expected spaces: there is a tab, which YAML does not take for indentation"
    return f"expected YAML: {error.problem or error.context or 'this cannot be read'}"


class _YamlComposer:
    def __init__(self) -> None:
        self._open: list[_YamlNode] = []
        self._anchors: dict[str, _YamlNode] = {}
        self._root: _YamlNode | None = None
        self._nodes = 0

    def compose(self, events: Iterator[Any]) -> _YamlNode | None:
        for event in events:
            self._handle_event(event)
        return self._root

    def _handle_event(self, event: Any) -> None:
        place = _position_from_mark(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent) and self._root is not None:
            raise _unreadable_error(place, "expected one document: remove the second one, which begins with ---")
        if isinstance(event, yaml.AliasEvent):
            self._add_node(self._resolve_alias(event, place), place)
        elif isinstance(event, yaml.ScalarEvent):
            self._add_node(self._register_anchor(_scalar_node(event, place), event), place)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin_collection(event, place)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end_collection()

    def _begin_collection(self, event: Any, place: FilePosition) -> None:
        _refuse_tag(event, place)
        if len(self._open) >= CONFIG_DEPTH:
            raise _unreadable_error(place, f"expected at most {CONFIG_DEPTH} levels of nesting")
        node = _YamlNode(place, anchor=event.anchor or "")
        if isinstance(event, yaml.MappingStartEvent):
            node.pairs = []
        else:
            node.items = []
        self._open.append(node)

    def _end_collection(self) -> None:
        node = self._open.pop()
        if node.anchor:
            self._anchors[node.anchor] = node
        self._add_node(node, node.position)

    def _add_node(self, node: _YamlNode, place: FilePosition) -> None:
        if node.size > CONFIG_NODES or self._nodes > CONFIG_NODES:
            raise _unreadable_error(place, f"expected at most {CONFIG_NODES:,} values, with every alias written out")
        self._nodes += 1
        if self._open:
            self._open[-1].add_child(node)
        else:
            self._root = node

    def _register_anchor(self, node: _YamlNode, event: Any) -> _YamlNode:
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _resolve_alias(self, event: Any, place: FilePosition) -> _YamlNode:
        if any(event.anchor == node.anchor for node in self._open):
            raise _unreadable_error(place, "expected another value: the alias stands inside of itself")
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _unreadable_error(
                place,
                "expected an anchor, which begins with &, above this alias; put text that begins with * in quotes",
            )
        return found


def _scalar_node(event: Any, place: FilePosition) -> _YamlNode:
    _refuse_tag(event, place)
    if any("\ud800" <= sign <= "\udfff" for sign in event.value):
        raise _unreadable_error(place, "expected text: there is an escape in quotes that means no character")
    plain = event.implicit[0]
    return _YamlNode(place, _parse_plain_scalar(event.value) if plain else event.value, raw=event.value)


def _parse_plain_scalar(text: str) -> Any:
    cased = text in {text.lower(), text.upper(), text.capitalize()}
    if cased and text.lower() in _PLAIN_WORDS:
        return _PLAIN_WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and not re.match(r"[-+]?0[0-9]", text) and math.isfinite(float(text)):
        return float(text)
    return text


def _refuse_tag(event: Any, place: FilePosition) -> None:
    if event.tag not in {None, "!"}:
        raise _unreadable_error(place, "expected a plain value: tags, which begin with !, are not used here")


def _to_value(node: _YamlNode, path: KeyPath, document: ConfigDocument) -> Any:
    """Convert a node to plain values and record the positions.

    The composer limits the depth of what is written. The check here is for aliases, which can add depth.
    """
    document.values.setdefault(path, node.position)
    if len(path) > CONFIG_DEPTH:
        raise _unreadable_error(node.position, f"expected at most {CONFIG_DEPTH} levels of nesting")
    if node.items is not None:
        return [_to_value(item, (*path, index), document) for index, item in enumerate(node.items)]
    if node.pairs is None:
        return node.value
    return _to_mapping(node, path, document)


def _to_mapping(node: _YamlNode, path: KeyPath, document: ConfigDocument) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.pairs or ():
        if key.raw is None:
            document.faults.append(
                ConfigFault(path, key.position, "expected a name as the key, not a list or a mapping")
            )
        elif key.raw == "<<":
            continue
        elif key.raw in found:
            first = document.keys[(*path, key.raw)].line
            document.faults.append(
                ConfigFault((*path, key.raw), key.position, f"the key is there twice, first in line {first}")
            )
        else:
            document.keys[(*path, key.raw)] = key.position
            found[key.raw] = _to_value(value, (*path, key.raw), document)
    for key, value in node.pairs or ():
        if key.raw == "<<":
            _merge_into(value, path, document, found)
    return found


def _merge_into(source: _YamlNode, path: KeyPath, document: ConfigDocument, found: dict[str, Any]) -> None:
    for one in source.items if source.items is not None else [source]:
        if one.pairs is None:
            document.faults.append(ConfigFault(path, one.position, "expected a mapping to merge after <<"))
            continue
        for key, value in _iter_merge_pairs(one):
            if key.raw is not None and key.raw not in found:
                document.keys[(*path, key.raw)] = key.position
                found[key.raw] = _to_value(value, (*path, key.raw), document)


def _iter_merge_pairs(node: _YamlNode) -> Iterator[tuple[_YamlNode, _YamlNode]]:
    """Yield the mapping's own pairs, then those that it merges with `<<`."""
    pairs = node.pairs or []
    yield from (pair for pair in pairs if pair[0].raw != "<<")
    for key, value in pairs:
        if key.raw == "<<":
            for one in value.items if value.items is not None else [value]:
                yield from _iter_merge_pairs(one)


def _position_from_mark(mark: Any) -> FilePosition:
    return FilePosition(mark.line + 1, mark.column + 1) if mark is not None else FilePosition(1, 1)


def _unreadable_error(place: FilePosition, expected: str) -> DocumentUnreadable:
    return DocumentUnreadable(ConfigFault((), place, expected))
