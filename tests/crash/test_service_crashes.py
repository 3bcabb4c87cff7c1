"""A service that is killed anywhere in a journey is taken over by another one: real processes and
SIGKILL. These are samples; `make crash` tries every point."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crash.backends import BACKENDS, CLOUD, LOCAL, Open
from tests.crash.journey import played
from tests.crash.points import AFTER, KINDS
from tests.crash.services import Services, zygote
from tests.crash.table import is_beside, points_of, sample
from tests.crash.verdict import check
from tests.thoroughly import also

SAMPLED = 26  # of each backend
SAMPLES = [(title, point) for title in BACKENDS for point in sample(points_of(title), SAMPLED)]
ALWAYS = [  # a result posted and not yet told, an answer paid for and not yet told
    next((title, point) for title, point in SAMPLES if title == wanted and point.startswith(kind) and AFTER in point)
    for wanted, kind in ((LOCAL, "forge POST"), (LOCAL, "model generate"), (CLOUD, "forge POST"))
]


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with zygote() as made:
        yield made


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Open]]:
    """Each backend when it is first needed."""
    with ExitStack() as stack:
        yield _Opened(stack)


class _Opened(dict[str, Open]):
    def __init__(self, stack: ExitStack) -> None:
        super().__init__()
        self._stack = stack

    def __missing__(self, title: str) -> Open:
        self[title] = self._stack.enter_context(BACKENDS[title]())
        return self[title]


@pytest.mark.thorough
@pytest.mark.parametrize(("title", "point"), [one if one in ALWAYS else also(*one) for one in SAMPLES])
async def test_killed_there_another_process_tells_each_result_once_and_pays_for_no_answer_twice(
    title: str, point: str, tmp_path: Path, services: Services, opened: dict[str, Open]
) -> None:
    story = await played(opened[title](tmp_path), services, tmp_path, point)
    check(story)
    assert story.killed_in or is_beside(point), "the point was not reached: `make crash` renews the table"


@pytest.mark.thorough
@pytest.mark.parametrize("title", [LOCAL, also(CLOUD)])
async def test_the_undisturbed_journey_reaches_the_points_of_the_table(
    title: str, tmp_path: Path, services: Services, opened: dict[str, Open]
) -> None:
    """What goes on beside the run is done more or less often."""
    story = await played(opened[title](tmp_path), services, tmp_path)
    check(story)
    reached = {point for point in story.reached if not is_beside(point)}
    assert reached == {point for point in points_of(title) if not is_beside(point)}, "`make crash` renews the table"


@pytest.mark.thorough
@pytest.mark.parametrize("title", BACKENDS)
def test_no_point_is_named_after_a_day(title: str) -> None:
    assert not [point for point in points_of(title) if re.search(r"\d{4}-\d\d", point)]


@pytest.mark.thorough
@pytest.mark.parametrize("title", BACKENDS)
def test_the_samples_are_of_every_kind_and_after_every_write_of_the_journey(title: str) -> None:
    points = points_of(title)
    chosen = sample(points, SAMPLED)
    assert {point.split()[0] for point in chosen} == set(KINDS)
    assert {point for point in points if point.startswith("forge POST") and point.endswith(AFTER)} <= set(chosen)
