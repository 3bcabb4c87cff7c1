"""Words that want more than to be read: what a text hides from the people who look at it, and what tries to give an
agent orders it has no right to (C7, C9). Looked for where a text becomes a part of the prompt: memory, context files,
skills.

A net with wide meshes: it stops what is known. What holds when something slips through are permissions and fences.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from unicodedata import category, normalize

_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
_JOINERS = "\u200c\u200d"
_VARIANTS = "\ufe0e\ufe0f"  # as text, as picture
_HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_GAP = r"[\s>*_`\"'#,.:-]+"  # words of a phrase may stand on two lines, in a quotation, in bold


def _phrase(*words: str) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)" + _GAP.join(words) + r"(?!\w)", re.IGNORECASE)


_FEW = rf"(?:[\w']+{_GAP}){{0,3}}?"
_CONFIDENTIAL = (
    r"(?:(?:api|ssh|private|access|secret)[ _-]?keys?|passwords?|passphrases?|credentials?|secrets|"
    r"(?:access|auth|api|bearer|private)[ _-]?tokens?|\.env|id_(?:rsa|ed25519)|environment variables)"
)
_DROP = r"(?:ignore|disregard|forget|override|overrule|bypass)"
_PERSON = r"(?:the )?(?:user|human|person|developer|operator)"
_OVERRIDES = (
    _phrase(
        _DROP,
        _FEW + r"(?:previous|prior|above|earlier|preceding)",
        _FEW + r"(?:instructions?|rules?|prompts?|messages?|directions?|directives?|guidelines?|constraints?)",
    ),
    _phrase(_DROP, _FEW + r"(?:your|all|system|safety|base)", r"(?:instructions?|prompts?|directives?|guidelines?)"),
    _phrase(_DROP, "(?:everything|anything|all)", _FEW + "(?:above|before this)"),
    _phrase("you", "are", "(?:now|no longer)", _FEW + r"(?:bound|restricted|unrestricted|jailbroken|developer mode)"),
    _phrase("(?:new|updated|real|actual|hidden)", "system", "(?:prompt|message|instructions?)"),
    _phrase("system", "prompt", "(?:override|injection|update)"),
    _phrase("(?:do not|don't|never)", _FEW + "(?:tell|inform|alert|notify)", _PERSON),
    _phrase("without", _FEW + "(?:telling|informing|alerting|notifying)", _PERSON),
    _phrase("(?:hide|conceal|keep)", "(?:this|it|that|these)", _FEW + "from", _PERSON),
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
_BEFORE_CHARS = 40  # in which a "never" would stand
_NEGATED = re.compile(r"\b(?:never|not|don't|cannot|avoid|without)\b(?!\s+(?:forget|hesitate|fail))", re.IGNORECASE)
_UNSEEN = re.compile(
    r"(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0(?![.\d]))|^\[//\]:\s*#|^\[comment\]:",
    re.IGNORECASE | re.MULTILINE,
)
_UNENDED = re.compile(r"<!--(?!.*--!?>)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:--!?>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`line`: the first is 1. `why` goes on after "line 3"."""

    line: int
    why: str


def suspicion(text: str) -> Suspicion | None:
    """The first thing that is wrong with it, if anything is."""
    return min(_suspicions(text), key=lambda found: found.line, default=None)


def uncommented(text: str) -> tuple[str, tuple[int, ...]]:
    """The text without HTML comments, which nobody sees who looks at the page, and the lines on which they began."""
    lines = tuple(_line(text, found.start()) for found in _COMMENT.finditer(text))
    return (_COMMENT.sub("", text), lines) if lines else (text, ())


def _suspicions(text: str) -> Iterator[Suspicion]:
    for number, line in enumerate(text.split("\n"), 1):
        if (letter := hidden_letter(line)) is not None:
            yield Suspicion(number, f"holds an invisible character (U+{ord(letter):04X})")
            break
    usual = "\n".join(normalize("NFKC", line) for line in text.split("\n"))
    for pattern in (*_OVERRIDES, _TAGS):
        if found := pattern.search(usual):
            yield Suspicion(_line(usual, found.start()), "tries to overrule the agent's instructions")
    for found in (_SENT_AWAY.search(usual), _asks_for_secret(usual)):
        if found:
            yield Suspicion(_line(usual, found.start()), "asks for secrets")
    if found := _UNSEEN.search(usual):
        yield Suspicion(_line(usual, found.start()), "hides text from people")
    if found := _UNENDED.search(text):
        yield Suspicion(_line(text, found.start()), "begins a comment that never ends")


def _asks_for_secret(text: str) -> re.Match[str] | None:
    """Not one that says that this is never to be done, as many a good rule does."""
    for found in _GIVEN_AWAY.finditer(text):
        before = text[max(0, found.start() - _BEFORE_CHARS) : found.start()]
        if not _NEGATED.search(re.split(r"[.!?;\n]", before)[-1]):
            return found
    return None


def hidden_letter(line: str) -> str | None:
    """The first character of a line that nobody sees. Joiners in emoji and in scripts that need them are not meant."""
    if line.isascii() and line.replace("\t", " ").isprintable():
        return None
    for place, letter in enumerate(line):
        if _is_hidden(letter) and not _joins(line, place):
            return letter
    return None


def _is_hidden(letter: str) -> bool:
    if letter == "\t":
        return False
    code = ord(letter)
    picks_a_shape = 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF
    return category(letter) in _HIDDEN or letter in _BLANK_LETTERS or picks_a_shape


def _joins(line: str, place: int) -> bool:
    """Whether it stands where writing needs it: at most one, right behind something seen."""
    letter, before = line[place], line[place - 1 : place]
    if not before or (_is_hidden(before) and before not in _VARIANTS):
        return False
    if letter in _VARIANTS:
        return before not in _VARIANTS and (not before.isascii() or before in "0123456789#*")
    after = line[place + 1 : place + 2]
    return letter in _JOINERS and not before.isascii() and bool(after) and not after.isascii() and not _is_hidden(after)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
