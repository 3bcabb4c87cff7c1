"""The service's pauses are short here, as in its journeys."""

from tests.journeys.service.conftest import in_a_hurry  # noqa: F401 - a fixture
