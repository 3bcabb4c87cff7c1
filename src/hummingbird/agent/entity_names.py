"""Find the names in a text that a person would search for: paths, addresses, commits, tests, versions and the like.

Only the shape of a word counts. The patterns are generous: a name too many costs a few bytes, a missing one loses what
it names.
"""

import re
from collections.abc import Iterator

_QUOTED = re.compile(r"`([^`\n]{2,120})`")  # what somebody put in back-ticks
_NAME = re.compile(
    r"""
      https?://[^\s<>"'`|)\]}]+                              # an address
    | [\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+                     # of a person
    | (?<![\w/.@+-])~?/?(?:[\w.@+-]+/)+[\w.@+-]+
      (?:(?:::[\w\[\]-]+)+|:[\w.-]+(?::\d+)?|!\d+|\#\d+)?   # a path, a test, an image, !12 of a project
    | (?<![\w.-])[\w-]+\.(?:py|js|ts|go|rs|c|h|cc|cpp|java|rb|sh|yml|yaml|toml|json|xml|md|txt|log|cfg|ini|sql|lock)
      (?:(?:::[\w\[\]-]+)+|:\d+(?::\d+)?)?\b                 # a file
    | (?<![\w&])[!\#]\d+\b                                   # !12, #34
    | \b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b
    | \b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b          # a commit or a digest
    | \b[A-Z][A-Z0-9]+(?:-\d+)+\b                             # a ticket, a CVE
    | \b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b                      # a variable
    | \b[a-zA-Z_]\w*(?:(?:\.|::)[a-zA-Z_]\w*)+(?:\(\))?      # dotted.name, name::space
    | \b\w+(?:Error|Exception|Warning|Fault)\b
    | \b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b                      # snake_case
    | \b[A-Z]?[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b                 # camelCase
    | (?<![\w-])[a-z][a-z0-9.]*(?:-[a-z0-9.]+)*-(?=[a-z.]*\d)[a-z0-9.]+(?:_\w+)?\b
                                                             # a package, a pod, a host: with a digit at its end
    | \bv?\d+\.\d+(?:\.\d+)*(?:[-+.][\w.]+)?\b               # a version
    | \b\d{5,}\b                                             # a job, a pipeline
    """,
    re.VERBOSE,
)
# Scripts without spaces between words: a name ends where such a script begins.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef]+")
_TRAILING = ".,;:!?'\"*_"


def find_names(text: str) -> Iterator[str]:
    """Yield the names in back-ticks first, then the others in their order; each as often as it occurs."""
    spaced = _UNSPACED.sub(" ", text)
    for name in (*_QUOTED.findall(text), *(found[0] for found in _NAME.finditer(spaced))):
        if len(kept := name.rstrip(_TRAILING)) > 1:
            yield kept
