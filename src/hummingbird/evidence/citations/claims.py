"""Tell whether a block of an answer claims to be somebody else's words, or is the model's own: a fix, a table, a plan.

A block's language and the words that introduce it decide. Where neither says anything, its own lines do: what looks
like output of a machine claims to be one.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto

REMOVED_QUOTATION = "*Quotation removed: none of its lines was found in anything that was fetched.*"
LEAD_CHARS = 400  # of the text before a block, which may introduce it
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SHORT_LEAD_CHARS = 24  # a shorter sentence, such as "Like so:", is read with the one before it
_HEADING = re.compile(
    r"\s{0,3}#{1,6}\s+(.*)|\s*\*\*([^*]{1,80})\*\*:?\s*$|\s*(?:<details[^>]*>)?\s*<summary[^>]*>(.{0,200})</summary>\s*$"
)
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-+*]|\d{1,9}[.)])[ \t]+")
_TAG = re.compile(r"</?[a-z][^<>]*>")
_NAMED = re.compile(
    r"!?\[[^\]\n]*\]\([^()\s]*\)|\bhttps?://\S+|`[^`\n]+`"
)  # what bears a name, such as the job "apply fix"
_FAILURE_LINE = re.compile(
    r"\W*(?:Breaks|Verdict):?\*\*.*"
)  # of an analysis as our prompt asks for it; evidence follows

_QUOTING = re.compile(
    r"\b(?:logs?|outputs?|stdout|stderr|traceback|trace|stack|backtrace|console|evidence|excerpts?|quot\w+|verbatim"
    r"|prints?|printed|reports?|reported|says?|said|shows?|showed|shown|reads|states|stated|emits?|emitted|wrote|asked"
    r"|error messages?|assertion|complain\w*|symptoms?|found in|lines? \d+|contains?|currently|current code"
    r"|existing code|(?:error|failure|exception|warning) (?:snippets?|text|details?|occurs?|happens?)"
    r"|(?:fail\w*|crash\w*|abort\w*|died|ends?|ended|exit\w*|stops?|stopped) (?:with|in|at|like|as|because)"
    r"|(?:the|this|an|its|following|actual|real|first|same|root) (?:\w+ )?(?:errors?|exceptions?|failures?"
    r"|warnings?|cause)(?= (?:is|was|are|were|reads)\b|\W*$)"
    r"|(?:decisive|relevant|key|telling|important|failing) (?:lines?|parts?|sections?|steps?|commands?)"
    r"|gives?|gave|returns?|returned|got|get|we see|comes? from|came from|from the (?:jobs?|runner|compiler"
    r"|pipeline))\b"
    r"|^(?:from|in) `[^`]+`|\b(?:errors?|exceptions?|failures?|warnings?):?\W*$",
    re.IGNORECASE,
)
_PROPOSING = re.compile(
    r"\b(?:fix(?:es|ing)?|replac\w+|chang(?:e|es|ing)|tr(?:y|ying)|us(?:e|ing)|add(?:ing)?|run(?:ning)?|execute"
    r"|reproduc\w*|locally|commands?|patch|appl(?:y|ied|ying)|better|correct(?:ed| version)|revised|improved"
    r"|simpl\w+|cleaner|summary|summari[sz]\w*|overview"
    r"|table|comparison|structure|layout|tree|diagram|flow|spreads?|timeline|pseudo\w*|sketch|template|usage|mend\w*"
    r"|remed\w+|repair\w*|next steps?|steps|plan|checklist|solutions?|workarounds?|configur\w+|set(?:ting)?s?|guard"
    r"|commit message|changelog|release notes?|title|wording|make it|write|written as|turns? (?:it )?into|becomes?"
    r"|test for|test case|regression test|cover(?:s|ed)?|call sites?|signature|roughly|options?|pin|bump|revert|how to"
    r"|versions?|variants?|implementation|idea|one way|equivalent|idiomatic|helper|sample|payload"
    r"|schema|input)\b",
    re.IGNORECASE,
)
_SUPPOSING = re.compile(  # whatever stands around these words, what follows is not there yet
    r"\b(?:suggest\w*|propos\w*|should|could|would|might|I'd|instead|consider|recommend\w*|rewrit\w*|refactor\w*"
    r"|alternativ\w*|examples?|for instance|e\.g\.|such as|something like|like (?:this|so)|expect(?:ed)?"
    r"|illustrat\w*)\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"\W*(?:please |then |first, |\d+\. )?(?:add|apply|bump|call|change|check|create|define|drop|extract|guard"
    r"|increase"
    r"|install|keep|let|lower|make|move|pass|pin|put|raise|reduce|remove|rename|replace|retry|return|round|run"
    r"|set|split"
    r"|switch|try|turn|update|use|wrap|write)\b",
    re.IGNORECASE,
)
_MENDING = re.compile(  # what is done about a failure, or made to show it
    r"\b(?:fix(?:es)?|silenc\w+|avoids?|prevents?|solves?|cures?|handles?) (?:for )?"
    r"(?:(?:the|this|that|these|those) )?(?:\w+ )?(?:errors?|exceptions?|failures?|warnings?|problems?"
    r"|crash(?:es)?)\W*$"
    r"|\b(?:test|script|program|reproducer) that (?:shows|reproduces|triggers)\b",
    re.IGNORECASE,
)
_PURPOSE = re.compile(r"\W*(?:to|in order to|so that) ", re.IGNORECASE)
_CIRCUMSTANCE = re.compile(r",? (?:when|while|during) [^,]*?(?=\W*$)", re.IGNORECASE)
_FILE_SAYS = re.compile(
    r"\b(?:currently|at present|now|today) (?:reads?|says?|is|has|looks?)|\b(?:reads|contains|says)\b[^.]{0,40}:\s*$"
    r"|\blines? \d+\b[^.]{0,60}\b(?:reads?|is|says?|has|are)\b|\b(?:verbatim|quoted from)\b",
    re.IGNORECASE,
)
_OUTPUT_LINE = re.compile(
    r"\s*(?:E\s|>?\s*FAILED\b|ERRORS?\b|FATAL\b|WARN(?:ING)?\b|INFO\b|FAIL(?:URE)?\b|PASS(?:ED)?\b"
    r"|\[(?:ERROR|WARN|INFO)\w*\]|(?:[\w.+-]+: )*(?:fatal |internal compiler )?(?:error|fatal|warning"
    r"|panic)(?:\[\w+\])?: "
    r"|Traceback\b|Caused by|make(?:\[\d+\])?: |npm ERR!|\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|at [\w.$<>/]+\(|File \""
    r"|Exception in |[\w./-]+:\d+:|[\w.]*(?:Error|Exception)\b(?:$|: )|=+ .* =+$|-{3,} .*|\(core dumped\)|Killed\b"
    r"|Segmentation fault|Step \d+/\d+ : |not ok \d|Process \w+ finished"
    r"|thread '|goroutine \d|ninja: |cc1|ld: |collect2)",
    re.IGNORECASE,
)
_OUTPUT_WORDS = re.compile(
    r"[^;{}()=]*\b(?:exit(?:ed)? (?:code|status|with)|core dumped|no such file|not found|timed out|refused|denied"
    r"|failed|failure|melted|killed|out of memory|unreachable|cannot|could not|unable to)\b[^;{}=]*$",
    re.IGNORECASE,
)
_CODE_LINE = re.compile(
    r"\s*(?:def |class |import |from \S+ import|return\b|if\b.*[:{]$|for\b.*[:{]$|while\b.*[:{]$|else\b|elif "
    r"|try\b|except"
    r"|finally|with .*:$|raise |yield|await |async |const |let |var |func |fn |pub |public |private |protected "
    r"|static |void"
    r"|int |auto |struct |enum |type |interface |package |use |#include|#define|#\[|@\w|assert\b|lambda|switch"
    r"|case |do\b"
    r"|done$|fi$|then$|esac|export \w|set -|local |echo |SELECT |UPDATE |INSERT |DELETE |CREATE |ALTER |FROM "
    r"|RUN |COPY"
    r"|ENV |WORKDIR |ENTRYPOINT|CMD |//|/\*|\* |#!|\[[\w.-]+\]$|</?\w[^>]*>)"
    r"|.*[;{}\[\](,\\]$|\s*[\w.\"'\[\]*-]+\s*(?:=|:=|\+=|->|=>)\s*\S.*|\s*[\w.]+\(.*\)\s*$"
    r"|\s*(?:- )?[\w.\"/ -]{1,40}:(?:\s+\S+){0,3}$"
    r"|[+-](?!\d).*|@@ -.*|\s*#.*|\s*[}\])]+[;,]?$|\s*(?:-|\d{1,2}[.)]) \S.*",
    re.IGNORECASE,
)
_TABLE_LINE = re.compile(r"\s*[|+┌├└│╔╠╚║].*|.*\S \| \S.*|.*[├└│─]{1,}.*|.*\S\s{3,}\S.*\s{3,}\S.*|.*(?:-->|──>|→).*")
_SIGNS = re.compile(r"\A\s*(?:(?:[-+*]|\d{1,3}[.)])\s+)?[\"`“'‘«]?(?=[A-Z])")  # of a list item and a quotation
_PROSE_WORD = re.compile(r"[A-Za-z][a-z'’-]*[,;:]?")


class BlockClaim(Enum):
    """What the words around a block say of it."""

    QUOTED = auto()
    PROPOSED = auto()
    OPEN = auto()


def read_lead(lines: Sequence[str], first: int) -> BlockClaim:
    """Tell what the text before the line `first` says about the block that begins there; the nearest words count."""
    at = first - 1
    while at >= 0 and not lines[at].strip(" \t>"):
        at -= 1
    if at < 0 or lines[at].lstrip(" \t>").startswith(("```", "~~~")) or REMOVED_QUOTATION in lines[at]:
        return BlockClaim.OPEN
    if (heading := _read_heading(lines[at])) is not None:
        return _read_words(heading, heading=True)
    if _FAILURE_LINE.fullmatch(lines[at]):
        return BlockClaim.QUOTED
    top = at
    while top > 0 and not _begins_paragraph(lines[top], lines[top - 1]):
        top -= 1
    paragraph = " ".join(line.strip(" \t>") for line in lines[top : at + 1])[-LEAD_CHARS:]
    sentences = _SENTENCE_END.split(paragraph)
    lead = sentences[-1] if len(sentences[-1]) >= _SHORT_LEAD_CHARS else " ".join(sentences[-2:])
    said = _read_words(lead)
    if said is not BlockClaim.OPEN:
        return said
    above = next((found for line in reversed(lines[:top]) if (found := _read_heading(line)) is not None), None)
    return _read_words(above, heading=True) if above is not None else BlockClaim.OPEN


def _begins_paragraph(line: str, above: str) -> bool:
    return not above.strip(" \t>") or _LIST_ITEM.match(line) is not None or _read_heading(above) is not None


def _read_heading(line: str) -> str | None:
    """Return the words of a heading, of a bold line or of the summary of a fold; None if the line is none of these."""
    found = _HEADING.fullmatch(line)
    return _TAG.sub(" ", next((words for words in found.groups() if words), "")) if found else None


def _read_words(words: str, *, heading: bool = False) -> BlockClaim:
    """The last telling word decides: "the error that the job reports is mended by this change" proposes.

    Only a heading, or what ends in a colon, introduces a quotation.
    """
    words = _CIRCUMSTANCE.sub("", _NAMED.sub("`name`", words[-LEAD_CHARS:]))
    if _PURPOSE.match(words):
        _, comma, words = words.rpartition(",")
        if not comma:
            return BlockClaim.PROPOSED
    if _MENDING.search(words) or _SUPPOSING.search(words.rpartition(" but ")[2]) or _IMPERATIVE.match(words):
        return BlockClaim.PROPOSED
    quoting = max((found.start() for found in _QUOTING.finditer(words)), default=-1)
    proposing = max((found.start() for found in _PROPOSING.finditer(words)), default=-1)
    if proposing > quoting:
        return BlockClaim.PROPOSED
    introduces = quoting >= 0 and (heading or words.rstrip("*_` ").endswith(":"))
    return BlockClaim.QUOTED if introduces else BlockClaim.OPEN


def says_what_a_file_has(lines: Sequence[str], first: int) -> bool:
    """Tell whether the line before a block of code says that a file reads like this."""
    before = next((line for line in reversed(lines[max(0, first - 3) : first]) if line.strip(" \t>")), "")
    return _FILE_SAYS.search(before) is not None and read_lead(lines, first) is BlockClaim.QUOTED


def looks_like_output(lines: Sequence[str], *, in_quote: bool) -> bool:
    """Tell whether unintroduced lines claim to be output; `in_quote`: in a block quote, where prose is common."""
    lines = [_SIGNS.sub("", line) for line in lines]
    output = sum(map(_is_output, lines))
    own = sum(not _is_output(line) and _is_code_or_table(line) for line in lines)
    if output:
        return output * 3 >= own
    if own * 2 >= len(lines):
        return False
    return not (in_quote and _is_prose(lines))


def _is_output(line: str) -> bool:
    return bool(_OUTPUT_LINE.match(line) or (_OUTPUT_WORDS.match(line) and not _is_prose((line,))))


def _is_code_or_table(line: str) -> bool:
    return bool(_CODE_LINE.fullmatch(line) or _TABLE_LINE.fullmatch(line))


def _is_prose(lines: Sequence[str]) -> bool:
    words = " ".join(lines).split()
    plain = sum(_PROSE_WORD.fullmatch(word.strip("*_\"'“”().!?")) is not None for word in words)
    return len(words) >= 6 and plain * 10 >= len(words) * 8
