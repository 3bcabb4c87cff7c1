"""One error for all that the servers said, when none of them gave what was asked for."""

from collections.abc import Sequence

from hummingbird.domain.errors import (
    AnswerUnusable,
    ClusterUnusable,
    CredentialRefused,
    HummingbirdError,
    NothingThere,
    SourceDown,
    SourceRefused,
)

# What somebody can do something about comes before what is final: where one server has nothing and the other was not
# to be asked, it is not known that there is nothing.
_GRAVEST = (CredentialRefused, ClusterUnusable, SourceDown, AnswerUnusable, SourceRefused, NothingThere)


def together(troubles: Sequence[HummingbirdError]) -> HummingbirdError:
    """The gravest kind of error, with all sentences."""
    sentences = " ".join(dict.fromkeys(str(each) for each in troubles))
    for kind in _GRAVEST:
        if any(isinstance(each, kind) for each in troubles):
            return kind(sentences)
    return SourceDown(sentences or "Konflux gave no answer. Ask again later.")


def is_lasting(trouble: HummingbirdError) -> bool:
    """Whether the same server would say the same to the next request of this call."""
    return isinstance(trouble, CredentialRefused | ClusterUnusable | SourceDown)
