"""Which projects may be looked at (D4)."""

import pytest

from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.domain.errors import CallDenied

SCOPE = Scope("acme/widgets", ("acme/tools/scales",))


def test_the_events_project_is_meant_where_none_is_named() -> None:
    assert SCOPE.allowed() == "acme/widgets"


@pytest.mark.parametrize("project", ["acme/widgets", "Acme/Widgets", "/acme/widgets/"])
def test_the_events_project_may_be_named(project: str) -> None:
    assert SCOPE.allowed(project) == "acme/widgets"


def test_listed_projects_may_be_named() -> None:
    assert SCOPE.allowed("acme/tools/scales") == "acme/tools/scales"


@pytest.mark.parametrize("project", ["jdoe/widgets", "acme", "", "101", "acme/widgets/../gadgets", "acme/widgets%2f"])
def test_d4_all_others_are_refused_with_what_to_do(project: str) -> None:
    with pytest.raises(CallDenied, match=r"name one of acme/tools/scales, acme/widgets.*fork"):
        SCOPE.allowed(project)


def test_what_a_model_wrote_is_quoted_short_and_printable() -> None:
    with pytest.raises(CallDenied) as refused:
        SCOPE.allowed("\x1b[31m\u202e" + "x" * 1000)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600
