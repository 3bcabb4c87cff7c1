"""Every place where a credential could come to rest or go out: how its bytes are collected after a journey, and how one
is put there. A search that does not find what was planted proves nothing.
"""

import gzip
import io
import json
import logging
import re
import sqlite3
import tarfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hummingbird.core.journal import (
    ModelFailed,
    ModelFailureKind,
    RunEnded,
    ToolFinished,
    ToolOutcome,
    UserSaid,
    dump_entry,
    load_entry,
)
from tests.journeys.service.stage import Ours
from tests.security.canaries import TIERS, found
from tests.security.canary_journey import LOOKUPS, SEEN, TROUBLES, Bug, Heard, Trail
from tests.standins.vendors.recording import Recorded

Parts = Mapping[str, bytes]  # by where they stand
_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_SIGNS = {"n": "\n", "t": "\t", "r": "\r"}


@dataclass(frozen=True)
class Sink:
    """`plant` puts a text where `collect` takes it from: into the file, the bucket or the lab's world where those are
    kept, else into what was overheard of them. `on`: the only journey that leads there, if not both do."""

    name: str
    collect: Callable[[Trail], Parts]
    plant: Callable[[Trail, str], None]
    on: str = ""

    def told(self, trail: Trail) -> list[str]:
        """Whose credential is where, in sentences."""
        return [
            f"{self.name}: {where} tells the credential {name!r}"
            for where, content in self.collect(trail).items()
            for name in sorted({one for text in _readings(content) for one in found(text, TIERS)})
        ]


def _readings(content: bytes) -> Iterator[str]:
    """As it is, without a layer of JSON, and what is packed in it: SQLite may lay a text over two pages."""
    texts = [content.decode("latin-1")]
    if content.startswith(_GZIP):
        texts.append(gzip.decompress(content).decode("latin-1"))
    if content.startswith(_SQLITE):
        texts.append("\n".join(_rows(content)))
    for text in texts:
        yield text
        if "\\" in text:
            yield _ESCAPED.sub(_sign, text)


def _sign(escape: "re.Match[str]") -> str:
    letter = escape[1]
    return chr(int(letter[1:], 16)) if len(letter) > 1 else _SIGNS.get(letter, letter)


