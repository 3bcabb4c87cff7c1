"""Scan text for hidden characters and for attempts to give the agent orders, before it becomes part of a prompt.

Memory, context files and skills are scanned. The scan stops known patterns only; permissions and fences protect when
something slips through.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import category, normalize

_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_JOINERS = "\u200c\u200d"
_VARIANTS = "\ufe0e\ufe0f"  # variation selectors: show as text, show as emoji
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_GAP = r"[\s>*_`\"'#,.:-]+"  # the words of a phrase may be on two lines, in a quotation or in bold


def _compile_phrase(*words: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + _GAP.join(words) + r"(?!\w)", re.IGNORECASE)


_FEW = rf"(?:[\w']+{_GAP}){{0,3}}?"
_CONFIDENTIAL = (
    r"(?:(?:api|ssh|private|access|secret)[ _-]?keys?|passwords?|passphrases?|credentials?|secrets|"
    r"(?:access|auth|api|bearer|private)[ _-]?tokens?|\.env|id_(?:rsa|ed25519)|environment variables)"
)
_DROP = r"(?:ignore|disregard|forget|override|overrule|bypass)"
_PERSON = r"(?:the )?(?:user|human|person|developer|operator)"
_OVERRIDES = (
    _compile_phrase(
        _DROP,
        _FEW + r"(?:previous|prior|above|earlier|preceding)",
        _FEW + r"(?:instructions?|rules?|prompts?|messages?|directions?|directives?|guidelines?|constraints?)",
    ),
    _compile_phrase(
        _DROP, _FEW + r"(?:your|all|system|safety|base)", r"(?:instructions?|prompts?|directives?|guidelines?)"
    ),
    _compile_phrase(_DROP, "(?:everything|anything|all)", _FEW + "(?:above|before this)"),
    _compile_phrase(
        "you", "are", "(?:now|no longer)", _FEW + r"(?:bound|restricted|unrestricted|jailbroken|developer mode)"
    ),
    _compile_phrase("(?:new|updated|real|actual|hidden)", "system", "(?:prompt|message|instructions?)"),
    _compile_phrase("system", "prompt", "(?:override|injection|update)"),
    _compile_phrase("(?:do not|don't|never)", _FEW + "(?:tell|inform|alert|notify)", _PERSON),
    _compile_phrase("without", _FEW + "(?:telling|informing|alerting|notifying)", _PERSON),
    _compile_phrase("(?:hide|conceal|keep)", "(?:this|it|that|these)", _FEW + "from", _PERSON),
)
_TAGS = re.compile(
    r"<\|(?:im_start|im_end|system|user|assistant)\|?>|\[/?INST\]|</?(?:system|untrusted)\b", re.IGNORECASE
)
_SENT_AWAY = re.compile(
    r"\b(?:send|post|upload|forward|e-?mail|transmit|exfiltrate|leak|copy|curl)\b[^\n]{0,80}?"
    + _CONFIDENTIAL
    + r"[^\n]{0,60}?(?:https?://|\b[\w.+-]{1,64}@[\w-]{1,64}\.\w|webhook)",
    re.IGNORECASE,
)
_GIVEN_AWAY = re.compile(
    rf"\b(?:reveal|print|output|show|tell|give|repeat|paste|echo|disclose|include){_GAP}(?:me{_GAP}|us{_GAP})?"
    rf"(?:your|all|any|every|the user's|their|its){_GAP}{_FEW}(?:{_CONFIDENTIAL}|system{_GAP}prompt)(?!\w)",
    re.IGNORECASE,
)
_BEFORE_CHARS = 40  # before a match, where a "never" would be
_NEGATED = re.compile(r"\b(?:never|not|don't|cannot|avoid|without)\b(?!\s+(?:forget|hesitate|fail))", re.IGNORECASE)
_UNSEEN = re.compile(
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d]))|^\[//\]:\s*#|^\[comment\]:",
    re.IGNORECASE | re.MULTILINE,
)
_UNENDED = re.compile(r"<!--(?!.*--!?>)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:--!?>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class InjectionSuspicion:
    """What is wrong, and on which line, counted from 1; `why` continues a sentence after "line 3"."""

    line: int
    why: str


def find_suspicion(text: str) -> InjectionSuspicion | None:
    """Return the first thing that is wrong with the text, if anything is."""
    return min(_iter_suspicions(text), key=lambda found: found.line, default=None)


def strip_comments(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without HTML comments, which readers of the page do not see, and the lines where they began."""
    lines = tuple(_line_number(text, found.start()) for found in _COMMENT.finditer(text))
    return (_COMMENT.sub("", text), lines) if lines else (text, ())


def _iter_suspicions(text: str) -> Iterator[InjectionSuspicion]:
    for number, line in enumerate(text.split("\n"), 1):
        if (letter := find_hidden_char(line)) is not None:
            yield InjectionSuspicion(number, f"holds an invisible character (U+{ord(letter):04X})")
            break
    usual = "\n".join(normalize("NFKC", line) for line in text.split("\n"))
    for pattern in (*_OVERRIDES, _TAGS):
        if found := pattern.search(usual):
            yield InjectionSuspicion(_line_number(usual, found.start()), "tries to overrule the agent's instructions")
    for found in (_SENT_AWAY.search(usual), _find_secret_request(usual)):
        if found:
            yield InjectionSuspicion(_line_number(usual, found.start()), "asks for secrets")
    if found := _UNSEEN.search(usual):
        yield InjectionSuspicion(_line_number(usual, found.start()), "hides text from people")
    if found := _UNENDED.search(text):
        yield InjectionSuspicion(_line_number(text, found.start()), "begins a comment that never ends")


def _find_secret_request(text: str) -> re.Match[str] | None:
    """Find a request for secrets, except in a rule that forbids it."""
    for found in _GIVEN_AWAY.finditer(text):
        before = text[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        if not _NEGATED.search(re.split(r"[.!?;\n]", before)[-1]):
            return found
    return None


def find_hidden_char(line: str) -> str | None:
    """Return the first invisible character of a line, except joiners that emoji and some scripts need."""
    if line.isascii() and line.replace("\t", " ").isprintable():
        return None
    for place, letter in enumerate(line):
        if _is_hidden(letter) and not _is_needed_joiner(line, place):
            return letter
    return None


def _is_hidden(letter: str) -> bool:
    if letter == "\t":
        return False
    code = ord(letter)
    picks_a_shape = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    return category(letter) in _HIDDEN or letter in _BLANK_LETTERS or picks_a_shape


def _is_needed_joiner(line: str, place: int) -> bool:
    """Return whether the character is where writing needs it: at most one, right after a visible character."""
    letter, before = line[place], line[place - 1 : place]
    if not before or (_is_hidden(before) and before not in _VARIANTS):
        return False
    if letter in _VARIANTS:
        return before not in _VARIANTS and (not before.isascii() or before in "0123456789#*")
    after = line[place + 1 : place + 2]
    return letter in _JOINERS and not before.isascii() and bool(after) and not after.isascii() and not _is_hidden(after)


def _line_number(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
