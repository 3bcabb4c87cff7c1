"""Decide whether a tool call is allowed, by rules and by grants for one exact call.

Rules that restrict are read generously, rules that permit strictly. A deny or ask rule applies to a tool that has any
of its effects and ignores differences in spelling (`GlobPattern.matches_loosely`); where it is only known at run time
whether it applies, a person is asked. An allow rule needs the exact name, has to cover all effects, and its stars do
not match shell operators, `..` or text that is only known at run time (`GlobPattern.matches_strictly`). Asking people
and storing grants is done elsewhere.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any

import msgspec

from hummingbird.core.errors import UsageError
from hummingbird.core.journal import Delegated, JournalEntry, ToolDecided
from hummingbird.core.limits import JUDGED_CHARS, PATTERN_CHARS
from hummingbird.core.shell.evaluation import FILE_NAME, ShellEvaluation, evaluate_command
from hummingbird.core.shell.parser import CommandTooComplex
from hummingbird.core.shell.values import UNKNOWN
from hummingbird.core.text import printable_command, shorten_line
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

# Turning characters can make one command into two: shell operators, substitutions, escapes. The backslash is among
# them because JSON writes it before every control character.
_TURNING = frozenset(";&|<>()`$\\\x7f") | {chr(code) for code in range(32)}
_TOKEN = re.compile(r"\\(.?)|(\*)|([^\\*]+)", re.DOTALL)


@dataclass(frozen=True)
class GlobPattern:
    r"""A glob that matches a whole text, safe against texts that try to slip past it.

    `*` matches any text, including none and line breaks; `\*` and `\\` are a star and a backslash. There are no regular
    expressions, and matching takes time linear in the text. `matches_strictly` is for rules that permit: to the letter,
    and a star matches nothing that could turn one command into two or lead out of a folder. `matches_loosely` is for
    rules that restrict: it ignores case, Unicode forms, invisible characters and white space. `may_match` does the same
    for a text with unknown parts.

    Raises UsageError for a pattern that makes no sense, saying what to write instead.
    """

    source: str

    def __post_init__(self) -> None:
        if not self.source or len(self.source) > PATTERN_CHARS:
            raise UsageError(f"a pattern has 1 to {PATTERN_CHARS} characters, this one has {len(self.source)}")
        _ = self._pieces  # raise now if the pattern is invalid

    @cached_property
    def _pieces(self) -> tuple[str, ...]:
        """Return the literal parts between the stars."""
        pieces = [""]
        for escaped, star, letters in _TOKEN.findall(self.source):
            if star:
                pieces.append("")
            elif letters or escaped in ("*", "\\"):
                pieces[-1] += letters or escaped
            else:
                raise UsageError(
                    rf"in {shorten_line(self.source, 80)!r} a backslash stands before {escaped!r}; "
                    r"it goes before * and \ "
                    "alone, and regular expressions are not known here"
                )
        return tuple(pieces)

    @cached_property
    def _folded_pieces(self) -> tuple[str, ...]:
        """Return the folded parts; a part that folding would empty is kept as written."""
        first, *others = self._pieces
        folded = [_fold_text(first).lstrip() or first, *(_fold_text(piece) or piece for piece in others)]
        folded[-1] = folded[-1].rstrip() or folded[-1]
        return tuple(folded)

    @property
    def is_exact(self) -> bool:
        """Tell whether it matches only one text."""
        return len(self._pieces) == 1

    def matches_strictly(self, text: str, also_turning: str = "") -> bool:
        """Match to the letter; every turning character of the text must be in the pattern itself."""
        if not _match_glob(self._pieces, text):
            return False
        turning = _TURNING.union(also_turning) if also_turning else _TURNING
        literal = "*".join(self._pieces)
        same = [c for c in text if c in turning] == [c for c in literal if c in turning]
        return same and text.count("..") == literal.count("..")

    def matches_loosely(self, text: "FoldableText") -> bool:
        """Match the text as it is written, or as it looks without its disguise."""
        return _match_glob(self._pieces, text.written) or _match_glob(self._folded_pieces, text.folded)

    def may_match(self, text: str, unknown: str, file_name: str) -> bool:
        """Tell whether it could loosely match the text, depending on what replaces two marks.

        `unknown` may be any text, `file_name` any text that does not begin like an option. The first literal part of
        the pattern has to be there up to its first space; all else may be hidden. Without this condition every pattern
        would match every text with a mark in it.
        """
        number = next((at for at, piece in enumerate(self._folded_pieces) if piece.strip()), None)
        if number is None:
            return False
        lead, following = self._folded_pieces[number], next(filter(None, self._folded_pieces[number + 1 :]), "")
        head = lead[: (lead.find(" ", len(lead) - len(lead.lstrip())) + 1) or len(lead)]
        is_seen = False
        parts = re.split(f"([{unknown}{file_name}])", text)
        for at, (run, mark) in enumerate(zip(parts[::2], parts[1::2], strict=False)):
            known = _fold_text(run)
            if number == 0:  # the pattern does not begin with a star
                starts = [0] if at == 0 else []
                is_seen = is_seen or (at == 0 and known.startswith(lead))
            else:
                starts = _find_all(head, known, max(len(known) - len(lead) + 1, 0))
                is_seen = is_seen or lead in known
            hidden = [lead[len(known) - start :] for start in starts if _is_partial_match(known[start:], head, lead)]
            hidden += [following] if is_seen else []
            if any(mark == unknown or not rest.startswith("-") for rest in hidden):
                return True
        return False


@dataclass(frozen=True)
class FoldableText:
    """A text and, computed on demand, what it looks like without disguise."""

    written: str

    @cached_property
    def folded(self) -> str:
        """Return the text without case, Unicode forms, invisible characters and repeated white space."""
        return _fold_text(self.written).strip()


def _match_glob(pieces: tuple[str, ...], text: str) -> bool:
    if len(pieces) == 1:
        return text == pieces[0]
    first, *between, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in between:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _find_all(what: str, text: str, at: int) -> list[int]:
    found: list[int] = []
    while (at := text.find(what, at)) >= 0:
        found.append(at)
        at += 1
    return found


def _is_partial_match(text: str, head: str, whole: str) -> bool:
    return len(head) <= len(text) < len(whole) and whole.startswith(text)


def _fold_text(text: str) -> str:
    joined = text.replace("\\\n", "")  # a shell reads the two lines as one
    return re.sub(r"\s+", " ", joined.translate(_FOLDING))


class _FoldTable(dict[int, str]):
    """Fold one character at a time.

    Combining marks are dropped instead of being put in order, because CPython's normalisation takes time quadratic in
    their number. Everything invisible is dropped too.
    """

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        self[code] = "".join(c for c in letters.casefold() if c.isspace() or unicodedata.category(c)[0] not in "MC")
        return self[code]


_FOLDING = _FoldTable()  # caches every character it has seen: a search has thousands of names judged

ALLOWED, DENIED = "allowed", "denied"  # the words for a decision in the journal


class PermissionAction(StrEnum):
    """What happens to a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class GrantScope(StrEnum):
    """How long a person's approval holds, for exactly the call that was asked about."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"


class PermissionMode(StrEnum):
    """What a chat does without asking: nothing that changes or sends, only what rules allow, or also edits of files."""

    PLAN = "plan"
    ASK = "ask"
    ACCEPT_EDITS = "accept edits"


# The default for calls without a rule or grant. A missing effect means ASK.
CAREFUL: Mapping[ToolEffect, PermissionAction] = MappingProxyType({ToolEffect.READ: PermissionAction.ALLOW})

_STRICTNESS = (PermissionAction.ALLOW, PermissionAction.ASK, PermissionAction.DENY)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')  # in JSON
_SHELL_ARGUMENTS = frozenset(("command", "cmd", "script"))  # arguments that tools pass to a shell
_DOUBT = (
    "the rule may apply, but what this command does is known only when it runs: write it out, without variables or "
    "substitutions in the part that the rule is about"
)
_TOOL_PATTERN = re.compile(r"[A-Za-z0-9_.*-]*[A-Za-z0-9*][A-Za-z0-9_.*-]*")


@dataclass(frozen=True)
class ProposedCall:
    """A call as it will run.

    `text` is its arguments as JSON with sorted keys and no other normalisation: a different space, Unicode form or
    number format (1 and 1.0) makes a different call.
    """

    tool: str
    text: str
    arguments: Mapping[str, Any] = field(repr=False, compare=False)
    _looks: dict[str, tuple[FoldableText, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _readings: dict[str, list[ShellEvaluation] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def from_arguments(cls, spec: ToolSpec, arguments: Mapping[str, Any]) -> "ProposedCall | None":
        """Return the call, or None for arguments that do not survive JSON unchanged; a hook may make such."""
        try:
            text = msgspec.json.encode(arguments, order="sorted")
            alike = msgspec.json.decode(text) == arguments
        except (TypeError, ValueError):
            return None
        return cls(spec.name, text.decode(), arguments) if alike else None

    @cached_property
    def key(self) -> str:
        """Return the hash that identifies exactly this call."""
        return hashlib.sha256(f"{self.tool}\n{self.text}".encode()).hexdigest()

    def describe(self, mask: Callable[[str], str]) -> str:
        """Return the call for people to read.

        Credentials are masked, and every character that a screen would not show, or show as another, is escaped.
        """
        masked = _STRING.sub(lambda found: _dump_json(mask(msgspec.json.decode(found[0]))), self.text)
        return f"{self.tool} {printable_command(mask(masked))}"

    def masked_arguments(self, mask: Callable[[str], str]) -> Mapping[str, Any]:
        """Return the arguments in the order of the call, with credentials masked."""
        masked = _STRING.sub(
            lambda found: _dump_json(mask(msgspec.json.decode(found[0]))), _dump_in_order(self.arguments)
        )
        found = msgspec.json.decode(masked)
        return found if isinstance(found, dict) else {}

    @property
    def is_too_long(self) -> bool:
        """Tell whether the arguments are too long to be judged."""
        return len(self.text) > JUDGED_CHARS

    def is_permitted_by(self, argument: str, pattern: GlobPattern) -> bool:
        """Tell whether an allow rule's pattern matches.

        Without an argument's name the pattern applies to the whole text, and its stars stay inside one string of it. A
        star does not match text that is only known at run time.
        """
        if self.is_too_long or (argument and argument not in self.arguments):
            return False
        if not pattern.is_exact and self._is_unknown(argument):
            return False
        if not argument:
            return pattern.matches_strictly(self.text, also_turning='"')
        value = self.arguments[argument]
        return pattern.matches_strictly(value if isinstance(value, str) else _dump_json(value))

    def is_restricted_by(self, argument: str, pattern: GlobPattern) -> bool:
        """Tell whether a deny or ask rule's pattern matches.

        It may also match any single string inside the arguments, and any command that a shell makes of them. Arguments
        that are too long or too complex to be judged count as restricted.
        """
        try:
            return self.is_too_long or any(pattern.matches_loosely(look) for look in self._searchable_texts(argument))
        except CommandTooComplex:
            return True

    def _searchable_texts(self, argument: str) -> tuple[FoldableText, ...]:
        if argument not in self._looks:
            value = self.arguments.get(argument) if argument else self.arguments
            absent = argument and argument not in self.arguments
            texts = [] if absent else [*_iter_strings(_dump_json(value)), *self._iter_shell_texts(argument)]
            self._looks[argument] = tuple(map(FoldableText, dict.fromkeys(texts)))
        return self._looks[argument]

    def may_be_restricted_by(self, argument: str, pattern: GlobPattern) -> bool:
        """Tell whether the match depends on something only known at run time: a variable, another command's output."""
        try:
            readings = self._read_shell(argument)
        except CommandTooComplex:
            return True
        return any(reading.runs_unknown for reading in readings) or any(
            pattern.may_match(text, UNKNOWN, FILE_NAME) for reading in readings for text in reading.uncertain
        )

    def _is_unknown(self, argument: str) -> bool:
        try:
            readings = self._read_shell(argument)
        except CommandTooComplex:
            return True
        return any(
            reading.runs_unknown or any(UNKNOWN in text for text in reading.commands) or reading.sets_git
            for reading in readings
        )

    def _iter_shell_texts(self, argument: str) -> Iterator[str]:
        """Yield the commands as a shell runs them, however their words are quoted.

        Raises CommandTooComplex.
        """
        for reading in self._read_shell(argument):
            yield from reading.commands
            yield " ".join(reading.tokens)

    def _read_shell(self, argument: str) -> list[ShellEvaluation]:
        """Evaluate the shell commands in the named argument, or in all arguments.

        Raises CommandTooComplex.
        """
        readings: list[ShellEvaluation] = []
        for name in _SHELL_ARGUMENTS & ({argument} if argument else self.arguments.keys()):
            value = self.arguments.get(name)
            if not isinstance(value, str):
                continue
            if name not in self._readings:
                self._readings[name] = None  # remembers a CommandTooComplex for the next call
                self._readings[name] = list(evaluate_command(value))
            if (known := self._readings[name]) is None:
                raise CommandTooComplex
            readings += known
        return readings


