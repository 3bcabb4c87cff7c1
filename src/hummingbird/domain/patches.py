"""By what a merge request's change is known again when it was only put onto another commit (W2): what its diff adds,
takes away and shows around that, without numbers and ids of commits. As `git patch-id`, but names and modes count.
"""

from collections.abc import Sequence
from hashlib import sha256

from hummingbird.domain.diffs import FileDiff
from hummingbird.domain.review_limits import PATCH_FILES, PATCH_LINES

_CHARS = 40


def identity(files: Sequence[FileDiff]) -> str:
    """The same one whatever order the files come in. Empty where nobody can tell: the forge hides something, or may
    have left something out, or there is nothing."""
    if not files or len(files) >= PATCH_FILES or any(file.hidden for file in files):
        return ""
    if sum(file.text.count("\n") for file in files) >= PATCH_LINES:
        return ""
    return sha256("\0".join(sorted(map(_identity, files))).encode()).hexdigest()[:_CHARS]


def _identity(file: FileDiff) -> str:
    """A line's end counts, for it can be what a change is about."""
    said = "\n".join("@@" if line.startswith("@@") else line for line in file.text.split("\n"))
    parts = (file.old_path, file.new_path, file.modes, "born" if file.born else "", said)
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
