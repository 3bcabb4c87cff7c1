"""Which projects may be looked at."""

import pytest

from hummingbird.core.errors import CallDenied
from hummingbird.gitlab.read import ProjectScope

SCOPE = ProjectScope("acme/widgets", ("acme/tools/scales",))


def test_the_events_project_is_meant_where_none_is_named() -> None:
    assert SCOPE.resolve_project() == "acme/widgets"


@pytest.mark.parametrize("project", ["acme/widgets", "Acme/Widgets", "/acme/widgets/"])
def test_the_events_project_may_be_named(project: str) -> None:
    assert SCOPE.resolve_project(project) == "acme/widgets"


def test_listed_projects_may_be_named() -> None:
    assert SCOPE.resolve_project("acme/tools/scales") == "acme/tools/scales"


@pytest.mark.parametrize("project", ["jdoe/widgets", "acme", "", "101", "acme/widgets/../gadgets", "acme/widgets%2f"])
def test_all_others_are_refused_with_what_to_do(project: str) -> None:
    with pytest.raises(CallDenied, match=r"name one of acme/tools/scales, acme/widgets.*fork"):
        SCOPE.resolve_project(project)


def test_what_a_model_wrote_is_quoted_short_and_printable() -> None:
    with pytest.raises(CallDenied) as refused:
        SCOPE.resolve_project("\x1b[31m\u202e" + "x" * 1000)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600