@dataclass(frozen=True)
class PermissionRule:
    """A rule about calls of the tools that `tool` names (a glob).

    With `effects`, a deny or ask rule applies to tools with any of them, an allow rule only to tools that have no other
    effects. With `pattern`, the rule applies only to calls whose `argument` matches; without an argument's name the
    pattern is for all arguments, written as JSON with sorted keys and no spaces. An allow rule for a named argument
    permits the call whatever the other arguments are. The model reads `reason`, so it should say what to do instead.

    Raises UsageError, naming the rule, for a rule that makes no sense.
    """

    action: PermissionAction
    tool: str = "*"
    argument: str = ""
    pattern: str = ""
    effects: frozenset[ToolEffect] = frozenset()
    reason: str = ""
    name: str = ""
    _tool: GlobPattern = field(init=False, repr=False, compare=False)
    _pattern: GlobPattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            self._compile()
        except (UsageError, ValueError) as error:
            raise UsageError(f"The permission {self.title} is broken: {error}.") from error

    def _compile(self) -> None:
        object.__setattr__(self, "action", PermissionAction(self.action))
        object.__setattr__(self, "effects", frozenset(map(ToolEffect, self.effects)))
        if not _TOOL_PATTERN.fullmatch(self.tool):
            raise UsageError(f"{self.tool!r} cannot be a tool's name; use letters, digits, _ and *")
        if self.argument and not self.pattern:
            raise UsageError(f"it names the argument {self.argument!r} but no pattern; use * for any value")
        object.__setattr__(self, "_tool", GlobPattern(_normalise_name(self.tool) if self._restricts else self.tool))
        object.__setattr__(self, "_pattern", GlobPattern(self.pattern) if self.pattern else None)

    @property
    def title(self) -> str:
        """Return the rule's name, or a description of a rule without one."""
        if self.name:
            return f"rule {self.name!r}"
        where = f" where {self.argument or 'all of it'} is like {self.pattern!r}" if self.pattern else ""
        effects = f" with {'/'.join(sorted(self.effects))}" if self.effects else ""
        return f"rule '{self.action} {self.tool}{effects}{where}'"

    @property
    def _restricts(self) -> bool:
        return self.action is not PermissionAction.ALLOW

    def applies_to(self, spec: ToolSpec, command: ProposedCall) -> bool:
        """Tell whether the rule applies to the call."""
        name = _normalise_name(spec.name) if self._restricts else spec.name
        return (
            self._tool.matches_strictly(name) and self._covers_effects(spec.effects) and self._covers_arguments(command)
        )

    def may_apply_to(self, spec: ToolSpec, command: ProposedCall) -> bool:
        """Tell whether the rule would apply if what is only known at run time were known; False for allow rules."""
        if not self._restricts or self._pattern is None:
            return False
        concerns = self._tool.matches_strictly(_normalise_name(spec.name)) and self._covers_effects(spec.effects)
        return concerns and command.may_be_restricted_by(self.argument, self._pattern)

    def _covers_effects(self, effects: frozenset[ToolEffect]) -> bool:
        if not self.effects:
            return True
        return bool(effects & self.effects) if self._restricts else effects <= self.effects

    def _covers_arguments(self, command: ProposedCall) -> bool:
        if self._pattern is None:
            return True
        covers = command.is_restricted_by if self._restricts else command.is_permitted_by
        return covers(self.argument, self._pattern)


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """The decision about a call.

    `absolute`: no grant can override it. `command` is None when the arguments could not be judged.
    """

    action: PermissionAction
    by: str
    reason: str
    command: ProposedCall | None
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class PermissionOffer:
    """What a yes may cover beyond the call: a rule, written like `terminal(git diff *)`, or all edits of files."""

    rule: str = ""
    accept_edits: bool = False


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """A question to a person.

    `text` is the whole call, ready to be shown; do not truncate it. `scopes` are the approvals that can be stored here.
    `arguments` are those of the call, masked. `preview` is what the call would change, as a unified diff, if its tool
    can say so before. `offer` is what else the answer may allow. `asked_by` names the sub-agent whose call it is.
    """

    tool: str
    text: str
    reason: str
    key: str
    effects: frozenset[ToolEffect]
    scopes: tuple[GrantScope, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    preview: str = ""
    offer: PermissionOffer = PermissionOffer()
    asked_by: str = ""


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """A person's answer.

    `scope` None means no. `words` are the person's own, for the model and the journal. `takes_offer`: a yes covers what
    the question offered, for as long as the scope says.
    """

    scope: GrantScope | None
    words: str = ""
    takes_offer: bool = False


@dataclass(frozen=True, slots=True)
class PermissionGrant:
    """A stored approval for the call with this key; `command` is for people to read."""

    key: str
    command: str
    by: str


def judge_call(
    rules: Sequence[PermissionRule],
    grants: Mapping[str, GrantScope],
    spec: ToolSpec,
    arguments: Mapping[str, Any],
    default: Mapping[ToolEffect, PermissionAction] = CAREFUL,
) -> PermissionDecision:
    """Decide about a call.

    The first of these counts: any deny rule, wherever it stands in the list; a grant for exactly this call, by its key;
    the first rule that applies; the strictest of what `default` says about the tool's effects. A call that would be
    allowed is asked about if a deny rule might apply, depending on what is only known at run time.
    """
    try:
        if (command := ProposedCall.from_arguments(spec, arguments)) is not None:
            return _judge_command(rules, grants, spec, command, default)
    except RecursionError:  # a model may nest arguments arbitrarily deep
        return PermissionDecision(
            PermissionAction.DENY, "the gate", "its arguments are nested too deeply", None, absolute=True
        )
    return PermissionDecision(
        PermissionAction.DENY, "the gate", "its arguments are not plain JSON", None, absolute=True
    )


def find_session_grants(entries: Iterable[JournalEntry], where: str = "") -> dict[str, GrantScope]:
    """Return what was granted in `where` for the rest of a session.

    The journal holds the decisions, so grants survive a resume. An approval for a sub-agent is one for the session.
    """
    return {
        entry.key: GrantScope.SESSION
        for entry in (each.entry if isinstance(each, Delegated) else each for each in entries)
        if isinstance(entry, ToolDecided)
        and entry.scope == GrantScope.SESSION
        and entry.decision == ALLOWED
        and entry.key
        if entry.where == where
    }


def _judge_command(
    rules: Sequence[PermissionRule],
    grants: Mapping[str, GrantScope],
    spec: ToolSpec,
    command: ProposedCall,
    default: Mapping[ToolEffect, PermissionAction],
) -> PermissionDecision:
    speaking = [rule for rule in rules if rule.applies_to(spec, command)]
    for rule in speaking:
        if rule.action is PermissionAction.DENY:
            return _decide_by_rule(rule, command)
    if (scope := grants.get(command.key)) is not None:
        return PermissionDecision(PermissionAction.ALLOW, f"a grant ({scope})", "for exactly this call", command)
    doubtful = [rule for rule in rules if rule not in speaking and rule.may_apply_to(spec, command)]
    decision = _decide_by_rule_or_default(speaking, spec, command, default)
    for rule in doubtful:
        comes_first = not speaking or rules.index(rule) < rules.index(speaking[0])
        if decision.action is PermissionAction.ALLOW and (rule.action is PermissionAction.DENY or comes_first):
            return PermissionDecision(PermissionAction.ASK, f"the {rule.title}", _DOUBT, command)
    return decision


def _decide_by_rule_or_default(
    speaking: Sequence[PermissionRule],
    spec: ToolSpec,
    command: ProposedCall,
    default: Mapping[ToolEffect, PermissionAction],
) -> PermissionDecision:
    if speaking:
        return _decide_by_rule(speaking[0], command)
    actions = {default.get(effect, PermissionAction.ASK) for effect in spec.effects or {ToolEffect.READ}}
    does = "/".join(sorted(spec.effects)) or "nothing"
    return PermissionDecision(max(actions, key=_STRICTNESS.index), "the default", f"it can {does}", command)


def _decide_by_rule(rule: PermissionRule, command: ProposedCall) -> PermissionDecision:
    reason = rule.reason
    if command.is_too_long and rule.pattern:
        reason = f"its arguments are longer than {JUDGED_CHARS} characters, more than a rule looks over: split them"
    return PermissionDecision(
        rule.action, f"the {rule.title}", reason, command, absolute=rule.action is PermissionAction.DENY
    )


def _normalise_name(name: str) -> str:
    """Normalise a name like the tool registry does, keeping stars."""
    return re.sub(r"[^a-z0-9*]", "", name.lower())


def _dump_json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _dump_in_order(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _iter_strings(text: str) -> Iterator[str]:
    """Yield the JSON text, and each string in it."""
    yield text
    yield from (msgspec.json.decode(found) for found in _STRING.findall(text))
