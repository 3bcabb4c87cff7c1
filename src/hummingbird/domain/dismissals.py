"""Whether somebody says of a finding that nothing will be done about it: "won't fix", "by design", "false positive".

Few words of which the phrase is the beginning, so that neither a question nor a story in which it occurs counts; who
may say so is asked elsewhere. Pure and total: every text does or does not.
"""

import re

from hummingbird.domain.limits import DISMISSAL_CHARS
from hummingbird.domain.text import plain

_BEFORE = r"(?:(?:ok|okay|sorry|no|nope|yes|thanks|hm)[,.!:]?\s+)?"
# What we will not do, and what the finding is: "it won't fix it" is about something else.
_DEED = (
    r"(?:(?:we|i)\s+)?(?:wont\s?fix|won't\s?fix|won'?t\s+(?:do|change)|will\s+not\s+(?:fix|do|change)|dismiss(?:ed)?)"
)
_REFUSAL = r"(?:(?:we're|i'm|we\s+are|i\s+am)\s+)?not\s+going\s+to\s+(?:fix|change)"
_OF_IT = (
    r"(?:(?:this|that|it|these|those)(?:'s|\s+is|\s+are)?\s+)?(?:(?:a|an|closing\s+as|marking\s+as|marked\s+as)\s+)?"
)
_STATES = (
    r"(?:won't|will\s+not)\s+be\s+fixed",
    r"by\s+design",
    r"(?:(?:works|working|behaves|behaving)\s+)?as\s+(?:designed|intended|expected)",
    r"intended|intentional|deliberate|on\s+purpose",
    r"(?:the\s+)?(?:expected|intended)\s+behaviou?r",
    r"false[\s-]positives?",
    r"not\s+(?:a|an)\s+(?:bug|defect|problem|issue|error)",
)
_OBJECT = r"(?:\s+(?:this|that|it|these|those|here|now|for\s+now|in\s+this\s+(?:mr|merge\s+request|change)))*"
_REASON = r"(?:\s*[.!,:;()–—-].*|\s*\n.*|\s+(?:because|since|as|due\s+to|for|see)\b.*|\s*)"
_SAID = re.compile(rf"{_BEFORE}(?:{_DEED}|{_REFUSAL}|{_OF_IT}(?:{'|'.join(_STATES)})){_OBJECT}{_REASON}", re.DOTALL)
# What promises a deed, or takes the phrase back, is an answer to be read: nothing is dismissed by mistake.
_TAKEN_BACK = re.compile(
    r"\b(?:fixing|fixed|fix\s+coming|but|actually|breaks?|(?:will|i'll|we'll|(?<!not )going\s+to)\s+fix)\b"
)
_AROUND = " \t\r\n*_`~\"'"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u00b4": "'", "`": "'"})


def dismisses(text: str) -> bool:
    said = plain(text).translate(_APOSTROPHES).casefold().strip(_AROUND)
    if len(said) > DISMISSAL_CHARS or "?" in said or _taken_back(said):
        return False
    lines = (" ".join(line.replace("*", "").split()) for line in said.split("\n"))
    return _SAID.fullmatch("\n".join(lines)) is not None


def _taken_back(said: str) -> bool:
    return _TAKEN_BACK.search(said.replace("be fixed", "")) is not None
