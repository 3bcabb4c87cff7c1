"""Tell the frames of a project's own code from those of the tools that ran it.

A trace often has forty frames of test runners and build tools and one of the project. The one says where; of the others
the first few are enough.
"""

import re
from collections.abc import Sequence

SHOWN_FRAMES = 5  # of a run of tools' frames; the others are shown if room is left
_TOOL = re.compile(
    r"^\s*(?:\[\w+\]\s*)?at (?:[\w.@$/-]+/)?(?:"
    r"java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|clojure|junit|org\.junit|org\.opentest4j|org\.hamcrest|org\.assertj"
    r"|org\.testng|org\.mockito|org\.apache\.(?:maven|tools\.ant)|org\.gradle|org\.codehaus|org\.scalatest|sbt|xsbt"
    r"|org\.spockframework|org\.eclipse\.(?:sisu|aether)|com\.google\.inject|worker\.org\.gradle|System|Microsoft|NUnit|Xunit"
    r")\."
    r"|node_modules[/\\]|\bnode:|\(internal/|(?:site|dist)-packages[/\\]|/usr/(?:local/)?lib|/gems/|/rustc/|<frozen "
    r"|[/\\]python\d(?:\.\d+)?[/\\]|vendor/bundle|vendor/[\w-]+/[\w-]+/|/go/src/(?:runtime|testing)/|\btesting\.tRunner"
    r"|jdk\.internal|[/\\]lib[/\\]ruby[/\\]| (?:std|core|alloc|test)::"
)


def is_tool_frame(text: str) -> bool:
    """Tell whether a frame is one of a language's library, a test runner or a build tool."""
    return _TOOL.search(text) is not None


def find_foldable(texts: Sequence[str], frames: Sequence[bool], numbers: Sequence[int]) -> set[int]:
    """Return the rows of tools' frames that follow other ones."""
    folded: set[int] = set()
    run, last = 0, 0
    for at, framed in enumerate(frames):
        if numbers[at] - last != 1:
            run = SHOWN_FRAMES  # the beginning of the run was not looked at
        last = numbers[at]
        if not framed:
            run = 0
        elif is_tool_frame(texts[at]):
            run += 1
            if run > SHOWN_FRAMES:
                folded.add(at)
        else:
            run = 0
    return folded
