"""What `serve` logs, as sentences and as JSON; and that neither tells a secret or lets others write lines."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.console import JsonLineFormatter, OneLineFormatter
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.app.service import HummingbirdService, serve_command
from hummingbird.core.masking import MASK
from hummingbird.core.work_context import bind_log_context, current_log_context
from tests.cli.typing_in import typed
from tests.telemetry.collecting import collecting

CANARY = "canary-of-a-secret-0123456789"
log = logging.getLogger("hummingbird.of-a-test")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What the logger writes as JSON."""
    monkeypatch.setenv("ORCHESTRATOR_GITLAB_TOKEN", CANARY)
    lines = io.StringIO()
    writing = logging.StreamHandler(lines)
    writing.setFormatter(JsonLineFormatter())
    log.addHandler(writing)
    log.setLevel(logging.DEBUG)
    yield lines
    log.removeHandler(writing)
    log.setLevel(logging.NOTSET)


def only(lines: io.StringIO) -> dict[str, Any]:
    (line,) = lines.getvalue().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_is_one_object_with_time_level_logger_and_sentence(told: io.StringIO) -> None:
    record = log.makeRecord(log.name, logging.WARNING, "x.py", 1, "%s waits %d s.", ("Order 1", 30), None)
    record.created = 1_700_000_000.1239
    log.handle(record)
    assert only(told) == {
        "time": "2023-11-14T22:13:20.123Z",
        "level": "warning",
        "logger": "hummingbird.of-a-test",
        "message": "Order 1 waits 30 s.",
    }


def test_the_ids_of_the_work_are_there_and_each_task_has_its_own(told: io.StringIO) -> None:
    async def work(name: str) -> None:
        with bind_log_context(f"order-{name}", f"session-{name}"):
            await asyncio.sleep(0)
            await asyncio.create_task(below(name))
        log.info("%s is done.", name)

    async def below(name: str) -> None:
        with bind_log_context(event_id=f"event-{name}"):
            log.info("%s goes on.", name)

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    lines = [json.loads(line) for line in told.getvalue().splitlines()]
    ids = {line["message"]: {key: line.get(key) for key in ("order", "session", "event")} for line in lines}
    assert ids == {
        "a goes on.": {"order": "order-a", "session": "session-a", "event": "event-a"},
        "b goes on.": {"order": "order-b", "session": "session-b", "event": "event-b"},
        "a is done.": dict.fromkeys(("order", "session", "event")),
        "b is done.": dict.fromkeys(("order", "session", "event")),
    }


def test_work_that_fails_is_no_work_any_more() -> None:
    with pytest.raises(KeyError), bind_log_context("order"):
        raise KeyError
    assert current_log_context().order == ""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("two\nlines\r\u2028three", "two\nlines\r\u2028three"),
        ('"}\n{"level": "forged"', '"}\n{"level": "forged"'),
        ("half \ud800 a character", "half ? a character"),
        ("\x1b[31mred\x00 ü 😀", "\x1b[31mred\x00 ü 😀"),
    ],
)
def test_whatever_others_write_stays_one_line_that_can_be_read(told: io.StringIO, said: str, shown: str) -> None:
    log.info("They wrote: %s", said)
    text = told.getvalue()
    assert text.isascii()
    assert text.count("\n") == 1
    assert only(told)["message"] == f"They wrote: {shown}"


def test_a_bug_is_told_with_its_type_its_message_and_where_it_was(told: io.StringIO) -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        log.exception("It failed.")
    exception = only(told)["exception"]
    assert (exception["type"], exception["message"]) == ("KeyError", "'lost'")
    assert 'raise KeyError("lost")' in exception["stack"]


def test_no_value_of_a_line_has_a_secret(told: io.StringIO) -> None:
    with bind_log_context(f"order {CANARY}", CANARY):
        try:
            raise KeyError(CANARY)
        except KeyError:
            log.exception("It failed with %s.", CANARY)
    assert CANARY not in told.getvalue()
    found = only(told)
    assert found["message"] == f"It failed with {MASK}."
    assert (found["order"], found["session"]) == (f"order {MASK}", MASK)
    assert MASK in found["exception"]["message"]
    assert MASK in found["exception"]["stack"]


