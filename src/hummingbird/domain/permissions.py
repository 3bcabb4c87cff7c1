"""Who may run what (T9): rules, grants for one exact call, and the judgement over them. Values and a pure function.

What restricts is read generously, what permits strictly: a deny or ask rule holds for a tool that has any of its
effects and looks past spelling (`Pattern.touches`), and where only running tells whether it speaks of a call, a person
is asked; an allow rule needs the exact name, has to cover all effects, and its stars do not stand for shell operators,
`..` or what only running tells (`Pattern.fits`). Knows neither who is asked nor where grants are
kept.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec

from hummingbird.domain.catastrophes import normalised
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import Delegated, Entry, ToolDecided
from hummingbird.domain.limits import JUDGED_CHARS
from hummingbird.domain.patterns import Disguised, Pattern
from hummingbird.domain.shell_evaluation import FILE_NAME, ShellEvaluation, evaluate_command
from hummingbird.domain.shell_parameters import UNKNOWN
from hummingbird.domain.shell_words import TooInvolved
from hummingbird.domain.tools import Effect, ToolSpec

ALLOWED, DENIED = "allowed", "denied"  # the words for a decision in the journal


class Action(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Scope(StrEnum):
    """How long a person's yes holds, for exactly the call that was asked about."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


# What holds for calls that nothing else speaks of. An effect that is not named asks.
CAREFUL: Mapping[Effect, Action] = MappingProxyType({Effect.READ: Action.ALLOW})

_STRICTNESS = (Action.ALLOW, Action.ASK, Action.DENY)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')  # in JSON
_SHELL_ARGUMENTS = frozenset(("command", "cmd", "script"))  # what tools call that which a shell is given
_DOUBT = (
    "it may be meant, but what this command does is known only when it runs: write it out, without variables or "
    "substitutions in what the rule speaks of"
)
_TOOL_PATTERN = re.compile(r"[A-Za-z0-9_.*-]*[A-Za-z0-9*][A-Za-z0-9_.*-]*")


