"""Describe an exception in words, for a model, a journal or a person."""

from hummingbird.core.errors import HummingbirdError
from hummingbird.core.text import replace_surrogates


def describe_error(error: BaseException) -> str:
    """Return the message of our own errors, and the name and message of others.

    Never raises, whatever an error's own `__str__` does.
    """
    try:
        words = replace_surrogates(str(error))
    except Exception:  # noqa: BLE001 - border: somebody's exception class; one that cannot be printed still has a name
        words = "it has no readable message"
    return words if isinstance(error, HummingbirdError) and words else f"{type(error).__name__}: {words}"
