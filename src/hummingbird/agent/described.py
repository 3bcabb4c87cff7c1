"""An exception as words for a model, a journal or a person. Knows nothing of who raised it."""

from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.text import plain


def described(error: BaseException) -> str:
    """Our own errors are sentences; others are named. Never raises, whatever an error's own `__str__` does."""
    try:
        words = plain(str(error))
    except Exception:  # noqa: BLE001 - border: somebody's exception class; one that cannot be printed still has a name
        words = "it has no readable message"
    return words if isinstance(error, HummingbirdError) and words else f"{type(error).__name__}: {words}"
