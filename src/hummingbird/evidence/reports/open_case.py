"""A test while its element is open in a report: what its children say, and what comes of it in the end.

Knows the elements of a test in every dialect; knows nothing of suites, totals or files.
"""

from collections.abc import Mapping

from hummingbird.domain.limits import CASE_BODY_CHARS, CASE_FIELD_CHARS, CASE_LINKS, CASE_OUTPUT_CHARS
from hummingbird.evidence.clip import CUT, Clip
from hummingbird.evidence.regions import Line
from hummingbird.evidence.reports.testcases import BAD, Case, Link, Outcome
from hummingbird.evidence.reports.xml_text import uncoloured

WORDS = {
    **dict.fromkeys(("passed", "pass", "success", "completed", "info", "ok"), Outcome.PASSED),
    **dict.fromkeys(("failed", "fail", "failure", "bad"), Outcome.FAILED),
    **dict.fromkeys(("error", "errored", "infra_error", "aborted"), Outcome.ERROR),
    **dict.fromkeys(("skipped", "skip", "notrun", "suppressed", "ignored", "disabled"), Outcome.SKIPPED),
}
FINAL = {"failure": Outcome.FAILED, "error": Outcome.ERROR, "skipped": Outcome.SKIPPED}
TRIES = frozenset({"flakyFailure", "flakyError", "rerunFailure", "rerunError"})
PRINTED = {"system-out": "stdout", "output": "stdout", "system-err": "stderr"}
PLACES = ("arch", "compose", "distro", "baseosci.arch", "baseosci.distro")


class OpenCase:
    def __init__(self, suite: str, attributes: Mapping[str, str], at: int) -> None:
        # Reports are mostly tests that passed: nothing is made here that such a test does not need.
        self.suite, self.at = suite, at
        self._given = attributes
        self._said: Outcome | None = None
        self._type = ""
        self._messages: list[str] = []
        self._clips: dict[str, Clip] = {}
        self._bodies: list[Clip] = []
        self._phases: list[Line] = []
        self._links: list[Link] = []
        self._places: dict[str, str] = {}
        self._flaky = False
        self._tries = 0

    def child(self, name: str, attributes: Mapping[str, str], line: int) -> Clip | None:
        """A child element has begun; where its text shall go."""
        if name in FINAL or name in TRIES:
            return self._verdict(name, attributes)
        if name in {"log", "phase", "property", "guest"}:
            self._note(name, attributes, line)
            return None
        if name in {"stack-trace", "stackTrace"}:
            return self._new_body()
        if name == "message":
            return self._clips.setdefault(name, Clip(CASE_FIELD_CHARS, 0))
        return self._clips.setdefault(PRINTED[name], Clip(0, CASE_OUTPUT_CHARS)) if name in PRINTED else None

    def _verdict(self, name: str, attributes: Mapping[str, str]) -> Clip | None:
        if name in TRIES:
            self._tries += 1
        elif self._said not in BAD:
            self._said = FINAL[name]
        if name == "skipped":
            return None
        self._flaky = self._flaky or name.startswith("flaky")
        self._type = self._type or short(attributes.get("type") or attributes.get("exception-type") or "")
        message = uncoloured(short(attributes.get("message", "")))
        if message and message not in self._messages and len(self._messages) < CASE_LINKS:
            self._messages.append(message)
        return self._new_body()

    def _new_body(self) -> Clip | None:
        """A new one for each piece, because each has its own line numbers; the first ones get the most room."""
        if len(self._bodies) == CASE_LINKS:
            return None
        room = CASE_BODY_CHARS // (2 if len(self._bodies) < 2 else 8)
        self._bodies.append(Clip(room, room))
        return self._bodies[-1]

    def _note(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        if name == "log" and len(self._links) < CASE_LINKS:
            self._links.append(link(attributes, line))
        elif name == "phase" and word(attributes.get("result", "")) in BAD and len(self._phases) < CASE_LINKS:
            text = f"phase {short(attributes.get('name', ''))}: {short(attributes['result'])}"
            self._phases.append(Line(line, text))
        elif name == "guest" and attributes.get("name"):
            self._places.setdefault("guest", short(attributes["name"]))
        elif name == "property" and attributes.get("name") in PLACES:
            self._places.setdefault(attributes["name"].rpartition(".")[2], short(attributes.get("value", "")))

    @property
    def outcome(self) -> Outcome:
        found = self._said or self._attribute
        return Outcome.ERROR if found is Outcome.FAILED and self._given.get("label") == "Error" else found  # NUnit

    @property
    def _attribute(self) -> Outcome:
        given = self._given.get("result")
        if given is None:
            return Outcome.SKIPPED if self._given.get("status") == "notrun" else Outcome.PASSED
        return word(given)

    @property
    def flaky(self) -> bool:
        """Failed and passed. Surefire's `rerunFailure` beside a `failure` means that every try failed."""
        return self._flaky or bool(self._tries and self.outcome is Outcome.PASSED)

    @property
    def key(self) -> tuple[str, str, str]:
        given = self._given
        return self.suite, given.get("classname") or given.get("type", ""), given.get("name", "")

    @property
    def alike(self) -> tuple[str, str]:
        """Roughly equal for the same failure; only to keep some of each."""
        message = self._first_message
        if not message and not self._type:
            return "", short(self._given.get("name", ""))
        return self._type, "".join(letter for letter in message[:200] if not letter.isdigit())

    @property
    def _first_message(self) -> str:
        return self._messages[0] if self._messages else "\n".join(line.text for line in self._clipped("message"))

    def _clipped(self, name: str) -> tuple[Line, ...]:
        return self._clips[name].lines() if name in self._clips else ()

    def closed(self) -> Case:
        given = {name: short(value) for name, value in self._given.items()}
        return Case(
            suite=self.suite,
            name=given.get("name", ""),
            outcome=self.outcome,
            at=self.at,
            classname=given.get("classname") or given.get("type", ""),
            file=given.get("file") or given.get("source-file", ""),
            line=whole(given.get("line") or given.get("source-line")),
            type=self._type,
            message="\n".join(self._messages) or self._first_message,
            body=(*self._phases, *(line for body in self._bodies for line in body.lines())),
            stdout=self._clipped("stdout"),
            stderr=self._clipped("stderr"),
            logs=tuple(self._links),
            seconds=number(given.get("time") or given.get("duration")),
            failed_tries=self._tries,
            flaky=self.flaky,
            result=given.get("result", ""),
            place=", ".join(self._places.values()),
        )


def link(attributes: Mapping[str, str], line: int) -> Link:
    return Link(short(attributes.get("name", "")), short(attributes.get("href", "")), line)


def word(given: str) -> Outcome:
    return WORDS.get(given.strip().lower(), Outcome.OTHER)


def short(text: str) -> str:
    return text if len(text) <= CASE_FIELD_CHARS else text[: CASE_FIELD_CHARS - 1] + CUT


def whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def number(text: str | None) -> float | None:
    try:
        found = float((text or "").replace(",", ""))  # Surefire writes 1,234.5
    except ValueError:
        return None
    return found if 0 <= found < 1e9 else None