def _rows(content: bytes) -> Iterator[str]:
    with closing(sqlite3.connect(":memory:")) as file:
        file.deserialize(content[:18] + b"\1\1" + content[20:])  # in memory there is no write-ahead log
        for (table,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if not table.startswith("sqlite_"):
                yield from (" ".join(map(_value, row)) for row in file.execute(f'SELECT * FROM "{table}"'))


def _value(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# collecting


def _model_bodies(trail: Trail) -> Parts:
    return {f"request {number}": _json(one.body) for number, one in enumerate(trail.vendor, 1)}


def _model_headers(trail: Trail) -> Parts:
    """All but the one that is for it."""
    return {
        f"request {number}": _json([one.path, {k: v for k, v in one.headers.items() if k.lower() != "x-api-key"}])
        for number, one in enumerate(trail.vendor, 1)
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _inside(trail: Trail, *, seen: bool) -> Parts:
    """Files of sandboxes: what the model saw of its surroundings, or all others, with their names."""
    parts: dict[str, bytes] = {}
    for place, content in trail.archives.items():
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                if (PurePosixPath(member.name).name == PurePosixPath(SEEN).name) == seen and member.isfile():
                    file = archive.extractfile(member)
                    assert file is not None
                    parts[f"{member.name} in {place}"] = member.name.encode() + b"\n" + file.read()
    return parts


def _kept(*names: str) -> Callable[[Trail], Parts]:
    """Files of sessions, on the disk and in the bucket."""

    def collect(trail: Trail) -> Parts:
        on_disk = {str(path): path for path in trail.state.rglob("sessions/*/*") if path.name in names}
        kept = {where: path.read_bytes() for where, path in on_disk.items()}
        return kept | {where: one for where, one in trail.bucket.items() if PurePosixPath(where).name in names}

    return collect


def _bucket_tails(trail: Trail) -> Parts:
    return {name: one for name, one in trail.bucket.items() if name.endswith("/journal/tail.jsonl")}


def _bucket_failures(trail: Trail) -> Parts:
    return {name: one for name, one in trail.bucket.items() if "known-failures/" in name}


def _exported(trail: Trail) -> Parts:
    return {str(path): path.read_bytes() for path in trail.exported.rglob("*") if path.is_file()}


def _files(pattern: str) -> Callable[[Trail], Parts]:
    """Of the state folder, with what stands beside them; a SQLite file also as it is with its log worked in."""

    def collect(trail: Trail) -> Parts:
        parts: dict[str, bytes] = {}
        for path in sorted(path for path in trail.state.rglob(pattern) if path.is_file()):
            parts[str(path)] = path.read_bytes()
            if path.suffix == ".sqlite":
                parts[f"{path}, worked in"] = _worked_in(path)
        return {where: content for where, content in parts.items() if content}

    return collect


def _worked_in(path: Path) -> bytes:
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        file.backup(copy)
        return copy.serialize()


def _notes(trail: Trail) -> Parts:
    bodies = {f"note {note.id}": f"{note.body} {note.position}".encode() for note in trail.notes}
    return bodies | {f"award {number}": name.encode() for number, name in enumerate(trail.awards, 1)}


WRITES, READS = ("orchestrator of all", "orchestrator of the project"), "tool"


def of_the_bot(one: Heard) -> bool:
    return one.server == "gitlab" and one.header("private-token") in [TIERS[name] for name in WRITES]


def of_the_reader(one: Heard) -> bool:
    return one.server == "gitlab" and one.header("private-token") == TIERS[READS]


def _asked(whose: Callable[[Heard], bool], credential: str) -> Callable[[Trail], Parts]:
    """Whole requests, without the value of the one header in which the credential goes."""

    def collect(trail: Trail) -> Parts:
        chosen = enumerate(one for one in trail.heard if whose(one))
        return {f"{number} {one.line}": _without(one, credential) for number, one in chosen}

    return collect


def _without(one: Heard, credential: str) -> bytes:
    headers = "\n".join(f"{name}: {value}" for name, value in one.headers if name != credential)
    return f"{one.line}\n{headers}\n\n".encode() + one.body


def _to(server: str) -> Callable[[Heard], bool]:
    return lambda one: one.server == server


def _records(trail: Trail) -> Parts:
    """Before anything is masked. What a bug of ours quotes is a matter of how lines are written."""
    plain = (one for one in trail.records if not (one.exc_info and isinstance(one.exc_info[1], Bug)))
    return {f"record {number}": _told_by(one) for number, one in enumerate(plain, 1)}


def _told_by(record: logging.LogRecord) -> bytes:
    trace = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
    return f"{record.getMessage()} {record.args!r} {trace}".encode(errors="replace")


def _log_lines(trail: Trail) -> Parts:
    return {"the log": "\n".join(trail.lines).encode(errors="replace")}


def _traces(trail: Trail) -> Parts:
    return {f"line {number}": line.encode() for number, line in enumerate(trail.lines, 1) if "Traceback" in line}


def _errors(trail: Trail) -> Parts:
    """What went wrong, as the journals say it: of models, of tools, of runs."""
    return {
        f"{where}, entry {number}": text.encode()
        for where, content in _journals(trail)
        for number, text in enumerate(_sentences(content.splitlines()))
    }


def _journals(trail: Trail) -> Iterable[tuple[str, bytes]]:
    yield from _kept("journal.jsonl")(trail).items()
    for where, content in _bucket_tails(trail).items():
        yield where, content.partition(b"\n")[2]


def _sentences(lines: Sequence[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        match load_entry(line, number):
            case ModelFailed(sentence=sentence) | RunEnded(sentence=sentence) if sentence:
                yield sentence
            case ToolFinished(text=text, outcome=ToolOutcome.ERROR | ToolOutcome.MISTAKE):
                yield text
            case _:
                pass


def _printed(name: str) -> Callable[[Trail], Parts]:
    def collect(trail: Trail) -> Parts:
        output, complaints = trail.printed.get(name, (b"", b""))
        return {where: text for where, text in (("stdout", output), ("stderr", complaints)) if text}

    return collect


# planting


def _into_requests(trail: Trail, text: str) -> None:
    asked = {"messages": [{"role": "user", "content": f"See {text}."}]}
    trail.vendor = [*trail.vendor, Recorded("anthropic", "/v1/messages", {}, asked, 200)]


def _into_headers(trail: Trail, text: str) -> None:
    trail.vendor = [*trail.vendor, Recorded("anthropic", "/v1/messages", {"user-agent": text}, {}, 200)]


def _into_archive(name: str) -> Callable[[Trail, str], None]:
    def plant(trail: Trail, text: str) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            member = tarfile.TarInfo(name.lstrip("/"))
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        trail.archives["planted.tar.gz"] = packed.getvalue()

    return plant


def _into_session(name: str, written: Callable[[str], bytes]) -> Callable[[Trail, str], None]:
    return lambda trail, text: _write(trail.state / "sessions" / "planted" / name, written(text))


def _into_bucket(name: str) -> Callable[[Trail, str], None]:
    def plant(trail: Trail, text: str) -> None:
        head = b'{"tail":1,"serial":1,"first":0}\n' if name.endswith("tail.jsonl") else b""
        trail.bucket[f"kept/sessions/planted/{name}"] = head + _said(text)

    return plant


def _said(text: str) -> bytes:
    return dump_entry(UserSaid(text=f"I use {text}"))


def _failed(text: str) -> bytes:
    return dump_entry(
        ModelFailed(call_id="1", model="m", happening=ModelFailureKind.CREDENTIAL, sentence=f"Refused: {text}")
    )


def _as_text(text: str) -> bytes:
    return f"## User\n\nI use {text}\n".encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _into_notes(trail: Trail, text: str) -> None:
    note = Ours(1, "1", f"I found {text}", marker=None, internal=False, resolved=False, position=None)
    trail.notes = [*trail.notes, note]


def _into_wire(server: str, header: str, tier: str) -> Callable[[Trail, str], None]:
    def plant(trail: Trail, text: str) -> None:
        trail.heard.append(Heard(server, "POST /?", [(header, TIERS[tier])], f"body={text}".encode()))

    return plant


def _into_records(trail: Trail, text: str) -> None:
    trail.records.append(logging.LogRecord("any", logging.DEBUG, "any.py", 1, "It says %s", (text,), None))


def _into_lines(trail: Trail, text: str) -> None:
    trail.lines.append(f"ERROR failed\nTraceback (most recent call last):\nKeyError: {text}")


def _into_rows(name: str) -> Callable[[Trail, str], None]:
    """Laid over two pages of the file."""

    def plant(trail: Trail, text: str) -> None:
        trail.state.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(trail.state / name)) as file:
            size = file.execute("PRAGMA page_size").fetchone()[0]
            file.execute("CREATE TABLE planted (text)")
            file.execute("INSERT INTO planted VALUES (?)", ("." * (size - 20) + text + "." * size,))
            file.commit()

    return plant


def _into_output(name: str) -> Callable[[Trail, str], None]:
    def plant(trail: Trail, text: str) -> None:
        output, complaints = trail.printed.get(name, (b"", b""))
        trail.printed[name] = (output, complaints + f"hummingbird: it says {text}\n".encode())

    return plant


# the table


def _command(name: str, *, on: str = "") -> Sink:
    return Sink(f"hummingbird {name}", _printed(name), _into_output(name), on)


FOLDER, BUCKET = "folder", "bucket"
SINKS = (
    Sink("bodies of model requests", _model_bodies, _into_requests),
    Sink("headers of model requests", _model_headers, _into_headers),
    Sink("environment of sandboxes", lambda trail: _inside(trail, seen=True), _into_archive(SEEN)),
    Sink("files of sandboxes", lambda trail: _inside(trail, seen=False), _into_archive("/tmp/data/said.txt")),
    Sink("archives", lambda trail: trail.archives, _into_archive("/tmp/data/any")),
    Sink("journals", _kept("journal.jsonl"), _into_session("journal.jsonl", _said), FOLDER),
    Sink("context.json", _kept("context.json"), _into_session("context.json", _said)),
    Sink("transcripts", _kept("transcript.md"), _into_session("transcript.md", _as_text)),
    Sink("metadata.json", _kept("metadata.json"), _into_session("metadata.json", _said)),
    Sink("exported sessions", _exported, lambda trail, text: _write(trail.exported / "any.md", _as_text(text))),
    Sink("tails of the bucket's journals", _bucket_tails, _into_bucket("journal/tail.jsonl"), BUCKET),
    Sink("all objects of the bucket", lambda trail: trail.bucket, _into_bucket("any.json"), BUCKET),
    Sink("notes and awards", _notes, _into_notes),
    Sink("what the forge asks", _asked(of_the_bot, "private-token"), _into_wire("gitlab", "private-token", WRITES[1])),
    Sink(
        "what sources ask GitLab", _asked(of_the_reader, "private-token"), _into_wire("gitlab", "private-token", READS)
    ),
    Sink(
        "what the cluster is asked",
        _asked(_to("konflux"), "authorization"),
        _into_wire("konflux", "authorization", "konflux"),
    ),
    Sink(
        "what the farm is asked",
        _asked(_to("testing_farm"), "authorization"),
        _into_wire("testing_farm", "authorization", "testing farm"),
    ),
    Sink("log records", _records, _into_records),
    Sink("log lines", _log_lines, _into_lines),
    Sink("traces of bugs in the log", _traces, _into_lines),
    Sink("error texts", _errors, _into_session("journal.jsonl", _failed)),
    Sink("the queue", _files("queue.sqlite*"), _into_rows("queue.sqlite")),
    Sink("known failures", _files("known_failures.sqlite*"), _into_rows("known_failures.sqlite"), FOLDER),
    Sink("known failures of the bucket", _bucket_failures, _into_bucket("known-failures/any.json"), BUCKET),
    Sink("the index", _files("sessions-*.sqlite*"), _into_rows("sessions-any.sqlite")),
    Sink("all files of the service", _files("*"), lambda trail, text: _write(trail.state / "any.bin", _as_text(text))),
    *map(_command, LOOKUPS),
    *(_command(name, on=FOLDER) for name in TROUBLES),
)