def test_a_line_whose_arguments_do_not_fit_and_an_exception_without_words_are_lines() -> None:
    class Wordless(Exception):
        def __str__(self) -> str:
            raise ValueError

    trace = (Wordless, Wordless(), None)
    record = log.makeRecord(log.name, logging.ERROR, "x.py", 1, "%d bottles", ("many",), trace)
    found = json.loads(JsonLineFormatter().format(record))
    assert found["message"] == "%d bottles"
    assert found["exception"]["type"].endswith("Wordless")
    assert found["exception"]["message"] == ""


def test_text_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids are in the sentences that have always had them, and in no other."""
    record = log.makeRecord(log.name, logging.INFO, "x.py", 1, "Ended:\n%s", ("done",), None)
    with bind_log_context("order", "session"):
        assert OneLineFormatter("%(levelname)s %(message)s").format(record) == "INFO Ended:\\x0adone"


@pytest.fixture
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`serve` ends as soon as it has begun. The loggers are put back."""

    async def stopped(serving: HummingbirdService) -> None:
        serving.stop()
        async with asyncio.timeout(30):
            await begun(serving, signals=False)

    begun, root = HummingbirdService.run, logging.getLogger()
    before = (list(root.handlers), root.level)
    monkeypatch.setattr(HummingbirdService, "run", stopped)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUMMINGBIRD_HOME", str(tmp_path / "state"))
    for name in ("CONFIG_PATH", "SENTRY_DSN", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    yield
    root.handlers, root.level = before


@pytest.mark.usefixtures("at_once")
def test_serve_logs_json_where_it_is_asked_to(capfd: pytest.CaptureFixture[str]) -> None:
    assert serve_command(None, "127.0.0.1", 0, SandboxChoice(), grace=0, verbose=False, log_format="json") == 0
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert lines[0]["message"].startswith("Webhooks are received at http://127.0.0.1:")
    assert lines[-1]["message"] == "The service has stopped; all work is finished or parked."
    assert {line["logger"] for line in lines} == {"hummingbird"}


@pytest.mark.usefixtures("at_once")
def test_what_ends_the_service_unexpectedly_is_logged_and_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def broken(serving: HummingbirdService) -> None:
        await ended(serving)
        raise KeyError("a bug")

    ended = HummingbirdService.run

    monkeypatch.setattr(HummingbirdService, "run", broken)
    with collecting() as collector:
        monkeypatch.setenv("SENTRY_DSN", collector.dsn)
        with pytest.raises(KeyError):
            serve_command(None, "127.0.0.1", 0, SandboxChoice(), grace=0, verbose=False, log_format="json")
        assert [event["exception"]["values"][0]["value"] for event in collector.events] == ["'a bug'"]
    last = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert (last["message"], last["exception"]["type"]) == ("The service ended because of a bug.", "KeyError")


def test_a_format_that_there_is_not_is_bad_usage() -> None:
    done = typed("serve", "--log-format", "xml")
    assert done.code == 2
    assert "'text', 'json'" in done.err


@pytest.mark.parametrize("variables", [{"SENTRY_DSN": "nonsense"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "nowhere"}])
def test_what_telemetry_cannot_work_with_is_said_before_anything_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    given = {"HUMMINGBIRD_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), **variables}
    done = typed("serve", "--port", "0", environment=given)
    root.handlers, root.level = before
    assert done.code == 2
    assert f"hummingbird: {next(iter(variables))} is not a" in done.err
    assert not (tmp_path / "state").exists()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_line_has_a_tool_s_token_however_its_variable_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], log_format: str
) -> None:
    monkeypatch.setenv("READER", CANARY)
    (tmp_path / "look.md").write_text("Look.")
    file = tmp_path / "hummingbird.yaml"
    sources = "data_sources: {gitlab: {token_env: READER}}"
    file.write_text(f"workflows:\n  a:\n    prompt: look.md\n    {sources}\n    projects: {{'*': {{}}}}\n")
    assert serve_command(str(file), "127.0.0.1", 0, SandboxChoice(), grace=0, verbose=False, log_format=log_format) == 0
    logging.getLogger("hummingbird").warning("GitLab said: %s is no token.", CANARY)
    said = capfd.readouterr().err
    assert f"GitLab said: {MASK} is no token." in said
    assert CANARY not in said
