"""The error tree and its drawing are the same tree."""

import inspect
import re

import pytest

from hummingbird.core import errors
from hummingbird.core.errors import HummingbirdError, ProviderUnavailable

_LINE = re.compile(r"^(?P<branch>[│├└─ ]*)(?P<name>[A-Z]\w+)(?:  +(?P<note>\S.*))?$")


def drawn() -> dict[str, str]:
    """Name → name of its parent, read off the drawing."""
    parents: dict[str, str] = {}
    above: list[str] = []
    drawing = (errors.__doc__ or "").partition("HummingbirdError\n")
    for line in "".join(drawing[1:]).splitlines():
        match = _LINE.match(line)
        assert match, line
        assert len(match["branch"]) % 4 == 0, line
        depth = len(match["branch"]) // 4
        above[depth:] = [match["name"]]
        assert match["name"] not in parents
        parents[match["name"]] = above[depth - 1] if depth else ""
    return parents


def defined() -> dict[str, str]:
    classes = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    return {kind.__name__: kind.__bases__[0].__name__ if kind is not HummingbirdError else "" for kind in classes}


def test_the_drawing_shows_the_classes_there_are_and_their_parents() -> None:
    """One tree, drawn where it is defined."""
    assert drawn() == defined()


def test_the_drawing_is_in_the_order_of_the_classes() -> None:
    """So that one can be read beside the other."""
    assert list(drawn()) == list(defined())


def test_everything_has_one_root_and_one_parent() -> None:
    """So that `except HummingbirdError` is everything we raise on purpose."""
    for kind in (kind for kind in vars(errors).values() if inspect.isclass(kind)):
        assert len(kind.__bases__) == 1
        assert issubclass(kind, HummingbirdError)


def test_only_what_may_be_retried_carries_a_time_to_wait() -> None:
    for name in defined():
        kind = getattr(errors, name)
        assert ("retry_after_s" in vars(kind("It failed."))) == issubclass(kind, ProviderUnavailable)


@pytest.mark.parametrize("kind", [ProviderUnavailable, *ProviderUnavailable.__subclasses__()])
def test_an_error_reads_as_its_sentence(kind: type[ProviderUnavailable]) -> None:
    error = kind("Overloaded; try later.", 12.5)
    assert (str(error), error.retry_after_s) == ("Overloaded; try later.", 12.5)
