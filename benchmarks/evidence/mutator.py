"""What a second run of the same job would have written: the same log with other times, ids, places and addresses.

Each kind of difference is found by what it looks like in logs and replaced by another value of the same look; what was
equal before is equal afterwards. Line numbers, names, messages and statuses stay, for the same commit has them again.
Shares no code and no pattern with what makes fingerprints, or it would only prove that both agree.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from benchmarks.evidence.reordered import reordered

Replacement = Callable[["Rerun", re.Match[str]], str]
_HEX = "0123456789abcdef"
_SHOWN = ("%Y-%m-%d", "%Y/%m/%d", "%d %m %Y", "%d-%b-%Y", "%d %b %Y", "%b %d %Y", "%d/%b/%Y")


@dataclass
class Rerun:
    """One second run: what changes it drew, remembered so that the same old value becomes the same new one."""

    dice: random.Random
    later: timedelta
    drawn: dict[str, str] = field(default_factory=dict)

    def again(self, old: str, draw: Callable[[], str]) -> str:
        if old not in self.drawn:
            self.drawn[old] = draw()
        return self.drawn[old]

    def digits(self, old: str) -> str:
        """Another number with as many digits."""
        return self.again(f"digits {old}", lambda: self._number(len(old)))

    def letters(self, old: str, alphabet: str) -> str:
        return self.again(f"letters {old}", lambda: "".join(self.dice.choice(alphabet) for _ in old))

    def amount(self, old: str) -> str:
        """Somewhat more or less, with as many decimals. Zero stays zero."""
        whole = float(old.replace(",", ""))
        decimals = len(old.partition(".")[2])
        new = whole * self.dice.uniform(0.6, 1.7)
        return f"{new:,.{decimals}f}" if "," in old else f"{new:.{decimals}f}"

    def _number(self, digits: int) -> str:
        return str(self.dice.randint(10 ** (digits - 1), 10**digits - 1))


def rerun(text: str, seed: int) -> str:
    """The log as a second run would have written it."""
    dice = random.Random(seed)
    one = Rerun(dice, timedelta(seconds=dice.randint(3_600, 40_000_000), milliseconds=dice.randint(1, 999)))
    for pattern, replacement in _KINDS:
        text = pattern.sub(partial(replacement, one), text)
    return reordered(text, dice)


def _moment(one: Rerun, match: re.Match[str]) -> str:
    """A date with its time, moved on by as much as all others."""
    day, between, clock, fraction = match["day"], match["between"], match["clock"], match["fraction"] or ""
    for shown in _SHOWN:
        try:
            moment = datetime.strptime(f"{day} {clock}", f"{shown} %H:%M:%S") + one.later  # zone stays
        except ValueError:
            continue
        return moment.strftime(shown) + between + moment.strftime("%H:%M:%S") + _fraction(one, fraction)
    return match[0]


def _fraction(one: Rerun, old: str) -> str:
    return old[:1] + "".join(one.dice.choice("0123456789") for _ in old[1:])


def _letter_date(one: Rerun, match: re.Match[str]) -> str:
    """`Mon Nov 16 02:55:59 UTC 2026`"""
    try:
        moment = datetime.strptime(
            f"{match['month']} {match['day']} {match['clock']} {match['year']}", "%b %d %H:%M:%S %Y"
        )  # zone stays
    except ValueError:
        return match[0]
    moment += one.later
    return f"{moment:%a %b} {moment.day:2d} {moment:%H:%M:%S}{match['zone'] or ''} {moment:%Y}"


def _clock(one: Rerun, match: re.Match[str]) -> str:
    moment = datetime(2024, 1, 1, int(match["h"]), int(match["m"]), int(match["s"])) + one.later  # no zone
    return f"{moment:%H:%M:%S}" + _fraction(one, match["fraction"] or "")


def _took(one: Rerun, match: re.Match[str]) -> str:
    """A duration; a round one is a setting, which the next run has too."""
    number = match["number"]
    is_round = "." not in number and len(number) > 3 and number.endswith("000")
    return match[0] if is_round or not number.strip("0.,") else one.amount(number) + match["unit"]


def _weight(one: Rerun, match: re.Match[str]) -> str:
    return one.amount(match["number"]) + match["unit"]


def _hex(one: Rerun, match: re.Match[str]) -> str:
    old = match["hex"]
    if not (any(c.isdigit() for c in old) and any(c.isalpha() for c in old)):
        return match[0]
    new = one.again(
        old.lower(), lambda: "".join(one.dice.choice(_HEX) for _ in old[2:]) + one.dice.choice("0123") + "a"
    )
    return match[0].replace(old, new.upper() if old.isupper() else new)


def _pointer(one: Rerun, match: re.Match[str]) -> str:
    """The loader moves everything by whole pages: the last three digits stay."""
    old = match["hex"]
    return "0x" + one.again(f"at {old[:-3]}", lambda: old[:2] + one.letters(old[2:-3], _HEX)) + old[-3:]


def _checkout(one: Rerun, match: re.Match[str]) -> str:
    owner, name = match["owner"], match["name"]
    runner = one.letters("zK9sT4xq", "abcdefghABCDEFGH123456789")
    places = (f"/builds/{owner}/{name}", f"/home/runner/work/{name}/{name}", f"/builds/{runner}/3/{owner}/{name}")
    return one.again(f"checkout {owner} {name}", lambda: one.dice.choice(places))


def _home(one: Rerun, match: re.Match[str]) -> str:
    return match["root"] + one.letters(match["user"], "abcdefghijklmnop")


def _scratch(one: Rerun, match: re.Match[str]) -> str:
    """A temporary file: a name that a program drew becomes another draw, a name that somebody chose stays."""
    name = match["name"]
    if re.fullmatch(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{8,}", name):
        return match["root"] + one.letters(name, "abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789")
    return match["root"] + re.sub(r"\d{6,}", lambda digits: one.digits(digits[0]), name)


def _drawn(one: Rerun, match: re.Match[str]) -> str:
    return match["root"] + one.letters(match["name"], "abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789")


def _numbered(one: Rerun, match: re.Match[str]) -> str:
    return match["what"] + one.digits(match["number"])


def _two_numbers(one: Rerun, match: re.Match[str]) -> str:
    return f"{match['what']}{one.digits(match['number'])}{match['then']}{one.digits(match['second'])}"


def _host(one: Rerun, match: re.Match[str]) -> str:
    return match["net"] + one.again(match[0], lambda: f"{one.dice.randint(1, 254)}.{one.dice.randint(1, 254)}")


_DAY = r"(?P<day>\d{4}[-/]\d\d[-/]\d\d|\d\d \d\d \d{4}|\d\d[- /][A-Z][a-z]{2}[- /]\d{4}|[A-Z][a-z]{2} \d\d \d{4})"
_CLOCK = r"(?P<clock>[0-2]\d:[0-5]\d:[0-5]\d)(?P<fraction>[.,]\d{1,9})?"
_LETTER_DATE = (
    r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d)"
    r"(?P<zone> [A-Z]{3,4})? (?P<year>\d{4})"
)
_UNIT = r"(?P<unit> ?(?:ns|µs|us|ms|s|secs?|seconds?|mins?|minutes?|m(?= ?\d+ ?s))\b)"
_KINDS: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    (re.compile(r"(?P<hex>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b"), _hex),
    (re.compile(_DAY + r"(?P<between>[T :]{1,2})" + _CLOCK), _moment),
    (re.compile(_LETTER_DATE), _letter_date),
    (
        re.compile(r"(?<![\d:.])(?P<h>[01]\d|2[0-3]):(?P<m>[0-5]\d):(?P<s>[0-5]\d)(?P<fraction>[.,]\d{3})?(?![\d:])"),
        _clock,
    ),
    (re.compile(r"(?<![\w.,-])(?P<number>\d[\d,]*(?:\.\d+)?)" + _UNIT), _took),
    (re.compile(r"(?<![\w.,-])(?P<number>\d+(?:\.\d+)?)(?P<unit> ?[KMG]i?B\b)"), _weight),
    (re.compile(r"(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3}){2,})(?P<unit>)(?![\d,.])"), _weight),
    (re.compile(r"\b0x(?P<hex>[57][0-9a-f]{8,15})\b"), _pointer),
    (
        re.compile(
            r"(?<![0-9A-Za-z#])(?P<hex>[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{16}|[0-9a-f]{7,12})(?![0-9A-Za-z])"
        ),
        _hex,
    ),
    (
        re.compile(
            r"(?<![\w.-])/(?:(?:home|Users)/travis/build|builds|home/runner/work)/(?P<owner>[A-Za-z0-9][\w.-]*)/(?P<name>[\w.-]+)"
        ),
        _checkout,
    ),
    (re.compile(r"(?P<root>/(?:home|Users)/)(?P<user>travis)(?=/)"), _home),
    (re.compile(r"(?P<root>(?:/private)?(?:/var)?/tmp/)(?P<name>[\w.-]{6,40})"), _scratch),
    (re.compile(r"(?P<root>/tmp\.|/tmp(?=\w*\d))(?P<name>[A-Za-z0-9_]{8,10})\b"), _drawn),
    (re.compile(r"(?P<net>\b(?:10\.\d{1,3}|172\.(?:1[6-9]|2\d|3[01])|192\.168))\.\d{1,3}\.\d{1,3}\b"), _host),
    (re.compile(r"(?P<what>\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0):)(?P<number>\d{4,5})\b"), _numbered),
    (re.compile(r"(?P<what>\bport[ :=]{1,2})(?P<number>\d{4,5})\b", re.IGNORECASE), _numbered),
    (re.compile(r"(?P<what>\bpool-)(?P<number>\d+)(?P<then>-thread-)(?P<second>\d+)"), _two_numbers),
    (re.compile(r"(?P<what>\b(?:Thread-|worker[-_ ]|gw|goroutine |fork[-_ ]))(?P<number>\d+)\b"), _numbered),
    (re.compile(r"(?P<what>\b(?:pid|tid|PID|TID|process id|thread id)[ :=]{1,2})(?P<number>\d+)\b"), _numbered),
    (re.compile(r"(?P<what>==)(?P<number>\d{3,7})(?===)"), _numbered),
    (re.compile(r"(?P<what>\*-)(?P<number>\d{5,7})\b"), _numbered),
    (re.compile(r"(?P<what>/(?:jobs?|runs?|pipelines?|builds?)/)(?P<number>\d{3,})\b"), _numbered),
    (re.compile(r"(?P<what>\b(?:[Jj]ob|[Rr]un|[Bb]uild|[Pp]ipeline)[ :]{1,2}#?)(?P<number>\d{3,})\b"), _numbered),
    (re.compile(r"(?P<what>\b[A-Z_]*(?:JOB|RUN|BUILD)_ID=)(?P<number>\d{3,})\b"), _numbered),
    (re.compile(r"(?P<what>(?:start|finish|duration)=)(?P<number>\d{6,})"), _numbered),
)
