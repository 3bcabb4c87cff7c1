"""How the bounds of telemetry relate to each other and to the rest."""

from hummingbird.core.limits import DOCTOR_CHECK_S, SERVE_GRACE_S
from hummingbird.telemetry import metric_definitions
from hummingbird.telemetry.metric_definitions import BUG_WARNINGS, BUG_WARNINGS_KEPT, TELEMETRY_CLOSE_S, TRACES_TRIED_S


def test_every_limit_of_telemetry_is_more_than_nothing() -> None:
    values = {
        name: value
        for name, value in vars(metric_definitions).items()
        if name.isupper() and isinstance(value, int | float)
    }
    assert values
    assert all(value > 0 for value in values.values())


def test_the_end_of_the_service_fits_into_what_a_deployment_gives() -> None:
    assert SERVE_GRACE_S + TELEMETRY_CLOSE_S < 900


def test_the_doctor_hears_of_a_collector_that_hangs_before_it_gives_up_itself() -> None:
    assert TRACES_TRIED_S < DOCTOR_CHECK_S


def test_the_warnings_of_one_order_fit_into_those_of_all() -> None:
    assert BUG_WARNINGS < BUG_WARNINGS_KEPT
