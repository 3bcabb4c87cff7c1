"""`hummingbird queue`: what was given up is shown, done after all or forgotten."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.cli.queue import summarize_letter
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.orders import EventEnvelope, OrderCause, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import DeadLetter, QueueMessage
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.queues.sqlite_queue import SqliteQueue
from tests.cli.typing_in import Typed, typed

SESSION = "0123456789abcdef0123456789abcdef"
ORDER = WorkOrder(
    id="o" * 32,
    session_id=SESSION,
    cause=OrderCause.COMMAND,
    workflow="code-review",
    project="group/project",
    mr_iid=7,
    message="words of an outsider",
    made_at=time.time() - 7_500,
)


class Site:
    """A state folder of its own, with a queue in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / "state" / "queue.sqlite"
        self.path.parent.mkdir()
        self.config = folder / "hummingbird.yaml"
        self.config.write_text("settings: {}\n")

    def type(self, *arguments: str, answer: str | None = None) -> Typed:
        environment = {"HUMMINGBIRD_HOME": str(self.path.parent), "CONFIG_PATH": str(self.config)}
        return typed("queue", *arguments, environment=environment, answer=answer)

    def given_up(self, *bodies: str) -> list[str]:
        """Their ids: each was received too often."""
        return asyncio.run(self._give_up(bodies))

    async def _give_up(self, bodies: Sequence[str]) -> list[str]:
        queue = SqliteQueue(self.path, 60)
        ids = [await queue.send(body, group=f"g{at}", dedup_id=f"d{at}") for at, body in enumerate(bodies)]
        for _ in range(QUEUE_RECEIVES):
            for message in await queue.receive(10, 0):
                await queue.postpone(message, 0)
        assert len(await queue.list_dead_letters()) == len(ids)
        await queue.close()
        return ids

    def dead(self) -> Sequence[DeadLetter]:
        async def look() -> Sequence[DeadLetter]:
            queue = SqliteQueue(self.path, 60)
            try:
                return await queue.list_dead_letters()
            finally:
                await queue.close()

        return asyncio.run(look())

    def waiting(self) -> Sequence[QueueMessage]:
        async def look() -> Sequence[QueueMessage]:
            queue = SqliteQueue(self.path, 60)
            try:
                return await queue.receive(10, 0)
            finally:
                await queue.close()

        return asyncio.run(look())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def event(case: str) -> str:
    """As the queue carries the webhook that begins a case."""
    with Scene(find_case(case)) as scene:
        _headers, body = scene.webhook_event()
    return encode_envelope(EventEnvelope(identity="i" * 32, body=body.decode(), at=time.time() - 90))


def test_an_empty_queue_says_so(site: Site) -> None:
    done = site.type("list")
    assert (done.code, done.out) == (0, "There are no dead letters.\n")
    assert json.loads(site.type("list", "--json").out) == []


def test_an_order_is_shown_by_what_it_was_about_and_never_by_its_text(site: Site) -> None:
    (letter_id,) = site.given_up(encode_envelope(ORDER))
    done = site.type("list")
    assert done.code == 0
    assert done.out.split() == [
        *(letter_id, "2", "h", "order", "(command)", "code-review", "group/project!7", "session", SESSION)
    ]
    assert "outsider" not in done.out + done.err


def test_an_event_is_shown_by_its_kind_project_and_merge_request(site: Site) -> None:
    site.given_up(event("compiler-error"))
    (line,) = site.type("list").out.splitlines()
    assert "1 min  event: pipeline failed  veloren/veloren!" in line


