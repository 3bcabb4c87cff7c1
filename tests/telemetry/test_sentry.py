"""Bugs arrive at Sentry, masked and with nothing that nobody asked for; and nothing else does."""

import asyncio
import logging
import sys

import pytest

from hummingbird.core.errors import GitLabUnavailable, MissingSetting
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.work_context import bind_log_context
from hummingbird.telemetry.delivery import create_sentry as made
from hummingbird.telemetry.sentry import SentryReporter
from tests.telemetry.collecting import Collector

CANARY = "canary-of-a-secret-0123456789"
LOCAL = "what-a-variable-holds-0123456789"
log = logging.getLogger("hummingbird.service")


def reporting(collector: Collector) -> SentryReporter:
    found = made({"SENTRY_DSN": collector.dsn}, "1.2", Secrets([CANARY]))
    assert found is not None
    found.begin()
    return found


def stumble(text: str) -> None:
    held = LOCAL.upper()
    assert held
    raise KeyError(text)


def bug(text: str = "oops", sentence: str = "It failed.") -> None:
    try:
        stumble(text)
    except KeyError:
        log.exception(sentence)


async def test_a_bug_arrives_with_its_place_its_sentence_and_the_ids_of_the_work(collector: Collector) -> None:
    sentry = reporting(collector)
    with bind_log_context("order-1", "session-1", event_id="event-1"):
        bug()
    await sentry.aclose(30)
    (event,) = collector.events
    (error,) = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("KeyError", "'oops'")
    assert [frame["function"] for frame in error["stacktrace"]["frames"]] == ["bug", "stumble"]
    assert event["logentry"]["message"] == "It failed."
    assert event["tags"] == {"order": "order-1", "session": "session-1", "event": "event-1"}
    assert (event["release"], event["level"], event["logger"]) == ("hummingbird@1.2", "error", "hummingbird.service")


async def test_no_secret_no_variable_and_nothing_of_the_machine_is_told(collector: Collector) -> None:
    """Not in the exception, the sentence, what was said before or an id."""
    sentry = reporting(collector)
    with bind_log_context(f"order {CANARY}"):
        log.warning("Before: %s", CANARY)
        bug(f"oops {CANARY}", f"It failed with {CANARY} and half \ud800 a character.")
    await sentry.aclose(30)
    (event,) = collector.events
    assert CANARY.encode() not in collector.body
    assert collector.body.count(MASK.encode()) >= 4
    assert event["breadcrumbs"]["values"][0]["message"] == f"Before: {MASK}"
    assert LOCAL.encode() not in collector.body.lower()
    assert not {"user", "request", "modules", "extra", "contexts"} & event.keys()
    assert not event.get("server_name")
    assert all("vars" not in frame for frame in event["exception"]["values"][0]["stacktrace"]["frames"])


async def test_the_warnings_before_it_are_those_of_the_same_order(collector: Collector) -> None:
    sentry = reporting(collector)

    async def work(name: str) -> None:
        with bind_log_context(name):
            log.warning("%s is slow.", name)
            await asyncio.sleep(0)
            if name == "second":
                bug()

    log.warning("A webhook from 203.0.113.7 was refused.")
    await asyncio.gather(work("first"), work("second"))
    await sentry.aclose(30)
    (event,) = collector.events
    assert [one["message"] for one in event["breadcrumbs"]["values"]] == ["second is slow."]
    assert b"203.0.113.7" not in collector.body


async def test_a_bug_of_nobodys_work_has_no_history(collector: Collector) -> None:
    sentry = reporting(collector)
    log.warning("Something else.")
    bug()
    await sentry.aclose(30)
    assert collector.events[0]["breadcrumbs"]["values"] == []


async def test_what_is_no_bug_is_not_reported(collector: Collector) -> None:
    sentry = reporting(collector)
    log.error("The queue cannot be reached.")
    try:
        raise GitLabUnavailable("GitLab is away.")
    except GitLabUnavailable:
        log.exception("Tried again later.")
    log.warning("Nothing serious.", exc_info=KeyError("later"))
    logging.getLogger("sentry_sdk.errors").error("of its own", exc_info=KeyError("x"))
    bug("the only one")
    await sentry.aclose(30)
    assert [event["exception"]["values"][0]["value"] for event in collector.events] == ["'the only one'"]


async def test_an_exception_that_no_task_was_asked_for_is_one(collector: Collector) -> None:
    """asyncio logs it."""
    sentry = reporting(collector)
    asyncio.get_running_loop().call_exception_handler({"message": "never retrieved", "exception": KeyError("lost")})
    await sentry.aclose(30)
    assert collector.events[0]["logger"] == "asyncio"


async def test_a_record_that_cannot_be_read_disturbs_nobody(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging, "lastResort", None)
    sentry = reporting(collector)
    record = logging.LogRecord("hummingbird", logging.ERROR, "x.py", 1, f"%d {CANARY}", ("no number",), None)
    record.exc_info = (KeyError, KeyError("k"), None)
    sentry.handle(record)
    await sentry.aclose(30)
    assert CANARY not in capsys.readouterr().err
    assert collector.events == []


async def test_logging_is_as_it_was_before_and_after(collector: Collector) -> None:
    """The library's usual way is to patch it."""
    before = (logging.Logger.callHandlers, sys.excepthook, list(logging.getLogger().handlers))
    sentry = reporting(collector)
    assert logging.Logger.callHandlers is before[0]
    await sentry.aclose(30)
    assert (logging.Logger.callHandlers, sys.excepthook, list(logging.getLogger().handlers)) == before
    bug()
    assert collector.events == []


@pytest.mark.parametrize("trouble", ["away", "500", "429"])
async def test_a_sentry_in_trouble_disturbs_nobody_and_is_told_of_once(
    collector: Collector, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    dsn = "http://publickey@127.0.0.1:9/1" if trouble == "away" else collector.dsn
    collector.status = 200 if trouble == "away" else int(trouble)
    sentry = made({"SENTRY_DSN": dsn}, "1", Secrets())
    assert sentry is not None
    sentry.begin()
    for number in range(3):
        bug(f"{number}")
    await sentry.aclose(30)
    told = [record.getMessage() for record in caplog.records if record.exc_info is None]
    assert len(told) == 1
    assert told[0].startswith("An error report did not reach Sentry")


async def test_the_end_waits_for_no_sentry_that_hangs(collector: Collector) -> None:
    collector.gate.clear()
    sentry = reporting(collector)
    bug()
    await sentry.aclose(0.05)
    assert not collector.gate.is_set()


def test_without_a_dsn_nothing_is_reported() -> None:
    assert made({"SENTRY_DSN": " "}, "1", Secrets()) is None


@pytest.mark.parametrize(
    "dsn", ["nonsense", "https://sentry.example/1", "https://k3yk3yk3y@sentry.example/x", "http://[k@x/1"]
)
def test_a_dsn_that_is_none_is_a_sentence_that_does_not_show_it(dsn: str) -> None:
    with pytest.raises(MissingSetting, match="SENTRY_DSN is not a DSN: copy it") as raised:
        made({"SENTRY_DSN": dsn}, "1", Secrets())
    assert dsn not in str(raised.value)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "hummingbird.telemetry.sentry", raising=False)
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with pytest.raises(MissingSetting, match=r"pip install 'hummingbird-agent\[sentry\]'"):
        made({"SENTRY_DSN": "http://k@127.0.0.1/1"}, "1", Secrets())