@dataclass(frozen=True)
class Command:
    """A call as it will run. `text` is its arguments as JSON with sorted keys and nothing else made alike: what differs
    in a space, in a letter's Unicode form or in 1 and 1.0 is another command."""

    tool: str
    text: str
    arguments: Mapping[str, Any] = field(repr=False, compare=False)
    _looks: dict[str, tuple[Disguised, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _readings: dict[str, list[ShellEvaluation] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(cls, spec: ToolSpec, arguments: Mapping[str, Any]) -> "Command | None":
        """None for arguments that JSON cannot tell apart from others; a hook may have made such."""
        try:
            text = msgspec.json.encode(arguments, order="sorted")
            alike = msgspec.json.decode(text) == arguments
        except (TypeError, ValueError):
            return None
        return cls(spec.name, text.decode(), arguments) if alike else None

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(f"{self.tool}\n{self.text}".encode()).hexdigest()

    def shown(self, mask: Callable[[str], str]) -> str:
        """For people: credentials masked, and everything that a screen would not show, or show as something else,
        written as its escape (C6)."""
        masked = _STRING.sub(lambda found: _json(mask(msgspec.json.decode(found[0]))), self.text)
        return f"{self.tool} {normalised(mask(masked))}"

    @property
    def too_long(self) -> bool:
        return len(self.text) > JUDGED_CHARS

    def permitted_by(self, argument: str, pattern: Pattern) -> bool:
        """Without an argument's name the pattern is for the whole text, and its stars stay inside one string of it. A
        star does not stand for what only running tells."""
        if self.too_long or (argument and argument not in self.arguments):
            return False
        if not pattern.is_exact and self._is_unknown(argument):
            return False
        if not argument:
            return pattern.fits(self.text, also_turning='"')
        value = self.arguments[argument]
        return pattern.fits(value if isinstance(value, str) else _json(value))

    def restricted_by(self, argument: str, pattern: Pattern) -> bool:
        """Also by any single string in what is looked at, and by any command that a shell makes of it; and what is too
        long or too involved to be looked at is restricted."""
        try:
            return self.too_long or any(pattern.touches(look) for look in self._looks_of(argument))
        except TooInvolved:
            return True

    def _looks_of(self, argument: str) -> tuple[Disguised, ...]:
        if argument not in self._looks:
            value = self.arguments.get(argument) if argument else self.arguments
            absent = argument and argument not in self.arguments
            texts = [] if absent else [*_texts(_json(value)), *self._spoken(argument)]
            self._looks[argument] = tuple(map(Disguised, dict.fromkeys(texts)))
        return self._looks[argument]

    def perhaps_restricted_by(self, argument: str, pattern: Pattern) -> bool:
        """Say whether it depends on something that only running tells: a variable, what another command prints."""
        try:
            readings = self._read_shell(argument)
        except TooInvolved:
            return True
        return any(reading.runs_unknown for reading in readings) or any(
            pattern.may_touch(text, UNKNOWN, FILE_NAME) for reading in readings for text in reading.uncertain
        )

    def _is_unknown(self, argument: str) -> bool:
        try:
            readings = self._read_shell(argument)
        except TooInvolved:
            return True
        return any(
            reading.runs_unknown or any(UNKNOWN in text for text in reading.commands) or reading.sets_git
            for reading in readings
        )

    def _spoken(self, argument: str) -> Iterator[str]:
        """A shell runs the same command however its words are quoted. Raises TooInvolved."""
        for reading in self._read_shell(argument):
            yield from reading.commands
            yield " ".join(reading.tokens)

    def _read_shell(self, argument: str) -> list[ShellEvaluation]:
        """Read what a shell is given, in the named argument or in any. Raises TooInvolved."""
        readings: list[ShellEvaluation] = []
        for name in _SHELL_ARGUMENTS & ({argument} if argument else self.arguments.keys()):
            value = self.arguments.get(name)
            if not isinstance(value, str):
                continue
            if name not in self._readings:
                self._readings[name] = None  # for whoever asks again after a TooInvolved
                self._readings[name] = list(evaluate_command(value))
            if (known := self._readings[name]) is None:
                raise TooInvolved
            readings += known
        return readings


@dataclass(frozen=True)
class Rule:
    """Speaks of calls of the tools that `tool` names (a glob), with any of `effects` (none given: whatever they do) and
    with `argument` like `pattern`; without an argument's name the pattern is for the arguments as a whole, written as
    JSON with sorted keys and no spaces. An allow rule for a named argument says nothing about the other arguments: one
    for the whole does. `reason` is told to the model, so it should say what to do instead.

    Raises UsageFault, naming the rule, for one that means nothing.
    """

    action: Action
    tool: str = "*"
    argument: str = ""
    pattern: str = ""
    effects: frozenset[Effect] = frozenset()
    reason: str = ""
    name: str = ""
    _tool: Pattern = field(init=False, repr=False, compare=False)
    _pattern: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            self._understand()
        except (UsageFault, ValueError) as error:
            raise UsageFault(f"The permission {self.title} is broken: {error}.") from error

    def _understand(self) -> None:
        object.__setattr__(self, "action", Action(self.action))
        object.__setattr__(self, "effects", frozenset(map(Effect, self.effects)))
        if not _TOOL_PATTERN.fullmatch(self.tool):
            raise UsageFault(f"{self.tool!r} cannot be a tool's name; use letters, digits, _ and *")
        if self.argument and not self.pattern:
            raise UsageFault(f"it names the argument {self.argument!r} but no pattern; use * for any value")
        object.__setattr__(self, "_tool", Pattern(_normal(self.tool) if self._restricts else self.tool))
        object.__setattr__(self, "_pattern", Pattern(self.pattern) if self.pattern else None)

    @property
    def title(self) -> str:
        if self.name:
            return f"rule {self.name!r}"
        where = f" where {self.argument or 'all of it'} is like {self.pattern!r}" if self.pattern else ""
        effects = f" with {'/'.join(sorted(self.effects))}" if self.effects else ""
        return f"rule '{self.action} {self.tool}{effects}{where}'"

    @property
    def _restricts(self) -> bool:
        return self.action is not Action.ALLOW

    def speaks_of(self, spec: ToolSpec, command: Command) -> bool:
        name = _normal(spec.name) if self._restricts else spec.name
        return self._tool.fits(name) and self._concerns(spec.effects) and self._covers(command)

    def may_speak_of(self, spec: ToolSpec, command: Command) -> bool:
        """Say whether it would speak of the call if what only running tells were known. What permits never may."""
        if not self._restricts or self._pattern is None:
            return False
        concerns = self._tool.fits(_normal(spec.name)) and self._concerns(spec.effects)
        return concerns and command.perhaps_restricted_by(self.argument, self._pattern)

    def _concerns(self, effects: frozenset[Effect]) -> bool:
        if not self.effects:
            return True
        return bool(effects & self.effects) if self._restricts else effects <= self.effects

    def _covers(self, command: Command) -> bool:
        if self._pattern is None:
            return True
        covers = command.restricted_by if self._restricts else command.permitted_by
        return covers(self.argument, self._pattern)


@dataclass(frozen=True, slots=True)
class Decision:
    """`absolute`: no grant changes it. `command` None: there was nothing that could be judged."""

    action: Action
    by: str
    reason: str
    command: Command | None
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked. `text` is the whole call, ready to be shown; cut nothing off it. `scopes` are the answers
    that can be kept here."""

    tool: str
    text: str
    reason: str
    key: str
    effects: frozenset[Effect]
    scopes: tuple[Scope, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`scope` None is a no. `words` are the person's own, for the model and the journal."""

    scope: Scope | None
    words: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A yes that is kept: for the call with this key. `command` is there to be read by people."""

    key: str
    command: str
    by: str


def judge(
    rules: Sequence[Rule],
    grants: Mapping[str, Scope],
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    default: Mapping[Effect, Action] = CAREFUL,
) -> Decision:
    """A deny rule, wherever it stands; then a grant for exactly this call (by its key); then the first rule that speaks
    of it; then the strictest of what `default` says of the tool's effects. What would be allowed is asked about if a
    deny rule might speak of it, depending on what only running tells."""
    try:
        if (command := Command.of(spec, arguments)) is not None:
            return _judged(rules, grants, spec, command, default)
    except RecursionError:  # nobody bounds how deep a model nests
        return Decision(Action.DENY, "the gate", "its arguments are nested too deeply", None, absolute=True)
    return Decision(Action.DENY, "the gate", "its arguments are not plain JSON", None, absolute=True)


def session_grants(entries: Iterable[Entry], where: str = "") -> dict[str, Scope]:
    """What was granted there for the rest of a session, by the decisions in its journal: so it survives a resume. A
    yes to a sub-agent is one to the session (C8)."""
    return {
        entry.key: Scope.SESSION
        for entry in (each.entry if isinstance(each, Delegated) else each for each in entries)
        if isinstance(entry, ToolDecided) and entry.scope == Scope.SESSION and entry.decision == ALLOWED and entry.key
        if entry.where == where
    }


def _judged(
    rules: Sequence[Rule],
    grants: Mapping[str, Scope],
    spec: ToolSpec,
    command: Command,
    default: Mapping[Effect, Action],
) -> Decision:
    speaking = [rule for rule in rules if rule.speaks_of(spec, command)]
    for rule in speaking:
        if rule.action is Action.DENY:
            return _ruled(rule, command)
    if (scope := grants.get(command.key)) is not None:
        return Decision(Action.ALLOW, f"a grant ({scope})", "for exactly this call", command)
    doubtful = [rule for rule in rules if rule not in speaking and rule.may_speak_of(spec, command)]
    decision = _decide(speaking, spec, command, default)
    for rule in doubtful:
        comes_first = not speaking or rules.index(rule) < rules.index(speaking[0])
        if decision.action is Action.ALLOW and (rule.action is Action.DENY or comes_first):
            return Decision(Action.ASK, f"the {rule.title}", _DOUBT, command)
    return decision


def _decide(speaking: Sequence[Rule], spec: ToolSpec, command: Command, default: Mapping[Effect, Action]) -> Decision:
    if speaking:
        return _ruled(speaking[0], command)
    actions = {default.get(effect, Action.ASK) for effect in spec.effects or {Effect.READ}}
    does = "/".join(sorted(spec.effects)) or "nothing"
    return Decision(max(actions, key=_STRICTNESS.index), "the default", f"it can {does}", command)


def _ruled(rule: Rule, command: Command) -> Decision:
    reason = rule.reason
    if command.too_long and rule.pattern:
        reason = f"its arguments are longer than {JUDGED_CHARS} characters, more than a rule looks over: split them"
    return Decision(rule.action, f"the {rule.title}", reason, command, absolute=rule.action is Action.DENY)


def _normal(name: str) -> str:
    """As the toolbox reads names, stars kept."""
    return re.sub(r"[^a-z0-9*]", "", name.lower())


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _texts(text: str) -> Iterator[str]:
    """JSON, and each string in it for itself."""
    yield text
    yield from (msgspec.json.decode(found) for found in _STRING.findall(text))