def test_programs_get_the_same_in_json(site: Site) -> None:
    (letter_id,) = site.given_up(encode_envelope(ORDER))
    (entry,) = json.loads(site.type("list", "--json").out)
    assert entry == {
        **{"id": letter_id, "what": "order (command)", "since": ORDER.made_at, "workflow": "code-review"},
        **{"project": "group/project", "merge_request": 7, "session": SESSION},
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("no envelope", "message of unknown format"),
        ('{"kind": "novelty"}', "message of unknown format"),
        (encode_envelope(EventEnvelope(identity="i", body="no webhook")), "event that cannot be read"),
        (
            encode_envelope(EventEnvelope(identity="i", body='{"object_kind": "push"}')),
            "event of a kind that is ignored",
        ),
        (encode_envelope(EventEnvelope(identity="i", reference="events/i")), "event, too large for the queue"),
    ],
)
def test_what_cannot_be_read_is_listed_too(site: Site, body: str, words: str) -> None:
    (letter_id,) = site.given_up(body)
    assert site.type("list").out.split(maxsplit=2) == [letter_id, "?", f"{words}\n"]


def test_names_that_would_act_on_a_terminal_are_made_plain() -> None:
    """Asked without a terminal, click would take some of them away by itself."""
    order = WorkOrder(
        id="o", session_id="s", cause=OrderCause.REPLY, workflow="w\x1b[2J", project="g/p\nok", mr_iid=1, made_at=1.0
    )
    letter = summarize_letter(DeadLetter("id", "group", encode_envelope(order)))
    assert (letter.workflow, letter.project) == ("w?[2J", "g/p?ok")


def test_retry_sends_one_anew_and_leaves_the_others(site: Site) -> None:
    first, second = site.given_up(encode_envelope(ORDER), "another")
    done = site.type("retry", first)
    assert done.code == 0
    assert [letter.id for letter in site.dead()] == [second]
    (message,) = site.waiting()
    assert (message.body, message.receives) == (encode_envelope(ORDER), 1)
    assert done.out == f"{first} is in the queue again, as {message.id}\n"


def test_retry_of_all_sends_all_anew(site: Site) -> None:
    site.given_up("one", "two", "three")
    done = site.type("retry", "--all")
    assert done.out.count("is in the queue again") == 3
    assert site.dead() == []
    assert [message.body for message in site.waiting()] == ["one", "two", "three"]
    assert site.type("retry", "--all").out == "There are no dead letters.\n"


def test_one_that_is_not_there_is_told_and_the_others_are_done(site: Site) -> None:
    (letter_id,) = site.given_up("one")
    done = site.type("drop", "--yes", "nonsense", letter_id)
    assert done.code == 1
    assert "There is no dead letter 'nonsense'" in done.err
    assert done.out == f"{letter_id} is deleted\n"
    assert site.dead() == []


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 130, 1), ("\n", 130, 1)])
def test_drop_asks_on_a_terminal(site: Site, answer: str, code: int, left: int) -> None:
    (letter_id,) = site.given_up("one")
    done = site.type("drop", letter_id, answer=answer)
    assert done.code == code
    assert "Delete one message? This cannot be undone." in done.err
    assert len(site.dead()) == left


def test_drop_forgets_nothing_unasked_where_nobody_can_be_asked(site: Site) -> None:
    site.given_up("one")
    done = site.type("drop", "--all")
    assert done.code == 2
    assert "say --yes" in done.err
    assert len(site.dead()) == 1
    assert site.type("drop", "--all", "--yes").code == 0
    assert site.dead() == []


@pytest.mark.parametrize("verb", ["retry", "drop"])
@pytest.mark.parametrize("arguments", [(), ("some-id", "--all")])
def test_ids_or_all_of_them_but_not_both_and_not_neither(site: Site, verb: str, arguments: tuple[str, ...]) -> None:
    site.given_up("one")
    done = site.type(verb, *arguments)
    assert done.code == 2
    assert "give --all" in done.err
    assert len(site.dead()) == 1


def test_a_queue_that_cannot_be_opened_is_one_sentence(site: Site) -> None:
    site.path.write_bytes(b"not a queue at all" * 100)
    done = site.type("list")
    assert done.code == 1
    assert "is damaged or no queue; move it away" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("command", ["list", "retry", "drop"])
def test_the_help_of_each_command_teaches_with_an_example(command: str) -> None:
    done = typed("queue", command, "--help")
    assert f"hummingbird queue {command}" in done.out.split("\n", 2)[2]
