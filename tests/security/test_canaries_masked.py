"""Where what people, models and bugs say loses the credentials that we know, and nothing else."""

import json
import logging
import sys
from pathlib import Path

import pytest

from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.model_call import mask_reply
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.console import OneLineFormatter, SystemClock
from hummingbird.app.environment_secrets import environment_secrets
from hummingbird.cli.error_output import report_error
from hummingbird.core.journal import MessageSource, UserSaid
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.storage.journals import MemoryJournal
from tests.security.canaries import TIERS, files, found, spellings, ways
from tests.standins.scripted_model import ScriptedModel, text_reply

SECRETS = Secrets(TIERS.values())
THEIRS = "psql postgres://user:password@localhost; curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz'"


@pytest.mark.parametrize("tier", TIERS)
def test_a_known_value_is_masked_in_every_spelling_and_what_others_call_their_own_is_left(tier: str) -> None:
    for spelt in spellings(TIERS[tier]):
        assert SECRETS.mask_known(f"{THEIRS}: {spelt}!") == f"{THEIRS}: {MASK}!"
    assert MASK in SECRETS.mask(THEIRS), "as a tool's output it would be masked"


def test_an_answer_that_tells_nothing_is_the_very_same() -> None:
    call = ToolCall("1", "sandbox_exec", json.dumps({"command": THEIRS, "sign": "\u00e9\n"}))
    message = AssistantMessage("Look.", "Hm.", (call,), ProviderEcho("wire", "model", [{"signature": "s"}]))
    assert mask_reply(message, SECRETS.mask_known) is message


@pytest.mark.parametrize("tier", TIERS)
def test_an_answer_loses_a_credential_from_words_thoughts_and_calls_and_its_echo_with_it(tier: str) -> None:
    value = TIERS[tier]
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in value)
    calls = (
        ToolCall("1", "sandbox_exec", json.dumps({"command": f"echo {ways(value)['in Base64']} | base64 -d"})),
        ToolCall("2", value, f'{{"command": "echo {escaped}"}}'),
        ToolCall("3", "sandbox_exec", f'{{"command": "echo {ways(value)["in JSON"]}'),
    )
    told = mask_reply(
        AssistantMessage(f"So {value}.", f"Hm, {value}.", calls, ProviderEcho("wire", "m", [value])), SECRETS.mask_known
    )
    assert (told.text, told.reasoning, told.echo) == (f"So {MASK}.", f"Hm, {MASK}.", None)
    assert [call.name for call in told.calls] == ["sandbox_exec", MASK, "sandbox_exec"]
    assert json.loads(told.calls[0].arguments) == {"command": f"echo {MASK} | base64 -d"}
    assert json.loads(told.calls[1].arguments) == {"command": f"echo {MASK}"}
    assert told.calls[2].arguments == f'{{"command": "echo {MASK}'


def test_an_echo_alone_that_holds_a_credential_is_not_replayed() -> None:
    message = AssistantMessage("So.", echo=ProviderEcho("wire", "m", [{"text": TIERS["dashboard"]}]))
    assert mask_reply(message, SECRETS.mask_known) == AssistantMessage("So.")


@pytest.mark.parametrize("source", MessageSource)
async def test_what_a_person_says_is_written_without_our_credentials(source: MessageSource) -> None:
    journal = MemoryJournal()
    setup = LoopConfig([ScriptedModel([text_reply("Done.")])], Toolbox([]), "Be brief.", SystemClock(), secrets=SECRETS)
    await AgentLoop(journal, setup).run(f"{THEIRS} with {' '.join(TIERS.values())}", source=source)
    (said,) = [entry for entry in journal.entries() if isinstance(entry, UserSaid)]
    assert said == UserSaid(text=f"{THEIRS} with {' '.join(MASK for _ in TIERS)}", source=source, at=said.at)


def test_a_key_that_begins_with_a_slash_is_secret_and_a_path_to_one_is_not(tmp_path: Path) -> None:
    """One of 64 keys of AWS begins so."""
    file = tmp_path / "key.json"
    file.write_text("{}")
    given = {"AWS_SECRET_ACCESS_KEY": TIERS["aws"], "GOOGLE_APPLICATION_CREDENTIALS": str(file), "LONG_KEY": "/" * 5000}
    assert environment_secrets(given).mask(f"{TIERS['aws']} {file}") == f"{MASK} {file}"


def test_no_line_of_a_log_tells_a_credential_of_the_environment_not_even_in_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_GITLAB_TOKEN", TIERS["orchestrator of all"])
    try:
        raise KeyError(TIERS["orchestrator of all"])
    except KeyError:
        record = logging.LogRecord(
            "a", logging.ERROR, "a.py", 1, "no %s", (TIERS["orchestrator of all"],), sys.exc_info()
        )
    line = OneLineFormatter("%(message)s").format(record)
    assert found(line) == []
    assert line.startswith(f"no {MASK}\nTraceback")
    assert line.endswith(f"KeyError: '{MASK}'")


def test_neither_a_sentence_nor_the_traceback_of_a_command_tells_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", TIERS["vendor"])
    assert report_error(RuntimeError(f"it said {TIERS['vendor']}"), ["hummingbird", "-v"]) == 1
    told = capsys.readouterr().err
    assert found(told) == []
    assert told.count(f"RuntimeError: it said {MASK}") == 2


async def test_what_a_message_said_is_not_in_the_queues_file_once_it_is_deleted(tmp_path: Path) -> None:
    """SQLite would leave it in pages that it means to use again."""
    queue = SqliteQueue(tmp_path / "queue.sqlite", 30)
    for number in range(20):
        await queue.send(f"{number} {TIERS['tool']} {'x' * 3000}", group=str(number), dedup_id=str(number))
    for message in [*await queue.receive(10, 1), *await queue.receive(10, 1)]:
        await queue.delete(message)
    await queue.close()
    assert [name for name, content in files(tmp_path) if found(content)] == []
