"""Finding, reading and checking the configuration. Every fault is found before any is told (G2).

Reads the file and the prompts it names; variables come as an argument, and only whether they are set is asked.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from hummingbird.config.checking import checked, prompts, variables
from hummingbird.config.configuration import Configuration, Written
from hummingbird.config.document import Document, Unreadable, read_document
from hummingbird.config.faults import WHOLE, Fault, KeyPath, broken, written
from hummingbird.config.unconfigured import with_environment
from hummingbird.domain.limits import CONFIG_BYTES, PROMPT_BYTES

FILE_NAME = "hummingbird.yaml"
PATH_VARIABLE = "CONFIG_PATH"
EMBEDDED = "the embedded defaults"
_EMBEDDED = Path(__file__).parent / "embedded" / FILE_NAME


@dataclass(frozen=True, slots=True)
class Examined:
    """`configuration` is None if there are faults. `files`: what was read; None for one that could not be."""

    name: str
    configuration: Configuration | None
    faults: tuple[Fault, ...]
    files: Mapping[Path, bytes | None]

    def sound(self) -> Configuration:
        """Raises ConfigurationBroken, with all faults."""
        if self.configuration is None:
            raise broken(self.name, self.faults)
        return self.configuration


def find(option: str | None, environment: Mapping[str, str], folder: Path) -> Path | None:
    """--config, CONFIG_PATH, hummingbird.yaml in `folder`; None means the embedded defaults. Those that somebody named
    need not exist: loading says so."""
    named = option or environment.get(PATH_VARIABLE, "")
    if named:
        return folder / named
    usual = folder / FILE_NAME
    return usual if usual.exists() else None


def find_named(option: str | None, environment: Mapping[str, str], folder: Path) -> tuple[Path | None, str]:
    """--config or CONFIG_PATH alone, for what works in folders that others filled: a hummingbird.yaml there may have
    come with a repository, and could name programs to start, rules that allow, and servers to send tokens to. The
    sentence says that there is one."""
    if option or environment.get(PATH_VARIABLE, ""):
        return find(option, environment, folder), ""
    if not (folder / FILE_NAME).exists():
        return None, ""
    return None, (
        f"The {FILE_NAME} of this folder is not read, since anybody could have put it there: name it with --config or "
        f"{PATH_VARIABLE} if it is yours."
    )


def load(path: Path | None, environment: Mapping[str, str] | None) -> Configuration:
    """Raises ConfigurationBroken. See `examine`."""
    return examine(path, environment).sound()


def examine(path: Path | None, environment: Mapping[str, str] | None) -> Examined:
    """Never raises for what is in a file. No path: the embedded defaults. Without an environment nobody asks whether
    the variables are set."""
    name = str(path) if path else EMBEDDED
    reading = _Reading()
    content = reading.content(path or _EMBEDDED)
    if isinstance(content, str):
        return Examined(name, None, (Fault((), WHOLE, content),), reading.files)
    try:
        document = read_document(content)
    except Unreadable as error:
        return Examined(name, None, (error.fault,), reading.files)
    found, faults = checked(document)
    if path is None and found is not None and environment is not None:
        adapted = with_environment(found, environment)
        if isinstance(adapted, Fault):
            faults.append(adapted)
        else:
            found = adapted
    texts = _prompts(document, (path or _EMBEDDED).parent, reading, faults)
    faults += _unset(document, environment)
    made = None if found is None or faults else _configuration(name, found, texts)
    return Examined(name, made, tuple(faults), MappingProxyType(reading.files))


def _configuration(name: str, found: Written, texts: Mapping[str, str]) -> Configuration:
    return Configuration(name, found.settings, found.workflows, found.chat, MappingProxyType(texts))


@dataclass(slots=True)
class _Reading:
    files: dict[Path, bytes | None] = field(default_factory=dict)

    def content(self, path: Path) -> bytes | str:
        content = content_of(path)
        self.files[path] = content if isinstance(content, bytes) else None
        return content


def content_of(path: Path) -> bytes | str:
    """What is in the file, up to one byte more than any may have; or a sentence, if there is nothing to read. Pipes and
    devices are not waited for."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return "expected a file that can be read, not a directory or a device"
        with path.open("rb") as file:
            return file.read(max(CONFIG_BYTES, PROMPT_BYTES) + 1)
    except OSError as error:
        return f"expected a file that can be read: {os.strerror(error.errno or 0).lower()}"
    except ValueError:  # a path with a null character
        return "expected a file that can be read: there is no such name"


def _prompts(document: Document, folder: Path, reading: _Reading, faults: list[Fault]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, file in prompts(document):
        text = _prompt(reading.content(folder / file))
        if isinstance(text, _Refused):
            faults.append(Fault(path, document.place(path), text.sentence))
        else:
            found[str(path[1])] = text
    return found


@dataclass(frozen=True, slots=True)
class _Refused:
    sentence: str


def _prompt(content: bytes | str) -> str | _Refused:
    if isinstance(content, str):
        return _Refused(content)
    if len(content) > PROMPT_BYTES:
        return _Refused(f"expected a file of at most {PROMPT_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _Refused("expected a file in UTF-8")
    return text if text.strip() else _Refused("expected a file with a prompt: this one is empty")


def _unset(document: Document, environment: Mapping[str, str] | None) -> Iterable[Fault]:
    """One fault for all variables that are not set."""
    if environment is None:
        return ()
    wanted: dict[str, list[KeyPath]] = {}
    for path, name in variables(document):
        if not environment.get(name, "").strip():
            wanted.setdefault(name, []).append(path)
    if not wanted:
        return ()
    first = next(iter(wanted.values()))[0]
    told = ", ".join(f"{name} ({_where(paths, document)})" for name, paths in wanted.items())
    return (Fault(first, document.place(first), f"expected these environment variables to be set: {told}"),)


def _where(paths: list[KeyPath], document: Document) -> str:
    return ", ".join(f"{written(path)} in line {document.place(path).line}" for path in paths)
